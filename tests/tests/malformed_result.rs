//! Results of earlier plugins that make no sense, and the shapes of `CNI_ARGS`.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use podwire_tests::Refusals;
use serde_json::{Value, json};

fn bridge() -> Value {
    json!({
        "cniVersion": "1.1.0", "name": "pods", "type": "bridge", "bridge": "br0",
        "isGateway": true,
        "ipam": {"type": "host-local", "subnet": "10.1.0.0/24"},
    })
}

fn portmap() -> Value {
    json!({
        "cniVersion": "1.1.0", "name": "pods", "type": "portmap",
        "runtimeConfig": {
            "portMappings": [{"hostPort": 8080, "containerPort": 80, "protocol": "tcp"}],
        },
    })
}

/// Values of `prevResult` that are none.
fn garbage() -> Vec<Value> {
    let of = |ips: Value| {
        json!({
            "cniVersion": "1.1.0",
            "interfaces": [{"name": "eth0", "sandbox": "/run/netns/c1"}],
            "ips": ips,
        })
    };
    vec![
        json!(7),
        json!("text"),
        json!([]),
        json!(true),
        json!({"cniVersion": "9.9.9"}),
        json!({"cniVersion": "1.1.0", "ips": 7}),
        json!({"cniVersion": "1.1.0", "interfaces": "eth0"}),
        json!({"cniVersion": "1.1.0", "interfaces": [7]}),
        of(json!([{"address": "10.1.0.9"}])),
        of(json!([{"address": 7}])),
        of(json!([{"address": "nonsense/24"}])),
        of(json!([{"address": "10.1.0.9/24", "gateway": "nonsense"}])),
        of(json!([{"address": "10.1.0.9/24", "interface": "0"}])),
        of(json!([{"address": "10.1.0.9/24", "interface": 1.5}])),
    ]
}

#[test]
fn a_previous_result_that_is_none_is_refused() {
    let mut refusals = Refusals::new();
    for previous in garbage() {
        for (plugin, verb, mut config) in [
            ("bridge", "CHECK", bridge()),
            ("loopback", "CHECK", json!({"cniVersion": "1.1.0", "name": "pods"})),
            ("portmap", "ADD", portmap()),
            ("portmap", "CHECK", portmap()),
        ] {
            config["prevResult"] = previous.clone();
            let output = refusals.call(plugin, verb, &config).run();
            refusals.refused(&output, &[1, 6, 7], &["prevResult"]);
        }
    }
    for (plugin, verb, config) in [("portmap", "ADD", portmap()), ("portmap", "CHECK", portmap())] {
        let mut null = config.clone();
        null["prevResult"] = Value::Null;
        for config in [config, null] {
            let output = refusals.call(plugin, verb, &config).run();
            refusals.refused(&output, &[6, 7], &["prevResult"]);
        }
    }
    refusals.assert_nothing_changed();
}

#[test]
fn b022_an_index_out_of_range_is_an_error_and_no_panic() {
    let mut refusals = Refusals::new();
    for index in [1, 7, 4_294_967_295_u64] {
        let previous = json!({
            "cniVersion": "1.1.0",
            "interfaces": [{"name": "eth0", "sandbox": "/run/netns/c1"}],
            "ips": [{"address": "10.1.0.9/24", "interface": index}],
        });
        for (plugin, verb, mut config) in [
            ("bridge", "CHECK", bridge()),
            ("portmap", "ADD", portmap()),
            ("portmap", "CHECK", portmap()),
        ] {
            config["prevResult"] = previous.clone();
            let output = refusals.call(plugin, verb, &config).run();
            refusals.refused(&output, &[7], &["prevResult", "interface", &index.to_string()]);
        }
    }
    refusals.assert_nothing_changed();
}

#[test]
fn b022_an_index_of_an_ipam_plugin_does_not_mislead_bridge() {
    let refusals = Refusals::new();
    let bin = refusals.node.world.path("bin");
    podwire_testkit::fake::record("odd")
        .result(json!({
            "cniVersion": "1.1.0",
            "ips": [{"address": "10.1.0.9/24", "interface": 7}],
        }))
        .write(&bin);
    let mut config = bridge();
    config["ipam"] = json!({"type": "odd"});
    let call = refusals.call("bridge", "ADD", &config);
    let result = call.search_in(&[&bin]).run().success().json();
    assert_eq!(result["ips"][0]["interface"], 2);
    assert_eq!(result["interfaces"][2]["name"], "eth0");
}

