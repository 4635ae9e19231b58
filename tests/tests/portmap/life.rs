//! The operations in all states that the kernel may be in.

use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;

use crate::lab::{HOST, Lab, tcp, tcp_refused, tcp_seen};

#[test]
fn the_result_is_prev_result() {
    let lab = Lab::new();
    let c1 = lab.container("c1", 11);
    let result = lab.add(&c1, &tcp(8080, 80)).success().json();
    assert_eq!(result["cniVersion"], "1.0.0");
    assert_eq!(result["interfaces"][2]["name"], "eth0");
    assert_eq!(result["ips"][0]["address"], "10.1.0.11/24");
    assert_eq!(result["ips"][1]["interface"], 2);
}

/// Not even a table is looked at for long: with no program in reach and none
/// of our tables there, nothing is made by any operation.
#[test]
fn b106_without_mappings_nothing_is_touched() {
    let lab = Lab::new();
    let c1 = lab.container("c1", 11);
    let before = lab.world.snapshot();
    for mappings in [json!([]), json!(null)] {
        lab.add(&c1, &mappings).success();
        lab.check(&c1, &mappings).success();
        lab.del(&c1).success();
    }
    let absent = json!({});
    for verb in ["ADD", "CHECK", "DEL"] {
        let call = lab.portmap(verb, &c1, &absent).env("PATH", "/nowhere");
        call.run().success();
    }
    lab.world.snapshot().since(&before).assert_empty();
    assert_eq!(lab.ruleset(), "");
}

#[test]
fn b106_no_tool_is_needed() {
    let lab = Lab::new();
    let c1 = lab.container("c1", 11);
    let _servers = c1.tcp(80);
    let config = json!({"runtimeConfig": {"portMappings": tcp(8080, 80)}});
    let call = |verb: &str| lab.portmap(verb, &c1, &config).env("PATH", "/nowhere").run();
    call("ADD").success();
    tcp_seen(&lab.outside, HOST[0], 8080);
    call("CHECK").success();
    call("DEL").success();
    tcp_refused(&lab.outside, HOST[0], 8080);
}

/// The lock that iptables takes is nothing to us.
#[test]
fn b080_the_lock_of_xtables_holds_nobody_up() {
    let lab = Lab::new();
    let c1 = lab.container("c1", 11);
    let lock = std::fs::File::create("/run/xtables.lock").unwrap();
    lock.lock().unwrap();
    lab.add(&c1, &tcp(8080, 80)).success();
    lab.check(&c1, &tcp(8080, 80)).success();
    lab.del(&c1).success();
}

/// It is one transaction: there is nothing half made to be taken back.
#[test]
fn b080_a_failed_add_leaves_nothing() {
    let lab = Lab::new();
    let c1 = lab.container("c1", 11);
    let config = json!({
        "externalSetMarkChain": "KUBE-MARK-MASQ",
        "runtimeConfig": {"portMappings": tcp(8080, 80)}
    });
    let error = lab.portmap("ADD", &c1, &config).run().error(7);
    assert!(error["msg"].as_str().unwrap().contains("KUBE-MARK-MASQ"), "{error}");
    assert_eq!(lab.ruleset(), "");
}

/// Somebody changes nftables all the time: what was looked at is looked at
/// again, and every call comes to its end.
#[test]
fn b080_others_who_keep_changing_nftables_only_cause_another_look() {
    let lab = Lab::new();
    let c1 = lab.container("c1", 11);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let busy = scope.spawn(|| {
            let mut changes = 0;
            while !stop.load(Ordering::Acquire) {
                let toggle = "add table ip busy; delete table ip busy";
                let done = Command::new("nft").arg(toggle).status().unwrap();
                assert!(done.success());
                changes += 1;
            }
            changes
        });
        for _ in 0..20 {
            lab.add(&c1, &tcp(8080, 80)).success();
            lab.add(&c1, &tcp(8080, 81)).success();
            lab.check(&c1, &tcp(8080, 81)).success();
            lab.del(&c1).success();
        }
        stop.store(true, Ordering::Release);
        assert!(busy.join().unwrap() > 20);
    });
    assert!(!lab.mentions("c1"), "{}", lab.ruleset());
}

