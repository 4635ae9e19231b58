//! What ADD does.

use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use crate::lab::{Lab, MAC, everything, originals};

const LOG_MARTIANS: &str = "net.ipv4.conf.eth0.log_martians";

#[test]
fn everything_is_set_kept_and_set_back() {
    let lab = Lab::new();
    let result = lab.add(&everything()).json();
    let tuned = ("02:00:5e:10:00:99".to_owned(), 1300, 77, true, true);
    assert_eq!(lab.attributes(), tuned);
    assert_eq!(lab.sysctl(LOG_MARTIANS), "1");
    let inside = &result["interfaces"][1];
    assert_eq!((&inside["mac"], &inside["mtu"]), (&json!("02:00:5e:10:00:99"), &json!(1300)));
    assert_eq!(result["interfaces"][0], json!({"name": "v0"}));

    let path = Lab::backup();
    let kept: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    for (key, value) in [
        ("mac", json!(MAC)),
        ("mtu", json!(1500)),
        ("promisc", json!(false)),
        ("allmulti", json!(false)),
        ("txQLen", json!(1000)),
    ] {
        assert_eq!(kept[key], value, "{key}: {kept}");
    }
    let mode =
        |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));

    let mut keys = everything();
    keys["prevResult"] = result;
    lab.check_passes(&keys);
    // A second ADD doesn't take the tuned values for the originals.
    lab.add(&everything());
    for _ in 0..2 {
        lab.call("DEL", &keys).run().success();
        assert_eq!(lab.attributes(), originals());
        assert!(!path.exists());
    }
    assert_eq!(lab.sysctl(LOG_MARTIANS), "1", "sysctls go with the namespace");
}

#[test]
fn nothing_asked_is_nothing_done() {
    let lab = Lab::new();
    let keys = json!({"promisc": false, "mtu": 0, "mac": "", "sysctl": {}});
    let result = lab.add(&keys).json();
    assert_eq!(result["interfaces"], lab.prev_result()["interfaces"]);
    assert_eq!(lab.attributes(), originals());
    assert!(!Lab::backup().exists());
    lab.check_passes(&keys);
    lab.call("DEL", &keys).run().success();
    lab.call("ADD", &json!({"prevResult": null})).run().error(7);
    lab.call("CHECK", &json!({"prevResult": null})).run().error(7);
}

#[test]
fn sysctls_are_set_in_their_order() {
    let lab = Lab::new();
    let [dots, slashes] = ["net.ipv4.conf.IFNAME.rp_filter", "net/ipv4/conf/IFNAME/rp_filter"];
    for (first, second) in [(dots, slashes), (slashes, dots)] {
        for value in ["1", "2"] {
            // Written out, since a map of the test's own would sort them.
            let sysctls = format!(r#"{{"{first}":"0","{second}":"{value}"}}"#);
            let config = format!(
                r#"{{"cniVersion":"1.1.0","name":"pods","type":"tuning","sysctl":{sysctls},
                    "prevResult":{}}}"#,
                lab.prev_result()
            );
            lab.call("ADD", &json!({})).config(config).run().success();
            assert_eq!(lab.sysctl("net.ipv4.conf.eth0.rp_filter"), value);
        }
    }
    let twice = r#"{"cniVersion":"1.1.0","name":"pods","type":"tuning",
        "sysctl":{"net.core.somaxconn":"1","net.core.somaxconn":"2"}}"#;
    let error = lab.call("ADD", &json!({})).config(twice).run().error(7);
    assert!(error["msg"].as_str().unwrap().contains("duplicated sysctl keys"), "{error}");
    for key in ["kernel.pid_max", "net.ipv4.conf.IFNAME.nothing", "net/../../etc/x"] {
        lab.call("ADD", &json!({"sysctl": {key: "1"}})).run().failure().json();
    }
}

/// Configuration, `CNI_ARGS`, capability, args.cni: the last counts.
#[test]
fn the_mac_address_has_four_sources() {
    let lab = Lab::new();
    let mac = |last: u8| format!("02:00:5e:00:00:{last:02x}");
    let mut keys = json!({"mac": mac(1)});
    for (source, expected) in [(1, 1), (2, 2), (3, 3), (4, 4)] {
        let mut call_args = "IgnoreUnknown=1;K8S_POD_NAME=p".to_owned();
        if source >= 2 {
            call_args = format!("{call_args};MAC={}", mac(2));
        }
        if source >= 3 {
            keys["runtimeConfig"] = json!({"mac": mac(3)});
        }
        if source >= 4 {
            keys["args"] = json!({"cni": {"mac": mac(4)}});
        }
        lab.call("ADD", &keys).args(&call_args).run().success();
        assert_eq!(lab.attributes().0, mac(expected));
    }
    lab.call("ADD", &json!({})).args("FOO=1").run().error(4);
    lab.call("DEL", &json!({"prevResult": null})).args("FOO=1").run().success();
    assert_eq!(lab.attributes().0, MAC);
}

