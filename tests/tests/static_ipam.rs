//! `static` as a runtime sees it, and beside the Go plugin.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test stops at the first surprise"
)]

use podwire_testkit::{GoPlugins, Plugin, World};
use serde_json::{Value, json};

fn attach(plugin: Plugin, verb: &str, config: &Value) -> Plugin {
    plugin
        .command(verb)
        .container("c1")
        .ifname("eth0")
        .env("CNI_NETNS", "/run/netns/none")
        .config(config)
}

fn config(ipam: &Value) -> Value {
    let mut config = json!({"cniVersion": "1.1.0", "name": "n1", "ipam": ipam});
    config["ipam"]["type"] = json!("static");
    config
}

fn two_addresses() -> Value {
    config(&json!({
        "addresses": [{"address": "10.1.0.9/24", "gateway": "10.1.0.1"}, {"address": "fd01::9/64"}],
        "routes": [{"dst": "0.0.0.0/0"}, {"dst": "10.99.0.0/16", "gw": "10.1.0.5"}],
        "dns": {"nameservers": ["192.0.2.1"], "domain": "x", "search": ["y"], "options": ["z"]},
    }))
}

#[test]
fn all_verbs_in_all_versions() {
    let world = World::new();
    let before = world.snapshot();
    for version in ["0.1.0", "0.2.0", "0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"] {
        let mut config = two_addresses();
        config["cniVersion"] = json!(version);
        let call = |verb: &str, config: &Value| attach(world.plugin("static"), verb, config).run();
        let result = call("ADD", &config).success().json();
        assert_eq!(result["cniVersion"], version);
        if matches!(version, "0.1.0" | "0.2.0") {
            assert_eq!(result["ip4"]["gateway"], "10.1.0.1", "{result}");
            assert_eq!(result["ip6"]["ip"], "fd01::9/64", "{result}");
        } else {
            assert_eq!(result["ips"][1]["address"], "fd01::9/64", "{result}");
            assert_eq!(result["routes"][1]["gw"], "10.1.0.5", "{result}");
            assert_eq!(result["dns"]["options"], json!(["z"]), "{result}");
        }
        if matches!(version, "0.4.0" | "1.0.0" | "1.1.0") {
            call("CHECK", &config).error(7);
            config["prevResult"] = result;
            call("CHECK", &config).success();
            config["prevResult"]["ips"].as_array_mut().unwrap().pop();
            let text = call("CHECK", &config).error(100)["msg"].to_string();
            assert!(text.contains("fd01::9/64 is missing"), "{text}");
        }
        if version == "1.1.0" {
            call("STATUS", &config).success();
            config["cni.dev/valid-attachments"] = json!([]);
            call("GC", &config).success();
        }
        config["ipam"] = json!({"type": "static", "addresses": 7});
        call("DEL", &config).success();
        call("DEL", &config).success();
    }
    world.snapshot().since(&before).assert_empty();
}

/// B115: the shapes of input, by the program.
#[test]
fn b115_input_shapes() {
    let world = World::new();
    let call = |config: &Value| attach(world.plugin("static"), "ADD", config);
    let gateways = |result: &Value| -> Vec<(String, Value)> {
        let ips = result["ips"].as_array().unwrap();
        ips.iter()
            .map(|ip| (ip["address"].as_str().unwrap().to_owned(), ip["gateway"].clone()))
            .collect()
    };
    let bare = call(&two_addresses()).args("IP=10.1.1.1").run().error(7).to_string();
    assert!(bare.contains("CNI_ARGS IP") && bare.contains("10.1.1.1/24"), "{bare}");

    let config = config(&json!({"addresses": [{"address": "10.1.1.7/24"}]}));
    let result = call(&config).args("IP=10.1.2.1/24;GATEWAY=10.1.2.254,10.1.1.254").run();
    assert_eq!(
        gateways(&result.success().json()),
        [
            ("10.1.1.7/24".to_owned(), json!("10.1.1.254")),
            ("10.1.2.1/24".to_owned(), json!("10.1.2.254"))
        ]
    );
    let mut by_runtime = config.clone();
    by_runtime["args"] = json!({"cni": {"ips": ["10.3.0.9/24"]}});
    by_runtime["runtimeConfig"] = json!({"ips": ["10.4.0.9/24", "fd04::9/64"]});
    let result = call(&by_runtime).args("IP=10.1.2.1/24").run().success().json();
    assert_eq!(
        gateways(&result),
        [("10.4.0.9/24".to_owned(), Value::Null), ("fd04::9/64".to_owned(), Value::Null)]
    );
    by_runtime["runtimeConfig"] = json!({"ips": ["10.1.1.9"]});
    let text = call(&by_runtime).run().error(7)["msg"].to_string();
    assert!(text.contains("runtimeConfig.ips[0]"), "{text}");

    let mut empty = config;
    empty["ipam"] = json!({"type": "static"});
    let result = call(&empty).run().success().json();
    assert_eq!(result.get("ips"), None, "{result}");
    call(&empty).args("K8S_POD_NAME=p").run().failure();
    call(&empty).args("K8S_POD_NAME=p;IgnoreUnknown=1").run().success();
}

/// The same result as the Go plugin's, where that is right.
#[test]
fn results_are_those_of_the_go_plugin() {
    let world = World::new();
    let go = GoPlugins::sid();
    let mut by_args = two_addresses();
    by_args["args"] = json!({"cni": {"ips": ["10.3.0.9/24", "fd03::9/64"]}});
    let mut by_runtime = by_args.clone();
    by_runtime["runtimeConfig"] = json!({"ips": ["10.4.0.9/24"]});
    for (config, args) in [
        (two_addresses(), ""),
        (two_addresses(), "IP=10.5.0.9/24,10.6.0.9/24;GATEWAY=10.6.0.1"),
        (by_args, "IP=10.5.0.9/24"),
        (by_runtime, ""),
        (config(&json!({"addresses": [{"address": "10.1.0.9/32", "gateway": "169.254.1.1"}]})), ""),
    ] {
        let ours = attach(world.plugin("static"), "ADD", &config).args(args).run().success();
        let theirs = attach(go.plugin("static"), "ADD", &config).args(args).run().success();
        assert_eq!(ours.json(), theirs.json(), "{config} {args}");
    }
}
