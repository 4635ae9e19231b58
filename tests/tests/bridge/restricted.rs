//! Where not everything is allowed: rootless, read-only /proc/sys, no IPv6.

use serde_json::json;

use crate::lab::{Lab, addresses, dual, ip, is_bookkeeping, layer2, pods, with};

/// Read-only /proc/sys is fine where the values are right already, and an
/// error that names the key where they aren't.
#[test]
fn read_only_proc_sys_is_fine_with_the_right_values() {
    let lab = Lab::new();
    let (one, two) = (lab.world.netns("c1"), lab.world.netns("c2"));
    let config = with(&dual(), &json!({"ipMasq": true}));
    lab.add(&one, &config);
    lab.world.exec(&["mount", "--bind", "/proc/sys", "/proc/sys"]);
    lab.world.exec(&["mount", "-o", "remount,bind,ro", "/proc/sys"]);
    let result = lab.call("ADD", &two, &config).run().success().json();
    lab.check(&two, &config, &result).success();
    lab.del(&two, &config, &result);
    assert_eq!(Lab::reservations("n").len(), 2);
}

#[test]
fn read_only_proc_sys_with_wrong_values_is_said_and_undone() {
    let lab = Lab::new();
    let netns = lab.world.netns("c1");
    lab.world.exec(&["mount", "--bind", "/proc/sys", "/proc/sys"]);
    lab.world.exec(&["mount", "-o", "remount,bind,ro", "/proc/sys"]);
    let before = lab.world.snapshot();
    let error = lab.call("ADD", &netns, &pods()).run().error(999);
    let text = error.to_string();
    assert!(text.contains("net/ipv4/ip_forward") && text.contains("\\\"1\\\""), "{text}");
    assert!(error["details"].as_str().unwrap().contains("set it on the host beforehand"), "{text}");
    lab.world.snapshot().since(&before).without(is_bookkeeping).assert_empty();
    assert!(Lab::reservations("n").is_empty());
}

/// IPv6 switched off by sysctl, on the host and inside: IPv4 works, and IPv6
/// is switched on for the interfaces that get an address.
#[test]
fn ipv6_switched_off_is_switched_on_where_it_is_wanted() {
    let lab = Lab::new();
    let (one, two) = (lab.world.netns("c1"), lab.world.netns("c2"));
    let off = |netns: &podwire_testkit::Netns| {
        for name in ["all", "default"] {
            let key = format!("/proc/sys/net/ipv6/conf/{name}/disable_ipv6");
            netns.run(|| std::fs::write(key, "1")).unwrap();
        }
    };
    [lab.world.host(), &one, &two].into_iter().for_each(off);
    let result = lab.add(&one, &pods());
    assert_eq!(one.exec(&["cat", "/proc/sys/net/ipv6/conf/eth0/disable_ipv6"]).stdout, "1\n");
    lab.check(&one, &pods(), &result).success();
    lab.del(&one, &pods(), &result);
    let result = lab.add(&two, &dual());
    assert_eq!(addresses(&two, "eth0").len(), 2);
    lab.check(&two, &dual(), &result).success();
    let gateway: std::net::IpAddr = "fd00:1::1".parse().unwrap();
    podwire_testkit::probe::ping(&two, gateway, podwire_testkit::probe::ANSWER).unwrap();
    lab.del(&two, &dual(), &result);
}

/// The whole life by a user without any privilege.
#[test]
fn rootless_the_whole_life_works() {
    let lab = Lab::new();
    let directory = lab.world.plugin_directory();
    let config = with(&dual(), &json!({"ipMasq": true, "macspoofchk": true}));
    let script = lab.world.write(
        "rootless.sh",
        format!(
            r#"set -eu
mount -t tmpfs t /run; mkdir -p /run/netns /run/cni
mount -t tmpfs t /var/lib/cni
ip link set lo up
ip netns add c1
export CNI_CONTAINERID=c1 CNI_NETNS=/run/netns/c1 CNI_IFNAME=eth0 CNI_PATH={directory}
printf '%s' '{config}' > /run/config
CNI_COMMAND=ADD {directory}/bridge < /run/config > /run/result
printf '%s,"prevResult":%s}}' "$(sed 's/}}$//' /run/config)" "$(cat /run/result)" > /run/check
CNI_COMMAND=CHECK {directory}/bridge < /run/check
ip netns exec c1 ping -c 1 -W 2 10.1.0.1 > /dev/null
CNI_COMMAND=DEL {directory}/bridge < /run/check
ip -o link show type veth | wc -l
"#,
            directory = directory.display(),
        ),
    );
    // The program must be readable for everyone on the way to it.
    let output = lab.world.exec(&["unshare", "-Urnm", "sh", script.to_str().unwrap()]);
    assert_eq!(output.stdout.trim(), "0", "{output:#?}");
    assert!(lab.links().is_empty(), "nothing outside was touched");
}

/// An interface in the container may be of any user's making meanwhile.
#[test]
fn a_container_that_renames_its_interface_is_removed_all_the_same() {
    let lab = Lab::new();
    let netns = lab.world.netns("c1");
    let result = lab.add(&netns, &layer2());
    // Kernels before 6.2 rename no link that is up.
    ip(&netns, "link set eth0 down");
    ip(&netns, "link set eth0 name other");
    lab.del(&netns, &layer2(), &result);
    assert_eq!(lab.links(), ["br0"]);
}
