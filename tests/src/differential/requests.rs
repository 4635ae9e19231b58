//! One ordinary dual-stack request to each plugin, in every version.

use podwire_testkit::World;
use serde_json::{Value, json};

use super::Scenario;
use crate::lab::with;

/// The versions in which every plugin is compared.
const VERSIONS: [&str; 4] = ["0.3.1", "0.4.0", "1.0.0", "1.1.0"];

/// The plugins that any kernel can serve.
pub const HERE: [&str; 13] = [
    "bandwidth",
    "bridge",
    "firewall",
    "host-device",
    "host-local",
    "loopback",
    "macvlan",
    "portmap",
    "ptp",
    "sbr",
    "static",
    "tap",
    "tuning",
];

/// Those that need the virtual machine's kernels.
pub const IN_THE_GUEST: [&str; 4] = ["dummy", "ipvlan", "vlan", "vrf"];

/// An uplink with a neighbour behind it.
const UPLINK: &[&str] =
    &["ip link add up0 type veth peer name far0", "ip link set up0 up", "ip link set far0 up"];

/// A device that goes into the container.
const DEVICE: &[&str] = &["ip link add hdev type veth peer name far"];

/// What a plugin that made a pair has left: the container's end with addresses and
/// routes of both IP versions, the other end on a bridge.
const ATTACHED: &[&str] = &[
    "ip link add br0 type bridge",
    "ip link add v0 type veth peer name eth0 address 02:00:5e:10:00:01 netns c1",
    "ip link set v0 master br0",
    "ip addr add 10.1.0.1/24 dev br0",
    "ip addr add fd01::1/64 dev br0 nodad",
    "ip link set br0 up",
    "ip link set v0 up",
    "ip -n c1 link set lo up",
    "ip -n c1 link set eth0 up",
    "ip -n c1 addr add 10.1.0.2/24 dev eth0",
    "ip -n c1 addr add fd01::2/64 dev eth0 nodad",
    "ip -n c1 route add default via 10.1.0.1 dev eth0",
    "ip -n c1 route add default via fd01::1 dev eth0",
    "ip -n c1 route add 10.9.0.0/16 via 10.1.0.7 dev eth0",
    "ip -n c1 route add fd09::/64 via fd01::7 dev eth0",
];

/// Makes what a plugin before this one has made, for the container `c1`.
#[track_caller]
pub fn attached(world: &World) {
    for command in ATTACHED {
        world.exec(&command.split(' ').collect::<Vec<_>>());
    }
}

/// The result that goes with it, in the shape of the version.
pub fn previous(version: &str) -> Value {
    let mut result = json!({
        "cniVersion": version,
        "interfaces": [
            {"name": "br0"},
            {"name": "v0"},
            {"name": "eth0", "mac": "02:00:5e:10:00:01", "sandbox": "/run/netns/c1"},
        ],
        "ips": [
            {"address": "10.1.0.2/24", "gateway": "10.1.0.1", "interface": 2},
            {"address": "fd01::2/64", "gateway": "fd01::1", "interface": 2},
        ],
        "routes": [{"dst": "0.0.0.0/0"}, {"dst": "::/0"}],
    });
    for ip in result["ips"].as_array_mut().into_iter().flatten() {
        // Before 1.0.0 an address says of which IP version it is.
        if version.starts_with("0.") {
            let is_six = ip["address"].as_str().is_some_and(|address| address.contains(':'));
            ip["version"] = json!(if is_six { "6" } else { "4" });
        }
    }
    result
}

/// The plugin's request in each version.
#[track_caller]
pub fn in_every_version(plugin: &'static str) -> Vec<Scenario> {
    VERSIONS.into_iter().map(|version| in_version(plugin, version)).collect()
}

#[track_caller]
fn in_version(plugin: &'static str, version: &str) -> Scenario {
    let (host, more) = request(plugin, version);
    let config = json!({"cniVersion": version, "name": "pods", "type": plugin});
    Scenario {
        name: format!("{plugin} {version}"),
        plugin,
        config: with(&config, &more),
        args: "",
        host,
        // Go's firewall begins at 0.4.0.
        refused: (plugin == "firewall" && version == "0.3.1").then_some(1),
    }
}

/// Addresses of both IP versions, and routes with and without a gateway.
fn addresses() -> Value {
    json!({
        "type": "host-local",
        "ranges": [[{"subnet": "10.1.0.0/24"}], [{"subnet": "fd01::/64"}]],
        "routes": [
            {"dst": "0.0.0.0/0"}, {"dst": "::/0"}, {"dst": "10.9.0.0/16", "gw": "10.1.0.7"},
        ],
    })
}

/// What the host must be like, and the plugin's own keys.
#[track_caller]
fn request(plugin: &str, version: &str) -> (&'static [&'static str], Value) {
    let chained = |more: Value| (ATTACHED, with(&json!({"prevResult": previous(version)}), &more));
    let alone = |host: &'static [&'static str], more: Value| {
        (host, with(&json!({"ipam": addresses()}), &more))
    };
    match plugin {
        "bandwidth" => chained(json!({
            "ingressRate": 8_000_000, "ingressBurst": 800_000,
            "egressRate": 16_000_000, "egressBurst": 1_600_000,
        })),
        "bridge" => alone(&[], json!({"bridge": "br0", "isGateway": true})),
        "dummy" | "host-local" | "ptp" | "tap" => alone(&[], json!({})),
        "firewall" => chained(json!({"backend": "iptables", "ingressPolicy": "same-bridge"})),
        "host-device" => alone(DEVICE, json!({"device": "hdev"})),
        "ipvlan" | "macvlan" => alone(UPLINK, json!({"master": "up0", "mtu": 1400})),
        "loopback" => (&[], json!({})),
        "portmap" => chained(json!({"runtimeConfig": {"portMappings": [
            {"hostPort": 8080, "containerPort": 80, "protocol": "tcp"},
            {"hostPort": 8053, "containerPort": 53, "protocol": "udp", "hostIP": "192.0.2.1"},
        ]}})),
        "sbr" => chained(json!({})),
        "static" => (
            &[],
            json!({"ipam": {
                "type": "static",
                "addresses": [
                    {"address": "10.1.0.9/24", "gateway": "10.1.0.1"}, {"address": "fd01::9/64"},
                ],
                "routes": [{"dst": "0.0.0.0/0"}, {"dst": "fd09::/64", "gw": "fd01::7"}],
                "dns": {"nameservers": ["10.1.0.1"], "domain": "example.com"},
            }}),
        ),
        "tuning" => chained(json!({
            "mac": "02:00:5e:10:00:99", "mtu": 1300, "promisc": true, "allmulti": true,
            "txQLen": 77, "sysctl": {
                "net.ipv4.conf.IFNAME.log_martians": "1", "net/ipv6/conf/IFNAME/hop_limit": "33",
            },
        })),
        "vlan" => alone(UPLINK, json!({"master": "up0", "vlanId": 4094, "mtu": 1400})),
        "vrf" => chained(json!({"vrfname": "blue"})),
        other => panic!("no request for {other}: add one, so that it is compared with Go's"),
    }
}
