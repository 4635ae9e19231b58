//! A real firewalld on a D-Bus of its own.

use std::fs::File;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::lab::{Lab, outside, reaches};

const BUS: &str = r#"<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <type>system</type>
  <listen>unix:path=/run/dbus/system_bus_socket</listen>
  <auth>EXTERNAL</auth>
  <policy context="default">
    <allow user="*"/><allow own="*"/><allow send_type="method_call"/>
    <allow send_destination="*"/><allow receive_sender="*"/>
  </policy>
</busconfig>"#;

/// Ends a program with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

struct Host {
    lab: Lab,
    firewalld: Option<Running>,
    _bus: Running,
}

impl Host {
    fn new() -> Self {
        let lab = Lab::new();
        std::fs::create_dir_all("/run/dbus").unwrap();
        let config = lab.world.write("bus.conf", BUS);
        let argument = format!("--config-file={}", config.display());
        let bus = start(&lab, "/usr/bin/dbus-daemon", &[&argument, "--nofork", "--nopidfile"]);
        let mut host = Self { lab, firewalld: None, _bus: bus };
        host.wait("the bus", |_| Path::new("/run/dbus/system_bus_socket").exists());
        host.start_firewalld();
        host
    }

    fn start_firewalld(&mut self) {
        let arguments = ["--nofork", "--nopid", "--log-target=console"];
        self.firewalld = Some(start(&self.lab, "/usr/sbin/firewalld", &arguments));
        self.wait("firewalld", |host| {
            host.lab.world.try_exec(&["firewall-cmd", "--state"]).code == 0
        });
    }

    #[track_caller]
    fn wait(&self, what: &str, is_so: impl Fn(&Self) -> bool) {
        let until = Instant::now() + Duration::from_mins(1);
        while !is_so(self) {
            assert!(Instant::now() < until, "{what} did not come");
            std::thread::yield_now();
        }
    }

    fn sources(&self, zone: &str) -> Vec<String> {
        let zone = format!("--zone={zone}");
        let output = self.lab.world.exec(&["firewall-cmd", &zone, "--list-sources"]);
        let mut sources: Vec<_> = output.stdout.split_whitespace().map(str::to_owned).collect();
        sources.sort();
        sources
    }
}

fn start(lab: &Lab, program: &str, arguments: &[&str]) -> Running {
    let log = File::create(lab.world.path(&program.replace('/', "-"))).unwrap();
    let child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(log.try_clone().unwrap())
        .stderr(log)
        .spawn()
        .unwrap_or_else(|error| panic!("{program}: {error}; run: cargo xtask setup"));
    Running(child)
}

#[test]
fn firewalld_is_told_whom_to_trust_and_asked_whether_it_does() {
    let mut host = Host::new();
    host.lab.bridge(1);
    let (one, other) = (host.lab.container("c1", 1, 11), host.lab.container("c2", 1, 12));
    assert!(!reaches(&one.netns, outside()), "firewalld rejects");
    // Chosen, since it is there.
    let auto = json!({"backend": ""});
    host.lab.add(&one, &auto);
    host.lab.add(&one, &auto);
    assert!(reaches(&one.netns, outside()));
    assert_eq!(host.sources("trusted"), ["10.1.0.11/32", "fd00:1::11/128"]);
    assert!(host.lab.rules().iter().all(|rules| !rules.contains("CNI-FORWARD")));
    host.lab.firewall("CHECK", &one, &auto).run().success();
    let zone = json!({"backend": "firewalld", "firewalldZone": "internal"});
    host.lab.add(&other, &zone);
    assert_eq!(host.sources("internal"), ["10.1.0.12/32", "fd00:1::12/128"]);
    host.lab.firewall("CHECK", &other, &zone).run().success();
    // Its no is a no.
    host.lab.world.exec(&["firewall-cmd", "--reload"]);
    for (container, keys) in [(&one, &auto), (&other, &zone)] {
        let error = host.lab.firewall("CHECK", container, keys).run().error(100).to_string();
        assert!(error.contains("zone"), "{error}");
        host.lab.add(container, keys);
        host.lab.firewall("CHECK", container, keys).run().success();
    }
    // Found without prevResult and without the zone's name.
    host.lab.del_blind(&other, &json!({"backend": "firewalld"}));
    assert!(host.sources("internal").is_empty());
    // By the next owner's side (B020).
    host.lab.world.exec(&["ip", "link", "del", "v-c1"]);
    let next = host.lab.container("next", 1, 11);
    host.lab.add(&next, &auto);
    host.lab.firewall("DEL", &one, &auto).run().success();
    assert_eq!(host.sources("trusted").len(), 2);
    host.lab.gc(&auto, &[&next]);
    assert_eq!(host.sources("trusted").len(), 2);
    host.lab.gc(&auto, &[]);
    assert!(host.sources("trusted").is_empty());
    let error = host.lab.firewall(
        "ADD",
        &next,
        &json!({
            "backend": "firewalld", "firewalldZone": "nowhere"
        }),
    );
    let error = error.run().error(999).to_string();
    assert!(error.contains("nowhere") && error.contains("INVALID_ZONE"), "{error}");
    // Gone with firewalld: DEL has nothing to do, ADD takes the other way.
    host.lab.add(&next, &auto);
    host.firewalld = None;
    host.lab.firewall("CHECK", &next, &auto).run().error(100);
    host.lab.del_blind(&next, &auto);
    host.lab.add(&next, &auto);
    assert!(host.lab.rules()[0].contains("CNI-FORWARD"));
    // Started since, it has flushed the host's chains; DEL copes.
    host.start_firewalld();
    host.lab.firewall("CHECK", &next, &auto).run().error(100);
    host.lab.firewall("DEL", &next, &auto).run().success();
    assert!(!host.lab.rules()[0].contains("CNI-FORWARD"));
}
