//! A failed ADD leaves the host as it was: every step made to fail for real.

use serde_json::{Value, json};

use crate::lab::{Lab, dual, fixed, ip, is_bookkeeping, layer2, pods, with};

/// A bridge with a MAC address of its own: one without takes its ports', and
/// the kernel forgets it with the last of them.
const BRIDGE: &str = "link add br0 address 02:00:00:00:00:aa type bridge";

/// An ADD that fails, from the state that `prepare` makes; nothing is changed.
#[track_caller]
fn fails(config: &Value, words: &str, prepare: impl Fn(&Lab, &podwire_testkit::Netns)) {
    let lab = Lab::new();
    let netns = lab.world.netns("c1");
    prepare(&lab, &netns);
    let (before, inside) = (lab.world.snapshot(), netns.snapshot());
    let error = lab.call("ADD", &netns, config).run().failure().json();
    assert!(error.to_string().contains(words), "{words}: {error}");
    lab.world.snapshot().since(&before).without(is_bookkeeping).assert_empty();
    netns.snapshot().since(&inside).assert_empty();
    assert!(Lab::reservations("n").is_empty(), "B061: no reservation is left");
}

/// B061, B077: the interface is there already.
#[test]
fn b061_b077_an_existing_interface_is_named_and_untouched() {
    fails(&dual(), "interface eth0 already exists in the container", |_, netns| {
        ip(netns, "link add eth0 type veth peer name user0");
        ip(netns, "addr add 192.0.2.1/24 dev eth0");
        ip(netns, "link set eth0 up");
    });
}

/// B077: a second ADD, of the same container and of another.
#[test]
fn b077_a_second_add_fails_and_the_first_stays() {
    let lab = Lab::new();
    let netns = lab.world.netns("c1");
    let result = lab.add(&netns, &pods());
    let before = lab.world.snapshot();
    for id in ["c1", "c2"] {
        lab.call("ADD", &netns, &pods()).container(id).run().failure();
        lab.check(&netns, &pods(), &result).success();
        lab.world.snapshot().since(&before).without(is_bookkeeping).assert_empty();
    }
    assert_eq!(Lab::reservations("n"), ["10.1.0.2"]);
}

#[test]
fn a_conflicting_gateway_undoes_all() {
    let words = "already has an IP address different from 10.1.0.1/24: 10.9.9.1/24";
    fails(&dual(), words, |lab, _| {
        lab.ip(BRIDGE);
        lab.ip("addr add 10.9.9.1/24 dev br0");
    });
}

/// The IPv4 gateway is set before the IPv6 one is found to be in the way.
#[test]
fn a_conflict_of_the_second_family_takes_the_first_back() {
    fails(&dual(), "different from fd00:1::1/64: fd00:1::99/64", |lab, _| {
        lab.ip(BRIDGE);
        lab.ip("addr add fd00:1::99/64 dev br0 nodad");
        lab.ip("link set br0 up");
    });
}

/// forceAddress has replaced the address when a later step fails; other ports
/// are on the bridge all the while.
#[test]
fn a_replaced_gateway_and_promiscuous_mode_come_back() {
    let config =
        with(&dual(), &json!({"forceAddress": true, "promiscMode": true, "bridge": "br0"}));
    fails(&config, "IPv6 forwarding", |lab, _| {
        lab.ip(BRIDGE);
        lab.ip("addr add 10.9.9.1/24 dev br0");
        lab.ip("link add user0 type veth peer name user1");
        lab.ip("link set user0 master br0");
        refuse_forwarding(lab);
    });
}

/// A bridge that this call made goes with it.
#[test]
fn a_new_bridge_goes_again() {
    fails(&dual(), "IPv6 forwarding", |lab, _| refuse_forwarding(lab));
}

/// Lets nobody switch IPv6 forwarding on: the last step of ADD.
fn refuse_forwarding(lab: &Lab) {
    std::fs::write("/proc/sys/net/ipv4/ip_forward", "1").unwrap();
    let mask = lab.world.write("0", "0\n");
    let key = "/proc/sys/net/ipv6/conf/all/forwarding";
    lab.world.exec(&["mount", "--bind", mask.to_str().unwrap(), key]);
    lab.world.exec(&["mount", "-o", "remount,bind,ro", key]);
}

#[test]
fn an_address_that_the_kernel_refuses_undoes_all() {
    fails(&fixed(&["ff02::5/64"]), "adding address ff02::5/64", |_, _| {});
}

#[test]
fn a_route_that_the_kernel_refuses_undoes_all() {
    let mut config = fixed(&["10.1.0.5/24"]);
    config["ipam"]["routes"] = json!([{"dst": "10.8.0.0/16", "gw": "224.0.0.1"}]);
    fails(&config, "10.8.0.0/16", |_, _| {});
}

#[test]
fn an_mtu_that_the_kernel_refuses_undoes_all() {
    fails(&with(&layer2(), &json!({"mtu": 20})), "br0", |_, _| {});
}

/// Masquerade is refused where the table's name is another chain type's.
#[test]
fn a_refused_masquerade_undoes_all() {
    let config = with(&pods(), &json!({"ipMasq": true}));
    fails(&config, "masquerade", |lab, _| {
        // Our set, of another type.
        lab.world.exec(&[
            "nft",
            "add table ip podwire_masquerade;
            add map ip podwire_masquerade sources { type inet_service : verdict; }",
        ]);
    });
}

#[test]
fn a_refused_spoof_check_undoes_all() {
    let config = with(&layer2(), &json!({"macspoofchk": true}));
    fails(&config, "", |lab, _| {
        lab.world.exec(&[
            "nft",
            "add table bridge podwire_spoof_check;
            add map bridge podwire_spoof_check guarded { type inet_service : verdict; }",
        ]);
    });
}

/// A bridge that others have joined stays with its gateway.
#[test]
fn a_failed_add_leaves_what_others_use() {
    let lab = Lab::new();
    let (one, two) = (lab.world.netns("c1"), lab.world.netns("c2"));
    let result = lab.add(&one, &pods());
    ip(&two, "link add eth0 type veth peer name user0");
    lab.call("ADD", &two, &pods()).run().failure();
    lab.check(&one, &pods(), &result).success();
}

/// Host interface names are derived; one that is taken is not touched, and
/// DEL finds the next.
#[test]
fn a_taken_host_name_moves_on_to_the_next() {
    let lab = Lab::new();
    let netns = lab.world.netns("c1");
    let first = lab.add(&netns, &layer2());
    let name = first["interfaces"][1]["name"].as_str().unwrap();
    lab.del(&netns, &layer2(), &first);
    lab.ip(&format!("link add {name} type veth peer name user0"));
    let second = lab.add(&netns, &layer2());
    assert_ne!(second["interfaces"][1]["name"], name);
    lab.check(&netns, &layer2(), &second).success();
    lab.call("DEL", &netns, &layer2()).run().success();
    let mut left = vec!["br0".to_owned(), "user0".to_owned(), name.to_owned()];
    left.sort();
    assert_eq!(lab.links(), left);
}
