//! What earlier versions left on a node is checked, deleted and collected by this
//! one, and the formats leave room for a version after it.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use podwire_runtime::live::{Liveness, liveness};
use podwire_runtime::{GcMode, ValidSet};
use podwire_spec::id::{ContainerId, IfName};
use podwire_tests::fixture::stand_ins::shape;
use podwire_tests::fixture::{self, FOLDERS, SCENARIOS, Scenario, Stage, record_of, restore};
use podwire_tests::{Container, wait_until};
use serde_json::{Value, json};

/// The state of every version that there is a fixture of, each scenario of it.
fn kept() -> Vec<(&'static Scenario, PathBuf)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
    let mut versions = inside(&folder);
    versions.sort();
    assert!(versions.contains(&current()), "{versions:?}");
    let scenario = |path: PathBuf| {
        let of_it = SCENARIOS.iter().find(|scenario| path.ends_with(scenario.name));
        (of_it.unwrap_or_else(|| panic!("{}", path.display())), path)
    };
    versions.iter().flat_map(|version| inside(version)).map(scenario).collect()
}

/// That of this version.
fn current() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(env!("CARGO_PKG_VERSION"))
}

fn inside(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
}

/// Nothing names the containers any more, neither in the kernel nor on the disk.
#[track_caller]
fn assert_nothing_left(scenario: &Scenario, stage: &Stage) {
    let node = &stage.node;
    wait_until("the end of the links", || {
        let links = node.world.exec(&["ip", "-o", "link"]).stdout;
        !links.contains("veth") && !links.contains("bwp")
    });
    let rules = node.world.exec(&["nft", "list", "ruleset"]).stdout;
    for word in ["10.1.0.", "fd01::", "/c1/", "/c2/", "podwire_hostports"] {
        assert!(!rules.contains(word), "{}: {word}: {rules}", scenario.name);
    }
    // A released lease's file goes a moment after the answer.
    wait_until("the end of the files", || left_files().is_empty());
    (scenario.assert_gone)(stage);
}

fn left_files() -> Vec<PathBuf> {
    let files = FOLDERS.iter().flat_map(|root| fixture::files(Path::new(root)));
    let stays = |path: &PathBuf| {
        let name = path.to_string_lossy();
        name.contains("last_reserved_ip") || name.contains("/.podwire/")
    };
    files.filter(|path| !stays(path)).collect()
}

/// The address that a container's lease in a fixture is about.
fn leased(folder: &Path, container: &str) -> String {
    let leases = fixture::files(&folder.join("files/var/lib/cni/podwire/dhcp/leases"));
    let mut leases = leases.iter().map(|path| json_of(path));
    let lease = leases.find(|lease| lease["key"]["container"] == container).unwrap();
    lease["phase"]["Held"]["terms"]["address"].as_str().unwrap().to_owned()
}

/// The server heard that a container's lease is given back, where there is one.
#[track_caller]
fn assert_released(stage: &Stage, folder: &Path, container: &str) {
    let Some((server, _)) = &stage.services else { return };
    let address = format!(" {} ", leased(folder, container));
    server.log().wait_for(0, container, Duration::from_secs(20), |line| {
        line.contains("DHCPRELEASE(") && line.contains(&address)
    });
}

fn check_and_delete(scenario: &Scenario, folder: &Path) {
    check_and_delete_on(scenario, folder, &restore(scenario, folder));
}

