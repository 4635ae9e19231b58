//! Delegation: in-process, to Go's plugins, to strangers'.

use podwire_testkit::{GoPlugins, fake};
use serde_json::{Value, json};

use crate::lab::{Lab, addresses, is_bookkeeping, pods, with, with_prev};

fn delegating(to: &str) -> Value {
    with(&pods(), &json!({"ipam": {"type": to}}))
}

/// No child process: strace sees every program that is started.
#[test]
fn our_own_ipam_runs_in_process() {
    let lab = Lab::new();
    let netns = lab.world.netns("c1");
    let log = lab.world.path("trace");
    let directory = lab.world.plugin_directory();
    let mut config = with(&pods(), &json!({"ipMasq": true, "macspoofchk": true}));
    for verb in ["ADD", "CHECK", "DEL", "STATUS"] {
        let bridge = directory.join("bridge");
        let tracing = lab.world.write(
            "strace.sh",
            format!(
                "#!/bin/sh\nexec strace -f -qq -e trace=process,network -o {} {}\n",
                log.display(),
                bridge.display()
            ),
        );
        lab.world.exec(&["chmod", "+x", tracing.to_str().unwrap()]);
        let plugin = podwire_testkit::Plugin::at(&tracing).search_in(&[directory]).command(verb);
        let output = plugin.container("c1").netns(&netns).ifname("eth0").config(&config).run();
        let output = output.success();
        if verb == "ADD" {
            config = with_prev(&config, &output.json());
            assert_eq!(Lab::reservations("n"), ["10.1.0.2"]);
        }
        let trace = std::fs::read_to_string(&log).unwrap();
        assert!(trace.contains("socket("), "{verb}: strace saw nothing:\n{trace}");
        let started: Vec<_> =
            trace.lines().filter(|line| line.contains("exec") || line.contains("fork")).collect();
        assert_eq!(started.len(), 1, "{verb}: only the plugin itself: {started:?}");
        assert!(!trace.contains("clone(") && !trace.contains("clone3("), "{verb}: {trace}");
    }
}

/// A copy of the program is another file with the same build: still us.
#[test]
fn a_copy_of_the_program_is_our_own_too() {
    let lab = Lab::new();
    let netns = lab.world.netns("c1");
    let directory = lab.world.path("copies");
    std::fs::create_dir(&directory).unwrap();
    for name in ["bridge", "host-local"] {
        let from = lab.world.plugin_directory().join(name);
        std::fs::copy(from, directory.join(name)).unwrap();
    }
    let call = lab.call("ADD", &netns, &pods()).search_in(&[&directory]);
    call.run().success();
    assert_eq!(addresses(&netns, "eth0"), ["10.1.0.2/24"]);
}

#[test]
fn gos_host_local_serves_as_well() {
    for go in [GoPlugins::debian(), GoPlugins::sid()] {
        let lab = Lab::new();
        let netns = lab.world.netns("c1");
        let config = with(&pods(), &json!({"cniVersion": "1.0.0"}));
        let call = |verb: &str, config: &Value| {
            lab.call(verb, &netns, config).search_in(&[go.directory()]).run()
        };
        let result = call("ADD", &config).success().json();
        assert_eq!(addresses(&netns, "eth0"), ["10.1.0.2/24"]);
        let sent = with_prev(&config, &result);
        call("CHECK", &sent).success();
        call("DEL", &sent).success();
        assert!(Lab::reservations("n").is_empty());
    }
}

/// A foreign program gets the very request and the caller's environment, and
/// finds the interface there: one for DHCP speaks through it.
#[test]
fn a_foreign_ipam_plugin_sees_everything_and_the_interface() {
    let lab = Lab::new();
    let netns = lab.world.netns("c1");
    let directory = lab.world.path("bin");
    let result = json!({"cniVersion": "%s", "ips": [{"address": "10.6.0.9/24", "gateway": "10.6.0.1"}],
        "dns": {"nameservers": ["10.6.0.53"]}});
    let look = "if [ $CNI_COMMAND = ADD ]; then
        nsenter --net=$CNI_NETNS ip link show $CNI_IFNAME > /run/world/seen || exit 1
        ip link show master br0 >> /run/world/seen || exit 1; fi";
    fake::record("their-ipam").result(result).script(look).write(&directory);
    let config = with(
        &delegating("their-ipam"),
        &json!({"unknown": {"number": 18_446_744_073_709_551_615_u64}}),
    );
    let call = |verb: &str, config: &Value| {
        lab.call(verb, &netns, config).search_in(&[&directory]).args("IgnoreUnknown=1;X=y").run()
    };
    let result = call("ADD", &config).success().json();
    let seen = std::fs::read_to_string("/run/world/seen").unwrap();
    assert!(seen.contains("eth0") && seen.contains("veth"), "{seen}");
    assert_eq!(addresses(&netns, "eth0"), ["10.6.0.9/24"]);
    assert_eq!(result["dns"]["nameservers"][0], "10.6.0.53");
    let sent = with_prev(&config, &result);
    call("CHECK", &sent).success();
    call("STATUS", &config).success();
    call("GC", &with(&config, &json!({"cni.dev/valid-attachments": []}))).success();
    call("DEL", &sent).success();
    let calls = fake::calls(&directory);
    let verbs: Vec<_> = calls.iter().map(|call| call.command.as_str()).collect();
    assert_eq!(verbs, ["ADD", "CHECK", "STATUS", "GC", "DEL"]);
    assert_eq!(calls[0].request(), config);
    assert_eq!(
        (calls[0].args.as_str(), calls[0].container_id.as_str()),
        ("IgnoreUnknown=1;X=y", "c1")
    );
}

