//! Devices of the host that are in containers while the plugins change.

use std::path::Path;

use podwire_testkit::probe::{self, ANSWER};
use podwire_tests::lab::{addresses, ip, link, reservations};
use podwire_tests::{Container, Plugins};
use serde_json::{Value, json};

use crate::lab::Lab;

const RECORDS: &str = "/run/podwire/devices";

/// A network of one device.
fn network(device: &str) -> Value {
    json!({
        "cniVersion": "1.0.0",
        "name": device,
        "plugins": [{
            "type": "host-device", "device": device,
            "ipam": {"type": "host-local", "subnet": "10.1.0.0/24", "rangeStart": "10.1.0.10"},
        }],
    })
}

/// A device whose other end is in a namespace of its own, at 10.1.0.1.
fn device(lab: &Lab, name: &str, mac: &str) {
    let far = lab.node.world.netns(&format!("far-{name}"));
    let line =
        format!("link add {name} mtu 1400 address {mac} type veth peer name eth0 netns far-{name}");
    ip(lab.node.world.host(), &line);
    ip(lab.node.world.host(), &format!("link set {name} up"));
    ip(&far, "link set eth0 up");
    ip(&far, "addr add 10.1.0.1/24 dev eth0");
}

/// The container has the device, and its segment.
#[track_caller]
fn is_wired(container: &Container) {
    assert_eq!(addresses(&container.netns, "eth0").len(), 1);
    probe::ping(&container.netns, std::net::Ipv4Addr::new(10, 1, 0, 1), ANSWER).unwrap();
}

/// The device is on the host as it was, and nobody has its address.
#[track_caller]
fn is_home(lab: &Lab, name: &str, mac: &str) {
    let found = link(lab.node.world.host(), name).unwrap_or_else(|| panic!("{name} is not back"));
    // Release 1.1.1 leaves the name that it noted there.
    assert!(found.get("ifalias").is_none_or(|alias| *alias == json!(name)), "{found:#}");
    assert_eq!((&found["mtu"], &found["address"]), (&json!(1400), &json!(mac)));
    assert!(addresses(lab.node.world.host(), name).is_empty());
    assert!(reservations(name).is_empty());
}

fn records() -> usize {
    std::fs::read_dir(RECORDS).map_or(0, |entries| {
        let names = entries.map(|entry| entry.unwrap().file_name());
        names.filter(|name| Path::new(name).extension().is_some_and(|end| end == "json")).count()
    })
}

fn there_and_back(plugins: Plugins) {
    let lab = Lab::new(plugins);
    let node = &lab.node;
    let devices = ["hold", "hnew", "hlater"];
    let macs = ["02:00:00:00:00:d1", "02:00:00:00:00:d2", "02:00:00:00:00:d3"];
    for (name, mac) in devices.iter().zip(macs) {
        device(&lab, name, mac);
    }
    let [on_old, on_new, on_later] = devices.map(|name| node.network(&network(name)));
    let old = node.container("old");
    node.add(&on_old, &old);

    lab.migrate("").success();
    let (new, later) = (node.container("new"), node.container("later"));
    node.add(&on_new, &new);
    node.add(&on_later, &later);
    assert_eq!(records(), 2);
    node.check(&on_old, &old).unwrap();

    // Ours know how their devices were: the plugin stays until they are home.
    let back = lab.migrate("--rollback --output json");
    assert_eq!(back.code, 3, "{back:#?}");
    assert_eq!(back.json()["forwarding"], json!(["host-device"]));
    for (network, container) in [(&on_old, &old), (&on_new, &new), (&on_later, &later)] {
        is_wired(container);
        node.check(network, container).unwrap_or_else(|error| panic!("{}: {error}", container.id));
    }
    node.del(&on_new, &new);
    is_home(&lab, "hnew", macs[1]);
    // A new ADD is Go's, also of a device that ours had.
    let again = node.container("again");
    node.add(&on_new, &again);
    is_wired(&again);
    assert_eq!(records(), 1);
    assert_eq!(lab.migrate("--rollback").code, 3);
    node.del(&on_later, &later);
    is_home(&lab, "hlater", macs[2]);
    let text = lab.migrate("--rollback").success().stdout;
    assert!(text.contains("nothing of Podwire is left"), "{text}");
    lab.assert_as_before();
    assert_eq!(records(), 0);

    for (network, container, name, mac) in
        [(&on_old, &old, "hold", macs[0]), (&on_new, &again, "hnew", macs[1])]
    {
        is_wired(container);
        node.del(network, container);
        is_home(&lab, name, mac);
    }
}

#[test]
fn devices_come_home_before_and_after_the_way_back_to_go_1_1_1() {
    there_and_back(Plugins::Debian);
}

#[test]
fn devices_come_home_before_and_after_the_way_back_to_go_1_9_1() {
    there_and_back(Plugins::Sid);
}

/// What Go attached goes home by ours; then the way back is free at once.
#[test]
fn a_device_that_go_moved_is_brought_home_by_ours() {
    for plugins in [Plugins::Debian, Plugins::Sid] {
        std::thread::scope(|scope| {
            scope.spawn(move || {
                let lab = Lab::new(plugins);
                device(&lab, "hold", "02:00:00:00:00:d1");
                let network = lab.node.network(&network("hold"));
                let old = lab.node.container("old");
                lab.node.add(&network, &old);
                lab.migrate("").success();
                is_wired(&old);
                lab.node.del(&network, &old);
                is_home(&lab, "hold", "02:00:00:00:00:d1");
                lab.migrate("--rollback").success();
                lab.assert_as_before();
            });
        });
    }
}
