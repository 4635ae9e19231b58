//! One test for each key of the configuration.

use std::net::IpAddr;
use std::time::Instant;

use podwire_testkit::probe::{self, ANSWER, SILENCE};
use serde_json::{Value, json};

use crate::lab::{Lab, addresses, dual, fixed, ip, layer2, pods, with};

fn host_end(result: &Value) -> &str {
    result["interfaces"][1]["name"].as_str().unwrap()
}

fn sysctl(netns: &podwire_testkit::Netns, key: &str) -> String {
    netns.exec(&["cat", &format!("/proc/sys/{key}")]).stdout.trim().to_owned()
}

#[test]
fn without_ipam_only_the_link_is_made() {
    let lab = Lab::new();
    let netns = lab.world.netns("c1");
    let result = lab.add(&netns, &layer2());
    assert!(result["ips"].is_null(), "{result:#}");
    assert_eq!(lab.link("br0")["operstate"], "UP");
    let inside = netns.ip_json(&["link", "show", "eth0"]);
    assert_eq!(inside[0]["operstate"], "UP");
    // Whoever gives it addresses decides about these.
    assert_eq!(sysctl(&netns, "net/ipv6/conf/eth0/accept_dad"), "1");
    assert_eq!(sysctl(&netns, "net/ipv4/conf/eth0/arp_notify"), "0");
    assert_eq!(sysctl(lab.world.host(), "net/ipv4/ip_forward"), "0");
    lab.check(&netns, &layer2(), &result).success();
    lab.del(&netns, &layer2(), &result);
}

#[test]
fn layer2_containers_reach_each_other() {
    let lab = Lab::new();
    let (one, two) = (lab.world.netns("c1"), lab.world.netns("c2"));
    lab.add(&one, &layer2());
    lab.add(&two, &layer2());
    for (netns, address) in [(&one, "10.5.0.1/24"), (&two, "10.5.0.2/24")] {
        ip(netns, &format!("addr add {address} dev eth0"));
    }
    probe::ping(&one, "10.5.0.2".parse::<IpAddr>().unwrap(), ANSWER).unwrap();
}

#[test]
fn without_gateway_the_bridge_has_no_address() {
    let lab = Lab::new();
    let netns = lab.world.netns("c1");
    let config = with(&pods(), &json!({"isDefaultGateway": false}));
    let result = lab.add(&netns, &config);
    // host-local names the gateway all the same.
    assert_eq!(result["ips"][0]["gateway"], "10.1.0.1");
    assert!(lab.addresses("br0").is_empty());
    assert_eq!(sysctl(lab.world.host(), "net/ipv4/ip_forward"), "0");
    lab.check(&netns, &config, &result).success();
}

#[test]
fn the_gateway_switches_forwarding_on_for_its_families_only() {
    let lab = Lab::new();
    lab.add(&lab.world.netns("c1"), &pods());
    assert_eq!(sysctl(lab.world.host(), "net/ipv4/ip_forward"), "1");
    assert_eq!(sysctl(lab.world.host(), "net/ipv6/conf/all/forwarding"), "0");
    lab.add(&lab.world.netns("c2"), &with(&dual(), &json!({"name": "n2"})));
    assert_eq!(sysctl(lab.world.host(), "net/ipv6/conf/all/forwarding"), "1");
}

#[test]
fn a_gateway_without_default_route_adds_no_route() {
    let lab = Lab::new();
    let netns = lab.world.netns("c1");
    let config = with(&pods(), &json!({"isDefaultGateway": false, "isGateway": true}));
    let result = lab.add(&netns, &config);
    assert!(result["routes"].is_null(), "{result:#}");
    assert_eq!(lab.addresses("br0"), ["10.1.0.1/24"]);
    assert_eq!(netns.ip_json(&["route"]).as_array().unwrap().len(), 1);
}

