//! What STATUS answers when an ADD could not be served, as data: for each plugin and each
//! cause how it comes about, and what is said. The tests try every row; `docs/status.md`
//! shows them.

use std::fmt::Write as _;

use podwire_testkit::{Feature, World};
use serde_json::{Value, json};

use crate::proof::none_fails;

/// A plugin and a cause.
#[derive(Clone, Copy)]
pub struct Row {
    /// The plugin.
    pub plugin: &'static str,
    /// What stands in the way, for people.
    pub cause: &'static str,
    /// A script for the host that brings it about.
    pub script: &'static str,
    /// What the kernel lacks; where it doesn't, STATUS must be content.
    pub lacks: Option<Feature>,
    /// The plugin's own keys.
    pub config: fn() -> Value,
    /// The code; 0 where it is only a warning.
    pub code: u64,
    /// Words of the answer.
    pub says: &'static [&'static str],
}

/// Every row.
pub fn rows() -> Vec<Row> {
    [addresses(), delegates(), interfaces(), behind()].concat()
}

const FULL: &str = "mkdir -p /var/lib/cni/networks/n
    for number in 2 3 4 5 6; do
        printf \"c$number\\r\\neth0\" > /var/lib/cni/networks/n/10.1.0.$number
    done";
const READ_ONLY: &str = "mkdir -p /var/lib/cni/networks
    mount -t tmpfs -o ro none /var/lib/cni/networks";
const NO_SPACE: &str = "mkdir -p /var/lib/cni/networks
    mount -t tmpfs -o size=64k none /var/lib/cni/networks
    cat /dev/zero > /var/lib/cni/networks/filler 2>/dev/null || true";
const NO_INODE: &str = "mkdir -p /var/lib/cni/networks
    mount -t tmpfs -o nr_inodes=2 none /var/lib/cni/networks
    : > /var/lib/cni/networks/filler";

fn pool() -> Value {
    json!({"type": "host-local", "ranges": [[{"subnet": "10.1.0.0/29"}]]})
}

fn with_pool(plugin: &str) -> Value {
    json!({"type": plugin, "bridge": "br0", "master": "up0", "vlanId": 7, "ipam": pool()})
}

/// A row about a plugin with host-local, to be changed.
fn row(plugin: &'static str, cause: &'static str, says: &'static [&'static str]) -> Row {
    let config = || with_pool("bridge");
    Row { plugin, cause, script: "", lacks: None, config, code: 50, says }
}

fn addresses() -> Vec<Row> {
    vec![
        Row {
            script: FULL,
            ..row("host-local", "every address is reserved", &["10.1.0.1-10.1.0.6", "network n"])
        },
        Row {
            script: FULL,
            code: 0,
            config: || {
                let mut config = with_pool("bridge");
                config["ipam"]["statusOnExhausted"] = json!("warn");
                config
            },
            ..row(
                "host-local",
                "every address is reserved, `ipam.statusOnExhausted` is `\"warn\"`",
                &["warning", "10.1.0.1-10.1.0.6"],
            )
        },
        Row {
            script: READ_ONLY,
            ..row(
                "host-local",
                "`dataDir` is read-only",
                &["ipam.dataDir", "/var/lib/cni/networks", "Read-only file system"],
            )
        },
        Row {
            script: NO_SPACE,
            ..row(
                "host-local",
                "the file system of `dataDir` has no space",
                &["ipam.dataDir", "/var/lib/cni/networks", "No space left"],
            )
        },
        Row {
            script: NO_INODE,
            ..row(
                "host-local",
                "the file system of `dataDir` has no inode",
                &["ipam.dataDir", "/var/lib/cni/networks", "No space left"],
            )
        },
        Row {
            script: "mkdir -p /var/lib/cni; : > /var/lib/cni/networks",
            ..row(
                "host-local",
                "`dataDir` is no directory",
                &["ipam.dataDir", "/var/lib/cni/networks", "Not a directory"],
            )
        },
    ]
}

