//! Who may depend on whom, and how much the plugin path may hold.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::process::{cargo, output};
use crate::{Result, workspace};

/// The crates that each crate may use of ours. Arrows point down only.
const MAY_USE: &[(&str, &[&str])] = &[
    ("podwire-spec", &[]),
    ("podwire-sys", &[]),
    ("podwire-netlink", &[]),
    ("podwire-plugin", &["podwire-spec", "podwire-sys"]),
    ("podwire-resources", &["podwire-plugin", "podwire-netlink", "podwire-sys", "podwire-spec"]),
    ("podwire-dhcp", &["podwire-plugin", "podwire-netlink", "podwire-sys", "podwire-spec"]),
    ("podwire-runtime", &["podwire-spec", "podwire-sys"]),
    (
        "podwire-plugins",
        &[
            "podwire-plugin",
            "podwire-dhcp",
            "podwire-resources",
            "podwire-netlink",
            "podwire-sys",
            "podwire-spec",
        ],
    ),
    ("podwire-keeper", &["podwire-runtime", "podwire-netlink", "podwire-sys", "podwire-spec"]),
    (
        "podwire-migrate",
        &[
            "podwire-runtime",
            "podwire-resources",
            "podwire-plugin",
            "podwire-netlink",
            "podwire-sys",
            "podwire-spec",
        ],
    ),
    (
        "podwire",
        &[
            "podwire-runtime",
            "podwire-keeper",
            "podwire-migrate",
            "podwire-netlink",
            "podwire-sys",
            "podwire-spec",
        ],
    ),
    ("podwire-testkit", &["podwire-sys", "podwire-netlink", "podwire-spec"]),
];

/// Crates that see everything: nothing that ships depends on them.
const TOPMOST: &[&str] = &[
    "podwire-tests",
    "podwire-examples",
    "podwire-bench",
    "podwire-floor",
    "podwire-fuzz",
    "xtask",
];

/// The crate for tests, which any crate may have as a dev-dependency.
const TESTKIT: &str = "podwire-testkit";

/// The plugin path stays small enough to read: crates in it, ours included,
/// without those that only run at build time.
const MOST_IN_PLUGIN_PATH: usize = 35;

/// A short-lived process needs no runtime for futures.
const NOT_IN_PLUGIN_PATH: &[&str] =
    &["tokio", "async-std", "smol", "mio", "futures", "futures-core", "async-trait", "clap"];

/// Edges between crates that break a rule.
///
/// # Errors
/// When cargo can't describe the workspace.
pub(super) fn faults() -> Result<Vec<String>> {
    let metadata: Value = serde_json::from_str(&output(cargo().args([
        "metadata",
        "--format-version",
        "1",
        "--filter-platform",
        "x86_64-unknown-linux-musl",
        "--manifest-path",
        &workspace::root().join("Cargo.toml").to_string_lossy(),
    ]))?)?;
    let graph = Graph::read(&metadata)?;
    let mut faults = arrows(&graph);
    faults.extend(plugin_path(&graph));
    Ok(faults)
}

fn arrows(graph: &Graph) -> Vec<String> {
    let mut faults = Vec::new();
    for name in &graph.members {
        let dependencies = graph.edges.get(name).map_or(&[][..], Vec::as_slice);
        if TOPMOST.contains(&name.as_str()) {
            continue;
        }
        let Some((_, allowed)) = MAY_USE.iter().find(|(from, _)| from == name) else {
            faults.push(format!(
                "{name}: xtask/src/tidy/dependencies.rs doesn't say what it may use"
            ));
            continue;
        };
        for (to, kind) in dependencies.iter().filter(|(to, _)| graph.members.contains(to)) {
            let for_tests = to == TESTKIT && *kind == Kind::Dev;
            if !allowed.contains(&to.as_str()) && !for_tests {
                faults.push(format!("{name} must not depend on {to}"));
            }
        }
    }
    faults
}

