//! `podwire run`: a command with networks of its own, and nothing left of them.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod cli_support;

use std::path::Path;

use cli_support::{Terminal, finish};
use podwire_testkit::fake::{self, calls};
use podwire_testkit::{HostState, Output};
use podwire_tests::wait_until;
use serde_json::json;

/// Panics if anything is left but the bridges.
fn assert_nothing_left(terminal: &Terminal, before: &HostState) {
    terminal.world.snapshot().since(before).beyond_residue(&["br0", "br1"]).assert_empty();
    for directory in ["/run/netns", "/run/podwire/run"] {
        assert_eq!(std::fs::read_dir(directory).unwrap().count(), 0, "{directory}");
    }
    assert!(terminal.states().is_empty());
}

fn shell(terminal: &Terminal, networks: &[&str], script: &str) -> Output {
    terminal.run_with(&[], &[&["run"], networks, &["--", "sh", "-c", script]].concat())
}

/// A terminal with the networks `pods` and `more`.
fn two_networks() -> Terminal {
    let terminal = Terminal::new();
    terminal.pods();
    terminal.network(&json!({"cniVersion": "1.1.0", "name": "more", "plugins": [
        {"type": "bridge", "bridge": "br1", "ipam": {"type": "host-local", "subnet": "10.2.0.0/24"}},
    ]}));
    terminal
}

#[test]
fn a_command_has_its_networks_and_leaves_none() {
    let terminal = two_networks();
    let before = terminal.world.snapshot();
    let script = "ip -4 -br addr; ls /sys/class/net; cat /etc/resolv.conf; \
                  ping -c1 -W5 10.1.0.1 >/dev/null && ping -c1 -W5 127.0.0.1 >/dev/null; exit 7";
    let output = shell(&terminal, &["pods", "more"], script);
    assert_eq!((output.code, output.stderr.as_str()), (7, ""), "{output:#?}");
    let words: Vec<_> = output.stdout.split_whitespace().collect();
    for word in ["10.1.0.2/24", "10.2.0.2/24", "127.0.0.1/8", "eth0", "eth1"] {
        assert!(words.contains(&word), "{word}: {output:#?}");
    }
    assert!(!words.contains(&"br0"), "the host's /sys: {output:#?}");
    assert!(output.stdout.ends_with("nameserver 10.1.0.1\nsearch pods.example\n"), "{output:#?}");
    assert_nothing_left(&terminal, &before);
    assert_eq!(std::fs::read_dir("/run/podwire/runtime/container").unwrap().count(), 0);
}

#[test]
fn the_exit_code_tells_who_failed() {
    let terminal = two_networks();
    terminal.fakes("bad", &[("bad", fake::fail_add("bad"))]);
    terminal.fakes("sticky", &[("sticky", fake::fail_del_once("sticky"))]);
    let before = terminal.world.snapshot();
    for (line, code, text) in [
        ("run pods -- true", 0, ""),
        ("run pods -- false", 1, ""),
        ("run pods -- no-such-command", 127, "executing no-such-command"),
        ("run pods -- /etc/hostname", 126, "executing /etc/hostname"),
        ("run nowhere -- true", 125, "no network configuration with name"),
        ("run pods bad -- true", 125, "told to fail"),
        ("run pods", 2, "COMMAND"),
        ("run pods --container-id a/b -- true", 2, "containerID"),
    ] {
        let output = terminal.run(line);
        assert_eq!(output.code, code, "{output:#?}");
        assert!(output.stderr.contains(text), "{output:#?}");
    }
    assert_eq!(shell(&terminal, &["pods"], "kill -9 $$").code, 137);
    assert_nothing_left(&terminal, &before);
    // What can't be removed is told, and goes with the next run.
    let output = terminal.run("run sticky pods -- true");
    assert!(output.code == 125 && output.stderr.contains("told to fail once"), "{output:#?}");
    assert_eq!(terminal.states().len(), 1);
    terminal.run("run pods -- true").success();
    assert_nothing_left(&terminal, &before);
}

