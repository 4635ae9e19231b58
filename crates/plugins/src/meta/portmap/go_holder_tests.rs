use podwire_netlink::nft::{Data, TableId};

use super::*;
use crate::meta::portmap::mapping::Protocol;

fn words(line: &str) -> Vec<String> {
    line.split(' ').map(str::to_owned).collect()
}

fn claim(host_address: Option<&str>) -> Claim {
    Claim {
        protocol: 6,
        port: 8080,
        host_address: host_address.map(|text| text.parse().unwrap()),
        target: "10.1.0.2".parse().unwrap(),
        container: "c1".to_owned(),
        network: Some("pods".to_owned()),
    }
}

/// As iptables-nft (an extension of xtables) and nft write it.
#[test]
fn rules_of_both_backends_are_read() {
    let matches = |destination: bool| {
        let register = Register::R0;
        let load = |base, offset, length| Expression::Payload {
            base,
            offset,
            length,
            destination: register,
        };
        let equal =
            |value| Expression::Compare { comparison: Comparison::Equal, source: register, value };
        let mut expressions = vec![
            Expression::Meta { key: MetaKey::TransportProtocol, destination: register },
            equal(Data::new().protocol(6)),
        ];
        if destination {
            expressions.push(load(PayloadBase::Network, 16, 4));
            expressions.push(equal(Data::new().address([192, 0, 2, 1].into())));
        }
        expressions.push(load(PayloadBase::Transport, 2, 2));
        expressions.push(equal(Data::new().port(8080)));
        expressions
    };
    let mut info = vec![0; 40];
    info[4..8].copy_from_slice(&[10, 1, 0, 2]);
    let extension = Expression::XtTarget { name: "DNAT".to_owned(), revision: 2, info };
    let register = Expression::Immediate {
        destination: Register::R0,
        value: Data::new().address([10, 1, 0, 2].into()),
    };
    for end in [extension, register] {
        for address in [None, Some("192.0.2.1")] {
            let table = TableId::new(Family::Ipv4, "nat");
            let mut rule = Rule::new(table.chain("CNI-DN-x"));
            rule.expressions = matches(address.is_some());
            assert_eq!(Claim::read(&rule, "c1", Some("pods")), None, "it translates nothing");
            rule.expressions.push(end.clone());
            assert_eq!(Claim::read(&rule, "c1", Some("pods")), Some(claim(address)));
        }
    }
}

#[test]
fn rules_of_legacy_xtables_are_read() {
    let rule = "-A CNI-DN-x -d 192.0.2.1/32 -p tcp -m tcp --dport 8080 -j DNAT";
    let read = |line: &str| Claim::read_words(&words(line), "c1", "pods");
    let whole = format!("{rule} --to-destination 10.1.0.2:80");
    assert_eq!(read(&whole), Some(claim(Some("192.0.2.1"))));
    assert_eq!(read(&whole.replace(" -d 192.0.2.1/32", "")), Some(claim(None)));
    let six = read("-A C -p udp --dport 53 -j DNAT --to-destination [fd01::2]:53").unwrap();
    assert_eq!(six.target, "fd01::2".parse::<IpAddr>().unwrap());
    for broken in [rule, "-A C", "-A C --dport", "-A C -p tcp --dport x --to-destination 1:2"] {
        assert_eq!(read(broken), None, "{broken}");
    }
}

/// One address of the host leaves the others to a mapping of all.
#[test]
fn only_a_rule_that_takes_everything_is_in_the_way() {
    let mapping = |host_ip: Option<&str>, host_port| Mapping {
        protocol: Protocol::Tcp,
        host_ip: host_ip.map(|text| text.parse().unwrap()),
        host_port,
        container_port: 80,
    };
    assert!(claim(None).takes(&mapping(None, 8080)));
    assert!(claim(None).takes(&mapping(Some("192.0.2.1"), 8080)));
    assert!(claim(Some("192.0.2.1")).takes(&mapping(Some("192.0.2.1"), 8080)));
    assert!(!claim(Some("192.0.2.1")).takes(&mapping(Some("0.0.0.0"), 8080)));
    assert!(!claim(Some("192.0.2.1")).takes(&mapping(None, 8080)));
    assert!(!claim(None).takes(&mapping(None, 8081)));
}
