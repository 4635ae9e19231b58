//! Malformed input: the code, a message with key and value, nothing changed.

use serde_json::{Value, json};

use crate::lab::{Lab, is_bookkeeping, layer2, pods, with};

#[test]
fn b055_mistakes_in_the_configuration_name_key_and_value() {
    let lab = Lab::new();
    let netns = lab.world.netns("c1");
    let before = lab.world.snapshot();
    // C23: numbers and booleans as text are refused by name.
    let cases: &[(Value, u64, &[&str])] = &[
        (json!({"mtu": "1400"}), 6, &["mtu", "1400"]),
        (json!({"isGateway": "true"}), 6, &["isGateway", "true"]),
        (json!({"vlan": "100"}), 6, &["vlan", "100"]),
        (json!({"portIsolation": "true"}), 6, &["portIsolation", "true"]),
        (json!({"promiscMode": 1}), 6, &["promiscMode", "1"]),
        (json!({"bridge": 7}), 6, &["bridge", "7"]),
        (json!({"vlanTrunk": {"id": 1}}), 6, &["vlanTrunk"]),
        (json!({"mtu": -1}), 7, &["mtu", "-1"]),
        (json!({"mtu": 70000}), 7, &["mtu", "70000"]),
        (json!({"vlan": 4095}), 7, &["invalid VLAN ID 4095"]),
        (json!({"bridge": ""}), 7, &["bridge"]),
        (json!({"bridge": "a/b"}), 7, &["bridge", "a/b"]),
        (json!({"bridge": "sixteen-chars-ab"}), 7, &["bridge", "sixteen-chars-ab"]),
        (json!({"bridge": "zz%d"}), 7, &["bridge", "zz%d"]),
        (json!({"bridge": "all"}), 7, &["bridge", "all", "reserved"]),
        (json!({"hairpinMode": true, "promiscMode": true}), 7, &["hairpin mode and promiscuous"]),
        (json!({"ipMasq": true, "ipMasqBackend": "ipfw"}), 7, &["unknown ipmasq backend \"ipfw\""]),
        (json!({"args": {"cni": {"mac": "zz"}}}), 7, &["args.cni.mac", "zz"]),
        (json!({"runtimeConfig": {"mac": "01:00:00:00:00:01"}}), 7, &["runtimeConfig.mac"]),
        (
            json!({"bridge": "bridge-15-chars", "vlan": 100, "isGateway": true}),
            7,
            &["VLAN 100", "bridge-15-chars.100", "shorter"],
        ),
        (
            json!({"disableContainerInterface": true, "ipam": {"type": "host-local"}}),
            7,
            &["cannot use IPAM when DisableContainerInterface flag is set"],
        ),
        (json!({"ipam": {"type": "../../bin/sh"}}), 7, &["ipam.type", "../../bin/sh"]),
        // Not eight seconds later, waiting for the lock of its own attachment.
        (json!({"ipam": {"type": "bridge"}}), 7, &["ipam.type", "bridge"]),
        (json!({"ipam": {"type": "portmap"}}), 7, &["ipam.type", "portmap"]),
        (json!({"ipam": "host-local"}), 6, &["ipam", "host-local"]),
    ];
    for (keys, code, words) in cases {
        for verb in ["ADD", "STATUS"] {
            let error = lab.call(verb, &netns, &with(&layer2(), keys)).run().error(*code);
            let text = format!("{} {}", error["msg"], error["details"]).replace("\\\"", "\"");
            assert!(words.iter().all(|word| text.contains(word)), "{keys} {verb}: {text}");
        }
        lab.world.snapshot().since(&before).without(is_bookkeeping).assert_empty();
    }
}

/// C19: keys are known in any case.
#[test]
fn c19_keys_are_known_in_any_case() {
    let lab = Lab::new();
    let netns = lab.world.netns("c1");
    let config = json!({"CNIVersion": "1.0.0", "Name": "n", "Type": "bridge", "BRIDGE": "br5",
        "ISGateway": true, "IPAM": {"TYPE": "host-local", "Ranges": [[{"Subnet": "10.1.0.0/24"}]]},
        "DNS": {"Nameservers": ["10.0.0.10"], "Search": ["svc.cluster.local"]}});
    let result = lab.add(&netns, &config);
    assert_eq!(result["interfaces"][0]["name"], "br5");
    assert_eq!(result["dns"]["search"][0], "svc.cluster.local");
    assert_eq!(lab.addresses("br5"), ["10.1.0.1/24"]);
}

