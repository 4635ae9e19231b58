//! What holds for every input: results survive the way to text and back and
//! from version to version, and no input makes anything panic.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

use std::net::IpAddr;

use ipnet::IpNet;
use podwire_spec::args::CniArgs;
use podwire_spec::config::{NetworkList, PluginConfig};
use podwire_spec::error::{Error, ErrorCode, last_error_object};
use podwire_spec::json::{Editor, Object};
use podwire_spec::request::{CapabilityArguments, PluginRequest, RequestInputs, build};
use podwire_spec::result::{CniResult, Dns, Interface, IpConfig, Route, VersionedResult};
use podwire_spec::version::{Family, SpecVersion, VersionNumbers};
use podwire_spec::version_info::{self, VersionInfo};
use podwire_spec::{capability, id, lint};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

fn address() -> impl Strategy<Value = IpAddr> {
    any::<IpAddr>().prop_map(|address| address.to_canonical())
}

fn network() -> impl Strategy<Value = IpNet> {
    (address(), any::<u8>()).prop_map(|(address, prefix)| {
        let most = if address.is_ipv4() { 32 } else { 128 };
        IpNet::new(address, prefix % (most + 1)).unwrap()
    })
}

fn text() -> impl Strategy<Value = Option<String>> {
    option::of("\\PC{1,8}|[\\x00-\\x1f\"\\\\<>&\u{2028}]{1,4}")
}

fn interface() -> impl Strategy<Value = Interface> {
    let newest_only = (option::of(1_u32..), text(), text());
    (".{0,8}", text(), text(), newest_only).prop_map(
        |(name, mac, sandbox, (mtu, socket_path, pci_id))| Interface {
            name,
            mac,
            mtu,
            sandbox,
            socket_path,
            pci_id,
        },
    )
}

fn route() -> impl Strategy<Value = Route> {
    let amounts = [option::of(1_u32..), option::of(1_u32..), option::of(1_u32..)];
    (network(), option::of(address()), amounts, any::<[Option<u32>; 2]>()).prop_map(
        |(dst, gw, [mtu, advmss, priority], [table, scope])| Route {
            dst,
            gw,
            mtu,
            advmss,
            priority,
            table,
            scope,
        },
    )
}

fn dns() -> impl Strategy<Value = Dns> {
    let list = || vec(".{0,8}", 0..3);
    (list(), text(), list(), list()).prop_map(|(nameservers, domain, search, options)| Dns {
        nameservers,
        domain,
        search,
        options,
    })
}

fn ip() -> impl Strategy<Value = IpConfig> {
    (network(), option::of(address()), option::of(0_usize..5))
        .prop_map(|(address, gateway, interface)| IpConfig { address, gateway, interface })
}

fn result() -> impl Strategy<Value = CniResult> {
    (vec(interface(), 0..4), vec(ip(), 0..4), vec(route(), 0..4), dns())
        .prop_map(|(interfaces, ips, routes, dns)| CniResult { interfaces, ips, routes, dns })
}

fn version() -> impl Strategy<Value = SpecVersion> {
    prop::sample::select(SpecVersion::ALL.as_slice())
}

/// JSON that is nearly what the parsers want: valid texts with keys they know
/// and values of every kind, now and then with a byte changed.
fn hostile() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        Just("true".to_owned()),
        Just("-1".to_owned()),
        Just("18446744073709551616".to_owned()),
        Just("1e9".to_owned()),
        Just("\"\\ud800\"".to_owned()),
        Just("\"0.4.0\"".to_owned()),
        Just("\"10.1.2.3/24\"".to_owned()),
        Just("\"::ffff:1.2.3.4/1\"".to_owned()),
        ".{0,6}".prop_map(|text| format!("{text:?}")),
    ];
    let key = prop::sample::select(
        [
            "cniVersion",
            "cniVersions",
            "name",
            "type",
            "plugins",
            "ipam",
            "dns",
            "capabilities",
            "prevResult",
            "runtimeConfig",
            "args",
            "ips",
            "interfaces",
            "routes",
            "ip4",
            "ip6",
            "ip",
            "address",
            "dst",
            "gw",
            "interface",
            "sandbox",
            "mtu",
            "scope",
            "code",
            "msg",
            "details",
            "cni.dev/valid-attachments",
            "containerID",
            "ifname",
            "portMappings",
            "hostPort",
            "ipRanges",
            "subnet",
            "bandwidth",
            "mac",
            "aliases",
            "disableCheck",
            "NAME",
            "__X__",
            "supportedVersions",
        ]
        .as_slice(),
    );
    let value = leaf.prop_recursive(4, 40, 6, move |inner| {
        prop_oneof![
            vec(inner.clone(), 0..5).prop_map(|list| format!("[{}]", list.join(","))),
            vec((key.clone(), inner), 0..7).prop_map(|entries| {
                let entries: Vec<_> =
                    entries.iter().map(|(key, value)| format!("\"{key}\" : {value}")).collect();
                format!("{{{}}}", entries.join(","))
            }),
        ]
    });
    (value, any::<prop::sample::Index>(), option::weighted(0.3, any::<char>())).prop_map(
        |(text, at, letter)| {
            let mut letters: Vec<char> = text.chars().collect();
            if let Some(letter) = letter {
                let at = at.index(letters.len());
                letters.splice(at..=at, [letter]);
            }
            letters.into_iter().collect()
        },
    )
}

