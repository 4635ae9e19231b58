//! Which frames pass between containers of one bridge.

use std::net::IpAddr;
use std::time::Duration;

use podwire_testkit::probe::{ANSWER, ping};
use podwire_testkit::{Feature, Netns};
use serde_json::json;

use crate::lab::{Lab, network};

fn reaches(from: &Netns, to: &str) -> bool {
    let to: IpAddr = to.parse().unwrap();
    ping(from, to, ANSWER).is_ok()
}

fn does_not_reach(from: &Netns, to: &str) -> bool {
    let to: IpAddr = to.parse().unwrap();
    ping(from, to, Duration::from_millis(600)).is_err()
}

#[test]
fn containers_reach_each_other_within_a_vlan_only() {
    let lab = Lab::new();
    let join = |name: &str, address: &str, vlan: u16| {
        let netns = lab.world.netns(name);
        lab.add(&netns, &network(address, &json!({"vlan": vlan})));
        netns
    };
    let one = join("one", "10.1.0.1/24", 100);
    let _two = join("two", "10.1.0.2/24", 100);
    let other = join("other", "10.1.0.3/24", 200);
    assert!(reaches(&one, "10.1.0.2"));
    assert!(does_not_reach(&one, "10.1.0.3"));
    assert!(does_not_reach(&other, "10.1.0.1"));
}

/// Tagged frames pass a trunk, in the VLANs that it was given; untagged ones
/// are of its own VLAN.
#[test]
fn a_trunk_passes_tagged_frames_of_its_vlans() {
    let lab = Lab::new();
    lab.world.needs(Feature::Vlan);
    let join = |name: &str, address: &str, vlan: u16| {
        let netns = lab.world.netns(name);
        lab.add(&netns, &network(address, &json!({"vlan": vlan})));
        netns
    };
    join("untagged", "10.1.0.1/24", 100);
    join("in200", "10.2.0.1/24", 200);
    join("in300", "10.3.0.1/24", 300);
    let trunk = lab.world.netns("trunk");
    lab.add(&trunk, &network("10.1.0.2/24", &json!({"vlan": 100, "vlanTrunk": [{"id": 200}]})));
    for (vlan, address) in [("200", "10.2.0.2/24"), ("300", "10.3.0.2/24")] {
        let name = format!("eth0.{vlan}");
        trunk.exec(&["ip", "link", "add", "link", "eth0", &name, "type", "vlan", "id", vlan]);
        trunk.exec(&["ip", "addr", "add", address, "dev", &name]);
        trunk.exec(&["ip", "link", "set", &name, "up"]);
    }
    assert!(reaches(&trunk, "10.1.0.1"), "untagged");
    assert!(reaches(&trunk, "10.2.0.1"), "tagged 200");
    assert!(does_not_reach(&trunk, "10.3.0.1"), "tagged 300, which it was not given");
}
