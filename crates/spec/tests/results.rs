//! Results as plugins print them, in every version and from one to another.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

use std::net::Ipv4Addr;

use ipnet::IpNet;
use podwire_spec::error::Error;
use podwire_spec::json::compact;
use podwire_spec::result::{AddressOrigin, CniResult, Interface, IpConfig, Route, VersionedResult};
use podwire_spec::version::SpecVersion;

fn parse(text: &str) -> Result<VersionedResult, Error> {
    VersionedResult::parse(text, SpecVersion::V1_1_0)
}

fn newest(text: &str) -> CniResult {
    parse(text).unwrap().into_newest().unwrap()
}

fn converted(text: &str, to: SpecVersion) -> Result<String, String> {
    let result = parse(text).unwrap().convert(to).map_err(|error| error.to_string())?;
    assert_eq!(compact(&result.to_json()), result.to_compact_json());
    Ok(result.to_compact_json())
}

const FULL: &str = r#"{"cniVersion":"1.1.0",
    "interfaces":[{"name":"cni0","mac":"02:00:00:00:00:01","mtu":1500},
        {"name":"eth0","mac":"02:00:00:00:00:02","mtu":1500,"sandbox":"/run/netns/x","socketPath":"/s","pciID":"0000:00:1f.6"}],
    "ips":[{"address":"10.1.2.3/24","gateway":"10.1.2.1","interface":1},
        {"address":"10.9.9.9/8","interface":1},{"address":"fd00::1/64","interface":1}],
    "routes":[{"dst":"0.0.0.0/0","gw":"10.1.2.1","mtu":1400,"advmss":1360,"priority":100,"table":0,"scope":0},
        {"dst":"::/0"}],
    "dns":{"nameservers":["10.0.0.10"],"domain":"d","search":["s"],"options":["o"]}}"#;

#[test]
fn the_newest_is_printed_in_alphabetical_order() {
    assert_eq!(
        converted(FULL, SpecVersion::V1_0_0).unwrap(),
        r#"{"cniVersion":"1.0.0","dns":{"domain":"d","nameservers":["10.0.0.10"],"options":["o"],"search":["s"]},"interfaces":[{"mac":"02:00:00:00:00:01","mtu":1500,"name":"cni0"},{"mac":"02:00:00:00:00:02","mtu":1500,"name":"eth0","pciID":"0000:00:1f.6","sandbox":"/run/netns/x","socketPath":"/s"}],"ips":[{"address":"10.1.2.3/24","gateway":"10.1.2.1","interface":1},{"address":"10.9.9.9/8","interface":1},{"address":"fd00::1/64","interface":1}],"routes":[{"advmss":1360,"dst":"0.0.0.0/0","gw":"10.1.2.1","mtu":1400,"priority":100,"scope":0,"table":0},{"dst":"::/0"}]}"#
    );
    let empty = CniResult::default();
    assert_eq!(empty.to_json(SpecVersion::V1_1_0).unwrap(), "{\n    \"cniVersion\": \"1.1.0\"\n}");
}

