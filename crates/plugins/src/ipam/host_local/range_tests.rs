use super::*;
use podwire_spec::address::{parse_cidr, parse_ip};

fn ip(text: &str) -> IpAddr {
    parse_ip(text).unwrap()
}

/// A range as `subnet start end gateway`, `-` for what isn't given.
fn spec(text: &str) -> RangeSpec {
    let mut words = text.split(' ').map(|word| Some(word).filter(|word| *word != "-"));
    let subnet = parse_cidr(words.next().flatten().unwrap()).unwrap();
    let start = words.next().flatten().map(ip);
    let end = words.next().flatten().map(ip);
    let gateway = match words.next().flatten() {
        None => GatewayChoice::Default,
        Some("none") => GatewayChoice::None,
        Some(address) => GatewayChoice::Address(ip(address)),
    };
    let path = "ipam.ranges[0][0]".to_owned();
    RangeSpec { path, subnet, start, end, gateway, exclude: Vec::new() }
}

fn range(text: &str) -> Range {
    Range::new(spec(text)).unwrap()
}

fn refusal(text: &str) -> String {
    let error = Range::new(spec(text)).unwrap_err();
    assert_eq!(error.code.number(), 7, "{text}");
    error.to_string()
}

fn set(ranges: &[&str]) -> RangeSet {
    RangeSet::new("ipam.ranges[0]", ranges.iter().map(|text| range(text)).collect()).unwrap()
}

fn addresses(set: &RangeSet, last: Option<&str>) -> Vec<String> {
    set.candidates(last.map(ip)).map(|address| address.to_string()).collect()
}

#[test]
fn a_subnet_alone_gives_all_but_network_gateway_and_broadcast() {
    let set = set(&["10.9.0.0/29"]);
    assert_eq!(set.to_string(), "10.9.0.1-10.9.0.6");
    assert_eq!(set.ranges()[0].gateway, Some(ip("10.9.0.1")));
    assert_eq!(addresses(&set, None), ["10.9.0.2", "10.9.0.3", "10.9.0.4", "10.9.0.5", "10.9.0.6"]);
    assert_eq!(set.capacity(), 5);
}

/// B092
#[test]
fn b092_round_robin_starts_behind_the_last_and_goes_round() {
    let set = set(&["10.9.0.0/29", "10.9.1.0/30"]);
    let round = addresses(&set, Some("10.9.0.5"));
    assert_eq!(round, ["10.9.0.6", "10.9.1.2", "10.9.0.2", "10.9.0.3", "10.9.0.4", "10.9.0.5"]);
    assert_eq!(addresses(&set, Some("10.9.1.2"))[0], "10.9.0.2");
    assert_eq!(addresses(&set, Some("192.168.0.1"))[0], "10.9.0.2", "not in the set");
    assert_eq!(addresses(&set, Some("10.9.0.1"))[0], "10.9.0.2", "the gateway");
}

/// B016
#[test]
fn b016_reversed_range_is_refused() {
    let text = refusal("10.1.0.0/24 10.1.0.255");
    assert!(
        text.contains("rangeStart 10.1.0.255 is behind rangeEnd 10.1.0.254 (the default)"),
        "{text}"
    );
    let text = refusal("10.1.0.0/24 10.1.0.9 10.1.0.5");
    assert!(text.contains("rangeStart 10.1.0.9 is behind rangeEnd 10.1.0.5: "), "{text}");
    let text = refusal("255.255.255.252/30 255.255.255.255 - 255.255.255.255");
    assert!(text.contains("reversed"), "{text}");
}

/// B016, C17: network and broadcast addresses as bounds are accepted and never handed out.
#[test]
fn b016_network_and_broadcast_are_never_handed_out() {
    let set = set(&["10.24.0.0/23 10.24.0.0 10.24.1.255 10.24.1.254"]);
    let all = addresses(&set, None);
    assert_eq!(all.first().unwrap(), "10.24.0.1");
    assert_eq!(all.last().unwrap(), "10.24.1.253");
    assert_eq!(all.len(), 509);
    assert_eq!(set.ranges()[0].place(ip("10.24.0.0")), Place::Network);
    assert_eq!(set.ranges()[0].place(ip("10.24.1.255")), Place::Broadcast);
    let only = Range::new(spec("10.1.0.0/24 10.1.0.255 10.1.0.255")).unwrap();
    let error = RangeSet::new("ipam.ranges[0]", vec![only]).unwrap_err();
    assert!(error.msg.contains("no address to hand out"), "{error}");
}

/// B016
#[test]
fn b016_the_last_ipv6_address_can_be_the_start() {
    let last = "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff";
    let set = set(&[&format!("ffff:ffff:ffff:ffff::/64 {last}")]);
    assert_eq!(addresses(&set, None), [last]);
    assert_eq!(addresses(&set, Some(last)), [last]);
}

/// C11
#[test]
fn c11_a_huge_ipv6_range_is_walked_lazily() {
    let set = set(&["1100:200::/24"]);
    assert_eq!(set.ranges()[0].gateway, Some(ip("1100:200::1")));
    let mut walk = set.candidates(Some(ip("1100:2ff:ffff:ffff:ffff:ffff:ffff:fffe")));
    assert_eq!(walk.next(), Some(ip("1100:2ff:ffff:ffff:ffff:ffff:ffff:ffff")));
    assert_eq!(walk.next(), Some(ip("1100:200::2")));
    let whole = self::set(&["::/0"]);
    assert_eq!(whole.candidates(None).next(), Some(ip("::2")));
}

