//! The six verbs, in the versions of the protocol.

use super::*;

#[test]
fn add_check_del_in_every_version() {
    let pool = Pool::new();
    for version in ["0.1.0", "0.2.0", "0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"] {
        let mut config = pool.config(&json!({
            "ranges": [[{"subnet": "10.9.0.0/24"}], [{"subnet": "fd09::/64"}]],
            "routes": [{"dst": "0.0.0.0/0"}, {"dst": "fd10::/16", "gw": "fd09::9"}],
        }));
        config["cniVersion"] = json!(version);
        let result = pool.call("ADD", "c1", &config).run().success().json();
        assert_eq!(result["cniVersion"], version);
        let held = pool.reservations();
        assert_eq!(held.len(), 2, "{version}: {held:?}");
        let v4 = held.keys().find(|name| name.contains('.')).unwrap();
        match version {
            "0.1.0" | "0.2.0" => {
                assert_eq!(result["ip4"]["ip"], format!("{v4}/24"), "{result}");
                assert_eq!(result["ip6"]["gateway"], "fd09::1", "{result}");
            }
            _ => {
                assert_eq!(result["ips"][0]["address"], format!("{v4}/24"), "{result}");
                assert_eq!(result["ips"][1]["gateway"], "fd09::1", "{result}");
                assert!(result["ips"][0].get("interface").is_none(), "{result}");
                assert_eq!(result["routes"][1]["gw"], "fd09::9", "{result}");
            }
        }
        if !matches!(version, "0.1.0" | "0.2.0" | "0.3.0" | "0.3.1") {
            config["prevResult"] = result;
            pool.call("CHECK", "c1", &config).run().success();
        }
        pool.del("c1", &config);
        pool.del("c1", &config);
        assert!(pool.reservations().is_empty());
    }
}

#[test]
fn check_names_what_differs() {
    let pool = Pool::new();
    let mut config = pool.config(&one_range("10.9.0.0/24"));
    let check = |config: &Value| pool.call("CHECK", "c1", config).run();
    let text = check(&config).error(100)["msg"].to_string();
    assert!(text.contains("Failed to find address added by container c1"), "{text}");
    config["prevResult"] = pool.call("ADD", "c1", &config).run().success().json();
    check(&config).success();
    config["prevResult"]["ips"][0]["address"] = json!("10.9.0.77/24");
    let text = check(&config).error(100)["msg"].to_string();
    assert!(text.contains("10.9.0.77 of c1/eth0 in network n1 is not reserved"), "{text}");
    config["prevResult"]["ips"] = json!([{"address": "192.168.0.1/24"}]);
    let text = check(&config).error(100)["msg"].to_string();
    assert!(text.contains("10.9.0.2 is reserved for c1/eth0"), "{text}");
    pool.write("10.9.0.2", "c2\r\neth0");
    config["prevResult"]["ips"] = json!([{"address": "10.9.0.2/24"}]);
    check(&config).error(100);
}

/// B001
#[test]
fn b001_gc_frees_what_is_not_live_and_add_succeeds_again() {
    let pool = Pool::new();
    let config = pool.config(&one_range("10.9.0.0/29"));
    for last in 2..=6 {
        pool.write(&format!("10.9.0.{last}"), &format!("dead{last}\r\neth0"));
    }
    pool.write("last_reserved_ip.0", "10.9.0.6");
    let full = pool.call("ADD", "new", &config).run().error(999)["msg"].to_string();
    assert!(full.contains("no IP addresses available in range set"), "{full}");
    assert!(full.contains("podwire gc n1 --keep-live"), "{full}");
    assert_eq!(pool.call("STATUS", "", &config).run().error(50)["code"], 50);

    let gc = |valid: Option<Value>| {
        let mut config = config.clone();
        if let Some(valid) = valid {
            config["cni.dev/valid-attachments"] = valid;
        }
        pool.call("GC", "", &config).run().success()
    };
    gc(None);
    assert_eq!(pool.reservations().len(), 5, "a request that doesn't say frees nothing");
    let output = gc(Some(json!([{"containerID": "dead4", "ifname": "eth0"}])));
    assert!(output.stderr.contains("freed 10.9.0.2 of network n1: dead2/eth0"), "{output:#?}");
    assert_eq!(pool.reservations(), [("10.9.0.4".into(), "dead4\r\neth0".into())].into());
    assert_eq!(std::fs::read(pool.file("last_reserved_ip.0")).unwrap(), b"10.9.0.6");
    assert!(pool.file("lock").exists());
    pool.call("STATUS", "", &config).run().success();
    assert_eq!(pool.add("new", &config), ["10.9.0.2/29"]);
    gc(Some(Value::Null));
    assert!(pool.reservations().is_empty());
}