/// Starts a command that tells in a file that it runs, and waits for that.
fn start(terminal: &Terminal, script: &str) -> (std::process::Child, i32) {
    let mark = terminal.world.path("runs");
    let _ = std::fs::remove_file(&mark);
    let script = format!(
        "{script}; echo $$ > {0}.new; mv {0}.new {0}; while :; do sleep 0.05; done",
        mark.display()
    );
    let child = terminal.start(&["run", "pods", "--", "sh", "-c", &script]);
    wait_until("the start of the command", || mark.exists());
    let pid = std::fs::read_to_string(&mark).unwrap().trim().parse().unwrap();
    (child, pid)
}

#[test]
fn signals_go_to_the_command_and_all_is_removed() {
    let terminal = two_networks();
    let before = terminal.world.snapshot();
    for (signal, trap, code) in [
        ("TERM", ":", 143),
        ("INT", "trap 'exit 5' INT", 5),
        ("HUP", "trap 'exit 6' HUP", 6),
        ("USR1", "trap 'exit 8' USR1", 8),
    ] {
        let (child, _) = start(&terminal, trap);
        assert_eq!(terminal.states(), ["alive"]);
        terminal.signal(signal, &child);
        let (exit, _, stderr) = finish(child);
        assert_eq!(exit, Some(code), "{signal}: {stderr}");
        assert_nothing_left(&terminal, &before);
    }
}

#[test]
fn a_signal_before_the_start_undoes_what_was_made() {
    let terminal = two_networks();
    let slow = fake::record("slow").script("[ $CNI_COMMAND = ADD ] && exec sleep 100");
    terminal.fakes("slow", &[("slow", slow)]);
    let before = terminal.world.snapshot();
    let mark = terminal.world.path("ran");
    let child = terminal.start(&["run", "pods", "slow", "--", "touch", mark.to_str().unwrap()]);
    wait_until("the call of slow", || !calls(&terminal.fakes).is_empty());
    terminal.signal("TERM", &child);
    let (exit, _, stderr) = finish(child);
    assert_eq!(exit, Some(143), "{stderr}");
    assert!(!mark.exists());
    assert_nothing_left(&terminal, &before);
}

/// Whether a process is there and no zombie.
fn runs(pid: i32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|text| !text.rsplit(')').next().unwrap().trim_start().starts_with('Z'))
}

#[test]
fn what_a_killed_run_left_goes_with_the_next_one_but_not_before_its_command() {
    let terminal = two_networks();
    let before = terminal.world.snapshot();
    let (child, command) = start(&terminal, ":");
    terminal.signal("KILL", &child);
    finish_killed(child);
    terminal.run("run more -- true").success();
    assert_eq!(terminal.states(), ["alive"], "its command still runs");
    terminal.world.exec(&["kill", "-KILL", &command.to_string()]);
    wait_until("the end of the command", || !runs(command));
    // Its last `sleep` holds the run's lock for a moment longer.
    wait_until("the sweep", || {
        terminal.run("run more -- true").success();
        terminal.states().is_empty()
    });
    assert_nothing_left(&terminal, &before);
}

/// Waits for a process whose output another one still holds open.
fn finish_killed(mut child: std::process::Child) {
    drop((child.stdout.take(), child.stderr.take()));
    child.wait().unwrap();
}

#[test]
fn arguments_are_for_the_first_network_and_the_id_may_be_chosen() {
    let terminal = Terminal::new();
    let plugin = |name: &str| (fake::record(name).write(&terminal.fakes), json!({"type": name})).1;
    for name in ["one", "two"] {
        let config = json!({"cniVersion": "1.1.0", "name": name, "plugins": [plugin(name)]});
        terminal.network(&config);
    }
    let line = "run one two --container-id web --args A=b -- ip netns identify";
    let output = terminal.run(line).success();
    assert_eq!(output.stdout, "podwire-web\n");
    let seen: Vec<_> = calls(&terminal.fakes)
        .iter()
        .map(|call| format!("{} {} {} {}", call.command, call.plugin, call.ifname, call.args))
        .collect();
    assert_eq!(seen, ["ADD one eth0 A=b", "ADD two eth1 ", "DEL two eth1 ", "DEL one eth0 A=b"]);
    assert!(!Path::new("/run/netns/podwire-web").exists());
}
