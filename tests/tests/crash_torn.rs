//! Every file of state emptied, cut, or overwritten, as a disk does it that failed: the
//! calls that follow end, free what can be freed, and lose nothing of others.
//!
//! B002, B008, B046, B088.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use std::path::{Path, PathBuf};

use podwire_testkit::World;
use podwire_testkit::kill::Blow;
use podwire_tests::crash::{
    Command, Place, PluginChain, Subject, Target, Verb, host_device, left, masquerade, whole,
};

/// A file's content after the damage.
type Tear = fn(&[u8]) -> Vec<u8>;

/// What becomes of a file.
const DAMAGES: [(&str, Tear); 4] = [
    ("emptied", |_| Vec::new()),
    ("cut in half", |bytes| bytes[..bytes.len() / 2].to_vec()),
    ("without its end", |bytes| bytes[..bytes.len().saturating_sub(1)].to_vec()),
    ("overwritten", |bytes| bytes.iter().map(|_| 0xff).collect()),
];

/// Where attachments are noted whose ADD has begun.
const INTENTS: &str = "/var/lib/cni/podwire/intents";

/// The files of state that hold something.
fn files() -> Vec<PathBuf> {
    let mut found = Vec::new();
    for root in ["/var/lib/cni", "/run/podwire"] {
        found.extend(podwire_sys::file::walk_regular_files(Path::new(root), 8, 10_000).unwrap());
    }
    found.retain(|path| std::fs::metadata(path).unwrap().len() > 0);
    found.sort();
    found
}

fn is_kept_aside(path: &str) -> bool {
    path.contains("/quarantine/")
}

/// Attaches two containers, damages a file of state that isn't the second one's alone,
/// and deletes the first; again for each such file with each damage. Says which.
fn tear_all(
    subject: &dyn Subject,
    begin: impl Fn(&World, &mut Target),
    is_whole: impl Fn(&World, &Target) -> bool,
) -> Vec<PathBuf> {
    let world = World::new();
    subject.prepare(&world);
    let before = world.snapshot();
    let survivors = world.netns("survivor");
    subject.furnish(&survivors, "survivor");
    let mut survivor = Target::new("survivor", survivors.path());
    subject.add(&world, &mut survivor).unwrap();
    let of_survivor = files();
    let mut torn: Vec<PathBuf> = Vec::new();
    for number in 0.. {
        let netns = world.netns("victim");
        subject.furnish(&netns, "victim");
        let mut victim = Target::new("victim", netns.path());
        begin(&world, &mut victim);
        // The survivor's own files are those that were there and don't change.
        let candidates: Vec<PathBuf> = files()
            .into_iter()
            .filter(|path| !is_kept_aside(&path.display().to_string()))
            .filter(|path| !of_survivor.contains(path) || is_shared(path))
            .collect();
        let (file, (damage, tear)) =
            (candidates.get(number / DAMAGES.len()), DAMAGES[number % DAMAGES.len()]);
        let Some(file) = file else {
            assert!(number > 0, "no files of state");
            subject.del(&world, &victim).unwrap();
            break;
        };
        let place = format!("{}, {} {damage}", subject.name(), file.display());
        std::fs::write(file, tear(&std::fs::read(file).unwrap())).unwrap();
        if torn.last() != Some(file) {
            torn.push(file.clone());
        }
        for turn in ["DEL", "the second DEL"] {
            subject
                .del(&world, &victim)
                .unwrap_or_else(|error| panic!("{place}: {turn}: {error:#?}"));
        }
        subject.gc(&world, &["survivor"]).unwrap_or_else(|error| panic!("{place}: GC: {error:#?}"));
        netns.remove();
        assert!(is_whole(&world, &survivor), "{place}: the other container is not whole");
        // The next one finds everything usable, and its DEL leaves nothing.
        let netns = world.netns("next");
        subject.furnish(&netns, "next");
        let mut next = Target::new("next", netns.path());
        for (turn, outcome) in [
            ("ADD", subject.add(&world, &mut next)),
            ("CHECK", subject.check(&world, &next)),
            ("DEL", subject.del(&world, &next)),
        ] {
            outcome.unwrap_or_else(|error| panic!("{place}: {turn} of the next: {error:#?}"));
        }
        netns.remove();
        subject.repair(&world);
    }
    subject.del(&world, &survivor).unwrap();
    subject.gc(&world, &[]).unwrap();
    left(&before, &world.snapshot(), subject.bridges())
        .without(|change| is_kept_aside(change.name()))
        .assert_empty();
    torn
}

/// Files about all containers: index, stamps, marks.
fn is_shared(path: &Path) -> bool {
    let name = path.file_name().unwrap().to_string_lossy();
    path.iter().any(|part| part == ".podwire") || name.starts_with("last_reserved_ip.")
}

fn chain_survives(chain: &PluginChain) -> Vec<PathBuf> {
    tear_all(
        chain,
        |world, victim| chain.add(world, victim).unwrap(),
        |world, survivor| chain.check(world, survivor).is_ok(),
    )
}

fn assert_torn(torn: &[PathBuf], parts: &[&str]) {
    for part in parts {
        let is_in = torn.iter().any(|path| path.to_string_lossy().contains(part));
        assert!(is_in, "no {part} among {torn:#?}");
    }
}

#[test]
fn b002_torn_state_of_plugins_is_survived() {
    let torn = chain_survives(&masquerade());
    assert_torn(&torn, &["/networks/crash-masq/10.", "last_reserved_ip.0", "/.podwire/"]);
    assert_torn(&chain_survives(&whole()), &["/var/lib/cni/tuning/victim_eth0.json"]);
}

#[test]
fn torn_state_of_a_moved_device_is_survived() {
    assert_torn(&chain_survives(&host_device()), &["/run/podwire/devices/"]);
}

#[test]
fn b008_torn_records_of_the_runtime_are_survived() {
    let command = Command::over(masquerade());
    let torn = tear_all(
        &command,
        |world, victim| command.add(world, victim).unwrap(),
        |world, survivor| command.check(world, survivor).is_ok(),
    );
    assert_torn(&torn, &["/results/crash-masq-victim-eth0", "/podwire/sandboxes/"]);
}

#[test]
fn b008_torn_intents_of_the_runtime_are_survived() {
    let command = Command::over(masquerade());
    let torn = tear_all(
        &command,
        |world, victim| {
            // As soon as it has begun: how many calls that takes is the library's affair.
            for call in (60..).step_by(10) {
                let place = Place { program: 0, call };
                let killed = command.kill(world, Verb::Add, victim, &[], place, Blow::Family);
                assert!(killed.is_killed(), "{killed:#?}");
                if std::fs::read_dir(INTENTS).is_ok_and(|entries| entries.count() > 0) {
                    break;
                }
            }
        },
        |world, survivor| command.check(world, survivor).is_ok(),
    );
    assert_torn(&torn, &["/podwire/intents/"]);
}