fn check_and_delete_on(scenario: &Scenario, folder: &Path, stage: &Stage) {
    let (node, network) = (&stage.node, &stage.network);
    let about =
        |container: &Container| format!("{}: {}/{}", scenario.name, container.id, container.ifname);
    if let Some(wished) = scenario.detached {
        assert_released(stage, folder, wished);
    }
    // One by one, the others' rules untouched.
    for (index, container) in stage.containers.iter().enumerate() {
        for one in &stage.containers[index..] {
            node.check(network, one).unwrap_or_else(|error| panic!("{}: {error}", about(one)));
        }
        // A device of the host would go with its namespace.
        if index > 0 && index + 1 == stage.containers.len() {
            container.netns.remove();
        }
        node.del(network, container);
        assert_released(stage, folder, &container.id);
        if container.netns.path().exists() {
            let rules = container.netns.exec(&["ip", "rule"]).stdout;
            assert!(rules.lines().all(|rule| rule.contains("from all ")), "{rules}");
        }
    }
    let cut = names(fixture::UNFINISHED, "eth0");
    let report = node.runtime().gc(network, &ValidSet::none(), GcMode::Collect).unwrap();
    assert!(report.is_clean(), "{}: {report:?}", scenario.name);
    assert!(report.stale.iter().any(|stale| stale.attachment.container_id == cut.0));
    assert_nothing_left(scenario, stage);
}

fn names(id: &str, ifname: &str) -> (ContainerId, IfName) {
    (ContainerId::parse(id).unwrap(), IfName::parse(ifname).unwrap())
}

#[test]
fn every_scenario_of_this_version_is_kept() {
    for scenario in &SCENARIOS {
        assert!(current().join(scenario.name).is_dir(), "{}", scenario.name);
    }
}

#[test]
fn what_every_version_left_is_checked_and_deleted() {
    for (scenario, folder) in kept() {
        check_and_delete(scenario, &folder);
    }
}

/// Beside each record stands which namespace it was made in: of those that are there
/// every attachment lives, and with others at their paths every one is dead.
#[test]
fn the_namespaces_of_every_version_are_known_again() {
    for (scenario, folder) in kept() {
        let stage = restore(scenario, &folder);
        let all_are = |wanted: Liveness| {
            let mut listing = stage.node.runtime().store().list().unwrap().attachments;
            listing.retain(|stored| stored.record.key.container_id.as_str() != "cut");
            assert_eq!(listing.len(), stage.containers.len(), "{}", scenario.name);
            for stored in &listing {
                assert!(stored.sandbox.is_some(), "{}: {stored:?}", scenario.name);
                assert_eq!(liveness(stored), wanted, "{}: {stored:?}", scenario.name);
            }
        };
        all_are(Liveness::Alive);
        for container in &stage.containers {
            if container.netns.path().exists() {
                container.netns.remove();
            }
        }
        for container in &stage.containers {
            if !container.netns.path().exists() {
                stage.node.world.netns(&container.id);
            }
        }
        all_are(Liveness::Dead);
    }
}

#[test]
fn what_every_version_left_is_collected() {
    for (scenario, folder) in kept() {
        let stage = restore(scenario, &folder);
        let (node, network) = (&stage.node, &stage.network);
        // What lives stays, and what is dead goes, by its record and without.
        let [first, rest @ ..] = &stage.containers[..] else { panic!("{}", scenario.name) };
        fs::remove_file(record_of("pods", first)).unwrap();
        if let Some(last) = rest.last() {
            first.netns.remove();
            let kept = ValidSet::of([names(&last.id, &last.ifname)]);
            let report = node.runtime().gc(network, &kept, GcMode::Collect).unwrap();
            assert!(report.is_clean(), "{}: {report:?}", scenario.name);
            node.check(network, last).unwrap_or_else(|error| panic!("{}: {error}", scenario.name));
            let rules = node.world.exec(&["nft", "list", "ruleset"]).stdout;
            assert!(!rules.contains("/c1/"), "{}: {rules}", scenario.name);
            let has_rules = !fs::read_to_string(folder.join("ruleset.nft")).unwrap().is_empty();
            assert_eq!(rules.contains("/c2/"), has_rules, "{}: {rules}", scenario.name);
            assert_released(&stage, &folder, &first.id);
        }
        let report = node.runtime().gc(network, &ValidSet::none(), GcMode::Collect).unwrap();
        assert!(report.is_clean(), "{}: {report:?}", scenario.name);
        assert_nothing_left(scenario, &stage);
    }
}

