//! `podwire add`, `del`, `check`, `status` and `version`, in place of cnitool.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod cli_support;

use cli_support::{Terminal, finish};
use podwire_testkit::fake::{self, calls};
use podwire_tests::{Container, Node, Plugins, wait_until};
use serde_json::json;

#[test]
fn a_namespace_is_attached_checked_and_detached() {
    let terminal = Terminal::new();
    terminal.pods();
    let blue = terminal.world.netns("blue");
    let before = terminal.world.snapshot();
    let result = terminal.run("add pods /run/netns/blue").success();
    let result_json = result.json();
    assert_eq!(result_json["ips"][0]["address"], "10.1.0.2/24");
    assert!(result.stdout.starts_with("{\n    \"cniVersion\": \"1.1.0\",\n"), "{}", result.stdout);
    assert_eq!(result.stderr, "");
    let listed = terminal.run("list -o json").json();
    let recorded = listed["attachments"][0]["containerId"].as_str().unwrap().to_owned();
    assert!(recorded.starts_with("cnitool-") && recorded.len() == 28, "{recorded}");
    let line = format!("pods/{recorded}/eth0: sound\n");
    terminal.expect("check pods /run/netns/blue", 0, &line);
    terminal.expect("status pods", 0, "pods: ready\n");
    terminal.expect("status pods /run/netns/blue", 0, "pods: ready\n");

    blue.exec(&["ip", "addr", "del", "10.1.0.2/24", "dev", "eth0"]);
    let broken = terminal.run("check pods /run/netns/blue");
    assert_eq!((broken.code, broken.stdout.as_str()), (3, ""));
    assert!(
        broken.stderr.starts_with("error: ") && broken.stderr.contains("10.1.0.2"),
        "{}",
        broken.stderr
    );
    let error = terminal.run("check pods /run/netns/blue -o json");
    let error: serde_json::Value = serde_json::from_str(&error.stderr).unwrap();
    assert_eq!((&error["plugin"], &error["operation"]), (&json!("bridge"), &json!("CHECK")));

    terminal.expect("del pods /run/netns/blue", 0, "");
    terminal.expect("del pods /run/netns/blue", 0, "");
    terminal.world.snapshot().since(&before).beyond_residue(&["br0"]).assert_empty();
}

#[test]
fn the_variables_of_cnitool_and_the_flags_reach_the_plugins() {
    let terminal = Terminal::new();
    let elsewhere = terminal.world.path("net.d");
    std::fs::create_dir(&elsewhere).unwrap();
    fake::record("rec").write(&terminal.fakes);
    let config = json!({"cniVersion": "1.1.0", "name": "n", "plugins": [
        {"type": "rec", "capabilities": {"mac": true}},
    ]});
    std::fs::write(elsewhere.join("n.conflist"), config.to_string()).unwrap();
    terminal.world.netns("blue");
    let variables = [
        "NETCONFPATH=/run/world/net.d",
        "CNI_IFNAME=net7",
        "CNI_ARGS=IgnoreUnknown=1;K=a=b",
        "CAP_ARGS={\"mac\":\"02:00:5e:10:00:01\"}",
    ];
    terminal.run_with(&variables, &["add", "n", "/run/netns/blue"]).success();
    let flags = [
        "del",
        "n",
        "/run/netns/blue",
        "--conf-dir",
        "/run/world/net.d",
        "--ifname",
        "net7",
        "--as-given",
        "--args",
        "A=b",
        "--cap-args",
        "{\"mac\":\"02:00:5e:10:00:02\"}",
    ];
    terminal.run_with(&["CNI_IFNAME=other"], &flags).success();
    let [add, del] = calls(&terminal.fakes).try_into().unwrap();
    assert_eq!((add.ifname.as_str(), add.args.as_str()), ("net7", "IgnoreUnknown=1;K=a=b"));
    assert_eq!(add.request()["runtimeConfig"]["mac"], "02:00:5e:10:00:01");
    assert_eq!((del.ifname.as_str(), del.args.as_str()), ("net7", "A=b"));
    assert_eq!(del.request()["runtimeConfig"]["mac"], "02:00:5e:10:00:02");
    assert_eq!(del.container_id, add.container_id);
    assert_eq!(add.path, terminal.plugin_path());
}

