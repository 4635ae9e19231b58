//! Every way to come home.

use podwire_tests::lab::{
    addresses, ip, is_bookkeeping, link, links, reservations, with, with_previous,
};
use podwire_tests::wait_until;
use serde_json::json;

use crate::{addressed, assert_home, lab, plain, send_home};

/// B004: each way to lose the namespace; the reservation is gone after the first
/// DEL.
#[test]
fn b004_the_address_is_released_whatever_became_of_the_namespace() {
    for with_record in [true, false] {
        for way in ["kept", "removed", "empty", "file", "held"] {
            let (lab, _peer) = lab();
            let before = lab.world.snapshot();
            let netns = lab.container_without_detection("c1");
            let result = lab.add(&netns, &addressed());
            assert_eq!(reservations("n").len(), 2);
            let sent = if with_record { with_previous(&addressed(), &result) } else { addressed() };
            let held = (way == "held").then(|| netns.open());
            if ["removed", "file", "held"].contains(&way) {
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
                assert!(reservations("n").is_empty(), "{way}");
            }
            if ["kept", "empty"].contains(&way) {
                assert_home(&lab);
                let left = lab.world.snapshot().since(&before);
                left.beyond_residue(&[]).assert_empty();
            }
            // A virtual device is gone with its namespace, and so is its record.
            assert!(!has_records(), "{way}");
            drop(held);
        }
    }
}

/// Whether anything is recorded of any device.
fn has_records() -> bool {
    std::fs::read_dir("/run/podwire/devices").is_ok_and(|mut entries| entries.next().is_some())
}

#[test]
fn b083_a_device_that_the_container_renamed_comes_home() {
    for with_record in [true, false] {
        let (lab, _peer) = lab();
        let netns = lab.container_without_detection("c1");
        let result = lab.add(&netns, &addressed());
        ip(&netns, "link set net1 down");
        ip(&netns, "link set net1 name wi");
        ip(&netns, "link set wi up");
        let sent = if with_record { with_previous(&addressed(), &result) } else { addressed() };
        lab.call("DEL", &netns, &sent).run().success();
        assert_home(&lab);
        assert!(reservations("n").is_empty());
    }
}

/// The host has another device of the name: the address is released all the
/// same, the device waits inside, and a later DEL brings it home.
#[test]
fn b083_a_name_that_is_taken_on_the_host_can_be_tried_again() {
    let (lab, _peer) = lab();
    let netns = lab.container_without_detection("c1");
    let result = lab.add(&netns, &addressed());
    lab.ip("link add hdev type ifb");
    for _ in 0..2 {
        let sent = with_previous(&addressed(), &result);
        let error = lab.call("DEL", &netns, &sent).run().failure().json();
        assert!(error["msg"].as_str().unwrap().contains("can't return as hdev"), "{error}");
        assert_eq!(links(&netns), ["net1"]);
        assert!(addresses(&netns, "net1").is_empty() && reservations("n").is_empty());
    }
    lab.ip("link del hdev");
    lab.del(&netns, &addressed(), &result);
    assert_home(&lab);
}

#[test]
fn b083_a_device_that_is_up_inside_comes_home() {
    let (lab, _peer) = lab();
    lab.ip("link set hdev down");
    let netns = lab.container_without_detection("c1");
    let result = lab.add(&netns, &plain());
    ip(&netns, "link set net1 up");
    lab.del(&netns, &plain(), &result);
    let device = link(lab.world.host(), "hdev").unwrap();
    assert!(!device["flags"].as_array().unwrap().contains(&json!("UP")), "down as it was");
}

/// The kernel brings hardware home at the end of its namespace, under the
/// container's name for it: here it is moved by hand. DEL gives it its name
/// back, and so does the next ADD when there was no DEL.
#[test]
fn b083_a_device_that_came_back_by_itself_gets_its_name() {
    for next in ["DEL", "DEL without a namespace", "ADD"] {
        let (lab, _peer) = lab();
        let netns = lab.container_without_detection("c1");
        let result = lab.add(&netns, &addressed());
        send_home(&lab, &netns, "net1");
        netns.remove();
        assert_eq!(links(lab.world.host()), ["net1"]);
        if next == "ADD" {
            let new = lab.container("c2");
            let second = lab.add(&new, &plain());
            // The late DEL of the first doesn't take it from the second.
            lab.del(&netns, &addressed(), &result);
            assert_eq!(links(&new), ["net1"]);
            lab.del(&new, &plain(), &second);
            assert!(link(lab.world.host(), "hdev").is_some());
        } else {
            let mut call = lab.call("DEL", &netns, &with_previous(&addressed(), &result));
            if next != "DEL" {
                call = call.env("CNI_NETNS", "");
            }
            call.run().success();
            assert_home(&lab);
        }
        assert!(reservations("n").is_empty());
    }
}