#[test]
fn the_middle_shape_is_printed_in_its_old_order() {
    assert_eq!(
        converted(FULL, SpecVersion::V0_3_1).unwrap(),
        r#"{"cniVersion":"0.3.1","interfaces":[{"name":"cni0","mac":"02:00:00:00:00:01"},{"name":"eth0","mac":"02:00:00:00:00:02","sandbox":"/run/netns/x"}],"ips":[{"version":"4","interface":1,"address":"10.1.2.3/24","gateway":"10.1.2.1"},{"version":"4","interface":1,"address":"10.9.9.9/8"},{"version":"6","interface":1,"address":"fd00::1/64"}],"routes":[{"dst":"0.0.0.0/0","gw":"10.1.2.1","mtu":1400,"advmss":1360,"priority":100,"table":0,"scope":0},{"dst":"::/0"}],"dns":{"nameservers":["10.0.0.10"],"domain":"d","search":["s"],"options":["o"]}}"#
    );
    assert_eq!(
        parse(r#"{"cniVersion":"0.4.0"}"#).unwrap().to_json(),
        "{\n    \"cniVersion\": \"0.4.0\",\n    \"dns\": {}\n}"
    );
}

#[test]
fn the_oldest_shape_holds_the_first_address_of_each_family() {
    assert_eq!(
        converted(FULL, SpecVersion::V0_2_0).unwrap(),
        r#"{"cniVersion":"0.2.0","ip4":{"ip":"10.1.2.3/24","gateway":"10.1.2.1","routes":[{"dst":"0.0.0.0/0","gw":"10.1.2.1"}]},"ip6":{"ip":"fd00::1/64","routes":[{"dst":"::/0"}]},"dns":{"nameservers":["10.0.0.10"],"domain":"d","search":["s"],"options":["o"]}}"#
    );
    assert_eq!(
        converted(FULL, SpecVersion::V0_1_0).unwrap(),
        converted(FULL, SpecVersion::V0_2_0).unwrap().replace("0.2.0", "0.1.0")
    );
}

#[test]
fn a_route_without_an_address_of_its_family_is_lost_to_the_oldest() {
    let text =
        r#"{"cniVersion":"1.0.0","ips":[{"address":"fd00::1/64"}],"routes":[{"dst":"0.0.0.0/0"}]}"#;
    assert_eq!(
        converted(text, SpecVersion::V0_2_0).unwrap(),
        r#"{"cniVersion":"0.2.0","ip6":{"ip":"fd00::1/64"},"dns":{}}"#
    );
}

#[test]
fn a_result_without_addresses_has_no_oldest_form() {
    let text = r#"{"cniVersion":"1.0.0","interfaces":[]}"#;
    let message = converted(text, SpecVersion::V0_2_0).unwrap_err();
    assert!(message.contains("cannot convert: no valid IP addresses"), "{message}");
    assert_eq!(converted(text, SpecVersion::V0_4_0).unwrap(), r#"{"cniVersion":"0.4.0","dns":{}}"#);
    // B064: upwards there is no such limit.
    let old = r#"{"cniVersion":"0.2.0"}"#;
    assert_eq!(converted(old, SpecVersion::V1_1_0).unwrap(), r#"{"cniVersion":"1.1.0"}"#);
}

#[test]
fn the_declared_version_of_an_address_counts_downwards_only() {
    let text = r#"{"cniVersion":"0.4.0","ips":[{"version":"6","address":"10.0.0.2/24"},{"address":"10.0.0.3/24"}]}"#;
    assert_eq!(
        converted(text, SpecVersion::V0_2_0).unwrap(),
        r#"{"cniVersion":"0.2.0","ip6":{"ip":"10.0.0.2/24"},"dns":{}}"#
    );
    assert_eq!(
        converted(text, SpecVersion::V1_0_0).unwrap(),
        r#"{"cniVersion":"1.0.0","ips":[{"address":"10.0.0.2/24"},{"address":"10.0.0.3/24"}]}"#
    );
    assert_eq!(
        converted(text, SpecVersion::V0_3_0).unwrap(),
        r#"{"cniVersion":"0.3.0","ips":[{"version":"6","address":"10.0.0.2/24"},{"version":"","address":"10.0.0.3/24"}],"dns":{}}"#
    );
}

#[test]
fn the_oldest_becomes_the_newest() {
    let text = r#"{"cniVersion":"0.2.0","ip4":{"ip":"10.0.0.2/24","gateway":"10.0.0.1","routes":[{"dst":"0.0.0.0/0"}]},"ip6":{"ip":"fd00::2/64"}}"#;
    assert_eq!(
        converted(text, SpecVersion::V1_0_0).unwrap(),
        r#"{"cniVersion":"1.0.0","ips":[{"address":"10.0.0.2/24","gateway":"10.0.0.1"},{"address":"fd00::2/64"}],"routes":[{"dst":"0.0.0.0/0"}]}"#
    );
    assert_eq!(
        converted(text, SpecVersion::V0_3_0).unwrap(),
        r#"{"cniVersion":"0.3.0","ips":[{"version":"4","address":"10.0.0.2/24","gateway":"10.0.0.1"},{"version":"6","address":"fd00::2/64"}],"routes":[{"dst":"0.0.0.0/0"}],"dns":{}}"#
    );
    assert_eq!(converted(text, SpecVersion::V0_1_0).unwrap().matches("0.1.0").count(), 1);
}

#[test]
fn addresses_are_printed_canonical_with_their_host_bits() {
    let text = r#"{"cniVersion":"1.0.0","ips":[{"address":"::ffff:1.2.3.4/120","gateway":"::ffff:1.2.3.1"},{"address":"10.1.2.3/8","gateway":""},{"address":"FD00:0::0A/64"}],"routes":[{"dst":"10.1.2.3/8"}]}"#;
    assert_eq!(
        converted(text, SpecVersion::V1_0_0).unwrap(),
        r#"{"cniVersion":"1.0.0","ips":[{"address":"1.2.3.4/24","gateway":"1.2.3.1"},{"address":"10.1.2.3/8"},{"address":"fd00::a/64"}],"routes":[{"dst":"10.1.2.3/8"}]}"#
    );
    let refusal = |text| parse(text).unwrap_err().msg;
    assert_eq!(
        refusal(r#"{"ips":[{"address":"10.1.2.3"}]}"#),
        "reading the result: ips[0].address: expected an address with a prefix, as 10.1.2.3/24, \
         found \"10.1.2.3\""
    );
    assert!(refusal(r#"{"ips":[{}]}"#).contains("ips[0].address: missing"));
    assert!(refusal(r#"{"routes":[{"gw":"10.0.0.1"}]}"#).contains("routes[0].dst: missing"));
}

#[test]
fn b044_a_result_without_a_version_has_that_of_the_configuration() {
    for text in ["{}", r#"{"cniVersion":""}"#, r#"{"cniVersion":null}"#, r#"{"cniVersion":7}"#] {
        let result = VersionedResult::parse(text, SpecVersion::V0_3_1).unwrap();
        assert_eq!(result.version(), SpecVersion::V0_3_1, "{text}");
    }
    // The result's own version decides, even if it differs.
    let text = r#"{"cniVersion":"1.0.0"}"#;
    let result = VersionedResult::parse(text, SpecVersion::V0_3_1).unwrap();
    assert_eq!(result.version(), SpecVersion::V1_0_0);
    let error = parse(r#"{"cniVersion":"2.0.0"}"#).unwrap_err();
    assert_eq!(error.code.number(), 1);
    assert!(error.msg.contains("unsupported CNI result version \"2.0.0\""));
}

#[test]
fn b044_what_is_no_object_is_an_error() {
    for text in
        ["null", "[]", "", "junk", "7", "{} {}", r#"{"cniVersion":"1.0.0"}x"#, "{\"ips\":7}"]
    {
        assert_eq!(parse(text).unwrap_err().code.number(), 6, "{text}");
    }
}

#[test]
fn b044_null_entries_go_and_indices_follow() {
    for version in ["0.3.1", "1.0.0"] {
        let text = format!(
            r#"{{"cniVersion":"{version}","interfaces":[null,{{"name":"a"}},null,{{"name":"b"}}],
                "routes":[null],"ips":[null,{{"address":"10.0.0.1/8","interface":3}},
                {{"address":"10.0.0.2/8","interface":1}},{{"address":"10.0.0.3/8","interface":0}},
                {{"address":"10.0.0.4/8","interface":-1}},{{"address":"10.0.0.5/8","interface":9}}]}}"#
        );
        let result = newest(&text);
        let indices: Vec<_> = result.ips.iter().map(|ip| ip.interface).collect();
        assert_eq!(indices, [Some(1), Some(0), None, None, Some(9)]);
        assert_eq!(result.interfaces.len(), 2);
        assert!(result.routes.is_empty());
    }
    assert_eq!(
        newest(r#"{"ips":null,"interfaces":null,"routes":null,"dns":null}"#),
        CniResult::default()
    );
    assert!(parse(r#"{"ips":[{"address":"10.0.0.1/8","interface":-2}]}"#).is_err());
}

// B022 (5)
#[test]
fn b022_an_index_out_of_range_is_an_error_where_it_is_asked_for() {
    let result =
        newest(r#"{"interfaces":[{"name":"a"}],"ips":[{"address":"10.0.0.1/8","interface":7}]}"#);
    let error = result.validate_indices().unwrap_err();
    assert_eq!(
        error.msg,
        "ips[0].interface: address 10.0.0.1/8 names interface 7, but the result has 1"
    );
    assert!(result.interface_of(result.ips.first().unwrap()).is_none());
    newest(FULL).validate_indices().unwrap();
}

#[test]
fn b022_the_addresses_of_the_container() {
    let found = |text: &str| {
        let result = newest(text);
        let found = result.container_addresses("eth0");
        let addresses: Vec<_> = found.addresses.iter().map(|ip| ip.address.to_string()).collect();
        (addresses.join(" "), found.origin)
    };
    let host = r#"{"name":"veth0"}"#;
    let inside = r#"{"name":"eth0","sandbox":"/x"}"#;
    let case = |interfaces: &str, ips: &str| {
        found(&format!(r#"{{"interfaces":[{interfaces}],"ips":[{ips}]}}"#))
    };
    let ip = |index: &str| format!(r#"{{"address":"10.0.0.2/24"{index}}}"#);
    let own = "10.0.0.2/24".to_owned();
    // As it should be.
    let list = format!("{host},{inside}");
    assert_eq!(case(&list, &ip(",\"interface\":1")), (own.clone(), AddressOrigin::Named));
    // (1) The address names the host's end.
    assert_eq!(case(&list, &ip(",\"interface\":0")), (own.clone(), AddressOrigin::HostSide));
    // (2) No index. (3, 4) The sandbox is no path, or an odd one.
    assert_eq!(case(inside, &ip("")), (own.clone(), AddressOrigin::Unnamed));
    for sandbox in ["eth0", "/proc//var/run/netns/x/ns/net"] {
        let inside = format!(r#"{{"name":"eth0","sandbox":"{sandbox}"}}"#);
        assert_eq!(case(&inside, &ip(",\"interface\":0")), (own.clone(), AddressOrigin::Named));
    }
    // (5) Out of range. (6) No interfaces.
    assert_eq!(case(inside, &ip(",\"interface\":7")), (own.clone(), AddressOrigin::HostSide));
    assert_eq!(case("", &ip("")), (own.clone(), AddressOrigin::Unnamed));
    // (7) Two inside, the address names the other or none.
    let two = format!(r#"{inside},{{"name":"net1","sandbox":"/x"}}"#);
    assert_eq!(case(&two, &ip(",\"interface\":1")), (String::new(), AddressOrigin::None));
    assert_eq!(case(&two, &ip("")), (own.clone(), AddressOrigin::Unnamed));
    // C13: a loopback address is never the container's, not even as a guess.
    let loopback = r#"{"name":"lo","sandbox":"/x"}"#;
    let ips = format!(
        r#"{{"address":"127.0.0.1/8","interface":0}},{{"address":"::1/128"}},{}"#,
        ip(",\"interface\":1")
    );
    assert_eq!(case(&format!("{loopback},{inside}"), &ips), (own, AddressOrigin::Named));
    assert_eq!(case(loopback, r#"{"address":"127.0.0.1/8"}"#).1, AddressOrigin::None);
    let result = newest(
        r#"{"interfaces":[{"name":"lo","sandbox":"/x"}],"ips":[{"address":"127.0.0.1/8","interface":0}]}"#,
    );
    assert_eq!(result.container_addresses("lo").addresses.len(), 1);
}

#[test]
fn interfaces_are_found_by_side() {
    let result = newest(FULL);
    assert_eq!(result.interface_in_sandbox("eth0").unwrap().0, 1);
    assert!(result.interface_in_sandbox("cni0").is_none());
    let outer: Vec<_> = result.host_interfaces().map(|interface| &interface.name).collect();
    assert_eq!(outer, ["cni0"]);
}

// C13: bridge as second plugin, behind loopback.
#[test]
fn c13_a_chained_plugin_adds_to_the_result_before() {
    let mut result = newest(
        r#"{"interfaces":[{"name":"lo","sandbox":"/x"}],"ips":[{"address":"127.0.0.1/8","interface":0}],
            "routes":[{"dst":"10.0.0.0/8"}],"dns":{"domain":"a"}}"#,
    );
    let interface = |name: &str, mac: &str| Interface {
        name: name.to_owned(),
        mac: Some(mac.to_owned()),
        sandbox: Some("/x".to_owned()),
        ..Interface::default()
    };
    let address =
        |text: &str, index| IpConfig { interface: index, ..IpConfig::new(text.parse().unwrap()) };
    let own = CniResult {
        interfaces: vec![interface("eth0", "1"), interface("lo", "2")],
        ips: vec![
            address("10.0.0.2/8", Some(0)),
            address("127.0.0.1/8", Some(1)),
            address("10.0.0.3/8", Some(9)),
        ],
        routes: vec![
            Route::new("10.0.0.0/8".parse().unwrap(), None),
            Route::new("0.0.0.0/0".parse().unwrap(), None),
        ],
        ..CniResult::default()
    };
    result.merge(own);
    let names: Vec<_> = result.interfaces.iter().map(|interface| interface.name.as_str()).collect();
    assert_eq!(names, ["lo", "eth0"]);
    assert_eq!(result.interfaces.first().unwrap().mac.as_deref(), Some("2"));
    let ips: Vec<_> = result.ips.iter().map(|ip| (ip.address.to_string(), ip.interface)).collect();
    assert_eq!(
        ips,
        [
            ("127.0.0.1/8".to_owned(), Some(0)),
            ("10.0.0.2/8".to_owned(), Some(1)),
            ("10.0.0.3/8".to_owned(), None)
        ]
    );
    assert_eq!(result.routes.len(), 2);
    assert_eq!(result.dns.domain.as_deref(), Some("a"));
}

/// As many as a plugin may print, and no search among all for each: found with long
/// inputs of the fuzz targets.
#[test]
fn a_great_many_interfaces_addresses_and_routes_are_merged() {
    let numbers = 0..100_000_u32;
    let name = |number| Interface { name: format!("i{number}"), ..Interface::default() };
    let net = |number| IpNet::new(Ipv4Addr::from(number).into(), 32).unwrap();
    let one = CniResult {
        interfaces: numbers.clone().map(name).collect(),
        ips: numbers.clone().map(|number| IpConfig::new(net(number))).collect(),
        routes: numbers.map(|number| Route::new(net(number), None)).collect(),
        ..CniResult::default()
    };
    let mut merged = one.clone();
    merged.merge(one.clone());
    assert_eq!(merged, one);
}

// B094: a loopback result has a body in the shape of every version.
#[test]
fn b094_loopback_in_every_version() {
    let result = newest(
        r#"{"interfaces":[{"name":"lo","sandbox":"/x"}],"ips":[{"address":"127.0.0.1/8","interface":0},{"address":"::1/128","interface":0}]}"#,
    );
    for version in SpecVersion::ALL {
        let text = result.to_json(version).unwrap();
        let read = parse(&text).unwrap();
        assert_eq!(read.version(), version);
        assert_eq!(text.contains("ip4"), version < SpecVersion::V0_3_0);
        assert_eq!(read.into_newest().unwrap().ips.len(), 2);
    }
}

#[test]
fn values_without_a_meaning_are_absent() {
    let text = r#"{"interfaces":[{"name":"a","mtu":-1,"mac":"","sandbox":""},{"mtu":0}],
        "routes":[{"dst":"::/0","mtu":-5,"advmss":0,"priority":0,"table":0,"scope":null,"gw":""}]}"#;
    assert_eq!(
        converted(text, SpecVersion::V1_1_0).unwrap(),
        r#"{"cniVersion":"1.1.0","interfaces":[{"name":"a"},{"name":""}],"routes":[{"dst":"::/0","table":0}]}"#
    );
    assert!(parse(r#"{"routes":[{"dst":"::/0","mtu":1.0}]}"#).is_err());
    assert!(parse(r#"{"routes":[{"dst":"::/0","priority":4294967296}]}"#).is_err());
}

#[test]
fn keys_are_read_in_any_case_but_for_the_version() {
    let text = r#"{"CNIVersion":"0.2.0","IPs":[{"Address":"10.0.0.1/8","GateWay":"10.0.0.2"}]}"#;
    let result = VersionedResult::parse(text, SpecVersion::V0_4_0).unwrap();
    assert_eq!(result.version(), SpecVersion::V0_4_0);
    let ips = result.into_newest().unwrap().ips;
    assert_eq!(ips.first().unwrap().gateway.unwrap().to_string(), "10.0.0.2");
}
