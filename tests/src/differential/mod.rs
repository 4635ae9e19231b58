//! The same request to our plugin and to Go's: what differs afterwards, and what of
//! it is intended.
//!
//! All that a request may change is taken down as facts with names: the result, the
//! links with their attributes, addresses, routes, rules, queues, files, and every
//! kernel parameter of every interface, on the host and in the container. Of packet
//! filter rules those of the host's own `filter` tables are compared, where firewall
//! puts them; the others lie in tables of ours by design, and tests with packets say
//! what they do.

mod requests;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use podwire_testkit::{GoPlugins, Netns, Plugin, World};
use serde_json::Value;

use crate::normal::normalised;

pub use requests::{HERE, IN_THE_GUEST, attached, in_every_version, previous};

/// Names of facts and their values.
pub type Facts = BTreeMap<String, String>;

/// One request that is made to both.
#[derive(Debug, Clone)]
pub struct Scenario {
    /// What it is called in the list of differences.
    pub name: String,
    /// The plugin.
    pub plugin: &'static str,
    /// The configuration.
    pub config: Value,
    /// `CNI_ARGS`.
    pub args: &'static str,
    /// Command lines that make the host what the request needs.
    pub host: &'static [&'static str],
    /// The error with which Go's refuses ADD where ours serves it.
    pub refused: Option<u64>,
}

/// One line of the list of intended differences.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Intended {
    /// The difference; a scenario that ends in `*` stands for all
    /// that begin so.
    pub difference: Difference,
    /// Why it is so, with a case or an issue of the Go project.
    pub reason: String,
}

impl Intended {
    /// Reads the list: scenario, field, ours, Go's and the reason, with tabs between.
    #[track_caller]
    pub fn read(text: &str) -> Vec<Self> {
        let lines = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
        lines
            .map(|line| {
                let fields: Vec<_> = line.split('\t').map(str::to_owned).collect();
                let [scenario, field, ours, go, reason] =
                    <[String; 5]>::try_from(fields).unwrap_or_else(|_| panic!("fields: {line}"));
                assert!(has_reference(&reason), "no case, issue or specification: {line}");
                Self { difference: Difference { scenario, field, ours, go }, reason }
            })
            .collect()
    }

    /// Whether it is about a scenario: that one, or all that begin as it does.
    fn is_about(&self, scenario: &str) -> bool {
        let own = &self.difference.scenario;
        own.strip_suffix('*').map_or(own == scenario, |prefix| scenario.starts_with(prefix))
    }

    /// Whether it is of this difference, to the letter.
    pub fn covers(&self, found: &Difference) -> bool {
        let own = &self.difference;
        self.is_about(&found.scenario)
            && (&own.field, &own.ours, &own.go) == (&found.field, &found.ours, &found.go)
    }
}

/// Whether a reason says where it can be read: a case, an issue or a commit of the Go
/// project, or the specification.
fn has_reference(reason: &str) -> bool {
    let is_case = |word: &str| {
        let digits = word.strip_prefix(['B', 'C']);
        digits.is_some_and(|digits| {
            digits.len() >= 2 && digits.bytes().all(|byte| byte.is_ascii_digit())
        })
    };
    let named = ["plugins issue ", "plugins commit ", "CNI specification "];
    named.iter().any(|name| reason.contains(name))
        || reason.split(|letter: char| !letter.is_ascii_alphanumeric()).any(is_case)
}

/// A fact that differs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Difference {
    /// The scenario.
    pub scenario: String,
    /// The fact's name.
    pub field: String,
    /// Its value with our plugin; `-` where there is none.
    pub ours: String,
    /// Its value with Go's.
    pub go: String,
}

/// Makes the request in two worlds, ADD, CHECK and DEL, and compares.
#[track_caller]
pub fn compare(scenario: &Scenario) -> Vec<Difference> {
    let run = |go: bool| {
        std::thread::scope(|scope| scope.spawn(move || life(scenario, go)).join())
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    };
    let (ours, go) = (run(false), run(true));
    let names: BTreeSet<_> = ours.keys().chain(go.keys()).collect();
    let value = |facts: &Facts, name| facts.get(name).cloned().unwrap_or_else(|| "-".to_owned());
    names
        .into_iter()
        .map(|name| Difference {
            scenario: scenario.name.clone(),
            field: name.clone(),
            ours: value(&ours, name),
            go: value(&go, name),
        })
        .filter(|difference| difference.ours != difference.go)
        .collect()
}

/// The list of intended differences.
const LIST: &str = include_str!("../../differences.tsv");

/// Panics with every difference that isn't listed, and with every line of the list
/// about one of these scenarios that isn't so.
#[track_caller]
pub fn only_intended(scenarios: &[Scenario]) {
    let list = Intended::read(LIST);
    let found: Vec<Difference> = std::thread::scope(|scope| {
        let all: Vec<_> = scenarios.iter().map(|one| scope.spawn(move || compare(one))).collect();
        let joined = all.into_iter().map(std::thread::ScopedJoinHandle::join);
        joined
            .flat_map(|found| found.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    });
    let news: Vec<_> = found
        .iter()
        .filter(|difference| !list.iter().any(|line| line.covers(difference)))
        .map(ToString::to_string)
        .collect();
    assert!(news.is_empty(), "not in differences.tsv:\n{}", news.join("\n"));
    let all_bridge = scenarios.iter().all(|scenario| scenario.plugin == "bridge");
    let is_of_these = |line: &&Intended| {
        let any = scenarios.iter().any(|scenario| line.is_about(&scenario.name));
        if line.difference.scenario == "*" { all_bridge } else { any }
    };
    for line in list.iter().filter(is_of_these) {
        let there = found.iter().any(|difference| line.covers(difference));
        assert!(there, "differences.tsv lists what is not so: {}", line.difference);
    }
}

impl std::fmt::Display for Difference {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { scenario, field, ours, go } = self;
        write!(formatter, "{scenario}\t{field}\t{ours}\t{go}")
    }
}

