//! What a runtime is asked to hand to plugins: every capability that the conventions
//! have, seen by plugins that write down their requests.

use podwire_testkit::fake;
use serde_json::{Map, Value, json};

use crate::driver::Stage;

/// An argument for every capability of the conventions, as runtimes give them, and some
/// that nobody has declared.
fn asked() -> Value {
    json!({
        "portMappings": [
            {"hostPort": 8080, "containerPort": 80, "protocol": "tcp"},
            {"hostPort": 5353, "containerPort": 53, "protocol": "udp", "hostIP": "192.0.2.1"},
        ],
        "ipRanges": [
            [{"subnet": "10.2.0.0/24", "rangeStart": "10.2.0.9", "rangeEnd": "10.2.0.99",
              "gateway": "10.2.0.1"}],
            [{"subnet": "fd02::/64"}],
        ],
        "bandwidth": {"ingressRate": 8_000_000, "ingressBurst": 2_147_483_647_u64,
                      "egressRate": 40_000_000_000_u64, "egressBurst": 0},
        "dns": {"servers": ["10.1.0.53", "fd01::53"], "searches": ["pods.example"],
                "options": ["ndots:5"]},
        "ips": ["10.1.0.77/24", "fd01::77"],
        "mac": "02:00:5e:10:00:77",
        "infinibandGUID": "c2:11:22:33:44:55:66:77",
        "deviceID": "0000:65:00.1",
        // Podman's form; the conventions have an array.
        "aliases": {"pods": ["web", "web.example"]},
        "cgroupPath": "/kubepods.slice/kubepods-pod1.slice",
        "io.kubernetes.cri.pod-annotations": {"a/b": "<c> & \u{e9}"},
        "undeclared": {"by": "anybody"},
        "declined": true,
    })
}

/// These of them.
fn some_of(asked: &Value, names: &[&str]) -> Value {
    Value::Object(names.iter().map(|name| ((*name).to_owned(), asked[name].clone())).collect())
}

/// Each plugin gets what it has declared, as it was given, for every verb about an
/// attachment; what it has not declared, or has declined, doesn't come.
pub(crate) fn capabilities(stage: &Stage) {
    let node = &stage.node;
    let plugins = node.world.path("recording");
    for name in ["all", "few", "none"] {
        fake::record(name).write(&plugins);
    }
    node.install_from(&plugins);
    let asked = asked();
    let known = asked.as_object().unwrap().keys();
    let known: Vec<&str> = known
        .map(String::as_str)
        .filter(|name| !["undeclared", "declined"].contains(name))
        .collect();
    let mut all: Map<String, Value> =
        known.iter().map(|name| ((*name).to_owned(), json!(true))).collect();
    all.insert("declined".to_owned(), json!(false));
    all.insert("ungiven".to_owned(), json!(true));
    node.network(&json!({
        "cniVersion": "1.1.0",
        "name": "asking",
        "plugins": [
            {"type": "all", "capabilities": all},
            {"type": "few", "capabilities": {"dns": true, "deviceID": true, "mac": false}},
            {"type": "none"},
        ],
    }));
    let container = node.container("c1");
    stage.call("add", "asking", &container, &asked).success();
    stage.call("check", "asking", &container, &asked).success();
    stage.call("del", "asking", &container, &asked).success();
    // Without any of them nothing is made up.
    let bare = node.container("bare");
    stage.on("add", "asking", &bare).success();
    stage.on("del", "asking", &bare).success();
    // And verbs about a network know of no attachment's.
    stage.status("asking").success();
    stage.gc("asking", &[]).success();

    let calls = fake::calls(&plugins);
    let about = |verb: &str, container: &str, plugin: &str| {
        let mut found = calls.iter().filter(|call| {
            (call.command.as_str(), call.container_id.as_str(), call.plugin.as_str())
                == (verb, container, plugin)
        });
        let call = found.next().unwrap_or_else(|| panic!("no {verb} of {plugin}: {calls:#?}"));
        call.request().get("runtimeConfig").cloned()
    };
    for verb in ["ADD", "CHECK", "DEL"] {
        let few = ["dns", "deviceID"];
        for (plugin, names) in [("all", &known[..]), ("few", &few[..])] {
            let got = about(verb, "c1", plugin).unwrap_or_default();
            assert_eq!(got, some_of(&asked, names), "{verb} of {plugin}");
            stage.note(&format!("{verb} {plugin}"), &got);
        }
        assert_eq!(about(verb, "c1", "none"), None, "{verb}");
    }
    for plugin in ["all", "few", "none"] {
        for (verb, container) in [("ADD", "bare"), ("DEL", "bare"), ("STATUS", ""), ("GC", "")] {
            assert_eq!(about(verb, container, plugin), None, "{verb} of {plugin}");
        }
    }
}
