//! The state of a node, kept in files: what a version of Podwire leaves on the disk
//! and in the kernel, made again later as if that version had just run.
//!
//! ```text
//! tests/fixtures/0.1.0/
//!     files/var/lib/cni/...   records, an intent, reservations, indexes, a backup
//!     commands                links, addresses, routes and queues, as ip and tc take them
//!     ruleset.nft             our tables, as nft takes them
//!     filter4, filter6        the host's own chains, as iptables-restore takes them
//! ```

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use podwire_runtime::Network;
use podwire_testkit::Netns;
use serde_json::{Value, json};

use crate::{Container, Node, Plugins};

/// Folders whose files belong to the state.
const FOLDERS: [&str; 3] = ["/var/lib/cni", "/run/cni/tuning", "/run/podwire/devices"];
/// The containers that are attached, in order.
pub const ATTACHED: [&str; 2] = ["c1", "c2"];
/// The container whose ADD was cut short.
pub const UNFINISHED: &str = "cut";

/// What stands for the boot during which it was: another one where it is restored.
const BOOT: &str = "00000000-0000-4000-8000-000000000000";
/// What ADD switches on for the whole host and for the bridge.
const SWITCHES: [&str; 3] = [
    "/proc/sys/net/ipv4/ip_forward",
    "/proc/sys/net/ipv6/conf/all/forwarding",
    "/proc/sys/net/ipv4/conf/br0/route_localnet",
];

/// The network: every plugin that leaves something on the host.
pub fn config() -> Value {
    json!({
        "cniVersion": "1.1.0",
        "name": "pods",
        "plugins": [
            {
                "type": "bridge", "bridge": "br0", "isGateway": true, "ipMasq": true,
                "macspoofchk": true,
                "ipam": {
                    "type": "host-local",
                    "ranges": [[{"subnet": "10.1.0.0/24"}], [{"subnet": "fd01::/64"}]],
                    "routes": [{"dst": "0.0.0.0/0"}, {"dst": "::/0"}],
                },
            },
            {"type": "tuning", "mtu": 1400},
            {"type": "portmap", "capabilities": {"portMappings": true}},
            {"type": "firewall"},
            {"type": "bandwidth", "ingressRate": 80_000_000, "ingressBurst": 8_000_000,
             "egressRate": 80_000_000, "egressBurst": 8_000_000},
        ],
    })
}

/// The network on a node.
pub fn network(node: &Node) -> Network {
    node.network(&config())
}

/// The containers as they were attached.
pub fn containers(node: &Node) -> Vec<Container> {
    ATTACHED
        .iter()
        .zip([8080, 8081])
        .map(|(name, port)| node.container(name).with_port(port, 80))
        .collect()
}

/// Attaches on a fresh node, and writes down what is there then.
#[track_caller]
pub fn record(folder: &Path) {
    let node = Node::new(Plugins::Ours);
    let network = network(&node);
    let containers = containers(&node);
    for container in &containers {
        node.add(&network, container);
    }
    cut_short(&node);
    let _ = fs::remove_dir_all(folder);
    let root = folder.join("files");
    for path in FOLDERS.iter().flat_map(|root| files(Path::new(root))) {
        copy(&path, &root.join(path.strip_prefix("/").unwrap()), &boot(), BOOT);
    }
    let write = |name: &str, text: String| fs::write(folder.join(name), text).unwrap();
    write("commands", commands(&node, &containers));
    let mut ruleset = String::new();
    for table in node.world.nft_json(&["list", "tables"])["nftables"].as_array().unwrap() {
        let Some(table) = table.get("table") else { continue };
        let [family, name] = [&table["family"], &table["name"]].map(|word| word.as_str().unwrap());
        if name.starts_with("podwire") {
            ruleset += &node.world.exec(&["nft", "list", "table", family, name]).stdout;
        }
    }
    write("ruleset.nft", ruleset);
    write("filter4", node.world.exec(&["iptables-save", "-t", "filter"]).stdout);
    write("filter6", node.world.exec(&["ip6tables-save", "-t", "filter"]).stdout);
}

