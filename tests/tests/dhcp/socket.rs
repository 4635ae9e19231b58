//! The daemon's socket: who may use it, and whose it is.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::Command;

use podwire_testkit::{Background, Log};
use podwire_tests::dhcp::{Lab, Server, Settings, Side, Software, Wiring, address_in};
use podwire_tests::wait_until;

const SOCKET: &str = "/run/cni/dhcp.sock";

fn mode(path: &str) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

/// Runs `dhcp daemon` to its end, which must be a failure; returns what it wrote.
#[track_caller]
fn refused(lab: &Lab, options: &[&str]) -> String {
    let program = lab.program(Side::Ours);
    let command = [&[program.to_str().unwrap(), "daemon"], options].concat();
    lab.world.try_exec(&command).failure().stderr
}

#[test]
fn the_socket_is_for_root_alone_and_goes_with_the_daemon() {
    let lab = Lab::new(Wiring::Bridge);
    let mut daemon = lab.daemon(Side::Ours, &["-pidfile", "/run/dhcp.pid"]);
    assert_eq!(mode(SOCKET), 0o600);
    assert_eq!(mode("/run/cni"), 0o700);
    assert_eq!(std::fs::read_to_string("/run/dhcp.pid").unwrap(), daemon.id().to_string());
    assert_eq!(mode("/run/dhcp.pid"), 0o644);
    assert!(daemon.terminate().success(), "{}", daemon.log().text());
    assert!(!Path::new(SOCKET).exists());
    assert!(!Path::new("/run/dhcp.pid").exists());
}

#[test]
fn a_stale_socket_is_taken_over() {
    let lab = Lab::new(Wiring::Bridge);
    let mut daemon = lab.daemon(Side::Ours, &[]);
    daemon.kill();
    assert!(Path::new(SOCKET).exists());
    assert!(UnixStream::connect(SOCKET).is_err());
    daemon.resume();
    assert_eq!(mode(SOCKET), 0o600);
}

#[test]
fn the_socket_of_a_living_daemon_is_not() {
    let lab = Lab::new(Wiring::Bridge);
    let server = Server::start(&lab.server, Software::Dnsmasq, Settings::default());
    let daemon = lab.daemon(Side::Ours, &[]);
    let inode = std::fs::metadata(SOCKET).unwrap().ino();
    let said = refused(&lab, &[]);
    assert!(said.contains(SOCKET), "{said}");
    // Nor are its leases shared with a second one elsewhere.
    let said = refused(&lab, &["-socketpath", "/run/cni/second.sock"]);
    assert!(said.contains("/var/lib/cni/podwire/dhcp"), "{said}");
    assert_eq!(std::fs::metadata(SOCKET).unwrap().ino(), inode);
    let address = address_in(&lab.add(&lab.container("c1"), &lab.config()));
    server.acknowledged(0, address);
    drop(daemon);
}

#[test]
fn mistaken_flags_are_refused() {
    let lab = Lab::new(Wiring::Bridge);
    for (options, named) in [
        (&["-pidfile", "dhcp.pid"][..], "dhcp.pid"),
        (&["--timeout=soon"], "soon"),
        (&["-resendmax"], "resendmax"),
        (&["-frobnicate"], "frobnicate"),
        (&["more"], "more"),
    ] {
        let said = refused(&lab, options);
        assert!(said.contains(named), "{options:?}: {said}");
    }
}

#[test]
fn flags_with_two_dashes_are_the_same() {
    let lab = Lab::new(Wiring::Bridge);
    let _daemon = lab.daemon(Side::Ours, &["--pidfile=/run/dhcp.pid", "--timeout", "5s"]);
    wait_until("the file", || Path::new("/run/dhcp.pid").exists());
}

/// One daemon for each of two networks, each with leases of its own.
#[test]
fn two_daemons_have_a_socket_and_a_folder_each() {
    let lab = Lab::new(Wiring::Bridge);
    let server = Server::start(&lab.server, Software::Dnsmasq, Settings::default());
    let (socket, data) = ("/run/second/dhcp.sock", "/var/lib/cni/second");
    let _first = lab.daemon(Side::Ours, &[]);
    let mut second = lab.daemon(Side::Ours, &["-socketpath", socket, "-datadir", data]);
    let more = serde_json::json!({"daemonSocketPath": socket, "dataDir": data});
    let config = lab.config_with(&more);
    let container = lab.container("c1");
    let result = lab.add(&container, &config);
    let address = address_in(&result);
    lab.check(&container, &config, &result);
    assert_eq!(std::fs::read_dir(format!("{data}/leases")).unwrap().count(), 1);
    second.terminate();
    lab.del(&container, &config, &result);
    let mark = server.mark();
    second.resume();
    server.released(mark, address);
}

/// Where the host is mounted in the daemon's own view, as in a container.
#[test]
fn a_prefix_stands_before_socket_and_namespaces() {
    let lab = Lab::new(Wiring::Bridge);
    let server = Server::start(&lab.server, Software::Dnsmasq, Settings::default());
    std::fs::create_dir_all("/run/world/host/run").unwrap();
    lab.host("mount --rbind /run /run/world/host/run");
    let _daemon = lab.daemon(Side::Ours, &["-hostprefix", "/run/world/host"]);
    let address = address_in(&lab.add(&lab.container("c1"), &lab.config()));
    server.acknowledged(0, address);
}

/// As systemd passes it: descriptor 3, and two variables.
fn activated(lab: &Lab, listener: &UnixListener, count: u32, log: &Log) -> Background {
    let mut command = Command::new("/bin/sh");
    let script = format!(
        "export LISTEN_PID=$$ LISTEN_FDS={count} LISTEN_FDNAMES=cni-dhcp.socket\n\
         exec \"$0\" daemon 3<&0 4<&0 </dev/null"
    );
    command.args(["-c", &script]).arg(lab.program(Side::Ours));
    Background::spawn_with_input(command, listener.try_clone().unwrap().into(), log)
}

#[test]
fn a_socket_from_systemd_is_used_and_left_there() {
    let lab = Lab::new(Wiring::Bridge);
    let server = Server::start(&lab.server, Software::Dnsmasq, Settings::default());
    std::fs::create_dir("/run/cni").unwrap();
    let listener = UnixListener::bind(SOCKET).unwrap();
    let log = Log::default();
    // A call that comes before the daemon waits for it.
    let container = lab.container("c1");
    let call = lab.call("ADD", &container, &lab.config());
    let adding = std::thread::spawn(move || call.run());
    let mut daemon = activated(&lab, &listener, 1, &log);
    let result = adding.join().unwrap().success().json();
    let address = address_in(&result);
    server.acknowledged(0, address);
    assert!(daemon.terminate().success(), "{}", log.text());
    assert!(Path::new(SOCKET).exists(), "systemd's socket was removed");
    // And once more with the same socket.
    let _daemon = activated(&lab, &listener, 1, &log);
    let mark = server.mark();
    server.acknowledged(mark, address);
    lab.check(&container, &lab.config(), &result);
}

#[test]
fn more_than_one_socket_from_systemd_is_refused() {
    let lab = Lab::new(Wiring::Bridge);
    std::fs::create_dir("/run/cni").unwrap();
    let listener = UnixListener::bind(SOCKET).unwrap();
    let log = Log::default();
    let mut daemon = activated(&lab, &listener, 2, &log);
    assert!(!daemon.wait().success());
    assert!(log.text().contains("LISTEN_FDS") || log.text().contains("systemd"), "{}", log.text());
}
