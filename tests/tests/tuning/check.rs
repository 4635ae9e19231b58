//! What CHECK notices, and what it doesn't mind.

use serde_json::json;

use crate::lab::{Lab, everything};

#[test]
fn every_change_is_noticed() {
    let lab = Lab::new();
    let keys = everything();
    for (change, words) in [
        ("ip link set eth0 address 02:00:00:00:00:05", ["MAC address", "02:00:00:00:00:05"]),
        ("ip link set eth0 mtu 1280", ["MTU", "1280"]),
        ("ip link set eth0 promisc off", ["promiscuous", "off"]),
        ("ip link set eth0 allmulticast off", ["allmulti", "off"]),
        ("ip link set eth0 txqueuelen 5", ["transmit queue length", "found 5"]),
        ("sysctl -qw net.ipv4.conf.eth0.log_martians=0", ["IFNAME.log_martians", "found 0"]),
        ("ip link set eth0 down; ip link set eth0 name eth9", ["eth0", "missing"]),
    ] {
        lab.add(&keys);
        lab.check_passes(&keys);
        lab.container.exec(&["sh", "-ec", change]);
        lab.check_fails(&keys, &words);
    }
}

#[test]
fn ways_of_writing_a_value_do_not_count() {
    let lab = Lab::new();
    let keys = json!({
        "mac": "02-00-5E-10-00-AB",
        "sysctl": {"net.ipv4.tcp_rmem": "4096 131072  6291456", "net.ipv4.conf.IFNAME.rp_filter": "02"},
    });
    lab.add(&keys);
    assert_eq!(lab.attributes().0, "02:00:5e:10:00:ab");
    lab.check_passes(&keys);
    let other = json!({"sysctl": {"net.ipv4.tcp_rmem": "4096 131072 6291457"}});
    lab.check_fails(&other, &["tcp_rmem", "6291457"]);
}

/// Somebody looks at the packets.
#[test]
fn a_packet_capture_is_no_difference() {
    let lab = Lab::new();
    let keys = json!({"mtu": 1400});
    lab.add(&keys);
    lab.container.exec(&["ip", "link", "set", "eth0", "promisc", "on"]);
    lab.check_passes(&keys);
    lab.check_passes(&json!({"mtu": 1400, "promisc": false}));
}

#[test]
fn a_sysctl_that_can_only_be_written_is_not_compared() {
    let lab = Lab::new();
    let keys = json!({"sysctl": {"net.ipv4.route.flush": "1"}});
    lab.add(&keys);
    lab.check_passes(&keys);
}