fn delegates() -> Vec<Row> {
    let full = |plugin, config| Row {
        script: FULL_WITH_UPLINK,
        config,
        ..row(plugin, "the IPAM plugin says so", &["10.1.0.1-10.1.0.6"])
    };
    let absent = |plugin, config| Row {
        script: UPLINK,
        config,
        ..row(plugin, "the IPAM plugin is missing", &["failed to find plugin \"absent\""])
    };
    vec![
        full("bridge", || with_pool("bridge")),
        full("ptp", || with_pool("ptp")),
        full("macvlan", || with_pool("macvlan")),
        full("tap", || with_pool("tap")),
        full("ipvlan", || with_pool("ipvlan")),
        full("vlan", || with_pool("vlan")),
        full("dummy", || with_pool("dummy")),
        absent("bridge", || without_delegate("bridge")),
        absent("ptp", || without_delegate("ptp")),
        absent("macvlan", || without_delegate("macvlan")),
        absent("tap", || without_delegate("tap")),
    ]
}

const UPLINK: &str = "ip link add up0 type veth peer name far0";
const FULL_WITH_UPLINK: &str = "mkdir -p /var/lib/cni/networks/n
    for number in 2 3 4 5 6; do
        printf \"c$number\\r\\neth0\" > /var/lib/cni/networks/n/10.1.0.$number
    done
    ip link add up0 type veth peer name far0";

fn without_delegate(plugin: &str) -> Value {
    let mut config = with_pool(plugin);
    config["ipam"]["type"] = json!("absent");
    config
}

fn interfaces() -> Vec<Row> {
    let lacking = |plugin, feature, config, says| Row {
        script: UPLINK,
        lacks: Some(feature),
        config,
        ..row(plugin, "the kernel has no such interfaces", says)
    };
    vec![
        Row {
            script: "ip link add br0 type ifb",
            ..row(
                "bridge",
                "another interface has the bridge's name",
                &["br0", "not a bridge", "ifb"],
            )
        },
        Row {
            lacks: Some(Feature::BridgeVlanFiltering),
            config: || {
                let mut config = with_pool("bridge");
                config["vlan"] = json!(100);
                config
            },
            ..row("bridge", "the kernel filters no VLANs", &["VLAN"])
        },
        Row {
            config: || with_pool("macvlan"),
            ..row("macvlan", "the master is missing", &["master \"up0\"", "no such interface"])
        },
        Row {
            config: || {
                let mut config = with_pool("macvlan");
                config.as_object_mut().unwrap().remove("master");
                config
            },
            ..row(
                "macvlan",
                "no master is named, and there is no default route",
                &["no default route"],
            )
        },
        lacking("ipvlan", Feature::Ipvlan, || with_pool("ipvlan"), &["no ipvlan links"]),
        lacking("vlan", Feature::Vlan, || with_pool("vlan"), &["no vlan links"]),
        lacking("dummy", Feature::Dummy, || with_pool("dummy"), &["no dummy links"]),
        lacking("vrf", Feature::Vrf, || json!({"type": "vrf", "vrfname": "blue"}), &["VRF"]),
        Row {
            script: "mount -t tmpfs none /dev/net",
            config: || with_pool("tap"),
            ..row("tap", "`/dev/net/tun` is missing", &["/dev/net/tun", "module tun"])
        },
        Row {
            config: || json!({"type": "host-device", "device": "hdev"}),
            ..row("host-device", "the device is missing, and no container has one", &["hdev"])
        },
    ]
}

