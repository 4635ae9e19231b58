//! How fast it really is, with iperf3.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use serde_json::json;

use crate::lab::Lab;

/// A server for one measurement; killed when dropped.
struct Server(Child);

impl Server {
    #[track_caller]
    fn start(lab: &Lab) -> Self {
        let mut command = Command::new("iperf3");
        command.args(["-s", "-1", "--forceflush"]).stdout(Stdio::piped());
        let mut child = lab.container.run(|| command.spawn()).expect("apt-get install iperf3");
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap().contains("listening")));
        Self(child)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Mbit/s that arrive, the first second left out.
#[track_caller]
fn measured(lab: &Lab, address: &str, to_container: bool) -> f64 {
    let _server = Server::start(lab);
    let mut client = vec!["iperf3", "-c", address, "-t", "2", "-O", "1", "-J"];
    if !to_container {
        client.push("-R");
    }
    let report = lab.world.exec(&client).json();
    report["end"]["sum_received"]["bits_per_second"].as_f64().unwrap() / 1e6
}

#[track_caller]
fn assert_near(found: f64, wanted: f64) {
    assert!((found - wanted).abs() <= wanted / 10.0, "{found} Mbit/s instead of {wanted}");
}

#[test]
fn rates_hold_within_a_tenth_both_ways() {
    let lab = Lab::new();
    lab.add(&json!({
        "ingressRate": 20_000_000, "ingressBurst": 800_000,
        "egressRate": 40_000_000, "egressBurst": 800_000,
    }));
    assert_near(measured(&lab, "10.1.1.2", true), 20.0);
    assert_near(measured(&lab, "10.1.1.2", false), 40.0);
}

/// #921: the other side's address counts, both ways.
#[test]
fn subnets_are_let_off_or_singled_out() {
    let lab = Lab::new();
    let limits = |key: &str| {
        json!({
            "ingressRate": 20_000_000, "ingressBurst": 800_000,
            "egressRate": 40_000_000, "egressBurst": 800_000,
            key: ["10.1.0.0/16"],
        })
    };
    // IPv6 is in no subnet of the list.
    lab.add(&limits("unshapedSubnets"));
    assert_near(measured(&lab, "fd00:1::2", true), 20.0);
    assert!(measured(&lab, "10.1.1.2", false) > 100.0);
    lab.add(&limits("shapedSubnets"));
    assert_near(measured(&lab, "10.1.1.2", false), 40.0);
    assert!(measured(&lab, "fd00:1::2", true) > 100.0);
}
