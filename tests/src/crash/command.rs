//! The `podwire` command over a chain: the runtime itself is killed, and the
//! plugin that it was running lives on.

use std::path::{Path, PathBuf};
use std::time::Duration;

use podwire_sys::lock::FileLock;
use podwire_sys::process::{ChildSpec, Exit, run};
use podwire_testkit::kill::storage::run_and_spoil;
use podwire_testkit::kill::{self, Blow, Killed};
use podwire_testkit::{DiskFault, Netns, Output, Plugin, Spoiled, World};

use super::place::Place;
use super::plugin_chain::PluginChain;
use super::subject::{Subject, Target, Verb, done};

/// Where the runtime records attachments, finished and not.
const RECORDS: [&str; 2] = ["/var/lib/cni/results", "/var/lib/cni/podwire/intents"];
/// No plugin that was left behind may run for longer.
const PATIENCE: Duration = Duration::from_mins(1);

/// The `podwire` command.
pub struct Command {
    name: String,
    chain: PluginChain,
    program: PathBuf,
}

/// The command with the plugins of a directory, for many threads at once.
#[derive(Clone, Copy)]
pub struct Commands<'a> {
    command: &'a Command,
    directory: &'a Path,
}

impl Command {
    /// The command over a chain.
    pub fn over(chain: PluginChain) -> Self {
        Self { name: format!("podwire: {}", chain.name), chain, program: program("podwire") }
    }

    /// The command with the plugins of a directory.
    pub fn installed<'a>(&'a self, directory: &'a Path) -> Commands<'a> {
        Commands { command: self, directory }
    }

    /// What it runs.
    pub fn chain(&self) -> &PluginChain {
        &self.chain
    }
}

