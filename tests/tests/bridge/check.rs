//! CHECK names every difference, and accepts what later plugins recorded.

use podwire_testkit::Netns;
use serde_json::{Value, json};

use crate::lab::{Lab, dual, ip, layer2, pods, with};

/// Attaches, checks, changes something, and returns what CHECK says then.
fn after(config: &Value, change: impl Fn(&Lab, &Netns, &Value)) -> String {
    let lab = Lab::new();
    let netns = lab.world.netns("c1");
    let result = lab.add(&netns, config);
    lab.check(&netns, config, &result).success();
    change(&lab, &netns, &result);
    lab.difference(&netns, config, &result)
}

fn host_end(result: &Value) -> &str {
    result["interfaces"][1]["name"].as_str().unwrap()
}

#[track_caller]
fn assert_says(said: &str, words: &[&str]) {
    assert!(words.iter().all(|word| said.contains(word)), "{words:?} not in {said:?}");
}

#[test]
fn what_is_wrong_inside_is_named() {
    let said = after(&dual(), |_, netns, _| ip(netns, "addr del 10.1.0.2/24 dev eth0"));
    assert_says(&said, &["address 10.1.0.2/24 on eth0 in the container is missing"]);
    let said = after(&dual(), |_, netns, _| ip(netns, "addr del fd00:1::2/64 dev eth0"));
    assert_says(&said, &["address fd00:1::2/64 on eth0 in the container is missing"]);
    let said = after(&dual(), |_, netns, _| {
        ip(netns, "addr del 10.1.0.2/24 dev eth0");
        ip(netns, "addr add 10.1.0.2/16 dev eth0");
    });
    assert_says(&said, &["10.1.0.2/24", "expected prefix length 24, found 16"]);
    let said = after(&dual(), |_, netns, _| ip(netns, "route del default"));
    assert_says(&said, &["route to 0.0.0.0/0 via 10.1.0.1 on eth0 in the container is missing"]);
    let said = after(&dual(), |_, netns, _| ip(netns, "-6 route del default"));
    assert_says(&said, &["route to ::/0 via fd00:1::1"]);
    let said = after(&layer2(), |_, netns, _| ip(netns, "link set eth0 down"));
    assert_says(&said, &["interface eth0 in the container: expected up, found down"]);
    let said = after(&pods(), |_, netns, _| ip(netns, "link set eth0 address 02:00:00:00:00:09"));
    assert_says(&said, &["eth0 in the container, MAC address", "found 02:00:00:00:00:09"]);
    let said = after(&pods(), |_, netns, _| ip(netns, "link set eth0 mtu 9000"));
    assert_says(&said, &["MTU of eth0 in the container: expected at most 1500", "found 9000"]);
    let said = after(&pods(), |_, netns, _| ip(netns, "link del eth0"));
    assert_says(&said, &["interface eth0 in the container is missing"]);
    let said = after(&pods(), |_, netns, _| {
        // Kernels before 6.2 rename no link that is up.
        ip(netns, "link set eth0 down");
        ip(netns, "link set eth0 name old");
        ip(netns, "link add eth0 type bridge");
    });
    assert_says(&said, &["eth0 in the container: expected a veth, found bridge"]);
}

