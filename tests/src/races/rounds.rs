//! The kinds of meetings.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use podwire_testkit::{Output, World, libcni_client};

use super::witness::Witness;
use crate::crash::{Command, Crowd, Target};

/// What a round works with.
pub(super) struct Round<'a> {
    pub(super) command: &'a Command,
    pub(super) witness: &'a Witness,
}

/// One round of a kind with a crowd of this size; says how many operations it made.
type Kind = fn(&World, &Round<'_>, usize) -> usize;

/// All kinds, in order.
pub(super) const ALL: [(&str, Kind); 4] = [
    ("ADDs at once, the first ones on a missing bridge, then DELs", crowd),
    ("ADD against DEL of one attachment", meeting),
    ("ADDs and DELs against GC", collection),
    ("our runtime and Go's on one network", two_runtimes),
];

type Outcome = Result<(), Box<Output>>;

impl Round<'_> {
    /// Notes what failed.
    fn expect(&self, failed: &[Box<Output>]) {
        for output in failed {
            self.witness.fault(format!("{output:#?}"));
        }
    }

    fn heard(&self, target: &Target) {
        if let Some(result) = &target.result {
            self.witness.attached(&target.container, result);
        }
    }
}

/// A crowd comes to a host without a bridge, and goes.
fn crowd(world: &World, round: &Round<'_>, size: usize) -> usize {
    let chain = round.command.chain();
    for bridge in chain.bridges {
        world.try_exec(&["ip", "link", "del", bridge]);
    }
    let plugins = chain.installed(world.plugin_directory());
    let mut crowd = Crowd::new(world, "c", size);
    round.expect(&crowd.at_once(|target| {
        plugins.add(target)?;
        round.heard(target);
        Ok(())
    }));
    round.expect(&crowd.at_once(|target| {
        round.witness.detaching(&target.container);
        plugins.del(target)
    }));
    crowd.remove();
    2 * size
}

/// Some containers, each of which is detached while it is attached: by the plugins
/// alone, and by the runtime, whose locks must keep each chain together.
fn meeting(world: &World, round: &Round<'_>, size: usize) -> usize {
    let directory = world.plugin_directory();
    let plugins = round.command.chain().installed(directory);
    let podwire = round.command.installed(directory);
    let mut crowd = Crowd::new(world, "m", size.min(16));
    let count = crowd.targets.len();
    let both = |add: &(dyn Fn(&mut Target) -> Outcome + Sync),
                del: &(dyn Fn(&Target) -> Outcome + Sync),
                target: &mut Target|
     -> Outcome {
        let early = target.clone();
        let start = Barrier::new(2);
        let deleted = std::thread::scope(|scope| {
            let other = scope.spawn(|| {
                start.wait();
                del(&early)
            });
            start.wait();
            let added = add(target);
            let deleted = other.join().unwrap();
            added.and(deleted)
        });
        deleted.and_then(|()| del(target))
    };
    // The plugins' DEL may come between two plugins of a chain, whose later ones are
    // attached then to what is half gone; so only the first is called here.
    round.expect(&crowd.at_once(|target| {
        both(&|target| plugins.add_first(target), &|target| plugins.del_first(target), target)
    }));
    round.expect(&crowd.at_once(|target| {
        target.result = None;
        both(&|target| podwire.add(target), &|target| podwire.del(target), target)
    }));
    crowd.remove();
    6 * count
}

/// Containers come and go while everything else is collected, again and again.
fn collection(world: &World, round: &Round<'_>, size: usize) -> usize {
    const TURNS: usize = 3;
    let podwire = round.command.installed(world.plugin_directory());
    let mut crowd = Crowd::new(world, "g", size.min(8));
    let names: Vec<String> = crowd.targets.iter().map(|target| target.container.clone()).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let (done, collections) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Acquire) {
                match podwire.gc(&names) {
                    // Its wait for those who come and go is bounded, and it says so.
                    Err(output) if output.stderr.contains("try again later (code 11)") => {}
                    outcome => round.expect(outcome.err().as_slice()),
                }
                collections.fetch_add(1, Ordering::Relaxed);
            }
        });
        round.expect(&crowd.at_once(|target| {
            for _ in 0..TURNS {
                podwire.add(target)?;
                round.heard(target);
                podwire.check(target)?;
                round.witness.detaching(&target.container);
                podwire.del(target)?;
            }
            Ok(())
        }));
        done.store(true, Ordering::Release);
    });
    round.expect(podwire.gc(&[]).err().as_slice());
    let count = crowd.targets.len();
    crowd.remove();
    3 * TURNS * count + collections.into_inner() + 1
}

/// Every second container is attached and detached by Go's libcni.
fn two_runtimes(world: &World, round: &Round<'_>, size: usize) -> usize {
    let directory = world.plugin_directory();
    let podwire = round.command.installed(directory);
    let mut crowd = Crowd::new(world, "t", size.min(24));
    let is_ours = |target: &Target| target.container.ends_with(['0', '2', '4', '6', '8']);
    let libcni = |verb: &str, target: &Target| {
        let capabilities = round.command.chain().capabilities(&target.container).unwrap();
        let output = std::process::Command::new(libcni_client())
            .arg(verb)
            .args(["--plugin-dir", directory.to_str().unwrap()])
            .args(["--network", round.command.chain().network])
            .args(["--container-id", &target.container])
            .args(["--netns", target.netns.as_ref().unwrap().to_str().unwrap()])
            .args(["--capability-args", &capabilities.to_string()])
            .output()
            .unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        let code = output.status.code().unwrap_or(-1);
        let command = format!("libcni {verb} {}", target.container);
        let (stdout, stderr) = (text(output.stdout), text(output.stderr));
        let output = Output { command, code, stdout, stderr };
        if code == 0 { Ok(output) } else { Err(Box::new(output)) }
    };
    round.expect(&crowd.at_once(|target| {
        if is_ours(target) {
            podwire.add(target)?;
        } else {
            target.result = Some(libcni("add", target)?.json());
        }
        round.heard(target);
        Ok(())
    }));
    round.expect(&crowd.at_once(|target| {
        round.witness.detaching(&target.container);
        if is_ours(target) { podwire.del(target) } else { libcni("del", target).map(drop) }
    }));
    let count = crowd.targets.len();
    crowd.remove();
    2 * count
}