#[test]
fn del_repeats_what_add_was_given() {
    let terminal = Terminal::new();
    terminal.fakes("n", &[("rec", fake::record("rec"))]);
    terminal.world.netns("blue");
    terminal.run("add n /run/netns/blue --args A=b").success();
    std::fs::remove_file("/etc/cni/net.d/n.conflist").unwrap();
    terminal.expect("del n /run/netns/blue", 0, "");
    let calls = calls(&terminal.fakes);
    assert_eq!((calls[1].command.as_str(), calls[1].args.as_str()), ("DEL", "A=b"));
    // Neither recorded nor configured: most likely a slip.
    let output = terminal.run("del n /run/netns/blue");
    assert_eq!(output.code, 1);
    assert!(output.stderr.contains("no network configuration with name \"n\""), "{output:#?}");
}

/// B086
#[test]
fn b086_every_spelling_of_a_namespace_is_one_container() {
    let terminal = Terminal::new();
    terminal.fakes("n", &[("rec", fake::record("rec"))]);
    terminal.world.netns("testing");
    for (add, del) in [
        ("/run/netns/testing", "/var/run/netns/testing"),
        ("/var/run/netns/testing", "/run/netns/../netns/testing"),
        ("/run/netns/./testing", "/run//netns/testing"),
    ] {
        terminal.run(&format!("add n {add}")).success();
        terminal.run(&format!("del n {del}")).success();
        assert!(terminal.states().is_empty(), "{add} {del}");
    }
    let calls = calls(&terminal.fakes);
    assert!(calls.iter().all(|call| call.container_id == "cnitool-43057b9dcc39fe733071"));
}

/// B086: cnitool hashes the path as it is written.
#[test]
fn b086_what_cnitool_attached_is_found_and_deleted() {
    let node = Node::new(Plugins::Ours);
    node.network(&json!({"cniVersion": "1.0.0", "name": "pods", "plugins": [
        {"type": "bridge", "bridge": "br0", "ipam": {"type": "host-local", "subnet": "10.1.0.0/24"}},
    ]}));
    let container =
        Container { id: "cnitool-77383ca0a0715733ca6f".to_owned(), ..node.container("testing") };
    node.libcni().on("add", "pods", &container).success();
    let program = std::env::current_exe().unwrap();
    let program = program.parent().unwrap().with_file_name("podwire");
    let run = |arguments: &[&str]| {
        let directory = node.plugin_directory();
        let start = [program.to_str().unwrap(), "--plugin-dir", directory.to_str().unwrap()];
        node.world.try_exec(&[&start, arguments].concat())
    };
    for netns in ["/run/netns/testing", "/var/run/netns/testing"] {
        let checked = run(&["check", "pods", netns]).success();
        assert_eq!(checked.stdout, "pods/cnitool-77383ca0a0715733ca6f/eth0: sound\n");
        let again = run(&["add", "pods", netns]);
        assert!(again.code == 1 && again.stderr.contains("attached already"), "{again:#?}");
    }
    run(&["del", "pods", "/run/netns/testing"]).success();
    assert_eq!(run(&["list", "-o", "json"]).json()["attachments"], json!([]));
}

/// B038
#[test]
fn b038_replace_deletes_what_lost_its_namespace_first() {
    let terminal = Terminal::new();
    terminal.pods();
    let blue = terminal.world.netns("blue");
    terminal.run("add pods /run/netns/blue --container-id c1").success();
    let alive = terminal.run("add pods /run/netns/blue --container-id c1 --replace");
    assert!(alive.code == 1 && alive.stderr.contains("attached already"), "{alive:#?}");
    blue.remove();
    terminal.world.netns("green");
    let without = terminal.run("add pods /run/netns/green --container-id c1");
    assert!(without.code == 1 && without.stderr.contains("delete it first"), "{without:#?}");
    let replaced = terminal.run("add pods /run/netns/green --container-id c1 --replace").success();
    assert!(replaced.stderr.contains("whose namespace is gone"), "{replaced:#?}");
    let reserved = std::fs::read_dir("/var/lib/cni/networks/pods").unwrap();
    let addresses = reserved
        .flatten()
        .filter(|entry| entry.file_name().to_str().unwrap().parse::<std::net::IpAddr>().is_ok());
    assert_eq!(addresses.count(), 1);
}

