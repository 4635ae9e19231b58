use super::*;

fn found(text: &str) -> Vec<String> {
    check_bytes(text.as_bytes()).iter().map(ToString::to_string).collect()
}

/// A list of one bridge with this `ipam`.
fn bridge(ipam: &str) -> String {
    format!(r#"{{"cniVersion":"1.1.0","name":"n","plugins":[{{"type":"bridge","ipam":{ipam}}}]}}"#)
}

#[test]
fn b118_unknown_keys_of_our_plugins_are_warnings_with_their_place() {
    let text = r#"{"cniVersion":"1.1.0","name":"n","plugins":[
  {"type":"bridge","isGatway":true,"_remark":"x","isgateway":true,
   "ipam":{"type":"host-local","rangestart":"10.1.0.9","subnet":"10.1.0.0/24","routes":[{"dts":"0.0.0.0/0"}]}},
  {"type":"portmap","snatt":true,"capabilities":{"portMappings":true}}
]}"#;
    let findings = check_bytes(text.as_bytes());
    assert!(findings.iter().all(|finding| finding.severity == Severity::Warning));
    let shown: Vec<_> = findings
        .iter()
        .map(|finding| {
            let position = finding.position.unwrap();
            format!("{}:{} {} {}", position.line, position.column, finding.key, finding.hint)
        })
        .collect();
    assert_eq!(
        shown,
        [
            "2:31 plugins[0].isGatway did you mean isGateway?",
            "2:62 plugins[0].isgateway write isGateway",
            "3:45 plugins[0].ipam.rangestart write rangeStart",
            "3:96 plugins[0].ipam.routes[0].dts ",
            "4:29 plugins[1].snatt ",
        ]
    );
}

#[test]
fn c07_foreign_plugins_may_say_what_they_like() {
    for text in [
        include_str!("../../../spec/tests/data/c01.json"),
        include_str!("../../../spec/tests/data/c10.json"),
        r#"{"name":"k","cniVersion":"0.3.1","plugins":[{"type":"calico","ipam":{"type":"host-local","subnet":"usePodCidr"}}]}"#,
        r#"{"cniVersion":"1.0.0","name":"x","type":"mine","anything":{"deep":[1]}}"#,
        r#"{"cniVersion":"1.0.0","name":"x","type":"bridge","ipam":{}}"#,
        "not JSON",
        "[]",
    ] {
        assert_eq!(found(text), Vec::<String>::new(), "{text}");
    }
}

#[test]
fn c16_a_slip_in_a_foreign_ipam_is_pointed_out() {
    let text = r#"{"cniVersion":"0.3.1","type":"macvlan","master":"eth0","mode":"bridge","ipam":{"type":"whereabouts","range":"192.168.2.225/28","route":[{"dst":"0.0.0.0/0"}]}}"#;
    assert_eq!(found(text), ["warning: ipam.route: looks like a slip (did you mean routes?)"]);
}

#[test]
fn b118_overlapping_ranges_are_errors() {
    let overlapping = [
        r#"{"type":"host-local","ranges":[[{"subnet":"10.1.0.0/24"}],[{"subnet":"10.1.0.0/16"}]]}"#,
        r#"{"type":"host-local","subnet":"10.1.0.0/24","ranges":[[{"subnet":"10.1.0.0/24","rangeStart":"10.1.0.200"}]]}"#,
        r#"{"type":"host-local","ranges":[[{"subnet":"fd00::/64"},{"subnet":"fd00::/72"}]]}"#,
    ];
    for ipam in overlapping {
        let shown = found(&bridge(ipam));
        assert_eq!(shown.len(), 1, "{shown:?}");
        assert!(
            shown[0].starts_with("error: plugins[0].ipam.ranges[")
                && shown[0].contains("overlaps with")
        );
    }
    let apart = r#"{"type":"host-local","ranges":[[{"subnet":"10.1.0.0/24","rangeEnd":"10.1.0.99"},{"subnet":"10.1.0.0/24","rangeStart":"10.1.0.100"}],[{"subnet":"fd00::/64"}]]}"#;
    assert!(found(&bridge(apart)).is_empty());
}

#[test]
fn ranges_that_cannot_be_are_errors() {
    for (ipam, wanted) in [
        (r#"{"type":"host-local","subnet":"10.1.0.0"}"#, "expected a subnet"),
        (r#"{"type":"host-local","subnet":7}"#, "expected a string, found 7"),
        (r#"{"type":"host-local","ranges":[{"subnet":"10.1.0.0/24"}]}"#, "array of its own"),
        (
            r#"{"type":"host-local","subnet":"10.1.0.0/24","rangeEnd":"10.2.0.1"}"#,
            "not in the subnet",
        ),
        (
            r#"{"type":"host-local","subnet":"10.1.0.0/24","rangeStart":"10.1.0.9","rangeEnd":"10.1.0.3"}"#,
            "after its end",
        ),
    ] {
        let shown = found(&bridge(ipam));
        assert!(shown.len() == 1 && shown[0].contains(wanted), "{ipam}: {shown:?}");
    }
    assert!(found(&bridge(r#"{"type":"host-local","ranges":[[{}]]}"#)).is_empty());
}

#[test]
fn the_keys_of_dhcp_are_known() {
    let good = r#"{"type":"dhcp","daemonSocketPath":"/x","dataDir":"/y","priority":5,
        "clientId":"short","broadcast":true,"request":[{"option":"3","skipDefault":true}],
        "provide":[{"option":"12","value":"a","fromArg":"B"}]}"#;
    assert!(found(&bridge(good)).is_empty(), "{:?}", found(&bridge(good)));
    let wrong = found(&bridge(r#"{"type":"dhcp","provide":[{"option":"12","valeu":"a"}]}"#));
    assert_eq!(wrong.len(), 1, "{wrong:?}");
    assert!(wrong[0].contains("valeu"), "{wrong:?}");
}
