//! `ipvlan` with packets: its modes and flags, chained and not, and its life.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use podwire_testkit::probe::{ANSWER, SILENCE, ping};
use podwire_testkit::{Feature, Netns};
use podwire_tests::segment::{Segment, config, is_empty, link, run};
use serde_json::{Value, json};

/// A segment on a kernel that has the kind.
fn segment() -> Segment {
    let segment = Segment::new();
    segment.world.needs(Feature::Ipvlan);
    segment
}

/// Two containers on the uplink, 10.1.0.2 and 10.1.0.3, without a gateway; and the
/// first one's configuration with its result.
fn pair(segment: &Segment, more: &Value) -> (Netns, Netns, Value) {
    let mut first = Value::Null;
    let containers = ["left", "right"].map(|id| segment.container(id));
    for (container, address) in containers.iter().zip(["10.1.0.2/24", "10.1.0.3/24"]) {
        let mut config = config("ipvlan", more);
        config["master"] = json!("up0");
        config["ipam"] = json!({
            "type": "static", "addresses": [{"address": address}],
            "routes": [{"dst": "0.0.0.0/0"}],
        });
        let checked = segment.add(&config, container);
        if first.is_null() {
            first = checked;
        }
    }
    let [left, right] = containers;
    segment.check(&first, &left).unwrap();
    (left, right, first)
}

/// L2 unless asked; the MAC address is the master's. One mode serves all children of a
/// device: who asks for another changes it for all, and CHECK of the others says so.
#[test]
fn l2_connects_siblings_and_the_outside() {
    let segment = segment();
    let (left, _, checked) = pair(&segment, &json!({}));
    let shown = link(&left);
    assert_eq!(shown["linkinfo"]["info_data"]["mode"], "l2", "{shown}");
    let uplink = segment.world.ip_json(&["link", "show", "dev", "up0"]);
    assert_eq!(shown["address"], uplink[0]["address"]);
    assert_eq!(checked["prevResult"]["interfaces"][0]["mac"], shown["address"]);
    for key in ["net.ipv4.conf.eth0.arp_notify", "net.ipv6.conf.eth0.ndisc_notify"] {
        assert_eq!(run(&left, &format!("sysctl -n {key}")).stdout.trim(), "1", "{key}");
    }
    ping(&left, [10, 1, 0, 3], ANSWER).unwrap();
    ping(&left, [10, 1, 0, 254], ANSWER).unwrap();

    let third = segment.container("third");
    let layer_3 = config("ipvlan", &json!({"master": "up0", "mode": "l3", "ipam": {}}));
    segment.add(&layer_3, &third);
    let error = segment.check(&checked, &left).unwrap_err();
    assert!(error.contains("ipvlan mode: expected l2, found l3"), "{error}");
}

/// Nobody answers ARP: the machine outside reaches the containers through the host.
#[test]
fn l3_and_l3s_are_routed_by_the_host() {
    let segment = segment();
    segment.host("ip addr add 10.2.0.1/24 dev up0");
    run(&segment.outside, "ip addr flush dev eth0");
    run(&segment.outside, "ip addr add 10.2.0.254/24 dev eth0");
    run(&segment.outside, "ip route add 10.1.0.0/24 via 10.2.0.1");
    for mode in ["l3", "l3s"] {
        let (left, right, checked) = pair(&segment, &json!({"mode": mode}));
        assert_eq!(link(&left)["linkinfo"]["info_data"]["mode"], mode);
        ping(&left, [10, 1, 0, 3], ANSWER).unwrap();
        ping(&left, [10, 2, 0, 254], ANSWER).unwrap();
        ping(&segment.outside, [10, 1, 0, 2], ANSWER).unwrap();
        for container in [left, right] {
            segment.del(&checked, &container);
            container.remove();
        }
    }
}

#[test]
fn private_and_vepa_keep_siblings_apart() {
    let segment = segment();
    for flag in ["private", "vepa"] {
        let (left, right, mut checked) = pair(&segment, &json!({"flag": flag}));
        ping(&left, [10, 1, 0, 254], ANSWER).unwrap();
        ping(&left, [10, 1, 0, 3], SILENCE).unwrap_err();
        checked["flag"] = json!("bridge");
        let error = segment.check(&checked, &left).unwrap_err();
        assert!(error.contains("ipvlan flag: expected bridge"), "{error}");
        for container in [left, right] {
            segment.del(&checked, &container);
            container.remove();
        }
    }
}

