//! The same request to ours and to the Go plugin, and ours after the Go plugin.

use std::collections::BTreeMap;

use podwire_testkit::{GoPlugins, Netns};
use podwire_tests::lab::{Lab, addresses, is_bookkeeping, link, links, reservations, routes, with};
use podwire_tests::normal::normalised;
use serde_json::{Value, json};

use crate::{dual, fixed, pods};

/// What a container and the host have after an ADD.
fn state(lab: &Lab, netns: &Netns) -> BTreeMap<String, String> {
    let host = links(lab.world.host()).into_iter().find(|name| name.starts_with("veth")).unwrap();
    let mut state = BTreeMap::new();
    for (side, namespace, name) in [("inside", netns, "eth0"), ("host", lab.world.host(), &host)] {
        state.insert(format!("{side} addresses"), format!("{:?}", addresses(namespace, name)));
        // The Go plugin adds routes while the kernel's own to the subnet still
        // stands; ours says what holds after that one is gone.
        let routes = format!("{:#?}", routes(namespace)).replace(" onlink", "");
        state.insert(format!("{side} routes"), routes);
        let shown = link(namespace, name).unwrap();
        for key in ["mtu", "txqlen", "flags", "num_tx_queues"] {
            state.insert(format!("{side} {key}"), shown[key].to_string());
        }
    }
    // The Go plugin's host end has none, which breaks shapers (B121).
    state.remove("host txqlen");
    for key in ["ipv4/ip_forward", "ipv6/conf/all/forwarding"] {
        let value = std::fs::read_to_string(format!("/proc/sys/net/{key}")).unwrap();
        state.insert(format!("host {key}"), value);
    }
    for value in state.values_mut() {
        *value = normalised(value);
    }
    state
}

#[test]
fn results_and_state_are_those_of_the_go_plugin() {
    let go = GoPlugins::sid();
    let mut many = pods();
    many["ipam"]["routes"] =
        json!([{"dst": "10.7.0.0/16"}, {"dst": "10.8.0.0/16", "gw": "10.1.0.9"}]);
    let configs = [
        pods(),
        dual(),
        many,
        with(&dual(), &json!({"mtu": 1400, "dns": {"domain": "x.test"}})),
        fixed(&[
            json!({"address": "10.5.0.5/24", "gateway": "10.5.0.254"}),
            json!({"address": "fd05::5/64", "gateway": "fd05::ff"}),
        ]),
    ];
    for config in configs {
        for version in ["0.3.1", "0.4.0", "1.0.0", "1.1.0"] {
            let config = with(&config, &json!({"cniVersion": version}));
            let lab = Lab::new("ptp");
            let netns = lab.container_without_detection("c1");
            let theirs = lab.call_go(&go, "ADD", &netns, &config).run().success();
            let their_state = state(&lab, &netns);

            let lab = Lab::new("ptp");
            let netns = lab.container_without_detection("c1");
            let ours = lab.call("ADD", &netns, &config).run().success();
            assert_eq!(normalised(&ours.stdout), normalised(&theirs.stdout), "{config:#}");
            assert_eq!(state(&lab, &netns), their_state, "{config:#}");
        }
    }
}

/// What both releases of the Go plugin left is checked and removed, and theirs
/// checks and removes what ours made.
#[test]
fn attachments_are_taken_over_both_ways() {
    for (go, version) in [(GoPlugins::sid(), "1.1.0"), (GoPlugins::debian(), "1.0.0")] {
        for backend in [None, Some("iptables"), Some("nftables")] {
            if backend == Some("nftables") && version == "1.0.0" {
                continue; // Debian 12's knows none.
            }
            let mut config = with(&dual(), &json!({"cniVersion": version, "ipMasq": true}));
            if let Some(backend) = backend {
                config["ipMasqBackend"] = json!(backend);
            }
            let lab = Lab::new("ptp");
            let before = lab.world.snapshot();
            let netns = lab.container_without_detection("c1");
            let result = lab.call_go(&go, "ADD", &netns, &config).run().success().json();
            lab.check(&netns, &config, &result).success();
            lab.del(&netns, &config, &result);
            lab.del(&netns, &config, &result);
            assert!(reservations("n").is_empty() && links(lab.world.host()).is_empty());
            let left = lab.world.snapshot().since(&before).without(is_bookkeeping);
            // Tables that the Go plugin, or iptables, made and leaves too.
            let left = left.without(|change| {
                let name = change.name();
                name.starts_with("nft") && !name.contains("rule") || name.contains("forward")
            });
            let left = left.without(|change| is_base(change.name()));
            left.assert_empty();

            // Theirs looks for masquerade rules of its own only.
            let config = with(&config, &json!({"ipMasq": false}));
            let result = lab.add(&netns, &config);
            let previous = with(&config, &json!({ "prevResult": result }));
            lab.call_go(&go, "CHECK", &netns, &previous).run().success();
            lab.call_go(&go, "DEL", &netns, &previous).run().success();
            assert!(reservations("n").is_empty() && links(lab.world.host()).is_empty());
        }
    }
}

/// The rules that every ADD of the Go plugin's nftables backend writes anew.
fn is_base(fact: &str) -> bool {
    fact.contains("cni_plugins_masquerade postrouting")
}

#[test]
fn errors_have_the_words_of_the_go_plugin() {
    let go = GoPlugins::sid();
    for keys in [
        json!({"ipMasq": true, "ipMasqBackend": "ipfw"}),
        json!({"ipam": {"type": "absent"}}),
        json!({"ipam": {"type": "static", "addresses": []}}),
    ] {
        let config: Value = with(&pods(), &keys);
        let lab = Lab::new("ptp");
        let netns = lab.container_without_detection("c1");
        let theirs = lab.call_go(&go, "ADD", &netns, &config).run().failure().json();
        let lab = Lab::new("ptp");
        let netns = lab.container_without_detection("c1");
        let ours = lab.call("ADD", &netns, &config).search_in(&[go.directory()]);
        let ours = ours.run().failure().json();
        let (ours, theirs) = (ours["msg"].as_str().unwrap(), theirs["msg"].as_str().unwrap());
        let core = theirs.rsplit(": ").next().unwrap();
        assert!(ours.contains(core), "ours: {ours}\ntheirs: {theirs}");
    }
}
