//! A host with containers behind it and a server before it.

use std::net::IpAddr;

use ipnet::IpNet;
use podwire_plugin::{Collection, Difference, OwnerMark, Resource, Valid};
use podwire_resources::Kernel;
use podwire_resources::masquerade::{Masquerade, Masquerades};
use podwire_spec::error::Error;
use podwire_spec::id::{AttachmentKey, ContainerId, IfName, NetworkName};
use podwire_testkit::probe::{ANSWER, ping};
use podwire_testkit::{Netns, World};

/// The host's addresses on the server's side.
pub(crate) const HOST: [&str; 2] = ["192.0.2.1", "fd00:2::1"];
/// The server's addresses.
pub(crate) const SERVER: [&str; 2] = ["192.0.2.2", "fd00:2::2"];

/// The host is the world's own namespace; containers are routed to it, each
/// by a pair of its own, so that packets between two of them pass its
/// postrouting. The server has routes back to the containers.
pub(crate) struct Lab {
    pub(crate) world: World,
    pub(crate) server: Netns,
}

impl Lab {
    pub(crate) fn new() -> Self {
        let world = World::new();
        let server = world.netns("server");
        for key in ["net/ipv4/ip_forward", "net/ipv6/conf/all/forwarding"] {
            std::fs::write(format!("/proc/sys/{key}"), "1").unwrap();
        }
        link(&world, &server, "uplink");
        for (on, index) in [(HOST[0], "24"), (HOST[1], "64")] {
            ip(&world, &format!("addr add {on}/{index} dev uplink nodad"));
        }
        inside(&server, &format!("addr add {}/24 dev eth0", SERVER[0]));
        inside(&server, &format!("addr add {}/64 dev eth0 nodad", SERVER[1]));
        inside(&server, &format!("route add 10.0.0.0/8 via {}", HOST[0]));
        inside(&server, &format!("-6 route add fd00:1::/64 via {}", HOST[1]));
        for at in SERVER {
            ping(world.host(), address(at), ANSWER).unwrap();
        }
        Self { world, server }
    }

    /// A container with these addresses, and the host as its gateway.
    pub(crate) fn container(&self, name: &str, addresses: &[&str]) -> Netns {
        let namespace = self.world.netns(name);
        link(&self.world, &namespace, name);
        ip(&self.world, &format!("addr add 169.254.1.1/32 dev {name}"));
        ip(&self.world, &format!("addr add fe80::1/64 dev {name} nodad"));
        inside(&namespace, "route add 169.254.1.1 dev eth0");
        for address in addresses {
            inside(&namespace, &format!("addr add {address} dev eth0 nodad"));
            ip(&self.world, &format!("route add {address} dev {name}"));
        }
        inside(&namespace, "route add default via 169.254.1.1");
        inside(&namespace, "-6 route add default via fe80::1 dev eth0");
        // A new pair drops packets until the kernel noticed that it is up.
        ping(&namespace, address("169.254.1.1"), ANSWER).unwrap();
        namespace
    }

    /// Everything that nftables holds, as nft prints it.
    pub(crate) fn ruleset(&self) -> String {
        self.world.exec(&["nft", "list", "ruleset"]).stdout
    }
}

fn link(world: &World, namespace: &Netns, name: &str) {
    let path = namespace.path().display();
    ip(world, &format!("link add {name} type veth peer name eth0 netns {path}"));
    ip(world, &format!("link set {name} up"));
    inside(namespace, "link set eth0 up");
    inside(namespace, "link set lo up");
}

pub(crate) fn ip(world: &World, arguments: &str) {
    let command: Vec<_> = std::iter::once("ip").chain(arguments.split(' ')).collect();
    world.exec(&command);
}

fn inside(namespace: &Netns, arguments: &str) {
    let command: Vec<_> = std::iter::once("ip").chain(arguments.split(' ')).collect();
    namespace.exec(&command);
}

pub(crate) fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
}

pub(crate) fn key(network: &str, container: &str, ifname: &str) -> AttachmentKey {
    AttachmentKey {
        network: NetworkName::parse(network).unwrap(),
        container_id: ContainerId::parse(container).unwrap(),
        ifname: IfName::parse(ifname).unwrap(),
    }
}

/// The masquerade of `eth0` of a container on network `n1`.
pub(crate) fn masquerade(container: &str, addresses: &[&str]) -> Masquerade {
    masquerade_of(&key("n1", container, "eth0"), addresses)
}

pub(crate) fn masquerade_of(key: &AttachmentKey, addresses: &[&str]) -> Masquerade {
    let addresses = addresses.iter().map(|address| address.parse::<IpNet>().unwrap()).collect();
    Masquerade::new(OwnerMark::of(key), key, addresses)
}

/// ADD, as one call of a plugin does it.
#[track_caller]
pub(crate) fn add(container: &str, addresses: &[&str]) {
    masquerade(container, addresses).make(&mut Kernel::new(None).unwrap()).unwrap();
}

/// DEL by the owner alone.
#[track_caller]
pub(crate) fn del(container: &str) {
    masquerade(container, &[]).remove(&mut Kernel::new(None).unwrap()).unwrap();
}

/// CHECK: the differences.
#[track_caller]
pub(crate) fn check(container: &str, addresses: &[&str]) -> Vec<Difference> {
    masquerade(container, addresses).check(&mut Kernel::new(None).unwrap()).unwrap()
}

/// GC of a network; returns what was removed.
#[track_caller]
pub(crate) fn gc(network: &str, valid: &[(&str, &str)]) -> Vec<String> {
    let valid = Valid::new(&NetworkName::parse(network).unwrap(), valid.iter().copied());
    let mut kernel = Kernel::new(None).unwrap();
    let stale = Masquerades.stale(&mut kernel, &valid).unwrap();
    let removed: Result<Vec<_>, Error> =
        stale.iter().map(|one| one.remove(&mut kernel).map(|()| one.describe())).collect();
    removed.unwrap()
}
