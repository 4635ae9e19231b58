//! What each key does.

use podwire_testkit::probe::{ANSWER, ping};
use podwire_tests::segment::{Segment, config, is_empty, link, run};
use serde_json::{Value, json};

/// ADD, which is refused and leaves nothing; the error object as text.
#[track_caller]
fn refused(segment: &Segment, code: u64, more: &Value) -> String {
    let container = segment.container("refused");
    let before = segment.world.snapshot();
    let config = config("macvlan", more);
    let error = segment.call("ADD", &config, &container).run().error(code).to_string();
    segment.world.snapshot().since(&before).beyond_residue(&[]).assert_empty();
    assert!(is_empty(&container));
    assert_eq!(segment.reserved("pods"), [""; 0]);
    container.remove();
    error
}

#[test]
fn the_default_route_tells_the_master() {
    let segment = Segment::new();
    let error = refused(&segment, 999, &json!({}));
    assert!(error.contains("no default route interface found"), "{error}");
    segment.host("ip addr add 10.1.0.1/24 dev up0");
    segment.host("ip route add default via 10.1.0.254");
    let container = segment.container("c1");
    let checked = segment.add(&config("macvlan", &json!({})), &container);
    ping(&container, [10, 1, 0, 254], ANSWER).unwrap();
    // The route may move while the container lives.
    segment.host("ip route del default");
    segment.check(&checked, &container).unwrap();
}

#[test]
fn the_default_route_of_ipv6_will_do() {
    let segment = Segment::new();
    segment.host("ip addr add fd01::1/64 dev up0 nodad");
    segment.host("ip -6 route add default via fd01::254");
    let container = segment.container("c1");
    segment.add(&config("macvlan", &json!({})), &container);
    ping(&container, [10, 1, 0, 254], ANSWER).unwrap();
}

#[test]
fn a_master_inside_the_container() {
    let segment = Segment::new();
    let container = segment.container("c1");
    segment.host("ip link set up0 netns c1");
    run(&container, "ip link set up0 up");
    for more in [json!({"linkInContainer": true}), json!({"linkInContainer": true, "master": "x"})]
    {
        let config = config("macvlan", &more);
        let error = segment.call("ADD", &config, &container).run().error(999).to_string();
        assert!(error.contains("in the container"), "{error}");
    }
    let config = config("macvlan", &json!({"master": "up0", "linkInContainer": true}));
    segment.call("STATUS", &config, &container).run().success();
    let checked = segment.add(&config, &container);
    ping(&container, [10, 1, 0, 254], ANSWER).unwrap();
    segment.check(&checked, &container).unwrap();
    segment.del(&checked, &container);
    assert!(container.try_exec(&["ip", "link", "show", "eth0"]).code != 0);
    assert_eq!(segment.reserved("pods"), [""; 0]);
}

#[test]
fn the_mtu_is_at_most_the_masters() {
    let segment = Segment::new();
    segment.host("ip link set up0 mtu 1450");
    let error = refused(&segment, 7, &json!({"master": "up0", "mtu": 1451}));
    assert!(error.contains("invalid MTU 1451, must be [0, master MTU(1450)]"), "{error}");
    refused(&segment, 7, &json!({"master": "up0", "mtu": -1}));
    for (mtu, expected) in [(0, 1450), (1280, 1280), (1450, 1450)] {
        let container = segment.container(&format!("c{mtu}"));
        segment.add(&config("macvlan", &json!({"master": "up0", "mtu": mtu})), &container);
        assert_eq!(link(&container)["mtu"], expected);
    }
}

#[test]
fn what_can_not_be_served_is_refused_by_name() {
    let segment = Segment::new();
    for (code, more, part) in [
        (7, json!({"master": "up0", "mode": "x"}), "unknown macvlan mode: \\\"x\\\""),
        (7, json!({"master": "a/b"}), "master"),
        (6, json!({"master": 7}), "master"),
        (6, json!({"master": "up0", "bcqueuelen": -1}), "bcqueuelen"),
        (6, json!({"master": "up0", "linkInContainer": "yes"}), "linkInContainer"),
        (7, json!({"master": "up0", "mac": "02:00"}), "mac: \\\"02:00\\\""),
        (7, json!({"master": "up0", "mac": "03:00:00:00:00:01"}), "mac"),
        (999, json!({"master": "up1"}), "master \\\"up1\\\""),
        (999, json!({"master": "lo"}), "lo"),
    ] {
        let error = refused(&segment, code, &more);
        assert!(error.contains(part), "{more}: {error}");
    }
    // A port of a bridge carries no macvlan.
    segment.host("ip link add br0 type bridge");
    segment.host("ip link set up0 master br0");
    let error = refused(&segment, 999, &json!({"master": "up0"}));
    assert!(error.contains("port of a bridge"), "{error}");
}

