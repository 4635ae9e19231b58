//! Calls that run while the files change.

use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use podwire_testkit::Netns;
use podwire_tests::{Plugins, wait_until};
use serde_json::{Value, json};

use crate::lab::{BIN, Lab, command};

fn config() -> Value {
    json!({
        "cniVersion": "1.0.0", "name": "pods", "type": "bridge", "bridge": "br0", "ipMasq": true,
        "ipam": {"type": "host-local", "subnet": "10.1.0.0/24"},
    })
}

/// A call that waits for its input.
fn begin(verb: &str, netns: &Netns) -> Child {
    Command::new(Path::new(BIN).join("bridge"))
        .env("CNI_COMMAND", verb)
        .env("CNI_CONTAINERID", netns.name())
        .env("CNI_NETNS", netns.path())
        .env("CNI_IFNAME", "eth0")
        .env("CNI_PATH", BIN)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

#[track_caller]
fn finish(mut call: Child, config: &Value) -> Value {
    call.stdin.take().unwrap().write_all(config.to_string().as_bytes()).unwrap();
    let output = call.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap_or_default()
}

#[test]
fn a_call_that_runs_goes_on_with_the_file_that_it_began_with() {
    let lab = Lab::new(Plugins::Sid);
    let netns = lab.node.world.netns("c1");
    let call = begin("ADD", &netns);
    lab.migrate("").success();
    let mut asked = config();
    asked["prevResult"] = finish(call, &config());
    netns.exec(&["ip", "link", "show", "eth0"]);
    // Go's bridge ran, and it gave its address by ours already.
    let rules = lab.node.world.exec(&["nft", "list", "ruleset"]).stdout;
    assert!(rules.contains("CNI-") && !rules.contains("podwire"), "{rules}");
    finish(begin("DEL", &netns), &asked);
    let rules = lab.node.world.exec(&["nft", "list", "ruleset"]).stdout;
    assert!(!rules.contains("10.1.0."), "{rules}");
}

#[test]
fn an_add_of_ours_that_runs_during_a_roll_back_is_waited_for_and_deleted() {
    let lab = Lab::new(Plugins::Debian);
    lab.migrate("").success();
    let netns = lab.node.world.netns("c1");
    let call = begin("ADD", &netns);
    let back = command(&["--rollback", "--output", "json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    wait_until("the exchange", || Path::new(BIN).join("bridge").is_symlink());
    let mut asked = config();
    asked["prevResult"] = finish(call, &config());
    let back = back.wait_with_output().unwrap();
    assert_eq!(back.status.code(), Some(3), "{back:?}");
    let told: Value = serde_json::from_slice(&back.stdout).unwrap();
    assert_eq!(told["forwarding"], json!(["bridge"]));
    assert_eq!(told["running"], json!([]));
    assert!(lab.node.world.exec(&["nft", "list", "ruleset"]).stdout.contains("podwire_masquerade"));

    finish(begin("DEL", &netns), &asked);
    lab.migrate("--rollback").success();
    lab.assert_as_before();
    let rules = lab.node.world.exec(&["nft", "list", "ruleset"]).stdout;
    assert!(!rules.contains("10.1.0."), "{rules}");
}

#[test]
fn a_roll_back_says_what_it_waits_for_and_going_forward_again_ends_it() {
    let lab = Lab::new(Plugins::Sid);
    lab.migrate("").success();
    let netns = lab.node.world.netns("c1");
    let mut asked = config();
    asked["prevResult"] = finish(begin("ADD", &netns), &config());
    assert_eq!(lab.migrate("--rollback").code, 3);
    let version = Command::new(Path::new(BIN).join("bridge")).output().unwrap();
    let about = String::from_utf8(version.stderr).unwrap();
    assert!(about.starts_with("CNI bridge plugin") && !about.contains("Podwire"), "{about}");

    lab.migrate("").success();
    assert!(!Path::new(BIN).join(".podwire/forward").exists());
    let version = Command::new(Path::new(BIN).join("bridge")).output().unwrap();
    assert!(String::from_utf8(version.stderr).unwrap().contains("Podwire"));
    let already = lab.migrate("").success().stdout;
    assert!(already.contains("already"), "{already}");
    finish(begin("CHECK", &netns), &asked);
    finish(begin("DEL", &netns), &asked);
    lab.migrate("--rollback").success();
    lab.assert_as_before();
}