#[test]
fn mistakes_in_the_variables_change_nothing() {
    let lab = Lab::new();
    let netns = lab.world.netns("c1");
    let before = lab.world.snapshot();
    let file = lab.world.write("file", "");
    let call = || lab.call("ADD", &netns, &pods());
    for (plugin, code, words) in [
        (call().container("../c1"), 4, "../c1"),
        (call().container(""), 4, "CNI_CONTAINERID"),
        (call().ifname("a/b"), 4, "a/b"),
        (call().ifname("sixteen-chars-ab"), 4, "sixteen-chars-ab"),
        (call().without_env("CNI_IFNAME"), 4, "CNI_IFNAME"),
        (call().env("CNI_NETNS", ""), 4, "CNI_NETNS"),
        (call().env("CNI_NETNS", "/run/netns/absent"), 8, "/run/netns/absent"),
        (call().env("CNI_NETNS", file.as_os_str()), 8, "is not a network namespace"),
        (call().netns(lab.world.host()), 8, "should not be the same"),
        (call().without_env("CNI_PATH"), 4, "CNI_PATH"),
        (call().args("MAC=02:00:00:00:00:01;X=y"), 4, "unknown args"),
        (call().args("MAC"), 4, "invalid pair"),
        (call().args("MAC=zz"), 7, "zz"),
        (call().command("add"), 4, "add"),
        (call().config("{"), 6, ""),
        (call().config("[]"), 6, ""),
        (call().config(with(&pods(), &json!({"name": "a/b"}))), 7, "a/b"),
        (call().config(with(&pods(), &json!({"cniVersion": "9.0.0"}))), 1, "9.0.0"),
    ] {
        let error = plugin.run().error(code);
        assert!(error.to_string().contains(words), "{words}: {error}");
        lab.world.snapshot().since(&before).without(is_bookkeeping).assert_empty();
    }
}

/// B055: what the host refuses is named, with what to do.
#[test]
fn b055_what_is_in_the_way_on_the_host_is_named() {
    let lab = Lab::new();
    let netns = lab.world.netns("c1");
    lab.ip("link add taken type veth peer name other");
    let config = with(&layer2(), &json!({"bridge": "taken"}));
    let error = lab.call("ADD", &netns, &config).run().error(7);
    assert_eq!(error["msg"].as_str().unwrap().matches("not a bridge").count(), 1, "{error}");
    assert!(error["details"].as_str().unwrap().contains("\"bridge\""), "{error}");
    assert_eq!(lab.links(), ["other", "taken"]);
}

/// B055: no file descriptor is left.
#[test]
fn b055_running_out_of_descriptors_is_said_and_undone() {
    let lab = Lab::new();
    let netns = lab.world.netns("c1");
    lab.add(&lab.world.netns("first"), &pods());
    let before = lab.world.snapshot();
    let directory = lab.world.plugin_directory();
    // The loader of a program that is linked dynamically needs one itself.
    for limit in 4..14 {
        let limited = lab.world.write(
            "limited",
            format!("#!/bin/sh\nexec prlimit --nofile={limit} {}/bridge\n", directory.display()),
        );
        lab.world.exec(&["chmod", "+x", limited.to_str().unwrap()]);
        let plugin = podwire_testkit::Plugin::at(limited).command("ADD").container("c1");
        let plugin = plugin.netns(&netns).ifname("eth0").config(pods());
        let output = plugin.search_in(&[directory]).run();
        if output.code == 0 {
            lab.call("DEL", &netns, &pods()).run().success();
            assert!(limit > 5, "{limit} descriptors are enough?");
            continue;
        }
        let text = format!("{}{}", output.stdout, output.stderr);
        assert!(
            text.contains("Too many open files") || text.contains("os error 24"),
            "{limit}: {text}"
        );
        // What could not be undone for want of descriptors, DEL takes.
        lab.call("DEL", &netns, &pods()).run().success();
        lab.world.snapshot().since(&before).without(is_bookkeeping).assert_empty();
        assert_eq!(Lab::reservations("n"), ["10.1.0.2"]);
    }
}