#[test]
fn del_takes_a_container_id_in_place_of_a_namespace() {
    let terminal = Terminal::new();
    terminal.pods();
    let blue = terminal.world.netns("blue");
    terminal.run("add pods /run/netns/blue --container-id c1 --ifname net1").success();
    blue.remove();
    let deleted = terminal.run("del pods --container-id c1 --ifname net1 -o json").success();
    assert_eq!(
        deleted.json(),
        json!({"network": "pods", "containerId": "c1", "ifName": "net1", "wasRecorded": true})
    );
}

#[test]
fn ctrl_c_undoes_a_running_add() {
    for (signal, code) in [("INT", 130), ("TERM", 143)] {
        let terminal = Terminal::new();
        let slow = fake::record("slow").script("[ $CNI_COMMAND = ADD ] && exec sleep 100");
        terminal.fakes("n", &[("first", fake::record("first")), ("slow", slow)]);
        terminal.world.netns("blue");
        let child = terminal.start(&["add", "n", "/run/netns/blue"]);
        let called = || calls(&terminal.fakes);
        wait_until("the call of slow", || called().iter().any(|call| call.plugin == "slow"));
        terminal.signal(signal, &child);
        let (exit, stdout, stderr) = finish(child);
        assert_eq!((exit, stdout.as_str()), (Some(code), ""), "{stderr}");
        assert!(stderr.contains("cancelled") && stderr.contains("removed again"), "{stderr}");
        let made: Vec<_> =
            called().iter().map(|call| format!("{} {}", call.command, call.plugin)).collect();
        assert_eq!(made, ["ADD first", "ADD slow", "DEL slow", "DEL first"]);
        assert!(terminal.states().is_empty());
    }
}

#[test]
fn a_second_ctrl_c_ends_the_undoing_and_the_record_stays() {
    let terminal = Terminal::new();
    let stuck = fake::record("stuck").script("exec sleep 100");
    terminal.fakes("n", &[("first", fake::record("first")), ("stuck", stuck)]);
    terminal.world.netns("blue");
    let child = terminal.start(&["add", "n", "/run/netns/blue", "--container-id", "c1"]);
    for (what, verb) in [("the call of stuck", "ADD"), ("its undoing", "DEL")] {
        let is_it = |call: &fake::Call| call.plugin == "stuck" && call.command == verb;
        wait_until(what, || calls(&terminal.fakes).iter().any(is_it));
        terminal.signal("INT", &child);
    }
    let (exit, stdout, stderr) = finish(child);
    assert_eq!((exit, stdout.as_str()), (Some(130), ""), "{stderr}");
    assert_eq!(terminal.states().len(), 1, "what may be left is recorded");
    fake::record("stuck").write(&terminal.fakes);
    terminal.run("del n --container-id c1").success();
    assert!(terminal.states().is_empty());
}

/// B041
#[test]
fn b041_the_timeout_of_the_command_line_ends_a_plugin() {
    let terminal = Terminal::new();
    let slow = fake::record("slow").script("[ $CNI_COMMAND = DEL ] || exec sleep 100");
    terminal.fakes("n", &[("slow", slow)]);
    terminal.world.netns("blue");
    let started = std::time::Instant::now();
    for line in ["add n /run/netns/blue --timeout 300ms", "status n --timeout 300ms"] {
        let output = terminal.run(line);
        assert_eq!(output.code, 1, "a timeout is no answer: {output:#?}");
        assert!(output.stderr.contains("timeout: not done after 0.3 s"), "{output:#?}");
    }
    assert!(started.elapsed() < std::time::Duration::from_secs(20));
    assert!(terminal.states().is_empty());
}