/// B001: after a reboot, by our own stamps.
#[test]
fn b001_the_first_add_after_a_reboot_frees_what_it_can_prove_dead() {
    let pool = Pool::new();
    let config = pool.config(&one_range("10.9.0.0/29"));
    let boot = pool.world.write("boot_id", "00000000-1111-2222-3333-000000000001\n");
    let proc = Path::new("/proc/sys/kernel/random/boot_id");
    podwire_sys::mount::bind(&boot, proc).unwrap();
    for container in ["c1", "c2", "c3", "c4", "c5"] {
        pool.add(container, &config);
    }
    for last in [2, 4] {
        let file = std::fs::File::options().write(true).open(pool.file(&format!("10.9.0.{last}")));
        file.unwrap().set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
    }
    pool.call("ADD", "new", &config).run().failure();
    assert_eq!(pool.reservations().len(), 5, "the same boot: nothing is freed by age");

    // The same directory, under another name: the mount keeps the old file.
    podwire_sys::mount::detach(proc).unwrap();
    std::fs::write(&boot, "00000000-1111-2222-3333-000000000002\n").unwrap();
    podwire_sys::mount::bind(&boot, proc).unwrap();
    pool.call("STATUS", "", &config).run().success();
    pool.del("c99", &config);
    assert_eq!(pool.reservations().len(), 5, "only an ADD frees");
    let output = pool.call("ADD", "new", &config).run().success();
    assert!(
        output.stderr.contains("freed 10.9.0.4 of network n1, reserved for c3/eth0"),
        "{output:#?}"
    );
    assert_eq!(addresses(&output.json()), ["10.9.0.2/29"]);
    let held = pool.reservations();
    assert_eq!(held.len(), 4, "{held:?}");
    assert!(!held.contains_key("10.9.0.4"));

    // Without a boot id nothing is known to be dead, and all still works.
    podwire_sys::mount::detach(proc).unwrap();
    std::fs::write(&boot, "").unwrap();
    podwire_sys::mount::bind(&boot, proc).unwrap();
    assert_eq!(pool.add("more", &config), ["10.9.0.4/29"]);
    pool.del("more", &config);
    assert_eq!(pool.reservations().len(), 4);
}

/// B047
#[test]
fn b047_unknown_arguments() {
    let pool = Pool::new();
    let config = pool.config(&one_range("10.9.6.0/24"));
    let add = |args: &str| pool.call("ADD", "c1", &config).args(args).run();
    let text = add("K8S_POD_NAME=p;IP=10.9.6.4").failure().stdout;
    assert!(text.contains("K8S_POD_NAME"), "{text}");
    for args in ["IP", "A=b", ";;", "IP=10.9.6.4;"] {
        add(args).failure();
    }
    assert!(pool.reservations().is_empty());
    for args in [
        "IgnoreUnknown=1;K8S_POD_NAME=p;IP=10.9.6.4",
        "K8S_POD_NAME=p;IP=10.9.6.4;IgnoreUnknown=TRUE",
    ] {
        assert_eq!(addresses(&add(args).success().json()), ["10.9.6.4/24"]);
        // Whatever CNI_ARGS says, DEL doesn't mind.
        pool.call("DEL", "c1", &config).args("K8S_POD_NAME=p").run().success();
        assert!(pool.reservations().is_empty());
    }
    assert_eq!(addresses(&add("IP=").success().json()), ["10.9.6.5/24"]);
}

/// B059
#[test]
fn b059_requests_of_every_kind_respect_the_one_address() {
    let pool = Pool::new();
    let config = pool.config(&one_range("10.9.5.0/24"));
    let first = pool.call("ADD", "c1", &config).args("IP=10.9.5.9").run().success();
    assert_eq!(addresses(&first.json()), ["10.9.5.9/24"]);
    let mut by_runtime = config.clone();
    by_runtime["runtimeConfig"] = json!({"ips": ["10.9.5.10/24"]});
    let mut by_args = config.clone();
    by_args["args"] = json!({"cni": {"ips": ["10.9.5.11"]}});
    for call in [
        pool.call("ADD", "c1", &config).args("IP=10.9.5.9"),
        pool.call("ADD", "c1", &config).args("IP=10.9.5.10"),
        pool.call("ADD", "c1", &by_runtime),
        pool.call("ADD", "c1", &by_args),
    ] {
        let text = call.run().error(102)["msg"].to_string();
        assert!(text.contains("10.9.5.9 has been allocated to c1"), "{text}");
    }
    let other = pool.call("ADD", "c1", &by_runtime).ifname("eth1").run().success();
    assert_eq!(addresses(&other.json()), ["10.9.5.10/24"]);
    pool.del("c1", &config);
    assert_eq!(pool.reservations().keys().collect::<Vec<_>>(), ["10.9.5.10"]);
}