/// B077: failures of IPAM leave nothing, and the next ADD works.
#[test]
fn b077_a_failing_ipam_leaves_nothing() {
    let lab = Lab::new();
    let netns = lab.world.netns("c1");
    let directory = lab.world.path("bin");
    fake::fail_add("refuses").write(&directory);
    fake::record("empty").result(json!({"cniVersion": "%s", "ips": []})).write(&directory);
    fake::record("garbage").result("not JSON").write(&directory);
    fake::record("crashes").script("kill -9 $$").write(&directory);
    let own = with(&json!({"address": "10.1.0.1/24"}), &json!({"gateway": "10.1.0.1"}));
    fake::record("clashes").result(json!({"cniVersion": "%s", "ips": [own]})).write(&directory);
    let before = lab.world.snapshot();
    for (name, code, words) in [
        ("refuses", 100, "told to fail"),
        ("empty", 999, "missing IP config"),
        ("garbage", 6, "garbage"),
        ("crashes", 999, "crashes"),
        ("missing", 999, "failed to find plugin \"missing\""),
        ("clashes", 7, "its gateway's too"),
    ] {
        let call = lab.call("ADD", &netns, &delegating(name)).search_in(&[&directory]);
        let error = call.run().error(code);
        let text = error.to_string();
        assert!(text.contains(words.replace('"', "\\\"").as_str()), "{name}: {text}");
        lab.world.snapshot().since(&before).without(is_bookkeeping).assert_empty();
        assert_eq!(netns.ip_json(&["link"]).as_array().unwrap().len(), 1);
    }
    let undone = fake::calls(&directory);
    let dels: Vec<_> =
        undone.iter().filter(|call| call.command == "DEL").map(|call| &*call.plugin).collect();
    assert_eq!(dels, ["empty", "garbage", "clashes"], "addresses that were given go back");
    lab.add(&netns, &pods());
}

/// B077: a wrong requested address, then a right one.
#[test]
fn b077_an_address_outside_the_range_leaves_nothing() {
    let lab = Lab::new();
    let netns = lab.world.netns("c1");
    let before = lab.world.snapshot();
    lab.call("ADD", &netns, &pods()).args("IgnoreUnknown=1;IP=10.99.0.1").run().failure();
    assert!(lab.links().is_empty());
    lab.world.snapshot().since(&before).without(is_bookkeeping).assert_empty();
    let result =
        lab.call("ADD", &netns, &pods()).args("IgnoreUnknown=1;IP=10.1.0.9").run().success().json();
    assert_eq!(result["ips"][0]["address"], "10.1.0.9/24");
}

/// B101: while the interface can't be removed its address stays reserved.
#[test]
fn b101_the_link_goes_before_the_address() {
    let lab = Lab::new();
    let netns = lab.world.netns("c1");
    let directory = lab.world.path("bin");
    let result =
        json!({"cniVersion": "%s", "ips": [{"address": "10.6.0.9/24", "gateway": "10.6.0.1"}]});
    let look = "if [ $CNI_COMMAND = DEL ]; then
        ip -o link show master br0 > /run/world/ports; fi";
    fake::record("their-ipam").result(result).script(look).write(&directory);
    let config = delegating("their-ipam");
    lab.call("ADD", &netns, &config).search_in(&[&directory]).run().success();
    lab.call("DEL", &netns, &config).search_in(&[&directory]).run().success();
    assert_eq!(std::fs::read_to_string("/run/world/ports").unwrap(), "", "no port was left");
}

/// B101: its DEL failed, so it is asked again; the link is gone meanwhile.
#[test]
fn b101_a_failing_ipam_del_is_retried() {
    let lab = Lab::new();
    let netns = lab.world.netns("c1");
    let directory = lab.world.path("bin");
    let result =
        json!({"cniVersion": "%s", "ips": [{"address": "10.6.0.9/24", "gateway": "10.6.0.1"}]});
    fake::fail_del_once("their-ipam").result(result).write(&directory);
    let config = delegating("their-ipam");
    lab.call("ADD", &netns, &config).search_in(&[&directory]).run().success();
    let del = || lab.call("DEL", &netns, &config).search_in(&[&directory]).run();
    del().error(100);
    assert_eq!(lab.links(), ["br0"]);
    del().success();
}