#[test]
fn routes_go_where_they_say_with_all_their_attributes() {
    let lab = Lab::new();
    let netns = lab.world.netns("c1");
    let mut config = pods();
    config["ipam"]["routes"] = json!([
        {"dst": "0.0.0.0/0", "gw": "10.1.0.7", "priority": 50},
        {"dst": "10.8.0.0/16", "mtu": 1300, "advmss": 1200},
        {"dst": "10.9.0.0/16", "table": 77},
        {"dst": "10.6.0.0/16", "scope": 253},
    ]);
    let result = lab.add(&netns, &config);
    assert_eq!(result["routes"].as_array().unwrap().len(), 4, "the default route is there");
    let shown = netns.ip_json(&["-d", "route", "show", "table", "all"]);
    let route = |dst: &str| {
        let mut all = shown.as_array().unwrap().iter();
        all.find(|route| route["dst"] == dst).unwrap_or_else(|| panic!("{dst}: {shown:#}")).clone()
    };
    assert_eq!(
        (&route("default")["gateway"], &route("default")["metric"]),
        (&json!("10.1.0.7"), &json!(50))
    );
    let metrics = route("10.8.0.0/16")["metrics"][0].clone();
    assert_eq!((&metrics["mtu"], &metrics["advmss"]), (&json!(1300), &json!(1200)));
    assert_eq!(route("10.8.0.0/16")["gateway"], "10.1.0.1");
    assert_eq!(route("10.9.0.0/16")["table"], "77");
    assert!(route("10.6.0.0/16")["gateway"].is_null());
    lab.check(&netns, &config, &result).success();
}

#[test]
fn mtu_is_set_on_both_ends_and_the_new_bridge() {
    let lab = Lab::new();
    let netns = lab.world.netns("c1");
    let config = with(&pods(), &json!({"mtu": 1400}));
    let result = lab.add(&netns, &config);
    let mtus = [
        lab.link("br0")["mtu"].clone(),
        lab.link(host_end(&result))["mtu"].clone(),
        netns.ip_json(&["link", "show", "eth0"])[0]["mtu"].clone(),
    ];
    assert_eq!(mtus, [json!(1400), json!(1400), json!(1400)]);
    lab.check(&netns, &config, &result).success();
}

#[test]
fn the_mac_address_comes_from_the_strongest_source() {
    let lab = Lab::new();
    let mac = |netns: &podwire_testkit::Netns, config: &Value, args: &str| {
        let output = lab.call("ADD", netns, config).args(args).run().success().json();
        let shown = netns.ip_json(&["link", "show", "eth0"])[0]["address"].clone();
        assert_eq!(output["interfaces"][2]["mac"], shown);
        shown
    };
    let args = json!({"args": {"cni": {"mac": "02:00:00:00:00:02"}}});
    let capability = json!({"runtimeConfig": {"mac": "02:00:00:00:00:03"}});
    let variable = "MAC=02:00:00:00:00:01";
    let config = layer2();
    assert_eq!(mac(&lab.world.netns("c1"), &config, variable), "02:00:00:00:00:01");
    let config = with(&config, &args);
    assert_eq!(mac(&lab.world.netns("c2"), &config, variable), "02:00:00:00:00:02");
    let config = with(&config, &capability);
    assert_eq!(mac(&lab.world.netns("c3"), &config, variable), "02:00:00:00:00:03");
}

#[test]
fn hairpin_isolation_and_promiscuous_mode_are_set() {
    let lab = Lab::new();
    let config = with(&layer2(), &json!({"hairpinMode": true, "portIsolation": true}));
    let netns = lab.world.netns("c1");
    let result = lab.add(&netns, &config);
    let port = lab.link(host_end(&result))["linkinfo"]["info_slave_data"].clone();
    assert_eq!((&port["hairpin"], &port["isolated"]), (&json!(true), &json!(true)));
    lab.check(&netns, &config, &result).success();

    let config = with(&layer2(), &json!({"bridge": "br1", "promiscMode": true}));
    let netns = lab.world.netns("c2");
    let result = lab.add(&netns, &config);
    let flags = lab.link("br1")["flags"].clone();
    assert!(flags.as_array().unwrap().contains(&json!("PROMISC")), "{flags}");
    lab.check(&netns, &config, &result).success();
}

#[test]
fn isolated_ports_reach_the_host_and_not_each_other() {
    let lab = Lab::new();
    let config = with(&pods(), &json!({"portIsolation": true}));
    let (one, two) = (lab.world.netns("c1"), lab.world.netns("c2"));
    lab.add(&one, &config);
    lab.add(&two, &config);
    probe::ping(&one, "10.1.0.1".parse::<IpAddr>().unwrap(), ANSWER).unwrap();
    assert!(probe::ping(&one, "10.1.0.3".parse::<IpAddr>().unwrap(), SILENCE).is_err());
}

#[test]
fn a_disabled_interface_stays_down() {
    let lab = Lab::new();
    let netns = lab.world.netns("c1");
    let config = with(&layer2(), &json!({"disableContainerInterface": true}));
    let result = lab.add(&netns, &config);
    let inside = netns.ip_json(&["link", "show", "eth0"]);
    assert!(!inside[0]["flags"].as_array().unwrap().contains(&json!("UP")), "{inside}");
    lab.check(&netns, &config, &result).success();
    lab.del(&netns, &config, &result);
}

