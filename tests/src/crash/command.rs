//! The `podwire` command over a chain: the runtime itself is killed, and the
//! plugin that it was running lives on.

use std::path::PathBuf;
use std::time::Duration;

use podwire_sys::lock::FileLock;
use podwire_testkit::kill::{self, Killed};
use podwire_testkit::{Output, Plugin, World};

use super::place::Place;
use super::plugin_chain::PluginChain;
use super::subject::{Subject, Target, Verb, done};

/// Where the runtime records attachments, finished and not.
const RECORDS: [&str; 2] = ["/var/lib/cni/results", "/var/lib/cni/podwire/intents"];
/// No plugin that was left behind may run for longer.
const PATIENCE: Duration = Duration::from_secs(30);

/// The `podwire` command.
pub struct Command {
    name: String,
    chain: PluginChain,
    program: PathBuf,
}

impl Command {
    /// The command over a chain.
    pub fn over(chain: PluginChain) -> Self {
        Self { name: format!("podwire: {}", chain.name), chain, program: program("podwire") }
    }

    fn arguments(&self, world: &World, verb: &str, target: &Target) -> Vec<String> {
        let mut arguments = vec![verb.to_owned(), self.chain.network.to_owned()];
        if let Some(netns) = &target.netns {
            arguments.push(netns.display().to_string());
        }
        arguments.extend(["--container-id", &target.container].map(str::to_owned));
        arguments.extend(["--ifname", self.chain.ifname].map(str::to_owned));
        if let Some(capabilities) = self.chain.capabilities(&target.container) {
            arguments.extend(["--cap-args".to_owned(), capabilities.to_string()]);
        }
        arguments.extend(plugin_directory(world));
        arguments
    }

    fn run(&self, world: &World, arguments: &[String]) -> Output {
        let program = self.program.to_str().unwrap();
        let mut command = vec![program];
        command.extend(arguments.iter().map(String::as_str));
        world.try_exec(&command)
    }
}

/// One of our programs, built beside the running test.
#[track_caller]
fn program(name: &str) -> PathBuf {
    let own = std::env::current_exe().unwrap();
    let directory = own.parent().unwrap();
    let is_deps = directory.ends_with("deps");
    let program = if is_deps { directory.parent().unwrap() } else { directory }.join(name);
    assert!(program.is_file(), "{} is not built; run: cargo build --bins", program.display());
    program
}

fn plugin_directory(world: &World) -> [String; 2] {
    ["--plugin-dir".to_owned(), world.plugin_directory().display().to_string()]
}

impl Subject for Command {
    fn name(&self) -> &str {
        &self.name
    }

    fn ifname(&self) -> &str {
        self.chain.ifname
    }

    fn bridges(&self) -> &[&str] {
        self.chain.bridges
    }

    fn prepare(&self, _world: &World) {
        let path = format!("/etc/cni/net.d/{}.conflist", self.chain.network);
        std::fs::write(path, self.chain.list().to_string()).unwrap();
    }

    fn programs(&self) -> usize {
        1
    }

    fn add(&self, world: &World, target: &mut Target) -> Result<(), Box<Output>> {
        let output = done(self.run(world, &self.arguments(world, "add", target)))?;
        target.result = Some(output.json());
        Ok(())
    }

    fn del(&self, world: &World, target: &Target) -> Result<(), Box<Output>> {
        done(self.run(world, &self.arguments(world, "del", target))).map(drop)
    }

    fn kill(&self, world: &World, verb: Verb, target: &Target, place: Place) -> Killed {
        let mut command = std::process::Command::new(&self.program);
        let verb = if verb == Verb::Add { "add" } else { "del" };
        command.args(self.arguments(world, verb, target));
        kill::run_and_kill(command, b"", place.call)
    }

    fn check(&self, world: &World, target: &Target) -> Result<(), Box<Output>> {
        done(self.run(world, &self.arguments(world, "check", target))).map(drop)
    }

    fn gc(&self, world: &World, valid: &[&str]) -> Result<(), Box<Output>> {
        let mut arguments = vec!["gc".to_owned(), self.chain.network.to_owned()];
        for container in valid {
            let keep = format!("{container}:{}", self.chain.ifname);
            arguments.extend(["--keep".to_owned(), keep]);
        }
        if valid.is_empty() {
            arguments.push("--all".to_owned());
        }
        arguments.extend(plugin_directory(world));
        done(self.run(world, &arguments)).map(drop)
    }

    fn forget(&self, target: &mut Target) {
        target.result = None;
        for directory in RECORDS {
            for entry in std::fs::read_dir(directory).into_iter().flatten() {
                let path = entry.unwrap().path();
                if path.to_string_lossy().contains(&target.container) {
                    std::fs::remove_file(path).unwrap();
                }
            }
        }
    }

    /// Every plugin that runs holds the network's lock, inherited from its runtime.
    fn settle(&self) {
        let path = format!("/run/podwire/runtime/network/{}", self.chain.network);
        FileLock::exclusive(path, PATIENCE).unwrap().remove().unwrap();
    }

    fn go_neighbour(&self, target: &Target) -> Option<Plugin> {
        self.chain.go_neighbour(target)
    }
}
