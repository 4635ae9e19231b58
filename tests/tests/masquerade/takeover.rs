//! What the Go plugins set up, removed, checked and collected by ours.

use std::path::Path;

use podwire_plugin::Resource;
use podwire_resources::Kernel;
use podwire_testkit::{GoPlugins, Netns, World};
use serde_json::{Value, json};

use crate::lab::{check, del, gc, ip, key, masquerade_of};

fn config(network: &str, backend: Option<&str>, version: &str) -> Value {
    let mut config = json!({
        "cniVersion": version, "name": network, "type": "bridge", "bridge": "cni0",
        "isGateway": true, "ipMasq": true,
        "ipam": {"type": "host-local", "ranges": [
            [{"subnet": "10.1.0.0/24"}], [{"subnet": "fd00:1::/64"}]]},
    });
    if let Some(backend) = backend {
        config["ipMasqBackend"] = json!(backend);
    }
    config
}

/// ADD by a Go plugin; returns the addresses.
#[track_caller]
fn go_add(
    go: &GoPlugins,
    config: &Value,
    container: &str,
    ifname: &str,
    to: &Netns,
) -> Vec<String> {
    let call = go.plugin("bridge").command("ADD").container(container).ifname(ifname).netns(to);
    let result = call.config(config).run().success().json();
    let ips = result["ips"].as_array().unwrap().iter();
    ips.map(|ip| ip["address"].as_str().unwrap().to_owned()).collect()
}

fn strs(addresses: &[String]) -> Vec<&str> {
    addresses.iter().map(String::as_str).collect()
}

/// Lines of the whole ruleset, and of legacy xtables, that name what the Go
/// plugins made for containers.
fn traces(world: &World) -> Vec<String> {
    let mut text = world.exec(&["nft", "list", "ruleset"]).stdout;
    if Path::new("/proc/thread-self/net/ip_tables_names").exists() {
        let names = std::fs::read_to_string("/proc/thread-self/net/ip_tables_names").unwrap();
        if names.contains("nat") {
            text += &world.exec(&["iptables-legacy", "-t", "nat", "-S"]).stdout;
            text += &world.exec(&["ip6tables-legacy", "-t", "nat", "-S"]).stdout;
        }
    }
    text.lines()
        .filter(|line| line.contains("CNI-") || line.contains("masquerade comment"))
        .map(str::to_owned)
        .collect()
}

/// B053, B076: DEL, CHECK and GC of what a release of the Go plugins made.
#[track_caller]
fn takes_over(go: &GoPlugins, backend: Option<&str>, version: &str) {
    let world = World::new();
    let config = config("n1", backend, version);
    let namespaces = ["a", "b", "c"].map(|name| world.netns(name));
    let first = go_add(go, &config, "c1", "eth0", &namespaces[0]);
    let second = go_add(go, &config, "c2", "eth0", &namespaces[1]);
    let third = go_add(go, &config, "c3", "eth0", &namespaces[2]);
    assert!(traces(&world).len() >= 6, "{:#?}", traces(&world));

    assert_eq!(check("c1", &strs(&first)), []);
    // DEL without any result.
    del("c1");
    let left = traces(&world);
    assert!(
        !left.iter().any(|line| line.contains("\"c1\"") || line.contains("id: c1")),
        "{left:#?}"
    );
    assert_eq!(check("c2", &strs(&second)), []);
    assert_eq!(check("c1", &strs(&first)).len(), first.len());

    // DEL with the addresses.
    let mut kernel = Kernel::new(None).unwrap();
    masquerade_of(&key("n1", "c2", "eth0"), &strs(&second)).remove(&mut kernel).unwrap();
    let left = traces(&world);
    assert!(
        !left.iter().any(|line| line.contains("\"c2\"") || line.contains("id: c2")),
        "{left:#?}"
    );
    assert_eq!(check("c3", &strs(&third)), []);

    // GC: not of another network, not of the living, but of the dead.
    assert!(gc("n2", &[]).is_empty());
    assert!(gc("n1", &[("c3", "eth0")]).is_empty());
    assert_eq!(check("c3", &strs(&third)), []);
    assert!(!gc("n1", &[("c4", "eth0")]).is_empty());
    assert_eq!(traces(&world), Vec::<String>::new());
    ip(&world, "link del cni0");
}

#[test]
fn b053_masquerade_of_debians_release_goes() {
    takes_over(&GoPlugins::debian(), None, "1.0.0");
}

#[test]
fn b053_masquerade_of_sids_iptables_backend_goes() {
    takes_over(&GoPlugins::sid(), Some("iptables"), "1.1.0");
}

#[test]
fn b053_masquerade_of_sids_nftables_backend_goes() {
    takes_over(&GoPlugins::sid(), Some("nftables"), "1.1.0");
}

/// B076: iptables was switched to legacy when the Go plugin ran.
#[test]
fn b076_masquerade_in_legacy_xtables_goes() {
    let world = World::new();
    for name in ["iptables", "ip6tables"] {
        let target = format!("/usr/sbin/{name}-legacy");
        std::os::unix::fs::symlink(target, world.path(name)).unwrap();
    }
    let directory = world.path("").display().to_string();
    let namespace = world.netns("a");
    let go = GoPlugins::debian();
    let call = go.plugin("bridge").command("ADD").container("c1").ifname("eth0");
    let call = call.netns(&namespace).env("PATH", format!("{directory}:/usr/sbin:/usr/bin"));
    let result = call.config(config("n1", None, "1.0.0")).run().success().json();
    assert!(traces(&world).iter().any(|line| line.contains("-j CNI-")), "{:#?}", traces(&world));
    let ips = result["ips"].as_array().unwrap().iter();
    let addresses: Vec<_> = ips.map(|ip| ip["address"].as_str().unwrap()).collect();
    assert!(!addresses.is_empty());
    assert_eq!(check("c1", &addresses), []);
    assert_eq!(check("c1", &["10.9.9.9/24"]).len(), 1);

    assert!(gc("n1", &[("c1", "eth0")]).is_empty());
    assert!(!traces(&world).is_empty());
    assert!(!gc("n1", &[]).is_empty());
    assert_eq!(traces(&world), Vec::<String>::new());
    assert_eq!(check("c1", &addresses).len(), addresses.len());
    del("c1");
}

/// The iptables chain belongs to all interfaces of the container on the
/// network: DEL of one with its addresses leaves the other's.
#[test]
fn the_other_interface_keeps_the_shared_chain() {
    let world = World::new();
    let go = GoPlugins::sid();
    let config = config("n1", Some("iptables"), "1.1.0");
    let namespace = world.netns("a");
    let first = go_add(&go, &config, "c1", "eth0", &namespace);
    let second = go_add(&go, &config, "c1", "eth1", &namespace);
    let mut kernel = Kernel::new(None).unwrap();
    let first = masquerade_of(&key("n1", "c1", "eth0"), &strs(&first));
    let second = masquerade_of(&key("n1", "c1", "eth1"), &strs(&second));
    first.remove(&mut kernel).unwrap();
    assert_eq!(second.check(&mut kernel).unwrap(), []);
    assert!(!first.check(&mut kernel).unwrap().is_empty());
    second.remove(&mut kernel).unwrap();
    assert_eq!(traces(&world), Vec::<String>::new());
}
