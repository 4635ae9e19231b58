//! Who reaches whom in each mode.

use podwire_testkit::Netns;
use podwire_testkit::probe::{ANSWER, SILENCE, ping};
use podwire_tests::segment::{Segment, config, link, run};
use serde_json::{Value, json};

const OUTSIDE: [u8; 4] = [10, 1, 0, 254];

/// Two containers on one uplink in a mode, 10.1.0.2 and 10.1.0.3.
fn pair(segment: &Segment, mode: &str) -> (Netns, Netns, Value) {
    let config = config("macvlan", &json!({"master": "up0", "mode": mode}));
    let (left, right) = (segment.container("left"), segment.container("right"));
    let checked = segment.add(&config, &left);
    segment.add(&config, &right);
    segment.check(&checked, &left).unwrap();
    assert_eq!(link(&left)["linkinfo"]["info_data"]["mode"], mode);
    (left, right, checked)
}

/// The machine outside sends frames back where they came from, as a switch for
/// vepa does.
fn reflect(segment: &Segment) {
    for command in [
        "ip addr flush dev eth0",
        "ip link add br0 type bridge",
        "ip link set eth0 master br0",
        "ip link set eth0 type bridge_slave hairpin on",
        "ip addr add 10.1.0.254/24 dev br0",
        "ip link set br0 up",
    ] {
        run(&segment.outside, command);
    }
}

#[test]
fn bridge_connects_siblings_and_the_outside() {
    let segment = Segment::new();
    let (left, _, _) = pair(&segment, "bridge");
    ping(&left, [10, 1, 0, 3], ANSWER).unwrap();
    ping(&left, OUTSIDE, ANSWER).unwrap();
}

#[test]
fn private_keeps_siblings_apart_even_behind_a_reflecting_switch() {
    let segment = Segment::new();
    reflect(&segment);
    let (left, _, _) = pair(&segment, "private");
    ping(&left, OUTSIDE, ANSWER).unwrap();
    ping(&left, [10, 1, 0, 3], SILENCE).unwrap_err();
}

#[test]
fn vepa_leaves_siblings_to_the_switch() {
    let segment = Segment::new();
    let (left, _, _) = pair(&segment, "vepa");
    ping(&left, OUTSIDE, ANSWER).unwrap();
    ping(&left, [10, 1, 0, 3], SILENCE).unwrap_err();
    reflect(&segment);
    ping(&left, [10, 1, 0, 3], ANSWER).unwrap();
}

#[test]
fn passthru_takes_the_uplink_for_one_container() {
    let segment = Segment::new();
    let before = segment.world.snapshot();
    let uplink = || segment.world.ip_json(&["link", "show", "dev", "up0"])[0]["address"].clone();
    let own = uplink();
    let mut config = config("macvlan", &json!({"master": "up0", "mode": "passthru"}));
    let (left, right) = (segment.container("left"), segment.container("right"));
    let checked = segment.add(&config, &left);
    assert_eq!(checked["prevResult"]["interfaces"][0]["mac"], own);
    segment.check(&checked, &left).unwrap();
    ping(&left, OUTSIDE, ANSWER).unwrap();

    for mode in ["passthru", "bridge"] {
        config["mode"] = json!(mode);
        let error = segment.call("ADD", &config, &right).run().error(999).to_string();
        assert!(error.contains("up0") && error.contains("passthru"), "{error}");
    }
    assert_eq!(segment.reserved("pods"), ["10.1.0.2"]);
    segment.del(&checked, &left);

    // The address asked for becomes the uplink's, which gets its own back.
    config["mode"] = json!("passthru");
    config["runtimeConfig"] = json!({"mac": "02:00:5e:10:00:07"});
    let checked = segment.add(&config, &left);
    assert_eq!(checked["prevResult"]["interfaces"][0]["mac"], "02:00:5e:10:00:07");
    assert_eq!(uplink(), "02:00:5e:10:00:07");
    segment.check(&checked, &left).unwrap();
    ping(&left, OUTSIDE, ANSWER).unwrap();
    segment.del(&checked, &left);
    assert_eq!(uplink(), own);
    segment.world.snapshot().since(&before).beyond_residue(&[]).assert_empty();
}