#[test]
fn a_plugins_error_is_shown_whole_once() {
    let terminal = Terminal::new();
    let plugin = fake::fail_add("bad").script("[ $CNI_COMMAND = STATUS ] && echo a warning >&2");
    terminal.fakes("n", &[("bad", plugin)]);
    terminal.world.netns("blue");
    let text = terminal.run("add n /run/netns/blue");
    assert_eq!(text.code, 1);
    assert_eq!(
        text.stderr.matches("told to fail (code 100, exit status 1)").count(),
        1,
        "{text:#?}"
    );
    assert!(text.stderr.contains("plugin type=\"bad\""), "{text:#?}");
    assert!(!text.stderr.contains('\u{1b}'), "colour only on a terminal: {text:#?}");
    let error = terminal.run("add n /run/netns/blue -o json");
    let last = error.stderr.find('{').unwrap();
    let error: serde_json::Value = serde_json::from_str(&error.stderr[last..]).unwrap();
    assert_eq!(error["code"], 100);
    assert_eq!(error["pluginError"]["msg"], "told to fail");
    let status = terminal.run("status n").success();
    assert_eq!(status.stderr, "bad: a warning\n");
}

#[test]
fn status_says_no_with_its_own_exit_code() {
    let terminal = Terminal::new();
    terminal.fakes("n", &[("full", fake::record("full").fail_on("STATUS", 50, "pool is full"))]);
    let output = terminal.run("status n");
    assert_eq!((output.code, output.stdout.as_str()), (3, ""));
    assert!(output.stderr.contains("pool is full (code 50"), "{output:#?}");
    terminal.network(&json!({"cniVersion": "1.0.0", "name": "old", "plugins": [{"type": "full"}]}));
    let old = terminal.run("status old -o json").success();
    assert_eq!(old.json()["status"], "not asked");
}

#[test]
fn verbose_shows_each_call_with_its_time() {
    let terminal = Terminal::new();
    terminal.fakes("n", &[("one", fake::record("one")), ("two", fake::fail_add("two"))]);
    terminal.world.netns("blue");
    let output = terminal.run("add n /run/netns/blue -v --container-id c1");
    let calls: Vec<_> = output.stderr.lines().filter(|line| line.contains(" ms ")).collect();
    assert_eq!(calls.len(), 4, "{output:#?}");
    assert!(calls[0].starts_with("ADD one n/c1/eth0 ") && calls[0].ends_with(" ms ok"));
    assert!(calls[1].starts_with("ADD two ") && calls[1].contains("failed: told to fail"));
    assert!(calls[3].starts_with("DEL one "), "{output:#?}");
}

/// B017, B068
#[test]
fn b068_a_missing_plugin_is_told_with_all_places_before_anything_runs() {
    let terminal = Terminal::new();
    terminal.fakes("n", &[("there", fake::record("there")), ("gone", fake::record("gone"))]);
    std::fs::remove_file(terminal.fakes.join("gone")).unwrap();
    terminal.world.netns("blue");
    let output =
        terminal.run("add n /run/netns/blue --plugin-dir /nowhere --plugin-dir /run/world/fakes");
    assert_eq!(output.code, 1);
    for part in ["plugin \"gone\"", "/nowhere (no such directory)", "/run/world/fakes (not there)"]
    {
        assert!(output.stderr.contains(part), "{output:#?}");
    }
    assert!(calls(&terminal.fakes).is_empty());
}

#[test]
fn version_asks_every_plugin_and_its_ipam() {
    let terminal = Terminal::new();
    terminal.pods();
    let output = terminal.run("version pods").success();
    let lines: Vec<_> = output.stdout.lines().collect();
    assert_eq!(lines.len(), 3, "{output:#?}");
    assert!(lines[0].starts_with("PLUGIN             SPEAKS 1.1.0  VERSIONS"), "{output:#?}");
    assert!(lines[1].starts_with("bridge             yes           0.1.0 "), "{output:#?}");
    assert!(lines[2].starts_with("host-local (ipam)  yes "), "{output:#?}");
    terminal.fakes("n", &[("odd", fake::record("odd"))]);
    std::fs::write(terminal.fakes.join("odd"), "#!/bin/sh\necho '{}'\n").unwrap();
    let output = terminal.run("version n -o json");
    assert_eq!(output.code, 1);
    assert_eq!(output.json()["plugins"][0]["fits"], false);
    assert!(output.json()["plugins"][0]["error"].as_str().unwrap().contains("missing field"));
}
