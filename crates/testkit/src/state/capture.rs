//! Reading links, routes, rules, queues, files and sysctls.

use std::path::Path;

use serde_json::Value;

use super::HostState;
use podwire_sys::process::ChildSpec;

use crate::command::{PATIENCE, execute, execute_spec, find};

/// State files are small; more is not compared.
const FILE_LIMIT: usize = 1 << 20;

/// Kernel parameters that plugins set for the whole host.
const SYSCTLS: [&[&str]; 6] = [
    &["net", "ipv4", "ip_forward"],
    &["net", "ipv4", "conf", "all", "forwarding"],
    &["net", "ipv4", "conf", "all", "route_localnet"],
    &["net", "ipv6", "conf", "all", "forwarding"],
    &["net", "bridge", "bridge-nf-call-iptables"],
    &["net", "bridge", "bridge-nf-call-ip6tables"],
];

/// `program -j arguments`, a JSON array of objects.
#[track_caller]
fn list(command: &[&str]) -> Vec<Value> {
    let output = execute(command).success();
    if output.stdout.trim().is_empty() {
        return Vec::new();
    }
    output.json().as_array().expect("an array").clone()
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

#[track_caller]
pub(super) fn links(state: &mut HostState) {
    for link in list(&["ip", "-j", "-d", "addr", "show"]) {
        let name = text(&link, "ifname");
        let mut flags: Vec<&str> =
            link["flags"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        flags.retain(|flag| ["UP", "PROMISC", "ALLMULTI", "NOARP"].contains(flag));
        let kind = link["linkinfo"]["info_kind"].as_str().unwrap_or("-");
        let value = format!(
            "kind {kind} mtu {} mac {} master {} alias {:?} {}",
            link["mtu"],
            text(&link, "address"),
            text(&link, "master"),
            text(&link, "ifalias"),
            flags.join(",")
        );
        state.add(format!("link {name}"), value);
        for address in link["addr_info"].as_array().into_iter().flatten() {
            // The kernel makes link-local addresses when it likes.
            if text(address, "family") == "inet6" && text(address, "scope") == "link" {
                continue;
            }
            let local = text(address, "local");
            let name = format!("address {name} {local}/{}", address["prefixlen"]);
            state.add(name, format!("scope {}", text(address, "scope")));
        }
    }
}

/// The families that this kernel has, as options of `ip`; IPv6 may have been
/// switched off when it was booted.
fn families() -> &'static [&'static str] {
    if Path::new("/proc/sys/net/ipv6/conf").exists() { &["-4", "-6"] } else { &["-4"] }
}

/// Routes and rules, from one process for each family: starting it costs more than
/// what it does.
#[track_caller]
pub(super) fn routing(state: &mut HostState) {
    for &family in families() {
        let questions = b"route show table all\nrule show\n";
        let mut spec = ChildSpec::new(find("ip"));
        spec.arguments = ["-j", family, "-batch", "-"].map(Into::into).into();
        spec.stdin = questions;
        spec.deadline = Some(PATIENCE);
        let output = execute_spec(&spec, &format!("ip -j {family} -batch")).success();
        let answers: Vec<Vec<Value>> = serde_json::Deserializer::from_str(&output.stdout)
            .into_iter()
            .collect::<Result<_, _>>()
            .unwrap_or_else(|error| panic!("{error} in {output:#?}"));
        let [routes, rules] = <[_; 2]>::try_from(answers).expect("an answer to each question");
        add_routes(state, family, routes);
        for rule in rules {
            state.add(format!("rule {family} {}", rule["priority"]), rule.to_string());
        }
    }
}

fn add_routes(state: &mut HostState, family: &str, routes: Vec<Value>) {
    for mut route in routes {
        let Some(object) = route.as_object_mut() else { continue };
        // Set by the kernel as links come and go.
        for key in ["flags", "pref", "expires", "linkdown"] {
            object.remove(key);
        }
        let table = text(&route, "table");
        let destination = text(&route, "dst");
        let automatic = ["fe80::/64", "ff00::/8", "multicast"].contains(&destination);
        // In a domain's table such routes come when an address proved to be alone.
        let own = destination.starts_with("fe80:")
            && ["local", "anycast"].contains(&text(&route, "type"));
        if table == "local" || automatic || own {
            continue;
        }
        let table = if table.is_empty() { "main" } else { table };
        let name = format!("route {family} {table} {destination} {}", text(&route, "dev"));
        state.add(name, route.to_string());
    }
}

#[track_caller]
pub(super) fn queues(state: &mut HostState) {
    for qdisc in list(&["tc", "-j", "qdisc", "show"]) {
        let (kind, device) = (text(&qdisc, "kind"), text(&qdisc, "dev"));
        // The default of a link that has none of its own.
        if text(&qdisc, "handle") == "0:" {
            continue;
        }
        let mut options = qdisc["options"].clone();
        if let Some(options) = options.as_object_mut() {
            // A counter.
            options.remove("direct_packets_stat");
        }
        state.add(format!("qdisc {device} {kind}"), options.to_string());
    }
}

#[track_caller]
pub(super) fn sysctls(state: &mut HostState) {
    for key in SYSCTLS {
        match podwire_sys::sysctl::read(key) {
            Ok(value) => state.add(format!("sysctl {}", key.join("/")), value),
            Err(error) if error.is_missing() => {}
            Err(error) => panic!("{error}"),
        }
    }
}

#[track_caller]
pub(super) fn files(state: &mut HostState, root: &Path) {
    for path in podwire_sys::file::walk_regular_files(root, 8, 1_000_000).unwrap() {
        match podwire_sys::file::read_bounded(&path, FILE_LIMIT) {
            Ok(bytes) => {
                let content = format!("{:?}", String::from_utf8_lossy(&bytes));
                state.add(format!("file {}", path.display()), content);
            }
            // Removed since it was listed.
            Err(error) if error.is_missing() => {}
            Err(error) => panic!("{error}"),
        }
    }
}