/// B083: the same for a device that is found by its address, so under any name.
#[test]
fn b083_a_device_found_by_its_address_gets_its_name_back() {
    let (lab, _peer) = lab();
    let [old, new] = ["c1", "c2"].map(|name| lab.container(name));
    let config = with(&plain(), &json!({"device": null, "hwaddr": "02:00:00:00:00:d1"}));
    lab.add(&old, &config);
    send_home(&lab, &old, "net1");
    old.remove();
    let result = lab.add(&new, &config);
    assert_eq!(link(&new, "net1").unwrap()["ifalias"], "hdev");
    lab.del(&new, &config, &result);
    assert_home(&lab);
    lab.call("DEL", &old, &config).run().success();
    assert_home(&lab);
}

/// Virtual devices go with the namespace; the next ADD finds a new one.
#[test]
fn b083_a_device_that_is_gone_is_forgotten() {
    let (lab, _peer) = lab();
    let netns = lab.container_without_detection("c1");
    let result = lab.add(&netns, &addressed());
    ip(&netns, "link del net1");
    lab.del(&netns, &addressed(), &result);
    assert!(links(lab.world.host()).is_empty() && reservations("n").is_empty());
    lab.ip("link add hdev type ifb");
    let new = lab.container("c2");
    lab.add(&new, &addressed());
    assert_eq!(links(&new), ["net1"]);
}

#[test]
fn b083_the_container_may_have_an_interface_of_the_hosts_name() {
    let (lab, _peer) = lab();
    let netns = lab.container_without_detection("c1");
    ip(&netns, "link add hdev type ifb");
    let result = lab.add(&netns, &plain());
    assert_eq!(links(&netns), ["hdev", "net1"]);
    lab.del(&netns, &plain(), &result);
    assert_home(&lab);
    assert_eq!(links(&netns), ["hdev"]);
}

/// By its address, with another name by the time of DEL.
#[test]
fn b083_a_device_that_is_named_otherwise_than_by_name_comes_home() {
    let (lab, _peer) = lab();
    let netns = lab.container_without_detection("c1");
    let config = with(&plain(), &json!({"device": null, "hwaddr": "02:00:00:00:00:d1"}));
    let result = lab.add(&netns, &config);
    ip(&netns, "link set net1 down");
    ip(&netns, "link set net1 name wi address 02:00:00:00:00:77 mtu 1300");
    lab.del(&netns, &config, &result);
    assert_home(&lab);
}

/// A device in a stranger's namespace at the old path, moved there by another
/// attachment, is left alone.
#[test]
fn b020_a_strangers_device_is_left_alone() {
    let (lab, peer) = lab();
    let old = lab.container_without_detection("c1");
    let result = lab.add(&old, &addressed());
    old.remove();
    wait_until("the end of the device", || links(&peer).is_empty());
    lab.ip("link add hdev type ifb");
    let new = lab.container_without_detection("c1");
    let other = with(&plain(), &json!({"name": "other"}));
    lab.call("ADD", &new, &other).container("stranger").run().success();
    lab.del(&old, &addressed(), &result);
    assert_eq!(links(&new), ["net1"]);
    assert!(reservations("n").is_empty());
}

/// What can't be understood is no reason to keep what can be found.
#[test]
fn a_broken_configuration_does_not_stop_del() {
    let (lab, _peer) = lab();
    let netns = lab.container_without_detection("c1");
    lab.add(&netns, &addressed());
    let broken = with(
        &addressed(),
        &json!({"device": 7, "useInterfaceNetwork": "maybe", "pciBusID": "0000:ff:ff.f",
            "runtimeConfig": {"deviceID": "absent"}, "prevResult": {"cniVersion": "1.1.0", "ips": 7}}),
    );
    lab.call("DEL", &netns, &broken).run().success();
    assert_home(&lab);
    assert!(reservations("n").is_empty());
}

/// Without a record, as after a reboot of nothing but `/run`, the alias does.
#[test]
fn the_alias_alone_brings_the_device_home() {
    let (lab, _peer) = lab();
    let before = lab.world.snapshot();
    let netns = lab.container_without_detection("c1");
    let result = lab.add(&netns, &plain());
    std::fs::remove_dir_all("/run/podwire/devices").unwrap();
    lab.del(&netns, &plain(), &result);
    lab.ip("link set hdev up");
    assert_home(&lab);
    lab.world.snapshot().since(&before).without(is_bookkeeping).assert_empty();
}

/// B101: a container with rights over its network gives a link of its own the device's
/// name, alias and MAC address: what comes to the host is the device.
#[test]
fn b101_a_containers_imitation_does_not_come_to_the_host() {
    for with_record in [true, false] {
        let (lab, _peer) = lab();
        let netns = lab.container_without_detection("c1");
        let before = lab.world.snapshot();
        let result = lab.add(&netns, &plain());
        let mac = result["interfaces"][0]["mac"].as_str().unwrap();
        ip(&netns, "link set net1 down");
        ip(&netns, "link set net1 name real");
        ip(&netns, &format!("link add net1 address {mac} type bridge"));
        ip(&netns, "link set net1 alias hdev");
        let sent = if with_record { with_previous(&plain(), &result) } else { plain() };
        lab.call("DEL", &netns, &sent).run().success();
        assert_eq!(link(&netns, "net1").unwrap()["linkinfo"]["info_kind"], "bridge");
        assert_eq!(link(&netns, "real"), None);
        assert_home(&lab);
        lab.world.snapshot().since(&before).without(is_bookkeeping).assert_empty();
    }
}
