//! DEL: idempotent, without a namespace, and never a stranger's.

use podwire_testkit::{GoPlugins, Netns};
use serde_json::{Value, json};

use crate::lab::{Lab, addresses, dual, ip, layer2, pods, with, with_prev};

fn everything() -> Value {
    with(&dual(), &json!({"ipMasq": true, "macspoofchk": true}))
}

/// B053, B101 and what runtimes send: each way to lose the namespace.
#[test]
fn b053_nothing_is_left_whatever_became_of_the_namespace() {
    for with_record in [true, false] {
        for way in ["kept", "removed", "empty", "file", "held"] {
            let lab = Lab::new();
            let before = lab.world.snapshot();
            let netns = lab.world.netns("c1");
            let config = everything();
            let result = lab.add(&netns, &config);
            let sent = if with_record { with_prev(&config, &result) } else { config.clone() };
            let held = (way == "held").then(|| netns.open());
            if way != "kept" && way != "empty" {
                netns.remove();
            }
            if way == "file" {
                std::fs::write(netns.path(), "").unwrap();
            }
            for _ in 0..2 {
                let mut call = lab.call("DEL", &netns, &sent);
                if way == "empty" {
                    call = call.env("CNI_NETNS", "");
                }
                call.run().success();
            }
            assert_eq!(lab.links(), ["br0"], "{way}");
            assert!(Lab::reservations("n").is_empty(), "{way}");
            let residue = lab.world.snapshot().since(&before).beyond_residue(&["br0"]);
            assert!(residue.changes.is_empty(), "{way}, record {with_record}:\n{residue}");
            drop(held);
        }
    }
}

/// A stranger's namespace at the old path, with our own kind of attachment,
/// Go's, or a user's interface inside (design: a reused namespace path).
#[test]
fn b020_a_strangers_namespace_at_the_old_path_is_left_alone() {
    for stranger in ["ours", "go", "user"] {
        for with_record in [true, false] {
            let lab = Lab::new();
            let config =
                with(&everything(), &json!({"runtimeConfig": {"mac": "02:00:00:00:00:77"}}));
            let old = lab.world.netns("c1");
            let result = lab.add(&old, &config);
            old.remove();
            let new = lab.world.netns("c1");
            let other = with(
                &config,
                &json!({"name": "n2", "bridge": "br2", "macspoofchk": false,
                "ipam": {"type": "host-local", "ranges": [[{"subnet": "10.2.0.0/24"}]]}}),
            );
            match stranger {
                "ours" => {
                    let call = lab.call("ADD", &new, &other).container("stranger");
                    call.run().success();
                }
                "go" => {
                    let go = GoPlugins::sid().plugin("bridge").command("ADD").netns(&new);
                    let other = with(&other, &json!({"ipMasq": false}));
                    go.container("stranger").ifname("eth0").config(&other).run().success();
                }
                _ => {
                    ip(&new, "link add eth0 type veth peer name peer0");
                    ip(&new, "link set eth0 address 02:00:00:00:00:77");
                    ip(&new, "addr add 10.2.0.2/24 dev eth0");
                }
            }
            // The old pair goes with its namespace, when the kernel has time.
            let host_end = result["interfaces"][1]["name"].as_str().unwrap();
            let links = || lab.links().into_iter().filter(|name| name != host_end);
            let (inside, outside) = (new.snapshot(), links().collect::<Vec<_>>());
            let sent = if with_record { with_prev(&config, &result) } else { config };
            for _ in 0..2 {
                lab.call("DEL", &new, &sent).run().success();
            }
            new.snapshot().since(&inside).assert_empty();
            assert_eq!(links().collect::<Vec<_>>(), outside, "{stranger}");
            assert!(!lab.has_link(host_end), "{stranger}");
            assert!(Lab::reservations("n").is_empty(), "the dead one's address is free");
        }
    }
}

