//! The same requests to ours and to Go's.

use podwire_tests::differential::{Scenario, only_intended};
use serde_json::{Value, json};

const PAIR: [&str; 1] =
    ["ip link add v0 type veth peer name eth0 address 02:00:5e:10:00:01 netns c1"];

fn scenario(name: &str, version: &str, args: &'static str, more: &Value) -> Scenario {
    let mut config = json!({
        "cniVersion": version, "name": "pods", "type": "tuning",
        "prevResult": {
            "cniVersion": version,
            "interfaces": [
                {"name": "v0"},
                {"name": "eth0", "mac": "02:00:5e:10:00:01", "sandbox": "/run/netns/c1"},
            ],
            "ips": [{"address": "10.1.0.2/24", "interface": 1}],
        },
    });
    if version.starts_with("0.") {
        config["prevResult"]["ips"][0]["version"] = json!("4");
    }
    for (key, value) in more.as_object().unwrap() {
        config[key] = value.clone();
    }
    Scenario { name: name.to_owned(), plugin: "tuning", config, args, host: &PAIR, refused: None }
}

#[test]
fn results_and_state_are_those_of_go() {
    let over = json!({
        "mtu": 1400, "promisc": true, "sysctl": {"net.ipv4.conf.IFNAME.arp_notify": "0"},
        "args": {"cni": {
            "mac": "02:00:5e:10:00:77", "mtu": 1200, "promisc": false,
            "sysctl": {"net.ipv4.conf.IFNAME.arp_notify": "1"},
        }},
    });
    only_intended(&[
        scenario("tuning by args", "1.0.0", "", &over),
        scenario(
            "tuning by CNI_ARGS",
            "1.0.0",
            "IgnoreUnknown=1;MAC=02:00:5e:10:00:55;K8S_POD_NAME=p",
            &json!({"mac": "02:00:5e:10:00:99"}),
        ),
        scenario("tuning of nothing", "1.0.0", "", &json!({})),
    ]);
}
