//! A host in the way of a good request: no space, nothing writable, no descriptors,
//! names and ports taken, locks held. The error names what failed on which object and
//! whether to try again; nothing is left of the attempt.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use std::path::Path;
use std::time::Duration;

use podwire_runtime::Existing;
use podwire_sys::lock::FileLock;
use podwire_testkit::Output;
use podwire_tests::{Node, Plugins, Refusals};
use serde_json::{Value, json};

/// Where the addresses of these tests are kept: a file system of their own.
const DATA: &str = "/run/data";

fn bridge() -> Value {
    json!({
        "cniVersion": "1.1.0", "name": "pods", "type": "bridge", "bridge": "br0",
        "isGateway": true, "ipMasq": true,
        "ipam": {"type": "host-local", "subnet": "10.1.0.0/24", "dataDir": DATA},
    })
}

fn portmap() -> Value {
    json!({
        "cniVersion": "1.1.0", "name": "pods", "type": "portmap",
        "runtimeConfig": {
            "portMappings": [{"hostPort": 8080, "containerPort": 80, "protocol": "tcp"}],
        },
        "prevResult": {
            "cniVersion": "1.1.0",
            "interfaces": [{"name": "eth0", "sandbox": "/run/netns/c1"}],
            "ips": [{"address": "10.1.0.2/24", "interface": 0}],
        },
    })
}

fn mount(refusals: &Refusals, options: &str) {
    std::fs::create_dir_all(DATA).unwrap();
    refusals.node.world.exec(&["mount", "-t", "tmpfs", "-o", options, "t", DATA]);
}

#[test]
fn b055_a_read_only_directory_is_named() {
    let mut refusals = Refusals::new();
    mount(&refusals, "ro");
    for plugin in ["bridge", "host-local"] {
        let output = refusals.call(plugin, "ADD", &bridge()).run();
        refusals.refused(&output, &[5], &[DATA, "Read-only file system"]);
        // So is what could not be served.
        let output = refusals.call(plugin, "STATUS", &bridge()).run();
        refusals.refused(&output, &[50], &[DATA, "Read-only file system"]);
    }
    refusals.assert_nothing_changed();
}

#[test]
fn b055_a_full_disk_is_named_and_no_reservation_is_left() {
    let mut refusals = Refusals::new();
    mount(&refusals, "size=16k,nr_inodes=4");
    let directory = Path::new(DATA).join("pods");
    std::fs::create_dir(&directory).unwrap();
    // The file system holds the root, two directories and one file.
    std::fs::write(Path::new(DATA).join("filler"), "x").unwrap();
    for plugin in ["bridge", "host-local"] {
        let output = refusals.call(plugin, "ADD", &bridge()).run();
        refusals.refused(&output, &[5, 11], &[DATA, "No space left on device"]);
    }
    let left: Vec<_> = std::fs::read_dir(&directory).unwrap().flatten().collect();
    assert!(left.iter().all(|entry| entry.file_name() == "lock"), "{left:?}");
    refusals.assert_nothing_changed();
}

#[test]
fn b055_a_file_in_the_place_of_a_directory_is_named() {
    let mut refusals = Refusals::new();
    std::fs::write(DATA, "x").unwrap();
    for plugin in ["bridge", "host-local"] {
        let output = refusals.call(plugin, "ADD", &bridge()).run();
        refusals.refused(&output, &[5], &[DATA, "Not a directory"]);
    }
    refusals.assert_nothing_changed();
}

#[test]
fn b055_a_held_lock_is_code_11_and_names_the_holder() {
    let mut refusals = Refusals::new();
    std::fs::create_dir_all(Path::new(DATA).join("pods")).unwrap();
    let path = Path::new(DATA).join("pods/lock");
    let held = FileLock::exclusive(&path, Duration::ZERO).unwrap();
    let output = refusals.call("host-local", "ADD", &bridge()).run();
    let own = std::process::id().to_string();
    refusals.refused(&output, &[11], &["/run/data/pods/lock", &own]);
    drop(held);
    refusals.assert_nothing_changed();
    refusals.call("host-local", "ADD", &bridge()).run().success();
}

#[test]
fn b055_an_address_in_the_way_is_named() {
    let mut refusals = Refusals::new();
    refusals.node.world.exec(&["ip", "link", "add", "br0", "type", "bridge"]);
    // As set by its owner: the kernel changes it no more with the ports.
    refusals.node.world.exec(&["ip", "link", "set", "br0", "address", "02:00:5e:10:00:01"]);
    refusals.node.world.exec(&["ip", "addr", "add", "10.77.0.1/24", "dev", "br0"]);
    refusals.node.world.exec(&["ip", "link", "set", "br0", "up"]);
    let before = refusals.node.world.snapshot();
    let output = refusals.call("bridge", "ADD", &bridge()).run();
    refusals.refused(&output, &[999], &["br0", "10.77.0.1/24", "10.1.0.1/24"]);
    let left = refusals.node.world.snapshot().since(&before).beyond_residue(&[]);
    left.without(|change| change.name().starts_with("file /run/podwire/")).assert_empty();
}