/// Go's plugin panics here.
#[test]
fn args_override_a_configuration_without_sysctls() {
    let lab = Lab::new();
    let over = json!({
        "sysctl": {"net.ipv4.conf.IFNAME.log_martians": "1"}, "mtu": 1200, "promisc": false,
    });
    lab.add(&json!({"promisc": true, "mtu": 1300, "args": {"cni": over}}));
    assert_eq!(lab.attributes(), (MAC.to_owned(), 1200, 1000, false, false));
    assert_eq!(lab.sysctl(LOG_MARTIANS), "1");
}

#[test]
fn a_failed_add_sets_everything_back() {
    let lab = Lab::new();
    let mut keys = everything();
    keys["mtu"] = json!(100_000);
    let error = lab.call("ADD", &keys).run().failure().json();
    assert!(error["msg"].as_str().unwrap().contains("MTU 100000"), "{error}");
    assert_eq!(lab.attributes(), originals());
    assert_eq!(lab.sysctl(LOG_MARTIANS), "0");
    assert!(!Lab::backup().exists());

    let sysctls = json!({"net.ipv4.conf.IFNAME.arp_notify": "1", "net.ipv4.none": "1"});
    let error = lab.call("ADD", &json!({"sysctl": sysctls})).run().failure().json();
    assert!(error["msg"].as_str().unwrap().contains("net.ipv4.none"), "{error}");
    assert_eq!(lab.sysctl("net.ipv4.conf.eth0.arp_notify"), "0");
}

#[test]
fn only_listed_sysctls_may_be_set() {
    let lab = Lab::new();
    std::fs::create_dir_all("/etc/cni/tuning").unwrap();
    let list = "^net\\.ipv4\\.conf\\.IFNAME\\.[a-z_]*$\n\nsomaxconn\n";
    std::fs::write("/etc/cni/tuning/allowlist.conf", list).unwrap();
    lab.add(&everything());
    lab.add(&json!({"sysctl": {"net.core.somaxconn": "500"}}));
    let refused = json!({"sysctl": {"net.ipv4.ip_forward": "1"}});
    let error = lab.call("ADD", &refused).run().error(7);
    let text = error["msg"].as_str().unwrap();
    assert!(text.starts_with("Sysctl net.ipv4.ip_forward is not allowed."), "{text}");
    lab.call("ADD", &json!({"args": {"cni": refused.clone()}})).run().error(7);
    lab.call("STATUS", &refused).run().error(50);
    lab.call("STATUS", &everything()).run().success();
    lab.call("DEL", &refused).run().success();
}

/// B022: an interface of the host that has the same name is another.
#[test]
fn b022_only_the_interface_in_the_container_is_told() {
    let lab = Lab::new();
    let mut keys = json!({"mac": "02:00:5e:10:00:99"});
    let path = lab.container.path();
    keys["prevResult"] = json!({"cniVersion": "1.1.0", "interfaces": [
        {"name": "eth0", "mac": "02:00:00:00:00:07"}, {"name": "eth0", "mac": MAC, "sandbox": path},
    ]});
    let interfaces = lab.add(&keys).json()["interfaces"].clone();
    assert_eq!(interfaces[0]["mac"], "02:00:00:00:00:07");
    assert_eq!(interfaces[1]["mac"], "02:00:5e:10:00:99");
    keys["prevResult"]["ips"] = json!([{"address": "10.1.0.2/24", "interface": 7}]);
    lab.call("ADD", &keys).run().failure().json();
}

#[test]
fn every_operation_in_every_version() {
    let lab = Lab::new();
    for version in ["0.1.0", "0.2.0", "0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"] {
        let mut keys = everything();
        keys["cniVersion"] = json!(version);
        keys["prevResult"] = lab.prev_result();
        if version < "0.3.0" {
            keys["prevResult"] = json!({"ip4": {"ip": "10.1.1.2/24"}});
        } else if version < "1.0.0" {
            keys["prevResult"]["ips"][0]["version"] = json!("4");
        }
        keys["prevResult"]["cniVersion"] = json!(version);
        keys["cni.dev/valid-attachments"] = json!([{"containerID": "c1", "ifname": "eth0"}]);
        let result = lab.add(&keys).json();
        assert_eq!(result["cniVersion"], version);
        keys["prevResult"] = result;
        for (verb, since) in [("CHECK", "0.4.0"), ("STATUS", "1.1.0"), ("GC", "1.1.0")] {
            let output = lab.call(verb, &keys).run();
            if version < since {
                output.error(1);
            } else {
                output.success();
            }
        }
        assert!(Lab::backup().exists(), "{version}: alive");
        lab.call("DEL", &keys).run().success();
        assert_eq!(lab.attributes(), originals(), "{version}");
    }
}
