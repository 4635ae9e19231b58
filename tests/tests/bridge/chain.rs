//! Chains as a runtime walks them, by hand: each plugin gets what the one
//! before it printed.

use std::path::PathBuf;

use podwire_testkit::probe::{self, ANSWER};
use podwire_testkit::{Netns, Output, Plugin};
use serde_json::{Value, json};

use crate::lab::{Lab, addresses, pods, with, with_prev};

/// The example of a third party's plugin, as cargo built it beside the tests.
fn hosts_file() -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let program = tests.parent().unwrap().parent().unwrap().join("examples/hosts-file");
    assert!(
        program.is_file(),
        "{} is not built; run: cargo build -p podwire-plugin --examples",
        program.display()
    );
    program
}

#[test]
fn a_third_partys_plugin_follows_bridge_in_a_chain() {
    let lab = Lab::new();
    let netns = lab.world.netns("c1");
    let hosts = lab.world.path("hosts.d");
    std::fs::create_dir(&hosts).unwrap();
    let own = json!({"cniVersion": "1.1.0", "name": "n", "type": "hosts-file",
        "directory": hosts.to_str().unwrap()});
    let call = |verb: &str, config: &Value| -> Output {
        let plugin = Plugin::at(hosts_file()).command(verb).container("c1").netns(&netns);
        plugin.ifname("eth0").config(config).run()
    };
    let files = || -> Vec<String> {
        let entries = std::fs::read_dir(&hosts).unwrap();
        entries.map(|entry| std::fs::read_to_string(entry.unwrap().path()).unwrap()).collect()
    };
    let about = call("VERSION", &own).success().json();
    assert_eq!(about["supportedVersions"].as_array().unwrap().len(), 7);

    let bridged = lab.add(&netns, &pods());
    assert_eq!(call("ADD", &own).error(7)["msg"], "Required prevResult missing");
    let result = call("ADD", &with_prev(&own, &bridged)).success().json();
    assert_eq!(result, bridged, "it passes on what came before");
    assert_eq!(files(), ["10.1.0.2 c1\n"]);
    call("CHECK", &with_prev(&own, &result)).success();
    lab.check(&netns, &pods(), &result).success();
    for verb in ["STATUS", "GC"] {
        call(verb, &with(&own, &json!({"cni.dev/valid-attachments": []}))).success();
    }
    for _ in 0..2 {
        call("DEL", &with_prev(&own, &result)).success();
        lab.del(&netns, &pods(), &result);
    }
    assert!(files().is_empty());
    call("CHECK", &with_prev(&own, &result)).error(999);
}

/// C13: nomad's loopback stands first, with eth0 as the interface's name, and
/// bridge gets a prevResult that lists lo and 127.0.0.1.
#[test]
fn c13_bridge_behind_loopback() {
    let lab = Lab::new();
    let netns = lab.world.netns("c1");
    let first = json!({"cniVersion": "0.4.0", "name": "nomad", "type": "loopback"});
    let config = json!({"cniVersion": "0.4.0", "name": "nomad", "type": "bridge", "bridge": "nomad",
        "ipMasq": true, "isGateway": true, "forceAddress": true, "hairpinMode": false,
        "ipam": {"type": "host-local", "ranges": [[{"subnet": "172.26.64.0/20"}]],
            "routes": [{"dst": "0.0.0.0/0"}], "dataDir": "/var/run/cni"}});
    let loopback = |verb: &str, netns: &Netns, config: &Value| {
        let plugin = lab.world.plugin("loopback").command(verb).container("c1").netns(netns);
        plugin.ifname("eth0").config(config).run().success()
    };
    let before = loopback("ADD", &netns, &first).json();
    assert_eq!(before["ips"][0]["address"], "127.0.0.1/8");
    let result = lab.add(&netns, &with_prev(&config, &before));
    assert_eq!(result["ips"].as_array().unwrap().len(), 1, "{result:#}");
    assert_eq!(addresses(&netns, "eth0"), ["172.26.64.2/20"]);
    let gateway: std::net::IpAddr = "172.26.64.1".parse().unwrap();
    probe::ping(&netns, gateway, ANSWER).unwrap();
    probe::ping(&netns, "127.0.0.1".parse::<std::net::IpAddr>().unwrap(), ANSWER).unwrap();
    loopback("CHECK", &netns, &with_prev(&first, &result));
    lab.check(&netns, &config, &result).success();
    lab.del(&netns, &config, &result);
    loopback("DEL", &netns, &with_prev(&first, &result));
    assert_eq!(lab.links(), ["nomad"]);
}

/// C28: the syntax of 2016, and the result of 0.2.0.
#[test]
fn c28_the_oldest_syntax_works() {
    let lab = Lab::new();
    let netns = lab.world.netns("c1");
    let config = json!({"cniVersion": "0.2.0", "name": "old", "type": "bridge", "bridge": "b0",
        "ipam": {"type": "host-local", "subnet": "10.1.2.0/24", "rangeStart": "10.1.2.9",
            "rangeEnd": "10.1.2.20", "gateway": "10.1.2.3", "routes": [{"dst": "0.0.0.0/0"}]}});
    let result = lab.add(&netns, &config);
    assert_eq!(result["ip4"]["ip"], "10.1.2.9/24");
    assert_eq!(result["ip4"]["gateway"], "10.1.2.3");
    assert_eq!(result["ip4"]["routes"][0]["dst"], "0.0.0.0/0");
    lab.call("DEL", &netns, &config).run().success();
}

/// C11, C17: configurations from the field that look odd.
#[test]
fn c11_c17_odd_configurations_from_the_field() {
    let lab = Lab::new();
    let (one, two) = (lab.world.netns("c1"), lab.world.netns("c2"));
    let crio = json!({"cniVersion": "1.0.0", "name": "crio", "type": "bridge", "bridge": "cni0",
        "isGateway": true, "ipMasq": true, "hairpinMode": true, "ipam": {"type": "host-local",
            "routes": [{"dst": "0.0.0.0/0"}, {"dst": "::/0"}],
            "ranges": [[{"subnet": "10.85.0.0/16"}], [{"subnet": "1100:200::/24"}]]}});
    let result = lab.add(&one, &crio);
    assert_eq!(addresses(&one, "eth0"), ["10.85.0.2/16", "1100:200::2/24"]);
    lab.check(&one, &crio, &result).success();
    lab.del(&one, &crio, &result);
    // `version` is not `cniVersion`: this is 0.1.0.
    let wrong = json!({"version": "0.3.0", "name": "v", "type": "bridge", "bridge": "br-net",
        "ipam": {"type": "host-local", "subnet": "10.24.0.0/23", "rangeStart": "10.24.0.0",
            "rangeEnd": "10.24.1.255", "gateway": "10.24.1.254"}, "mtu": 1500});
    let output = lab.call("ADD", &two, &wrong).run();
    // Network and broadcast addresses as bounds: refused, or never handed out.
    if output.code == 0 {
        assert_eq!(output.json()["ip4"]["ip"], "10.24.0.1/23");
    } else {
        assert!(output.json()["msg"].as_str().unwrap().contains("10.24.0.0"), "{output:#?}");
    }
}