/// An ADD that was killed before its first plugin ran.
fn cut_short(node: &Node) {
    let intents = Path::new("/var/lib/cni/podwire/intents");
    let record = fs::read_to_string("/var/lib/cni/results/pods-c1-eth0").unwrap();
    let mut record: Value = serde_json::from_str(&record).unwrap();
    record["containerId"] = json!(UNFINISHED);
    record["netns"] = json!(node.world.netns(UNFINISHED).path());
    record["podwire"] = json!({"state": "adding"});
    record.as_object_mut().unwrap().remove("result");
    record.as_object_mut().unwrap().remove("capabilityArgs");
    fs::create_dir_all(intents).unwrap();
    fs::write(intents.join(format!("pods:{UNFINISHED}:eth0")), record.to_string()).unwrap();
}

/// Makes the node of a fixture again: the containers' namespaces, and all that is
/// written down.
#[track_caller]
pub fn restore(folder: &Path) -> (Node, Network, Vec<Container>) {
    let node = Node::new(Plugins::Ours);
    let network = network(&node);
    let containers = containers(&node);
    node.world.netns(UNFINISHED);
    let root = folder.join("files");
    for path in files(&root) {
        copy(&path, &Path::new("/").join(path.strip_prefix(&root).unwrap()), BOOT, &boot());
    }
    for line in fs::read_to_string(folder.join("commands")).unwrap().lines() {
        node.world.exec(&line.split(' ').collect::<Vec<_>>());
    }
    for switch in SWITCHES {
        fs::write(switch, "1").unwrap();
    }
    feed(&["nft", "-f", "-"], &folder.join("ruleset.nft"));
    feed(&["iptables-restore"], &folder.join("filter4"));
    feed(&["ip6tables-restore"], &folder.join("filter6"));
    (node, network, containers)
}

fn boot() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap().trim().to_owned()
}

/// Copies a file, one boot's id in name and content replaced by another's.
fn copy(from: &Path, to: &Path, old: &str, new: &str) {
    let name = to.file_name().unwrap().to_string_lossy().replace(old, new);
    fs::create_dir_all(to.parent().unwrap()).unwrap();
    let mut bytes = fs::read(from).unwrap();
    while let Some(at) = bytes.windows(old.len()).position(|window| window == old.as_bytes()) {
        bytes[at..at + old.len()].copy_from_slice(new.as_bytes());
    }
    fs::write(to.with_file_name(name), bytes).unwrap();
}

fn feed(command: &[&str], input: &Path) {
    let file = fs::File::open(input).unwrap();
    let mut process = Command::new(command[0]);
    let status = process.args(&command[1..]).stdin(Stdio::from(file)).status().unwrap();
    assert!(status.success(), "{command:?} < {}", input.display());
}

/// All files below a folder, sorted; locks, which mean nothing later, left out.
pub fn files(root: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(root) else { return Vec::new() };
    let mut found = Vec::new();
    for entry in entries.map(Result::unwrap) {
        if entry.file_type().unwrap().is_dir() {
            found.extend(files(&entry.path()));
        } else if entry.file_name() != "lock" {
            found.push(entry.path());
        }
    }
    found.sort();
    found
}

