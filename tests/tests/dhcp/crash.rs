//! Killed at counted system calls: the daemon in the middle of anything, and the
//! plugin in the middle of its call. What a runtime does next makes it good.

use std::os::unix::net::UnixStream;
use std::process::Command;

use podwire_testkit::Netns;
use podwire_testkit::kill::{Killed, run_and_kill};
use podwire_tests::dhcp::{
    Lab, Random, Server, Settings, Side, Software, Wiring, address_in, address_of,
};
use podwire_tests::wait_until;
use serde_json::Value;

const SOCKET: &str = "/run/cni/dhcp.sock";
const PIDFILE: &str = "/run/dhcp.pid";
/// The most system calls from one place to kill at to the next. With 1 all places
/// are tried.
const STRIDE: u64 = 37;

fn stride() -> u64 {
    std::env::var("PODWIRE_DHCP_STRIDE").map_or(STRIDE, |stride| stride.parse().unwrap())
}

/// ADD, CHECK and DEL, any of which may fail.
fn life(lab: &Lab, container: &Netns, config: &Value) {
    let added = lab.call("ADD", container, config).run();
    if added.code == 0 {
        let result = added.json();
        assert_eq!(address_of(container), address_in(&result));
        let previous = podwire_tests::lab::with_previous(config, &result);
        lab.call("CHECK", container, &previous).run();
        lab.call("DEL", container, &previous).run();
    }
}

#[test]
fn b085_a_daemon_killed_anywhere_leaves_nothing_behind() {
    let seed = Random::seed("PODWIRE_DHCP_SEED");
    let mut random = Random::new(seed);
    let lab = Lab::new(Wiring::Bridge);
    let server = Server::start(&lab.server, Software::Dnsmasq, Settings::default());
    let mut daemon = lab.daemon(Side::Ours, &[]);
    daemon.terminate();
    let config = lab.config();
    let (mut number, mut killed) = (0, 0);
    loop {
        number += 1 + random.below(stride());
        let container = lab.container(&format!("c{number}"));
        let mut command = Command::new(lab.program(Side::Ours));
        command.args(["daemon", "-pidfile", PIDFILE]);
        let tracing = std::thread::spawn(move || run_and_kill(command, b"", number));
        wait_until("the daemon, or its end", || {
            tracing.is_finished() || UnixStream::connect(SOCKET).is_ok()
        });
        life(&lab, &container, &config);
        if !tracing.is_finished()
            && let Ok(id) = std::fs::read_to_string(PIDFILE)
        {
            lab.world.try_exec(&["kill", "-TERM", &id]);
        }
        let end = tracing.join().unwrap();

        daemon.resume();
        lab.call("DEL", &container, &config).run().success();
        let context = || format!("seed {seed}, call {number}, {end:?}:\n{}", daemon.log().text());
        server.wait_for_leases(0);
        assert!(podwire_tests::segment::is_empty(&container), "{}", context());
        assert_eq!(kept(), Vec::<String>::new(), "{}", context());
        daemon.terminate();
        if let Killed::Finished { .. } = end {
            break;
        }
        killed += 1;
    }
    println!("PODWIRE_DHCP_SEED={seed}: killed at {killed} places up to call {number}");
    assert!(killed > 3, "{killed}");
}

#[test]
fn b085_a_plugin_killed_anywhere_leaves_nothing_behind() {
    let seed = Random::seed("PODWIRE_DHCP_SEED");
    let mut random = Random::new(seed);
    let lab = Lab::new(Wiring::Bridge);
    let server = Server::start(&lab.server, Software::Dnsmasq, Settings::default());
    let _daemon = lab.daemon(Side::Ours, &[]);
    let config = lab.config();
    for verb in ["ADD", "DEL"] {
        let (mut number, mut killed) = (0, 0);
        loop {
            number += 1 + random.below(stride());
            let container = lab.container(&format!("{verb}{number}"));
            if verb == "DEL" {
                lab.add(&container, &config);
            }
            let end = lab.call(verb, &container, &config).kill_at(number);
            lab.call("DEL", &container, &config).run().success();
            server.wait_for_leases(0);
            wait_until("the daemon's own records", || kept().is_empty());
            assert!(
                podwire_tests::segment::is_empty(&container),
                "seed {seed}, call {number} of {verb}, {end:?}"
            );
            if !end.is_killed() {
                break;
            }
            killed += 1;
        }
        println!("PODWIRE_DHCP_SEED={seed}: killed {verb} at {killed} places");
        assert!(killed > 3, "{verb}: {killed}");
    }
}

/// Names of the files with leases and with what is still to be given back.
fn kept() -> Vec<String> {
    let folders = ["leases", "wishes"].map(|name| format!("/var/lib/cni/podwire/dhcp/{name}"));
    let entries = folders.iter().filter_map(|folder| std::fs::read_dir(folder).ok()).flatten();
    entries.map(|entry| entry.unwrap().path().display().to_string()).collect()
}