#[test]
fn b076_after_a_flush_check_says_what_is_missing_and_del_succeeds() {
    let lab = Lab::new();
    let c1 = lab.container("c1", 11);
    let _servers = c1.tcp(80);
    for flush in [
        "flush ruleset",
        "delete table ip podwire_hostports",
        "flush chain ip podwire_hostports prerouting",
        "flush chain ip6 podwire_hostports hostports",
        "flush chain ip podwire_hostports postrouting",
        "flush chain ip podwire_hostports from_10.1.0.0/24",
        "flush map ip podwire_hostports ports",
        "flush map ip6 podwire_hostports hairpins",
        "flush map ip podwire_hostports owners",
    ] {
        lab.add(&c1, &tcp(8080, 80)).success();
        lab.check(&c1, &tcp(8080, 80)).success();
        lab.world.exec(&["nft", flush]);
        let error = lab.check(&c1, &tcp(8080, 80)).error(100);
        let named = flush.rsplit(' ').next().unwrap();
        if named != "ruleset" {
            assert!(error.to_string().contains(named), "{flush}: {error}");
        }
        // The next ADD mends what all share.
        lab.add(&c1, &tcp(8080, 80)).success();
        tcp_seen(&lab.outside, HOST[0], 8080);
        tcp_seen(lab.world.host(), "127.0.0.1", 8080);
        lab.check(&c1, &tcp(8080, 80)).success();
        lab.world.exec(&["nft", flush]);
        lab.del(&c1).success();
        lab.del(&c1).success();
        lab.world.exec(&["nft", "flush", "ruleset"]);
    }
}

#[test]
fn b122_check_compares_targets_and_the_switch() {
    let lab = Lab::new();
    let c1 = lab.container("c1", 11);
    lab.add(&c1, &tcp(8080, 80)).success();
    let error = lab.check(&c1, &tcp(8080, 81)).error(100);
    assert!(error.to_string().contains("tcp port 8080"), "{error}");
    let error = lab.check(&c1, &tcp(8081, 80)).error(100);
    assert!(error.to_string().contains("tcp port 8081"), "{error}");
    lab.world.exec(&["sysctl", "-qw", "net.ipv4.conf.cni0.route_localnet=0"]);
    let error = lab.check(&c1, &tcp(8080, 80)).error(100);
    assert!(error.to_string().contains("route_localnet"), "{error}");
}

#[test]
fn b122_check_before_add_fails() {
    let lab = Lab::new();
    let c1 = lab.container("c1", 11);
    let error = lab.check(&c1, &tcp(8080, 80)).error(100);
    assert!(error.to_string().contains("missing"), "{error}");
    assert_eq!(lab.ruleset(), "", "CHECK makes nothing");
}

#[test]
fn mistakes_change_nothing_and_never_keep_del_off() {
    let lab = Lab::new();
    let c1 = lab.container("c1", 11);
    lab.add(&c1, &tcp(8080, 80)).success();
    let before = lab.ruleset();
    for (mappings, named) in [
        (json!([{"hostPort": 0, "containerPort": 80}]), "hostPort"),
        (json!([{"hostPort": 80, "containerPort": 70000}]), "70000"),
        (json!([{"hostPort": 80, "containerPort": 80, "protocol": "icmp"}]), "icmp"),
        (json!([{"hostPort": 80, "containerPort": 80, "hostIP": "nowhere"}]), "nowhere"),
        (json!("8080:80"), "portMappings"),
    ] {
        let output = lab.add(&c1, &mappings);
        let error = output.clone().failure().json();
        assert!(error.to_string().contains(named), "{error}");
        assert!([6, 7].contains(&error["code"].as_u64().unwrap()), "{error}");
    }
    assert_eq!(lab.ruleset(), before);
    let broken = json!({"backend": 7, "runtimeConfig": {"portMappings": "8080:80"}});
    lab.portmap("DEL", &c1, &broken).run().success();
    assert!(!lab.mentions("8080"));
}

#[test]
fn status_is_ready_here_and_changes_nothing() {
    let lab = Lab::new();
    let config = json!({"cniVersion": "1.1.0", "name": "pods", "type": "portmap"});
    let status = || lab.world.plugin("portmap").command("STATUS").config(config.clone()).run();
    status().success();
    assert_eq!(lab.ruleset(), "");
    let c1 = lab.container("c1", 11);
    lab.add(&c1, &tcp(8080, 80)).success();
    let before = lab.ruleset();
    status().success();
    assert_eq!(lab.ruleset(), before);
}

/// Without the privilege the kernel refuses, and STATUS says so.
#[test]
fn status_is_50_where_the_kernel_refuses() {
    let lab = Lab::new();
    let program = lab.world.plugin_directory().join("portmap");
    let config = lab.world.write(
        "status.json",
        json!({"cniVersion": "1.1.0", "name": "pods", "type": "portmap"}).to_string(),
    );
    let script = format!("CNI_COMMAND=STATUS exec {} < {}", program.display(), config.display());
    let drop = ["setpriv", "--bounding-set", "-net_admin", "--inh-caps", "-net_admin"];
    let output = lab.world.try_exec(&[&drop[..], &["sh", "-c", &script]].concat());
    let error = output.error(50);
    assert!(error["msg"].as_str().unwrap().contains("permitted"), "{error}");
}