impl Commands<'_> {
    fn arguments(&self, verb: &str, target: &Target) -> Vec<String> {
        let chain = &self.command.chain;
        let mut arguments = vec![verb.to_owned(), chain.network.to_owned()];
        if let Some(netns) = &target.netns {
            arguments.push(netns.display().to_string());
        }
        arguments.extend(["--container-id", &target.container].map(str::to_owned));
        arguments.extend(["--ifname", chain.ifname].map(str::to_owned));
        if let Some(capabilities) = chain.capabilities(&target.container) {
            arguments.extend(["--cap-args".to_owned(), capabilities.to_string()]);
        }
        arguments.extend(self.plugin_directory());
        arguments
    }

    fn plugin_directory(&self) -> [String; 2] {
        ["--plugin-dir".to_owned(), self.directory.display().to_string()]
    }

    /// A command line of `podwire` with the plugins, to be run elsewhere.
    pub fn command_line(&self, arguments: &[&str]) -> Vec<String> {
        let mut line = vec![self.command.program.display().to_string()];
        line.extend(arguments.iter().map(|argument| (*argument).to_owned()));
        line.extend(self.plugin_directory());
        line
    }

    fn run(&self, arguments: &[String]) -> Output {
        let mut spec = ChildSpec::new(&self.command.program);
        spec.arguments = arguments.iter().map(Into::into).collect();
        spec.deadline = Some(PATIENCE);
        let shown = format!("podwire {}", arguments.join(" "));
        let outcome = run(&spec).unwrap_or_else(|error| panic!("{shown}: {error}"));
        assert!(outcome.stopped.is_none(), "{shown}: {outcome:?}");
        let code = match outcome.exit {
            Exit::Code(code) => code,
            Exit::Signal(number) => 128 + number,
        };
        let [stdout, stderr] =
            [&outcome.stdout, &outcome.stderr].map(|one| one.text().into_owned());
        Output { command: shown, code, stdout, stderr }
    }

    /// `podwire add`; sets the target's result.
    ///
    /// # Errors
    /// What it said.
    pub fn add(&self, target: &mut Target) -> Result<(), Box<Output>> {
        target.result = Some(done(self.run(&self.arguments("add", target)))?.json());
        Ok(())
    }

    /// `podwire del`.
    ///
    /// # Errors
    /// What it said.
    pub fn del(&self, target: &Target) -> Result<(), Box<Output>> {
        done(self.run(&self.arguments("del", target))).map(drop)
    }

    /// `podwire add` or `podwire del` on a disk that is bad from a counted call on; a
    /// whole ADD sets the target's result.
    pub fn spoil(&self, verb: Verb, target: &mut Target, number: u64, fault: DiskFault) -> Spoiled {
        let mut command = std::process::Command::new(&self.command.program);
        command.args(self.arguments(&verb.as_str().to_lowercase(), target));
        let spoiled = run_and_spoil(command, b"", number, fault);
        if verb == Verb::Add && spoiled.output.code == 0 {
            target.result = Some(spoiled.output.json());
        }
        spoiled
    }

    /// `podwire check`.
    ///
    /// # Errors
    /// What it said.
    pub fn check(&self, target: &Target) -> Result<(), Box<Output>> {
        done(self.run(&self.arguments("check", target))).map(drop)
    }

    /// `podwire gc` that keeps these containers.
    ///
    /// # Errors
    /// What it said.
    pub fn gc(&self, valid: &[&str]) -> Result<(), Box<Output>> {
        done(self.run(&self.collection(valid))).map(drop)
    }

    fn collection(&self, valid: &[&str]) -> Vec<String> {
        let mut arguments = vec!["gc".to_owned(), self.command.chain.network.to_owned()];
        for container in valid {
            let keep = format!("{container}:{}", self.command.chain.ifname);
            arguments.extend(["--keep".to_owned(), keep]);
        }
        if valid.is_empty() {
            arguments.push("--all".to_owned());
        }
        arguments.extend(self.plugin_directory());
        arguments
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

    fn is_seen_from_the_host(&self) -> bool {
        self.chain.is_seen_from_the_host()
    }

    fn is_restored_from_a_record(&self) -> bool {
        self.chain.is_restored_from_a_record()
    }

    fn prepare(&self, world: &World) {
        self.chain.prepare(world);
        let path = format!("/etc/cni/net.d/{}.conflist", self.chain.network);
        std::fs::write(path, self.chain.list().to_string()).unwrap();
    }

    fn repair(&self, world: &World) -> bool {
        self.chain.repair(world)
    }

    fn goes_with_sandbox(&self, link: &str) -> bool {
        self.chain.goes_with_sandbox(link)
    }

    fn furnish(&self, netns: &Netns, container: &str) {
        self.chain.furnish(netns, container);
    }

    fn programs(&self) -> usize {
        1
    }

    fn program(&self, _index: usize) -> &'static str {
        "podwire"
    }

    fn add(&self, world: &World, target: &mut Target) -> Result<(), Box<Output>> {
        self.installed(world.plugin_directory()).add(target)
    }

    fn del(&self, world: &World, target: &Target) -> Result<(), Box<Output>> {
        self.installed(world.plugin_directory()).del(target)
    }

    fn kill(
        &self,
        world: &World,
        verb: Verb,
        target: &Target,
        valid: &[&str],
        place: Place,
        blow: Blow,
    ) -> Killed {
        let podwire = self.installed(world.plugin_directory());
        let mut command = std::process::Command::new(&self.program);
        command.args(match verb {
            Verb::Add => podwire.arguments("add", target),
            Verb::Del => podwire.arguments("del", target),
            Verb::Gc => podwire.collection(valid),
        });
        kill::run_and_strike(command, b"", place.call, blow)
    }

    fn check(&self, world: &World, target: &Target) -> Result<(), Box<Output>> {
        self.installed(world.plugin_directory()).check(target)
    }

    fn gc(&self, world: &World, valid: &[&str]) -> Result<(), Box<Output>> {
        self.installed(world.plugin_directory()).gc(valid)
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