fn plugin_path(graph: &Graph) -> Vec<String> {
    let mut reached = BTreeSet::new();
    let mut waiting = vec!["podwire-plugins".to_owned()];
    while let Some(name) = waiting.pop() {
        if graph.build_time.contains(&name) || !reached.insert(name.clone()) {
            continue;
        }
        for (to, kind) in graph.edges.get(&name).into_iter().flatten() {
            if *kind == Kind::Normal {
                waiting.push(to.clone());
            }
        }
    }
    println!("  the plugin path holds {} crates of at most {MOST_IN_PLUGIN_PATH}", reached.len());
    let mut faults: Vec<String> = NOT_IN_PLUGIN_PATH
        .iter()
        .filter(|name| reached.contains(**name))
        .map(|name| format!("the plugin path must not hold {name}"))
        .collect();
    if reached.len() > MOST_IN_PLUGIN_PATH {
        let names: Vec<&str> = reached.iter().map(String::as_str).collect();
        faults.push(format!(
            "the plugin path holds {} crates, at most {MOST_IN_PLUGIN_PATH} are allowed: {}",
            names.len(),
            names.join(" ")
        ));
    }
    faults
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Normal,
    Dev,
    Build,
}

/// What `cargo metadata` says, by crate name. Two versions of one crate count
/// as one; cargo-deny warns of those.
struct Graph {
    members: BTreeSet<String>,
    edges: BTreeMap<String, Vec<(String, Kind)>>,
    build_time: BTreeSet<String>,
}

impl Graph {
    fn read(metadata: &Value) -> Result<Self> {
        let list = |value: &Value, key: &str| -> Result<Vec<Value>> {
            Ok(value.get(key).and_then(Value::as_array).ok_or(format!("no `{key}`"))?.clone())
        };
        let text = |value: &Value, key: &str| -> Result<String> {
            Ok(value.get(key).and_then(Value::as_str).ok_or(format!("no `{key}`"))?.to_owned())
        };
        let mut names = BTreeMap::new();
        let mut build_time = BTreeSet::new();
        for package in list(metadata, "packages")? {
            let name = text(&package, "name")?;
            let macros = list(&package, "targets")?.iter().any(|target| {
                list(target, "kind")
                    .is_ok_and(|kinds| kinds.iter().any(|kind| kind == "proc-macro"))
            });
            if macros {
                build_time.insert(name.clone());
            }
            names.insert(text(&package, "id")?, name);
        }
        let name_of = |id: &str| names.get(id).cloned().ok_or(format!("no package `{id}`"));
        let mut members = BTreeSet::new();
        for id in list(metadata, "workspace_members")? {
            members.insert(name_of(id.as_str().unwrap_or_default())?);
        }
        let mut edges: BTreeMap<String, Vec<(String, Kind)>> = BTreeMap::new();
        for node in list(metadata.get("resolve").ok_or("no `resolve`")?, "nodes")? {
            let from = edges.entry(name_of(&text(&node, "id")?)?).or_default();
            for dependency in list(&node, "deps")? {
                let to = name_of(&text(&dependency, "pkg")?)?;
                for entry in list(&dependency, "dep_kinds")? {
                    let kind = match entry.get("kind").and_then(Value::as_str) {
                        Some("dev") => Kind::Dev,
                        Some("build") => Kind::Build,
                        _ => Kind::Normal,
                    };
                    from.push((to.clone(), kind));
                }
            }
        }
        Ok(Self { members, edges, build_time })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::{Graph, Kind, arrows, plugin_path};

    fn graph(edges: &[(&str, &str, Kind)]) -> Graph {
        let mut graph =
            Graph { members: BTreeSet::new(), edges: BTreeMap::new(), build_time: BTreeSet::new() };
        for (from, to, kind) in edges {
            for name in [from, to].into_iter().filter(|name| name.starts_with("podwire")) {
                graph.members.insert((*name).to_string());
            }
            graph.edges.entry((*from).to_owned()).or_default().push(((*to).to_owned(), *kind));
        }
        graph
    }

    #[test]
    fn an_arrow_upwards_is_a_fault() {
        let found = arrows(&graph(&[("podwire-spec", "podwire-sys", Kind::Normal)]));
        assert_eq!(found, ["podwire-spec must not depend on podwire-sys"]);
    }

    #[test]
    fn the_test_crate_is_for_tests() {
        assert!(arrows(&graph(&[("podwire-spec", "podwire-testkit", Kind::Dev)])).is_empty());
        assert_eq!(arrows(&graph(&[("podwire-spec", "podwire-testkit", Kind::Normal)])).len(), 1);
    }

    #[test]
    fn a_runtime_for_futures_in_the_plugin_path_is_a_fault_wherever_it_hides() {
        let found = plugin_path(&graph(&[
            ("podwire-plugins", "helper", Kind::Normal),
            ("helper", "tokio", Kind::Normal),
            ("podwire-plugins", "mio", Kind::Dev),
        ]));
        assert_eq!(found, ["the plugin path must not hold tokio"]);
    }
}
