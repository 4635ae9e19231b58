//! Lists of valid attachments that can't be right: nothing is freed on a guess.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use podwire_testkit::{Netns, Output, World};
use serde_json::{Value, json};

const PLUGINS: [&str; 3] = ["bridge", "host-local", "portmap"];
const KEY: &str = "cni.dev/valid-attachments";

fn config(plugin: &str) -> Value {
    json!({
        "cniVersion": "1.1.0", "name": "pods", "type": plugin, "bridge": "br0",
        "isGateway": true, "ipMasq": true,
        "ipam": {"type": "host-local", "subnet": "10.1.0.0/24"},
        "runtimeConfig": {
            "portMappings": [{"hostPort": 8080, "containerPort": 80, "protocol": "tcp"}],
        },
    })
}

fn call(world: &World, netns: &Netns, plugin: &str, verb: &str, config: &Value) -> Output {
    let call = world.plugin(plugin).command(verb).container("c1").netns(netns).ifname("eth0");
    call.config(config).run()
}

/// A container with a bridge interface and a host port.
fn attached() -> (World, Netns) {
    let world = World::new();
    let netns = world.netns("c1");
    let mut config = config("bridge");
    config["prevResult"] = call(&world, &netns, "bridge", "ADD", &config).success().json();
    config["type"] = json!("portmap");
    call(&world, &netns, "portmap", "ADD", &config).success();
    (world, netns)
}

#[test]
fn a_list_of_the_wrong_shape_is_refused_and_frees_nothing() {
    let (world, netns) = attached();
    let before = world.snapshot();
    for valid in [
        json!(7),
        json!("c1"),
        json!(true),
        json!({}),
        json!({"containerID": "c1", "ifname": "eth0"}),
        json!([7]),
        json!(["c1"]),
        json!([["c1", "eth0"]]),
        json!([{"containerID": 7, "ifname": "eth0"}]),
        json!([{"containerID": "c1", "ifname": ["eth0"]}]),
        json!([{"ifname": "eth0"}]),
        json!([{"containerID": "c1"}]),
        json!([{}]),
    ] {
        for plugin in PLUGINS {
            let mut config = config(plugin);
            config[KEY] = valid.clone();
            let output = call(&world, &netns, plugin, "GC", &config);
            let error = output.clone().failure().json();
            let code = error["code"].as_u64().unwrap();
            assert!(code == 6 || code == 7, "{output:#?}");
            assert!(error["msg"].as_str().unwrap().contains("valid-attachments"), "{output:#?}");
        }
    }
    let idle = |change: &podwire_testkit::state::Change| change.name().ends_with("/lock");
    world.snapshot().since(&before).without(idle).assert_empty();
}

#[test]
fn an_absent_list_frees_nothing_and_says_so() {
    let (world, netns) = attached();
    let before = world.snapshot();
    for plugin in PLUGINS {
        let output = call(&world, &netns, plugin, "GC", &config(plugin)).success();
        assert!(output.stderr.contains("valid-attachments"), "{output:#?}");
    }
    world.snapshot().since(&before).assert_empty();
    // The key that was used before 1.1.0 was final counts where the other is absent.
    for plugin in PLUGINS {
        let mut config = config(plugin);
        config["cni.dev/attachments"] = json!([{"containerID": "c1", "ifname": "eth0"}]);
        call(&world, &netns, plugin, "GC", &config).success();
    }
    world.snapshot().since(&before).assert_empty();
}

#[test]
fn an_empty_list_and_null_free_all_of_the_network_and_no_other() {
    for valid in [json!([]), Value::Null] {
        let (world, netns) = attached();
        // The same container on another network.
        let mut other = config("bridge");
        (other["name"], other["bridge"]) = (json!("other"), json!("br1"));
        other["ipam"]["subnet"] = json!("10.2.0.0/24");
        let call_other = world.plugin("bridge").command("ADD").container("c1").netns(&netns);
        call_other.ifname("eth1").config(&other).run().success();
        let before = world.snapshot();
        for plugin in ["portmap", "bridge"] {
            let mut config = config(plugin);
            config[KEY] = valid.clone();
            call(&world, &netns, plugin, "GC", &config).success();
        }
        assert_ne!(netns.try_exec(&["ip", "link", "show", "eth0"]).code, 0);
        assert_eq!(netns.try_exec(&["ip", "link", "show", "eth1"]).code, 0);
        let names: Vec<_> = std::fs::read_dir("/var/lib/cni/networks/pods")
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        assert!(!names.iter().any(|name| name == "10.1.0.2"), "{names:?}");
        let after = world.snapshot();
        let of_other: Vec<_> =
            before.facts().filter(|(name, _)| name.contains("10.2.0.")).collect();
        assert!(of_other.len() > 3, "{of_other:?}");
        for fact in of_other {
            assert!(after.facts().any(|found| found == fact), "{fact:?} is gone");
        }
    }
}
