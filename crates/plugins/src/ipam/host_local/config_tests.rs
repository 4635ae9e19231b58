use super::*;

fn parse_as(text: &str, version: SpecVersion) -> Result<Config, Error> {
    let request = PluginRequest::parse(text).unwrap();
    Config::parse(&request, version)
}

fn parse(members: &str) -> Result<Config, Error> {
    parse_as(&format!(r#"{{"name":"n1",{members}}}"#), SpecVersion::LATEST)
}

fn refusal(members: &str) -> String {
    let error = parse(members).unwrap_err();
    assert_eq!(error.code.number(), 7, "{members}: {error}");
    error.to_string()
}

fn sets(config: &Config) -> Vec<String> {
    config.sets.iter().map(ToString::to_string).collect()
}

#[test]
fn sets_come_from_the_runtime_then_the_old_range_then_ranges() {
    let config = parse(
        r#""ipam":{"subnet":"10.1.2.0/24","ranges":[[{"subnet":"10.3.0.0/24"}]],"dataDir":"/d",
           "routes":[{"dst":"0.0.0.0/0","gw":"10.1.2.7","mtu":1400,"table":7}],
           "resolvConf":"/etc/resolv.conf"},
           "runtimeConfig":{"ipRanges":[[{"subnet":"10.4.0.0/30"}]]}"#,
    )
    .unwrap();
    assert_eq!(sets(&config), ["10.4.0.1-10.4.0.2", "10.1.2.1-10.1.2.254", "10.3.0.1-10.3.0.254"]);
    assert_eq!(config.data_dir, PathBuf::from("/d"));
    assert_eq!(config.resolv_conf, Some(PathBuf::from("/etc/resolv.conf")));
    assert_eq!((config.routes[0].mtu, config.routes[0].table), (Some(1400), Some(7)));
}

/// C28
#[test]
fn c28_the_old_single_range_is_a_set() {
    let text = r#"{"cniVersion":"0.2.0","name":"old","type":"bridge","bridge":"b0","ipam":{
        "type":"host-local","subnet":"10.1.2.0/24","rangeStart":"10.1.2.9","rangeEnd":"10.1.2.20",
        "gateway":"10.1.2.3","routes":[{"dst":"0.0.0.0/0"}],"resolvConf":"/etc/resolv.conf"}}"#;
    let config = parse_as(text, SpecVersion::V0_2_0).unwrap();
    assert_eq!(sets(&config), ["10.1.2.9-10.1.2.20"]);
    assert_eq!(config.data_dir, PathBuf::from(DEFAULT_DATA_DIR));
    let text = refusal(r#""ipam":{"ranges":[{"subnet":"10.1.2.0/24"}]}"#);
    assert!(text.contains("ipam.ranges[0]: expected an array of ranges"), "{text}");
    assert!(text.contains("[[{\"subnet\""), "{text}");
}

/// C28
#[test]
fn c28_old_versions_take_one_set_a_family() {
    let two = r#"{"name":"n1","ipam":{"ranges":[[{"subnet":"10.1.0.0/24"}],[{"subnet":"10.2.0.0/24"}]]}}"#;
    let error = parse_as(two, SpecVersion::V0_2_0).unwrap_err();
    assert!(error.msg.contains("more than 1 IPv4 address"), "{error}");
    parse_as(two, SpecVersion::V0_3_0).unwrap();
    let dual =
        r#"{"name":"n1","ipam":{"ranges":[[{"subnet":"10.1.0.0/24"}],[{"subnet":"fd00::/64"}]]}}"#;
    parse_as(dual, SpecVersion::V0_1_0).unwrap();
}