/// B089
#[test]
fn b089_the_gateway_must_fit_the_family_and_an_ipv4_one_the_subnet() {
    let text = refusal("10.1.0.0/24 - - fd00::1");
    assert!(text.contains("ipam.ranges[0][0].gateway: fd00::1 is an IPv6 address"), "{text}");
    let text = refusal("2001:db8:5::/64 - - 10.1.0.1");
    assert!(text.contains("is an IPv4 address"), "{text}");
    let text = refusal("10.1.0.0/24 - - 192.168.1.1");
    assert!(text.contains("192.168.1.1 is not in subnet 10.1.0.0/24"), "{text}");
    for outside in ["2001:db8:5::1", "fe80::1"] {
        let set = set(&[&format!("2001:db8:5:333::/64 - - {outside}")]);
        assert_eq!(set.ranges()[0].gateway, Some(ip(outside)));
        assert_eq!(addresses_of_first(&set), "2001:db8:5:333::1");
    }
    let set = set(&["10.1.0.0/24 10.1.0.9 - 10.1.0.9"]);
    assert_eq!(addresses_of_first(&set), "10.1.0.10", "a gateway at rangeStart is kept free");
}

/// B089: no gateway wanted at all (containernetworking/plugins 109).
#[test]
fn b089_without_a_gateway_its_address_is_handed_out() {
    let set = set(&["10.1.0.0/24 - - none"]);
    assert_eq!(set.ranges()[0].gateway, None);
    assert_eq!(addresses_of_first(&set), "10.1.0.1");
}

fn addresses_of_first(set: &RangeSet) -> String {
    set.candidates(None).next().unwrap().to_string()
}

#[test]
fn tiny_prefixes_need_an_explicit_gateway() {
    for subnet in ["10.1.0.0/31", "10.1.0.1/32", "fd00::/127", "fd00::1/128"] {
        let text = refusal(subnet);
        assert!(text.contains("too small to allocate from"), "{text}");
        assert!(text.contains("\"gateway\": \"none\""), "{text}");
    }
    assert_eq!(addresses(&set(&["10.1.0.0/31 - - none"]), None), ["10.1.0.0", "10.1.0.1"]);
    assert_eq!(addresses(&set(&["10.1.0.0/31 - - 10.1.0.0"]), None), ["10.1.0.1"]);
    assert_eq!(addresses(&set(&["10.1.0.7/32 - - 169.254.1.1"]), None), ["10.1.0.7"]);
    assert_eq!(addresses(&set(&["fd00::1/128 - - fe80::1"]), None), ["fd00::1"]);
}

#[test]
fn bounds_outside_the_subnet_and_host_bits_are_refused() {
    let text = refusal("10.1.0.0/24 10.1.1.1");
    assert!(text.contains("ipam.ranges[0][0].rangeStart: 10.1.1.1 is not in network"), "{text}");
    let text = refusal("10.1.0.0/24 - fd00::1");
    assert!(text.contains("ipam.ranges[0][0].rangeEnd: fd00::1 is not in network"), "{text}");
    let text = refusal("10.1.0.7/24");
    assert!(text.contains("has host bits set"), "{text}");
    assert!(text.contains("the network address is 10.1.0.0"), "{text}");
}

#[test]
fn sets_hold_one_family_and_no_overlap() {
    let refused = |ranges: &[&str]| {
        let ranges = ranges.iter().map(|text| range(text)).collect();
        RangeSet::new("ipam.ranges[0]", ranges).unwrap_err().msg
    };
    assert!(refused(&[]).contains("ipam.ranges[0]: empty range set"));
    assert!(refused(&["10.1.0.0/24", "fd00::/64"]).contains("mixed address families"));
    let text = refused(&["10.1.0.0/24 - 10.1.0.9", "10.1.0.0/25 10.1.0.9"]);
    assert!(text.contains("subnets 10.1.0.1-10.1.0.9 and 10.1.0.9-10.1.0.126 overlap"), "{text}");
    let one = set(&["10.1.0.0/24 - 10.1.0.9"]);
    let two = |other: &str| overlap(&[one.clone(), set(&[other])]);
    assert_eq!(two("10.1.0.0/24 10.1.0.5"), Some((0, 1)));
    assert_eq!(two("10.1.0.0/24 10.1.0.10"), None);
    assert_eq!(two("::/0"), None, "families are told apart");
}

#[test]
fn excluded_addresses_are_passed_over() {
    let mut with = spec("10.9.0.0/28");
    with.exclude = vec![parse_cidr("10.9.0.4/30").unwrap(), parse_cidr("10.9.0.14/32").unwrap()];
    let range = Range::new(with).unwrap();
    assert_eq!(range.place(ip("10.9.0.5")), Place::Excluded);
    let set = RangeSet::new("ipam.ranges[0]", vec![range]).unwrap();
    assert_eq!(
        addresses(&set, None),
        [2, 3, 8, 9, 10, 11, 12, 13].map(|last| format!("10.9.0.{last}"))
    );
}

#[test]
fn every_place_is_told_apart() {
    let range = range("10.9.0.0/24 10.9.0.10 10.9.0.20");
    let place = |text| range.place(ip(text));
    assert_eq!(place("10.9.0.10"), Place::Usable);
    assert_eq!(place("10.9.0.1"), Place::Gateway);
    assert_eq!(place("10.9.0.0"), Place::Network);
    assert_eq!(place("10.9.0.255"), Place::Broadcast);
    assert_eq!(place("10.9.0.21"), Place::BesideBounds);
    assert_eq!(place("10.9.1.1"), Place::Outside);
    assert_eq!(place("::a09:a"), Place::Outside, "the same number in the other family");
}