/// The runtime's word counts more than the configuration's.
#[test]
fn who_chooses_the_mac_address() {
    let segment = Segment::new();
    let mac = |number: u8| format!("02:00:5e:10:00:{number:02x}");
    let own = json!({"master": "up0", "mac": mac(1)});
    let mut by_args = own.clone();
    by_args["args"] = json!({"cni": {"mac": mac(3)}});
    let mut by_runtime = by_args.clone();
    by_runtime["runtimeConfig"] = json!({"mac": mac(4)});
    let variable = format!("IgnoreUnknown=1;MAC={}", mac(2));
    for (number, more, args) in [
        (1, &own, ""),
        (2, &own, variable.as_str()),
        (3, &by_args, &variable),
        (4, &by_runtime, ""),
    ] {
        let container = segment.container(&format!("c{number}"));
        let config = config("macvlan", more);
        let call = segment.call("ADD", &config, &container).args(args);
        let result = call.run().success().json();
        assert_eq!(result["interfaces"][0]["mac"], mac(number), "{more} {args}");
        assert_eq!(link(&container)["address"], mac(number), "{more} {args}");
    }
    let container = segment.container("unknown");
    let call = segment.call("ADD", &config("macvlan", &own), &container);
    call.args("mac=02:00:5e:10:00:09").run().failure();
    assert!(is_empty(&container));
}

#[test]
fn the_length_of_the_broadcast_queue() {
    let segment = Segment::new();
    let container = segment.container("c1");
    let length = |container| link(container)["linkinfo"]["info_data"]["bcqueuelen"].clone();
    let queue = config("macvlan", &json!({"master": "up0", "bcqueuelen": 5000}));
    let mut checked = segment.add(&queue, &container);
    assert_eq!(length(&container), 5000);
    segment.check(&checked, &container).unwrap();
    checked["bcqueuelen"] = json!(4000);
    let error = segment.check(&checked, &container).unwrap_err();
    assert!(error.contains("broadcast queue length"), "{error}");
    segment.del(&checked, &container);
    segment.add(&config("macvlan", &json!({"master": "up0", "bcqueuelen": 0})), &container);
    assert_eq!(length(&container), 1000);
}

/// DNS from the configuration replaces that of IPAM, which else is kept.
#[test]
fn dns_is_that_of_the_configuration_or_of_ipam() {
    let segment = Segment::new();
    let ipam = json!({
        "type": "static", "addresses": [{"address": "10.1.0.9/24"}],
        "dns": {"nameservers": ["10.1.0.53"]},
    });
    let mut more = json!({"master": "up0", "ipam": ipam});
    for expected in ["10.1.0.53", "192.0.2.53"] {
        let container = segment.container(expected);
        let checked = segment.add(&config("macvlan", &more), &container);
        assert_eq!(checked["prevResult"]["dns"]["nameservers"], json!([expected]));
        segment.del(&checked, &container);
        more["dns"] = json!({"nameservers": ["192.0.2.53"]});
    }
}

#[test]
fn without_ipam_it_is_for_layer_2_only() {
    let segment = Segment::new();
    let container = segment.container("c1");
    let checked =
        segment.add(&config("macvlan", &json!({"master": "up0", "ipam": {}})), &container);
    let result = &checked["prevResult"];
    assert_eq!(result["ips"], Value::Null, "{result}");
    assert_eq!(result["interfaces"][0]["mac"], link(&container)["address"]);
    run(&container, "ip addr add 10.1.0.7/24 dev eth0");
    ping(&container, [10, 1, 0, 254], ANSWER).unwrap();
    segment.check(&checked, &container).unwrap();
    segment.call("STATUS", &checked, &container).run().success();
    segment.del(&checked, &container);
    assert!(is_empty(&container));
}