/// C07
#[test]
fn c07_a_sentinel_in_place_of_a_subnet_is_named() {
    let text = refusal(r#""ipam":{"type":"host-local","subnet":"usePodCidr"}"#);
    assert!(text.contains("ipam.subnet: expected a subnet"), "{text}");
    assert!(text.contains("usePodCidr"), "{text}");
}

#[test]
fn errors_name_key_and_value() {
    for (members, part) in [
        (r#""x":1"#, "IPAM config missing 'ipam' key"),
        (r#""ipam":{}"#, "no IP ranges specified"),
        (r#""ipam":{"ranges":[]}"#, "no IP ranges specified"),
        (r#""ipam":{"ranges":[[]]}"#, "ipam.ranges[0]: empty range set"),
        (r#""ipam":{"ranges":[[{}]]}"#, "ipam.ranges[0][0].subnet: missing"),
        (
            r#""ipam":{"ranges":[[{"subnet":"10.1.0.0/24","rangeEnd":"10.1.0"}]]}"#,
            "ipam.ranges[0][0].rangeEnd: expected an IP address, as 10.1.0.9, found \"10.1.0\"",
        ),
        (
            r#""ipam":{"ranges":[[{"subnet":"10.1.0.0/24","exclude":["fd00::1"]}]]}"#,
            "ipam.ranges[0][0].exclude[0]: expected an IPv4 address",
        ),
        (
            r#""ipam":{"subnet":"10.1.0.0/24","ranges":[[{"subnet":"10.1.0.0/25"}]]}"#,
            "range set 0 overlaps with 1",
        ),
        (r#""ipam":{"subnet":"10.1.0.0/24","statusOnExhausted":"no"}"#, "statusOnExhausted"),
        (
            r#""ipam":{"subnet":"10.1.0.0/24"},"runtimeConfig":{"ipRanges":[[{"subnet":"x"}]]}"#,
            "runtimeConfig.ipRanges[0][0].subnet",
        ),
    ] {
        let text = refusal(members);
        assert!(text.contains(part), "{members}: {text}");
    }
    let error = parse(r#""ipam":{"ranges":[[{"subnet":7}]]}"#).unwrap_err();
    assert_eq!(error.code.number(), 6);
    assert!(error.msg.contains("ipam.ranges[0][0].subnet"), "{error}");
}

/// Found with long inputs of the fuzz targets: an ADD made thousands of reservations.
#[test]
fn an_interface_cannot_be_given_thousands_of_addresses() {
    let sets = |count: usize| {
        let set = |at: usize| format!(r#"[{{"subnet":"10.{}.{}.0/24"}}]"#, at / 256, at % 256);
        let all: Vec<_> = (0..count).map(set).collect();
        format!(r#""ipam":{{"ranges":[{}]}}"#, all.join(","))
    };
    assert_eq!(parse(&sets(1024)).unwrap().sets.len(), 1024);
    assert!(refusal(&sets(1025)).contains("1025 range sets"));
}

#[test]
fn a_flat_list_with_capital_keys_is_taken_from_the_runtime() {
    let config = parse(
        r#""ipam":{},"runtimeConfig":{"ipRanges":[
           {"Subnet":"10.1.0.0/24","RangeStart":"10.1.0.9","RangeEnd":"","Gateway":""},
           {"Subnet":"fd00::/64"},{"Subnet":"10.2.0.0/24"}]}"#,
    )
    .unwrap();
    assert_eq!(
        sets(&config),
        ["10.1.0.9-10.1.0.254,10.2.0.1-10.2.0.254", "fd00::1-fd00::ffff:ffff:ffff:ffff"]
    );
}

#[test]
fn requested_addresses_are_merged_in_order() {
    let text = r#"{"name":"n1","args":{"cni":{"ips":["10.1.0.8/24","10.1.0.7"]}},
                   "runtimeConfig":{"ips":["fd00::9","::ffff:10.1.0.7"]}}"#;
    let request = PluginRequest::parse(text).unwrap();
    let all = requested(&request, Some("10.1.0.9")).unwrap();
    let shown: Vec<_> = all.iter().map(|one| format!("{} {}", one.address, one.source)).collect();
    assert_eq!(
        shown,
        [
            "10.1.0.9 CNI_ARGS IP",
            "10.1.0.8 args.cni.ips[0]",
            "10.1.0.7 args.cni.ips[1]",
            "fd00::9 runtimeConfig.ips[0]"
        ]
    );
    assert!(requested(&request, Some("10.1.0")).unwrap_err().msg.contains("CNI_ARGS IP"));
    let wrong = PluginRequest::parse(r#"{"name":"n1","args":{"cni":{"ips":["x"]}}}"#).unwrap();
    assert_eq!(
        requested(&wrong, None).unwrap_err().msg,
        "args.cni.ips[0]: expected an IP address, as 10.1.0.9, found \"x\""
    );
}

#[test]
fn the_data_directory_is_all_that_del_reads() {
    let dir = |text: &str| data_dir(&PluginRequest::parse(text).unwrap());
    assert_eq!(dir(r#"{"name":"n1"}"#).unwrap(), PathBuf::from(DEFAULT_DATA_DIR));
    assert_eq!(
        dir(r#"{"name":"n1","ipam":{"subnet":7,"dataDir":"/d"}}"#).unwrap(),
        PathBuf::from("/d")
    );
    assert_eq!(dir(r#"{"name":"n1","ipam":{"dataDir":7}}"#).unwrap_err().code.number(), 6);
}

#[test]
fn status_knows_when_ranges_come_with_add() {
    let come = |text: &str| ranges_come_with_add(&PluginRequest::parse(text).unwrap());
    assert!(come(r#"{"name":"n1","capabilities":{"ipRanges":true},"ipam":{"ranges":[]}}"#));
    assert!(!come(
        r#"{"name":"n1","capabilities":{"ipRanges":true},"ipam":{"subnet":"10.1.0.0/24"}}"#
    ));
    assert!(!come(r#"{"name":"n1","ipam":{}}"#));
}