#[test]
fn what_is_wrong_on_the_host_is_named() {
    let set = |link: &'static str| {
        move |lab: &Lab, _: &Netns, result: &Value| {
            lab.ip(&link.replace("HOST", host_end(result)));
        }
    };
    let said = after(&pods(), set("link set HOST nomaster"));
    assert_says(&said, &["port of eth0 on bridge br0 is missing"]);
    let said = after(&pods(), set("link set HOST down"));
    assert_says(&said, &["host end of eth0", "expected up, found down"]);
    let said = after(&with(&pods(), &json!({"mtu": 1400})), set("link set HOST mtu 1450"));
    assert_says(&said, &["host end of eth0", "MTU: expected 1400, found 1450"]);
    let said = after(&pods(), |lab, _, result| {
        let host_end = host_end(result);
        // Kernels before 6.2 rename no link that is up.
        lab.ip(&format!("link set {host_end} down"));
        lab.ip(&format!("link set {host_end} name renamed"));
        lab.ip("link set renamed up");
    });
    assert_says(&said, &["host end of eth0", "found renamed"]);
    let said = after(&pods(), set("link set HOST type bridge_slave hairpin on"));
    assert_says(&said, &["hairpin mode: expected off, found on"]);
    let said = after(
        &with(&pods(), &json!({"hairpinMode": true})),
        set("link set HOST type bridge_slave hairpin off"),
    );
    assert_says(&said, &["hairpin mode: expected on, found off"]);
    let said = after(
        &with(&pods(), &json!({"portIsolation": true})),
        set("link set HOST type bridge_slave isolated off"),
    );
    assert_says(&said, &["isolation: expected on, found off"]);
    let said = after(&pods(), set("link del br0"));
    assert_says(&said, &["bridge br0 is missing"]);
    let said = after(&pods(), set("link set br0 down"));
    assert_says(&said, &["bridge br0: expected up, found down"]);
    let said = after(&pods(), set("link set br0 address 02:00:00:00:00:09"));
    assert_says(&said, &["bridge br0, MAC address", "found 02:00:00:00:00:09"]);
    let promiscuous = with(&pods(), &json!({"promiscMode": true}));
    let said = after(&promiscuous, set("link set br0 promisc off"));
    assert_says(&said, &["bridge br0, promiscuous mode: expected on, found off"]);
    let said = after(&pods(), set("addr del 10.1.0.1/24 dev br0"));
    assert_says(&said, &["gateway address 10.1.0.1/24 on br0 is missing"]);
}

#[test]
fn what_is_wrong_with_the_kernel_parameters_and_tables_is_named() {
    let write = |key: &'static str| {
        move |_: &Lab, _: &Netns, _: &Value| {
            std::fs::write(format!("/proc/sys/net/{key}"), "0").unwrap();
        }
    };
    let said = after(&dual(), write("ipv4/ip_forward"));
    assert_says(&said, &["IPv4 forwarding: expected on, found off"]);
    let said = after(&dual(), write("ipv6/conf/all/forwarding"));
    assert_says(&said, &["IPv6 forwarding: expected on, found off"]);
    let flush =
        |lab: &Lab, _: &Netns, _: &Value| drop(lab.world.exec(&["nft", "flush", "ruleset"]));
    let said = after(&with(&dual(), &json!({"ipMasq": true})), flush);
    assert_says(&said, &["10.1.0.2", "missing"]);
    let said = after(&with(&layer2(), &json!({"macspoofchk": true})), flush);
    assert_says(&said, &["missing"]);
}

#[test]
fn the_reservation_is_checked_too() {
    let lab = Lab::new();
    let netns = lab.world.netns("c1");
    let result = lab.add(&netns, &pods());
    std::fs::remove_file("/var/lib/cni/networks/n/10.1.0.2").unwrap();
    let error = lab.check(&netns, &pods(), &result).failure().json();
    assert!(error["msg"].as_str().unwrap().contains("c1"), "{error}");
}

/// B065: what plugins behind bridge changed stands in prevResult and counts.
#[test]
fn b065_changes_of_later_plugins_are_accepted() {
    let lab = Lab::new();
    let netns = lab.world.netns("c1");
    let config = pods();
    let mut result = lab.add(&netns, &config);
    ip(&netns, "link set eth0 address 02:00:00:00:00:09");
    ip(&netns, "link set eth0 mtu 1300");
    ip(&netns, "route del default");
    ip(&netns, "route add 10.77.0.0/16 via 10.1.0.1");
    result["interfaces"][2]["mac"] = json!("02:00:00:00:00:09");
    result["interfaces"][2]["mtu"] = json!(1300);
    result["routes"] = json!([{"dst": "10.77.0.0/16", "gw": "10.1.0.1"}]);
    lab.check(&netns, &config, &result).success();
    result["interfaces"][2]["mtu"] = json!(1400);
    let said = lab.difference(&netns, &config, &result);
    assert_says(&said, &["eth0 in the container, MTU: expected 1400, found 1300"]);
}

