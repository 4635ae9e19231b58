//! What the Go plugins set up, removed, checked and collected by ours.

use podwire_testkit::{GoPlugins, Netns, World};
use serde_json::json;

use crate::lab::{check, del, gc, run};

#[track_caller]
fn go_add(go: &GoPlugins, network: &str, version: &str, container: &str, to: &Netns) -> String {
    let config = json!({
        "cniVersion": version, "name": network, "type": "bridge", "bridge": "cni0",
        "macspoofchk": true,
        "ipam": {"type": "host-local", "subnet": "10.1.0.0/24"},
    });
    let call = go.plugin("bridge").command("ADD").container(container).ifname("eth0").netns(to);
    let result = call.config(config).run().success().json();
    result["interfaces"][1]["name"].as_str().unwrap().to_owned()
}

/// Chains and rules that the Go plugins made for containers.
fn traces(world: &World) -> Vec<String> {
    let listed = world.exec(&["nft", "list", "ruleset"]).stdout;
    let lines = listed.lines().filter(|line| line.contains("cni-br-iface"));
    lines.map(|line| line.trim().to_owned()).collect()
}

#[track_caller]
fn takes_over(go: &GoPlugins, version: &str) {
    let world = World::new();
    let namespaces = ["a", "b", "c"].map(|name| world.netns(name));
    go_add(go, "n1", version, "c1", &namespaces[0]);
    let second = go_add(go, "n1", version, "c2", &namespaces[1]);
    let third = go_add(go, "n2", version, "c3", &namespaces[2]);
    // Two chains, and two jumps to them, for each.
    assert_eq!(traces(&world).len(), 12, "{:#?}", traces(&world));

    assert_eq!(check("c1", &namespaces[0]), []);
    del("c1");
    assert_eq!(traces(&world).len(), 8, "{:#?}", traces(&world));
    assert!(!traces(&world).iter().any(|line| line.contains("-c1-")), "{:#?}", traces(&world));
    assert_eq!(check("c1", &namespaces[0]).len(), 1);
    assert_eq!(check("c2", &namespaces[1]), []);

    // As long as the host interface is there, the chain may be another
    // network's; and of a live attachment it isn't even looked at.
    assert!(gc("n1", &[]).is_empty());
    run(&world, &format!("ip link del {second}"));
    assert!(gc("n1", &[("c2", "eth0")]).is_empty());
    assert_eq!(gc("n1", &[]), ["chain cni-br-iface-c2-eth0 in bridge nat"]);
    assert_eq!(traces(&world).len(), 4, "{:#?}", traces(&world));
    assert!(world.exec(&["ip", "link", "show", &third]).stdout.contains(&third));

    // Without its jump, nothing proves anything.
    run(&world, "nft flush chain bridge nat PREROUTING");
    run(&world, &format!("ip link del {third}"));
    assert!(gc("n2", &[]).is_empty());
    del("c3");
    assert_eq!(traces(&world), Vec::<String>::new());
}

#[test]
fn b104_checks_of_debians_release_go() {
    takes_over(&GoPlugins::debian(), "1.0.0");
}

#[test]
fn b104_checks_of_sids_release_go() {
    takes_over(&GoPlugins::sid(), "1.1.0");
}
