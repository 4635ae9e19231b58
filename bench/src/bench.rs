//! A run: its world, its subjects, its results.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use podwire_testkit::{Netns, World};
use serde_json::{Value, json};

use crate::Outcome;
use crate::call::{Call, Run, Target, VERSION};
use crate::options::Options;
use crate::report::Report;
use crate::subject::Subject;

/// One pass over a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pass {
    /// Not kept: caches fill, indexes are made.
    Warm,
    /// Timed.
    Timed,
    /// Traced and counted, which takes its own time.
    Counted,
}

/// Where state lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// In memory.
    Tmpfs,
    /// On a real disk.
    Disk,
}

impl State {
    /// What is added to a call's name.
    pub const fn suffix(self) -> &'static str {
        match self {
            Self::Tmpfs => "",
            Self::Disk => ", on disk",
        }
    }
}

/// A private world and what is found out in it.
pub struct Bench<'a> {
    /// The world.
    pub world: &'a World,
    /// What was asked for.
    pub options: &'a Options,
    /// The results.
    pub report: Report,
    number: u32,
    retired: Vec<Netns>,
}

/// A call's place in the report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The section.
    pub section: &'static str,
    /// The call.
    pub call: String,
    /// What it is plotted against, if anything.
    pub at: Option<u32>,
}

impl Place {
    /// A call of a section.
    pub fn new(section: &'static str, call: impl Into<String>) -> Self {
        Self { section, call: call.into(), at: None }
    }

    /// A point of a curve.
    #[must_use]
    pub fn at(mut self, at: u32) -> Self {
        self.at = Some(at);
        self
    }
}

impl<'a> Bench<'a> {
    /// A run in a world.
    pub fn new(world: &'a World, options: &'a Options) -> Self {
        Self { world, options, report: Report::default(), number: 0, retired: Vec::new() }
    }

    /// The subjects that are here, of those wanted. A quick run leaves out the
    /// older Go release.
    pub fn subjects(&self, wanted: &[Subject]) -> Vec<Subject> {
        let programs = &self.options.programs;
        let is_here = |subject: &&Subject| match subject {
            Subject::Podwire | Subject::Floor => true,
            Subject::GoNew => programs.peers.is_some(),
            Subject::GoOld => programs.peers.is_some() && !self.options.quick,
        };
        wanted.iter().filter(is_here).copied().collect()
    }

    /// All subjects with plugins.
    pub fn with_plugins(&self) -> Vec<Subject> {
        self.subjects(&[Subject::Podwire, Subject::GoNew, Subject::GoOld])
    }

    /// A number that no other call has.
    pub fn fresh_number(&mut self) -> u32 {
        self.number += 1;
        self.number
    }

    /// A fresh container for a subject.
    pub fn container(&mut self, subject: Subject) -> Container {
        let id = format!("{}{}", subject.word(), self.fresh_number());
        let netns = self.world.netns(&id);
        Container { path: netns.path().display().to_string(), id, netns }
    }

    /// Takes a container that is done with. Its namespace stays until
    /// [`Bench::settle`]: the kernel takes one down in the background, and the next
    /// call, whoever's it is, would wait for its grace periods.
    pub fn retire(&mut self, container: Container) {
        self.retired.push(container.netns);
    }

    /// Removes the namespaces of containers that are done with, and waits until
    /// the kernel has taken them down.
    pub fn settle(&mut self) {
        let Some(last) = self.retired.last() else { return };
        // The kernel takes them down in turn; the near end of a pair that reaches
        // into the last one goes when it has come that far.
        let pair = ["type", "veth", "peer", "name", "settle", "netns", last.name()];
        self.world.exec(&[&["ip", "link", "add", "settle"][..], &pair[..]].concat());
        for netns in self.retired.drain(..) {
            netns.remove();
        }
        let until = Instant::now() + Duration::from_mins(1);
        while self.world.try_exec(&["ip", "link", "show", "settle"]).code == 0
            && Instant::now() < until
        {}
        // Removing a link waits for the grace periods of those before.
        self.world.exec(&["ip", "link", "add", "settle", "type", "veth"]);
        self.world.exec(&["ip", "link", "del", "settle"]);
    }