/// B020: a late DEL of an old sandbox, same pod, other id.
#[test]
fn b020_a_late_del_of_the_old_sandbox_leaves_the_new_one() {
    let lab = Lab::new();
    let (old, new) = (lab.world.netns("old"), lab.world.netns("new"));
    let config = everything();
    let args = "IgnoreUnknown=1;K8S_POD_NAME=p";
    let call =
        |verb: &str, netns: &Netns, config: &Value| lab.call(verb, netns, config).args(args).run();
    let first = call("ADD", &old, &config).success().json();
    let second = call("ADD", &new, &config).success().json();
    for _ in 0..2 {
        call("DEL", &old, &with_prev(&config, &first)).success();
        call("CHECK", &new, &with_prev(&config, &second)).success();
    }
    call("DEL", &new, &with_prev(&config, &second)).success();
    assert_eq!(lab.links(), ["br0"]);
}

/// Taking over a node: what the Go plugins of both releases attached.
#[test]
fn what_the_go_plugins_attached_is_checked_and_removed() {
    for (go, version) in [(GoPlugins::debian(), "1.0.0"), (GoPlugins::sid(), "1.1.0")] {
        for way in ["kept", "removed", "held"] {
            let lab = Lab::new();
            let netns = lab.world.netns("c1");
            let config = with(&everything(), &json!({"cniVersion": version}));
            // Go's iptables backend needs tools; its nftables one too.
            let add = go.plugin("bridge").command("ADD").container("c1").netns(&netns);
            let result = add.ifname("eth0").config(&config).run().success().json();
            lab.check(&netns, &config, &result).success();
            assert_eq!(lab.links().len(), 2);
            let held = (way == "held").then(|| netns.open());
            if way != "kept" {
                netns.remove();
            }
            for _ in 0..2 {
                lab.del(&netns, &config, &result);
            }
            assert_eq!(lab.links(), ["br0"], "{version} {way}");
            assert!(Lab::reservations("n").is_empty());
            let rules = lab.world.exec(&["nft", "list", "ruleset"]).stdout;
            assert!(
                !rules.contains("10.1.0.2") && !rules.contains("c1"),
                "{version} {way}: {rules}"
            );
            drop(held);
        }
    }
}

/// The host end that prevResult names may be another's by now.
#[test]
fn a_recorded_host_end_is_removed_only_with_proof() {
    let lab = Lab::new();
    let netns = lab.world.netns("gone");
    netns.remove();
    lab.ip("link add veth0a1b2c3d address 02:00:00:00:00:01 type veth peer name user0");
    let record = |mac: &str| {
        json!({"cniVersion": "1.1.0", "interfaces": [
            {"name": "br0"}, {"name": "veth0a1b2c3d", "mac": mac},
            {"name": "eth0", "mac": "02:00:00:00:00:05", "sandbox": netns.path().to_str().unwrap()}]})
    };
    lab.del(&netns, &layer2(), &record("02:00:00:00:00:02"));
    assert!(lab.has_link("veth0a1b2c3d"), "another MAC address");
    lab.ip("link set veth0a1b2c3d alias podwire:other:c9:eth0");
    lab.del(&netns, &layer2(), &record("02:00:00:00:00:01"));
    assert!(lab.has_link("veth0a1b2c3d"), "another's alias");
    lab.world.exec(&["sh", "-c", "ip link set veth0a1b2c3d alias ''"]);
    lab.del(&netns, &layer2(), &record("02:00:00:00:00:01"));
    assert!(!lab.has_link("veth0a1b2c3d"), "proven");
    // Nonsense in a record is nobody's name.
    let mut nonsense = record("02:00:00:00:00:01");
    nonsense["interfaces"][1]["name"] = json!("../../etc/passwd");
    lab.del(&netns, &layer2(), &nonsense);
}