/// A bridge that somebody made without a MAC address takes its ports': what
/// matters only where containers know it as their gateway's.
#[test]
fn the_mac_address_of_a_bridge_that_is_no_gateway_may_change() {
    let lab = Lab::new();
    lab.ip("link add br0 type bridge");
    let netns = lab.world.netns("c1");
    let result = lab.add(&netns, &layer2());
    for name in ["c2", "c3", "c4", "c5"] {
        lab.add(&lab.world.netns(name), &layer2());
        lab.check(&netns, &layer2(), &result).success();
    }
    lab.ip("link set br0 address 02:00:00:00:00:09");
    lab.check(&netns, &layer2(), &result).success();
}

/// B065: sbr and vrf move routes to tables of their own.
#[test]
fn b065_routes_may_have_moved_to_another_table() {
    let lab = Lab::new();
    let netns = lab.world.netns("c1");
    let result = lab.add(&netns, &pods());
    ip(&netns, "route flush table main");
    ip(&netns, "route add 10.1.0.0/24 dev eth0 table 100");
    ip(&netns, "route add default via 10.1.0.1 dev eth0 table 100");
    lab.check(&netns, &pods(), &result).success();
}

#[test]
fn somebody_who_listens_is_no_difference() {
    let lab = Lab::new();
    let netns = lab.world.netns("c1");
    let result = lab.add(&netns, &pods());
    // What tcpdump does to an interface, and what an administrator may.
    let listener = lab.world.host().run(|| {
        std::process::Command::new("tcpdump")
            .args(["-i", "br0", "-w", "/run/world/capture", "-U"])
            .stderr(std::process::Stdio::piped())
            .spawn()
            .unwrap()
    });
    let mut listener = Stop(listener);
    let mut line = String::new();
    let stderr = listener.0.stderr.take().unwrap();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(stderr), &mut line).unwrap();
    assert!(line.contains("listening"), "{line}");
    assert_eq!(lab.link("br0")["promiscuity"], 1);
    lab.check(&netns, &pods(), &result).success();
    lab.ip("link set br0 promisc on");
    lab.check(&netns, &pods(), &result).success();
}

/// Ends a program with the test.
struct Stop(std::process::Child);

impl Drop for Stop {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// B022: namespaces are compared, not their paths.
#[test]
fn b022_another_path_to_the_namespace_is_fine_and_another_namespace_not() {
    let lab = Lab::new();
    let (netns, other) = (lab.world.netns("c1"), lab.world.netns("other"));
    let mut result = lab.add(&netns, &pods());
    let alias = lab.world.write("alias", "");
    lab.world.exec(&["mount", "--bind", netns.path().to_str().unwrap(), alias.to_str().unwrap()]);
    for path in [alias.to_str().unwrap(), "eth0", "/nowhere"] {
        result["interfaces"][2]["sandbox"] = json!(path);
        lab.check(&netns, &pods(), &result).success();
    }
    result["interfaces"][2]["sandbox"] = json!(other.path().to_str().unwrap());
    let said = lab.difference(&netns, &pods(), &result);
    assert_says(&said, &["namespace of eth0 in prevResult"]);
}

#[test]
fn check_needs_prev_result_and_a_sane_one() {
    let lab = Lab::new();
    let netns = lab.world.netns("c1");
    let mut result = lab.add(&netns, &pods());
    let error = lab.call("CHECK", &netns, &pods()).run().error(7);
    assert_eq!(error["msg"], "Required prevResult missing");
    result["ips"][0]["interface"] = json!(7);
    let error = lab.check(&netns, &pods(), &result).error(7);
    assert!(error["msg"].as_str().unwrap().contains("names interface 7"), "{error}");
}
