//! `podwire gc` beside ADDs and DELs of other processes: each has its turn.
#![allow(clippy::unwrap_used, clippy::panic)]

mod cli_support;

use std::path::Path;
use std::process::Child;

use cli_support::{Terminal, finish};
use podwire_testkit::fake::{self, calls};
use podwire_tests::wait_until;

/// Containers that come and go all the time.
const BUSY: usize = 6;

/// Whether a process has a file open below the directory of the runtime's locks.
fn has_open(child: &Child, lock: &str) -> bool {
    let path = Path::new("podwire/runtime").join(lock);
    let Ok(files) = std::fs::read_dir(format!("/proc/{}/fd", child.id())) else { return false };
    let mut links = files.flatten().filter_map(|entry| std::fs::read_link(entry.path()).ok());
    links.any(|link| link.ends_with(&path))
}

/// A container that comes and goes all the time.
struct Busy<'a> {
    terminal: &'a Terminal,
    name: String,
    verb: &'static str,
    child: Child,
}

impl<'a> Busy<'a> {
    fn start(terminal: &'a Terminal, number: usize) -> Self {
        let name = format!("c{number}");
        terminal.world.netns(&name);
        let child = call(terminal, "add", &name);
        Self { terminal, name, verb: "add", child }
    }

    /// Calls again if the last call is over, and says whether it is.
    fn go_on(&mut self) -> bool {
        if self.child.try_wait().unwrap().is_none() {
            return false;
        }
        let next = if self.verb == "add" { "del" } else { "add" };
        let child = call(self.terminal, next, &self.name);
        let (code, _, stderr) = finish(std::mem::replace(&mut self.child, child));
        assert_eq!(code, Some(0), "{} {}: {stderr}", self.verb, self.name);
        self.verb = next;
        true
    }
}

fn call(terminal: &Terminal, verb: &str, name: &str) -> Child {
    terminal.start(&[verb, "n", &format!("/run/netns/{name}"), "--container-id", name])
}

/// B019: at any moment some ADD or DEL of the network runs, and GC has its turn.
#[test]
fn b019_gc_comes_in_between_adds_and_dels_without_end() {
    let terminal = Terminal::new();
    terminal.fakes("n", &[("busy", fake::record("busy").script("sleep 0.1"))]);
    let mut busy: Vec<_> = (0..BUSY).map(|number| Busy::start(&terminal, number)).collect();
    let mut all_go_on = || busy.iter_mut().filter_map(|one| one.go_on().then_some(())).count();
    for round in 0..3 {
        let mut done = 0;
        while done < BUSY {
            done += all_go_on();
            std::thread::yield_now();
        }
        let mut collecting = terminal.start(&["gc", "n", "--keep-live"]);
        while collecting.try_wait().unwrap().is_none() {
            all_go_on();
            std::thread::yield_now();
        }
        let (code, _, stderr) = finish(collecting);
        assert_eq!(code, Some(0), "round {round}: {stderr}");
    }
    for one in busy {
        assert_eq!(finish(one.child).0, Some(0), "{} {}", one.verb, one.name);
    }
    assert!(!Path::new("/run/podwire/runtime/turnstile/n").exists());
}

/// B019, B091: what a killed GC leaves keeps nobody out.
#[test]
fn b019_a_gc_that_is_killed_while_it_waits_holds_nobody_up() {
    let terminal = Terminal::new();
    let go = terminal.world.path("go");
    let wait = format!(
        "while [ $CNI_COMMAND$CNI_CONTAINERID = ADDslow ] && [ ! -e {} ]; do sleep 0.02; done",
        go.display()
    );
    terminal.fakes("n", &[("plugin", fake::record("plugin").script(&wait))]);
    for name in ["slow", "quick"] {
        terminal.world.netns(name);
    }
    let slow = terminal.start(&["add", "n", "/run/netns/slow", "--container-id", "slow"]);
    wait_until("the call of slow", || !calls(&terminal.fakes).is_empty());
    let collecting = terminal.start(&["gc", "n", "--keep-live"]);
    wait_until("gc in the turnstile", || has_open(&collecting, "turnstile/n"));
    let quick = terminal.start(&["add", "n", "/run/netns/quick", "--container-id", "quick"]);
    terminal.signal("KILL", &collecting);
    assert_eq!(finish(collecting).0, None, "killed");
    let (code, _, stderr) = finish(quick);
    assert_eq!(code, Some(0), "{stderr}");
    assert!(!go.exists(), "the other ADD runs all the while");
    std::fs::write(&go, "").unwrap();
    assert_eq!(finish(slow).0, Some(0));
    assert_eq!(terminal.states(), ["alive", "alive"]);
    terminal.run("gc n --all").success();
    assert!(terminal.states().is_empty());
    for left in ["network/n", "turnstile/n"] {
        assert!(!Path::new("/run/podwire/runtime").join(left).exists(), "{left}");
    }
}
