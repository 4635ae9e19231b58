//! Hardware outlives the namespace that it was moved to, and nothing virtual may take
//! its place. The kernel knows hardware by having no kind of link; none of that is in a
//! world of tests, so here a record says of a virtual device that it is hardware.

use std::fs;
use std::path::PathBuf;

use podwire_testkit::Netns;
use podwire_tests::lab::{Lab, ip, link, links, reservations, with_previous};
use serde_json::{Value, json};

use crate::{addressed, assert_home, lab, send_home};

/// The record of the one device that was moved.
fn record() -> Option<PathBuf> {
    let mut entries = fs::read_dir("/run/podwire/devices").ok()?;
    entries.next().map(|entry| entry.unwrap().path())
}

/// An attachment whose device counts as hardware if so asked.
fn attached(is_hardware: bool) -> (Lab, Netns, Netns, Value) {
    let (lab, peer) = lab();
    let netns = lab.container_without_detection("c1");
    let result = lab.add(&netns, &addressed());
    let place = record().unwrap();
    let mut content: Value = serde_json::from_slice(&fs::read(&place).unwrap()).unwrap();
    assert_eq!(content["physical"], false, "a veth is no hardware");
    content["physical"] = json!(is_hardware);
    fs::write(&place, content.to_string()).unwrap();
    let previous = with_previous(&addressed(), &result);
    (lab, peer, netns, previous)
}

/// Somebody may hold the ended namespace still, and then the kernel brings hardware home
/// later: only its record will tell whose it was. A virtual device has died.
#[test]
fn b083_hardware_that_is_nowhere_stays_known_and_virtual_devices_are_forgotten() {
    for is_hardware in [true, false] {
        let (lab, _peer, netns, previous) = attached(is_hardware);
        netns.remove();
        for _ in 0..2 {
            let call = lab.call("DEL", &netns, &previous).run().success();
            assert_eq!(
                call.stderr.contains("neither in the container nor on the host"),
                is_hardware
            );
            assert!(reservations("n").is_empty(), "the addresses are free in any case");
            assert_eq!(record().is_some(), is_hardware);
        }
        lab.gc(&addressed(), &[]);
        assert_eq!(record().is_some(), is_hardware, "GC asks for no less than DEL");
    }
}

/// A container may give any alias and MAC address to a link of its own, which must not
/// come to the host under the name of the hardware.
#[test]
fn b083_a_virtual_link_does_not_come_home_in_place_of_hardware() {
    for is_hardware in [true, false] {
        let (lab, _peer, netns, previous) = attached(is_hardware);
        // As the record has it, the veth in the container isn't the device.
        assert_eq!(link(&netns, "net1").unwrap()["ifalias"], "hdev");
        lab.call("DEL", &netns, &previous).run().success();
        assert_eq!(links(&netns).is_empty(), !is_hardware);
        if is_hardware {
            assert_eq!(links(lab.world.host()), [""; 0]);
            assert!(record().is_some());
        } else {
            assert_home(&lab);
        }
    }
}

/// The same on the host: which link may DEL take for the one that came back by itself?
#[test]
fn b083_only_hardware_is_renamed_to_what_hardware_was() {
    for is_hardware in [true, false] {
        let (lab, _peer, netns, previous) = attached(is_hardware);
        send_home(&lab, &netns, "net1");
        netns.remove();
        lab.call("DEL", &netns, &previous).run().success();
        if is_hardware {
            assert_eq!(links(lab.world.host()), ["net1"]);
            assert!(record().is_some());
        } else {
            assert_home(&lab);
            assert!(record().is_none());
        }
    }
}

/// A link of another index and address is not the device, whatever its alias says.
#[test]
fn b083_a_link_that_only_has_the_alias_is_not_taken() {
    let (lab, _peer, netns, previous) = attached(false);
    ip(&netns, "link del net1");
    lab.ip("link add stranger address 02:00:00:00:00:77 type ifb");
    lab.ip("link set stranger alias hdev");
    lab.call("DEL", &netns, &previous).run().success();
    assert_eq!(links(lab.world.host()), ["stranger"]);
    assert!(record().is_none() && reservations("n").is_empty());
}