#[test]
fn ipam_results_that_make_no_sense_fail_the_add_and_leave_nothing() {
    let mut refusals = Refusals::new();
    let bin = refusals.node.world.path("bin");
    let answers = [
        ("", "odd"),
        ("nonsense", "odd"),
        ("[]", "odd"),
        ("{\"cniVersion\":\"9.9.9\"}", "9.9.9"),
        ("{\"cniVersion\":\"1.1.0\"}", "ipam.type odd"),
        ("{\"cniVersion\":\"1.1.0\",\"ips\":[]}", "ipam.type odd"),
        ("{\"cniVersion\":\"1.1.0\",\"ips\":[{\"address\":\"nonsense\"}]}", "nonsense"),
        ("{\"cniVersion\":\"1.1.0\",\"ips\":[{\"address\":\"10.1.0.9/24\",\"gateway\":7}]}", "7"),
        ("{\"cniVersion\":\"1.1.0\"} trailing", "odd"),
    ];
    for (answer, word) in answers {
        podwire_testkit::fake::record("odd").result(answer).write(&bin);
        let mut config = bridge();
        config["ipam"] = json!({"type": "odd"});
        let output = refusals.call("bridge", "ADD", &config).search_in(&[&bin]).run();
        refusals.refused(&output, &[1, 6, 7, 999], &[word]);
        // The specification wants the delegate's DEL after its ADD.
        let calls = podwire_testkit::fake::calls(&bin);
        assert_eq!(calls.last().unwrap().command, "DEL", "{answer}");
    }
    refusals.assert_nothing_changed();
}

#[test]
fn deletion_bears_every_previous_result() {
    let refusals = Refusals::new();
    let before = refusals.node.world.snapshot();
    for previous in garbage().into_iter().chain([json!({"cniVersion": 7})]) {
        refusals.call("bridge", "ADD", &bridge()).run().success();
        for (plugin, mut config) in [
            ("portmap", portmap()),
            ("bridge", bridge()),
            ("loopback", json!({"cniVersion": "1.1.0", "name": "pods"})),
        ] {
            config["prevResult"] = previous.clone();
            let output = refusals.call(plugin, "DEL", &config).run();
            assert_eq!(output.code, 0, "{output:#?}");
        }
    }
    refusals.node.assert_nothing_left(&before);
}

#[test]
fn b047_unknown_arguments_are_refused_unless_they_are_to_be_ignored() {
    let mut refusals = Refusals::new();
    let before = refusals.node.world.snapshot();
    let config = bridge();
    for (args, word) in [
        ("K8S_POD_NAME=p;IP=10.1.0.4", "K8S_POD_NAME"),
        ("IP", "IP"),
        ("IP=10.1.0.4;A", "A"),
        ("A=b=c", "A=b=c"),
        ("ip=10.1.0.4", "ip"),
        ("=x", "=x"),
        ("IP=nonsense", "nonsense"),
        ("IgnoreUnknown=maybe", "maybe"),
        ("IgnoreUnknown=0;X=1", "X"),
    ] {
        let output = refusals.call("host-local", "ADD", &config).args(args).run();
        refusals.refused(&output, &[4, 7, 999], &[word]);
    }
    refusals.assert_nothing_changed();
    for (args, plugins) in [
        ("IgnoreUnknown=1;K8S_POD_NAME=p;IP=10.1.0.4", &["host-local", "bridge"][..]),
        ("K8S_POD_NAME=p;IP=10.1.0.4;IgnoreUnknown=true", &["host-local", "bridge"]),
        ("K8S_POD_NAME=p;IgnoreUnknown=TRUE;IP=10.1.0.4", &["host-local", "bridge"]),
        // bridge knows MAC only, as the Go plugin.
        ("IP=10.1.0.4", &["host-local"]),
    ] {
        for plugin in plugins {
            let call = refusals.call(plugin, "ADD", &config).args(args);
            let result = call.clone().run().success().json();
            assert_eq!(result["ips"][0]["address"], "10.1.0.4/24", "{args}");
            call.command("DEL").run().success();
        }
    }
    // Nothing asked for.
    for args in ["", "IP="] {
        let call = refusals.call("host-local", "ADD", &config).args(args);
        call.clone().run().success();
        call.command("DEL").run().success();
    }
    refusals.node.assert_nothing_left(&before);
}
