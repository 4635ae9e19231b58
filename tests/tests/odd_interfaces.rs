//! Results whose interfaces have names that no interface can have: some plugins print
//! them, and a DEL that fails over one fails for ever.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use podwire_testkit::{Netns, Plugin, World};
use podwire_tests::lab::{host_local, links, reservations, with, with_previous};
use serde_json::{Value, json};

/// Names that no interface has: none, and one too long.
const NAMES: [&str; 2] = ["", "longer-than-any-interface"];

/// Configurations of a plugin, each behind the ones before it.
fn chains() -> Vec<Vec<Value>> {
    let pool = host_local(&["10.1.0.0/24"]);
    let bridge = json!({"type": "bridge", "bridge": "br0", "isGateway": true, "ipMasq": true,
        "macspoofchk": true, "ipam": pool});
    let behind = |config: Value| vec![bridge.clone(), config];
    vec![
        vec![bridge.clone()],
        vec![json!({"type": "ptp", "ipMasq": true, "ipam": pool})],
        vec![json!({"type": "macvlan", "master": "up0", "ipam": pool})],
        vec![json!({"type": "tap", "ipam": pool})],
        vec![json!({"type": "host-device", "device": "up0", "ipam": pool})],
        vec![json!({"type": "loopback"})],
        behind(json!({"type": "portmap", "snat": true, "runtimeConfig": {"portMappings":
            [{"hostPort": 8080, "containerPort": 80, "protocol": "tcp"}]}})),
        behind(json!({"type": "firewall", "backend": "iptables", "ingressPolicy": "same-bridge"})),
        behind(json!({"type": "bandwidth", "ingressRate": 8_000_000, "ingressBurst": 800_000,
            "egressRate": 8_000_000, "egressBurst": 800_000})),
        behind(json!({"type": "tuning", "mtu": 1300})),
        behind(json!({"type": "sbr"})),
    ]
}

fn call(world: &World, netns: &Netns, verb: &str, config: &Value) -> Plugin {
    let name = config["type"].as_str().unwrap();
    let config = with(config, &json!({"cniVersion": "1.1.0", "name": "n"}));
    let ifname = if name == "loopback" { "lo" } else { "eth0" };
    world.plugin(name).command(verb).container("c1").netns(netns).ifname(ifname).config(&config)
}

/// The result with interfaces of this name: all of the host, all of the container, or one
/// more of each.
fn spoilt(result: &Value, name: &str) -> Vec<Value> {
    let rename = |of_host: bool| {
        let mut result = result.clone();
        for interface in result["interfaces"].as_array_mut().unwrap() {
            if interface["sandbox"].is_null() == of_host {
                interface["name"] = json!(name);
            }
        }
        result
    };
    let mut more = result.clone();
    let interfaces = more["interfaces"].as_array_mut().unwrap();
    interfaces.insert(0, json!({"name": name}));
    interfaces.push(json!({"name": name, "sandbox": "/run/netns/c1"}));
    if let Some(ips) = more["ips"].as_array_mut() {
        for ip in ips {
            if let Some(index) = ip["interface"].as_u64() {
                ip["interface"] = json!(index + 1);
            }
        }
    }
    vec![rename(true), rename(false), more]
}

/// B022: DEL succeeds and leaves nothing, with the namespace and without; CHECK says what
/// is wrong, or that nothing is.
#[test]
fn b022_no_name_in_a_result_keeps_a_del_from_its_work() {
    for chain in chains() {
        for name in NAMES {
            for (variant, is_gone) in [(0, false), (0, true), (1, false), (2, true)] {
                attempt(&chain, name, variant, is_gone);
            }
        }
    }
}

#[track_caller]
fn attempt(chain: &[Value], name: &str, variant: usize, is_gone: bool) {
    let world = World::new();
    world.exec(&["ip", "link", "add", "up0", "type", "veth", "peer", "name", "far0"]);
    let netns = world.netns("c1");
    let before = world.snapshot();
    let mut result = Value::Null;
    for config in chain {
        let config = if result.is_null() { config.clone() } else { with_previous(config, &result) };
        result = call(&world, &netns, "ADD", &config).run().success().json();
    }
    let result = spoilt(&result, name).remove(variant);
    for config in chain {
        let output = call(&world, &netns, "CHECK", &with_previous(config, &result)).run();
        if output.code != 0 {
            let code = output.json()["code"].as_u64().unwrap();
            assert!([7, 100].contains(&code), "{name:?}, {variant}: {output:#?}");
        }
    }
    if is_gone {
        netns.remove();
    }
    for config in chain.iter().rev() {
        call(&world, &netns, "DEL", &with_previous(config, &result)).run().success();
    }
    assert_eq!(reservations("n"), [""; 0], "{name:?}, {variant}");
    let type_of = &chain[0]["type"];
    if is_gone {
        // The kernel takes what was in the namespace down in its own time.
        podwire_tests::wait_until("the end of the namespace", || {
            !links(world.host()).iter().any(|link| link.starts_with("veth"))
        });
    }
    let left = world.snapshot().since(&before).beyond_residue(&["br0"]);
    // A moved device of this kind dies with its namespace.
    let is_moved = |name: &str| name.contains("up0") || name.contains("far0");
    let left =
        left.without(|change| type_of == "host-device" && is_gone && is_moved(change.name()));
    left.without(|change| change.name().starts_with("sysctl ")).assert_empty();
}