#[test]
fn b055_a_foreign_link_of_the_bridges_name_is_named() {
    let mut refusals = Refusals::new();
    refusals.node.world.exec(&["ip", "link", "add", "br0", "type", "veth", "peer", "name", "x"]);
    let before = refusals.node.world.snapshot();
    for verb in ["ADD", "STATUS"] {
        let output = refusals.call("bridge", verb, &bridge()).run();
        refusals.refused(&output, &[50, 999], &["br0", "veth"]);
    }
    refusals.node.world.snapshot().since(&before).beyond_residue(&[]).assert_empty();
}

/// Runs a call with so many file descriptors at most.
fn starved(refusals: &Refusals, plugin: &str, verb: &str, config: &Value, limit: u32) -> Output {
    let bin = refusals.node.plugin_directory();
    let request = refusals.node.world.write("request", config.to_string());
    let line = format!(
        "ulimit -n {limit}; exec env CNI_COMMAND={verb} CNI_CONTAINERID=c1 \
         CNI_NETNS=/run/netns/c1 CNI_IFNAME=eth0 CNI_PATH={bin} {bin}/{plugin} < {}",
        request.display(),
        bin = bin.display(),
    );
    refusals.node.world.try_exec(&["sh", "-c", &line])
}

#[test]
fn b055_with_few_descriptors_each_verb_works_or_says_so_and_undoes() {
    let mut refusals = Refusals::new();
    let before = refusals.node.world.snapshot();
    let mut worked = 0;
    for limit in 4..=16 {
        let output = starved(&refusals, "bridge", "ADD", &bridge(), limit);
        if output.code == 0 {
            worked += 1;
            refusals.call("bridge", "DEL", &bridge()).run().success();
            continue;
        }
        refusals.refused(&output, &[5, 8, 11, 999], &["Too many open files"]);
        assert!(
            refusals.netns.try_exec(&["ip", "link", "show", "eth0"]).code != 0,
            "eth0 is left with {limit}: {output:#?}"
        );
        let left = std::fs::read_dir(Path::new(DATA).join("pods")).into_iter().flatten().flatten();
        let left: Vec<_> = left.map(|entry| entry.file_name()).collect();
        assert!(!left.iter().any(|name| name == "10.1.0.2"), "{limit}: {left:?}");
    }
    assert!(worked > 0, "16 descriptors are not enough");

    // DEL either removes all or says what it could not; a later one ends it.
    refusals.call("bridge", "ADD", &bridge()).run().success();
    refusals.call("portmap", "ADD", &portmap()).run().success();
    for (plugin, config) in [("portmap", portmap()), ("bridge", bridge())] {
        for limit in 4..=16 {
            for verb in ["CHECK", "DEL"] {
                let mut config = config.clone();
                config["prevResult"] = portmap()["prevResult"].clone();
                let output = starved(&refusals, plugin, verb, &config, limit);
                if output.code != 0 && !output.stdout.contains("is not as it was made") {
                    refusals.refused(&output, &[5, 8, 11, 100, 999], &[]);
                }
            }
        }
        refusals.call(plugin, "DEL", &config).run().success();
    }
    std::fs::remove_dir_all(DATA).unwrap();
    refusals.node.assert_nothing_left(&before);
}

#[test]
fn b055_a_store_that_cannot_be_written_stops_an_add_before_any_plugin() {
    for (options, words) in
        [("ro", "Read-only file system"), ("size=16k,nr_inodes=1", "No space left on device")]
    {
        let node = Node::new(Plugins::Ours);
        let network = node.network(&json!({
            "cniVersion": "1.1.0", "name": "pods", "plugins": [bridge()],
        }));
        let container = node.container("c1");
        node.world.exec(&["mount", "-t", "tmpfs", "-o", options, "t", "/var/lib/cni"]);
        let before = node.world.snapshot();
        let outcome = node.runtime().add(&network, &container.attachment(), Existing::Refuse);
        let error = outcome.unwrap_err();
        let text = error.to_string();
        assert!(text.contains("/var/lib/cni") && text.contains(words), "{text}");
        assert_eq!(error.code().number(), 5, "{text}");
        assert!(!container.is_attached());
        node.assert_nothing_left(&before);
    }
}
