//! Every key of each plugin with values of the wrong type and out of range: the
//! message names key and value, and nothing is changed.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use podwire_tests::Refusals;
use serde_json::{Value, json};

/// What a key wants.
#[derive(Clone, Copy)]
enum Wants {
    Flag,
    Number,
    Text,
    List,
    Object,
}
use Wants::{Flag, List, Number, Object, Text};

impl Wants {
    /// Values of every other type.
    fn others(self) -> Vec<Value> {
        let all = [json!(true), json!(7), json!("text"), json!(["x", 1]), json!({"x": 1})];
        let own = match self {
            Flag => 0,
            Number => 1,
            Text => 2,
            List => 3,
            Object => 4,
        };
        let mut others: Vec<_> = all.into_iter().enumerate().collect();
        others.retain(|(index, _)| *index != own);
        let mut others: Vec<_> = others.into_iter().map(|(_, value)| value).collect();
        if let Number = self {
            // As Go's decoder: no fractions, nothing beyond 64 bits.
            others.push(json!(1.5));
            others.push(serde_json::from_str("1e300").unwrap());
        }
        others
    }
}

/// Sets a value at a path like `ipam.ranges.0.0.subnet`, making what is missing.
fn set(config: &mut Value, path: &str, value: Value) {
    let mut at = config;
    for part in path.split('.') {
        at = match part.parse::<usize>() {
            Ok(index) => {
                if !at.is_array() {
                    *at = json!([]);
                }
                let list = at.as_array_mut().unwrap();
                while list.len() <= index {
                    list.push(json!({}));
                }
                &mut list[index]
            }
            Err(_) => {
                if !at.is_object() {
                    *at = json!({});
                }
                &mut at[part]
            }
        };
    }
    *at = value;
}

/// The last name of a path.
fn key(path: &str) -> &str {
    path.rsplit('.').find(|part| part.parse::<usize>().is_err()).unwrap()
}

fn bridge() -> Value {
    json!({
        "cniVersion": "1.1.0", "name": "pods", "type": "bridge", "bridge": "br0",
        "isGateway": true, "ipMasq": true,
        "ipam": {"type": "host-local", "ranges": [[{"subnet": "10.1.0.0/24"}]]},
    })
}

fn host_local() -> Value {
    json!({
        "cniVersion": "1.1.0", "name": "pods", "type": "bridge",
        "ipam": {"type": "host-local", "ranges": [[{"subnet": "10.1.0.0/24"}]]},
    })
}

fn static_ipam() -> Value {
    json!({
        "cniVersion": "1.1.0", "name": "pods", "type": "bridge",
        "ipam": {"type": "static", "addresses": [{"address": "10.1.0.9/24"}]},
    })
}

fn portmap() -> Value {
    json!({
        "cniVersion": "1.1.0", "name": "pods", "type": "portmap",
        "runtimeConfig": {
            "portMappings": [{"hostPort": 8080, "containerPort": 80, "protocol": "tcp"}],
        },
        "prevResult": {
            "cniVersion": "1.1.0",
            "interfaces": [{"name": "eth0", "sandbox": "/run/netns/c1"}],
            "ips": [{"address": "10.1.0.9/24", "interface": 0}],
        },
    })
}