/// One side: all facts after ADD and after DEL.
#[track_caller]
fn life(scenario: &Scenario, go: bool) -> Facts {
    let world = World::new();
    let container = world.netns("c1");
    for command in scenario.host {
        world.exec(&command.split(' ').collect::<Vec<_>>());
    }
    let call = |verb: &str, config: &Value| -> Plugin {
        let plugin = if go {
            GoPlugins::sid().plugin(scenario.plugin)
        } else {
            world.plugin(scenario.plugin)
        };
        let plugin = plugin.command(verb).container("c1").netns(&container).ifname("eth0");
        plugin.args(scenario.args).config(config)
    };
    let mut facts = Facts::new();
    let output = call("ADD", &scenario.config).run();
    if let Some(code) = scenario.refused {
        if go {
            output.error(code);
        } else {
            output.success();
        }
        let outcome = if go { format!("refused with code {code}") } else { "served".to_owned() };
        return [("ADD".to_owned(), outcome)].into();
    }
    let output = output.success();
    flatten(&mut facts, "result", &output.json());
    state(&mut facts, "ADD", &world, &container);
    let mut config = scenario.config.clone();
    config["prevResult"] = output.json();
    let version = scenario.config["cniVersion"].as_str().unwrap();
    if version >= "0.4.0" {
        call("CHECK", &config).run().success();
    }
    call("DEL", &config).run().success();
    state(&mut facts, "DEL", &world, &container);
    facts.into_iter().map(|(name, value)| (normalised(&name), normalised(&value))).collect()
}

fn state(facts: &mut Facts, phase: &str, world: &World, container: &Netns) {
    for (place, netns) in [("host", world.host()), ("container", container)] {
        let snapshot = if place == "host" { world.snapshot() } else { netns.snapshot() };
        for (name, value) in snapshot.facts() {
            // Links are taken down in more detail below.
            let is_own_bookkeeping = name.contains("/.podwire/") || name.contains("/run/podwire");
            let is_other_filter = name.starts_with("nft ")
                && !name.contains(" ip filter")
                && !name.contains(" ip6 filter");
            if !is_other_filter && !name.starts_with("link ") && !is_own_bookkeeping {
                facts.insert(format!("{phase} {place} {name}"), value.to_owned());
            }
        }
        for link in netns.ip_json(&["-d", "link"]).as_array().into_iter().flatten() {
            let name = link["ifname"].as_str().unwrap_or_default();
            let mut link = link.clone();
            forget_passing(&mut link);
            flatten(facts, &format!("{phase} {place} link {name}"), &link);
        }
        netns.run(|| parameters(facts, &format!("{phase} {place} sysctl")));
    }
}

/// Takes out what the kernel numbers, counts or changes by itself.
fn forget_passing(value: &mut Value) {
    const PASSING: [&str; 10] = [
        "ifindex",
        "link_index",
        "link_netnsid",
        "operstate",
        "flags",
        "state",
        "root_id",
        "bridge_id",
        "designated_root",
        "designated_bridge",
    ];
    match value {
        Value::Object(object) => {
            object.retain(|key, _| !PASSING.contains(&key.as_str()) && !key.ends_with("_timer"));
            object.values_mut().for_each(forget_passing);
        }
        Value::Array(array) => array.iter_mut().for_each(forget_passing),
        _ => {}
    }
}

/// Every parameter of every interface of the calling thread's namespace.
fn parameters(facts: &mut Facts, prefix: &str) {
    for family in ["ipv4", "ipv6"] {
        let root = Path::new("/proc/sys/net").join(family).join("conf");
        for interface in std::fs::read_dir(&root).unwrap().flatten() {
            for parameter in std::fs::read_dir(interface.path()).unwrap().flatten() {
                // Some can't be read before they are set.
                let Ok(value) = std::fs::read_to_string(parameter.path()) else { continue };
                let interface = interface.file_name().display().to_string();
                let name = parameter.file_name().display().to_string();
                let name = format!("{prefix} {family}/{interface}/{name}");
                facts.insert(name, value.trim().to_owned());
            }
        }
    }
}

/// A fact for each value of a JSON document.
fn flatten(facts: &mut Facts, path: &str, value: &Value) {
    match value {
        Value::Object(object) => {
            for (key, value) in object {
                flatten(facts, &format!("{path}.{key}"), value);
            }
        }
        Value::Array(array) => {
            for (index, value) in array.iter().enumerate() {
                flatten(facts, &format!("{path}[{index}]"), value);
            }
        }
        Value::String(text) => drop(facts.insert(path.to_owned(), text.clone())),
        other => drop(facts.insert(path.to_owned(), other.to_string())),
    }
}