/// B038
#[test]
fn b038_a_second_add_names_network_address_file_and_cure() {
    let pool = Pool::new();
    let config = pool.config(&one_range("10.9.5.0/24"));
    pool.add("c1", &config);
    let error = pool.call("ADD", "c1", &config).run().error(102);
    let text = error.to_string();
    for part in ["network n1", "10.9.5.2", pool.file("10.9.5.2").to_str().unwrap(), "DEL"] {
        assert!(text.contains(part), "{part} is missing in {text}");
    }
    assert_eq!(pool.reservations().len(), 1);
    pool.call("DEL", "c1", &config).without_env("CNI_NETNS").run().success();
    pool.add("c1", &config);
}

#[test]
fn del_needs_nothing_but_name_and_directory() {
    let pool = Pool::new();
    let config = pool.config(&one_range("10.9.5.0/24"));
    pool.del("c1", &config);
    assert!(!pool.directory.exists(), "DEL makes no directory");
    pool.add("c1", &config);
    let mut broken = pool.config(&json!({"ranges": [{"subnet": "usePodCidr"}], "routes": 7}));
    broken["runtimeConfig"] = json!({"ipRanges": "x"});
    pool.call("ADD", "c2", &broken).run().failure();
    pool.del("c1", &broken);
    assert!(pool.reservations().is_empty());
    // From before interfaces were kept.
    pool.write("10.9.5.7", "old");
    pool.write("10.9.5.8", "old\r\neth0");
    pool.del("old", &config);
    assert_eq!(pool.reservations().keys().collect::<Vec<_>>(), ["10.9.5.7"]);
    pool.del("old", &config);
    assert!(pool.reservations().is_empty());
}

/// C07, B016, B089: nothing is changed by a configuration that is refused.
#[test]
fn b016_refused_configurations_change_nothing() {
    let pool = Pool::new();
    for (range, key) in [
        (json!({"subnet": "usePodCidr"}), "ipam.ranges[0][0].subnet"),
        (json!({"subnet": "10.1.0.0/24", "rangeStart": "10.1.0.255"}), "reversed"),
        (
            json!({"subnet": "10.1.0.0/24", "rangeStart": "10.1.0.9", "rangeEnd": "10.1.0.5"}),
            "reversed",
        ),
        (
            json!({"subnet": "255.255.255.252/30", "rangeStart": "255.255.255.255", "gateway": "255.255.255.255"}),
            "reversed",
        ),
        (json!({"subnet": "10.1.0.0/24", "gateway": "192.168.1.1"}), "ipam.ranges[0][0].gateway"),
        (json!({"subnet": "10.1.0.0/24", "gateway": "fd00::1"}), "IPv6"),
    ] {
        let config = pool.config(&json!({"ranges": [[range]]}));
        for verb in ["ADD", "STATUS"] {
            let text = pool.call(verb, "c1", &config).run().error(7)["msg"].to_string();
            assert!(text.contains(key), "{verb}: {text}");
        }
    }
    assert!(!pool.directory.exists());
    let config = pool.config(&json!({"ranges": [[{"subnet": "fd00::/64", "gateway": "fe80::1"}]]}));
    let result = pool.call("ADD", "c1", &config).run().success().json();
    assert_eq!(result["ips"][0]["gateway"], "fe80::1");
}

#[test]
fn name_resolution_is_copied_from_a_file() {
    let pool = Pool::new();
    let file = pool.world.write("resolv.conf", "nameserver 192.0.2.1\nsearch example.org\n");
    let mut ipam = one_range("10.9.5.0/24");
    ipam["resolvConf"] = json!(file);
    let config = pool.config(&ipam);
    let result = pool.call("ADD", "c1", &config).run().success().json();
    assert_eq!(result["dns"], json!({"nameservers": ["192.0.2.1"], "search": ["example.org"]}));
    std::fs::remove_file(&file).unwrap();
    let text = pool.call("ADD", "c2", &config).run().error(7)["msg"].to_string();
    assert!(text.contains("ipam.resolvConf"), "{text}");
    assert_eq!(pool.reservations().len(), 1);
    pool.del("c1", &config);
}
