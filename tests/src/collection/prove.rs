//! Trying the rows.

use std::cell::RefCell;
use std::collections::BTreeMap;

use podwire_testkit::{GoPlugins, HostState, Netns, Output, Plugin, World};
use serde_json::{Value, json};

use crate::proof::none_fails;

use super::{Fate, Maker, Namespace, Row, rows};

/// The keys that the valid attachments may come under (specification 1.1.0, section 2 "GC",
/// and what libcni wrote before).
const KEYS: [&str; 2] = ["cni.dev/valid-attachments", "cni.dev/attachments"];

/// Tries all rows of a plugin's GC, and panics with those that fail.
#[track_caller]
pub fn prove(plugin: &str) {
    let mut rows = rows();
    rows.retain(|row| row.plugin == plugin);
    none_fails(plugin, &rows, attempt);
}

fn attempt(row: &Row) -> Result<(), String> {
    let told =
        |text: String| Err(format!("{} of {:?}, {}: {text}", row.plugin, row.maker, row.object));
    let scene = Scene::new(row);
    scene.add("alive");
    let with_alive = scene.objects();
    scene.die("dead");
    let with_both = scene.objects();
    if with_both.len() <= with_alive.len() {
        return told(format!("it was not made: {with_both:#?}"));
    }
    // The list is absent: nothing is known, nothing is freed.
    let output = scene.gc(None, KEYS[0]);
    if !output.stderr.contains("valid-attachments") || scene.objects() != with_both {
        return told(format!("without the list: {}{:#?}", output.stderr, scene.objects()));
    }
    let alive = json!([{"containerID": "alive", "ifname": "eth0"}]);
    if let Fate::Reported(words) = row.fate {
        for valid in [alive, Value::Null, json!([])] {
            let output = scene.gc(Some(&valid), KEYS[0]);
            if scene.objects() != with_both {
                return told(format!("it should stay, {valid}: {:#?}", scene.objects()));
            }
            if let Some(word) = words.iter().find(|word| !output.stderr.contains(**word)) {
                return told(format!("{word:?} is not said: {}", output.stderr));
            }
        }
        return Ok(());
    }
    for key in KEYS {
        scene.gc(Some(&alive), key);
        if scene.objects() != with_alive {
            return told(format!("{key}: {:#?} instead of {with_alive:#?}", scene.objects()));
        }
        scene.die("dead");
    }
    for empty in [Value::Null, json!([])] {
        if row.maker != Maker::Podwire && row.namespace == Namespace::Gone {
            // That its interface is gone is a part of the evidence.
            scene.end("alive");
        }
        scene.gc(Some(&empty), KEYS[0]);
        if !scene.objects().is_empty() {
            return told(format!("{empty} is the empty set: {:#?}", scene.objects()));
        }
        scene.remove("alive");
        scene.die("alive");
    }
    // A second GC finds nothing to do.
    scene.gc(Some(&json!([])), KEYS[0]);
    scene.gc(Some(&json!([])), KEYS[0]);
    let left = scene.objects();
    if left.is_empty() { Ok(()) } else { told(format!("at the end: {left:#?}")) }
}

/// A world in which containers come and go.
struct Scene<'a> {
    world: World,
    row: &'a Row,
    go: Option<GoPlugins>,
    before: HostState,
    containers: RefCell<BTreeMap<String, Netns>>,
}

impl<'a> Scene<'a> {
    fn new(row: &'a Row) -> Self {
        let go = match row.maker {
            Maker::Podwire => None,
            Maker::Debian => Some(GoPlugins::debian()),
            Maker::Sid => Some(GoPlugins::sid()),
        };
        let world = World::new();
        if !row.prepare.is_empty() {
            world.exec(&["sh", "-ec", row.prepare]);
        }
        let before = world.snapshot();
        Self { world, row, go, before, containers: RefCell::default() }
    }

    /// The facts that are objects of the row's kind.
    fn objects(&self) -> Vec<String> {
        let now = self.world.snapshot();
        let is_new = |(name, _): &(&str, &str)| !self.before.facts().any(|(one, _)| one == *name);
        let lines = now.facts().filter(is_new).map(|(name, value)| format!("{name}: {value}"));
        lines.filter(|line| self.row.words.iter().all(|word| line.contains(word))).collect()
    }

    fn container(&self, id: &str) -> Netns {
        let mut containers = self.containers.borrow_mut();
        containers.entry(id.to_owned()).or_insert_with(|| self.world.netns(id)).clone()
    }

    /// The host's ends of pairs.
    fn pairs(&self) -> Vec<u64> {
        let links = self.world.ip_json(&["link", "show", "type", "veth"]);
        links.as_array().unwrap().iter().map(|link| link["ifindex"].as_u64().unwrap()).collect()
    }

    fn remove(&self, id: &str) {
        if let Some(container) = self.containers.borrow_mut().remove(id) {
            container.remove();
        }
    }

    fn add(&self, id: &str) {
        let container = self.container(id);
        let mut result = Value::Null;
        for mut config in (self.row.chain)(id) {
            config["name"] = json!("n");
            config["cniVersion"] =
                json!(if self.row.maker == Maker::Debian { "1.0.0" } else { "1.1.0" });
            if !result.is_null() {
                config["prevResult"] = result;
            }
            let name = config["type"].as_str().unwrap();
            let call = self.plugin(name).command("ADD").container(id).netns(&container);
            result = call.ifname("eth0").config(&config).run().success().json();
        }
    }

    fn plugin(&self, name: &str) -> Plugin {
        self.go.as_ref().map_or_else(|| self.world.plugin(name), |go| go.plugin(name))
    }

    /// A container that was attached, and of which nobody will ever say DEL.
    fn die(&self, id: &str) {
        let before = self.pairs();
        self.add(id);
        if self.row.namespace == Namespace::Gone {
            let own: Vec<_> =
                self.pairs().into_iter().filter(|pair| !before.contains(pair)).collect();
            self.remove(id);
            // The kernel takes what was in it down in its own time.
            crate::wait_until("the namespace's end", || {
                self.pairs().iter().all(|pair| !own.contains(pair))
            });
        }
    }

    /// Ends the only container.
    fn end(&self, id: &str) {
        self.remove(id);
        crate::wait_until("the namespace's end", || self.pairs().is_empty());
    }

    /// GC by our plugin, and then by those before it in the chain.
    fn gc(&self, valid: Option<&Value>, key: &str) -> Output {
        let chain = (self.row.chain)("dead");
        let call = |plugin: &str, config: &Value| {
            let mut config = config.clone();
            config["name"] = json!("n");
            config["cniVersion"] = json!("1.1.0");
            if let Some(valid) = valid {
                config[key] = valid.clone();
            }
            self.world.plugin(plugin).command("GC").config(&config).run().success()
        };
        let output = call(self.row.plugin, chain.last().unwrap());
        for config in &chain {
            call(config["type"].as_str().unwrap(), config);
        }
        output
    }
}
