//! B122: both languages are read, and what can't be is named.

use podwire_netlink::nft::{Family, IpVersion, Rule, TableId};
use podwire_spec::Error;

use super::Condition;

fn parse(words: &[&str], version: IpVersion) -> Result<Condition, Error> {
    let words: Vec<_> = words.iter().map(|word| (*word).to_owned()).collect();
    Condition::parse(&words, version)
}

fn chain() -> Rule {
    Rule::new(TableId::new(Family::Ipv4, "t").chain("c"))
}

#[test]
fn b122_both_languages_say_the_same() {
    let v4 = IpVersion::V4;
    for (iptables, nft) in [
        (&["!", "-s", "10.0.0.0/8"][..], &["ip", "saddr", "!=", "10.0.0.0/8"][..]),
        (&["-s", "!", "10.0.0.0/8"], &["ip saddr != 10.0.0.0/8"]),
        (&["-d", "192.0.2.1,192.0.2.2"], &["ip", "daddr", "{192.0.2.1,", "192.0.2.2}"]),
        (&["!", "-d", "192.0.2.1,192.0.2.2"], &["ip daddr != { 192.0.2.1, 192.0.2.2 }"]),
        (&["-i", "eth0", "!", "-o", "veth+"], &["iifname eth0 oifname != \"veth*\""]),
        (&["-p", "tcp", "-m", "mark", "!", "--mark", "0x10"], &["meta l4proto 6 mark != 16"]),
    ] {
        let one = parse(iptables, v4).unwrap();
        assert_eq!(one, parse(nft, v4).unwrap(), "{iptables:?}");
    }
}

#[test]
fn a_list_is_a_choice_and_a_negated_list_excludes_each() {
    let choice = parse(&["-s", "10.0.0.1,10.0.0.2", "-i", "eth0"], IpVersion::V4).unwrap();
    let rules = choice.rules(&chain());
    assert_eq!(rules.len(), 2);
    assert!(rules.iter().all(|rule| rule.expressions.len() == 4));
    let none = parse(&["!", "-s", "10.0.0.1,10.0.0.2"], IpVersion::V4).unwrap();
    let rules = none.rules(&chain());
    assert_eq!(rules.len(), 1);
    assert_eq!(rules[0].expressions.len(), 4);
}

#[test]
fn a_comment_of_iptables_says_nothing() {
    let condition =
        parse(&["!", "-d", "10.0.0.1", "-m", "comment", "--comment", "why"], IpVersion::V4);
    assert_eq!(condition.unwrap(), parse(&["!", "-d", "10.0.0.1"], IpVersion::V4).unwrap());
}

#[test]
fn b122_what_can_not_be_read_is_named() {
    let refusal = |words: &[&str], version| {
        let error = parse(words, version).unwrap_err();
        assert_eq!(error.code.number(), 7);
        error.msg
    };
    let v4 = IpVersion::V4;
    assert!(refusal(&["-m", "set", "--match-set", "x", "src"], v4).contains("-m set"));
    assert!(refusal(&["--dport", "80"], v4).contains("--dport"));
    assert!(refusal(&["tcp dport 80"], v4).contains("tcp"));
    assert!(refusal(&["ip6 saddr fd00::1"], v4).contains("ip6 saddr"));
    assert!(refusal(&["-s", "fd00::1"], v4).contains("other IP version"));
    assert!(refusal(&["-d", "10.0.0.1"], IpVersion::V6).contains("other IP version"));
    assert!(refusal(&["-s"], v4).contains("lacks its value"));
    assert!(refusal(&["-s", "10.0.0.1", "!"], v4).contains("nothing behind it"));
    assert!(refusal(&["ip saddr {"], v4).contains("lacks its value"));
    assert!(refusal(&["ip"], v4).contains("lacks its value"));
    assert!(refusal(&["!", "-s", "0.0.0.0/0"], v4).contains("every address"));
    assert!(refusal(&["-i", "a-name-of-16-byte"], v4).contains("not an interface name"));
}