/// Byte for byte, but for what the kernel draws by lot: so what this version writes is
/// what the version of the fixture reads.
#[test]
fn what_this_version_leaves_now_is_what_its_fixture_says() {
    for scenario in &SCENARIOS {
        let fresh = std::env::temp_dir().join(format!("podwire-fixture-{}", std::process::id()));
        fixture::record(scenario, &fresh);
        let kept = current().join(scenario.name);
        let names = |folder: &Path| -> Vec<PathBuf> {
            let files = fixture::files(folder).into_iter();
            files.map(|path| path.strip_prefix(folder).unwrap().to_owned()).collect()
        };
        let anew = "write it anew: cargo run --bin podwire-fixtures";
        assert_eq!(names(&fresh), names(&kept), "{}: {anew}", scenario.name);
        for name in names(&kept) {
            let [now, then] = [&fresh, &kept].map(|folder| fs::read(folder.join(&name)).unwrap());
            let about = format!("{} {}: {anew}", scenario.name, name.display());
            match (String::from_utf8(now), String::from_utf8(then)) {
                (Ok(now), Ok(then)) => assert_eq!(shape(&now), shape(&then), "{about}"),
                // An index of addresses, with times and a file's number in it.
                (Err(now), Err(then)) => {
                    let [now, then] = [now.into_bytes(), then.into_bytes()];
                    assert_eq!((&now[..8], now.len()), (&then[..8], then.len()), "{about}");
                }
                mixed => panic!("{about}: {mixed:?}"),
            }
        }
        check_and_delete(scenario, &fresh);
        fs::remove_dir_all(&fresh).unwrap();
    }
}

/// A version after this one may write more than this one knows: this one, put back,
/// reads over it and still deletes.
#[test]
fn what_a_later_version_may_add_is_read_over() {
    for scenario in &SCENARIOS {
        let folder = current().join(scenario.name);
        let stage = restore(scenario, &folder);
        for file in FOLDERS.iter().flat_map(|root| fixture::files(Path::new(root))) {
            let place = file.parent().unwrap();
            if place.ends_with("podwire/sandboxes") {
                let text = fs::read_to_string(&file).unwrap();
                fs::write(&file, text + "and more\n").unwrap();
            } else if place.ends_with(".podwire/pods") {
                // A hint in a form that isn't known counts as none.
                fs::write(&file, b"a form of later\n\x00\x01").unwrap();
            } else if !place.ends_with("networks/pods") {
                let mut value = json_of(&file);
                value["later"] = json!({"more": [1, 2]});
                fs::write(&file, value.to_string()).unwrap();
            }
        }
        check_and_delete_on(scenario, &folder, &stage);
    }
}

/// The same of what is noted beside the elements of our tables, whose they are.
#[test]
fn words_that_a_later_version_may_add_to_an_owner_are_read_over() {
    for scenario in SCENARIOS.iter().filter(|scenario| scenario.name != "leases") {
        let later = std::env::temp_dir().join(format!("podwire-later-{}", std::process::id()));
        let _ = fs::remove_dir_all(&later);
        let kept = current().join(scenario.name);
        for name in ["commands", "filter4", "filter6", "ruleset.nft"] {
            fs::create_dir_all(&later).unwrap();
            fs::copy(kept.join(name), later.join(name)).unwrap();
        }
        for file in fixture::files(&kept.join("files")) {
            let to = later.join(file.strip_prefix(&kept).unwrap());
            fs::create_dir_all(to.parent().unwrap()).unwrap();
            fs::copy(&file, to).unwrap();
        }
        let rules = fs::read_to_string(later.join("ruleset.nft")).unwrap();
        let mut pieces = rules.split("comment \"1 pods/c2/eth0 ");
        let mut changed = pieces.next().unwrap().to_owned();
        for piece in pieces {
            let (words, rest) = piece.split_once('"').unwrap();
            for part in ["comment \"1 pods/c2/eth0 ", words, " later=1\"", rest] {
                changed += part;
            }
        }
        fs::write(later.join("ruleset.nft"), changed).unwrap();
        check_and_delete(scenario, &later);
        fs::remove_dir_all(&later).unwrap();
    }
}

#[track_caller]
fn json_of(path: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}
