//! What earlier versions left on a node is checked, deleted and collected by this
//! one, and the formats leave room for a version after it.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use std::fs;
use std::path::{Path, PathBuf};

use podwire_runtime::{GcMode, Network, ValidSet};
use podwire_spec::id::{ContainerId, IfName};
use podwire_tests::fixture::{self, restore};
use podwire_tests::{Container, Node, wait_until};
use serde_json::{Value, json};

/// The state of every version that there is a fixture of.
fn versions() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
    let mut found: Vec<_> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    found.sort();
    assert!(found.iter().any(|path| path.ends_with(env!("CARGO_PKG_VERSION"))), "{found:?}");
    found
}

/// Nothing names the containers any more, neither in the kernel nor on the disk.
#[track_caller]
fn assert_nothing_left(node: &Node) {
    wait_until("the end of the links", || {
        let links = node.world.exec(&["ip", "-o", "link"]).stdout;
        !links.contains("veth") && !links.contains("bwp")
    });
    let rules = node.world.exec(&["nft", "list", "ruleset"]).stdout;
    for word in ["10.1.0.", "fd01::", "/c1/", "/c2/", "podwire_hostports"] {
        assert!(!rules.contains(word), "{word}: {rules}");
    }
    let files: Vec<_> = ["/var/lib/cni", "/run/cni/tuning"]
        .iter()
        .flat_map(|root| fixture::files(Path::new(root)))
        .filter(|path| {
            let name = path.to_string_lossy();
            !name.contains("last_reserved_ip") && !name.contains("/.podwire/")
        })
        .collect();
    assert!(files.is_empty(), "{files:?}");
}

fn check_and_delete((node, network, containers): (Node, Network, Vec<Container>)) {
    for container in &containers {
        node.check(&network, container).unwrap_or_else(|error| panic!("{}: {error}", container.id));
    }
    // One by one, the other's rules untouched.
    node.del(&network, &containers[0]);
    node.check(&network, &containers[1]).unwrap();
    containers[1].netns.remove();
    node.del(&network, &containers[1]);
    let cut = fixture_container(fixture::UNFINISHED);
    let report = node.runtime().gc(&network, &ValidSet::none(), GcMode::Collect).unwrap();
    assert!(report.is_clean(), "{report:?}");
    assert!(report.stale.iter().any(|stale| stale.attachment.container_id == cut.0));
    assert_nothing_left(&node);
}

fn fixture_container(name: &str) -> (ContainerId, IfName) {
    (ContainerId::parse(name).unwrap(), IfName::parse("eth0").unwrap())
}

#[test]
fn what_every_version_left_is_checked_and_deleted() {
    for version in versions() {
        check_and_delete(restore(&version));
    }
}

#[test]
fn what_every_version_left_is_collected() {
    for version in versions() {
        let (node, network, containers) = restore(&version);
        // What lives stays, and what is dead goes, by its record and without.
        fs::remove_file("/var/lib/cni/results/pods-c1-eth0").unwrap();
        containers[0].netns.remove();
        let kept = ValidSet::of([fixture_container("c2")]);
        let report = node.runtime().gc(&network, &kept, GcMode::Collect).unwrap();
        assert!(report.is_clean(), "{report:?}");
        node.check(&network, &containers[1]).unwrap();
        let rules = node.world.exec(&["nft", "list", "ruleset"]).stdout;
        assert!(!rules.contains("/c1/") && rules.contains("/c2/"), "{rules}");
        let report = node.runtime().gc(&network, &ValidSet::none(), GcMode::Collect).unwrap();
        assert!(report.is_clean(), "{report:?}");
        assert_nothing_left(&node);
    }
}

#[test]
fn what_this_version_leaves_now_is_what_its_fixture_says() {
    let fresh = tempfile_folder();
    fixture::record(&fresh);
    let names = |folder: &Path| -> Vec<PathBuf> {
        let files = fixture::files(folder).into_iter();
        files.map(|path| path.strip_prefix(folder).unwrap().to_owned()).collect()
    };
    let kept = versions().pop().unwrap();
    assert_eq!(names(&fresh), names(&kept), "write it anew: cargo run --bin podwire-fixtures");
    for name in ["commands", "ruleset.nft", "filter4"] {
        let [now, then] = [&fresh, &kept]
            .map(|folder| fs::read_to_string(folder.join(name)).unwrap().lines().count());
        assert_eq!(now, then, "{name}: write it anew: cargo run --bin podwire-fixtures");
    }
    check_and_delete(restore(&fresh));
}

/// On the world's own file system, so that it goes by itself.
fn tempfile_folder() -> PathBuf {
    std::env::temp_dir().join(format!("podwire-fixture-{}", std::process::id()))
}

/// A version after this one may write more than this one knows: this one, put back,
/// reads over it and still deletes.
#[test]
fn what_a_later_version_may_add_is_read_over() {
    let state = restore(&versions().pop().unwrap());
    for container in fixture::ATTACHED {
        edit(&format!("/var/lib/cni/results/pods-{container}-eth0"), |record| {
            record["later"] = json!({"more": [1, 2]});
        });
        edit(&format!("/run/cni/tuning/{container}_eth0.json"), |backup| {
            backup["later"] = json!(true);
        });
    }
    // A hint in a form that isn't known counts as none.
    for hint in fixture::files(Path::new("/var/lib/cni/networks/.podwire")) {
        fs::write(&hint, b"a form of later\n\x00\x01").unwrap();
    }
    check_and_delete(state);
}

fn edit(path: &str, change: impl Fn(&mut Value)) {
    let mut value: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    change(&mut value);
    fs::write(path, value.to_string()).unwrap();
}