/// Tries every wrong type for every key in an ADD.
fn wrong_types(plugin: &str, good: fn() -> Value, keys: &[(&str, Wants)]) {
    let mut refusals = Refusals::new();
    for (path, wants) in keys {
        for value in wants.others() {
            let mut config = good();
            set(&mut config, path, value.clone());
            let output = refusals.call(plugin, "ADD", &config).run();
            let shown = match &value {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            refusals.refused(&output, &[6, 7], &[key(path), &shown]);
            if output.code == 0 {
                refusals.call(plugin, "DEL", &good()).run();
            }
        }
    }
    refusals.assert_nothing_changed();
}

#[test]
fn host_local_names_each_key_of_the_wrong_type() {
    wrong_types(
        "host-local",
        host_local,
        &[
            ("ipam", Object),
            ("ipam.ranges", List),
            ("ipam.ranges.0.0", Object),
            ("ipam.ranges.0.0.subnet", Text),
            ("ipam.ranges.0.0.rangeStart", Text),
            ("ipam.ranges.0.0.rangeEnd", Text),
            ("ipam.ranges.0.0.gateway", Text),
            ("ipam.subnet", Text),
            ("ipam.rangeStart", Text),
            ("ipam.rangeEnd", Text),
            ("ipam.gateway", Text),
            ("ipam.routes", List),
            ("ipam.routes.0", Object),
            ("ipam.routes.0.dst", Text),
            ("ipam.resolvConf", Text),
            ("ipam.dataDir", Text),
            ("runtimeConfig.ipRanges", List),
            ("runtimeConfig.ips", List),
            ("args.cni.ips", List),
        ],
    );
}

#[test]
fn static_names_each_key_of_the_wrong_type() {
    wrong_types(
        "static",
        static_ipam,
        &[
            ("ipam", Object),
            ("ipam.addresses", List),
            ("ipam.addresses.0", Object),
            ("ipam.addresses.0.address", Text),
            ("ipam.addresses.0.gateway", Text),
            ("ipam.routes", List),
            ("ipam.routes.0", Object),
            ("ipam.routes.0.dst", Text),
            ("ipam.dns", Object),
            ("ipam.dns.nameservers", List),
            ("runtimeConfig.ips", List),
            ("args.cni.ips", List),
        ],
    );
}

#[test]
fn portmap_names_each_key_of_the_wrong_type() {
    wrong_types(
        "portmap",
        portmap,
        &[
            ("backend", Text),
            ("snat", Flag),
            ("masqAll", Flag),
            ("markMasqBit", Number),
            ("externalSetMarkChain", Text),
            ("conditionsV4", List),
            ("conditionsV4.0", Text),
            ("conditionsV6", List),
            ("runtimeConfig", Object),
            ("runtimeConfig.portMappings", List),
            ("runtimeConfig.portMappings.0", Object),
            ("runtimeConfig.portMappings.0.hostPort", Number),
            ("runtimeConfig.portMappings.0.containerPort", Number),
            ("runtimeConfig.portMappings.0.protocol", Text),
            ("runtimeConfig.portMappings.0.hostIP", Text),
        ],
    );
}

#[test]
fn portmap_names_values_that_cannot_be() {
    wrong_values(
        "portmap",
        portmap,
        &[
            ("backend", json!("ebpf")),
            ("markMasqBit", json!(-1)),
            ("markMasqBit", json!(32)),
            ("runtimeConfig.portMappings.0.hostPort", json!(0)),
            ("runtimeConfig.portMappings.0.hostPort", json!(-1)),
            ("runtimeConfig.portMappings.0.hostPort", json!(65_536)),
            ("runtimeConfig.portMappings.0.containerPort", json!(0)),
            ("runtimeConfig.portMappings.0.containerPort", json!(65_536)),
            ("runtimeConfig.portMappings.0.protocol", json!("icmp")),
            ("runtimeConfig.portMappings.0.hostIP", json!("nonsense")),
        ],
    );
}

/// Tries values that have the right type and can't be.
fn wrong_values(plugin: &str, good: fn() -> Value, values: &[(&str, Value)]) {
    let mut refusals = Refusals::new();
    for (path, value) in values {
        let mut config = good();
        set(&mut config, path, value.clone());
        let output = refusals.call(plugin, "ADD", &config).run();
        let shown = match value {
            // As far as a message would show it as it is.
            Value::String(text) => text.chars().take_while(|c| !c.is_control()).take(40).collect(),
            Value::Number(number) => number.to_string(),
            _ => String::new(),
        };
        refusals.refused(&output, &[2, 6, 7], &[key(path), &shown]);
        if output.code == 0 {
            refusals.call(plugin, "DEL", &good()).run();
        }
    }
    refusals.assert_nothing_changed();
}

#[test]
fn host_local_names_values_that_cannot_be() {
    wrong_values(
        "host-local",
        host_local,
        &[
            ("ipam.ranges.0.0.subnet", json!("")),
            ("ipam.ranges.0.0.subnet", json!("nonsense")),
            ("ipam.ranges.0.0.subnet", json!("10.1.0.0")),
            ("ipam.ranges.0.0.subnet", json!("10.1.0.0/33")),
            ("ipam.ranges.0.0.subnet", json!("10.1.0.0/-1")),
            ("ipam.ranges.0.0.subnet", json!("10.1.0.7/24")),
            ("ipam.ranges.0.0.subnet", json!("fd00::/129")),
            ("ipam.ranges.0.0.rangeStart", json!("10.2.0.1")),
            ("ipam.ranges.0.0.rangeStart", json!("fd00::1")),
            ("ipam.ranges.0.0.rangeStart", json!("10.1.0.255")),
            ("ipam.ranges.0.0.rangeEnd", json!("10.2.0.1")),
            ("ipam.ranges.0.0.rangeEnd", json!("nonsense")),
            ("ipam.ranges.0.0.gateway", json!("nonsense")),
            ("ipam.ranges.0.0.gateway", json!("10.1.0.1/24")),
            ("ipam.ranges.0", json!([])),
            ("ipam.ranges", json!([])),
            ("ipam.routes.0.dst", json!("nonsense")),
            ("ipam.routes.0.dst", json!("10.0.0.0")),
            ("ipam.routes.0", json!({"dst": "10.9.0.0/16", "gw": "nonsense"})),
            ("ipam.dataDir", json!("/run/a\u{0}b")),
            ("ipam.resolvConf", json!("/run/no-such-file")),
            ("runtimeConfig.ips", json!(["nonsense"])),
            ("runtimeConfig.ipRanges", json!([[{"subnet": "nonsense"}]])),
            ("args.cni.ips", json!(["10.1.0.1/99"])),
        ],
    );
    let mut refusals = Refusals::new();
    for ranges in [
        json!([[{"subnet": "10.1.0.0/24"}, {"subnet": "10.1.0.128/25"}]]),
        json!([[{"subnet": "10.1.0.0/24"}], [{"subnet": "10.1.0.0/24"}]]),
        json!([[{"subnet": "10.1.0.0/24"}, {"subnet": "fd00::/64"}]]),
        json!([[{"subnet": "10.1.0.0/24", "rangeStart": "10.1.0.9", "rangeEnd": "10.1.0.8"}]]),
    ] {
        let mut config = host_local();
        config["ipam"]["ranges"] = ranges;
        let output = refusals.call("host-local", "ADD", &config).run();
        refusals.refused(&output, &[7], &["10.1.0."]);
    }
    let output = refusals.call("host-local", "ADD", &json!({"name": "pods"})).run();
    refusals.refused(&output, &[7], &["ipam"]);
    refusals.assert_nothing_changed();
}

#[test]
fn static_names_values_that_cannot_be() {
    wrong_values(
        "static",
        static_ipam,
        &[
            ("ipam.addresses.0.address", json!("10.1.0.9")),
            ("ipam.addresses.0.address", json!("nonsense")),
            ("ipam.addresses.0.address", json!("10.1.0.9/40")),
            ("ipam.addresses.0.address", json!("")),
            ("ipam.addresses.0.gateway", json!("nonsense")),
            ("ipam.routes.0.dst", json!("nonsense")),
            ("ipam.routes.0", json!({"dst": "10.9.0.0/16", "gw": "nonsense"})),
            ("runtimeConfig.ips", json!(["nonsense"])),
            ("args.cni.ips", json!(["10.1.0.300/24"])),
        ],
    );
}

#[test]
fn null_stands_for_absent_everywhere() {
    let refusals = Refusals::new();
    let before = refusals.node.world.snapshot();
    let mut config = bridge();
    for key in [
        "isGateway",
        "ipMasq",
        "ipMasqBackend",
        "mtu",
        "vlan",
        "vlanTrunk",
        "dns",
        "args",
        "runtimeConfig",
        "prevResult",
        "macspoofchk",
        "capabilities",
    ] {
        config[key] = Value::Null;
    }
    for key in ["ranges", "routes", "resolvConf", "dataDir", "gateway"] {
        config["ipam"][key] = Value::Null;
    }
    config["ipam"]["subnet"] = json!("10.1.0.0/24");
    let result = refusals.call("bridge", "ADD", &config).run().success().json();
    assert_eq!(result["ips"][0]["address"], "10.1.0.2/24");
    refusals.call("bridge", "DEL", &config).run().success();
    refusals.node.assert_nothing_left(&before);
}

#[test]
fn bridge_names_each_key_of_the_wrong_type() {
    wrong_types(
        "bridge",
        bridge,
        &[
            ("bridge", Text),
            ("isGateway", Flag),
            ("isDefaultGateway", Flag),
            ("forceAddress", Flag),
            ("ipMasq", Flag),
            ("ipMasqBackend", Text),
            ("mtu", Number),
            ("hairpinMode", Flag),
            ("promiscMode", Flag),
            ("vlan", Number),
            ("vlanTrunk", List),
            ("vlanTrunk.0", Object),
            ("vlanTrunk.0.id", Number),
            ("vlanTrunk.0.minID", Number),
            ("vlanTrunk.0.maxID", Number),
            ("preserveDefaultVlan", Flag),
            ("macspoofchk", Flag),
            ("enabledad", Flag),
            ("disableContainerInterface", Flag),
            ("portIsolation", Flag),
            ("ipam", Object),
            ("ipam.type", Text),
            ("dns", Object),
            ("dns.nameservers", List),
            ("dns.nameservers.0", Text),
            ("dns.domain", Text),
            ("dns.search", List),
            ("dns.options", List),
            ("args", Object),
            ("args.cni", Object),
            ("args.cni.mac", Text),
            ("runtimeConfig", Object),
            ("runtimeConfig.mac", Text),
        ],
    );
}

#[test]
fn bridge_names_values_that_cannot_be() {
    wrong_values(
        "bridge",
        bridge,
        &[
            ("bridge", json!("a/b")),
            ("bridge", json!("..")),
            ("bridge", json!("sixteen-bytes-xx")),
            ("bridge", json!("a\nb")),
            ("bridge", json!("a\u{0}b")),
            ("bridge", json!("")),
            ("mtu", json!(-1)),
            ("mtu", json!(65_536)),
            ("mtu", json!(4_294_967_296_u64)),
            ("mtu", json!(u64::MAX)),
            ("ipMasqBackend", json!("ebpf")),
            ("vlan", json!(-1)),
            ("vlan", json!(4095)),
            ("vlan", json!(65_537)),
            ("vlanTrunk.0.id", json!(0)),
            ("vlanTrunk.0.id", json!(4095)),
            ("vlanTrunk.0.minID", json!(5)),
            ("vlanTrunk.0.maxID", json!(5)),
            ("args.cni.mac", json!("02:00:5e:10:00")),
            ("runtimeConfig.mac", json!("nonsense")),
            ("ipam.type", json!("../host-local")),
            ("ipam.type", json!("host\u{0}local")),
        ],
    );
    let mut refusals = Refusals::new();
    let mut both = bridge();
    (both["hairpinMode"], both["promiscMode"]) = (json!(true), json!(true));
    let output = refusals.call("bridge", "ADD", &both).run();
    refusals.refused(&output, &[7], &["hairpin", "promisc"]);
    let mut disabled = bridge();
    disabled["disableContainerInterface"] = json!(true);
    let output = refusals.call("bridge", "ADD", &disabled).run();
    refusals.refused(&output, &[7], &["isableContainerInterface", "IPAM"]);
    let mut reversed = bridge();
    reversed["vlanTrunk"] = json!([{"minID": 9, "maxID": 5}]);
    let output = refusals.call("bridge", "ADD", &reversed).run();
    refusals.refused(&output, &[7], &["minID", "9", "5"]);
    let mut unknown = bridge();
    unknown["ipam"]["type"] = json!("no-such-ipam");
    let output = refusals.call("bridge", "ADD", &unknown).run();
    refusals.refused(&output, &[4, 7, 999], &["no-such-ipam"]);
    refusals.assert_nothing_changed();
}

#[test]
fn deletion_bears_a_configuration_that_became_wrong() {
    // What was attached must stay removable when the file was edited since.
    for (path, value) in [
        ("mtu", json!(-1)),
        ("vlan", json!(9999)),
        ("hairpinMode", json!(true)),
        ("runtimeConfig.mac", json!("nonsense")),
        ("ipam.ranges.0.0.gateway", json!("10.9.9.9")),
        ("ipam.routes.0.dst", json!("nonsense")),
        ("ipam.resolvConf", json!("/run/no-such-file")),
        ("ipam.ranges", json!([])),
    ] {
        let refusals = Refusals::new();
        let before = refusals.node.world.snapshot();
        refusals.call("bridge", "ADD", &bridge()).run().success();
        let mut edited = bridge();
        edited["promiscMode"] = json!(true);
        set(&mut edited, path, value);
        refusals.call("bridge", "DEL", &edited).run().success();
        refusals.node.assert_nothing_left(&before);
    }
}
