//! Ranges against an oracle that writes down every address of the subnet.

use std::collections::BTreeSet;

use super::*;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

/// A subnet of at most 64 addresses, at the ends of the address space too.
fn subnet() -> impl Strategy<Value = IpNet> {
    let v4 = (prop_oneof![any::<u32>(), Just(0), Just(u32::MAX)], 26_u8..=32)
        .prop_map(|(number, prefix)| IpNet::new(Ipv4Addr::from(number).into(), prefix));
    let v6 = (prop_oneof![any::<u128>(), Just(0), Just(u128::MAX)], 122_u8..=128)
        .prop_map(|(number, prefix)| IpNet::new(Ipv6Addr::from(number).into(), prefix));
    prop_oneof![v4, v6].prop_map(|net| net.unwrap().trunc())
}

/// The address so many behind the subnet's first; the last of all where there
/// are no more.
fn further(subnet: IpNet, by: u128) -> IpAddr {
    let most = if subnet.addr().is_ipv4() { u128::from(u32::MAX) } else { u128::MAX };
    address(number(subnet.network()).saturating_add(by).min(most), subnet)
}

/// A range of the subnet, its ends now and then outside it or reversed.
fn spec() -> impl Strategy<Value = RangeSpec> {
    let place = || option::weighted(0.6, 0_u128..70);
    let gateway = prop_oneof![
        Just(None),
        Just(Some(None)),
        (0_u128..70).prop_map(|place| Some(Some(place))),
    ];
    let holes = vec((0_u128..64, 0_u8..4), 0..3);
    (subnet(), place(), place(), gateway, holes).prop_map(|(subnet, start, end, gateway, holes)| {
        let at = |place: u128| further(subnet, place);
        let exclude = holes.into_iter().map(|(place, bits)| {
            IpNet::new(at(place), subnet.max_prefix_len() - bits).unwrap().trunc()
        });
        RangeSpec {
            path: "ipam.ranges[0][0]".to_owned(),
            subnet,
            start: start.map(at),
            end: end.map(at),
            gateway: match gateway {
                None => GatewayChoice::Default,
                Some(None) => GatewayChoice::None,
                Some(Some(place)) => GatewayChoice::Address(at(place)),
            },
            exclude: exclude.filter(|net| same_family(net.addr(), subnet.addr())).collect(),
        }
    })
}

/// What may be handed out, by looking at each address of the subnet; none if
/// the range can't be.
fn oracle(spec: &RangeSpec) -> Option<Vec<IpAddr>> {
    let subnet = spec.subnet;
    let (first, last) = (number(subnet.network()), number(subnet.broadcast()));
    let mut all = vec![];
    let mut at = first;
    loop {
        all.push(address(at, subnet));
        if at == last {
            break;
        }
        at += 1;
    }
    let is_small = all.len() <= 2;
    let within = |bound: Option<IpAddr>| bound.is_none_or(|bound| subnet.contains(&bound));
    let gateway = match spec.gateway {
        GatewayChoice::Default if is_small => return None,
        GatewayChoice::Default => all.get(1).copied(),
        GatewayChoice::None => None,
        GatewayChoice::Address(gateway) => {
            let must_be_inside = gateway.is_ipv4() && all.len() > 1;
            if must_be_inside && !subnet.contains(&gateway) {
                return None;
            }
            Some(gateway)
        }
    };
    if !within(spec.start) || !within(spec.end) {
        return None;
    }
    let hosts: BTreeSet<IpAddr> = all
        .iter()
        .enumerate()
        .filter(|(place, host)| {
            let is_first = *place == 0;
            let is_broadcast = host.is_ipv4() && place + 1 == all.len();
            is_small || !(is_first || is_broadcast)
        })
        .map(|(_, host)| *host)
        .collect();
    let start = spec.start.or(hosts.first().copied())?;
    let end = spec.end.or(hosts.last().copied())?;
    if start > end {
        return None;
    }
    let is_usable = |host: &IpAddr| {
        (start..=end).contains(host)
            && Some(*host) != gateway
            && !spec.exclude.iter().any(|net| net.contains(host))
    };
    Some(hosts.into_iter().filter(is_usable).collect())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(3000) })]

    /// B016, B052
    #[test]
    fn b052_a_range_hands_out_what_the_oracle_says(spec in spec()) {
        let expected = oracle(&spec);
        let range = Range::new(spec.clone());
        prop_assert_eq!(range.is_ok(), expected.is_some(), "{:?}: {:?}", spec, range);
        let (Ok(range), Some(expected)) = (range, expected) else { return Ok(()) };
        let set = RangeSet::new("ipam.ranges[0]", vec![range.clone()]);
        prop_assert_eq!(set.is_ok(), !expected.is_empty());
        let Ok(set) = set else { return Ok(()) };
        prop_assert_eq!(set.capacity(), expected.len() as u128);
        prop_assert_eq!(&set.candidates(None).collect::<Vec<_>>(), &expected);
        for place in 0..70 {
            let candidate = further(range.subnet, place);
            let is_usable = expected.contains(&candidate);
            prop_assert_eq!(range.place(candidate) == Place::Usable, is_usable, "{}", candidate);
            prop_assert_eq!(set.hands_out(candidate), is_usable, "{}", candidate);
        }
    }

    /// B092
    #[test]
    fn b092_every_address_comes_once_beginning_behind_the_last(spec in spec(), last in 0_u128..64) {
        let Ok(range) = Range::new(spec) else { return Ok(()) };
        let last = further(range.subnet, last);
        let Ok(set) = RangeSet::new("ipam.ranges[0]", vec![range.clone()]) else { return Ok(()) };
        let mut expected: Vec<_> = set.candidates(None).collect();
        if range.holds(last) {
            let behind = expected.partition_point(|candidate| *candidate <= last);
            let behind = if behind == expected.len() { 0 } else { behind };
            expected.rotate_left(behind);
        }
        prop_assert_eq!(set.candidates(Some(last)).collect::<Vec<_>>(), expected);
    }
}