/// What `ip` and `tc` need to make the links again.
fn commands(node: &Node, containers: &[Container]) -> String {
    let mut text = String::new();
    let host = node.world.host();
    let links = host.ip_json(&["-d", "link", "show"]);
    let links = links.as_array().unwrap();
    let mut line = |words: String| {
        // Writing to a String can't fail.
        let _ = writeln!(text, "{words}");
    };
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    for link in links.iter().filter(|link| kind(link) == "bridge") {
        let name = word(&link["ifname"]);
        line(format!("ip link add {name} address {} type bridge", word(&link["address"])));
        line(format!("ip link set {name} up"));
        addresses(host, &name, &mut |words| line(format!("ip addr add {words}")));
    }
    for container in containers {
        let (id, ifname) = (&container.id, &container.ifname);
        let inside = &container.netns.ip_json(&["-d", "link", "show", ifname])[0];
        let index = inside["link_index"].as_u64().unwrap();
        let end = links.iter().find(|link| link["ifindex"].as_u64() == Some(index)).unwrap();
        let name = word(&end["ifname"]);
        line(format!(
            "ip link add {name} mtu {} address {} type veth peer name {ifname} mtu {} address {} \
             netns {id}",
            end["mtu"],
            word(&end["address"]),
            inside["mtu"],
            word(&inside["address"]),
        ));
        line(format!("ip link set {name} alias {}", word(&end["ifalias"])));
        line(format!("ip link set {name} master {}", word(&end["master"])));
        line(format!("ip link set {name} up"));
        line(format!("ip -n {id} link set {ifname} up"));
        addresses(&container.netns, ifname, &mut |words| {
            line(format!("ip -n {id} addr add {words}"));
        });
        for family in ["-4", "-6"] {
            for route in container.netns.ip_json(&[family, "route"]).as_array().unwrap() {
                if let (Some(to), Some(by)) = (route["dst"].as_str(), route["gateway"].as_str()) {
                    line(format!("ip -n {id} {family} route add {to} via {by}"));
                }
            }
        }
        shaping(node, links, &name, &mut line);
    }
    text
}

fn kind(link: &Value) -> &str {
    link["linkinfo"]["info_kind"].as_str().unwrap_or_default()
}

fn addresses(netns: &Netns, name: &str, line: &mut dyn FnMut(String)) {
    let shown = netns.ip_json(&["addr", "show", name]);
    for address in shown[0]["addr_info"].as_array().unwrap() {
        if address["scope"] != "link" {
            let (local, length) = (address["local"].as_str().unwrap(), &address["prefixlen"]);
            let nodad = if local.contains(':') { " nodad" } else { "" };
            line(format!("{local}/{length} dev {name}{nodad}"));
        }
    }
}

/// The queues of a host end, and of the ifb that what comes from it goes through.
fn shaping(node: &Node, links: &[Value], host: &str, line: &mut dyn FnMut(String)) {
    let alias = |name: &str| {
        let found = links.iter().find(|link| link["ifname"] == name).unwrap();
        found["ifalias"].as_str().unwrap().to_owned()
    };
    let owner = alias(host);
    let is_own = |link: &&Value| kind(link) == "ifb" && link["ifalias"] == owner.as_str();
    let ifb = links.iter().find(is_own).unwrap();
    let name = ifb["ifname"].as_str().unwrap();
    line(format!(
        "ip link add {name} mtu {} txqueuelen {} address {} type ifb",
        ifb["mtu"],
        ifb["txqlen"],
        ifb["address"].as_str().unwrap()
    ));
    line(format!("ip link set {name} alias {owner}"));
    line(format!("ip link set {name} up"));
    for device in [host, name] {
        let shown = node.world.exec(&["tc", "-j", "qdisc", "show", "dev", device]).json();
        let tbf = shown.as_array().unwrap().iter().find(|qdisc| qdisc["kind"] == "tbf").unwrap();
        let options = &tbf["options"];
        // tc shows bytes a second, and the latency in microseconds.
        line(format!(
            "tc qdisc add dev {device} root handle {} tbf rate {}bps burst {} latency {}us",
            tbf["handle"].as_str().unwrap(),
            options["rate"],
            options["burst"],
            options["lat"]
        ));
    }
    line(format!("tc qdisc add dev {host} ingress"));
    line(format!(
        "tc filter add dev {host} parent ffff: protocol all prio 1 u32 match u32 0 0 flowid 1:1 \
         action mirred egress redirect dev {name}"
    ));
}