fn behind() -> Vec<Row> {
    let leased =
        || json!({"type": "macvlan", "master": "up0", "bridge": "br0", "ipam": {"type": "dhcp"}});
    vec![
        Row {
            config: leased,
            ..row("dhcp", "its daemon doesn't run", &["no daemon listens at /run/cni/dhcp.sock"])
        },
        Row {
            script: UPLINK,
            config: leased,
            ..row(
                "macvlan",
                "the daemon of `dhcp` doesn't run",
                &["no daemon listens at /run/cni/dhcp.sock"],
            )
        },
        Row {
            config: || json!({"type": "firewall", "backend": "firewalld"}),
            ..row("firewall", "firewalld doesn't run", &["firewalld isn't running"])
        },
        Row {
            script: "mkdir -p /var/lib/cni/tuning; mount -t tmpfs -o ro none /var/lib/cni/tuning",
            config: || json!({"type": "tuning", "mtu": 1300, "dataDir": "/var/lib/cni/tuning"}),
            ..row(
                "tuning",
                "`dataDir` is read-only",
                &["dataDir /var/lib/cni/tuning", "Read-only file system"],
            )
        },
        Row {
            script: "mkdir -p /var/lib/cni/tuning
                mount -t tmpfs -o nr_inodes=1 none /var/lib/cni/tuning",
            config: || json!({"type": "tuning", "mtu": 1300, "dataDir": "/var/lib/cni/tuning"}),
            ..row(
                "tuning",
                "the file system of `dataDir` has no inode",
                &["dataDir /var/lib/cni/tuning", "No space left"],
            )
        },
        Row {
            script: "mkdir -p /etc/cni/tuning
                echo '^net.ipv4.conf.*$' > /etc/cni/tuning/allowlist.conf",
            config: || json!({"type": "tuning", "sysctl": {"net.core.somaxconn": "500"}}),
            ..row("tuning", "the allow list lacks a kernel parameter", &["net.core.somaxconn"])
        },
    ]
}

/// Tries the rows of a plugin, and panics with those that fail.
#[track_caller]
pub fn prove(plugin: &str) {
    let mut rows = rows();
    rows.retain(|row| row.plugin == plugin);
    none_fails(plugin, &rows, attempt);
}

fn attempt(row: &Row) -> Result<(), String> {
    let world = World::new();
    if !row.script.is_empty() {
        world.exec(&["sh", "-ec", row.script]);
    }
    let mut config = (row.config)();
    config["cniVersion"] = json!("1.1.0");
    config["name"] = json!("n");
    let before = world.snapshot();
    let output = world.plugin(row.plugin).command("STATUS").config(config).run();
    let has_all = row.lacks.is_some_and(|feature| world.has(feature));
    let expected = if has_all { 0 } else { row.code };
    let told = |text: &str| Err(format!("{}, {}: {text}: {output:?}", row.plugin, row.cause));
    let code = if output.code == 0 { 0 } else { output.json()["code"].as_u64().unwrap_or(0) };
    if code != expected || (output.code == 0) != (expected == 0) {
        return told("another code");
    }
    let text = format!("{}{}", output.stdout, output.stderr);
    if let Some(word) = row.says.iter().find(|word| !has_all && !text.contains(&escaped(word))) {
        return told(&format!("{word:?} is not said"));
    }
    // It only asks.
    world.snapshot().since(&before).assert_empty();
    Ok(())
}

/// As text stands in JSON; what goes to standard error has no quotes.
fn escaped(word: &str) -> String {
    word.replace('"', "\\\"")
}

/// What `docs/status.md` must hold.
pub fn page() -> String {
    let mut page = INTRODUCTION.to_owned();
    for Row { plugin, cause, code, says, lacks, .. } in rows() {
        let code = if code == 0 { "none, a warning".to_owned() } else { code.to_string() };
        let words: Vec<_> = says.iter().map(|word| format!("`{word}`")).collect();
        let star = if lacks.is_some() { "\\*" } else { "" };
        let _ = writeln!(page, "| `{plugin}` | {cause}{star} | {code} | {} |", words.join(", "));
    }
    page
}

const INTRODUCTION: &str = "\
# What STATUS says

This page is written by the tests (`cargo xtask docs`), and they fail when it is not as
they are: each row is brought about, STATUS is asked, and nothing on the host may have
changed by that. `*`: tried on kernels with and without; with it STATUS must be content.

Code 50 says that no ADD could be served now, and 51 that, besides, containers that are
attached may have limited connectivity. An orchestrator may evict containers from a node
that isn't ready: `\"statusOnExhausted\": \"warn\"` in `ipam` has a full pool be a warning.

| plugin | cause | code | words of the answer |
|---|---|---|---|
";