#[test]
fn dns_of_the_configuration_replaces_that_of_ipam_as_a_whole() {
    let lab = Lab::new();
    let resolv = lab.world.write("resolv.conf", "nameserver 10.0.0.9\nsearch ipam.test\n");
    let mut config = pods();
    config["ipam"]["resolvConf"] = json!(resolv.to_str().unwrap());
    let result = lab.add(&lab.world.netns("c1"), &config);
    assert_eq!(result["dns"], json!({"nameservers": ["10.0.0.9"], "search": ["ipam.test"]}));
    // C19: keys in any case.
    let config = with(&config, &json!({"dns": {"Nameservers": ["10.0.0.10"]}}));
    let result = lab.add(&lab.world.netns("c2"), &config);
    assert_eq!(result["dns"], json!({"nameservers": ["10.0.0.10"]}));
}

#[test]
fn force_address_replaces_what_is_in_the_way() {
    let lab = Lab::new();
    lab.ip("link add br0 type bridge");
    lab.ip("addr add 10.9.9.1/24 dev br0");
    lab.ip("addr add fd00:1::99/64 dev br0 nodad");
    let config = with(&dual(), &json!({"forceAddress": true}));
    let netns = lab.world.netns("c1");
    let result = lab.add(&netns, &config);
    assert_eq!(lab.addresses("br0"), ["10.1.0.1/24", "fd00:1::1/64"]);
    lab.check(&netns, &config, &result).success();
}

#[test]
fn several_addresses_of_a_family_get_their_gateways() {
    let lab = Lab::new();
    let config = with(
        &pods(),
        &json!({"ipam": {"type": "host-local", "ranges":
            [[{"subnet": "10.1.0.0/24"}], [{"subnet": "10.2.0.0/24"}], [{"subnet": "fd00:1::/64"}]]}}),
    );
    for name in ["c1", "c2"] {
        let netns = lab.world.netns(name);
        let result = lab.add(&netns, &config);
        assert_eq!(addresses(&netns, "eth0").len(), 3);
        assert_eq!(result["routes"].as_array().unwrap().len(), 2, "one default route a family");
        lab.check(&netns, &config, &result).success();
    }
    assert_eq!(lab.addresses("br0"), ["10.1.0.1/24", "10.2.0.1/24", "fd00:1::1/64"]);
}

#[test]
fn an_address_without_gateway_gets_the_first_of_its_subnet() {
    let lab = Lab::new();
    let result = lab.add(&lab.world.netns("c1"), &fixed(&["10.3.0.77/24", "fd00:3::77/64"]));
    assert_eq!(result["ips"][0]["gateway"], "10.3.0.1");
    assert_eq!(result["ips"][1]["gateway"], "fd00:3::1");
}

/// The quickest of several ADDs: a busy machine says nothing about waiting.
fn quickest_add(lab: &Lab, config: &Value) -> u128 {
    let add = |number: u32| {
        let netns = lab.world.netns(&format!("quick{number}"));
        let started = Instant::now();
        lab.add(&netns, config);
        started.elapsed().as_millis()
    };
    (0..5).map(add).min().unwrap()
}

/// B098: usable at once, and no wait.
#[test]
fn b098_ipv6_addresses_are_usable_when_add_returns() {
    let lab = Lab::new();
    let netns = lab.world.netns("c1");
    lab.add(&netns, &dual());
    netns_bind(&netns, "[fd00:1::2]:80");
    let took = quickest_add(&lab, &dual());
    assert!(took < 300, "{took} ms");
}

/// B098: with detection, ADD waits for it; a duplicate fails and is undone.
#[test]
fn b098_a_duplicate_is_found_where_detection_is_asked_for() {
    let lab = Lab::new();
    let config = with(&fixed(&["fd00:1::5/64"]), &json!({"enabledad": true}));
    let (one, two) = (lab.world.netns("c1"), lab.world.netns("c2"));
    let result = lab.add(&one, &config);
    netns_bind(&one, "[fd00:1::5]:80");
    lab.check(&one, &config, &result).success();
    let before = lab.world.snapshot();
    let error = lab.call("ADD", &two, &config).run().error(999);
    assert!(error["msg"].as_str().unwrap().contains("dadfailed"), "{error}");
    assert!(error["msg"].as_str().unwrap().contains("fd00:1::5"), "{error}");
    lab.world.snapshot().since(&before).assert_empty();
    assert_eq!(two.ip_json(&["link"]).as_array().unwrap().len(), 1);
}

