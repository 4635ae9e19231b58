//! Names become files. None of them leads out of its directory.

use std::collections::BTreeSet;
use std::path::Path;

use podwire_runtime::load::Network;
use podwire_spec::id::{ContainerId, IfName, NetworkName, PluginType};
use serde_json::{Value, json};

use crate::lab::{Lab, SHARED, host_local};

/// What names have been, to no good end.
const ESCAPES: [&str; 14] = [
    "..",
    ".",
    "../x",
    "../../etc/passwd",
    "/etc/passwd",
    "a/b",
    "a/../b",
    "./a",
    "a\0b",
    "a\nb",
    "a b",
    "%2e%2e%2fx",
    "\u{2024}\u{2024}/x",
    "",
];

/// All files of the places that names lead to, and around them.
fn files() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut pending = vec!["/run".to_owned(), "/var/lib/cni".to_owned(), "/etc/cni".to_owned()];
    while let Some(directory) = pending.pop() {
        for entry in std::fs::read_dir(directory).into_iter().flatten() {
            let entry = entry.unwrap();
            let path = entry.path().display().to_string();
            if entry.file_type().unwrap().is_dir() {
                pending.push(path.clone());
            }
            found.insert(path);
        }
    }
    found
}

#[test]
fn a_container_id_is_a_name_and_nothing_else() {
    let lab = Lab::new();
    let before = files();
    for id in ESCAPES.iter().filter(|id| !id.contains('\0')) {
        assert!(ContainerId::parse(id).is_err(), "{id:?}");
        for verb in ["ADD", "CHECK", "DEL"] {
            lab.call("host-local", verb, &host_local()).container(id).run().error(4);
        }
    }
    assert_eq!(files(), before);
}

#[test]
fn an_interface_is_a_name_and_nothing_else() {
    let lab = Lab::new();
    let before = files();
    for name in ESCAPES.iter().chain(&["all", "default", "%d"]).filter(|name| !name.contains('\0'))
    {
        if *name == "%2e%2e%2fx" {
            assert!(IfName::parse(name).is_err());
        }
        for verb in ["ADD", "CHECK", "DEL"] {
            lab.call("host-local", verb, &host_local()).ifname(name).run().error(4);
        }
    }
    assert_eq!(files(), before);
}

#[test]
fn a_network_name_is_a_name_and_nothing_else() {
    let lab = Lab::new();
    let before = files();
    for name in ESCAPES {
        assert!(NetworkName::parse(name).is_err(), "{name:?}");
        let mut config = host_local();
        config["name"] = json!(name);
        for verb in ["ADD", "CHECK", "DEL", "STATUS"] {
            lab.call("host-local", verb, &config).run().failure();
        }
        // Nor does a list of that name look into a folder of plugins.
        let list = json!({"cniVersion": "1.1.0", "name": name, "plugins": [{"type": "bridge"}]});
        assert!(Network::from_list_bytes(list.to_string().as_bytes()).is_err(), "{name:?}");
    }
    assert_eq!(files(), before);
}

/// Neither a list nor `ipam.type` can name a program outside `CNI_PATH`.
#[test]
fn a_plugin_type_is_a_file_of_the_plugin_directories() {
    let lab = Lab::new();
    let trap = lab.world.write("trap", format!("#!/bin/sh\necho > {SHARED}/sprung\n"));
    lab.world.exec(&["chmod", "755", trap.to_str().unwrap()]);
    let away = format!("../../../../../../{}", trap.display());
    let leads_away = |name: &&str| name.contains(['/', '\0']) || ["", ".", ".."].contains(name);
    let names = ESCAPES.iter().copied().chain([away.as_str(), trap.to_str().unwrap()]);
    for name in names.filter(leads_away) {
        assert!(PluginType::parse(name).is_err(), "{name:?}");
        let list = json!({"cniVersion": "1.1.0", "name": "n", "plugins": [{"type": name}]});
        assert!(Network::from_list_bytes(list.to_string().as_bytes()).is_err(), "{name:?}");
        let mut config = host_local();
        config["ipam"]["type"] = json!(name);
        config["bridge"] = json!("br0");
        if !name.is_empty() {
            lab.call("bridge", "ADD", &config).run().failure();
        }
    }
    assert!(!Path::new(SHARED).join("sprung").exists());
}

/// A namespace is a namespace: whatever else lies at the path is named, not
/// opened for writing, not waited for.
#[test]
fn a_namespace_path_opens_namespaces_only() {
    let lab = Lab::new();
    for obstacle in ["FIFO", "device", "symbolic link", "second name"] {
        let path = lab.world.path("place");
        let _ = std::fs::remove_file(&path);
        lab.plant(obstacle, &path);
        let config = json!({"cniVersion": "1.1.0", "name": "n", "type": "loopback"});
        let call = lab.call("loopback", "ADD", &config).env("CNI_NETNS", &path);
        call.run().error(8);
        let call = lab.call("loopback", "DEL", &config).env("CNI_NETNS", &path);
        call.run().success();
        lab.assert_untouched(obstacle);
    }
    // Nor is our own taken for a container's.
    let config = json!({"cniVersion": "1.1.0", "name": "n", "type": "loopback"});
    lab.call("loopback", "ADD", &config).env("CNI_NETNS", "/proc/self/ns/net").run().error(8);
}

/// A key of `sysctl` stays below `/proc/sys/net`.
#[test]
fn a_sysctl_key_stays_with_the_network() {
    let lab = Lab::new();
    let before = std::fs::read("/proc/sys/kernel/core_pattern").unwrap();
    for key in [
        "kernel.core_pattern",
        "kernel/core_pattern",
        "net/../kernel/core_pattern",
        "net.ipv4...kernel.core_pattern",
        "/proc/sys/kernel/core_pattern",
        "net/ipv4/conf/IFNAME/../../../../kernel/core_pattern",
        "net.ipv4.conf.\0",
    ] {
        let config = json!({
            "cniVersion": "1.1.0", "name": "n", "type": "tuning", "sysctl": {key: "x"},
            "prevResult": {"cniVersion": "1.1.0", "interfaces": [
                {"name": "eth0", "sandbox": "/run/netns/c1"}]},
        });
        lab.call("tuning", "ADD", &config).ifname("lo").run().failure();
    }
    assert_eq!(std::fs::read("/proc/sys/kernel/core_pattern").unwrap(), before);
}

/// Whoever writes a configuration may place its state anywhere, and is told so
/// by the page; a NUL byte is refused.
#[test]
fn a_data_directory_is_the_author_s_choice() {
    let lab = Lab::new();
    let mut config: Value = host_local();
    config["ipam"]["dataDir"] = json!(format!("{SHARED}/a/../b"));
    lab.call("host-local", "ADD", &config).run().success();
    assert!(Path::new(SHARED).join("b/pods/10.1.0.2").exists());
    config["ipam"]["dataDir"] = json!("/run/x\0y");
    lab.call("host-local", "ADD", &config).run().error(7);
}
