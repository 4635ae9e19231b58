//! A kernel that was booted with `ipv6.disable=1`: it has no IPv6 sockets and
//! no `/proc/sys/net/ipv6`. IPv4 works, and who asks for IPv6 is told.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)] // It is all of tests.

use std::net::IpAddr;
use std::path::Path;

use podwire_testkit::probe::{ANSWER, ping};
use podwire_testkit::{Feature, Netns, Plugin, World};
use serde_json::{Value, json};

fn world() -> World {
    let world = World::new();
    let elsewhere = "this kernel has IPv6; such tests run by: cargo xtask vmtest";
    assert!(!world.has(Feature::Ipv6), "{elsewhere}");
    assert!(!Path::new("/proc/sys/net/ipv6/conf").exists(), "{elsewhere}");
    world
}

fn network(ranges: &Value) -> Value {
    json!({
        "cniVersion": "1.1.0", "name": "n", "type": "bridge", "bridge": "br0",
        "isDefaultGateway": true, "ipMasq": true, "macspoofchk": true,
        "ipam": {"type": "host-local", "ranges": ranges},
    })
}

fn ipv4() -> Value {
    network(&json!([[{"subnet": "10.1.0.0/24"}]]))
}

fn dual() -> Value {
    network(&json!([[{"subnet": "10.1.0.0/24"}], [{"subnet": "fd00:1::/64"}]]))
}

fn call(world: &World, plugin: &str, verb: &str, netns: &Netns, config: &Value) -> Plugin {
    let plugin = world.plugin(plugin).command(verb).netns(netns);
    plugin.container(netns.name()).ifname("eth0").config(config)
}

fn with_result(config: &Value, result: &Value) -> Value {
    let mut config = config.clone();
    config["prevResult"] = result.clone();
    config
}

#[test]
fn the_whole_life_of_an_ipv4_attachment() {
    let world = world();
    let (one, two) = (world.netns("c1"), world.netns("c2"));
    call(&world, "bridge", "STATUS", &one, &ipv4()).run().success();
    let first = call(&world, "bridge", "ADD", &one, &ipv4()).run().success();
    assert!(!first.stderr.contains("ipv6"), "{first:#?}");
    let first = with_result(&ipv4(), &first.json());
    call(&world, "bridge", "ADD", &two, &ipv4()).run().success();
    ping(&one, "10.1.0.1".parse::<IpAddr>().unwrap(), ANSWER).unwrap();
    ping(&one, "10.1.0.3".parse::<IpAddr>().unwrap(), ANSWER).unwrap();
    call(&world, "bridge", "CHECK", &one, &first).run().success();
    call(&world, "bridge", "DEL", &one, &first).run().success();
    call(&world, "bridge", "DEL", &one, &first).run().success();
    let valid = json!({"cni.dev/valid-attachments": [{"containerID": "c2", "ifname": "eth0"}]});
    let mut collect = ipv4();
    collect["cni.dev/valid-attachments"] = valid["cni.dev/valid-attachments"].clone();
    call(&world, "bridge", "GC", &two, &collect).run().success();
    ping(&two, "10.1.0.1".parse::<IpAddr>().unwrap(), ANSWER).unwrap();
}

#[test]
fn an_ipv6_address_is_refused_by_name_and_nothing_stays() {
    let world = world();
    let netns = world.netns("c1");
    let before = world.snapshot();
    let error = call(&world, "bridge", "ADD", &netns, &dual()).run().failure().json();
    assert!(error["msg"].as_str().unwrap().contains("the kernel has no IPv6"), "{error}");
    let left = world.snapshot().since(&before).beyond_residue(&[]);
    left.without(|change| change.name().starts_with("sysctl net/ipv4/")).assert_empty();
    let reserved = std::fs::read_dir("/var/lib/cni/networks/n").unwrap();
    let reserved: Vec<_> = reserved
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.parse::<IpAddr>().is_ok())
        .collect();
    assert!(reserved.is_empty(), "{reserved:?}");
}

#[test]
fn loopback_has_its_ipv4_address() {
    let world = world();
    let netns = world.netns("c1");
    let config = json!({"cniVersion": "1.1.0", "name": "lo", "type": "loopback"});
    let plugin = call(&world, "loopback", "ADD", &netns, &config).ifname("lo");
    let result = plugin.run().success().json();
    assert_eq!(result["ips"].as_array().unwrap().len(), 1, "{result}");
    let check = call(&world, "loopback", "CHECK", &netns, &with_result(&config, &result));
    check.ifname("lo").run().success();
    call(&world, "loopback", "DEL", &netns, &config).ifname("lo").run().success();
}

/// Host ports of IPv4 work; host-local itself serves either family, since it
/// asks nothing of the kernel.
#[test]
fn host_ports_work_over_ipv4() {
    let world = world();
    let netns = world.netns("c1");
    let result = call(&world, "bridge", "ADD", &netns, &ipv4()).run().success().json();
    let address = result["ips"][0]["address"].as_str().unwrap().split('/').next().unwrap();
    let config = json!({
        "cniVersion": "1.1.0", "name": "n", "type": "portmap", "prevResult": result,
        "runtimeConfig": {"portMappings":
            [{"hostPort": 8080, "containerPort": 80, "protocol": "tcp"}]},
    });
    call(&world, "portmap", "STATUS", &netns, &config).run().success();
    call(&world, "portmap", "ADD", &netns, &config).run().success();
    call(&world, "portmap", "CHECK", &netns, &config).run().success();
    let server = netns.run(|| std::net::TcpListener::bind(format!("{address}:80"))).unwrap();
    let client = std::net::TcpStream::connect_timeout(&"10.1.0.1:8080".parse().unwrap(), ANSWER);
    client.unwrap();
    server.accept().unwrap();
    call(&world, "portmap", "DEL", &netns, &config).run().success();
    let ruleset = world.exec(&["nft", "list", "ruleset"]).stdout;
    assert!(!ruleset.contains("8080"), "{ruleset}");
}