#[test]
fn del_goes_by_the_owner_when_the_configuration_is_broken_since() {
    let lab = Lab::new();
    let netns = lab.world.netns("c1");
    let before = lab.world.snapshot();
    lab.add(&netns, &everything());
    let broken = with(&everything(), &json!({"mtu": "big", "vlan": 9999, "ipMasqBackend": "ipfw"}));
    lab.call("DEL", &netns, &broken).run().success();
    assert!(Lab::reservations("n").is_empty());
    lab.world.snapshot().since(&before).beyond_residue(&["br0"]).assert_empty();
}

#[test]
fn an_unreadable_record_is_no_obstacle() {
    let lab = Lab::new();
    let netns = lab.world.netns("c1");
    lab.add(&netns, &pods());
    for nonsense in [json!({"cniVersion": "9.9.9"}), json!({"ips": 7})] {
        lab.call("DEL", &netns, &with_prev(&pods(), &nonsense)).run().success();
    }
    assert_eq!(lab.links(), ["br0"]);
    assert!(Lab::reservations("n").is_empty());
}

/// Two interfaces of one container, and one container on two networks.
#[test]
fn only_the_interface_that_is_named_goes() {
    let lab = Lab::new();
    let netns = lab.world.netns("c1");
    lab.add(&netns, &pods());
    lab.call("ADD", &netns, &pods()).ifname("eth1").run().success();
    let other = with(
        &pods(),
        &json!({"name": "n2", "isDefaultGateway": false, "bridge": "br2",
        "ipam": {"type": "host-local", "ranges": [[{"subnet": "10.2.0.0/24"}]]}}),
    );
    lab.call("ADD", &netns, &other).ifname("eth2").run().success();
    lab.call("DEL", &netns, &pods()).run().success();
    assert_eq!(addresses(&netns, "eth1"), ["10.1.0.3/24"]);
    assert_eq!(addresses(&netns, "eth2"), ["10.2.0.2/24"]);
    // The other network's interface under a wrong network's name.
    lab.call("DEL", &netns, &pods()).ifname("eth2").run().success();
    assert_eq!(addresses(&netns, "eth2"), ["10.2.0.2/24"]);
}

/// B101: whoever renames the host end, DEL knows it by its mark, and no address
/// is given back while an interface has it.
#[test]
fn b101_a_renamed_host_end_goes_before_its_address() {
    for with_record in [true, false] {
        let lab = Lab::new();
        let netns = lab.world.netns("c1");
        let result = lab.add(&netns, &pods());
        let host_end = result["interfaces"][1]["name"].as_str().unwrap();
        lab.ip(&format!("link set {host_end} down"));
        lab.ip(&format!("link set {host_end} name renamed0"));
        let sent = if with_record { with_prev(&pods(), &result) } else { pods() };
        lab.call("DEL", &netns, &sent).run().success();
        assert_eq!(lab.links(), ["br0"], "record {with_record}");
        assert!(Lab::reservations("n").is_empty(), "record {with_record}");
    }
}

/// B101: renamed and without a mark, nothing proves whose it is; but it has the
/// very MAC address and address of prevResult, so that the address is not free.
#[test]
fn b101_an_address_that_is_still_in_use_stays_reserved() {
    let lab = Lab::new();
    let netns = lab.world.netns("c1");
    let result = lab.add(&netns, &pods());
    let host_end = result["interfaces"][1]["name"].as_str().unwrap();
    lab.ip(&format!("link set {host_end} down"));
    lab.ip(&format!("link set {host_end} alias somebody name renamed0"));
    let reserved = Lab::reservations("n");
    assert_eq!(reserved.len(), 1);
    let error = lab.call("DEL", &netns, &with_prev(&pods(), &result)).run().error(999);
    assert!(error["msg"].as_str().unwrap().contains(&reserved[0]), "{error}");
    assert!(lab.has_link("renamed0"));
    assert_eq!(Lab::reservations("n"), reserved);
    netns.remove();
    lab.call("DEL", &netns, &with_prev(&pods(), &result)).run().success();
    assert!(Lab::reservations("n").is_empty());
}