/// Behind other plugins their interface is the master, and their addresses are taken
/// unless there is IPAM.
#[test]
fn the_interface_and_addresses_before_are_taken() {
    let segment = segment();
    let container = segment.container("c1");
    let mut chained = config("ipvlan", &json!({"ipam": {}}));
    chained["prevResult"] = json!({
        "cniVersion": "1.1.0",
        "interfaces": [{"name": "up0"}],
        "ips": [{"address": "10.1.0.9/24", "gateway": "10.1.0.254", "interface": 0}],
        "routes": [{"dst": "0.0.0.0/0"}],
        "dns": {"nameservers": ["10.1.0.53"]},
    });
    let checked = segment.add(&chained, &container);
    let result = &checked["prevResult"];
    assert_eq!(result["interfaces"].as_array().unwrap().len(), 1, "{result}");
    assert_eq!(result["interfaces"][0]["name"], "eth0");
    assert_eq!(result["ips"][0]["address"], "10.1.0.9/24");
    assert_eq!(result["dns"]["nameservers"], json!(["10.1.0.53"]));
    ping(&container, [10, 1, 0, 254], ANSWER).unwrap();
    // STATUS speaks of a master that isn't there.
    let absent = config("ipvlan", &json!({"master": "absent0"}));
    let error = segment.call("STATUS", &absent, &container).run().error(50);
    assert!(error.to_string().contains("absent0"), "{error}");
    // No master is known to CHECK and STATUS.
    segment.check(&checked, &container).unwrap();
    segment.call("STATUS", &checked, &container).run().success();
    segment.del(&checked, &container);
    assert!(is_empty(&container));

    let with_ipam = json!({"dns": {"nameservers": ["192.0.2.53"]}});
    let mut with_ipam = config("ipvlan", &with_ipam);
    with_ipam["prevResult"] = chained["prevResult"].clone();
    let checked = segment.add(&with_ipam, &container);
    let result = &checked["prevResult"];
    assert_eq!(result["ips"][0]["address"], "10.1.0.2/24", "{result}");
    assert_eq!(result["dns"]["nameservers"], json!(["192.0.2.53"]));
    segment.del(&checked, &container);
    assert_eq!(segment.reserved("pods"), [""; 0]);
}

/// CHECK, unlike Go's, works where the default route tells the master, and DEL where
/// nothing tells it any more. A failed ADD leaves neither interface nor address.
#[test]
fn a_whole_life() {
    let segment = segment();
    segment.host("ip addr add 10.1.0.250/24 dev up0");
    segment.host("ip route add default via 10.1.0.254");
    let container = segment.container("c1");
    let before = (segment.world.snapshot(), container.snapshot());
    for version in ["0.2.0", "1.1.0"] {
        let mut config = config("ipvlan", &json!({"cniVersion": version, "mtu": 1400}));
        config["ipam"]["ranges"] = json!([[{"subnet": "10.1.0.0/24"}], [{"subnet": "fd01::/64"}]]);
        let checked = segment.add(&config, &container);
        assert_eq!(link(&container)["mtu"], 1400);
        ping(&container, "fd01::254".parse::<std::net::IpAddr>().unwrap(), ANSWER).unwrap();
        if version >= "0.4.0" {
            segment.check(&checked, &container).unwrap();
        }
        segment.host("ip route del default");
        if version >= "0.4.0" {
            segment.check(&checked, &container).unwrap();
            segment.del(&checked, &container);
        }
        segment.del(&config, &container);
        assert!(is_empty(&container) && segment.reserved("pods").is_empty());
        segment.host("ip route add default via 10.1.0.254");
    }
    let mut lost = config("ipvlan", &json!({"master": "up0"}));
    lost["ipam"]["routes"] = json!([{"dst": "10.9.0.0/16", "gw": "10.200.0.1", "scope": 253}]);
    segment.call("ADD", &lost, &container).run().failure();
    segment.world.snapshot().since(&before.0).beyond_residue(&[]).assert_empty();
    container.snapshot().since(&before.1).assert_empty();
    // A device has children of one kind.
    segment.host("ip link add link up0 name m0 type macvlan");
    let good = config("ipvlan", &json!({"master": "up0"}));
    let error = segment.call("ADD", &good, &container).run().error(999).to_string();
    assert!(error.contains("children of one kind"), "{error}");
    segment.host("ip link del m0");

    segment.host("ip link set up0 netns c1");
    run(&container, "ip link set up0 up");
    let inside = config("ipvlan", &json!({"master": "up0", "linkInContainer": true}));
    let checked = segment.add(&inside, &container);
    ping(&container, [10, 1, 0, 254], ANSWER).unwrap();
    segment.check(&checked, &container).unwrap();
    segment.del(&checked, &container);
    assert_eq!(segment.reserved("pods"), [""; 0]);
}