    /// Where a subject keeps files of a kind.
    ///
    /// # Errors
    /// The directory can't be made.
    pub fn directory(&self, state: State, subject: Subject, name: &str) -> Outcome<PathBuf> {
        let base = match state {
            State::Tmpfs => self.world.path("state"),
            State::Disk => self.options.disk.clone(),
        };
        let directory = base.join(subject.word()).join(name);
        let failed = |error| format!("{}: {error}", directory.display());
        std::fs::create_dir_all(&directory).map_err(failed)?;
        Ok(directory)
    }

    /// Notes a run, unless it was to warm up.
    pub fn note(&mut self, place: &Place, subject: Subject, pass: Pass, run: &Run) {
        if pass != Pass::Warm {
            self.report.add(place, subject, run);
        }
    }

    /// Runs a call and notes it; returns what it printed. Counting a Go plugin
    /// takes long, so that a quick run does without.
    ///
    /// # Errors
    /// It failed.
    pub fn measure(
        &mut self,
        place: &Place,
        subject: Subject,
        pass: Pass,
        call: &Call,
    ) -> Outcome<String> {
        let is_left_out = subject.is_go() && self.options.quick && pass == Pass::Counted;
        let pass = if is_left_out { Pass::Warm } else { pass };
        let failed = |error| format!("{}, {}: {error}", place.call, subject.name());
        let run = call.run(pass).map_err(failed)?;
        self.note(place, subject, pass, &run);
        Ok(run.stdout)
    }

    /// A call of the floor program.
    pub fn floor(&self, arguments: &[&str]) -> Call {
        Call::program(&self.options.programs.floor, arguments)
    }

    /// A call of a plugin of a subject that has some.
    ///
    /// # Errors
    /// It has none.
    pub fn plugin(
        &self,
        subject: Subject,
        verb: &str,
        target: Target<'_>,
        config: &Value,
    ) -> Outcome<Call> {
        let directory = self.options.programs.plugins(subject);
        let directory = directory.ok_or_else(|| format!("{} has no plugins", subject.name()))?;
        Ok(Call::plugin(&directory, verb, target, config))
    }

    /// host-local on a subnet of the subject's own, 10.(100+n).0.0/16.
    ///
    /// # Errors
    /// Its directory can't be made.
    pub fn ipam(&self, state: State, subject: Subject) -> Outcome<Value> {
        Ok(json!({
            "type": "host-local",
            "dataDir": self.directory(state, subject, "networks")?,
            "subnet": format!("10.{}.0.0/16", 100 + subject.number()),
            "routes": [{"dst": "0.0.0.0/0"}]
        }))
    }

    /// The bridge plugin on a bridge of the subject's own.
    ///
    /// # Errors
    /// As [`Bench::ipam`].
    pub fn bridge(&self, state: State, subject: Subject, masquerade: bool) -> Outcome<Value> {
        Ok(json!({
            "cniVersion": VERSION, "name": "bench", "type": "bridge",
            "bridge": bridge_name(subject), "isGateway": true, "ipMasq": masquerade,
            "ipam": self.ipam(state, subject)?
        }))
    }
}

/// The bridge of a subject.
pub fn bridge_name(subject: Subject) -> String {
    format!("br-{}", subject.word())
}

/// A container's namespace.
#[derive(Debug, Clone)]
pub struct Container {
    /// Its id.
    pub id: String,
    /// Its namespace.
    pub netns: Netns,
    /// The path of the namespace.
    pub path: String,
}

impl Container {
    /// Its `eth0`.
    pub fn target(&self) -> Target<'_> {
        self.interface("eth0")
    }

    /// Another interface of it.
    pub fn interface<'t>(&'t self, ifname: &'t str) -> Target<'t> {
        Target { container: &self.id, netns: &self.path, ifname }
    }
}
