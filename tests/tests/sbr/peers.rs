//! The Go plugin, and the plugins before this one.

use serde_json::{Value, json};

use crate::lab::Lab;

/// IPv4 alone: with IPv6 the Go plugin copies what doesn't belong there.
fn ipv4(lab: &Lab) -> Value {
    let mut previous = lab.prev_result(1);
    previous["ips"].as_array_mut().unwrap().truncate(1);
    json!({ "prevResult": previous })
}

#[test]
fn tables_are_those_of_the_go_plugin() {
    let made = |go: bool| {
        let lab = Lab::new();
        lab.container.exec(&["ip", "-6", "addr", "flush", "dev", "net1"]);
        for destination in ["10.8.0.0/16", "10.9.0.0/16"] {
            let via: &[&str] =
                if destination == "10.8.0.0/16" { &["via", "10.1.0.7"] } else { &[] };
            let route = ["ip", "route", "add", destination];
            lab.container.exec(&[&route[..], via, &["dev", "net1"]].concat());
        }
        let keys = ipv4(&lab);
        if go {
            lab.go("ADD", 1, &keys).run().success();
        } else {
            lab.add(1, &keys);
        }
        (lab.rules(), lab.routes("100"), lab.routes("main"))
    };
    let gos = std::thread::spawn(move || made(true)).join().unwrap();
    let ours = std::thread::spawn(move || made(false)).join().unwrap();
    assert_eq!(ours, gos);
}

#[test]
fn what_the_go_plugin_made_is_checked_and_removed() {
    let lab = Lab::new();
    lab.go("ADD", 1, &json!({})).run().success();
    assert_eq!(lab.rules().len(), 2);
    lab.sbr("CHECK", 1, &json!({})).run().success();
    lab.sbr("DEL", 1, &json!({})).run().success();
    assert!(lab.rules().is_empty());
    for table in ["100", "101"] {
        assert!(lab.routes(table).is_empty());
    }
    // And the other way round.
    let lab = Lab::new();
    lab.add(1, &json!({}));
    lab.go("DEL", 1, &json!({})).run().success();
    assert!(lab.rules().is_empty());
}

/// The plugin that made the interface still finds its routes, wherever they
/// are now.
#[test]
fn the_check_of_the_plugin_before_passes() {
    let lab = Lab::new();
    let netns = lab.world.netns("c2");
    let mut bridge = json!({
        "cniVersion": "1.0.0", "name": "n", "type": "bridge", "bridge": "br0", "isGateway": true,
        "ipam": {
            "type": "host-local", "ranges": [[{"subnet": "10.5.0.0/24"}]],
            "routes": [{"dst": "0.0.0.0/0"}, {"dst": "10.6.0.0/16", "gw": "10.5.0.9"}]
        }
    });
    let call = |plugin: &str, verb: &str, config: &Value| {
        let call = lab.world.plugin(plugin).command(verb).container("c2").netns(&netns);
        call.ifname("eth0").config(config).run().success()
    };
    let result = call("bridge", "ADD", &bridge).json();
    bridge["prevResult"] = result.clone();
    let sbr = json!({"cniVersion": "1.0.0", "name": "n", "type": "sbr", "prevResult": result});
    call("sbr", "ADD", &sbr);
    call("sbr", "CHECK", &sbr);
    call("bridge", "CHECK", &bridge);
    call("sbr", "DEL", &sbr);
    call("bridge", "DEL", &bridge);
}
