//! Trying the rows: each in a world of its own.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use podwire_testkit::{Netns, Output, Plugin, World};
use serde_json::{Value, json};

use super::{Deed, Mutation, Subject};

/// The network of every subject.
const NETWORK: &str = "n";

/// Tries the rows of a plugin that any kernel has what it takes for, and panics with
/// those that fail.
#[track_caller]
pub fn prove(plugin: &str) {
    prove_all(plugin, super::subjects_here());
}

/// Tries the other rows of a plugin.
#[track_caller]
pub fn prove_elsewhere(plugin: &str) {
    prove_all(plugin, super::subjects_elsewhere());
}

#[track_caller]
fn prove_all(plugin: &str, mut subjects: Vec<Subject>) {
    subjects.retain(|subject| subject.plugin == plugin);
    assert!(!subjects.is_empty(), "no subject is about {plugin}");
    let mut faults = Vec::new();
    for subject in &subjects {
        if !subject.needs.is_empty() {
            let world = World::new();
            subject.needs.iter().for_each(|feature| world.needs(*feature));
        }
        for mutation in (subject.noticed)() {
            assert!(!mutation.says.is_empty(), "{}: nothing is expected", mutation.what);
            faults.extend(attempt(subject, &mutation).err());
        }
        for mutation in (subject.tolerated)() {
            assert!(mutation.says.is_empty(), "{}: it is to be tolerated", mutation.what);
            faults.extend(attempt(subject, &mutation).err());
        }
    }
    assert!(faults.is_empty(), "{} rows fail:\n{}", faults.len(), faults.join("\n"));
}

/// Attaches, checks, does the deed, and checks again. Afterwards DEL must succeed
/// whatever was done.
fn attempt(subject: &Subject, mutation: &Mutation) -> Result<(), String> {
    let mut scene = Scene::new(subject);
    scene.add();
    for index in 0..scene.chain.len() {
        // Right after ADD nothing is different, for no plugin of the chain.
        scene.call("CHECK", index).run().success();
    }
    let _listener = scene.change(&mutation.deed);
    let told = |problem: &str, output: &Output| {
        Err(format!(
            "{} ({}), {}: {problem}: {}",
            subject.plugin, subject.setting, mutation.what, output.stdout
        ))
    };
    if mutation.says.is_empty() {
        for index in 0..scene.chain.len() {
            let output = scene.call("CHECK", index).run();
            if output.code != 0 {
                return told("should be tolerated", &output);
            }
        }
    }
    let output = scene.of_subject("CHECK").run();
    match mutation.says.as_slice() {
        [] if output.code != 0 => return told("should be tolerated", &output),
        [] => {}
        _ if output.code == 0 => return told("is not noticed", &output),
        words => {
            let error = output.json();
            let text = format!("{}; {}", error["msg"], error["details"]);
            if error["code"] != 100 {
                return told("has another code than 100", &output);
            }
            if let Some(word) = words.iter().find(|word| !text.contains(&scene.expand(word))) {
                return told(&format!("{word:?} is not said"), &output);
            }
        }
    }
    for index in (0..scene.chain.len()).rev() {
        let output = scene.call("DEL", index).run();
        if output.code != 0 {
            return told("DEL failed", &output);
        }
    }
    Ok(())
}

/// One attachment in a world.
struct Scene<'a> {
    world: World,
    subject: &'a Subject,
    container: Netns,
    chain: Vec<Value>,
    result: Value,
}

impl<'a> Scene<'a> {
    fn new(subject: &'a Subject) -> Self {
        let world = World::new();
        let container = world.netns("c1");
        if !subject.prepare.is_empty() {
            world.exec(&["sh", "-ec", subject.prepare]);
        }
        let chain = (subject.chain)();
        Self { world, subject, container, chain, result: Value::Null }
    }

    fn add(&mut self) {
        for index in 0..self.chain.len() {
            self.result = self.call("ADD", index).run().success().json();
        }
    }

    /// A call of a plugin of the chain.
    fn call(&self, verb: &str, index: usize) -> Plugin {
        let name = self.chain[index]["type"].as_str().unwrap();
        self.prepared(name, verb, &self.chain[index])
    }

    /// A call of the plugin that is asked, or of the last one's IPAM plugin.
    fn of_subject(&self, verb: &str) -> Plugin {
        let plugin = self.subject.plugin;
        let own = self.chain.iter().find(|config| config["type"] == plugin);
        self.prepared(plugin, verb, own.or(self.chain.last()).unwrap())
    }

    fn prepared(&self, plugin: &str, verb: &str, config: &Value) -> Plugin {
        let mut config = config.clone();
        config["cniVersion"] = json!("1.1.0");
        config["name"] = json!(NETWORK);
        if !self.result.is_null() {
            config["prevResult"] = self.result.clone();
        }
        let ifname = if plugin == "loopback" { "lo" } else { "eth0" };
        let call = self.world.plugin(plugin).command(verb).container("c1");
        call.netns(&self.container).ifname(ifname).config(config)
    }

    /// Does a deed; what it returns ends with it.
    fn change(&mut self, deed: &Deed) -> Option<Listener> {
        match deed {
            Deed::Host(script) => {
                self.world.exec(&["sh", "-ec", &self.expand(script)]);
            }
            Deed::Inside(script) => {
                self.container.exec(&["sh", "-ec", &self.expand(script)]);
            }
            Deed::Record(change) => change(&mut self.result),
            Deed::Listen(on_host, interface) => {
                let namespace = if *on_host { self.world.host() } else { &self.container };
                return Some(Listener::start(namespace, &self.expand(interface)));
            }
        }
        None
    }

    /// A script or words with the names of this attachment.
    fn expand(&self, text: &str) -> String {
        if !text.contains('$') {
            // Each listing takes its time in emulation.
            return text.to_owned();
        }
        text.replace("$HOST", &self.interface("veth"))
            .replace("$IFB", &self.interface("bwp"))
            .replace("$NETNS", self.container.path().to_str().unwrap())
            .replace("$MAC", self.result["interfaces"][0]["mac"].as_str().unwrap_or_default())
    }

    /// The interface of the host whose name begins so, or nothing.
    fn interface(&self, prefix: &str) -> String {
        let links = self.world.ip_json(&["link"]);
        let mut names = links.as_array().unwrap().iter().filter_map(|link| link["ifname"].as_str());
        names.rfind(|name| name.starts_with(prefix)).unwrap_or_default().to_owned()
    }
}

/// A packet socket that sees everything, while it lives.
struct Listener(Child);

impl Listener {
    /// Returns when it listens.
    fn start(namespace: &Netns, interface: &str) -> Self {
        let listeners = || {
            let link = &namespace.ip_json(&["-d", "link", "show", "dev", interface])[0];
            link["promiscuity"].as_u64().unwrap()
        };
        let before = listeners();
        let mut listener = namespace.run(|| {
            let tcpdump = Command::new("tcpdump")
                .args(["-i", interface, "-w", "/run/world/capture", "-U"])
                .stderr(Stdio::piped())
                .spawn()
                .unwrap();
            Self(tcpdump)
        });
        let mut line = String::new();
        BufReader::new(listener.0.stderr.take().unwrap()).read_line(&mut line).unwrap();
        assert!(line.contains("listening"), "{line}");
        assert_eq!(listeners(), before + 1, "{interface}");
        listener
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