/// Everything that reads outside input, on one text.
fn read_everything(text: &str) {
    let bytes = text.as_bytes();
    for version in [SpecVersion::V0_2_0, SpecVersion::V0_4_0, SpecVersion::V1_1_0] {
        if let Ok(result) = VersionedResult::parse(text, version) {
            let newest = result.clone().into_newest().unwrap();
            let _ = newest.validate_indices();
            let _ = newest.container_addresses("eth0");
            let mut twice = newest.clone();
            twice.merge(newest);
            for to in SpecVersion::ALL {
                let _ = result.clone().convert(to).map(|result| result.to_json());
            }
        }
    }
    if let Ok(request) = PluginRequest::parse(text) {
        let _ = request.previous_result();
        let _ = request.spec_version(&SpecVersion::ALL);
    }
    let name = id::NetworkName::parse("n").unwrap();
    for list in [NetworkList::from_bytes(bytes), NetworkList::from_plugin_bytes(bytes, Some(&name))]
    {
        match list {
            Ok(list) => {
                let _ = list.require_plugins();
                let again = NetworkList::from_bytes(list.merged().as_bytes());
                assert!(list.plugins.is_empty() || again.is_ok());
                for plugin in &list.plugins {
                    build(plugin, &list, RequestInputs::default()).unwrap();
                }
            }
            Err(error) => assert!(!error.in_file("f").msg.is_empty()),
        }
    }
    if let Ok(object) = Object::parse(text) {
        let _ = capability::port_mappings(&object);
        let _ = capability::ip_ranges(&object);
        let _ = capability::ips(&object);
        let _ = capability::bandwidth(&object);
        let _ = capability::dns(&object);
        let _ = capability::mac(&object);
        let _ = capability::aliases(&object, "name");
        let _ = CapabilityArguments::from_object(&object).to_json();
        assert!(Object::parse(&Editor::new(&object).finish()).is_ok());
    }
    let _ = PluginConfig::from_bytes(bytes);
    let _ = Error::parse(text);
    let _ = last_error_object(text);
    let _ = VersionInfo::parse(text);
    let _ = version_info::reply(text, &SpecVersion::ALL);
    let _ = lint::check(bytes);
    let _ = CniArgs::parse(text);
    let _ = VersionNumbers::parse(text);
    let _ = id::IfName::parse(text);
    let _ = id::ContainerId::parse(text);
    let _ = id::PluginType::parse(text);
}

/// What version `to` can hold of a result.
fn kept(mut result: CniResult, to: SpecVersion) -> Option<CniResult> {
    if to.family() == Family::Newest {
        return Some(result);
    }
    for interface in &mut result.interfaces {
        (interface.mtu, interface.socket_path, interface.pci_id) = (None, None, None);
    }
    if to.family() == Family::Middle {
        return Some(result);
    }
    let is_v4 = |network: &IpNet| network.addr().is_ipv4();
    let first = |v4| result.ips.iter().find(|ip| is_v4(&ip.address) == v4).cloned();
    let ips: Vec<_> = [first(true), first(false)]
        .into_iter()
        .flatten()
        .map(|ip| IpConfig { interface: None, ..ip })
        .collect();
    let has = |v4| ips.iter().any(|ip| is_v4(&ip.address) == v4);
    let routes = [true, false]
        .into_iter()
        .filter(|v4| has(*v4))
        .flat_map(|v4| result.routes.iter().filter(move |route| is_v4(&route.dst) == v4))
        .map(|route| Route::new(route.dst, route.gw))
        .collect();
    (!ips.is_empty()).then_some(CniResult { interfaces: Vec::new(), ips, routes, dns: result.dns })
}

proptest! {
    #[test]
    fn a_result_survives_every_version_but_for_the_named_losses(result in result(), to in version()) {
        match (result.to_json(to), kept(result, to)) {
            (Ok(text), Some(kept)) => {
                let read = VersionedResult::parse(&text, SpecVersion::V0_1_0).unwrap();
                prop_assert_eq!(read.version(), to);
                prop_assert_eq!(&read.to_json(), &text);
                prop_assert_eq!(read.into_newest().unwrap(), kept);
            }
            (Err(error), None) => prop_assert!(error.msg.contains("no valid IP addresses")),
            (printed, kept) => prop_assert!(false, "{printed:?} but {kept:?}"),
        }
    }

    #[test]
    fn a_second_conversion_loses_nothing_more(result in result(), by in version(), to in version()) {
        if let Ok(by) = result.into_version(by) {
            let once = by.clone().convert(to);
            if let Ok(once) = once {
                let back = once.clone().convert(by.version()).and_then(|back| back.convert(to));
                prop_assert_eq!(back.unwrap(), once);
            }
        }
    }

    #[test]
    fn an_error_is_read_as_printed(number: u32, msg in ".{0,20}", details in ".{0,20}", version in option::of(version())) {
        let error = Error::new(ErrorCode::from_number(number), msg).with_details(details);
        prop_assert_eq!(Error::parse(&error.to_json(version)), Some(error.clone()));
        let noisy = format!("log {{line\n{{}}{}\n", error.to_json(version));
        prop_assert_eq!(last_error_object(&noisy), Some(error));
    }

    #[test]
    fn arguments_are_read_as_written(pairs in vec(("[A-Za-z_]{1,8}", "[^;\0]{0,8}"), 0..5)) {
        let mut arguments = CniArgs::default();
        for (key, value) in &pairs {
            arguments.push(key, value).unwrap();
        }
        prop_assert_eq!(CniArgs::parse(&arguments.to_string()).unwrap(), arguments);
    }

    #[test]
    fn no_text_makes_a_parser_panic(text in "\\PC{0,60}") {
        read_everything(&text);
    }

    #[test]
    fn nothing_near_the_format_makes_a_parser_panic(text in hostile()) {
        read_everything(&text);
    }
}
