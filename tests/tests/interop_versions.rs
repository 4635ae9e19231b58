//! Each of our plugins, each operation, each version of the specification.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use podwire_testkit::{Netns, Output, World};
use serde_json::{Value, json};

const VERSIONS: [&str; 7] = ["0.1.0", "0.2.0", "0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"];

fn config(plugin: &str, version: &str) -> Value {
    let ipam = match plugin {
        "static" => json!({"type": "static", "addresses": [{"address": "10.1.0.2/24"}]}),
        _ => json!({"type": "host-local", "subnet": "10.1.0.0/24"}),
    };
    json!({
        "cniVersion": version, "name": "pods", "type": plugin, "bridge": "br0",
        "isGateway": true, "ipam": ipam,
        "runtimeConfig": {"portMappings": [{"hostPort": 8080, "containerPort": 80}]},
    })
}

/// The result that a chained plugin gets, in the shape of the version.
fn previous(version: &str) -> Value {
    if version.starts_with("0.1") || version.starts_with("0.2") {
        return json!({"cniVersion": version, "ip4": {"ip": "10.1.0.2/24"}, "dns": {}});
    }
    let mut ip = json!({"address": "10.1.0.2/24", "interface": 0});
    if version.starts_with("0.") {
        ip["version"] = json!("4");
    }
    json!({
        "cniVersion": version,
        "interfaces": [{"name": "eth0", "sandbox": "/run/netns/c1"}],
        "ips": [ip],
        "dns": {"nameservers": ["10.1.0.1"]},
    })
}

fn call(world: &World, netns: &Netns, plugin: &str, verb: &str, config: &Value) -> Output {
    let ifname = if plugin == "loopback" { "lo" } else { "eth0" };
    let call = world.plugin(plugin).command(verb).container("c1").netns(netns).ifname(ifname);
    call.config(config).run()
}

/// The whole life in one version; `prev` is what a chained plugin is given.
fn life(plugin: &str, version: &str, prev: Option<&Value>) {
    let world = World::new();
    let netns = world.netns("c1");
    if prev.is_some() {
        // What portmap finds: a way to the container.
        world.exec(&["ip", "link", "add", "br0", "type", "bridge"]);
        world.exec(&["ip", "addr", "add", "10.1.0.1/24", "dev", "br0"]);
        world.exec(&["ip", "link", "set", "br0", "up"]);
    }
    let mut config = config(plugin, version);
    if let Some(prev) = prev {
        config["prevResult"] = prev.clone();
    }
    let answer = call(&world, &netns, plugin, "VERSION", &config).success().json();
    assert_eq!(answer["cniVersion"], version, "VERSION answers in the caller's");
    assert!(answer["supportedVersions"].as_array().unwrap().contains(&json!(version)));

    let result = call(&world, &netns, plugin, "ADD", &config).success().json();
    assert_eq!(result["cniVersion"], version, "{plugin} {version}: {result}");
    let old = version.starts_with("0.1") || version.starts_with("0.2");
    if plugin != "loopback" {
        let address = if old { &result["ip4"]["ip"] } else { &result["ips"][0]["address"] };
        assert_eq!(address, "10.1.0.2/24", "{plugin} {version}: {result}");
        let family = result["ips"][0]["version"].as_str();
        assert_eq!(family, (version.starts_with("0.") && !old).then_some("4"), "{result}");
        // Before 1.0.0 an empty dns is printed too.
        assert!(result.get("dns").is_some() || !version.starts_with("0."), "{result}");
    }
    if prev.is_some() {
        assert_eq!(Some(&result), prev, "passed through");
    }
    config["prevResult"] = result;
    let gates = [("CHECK", "0.4.0"), ("STATUS", "1.1.0"), ("GC", "1.1.0")];
    for (verb, since) in gates {
        let mut config = config.clone();
        config["cni.dev/valid-attachments"] = json!([{"containerID": "c1", "ifname": "eth0"}]);
        let output = call(&world, &netns, plugin, verb, &config);
        if version < since {
            let error = output.error(1);
            let expected = format!("config version does not allow {verb}");
            assert_eq!(error["msg"], expected, "{plugin} {version}");
        } else {
            assert_eq!(output.success().stdout, "", "{plugin} {version} {verb}");
        }
    }
    for _ in 0..2 {
        assert_eq!(call(&world, &netns, plugin, "DEL", &config).success().stdout, "");
    }
}

#[test]
fn bridge_in_every_version() {
    for version in VERSIONS {
        life("bridge", version, None);
    }
}

#[test]
fn host_local_in_every_version() {
    for version in VERSIONS {
        life("host-local", version, None);
    }
}

#[test]
fn static_in_every_version() {
    for version in VERSIONS {
        life("static", version, None);
    }
}

#[test]
fn loopback_in_every_version() {
    for version in VERSIONS {
        life("loopback", version, None);
    }
}

#[test]
fn portmap_in_every_version() {
    for version in VERSIONS {
        life("portmap", version, Some(&previous(version)));
    }
}

#[test]
fn b022_portmap_finds_the_address_in_every_shape_of_result() {
    let interfaces = json!([
        {"name": "br0"}, {"name": "veth1"}, {"name": "eth0", "sandbox": "/run/netns/c1"},
    ]);
    let others = json!([
        {"name": "eth0", "sandbox": "/run/netns/c1"}, {"name": "eth1", "sandbox": "/run/netns/c1"},
    ]);
    let shapes = [
        // The address is said to be on the host's end.
        json!({"interfaces": interfaces, "ips": [{"address": "10.1.0.2/24", "interface": 1}]}),
        // No index.
        json!({"interfaces": interfaces, "ips": [{"address": "10.1.0.2/24"}]}),
        // No interfaces at all.
        json!({"ips": [{"address": "10.1.0.2/24"}]}),
        // A sandbox that is no path, or another path to the same namespace.
        json!({"interfaces": [{"name": "eth0", "sandbox": "eth0"}],
               "ips": [{"address": "10.1.0.2/24", "interface": 0}]}),
        json!({"interfaces": [{"name": "eth0", "sandbox": "/proc//var/run/netns/c1"}],
               "ips": [{"address": "10.1.0.2/24", "interface": 0}]}),
        // Two interfaces inside: that of CNI_IFNAME counts, wherever it stands.
        json!({"interfaces": others, "ips": [{"address": "10.7.0.2/24", "interface": 1},
               {"address": "10.1.0.2/24", "interface": 0}]}),
    ];
    for mut shape in shapes {
        shape["cniVersion"] = json!("1.1.0");
        let world = World::new();
        let netns = world.netns("c1");
        world.exec(&["ip", "link", "add", "br0", "type", "bridge"]);
        world.exec(&["ip", "addr", "add", "10.1.0.1/24", "dev", "br0"]);
        world.exec(&["ip", "link", "set", "br0", "up"]);
        let mut config = config("portmap", "1.1.0");
        config["prevResult"] = shape.clone();
        let result = call(&world, &netns, "portmap", "ADD", &config).success().json();
        assert_eq!(result["ips"], shape["ips"]);
        let rules = world.exec(&["nft", "list", "table", "ip", "podwire_hostports"]).stdout;
        assert!(rules.contains("10.1.0.2 . 80"), "{shape}: {rules}");
        assert!(!rules.contains("10.7.0.2 . 80"), "{shape}: {rules}");
        call(&world, &netns, "portmap", "CHECK", &config).success();
        call(&world, &netns, "portmap", "DEL", &config).success();
    }
}