/// Only IPv6 has something to wait for.
#[test]
fn b098_detection_costs_ipv4_nothing() {
    let lab = Lab::new();
    let took = quickest_add(&lab, &with(&pods(), &json!({"enabledad": true})));
    assert!(took < 300, "{took} ms");
}

/// `CNI_NETNS_OVERRIDE`: an interface in the host's own namespace, for those
/// who mean it.
#[test]
fn the_hosts_own_namespace_can_be_asked_for() {
    let lab = Lab::new();
    let host = lab.world.host();
    let call = |verb: &str, config: &Value| {
        let call = lab.call(verb, host, config).ifname("inner0");
        call.env("CNI_NETNS_OVERRIDE", "1").run()
    };
    let result = call("ADD", &layer2()).success().json();
    assert!(lab.has_link("inner0"));
    call("CHECK", &crate::lab::with_prev(&layer2(), &result)).success();
    call("DEL", &layer2()).success();
    assert_eq!(lab.links(), ["br0"]);
}

fn netns_bind(netns: &podwire_testkit::Netns, address: &str) {
    netns.run(|| std::net::TcpListener::bind(address)).unwrap();
}

/// B103: no attribute is sent when no VLAN is asked for, and the error is
/// clear when one is and the kernel can't. (This kernel decides which half of
/// the test runs; the VLANs themselves are tested in the virtual machine.)
#[test]
fn b103_vlans_need_a_kernel_that_filters() {
    let lab = Lab::new();
    lab.add(&lab.world.netns("c1"), &layer2());
    let config = with(&pods(), &json!({"name": "v", "bridge": "br7", "vlan": 100}));
    let can = lab.world.try_exec(&[
        "ip",
        "link",
        "add",
        "probe",
        "type",
        "bridge",
        "vlan_filtering",
        "1",
    ]);
    let netns = lab.world.netns("c2");
    let before = lab.world.snapshot();
    let add = lab.call("ADD", &netns, &config).run();
    let status = lab.call("STATUS", &netns, &config).run();
    if can.code == 0 {
        let result = add.success().json();
        assert_eq!(result["interfaces"][3]["name"], "br7.100");
        assert_eq!(lab.addresses("br7.100"), ["10.1.0.1/24"]);
        status.success();
        lab.check(&netns, &config, &result).success();
        return;
    }
    let error = add.error(999);
    assert!(error["msg"].as_str().unwrap().contains("no VLAN filtering"), "{error}");
    assert!(error["details"].as_str().unwrap().contains("CONFIG_BRIDGE_VLAN_FILTERING"), "{error}");
    status.error(50);
    let left = |change: &podwire_testkit::state::Change| change.name().contains("last_reserved_ip");
    lab.world.snapshot().since(&before).beyond_residue(&[]).without(left).assert_empty();
    // An existing bridge without filtering.
    let config = with(&config, &json!({"bridge": "br0"}));
    lab.call("ADD", &netns, &config).run().failure();
    lab.call("STATUS", &netns, &config).run().error(50);
}

/// B121: no attribute is zeroed, and the longest names work.
#[test]
fn b121_queues_and_long_names() {
    let lab = Lab::new();
    let netns = lab.world.netns("c1");
    let config = with(&layer2(), &json!({"bridge": "bridge-15-chars"}));
    let add = lab.call("ADD", &netns, &config).ifname("eth-15-chars-ab");
    let result = add.run().success().json();
    assert_eq!(lab.link(host_end(&result))["txqlen"], 1000);
    assert_eq!(netns.ip_json(&["link", "show", "eth-15-chars-ab"])[0]["txqlen"], 1000);
    assert_eq!(lab.link("bridge-15-chars")["txqlen"], 1000);
    // A name of the host doesn't matter inside.
    lab.ip("link add eth0 type veth peer name eth1");
    lab.add(&lab.world.netns("c2"), &config);
}

#[test]
fn router_advertisements_of_containers_are_ignored_on_the_host() {
    let lab = Lab::new();
    let result = lab.add(&lab.world.netns("c1"), &layer2());
    for link in ["br0", host_end(&result)] {
        let key = format!("net/ipv6/conf/{link}/accept_ra");
        assert_eq!(sysctl(lab.world.host(), &key), "0", "{link}");
    }
}
