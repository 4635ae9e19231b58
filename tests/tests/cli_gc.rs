//! `podwire gc`: nothing is freed on a guess.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod cli_support;

use cli_support::{Terminal, finish};
use podwire_testkit::fake::{self, calls};
use podwire_tests::wait_until;
use serde_json::json;

/// The addresses that host-local holds for `pods`.
fn reserved() -> Vec<String> {
    let Ok(entries) = std::fs::read_dir("/var/lib/cni/networks/pods") else { return Vec::new() };
    let names = entries.flatten().map(|entry| entry.file_name().into_string().unwrap());
    let mut addresses: Vec<_> =
        names.filter(|name| name.parse::<std::net::IpAddr>().is_ok()).collect();
    addresses.sort();
    addresses
}

#[test]
fn what_to_keep_must_be_said() {
    let terminal = Terminal::new();
    terminal.pods();
    terminal.world.netns("blue");
    terminal.run("add pods /run/netns/blue").success();
    for line in ["gc pods", "gc pods /run/netns/blue", "gc pods --all --keep-live", "gc pods -n"] {
        let output = terminal.run(line);
        assert_eq!(output.code, 2, "{output:#?}");
    }
    let hint = terminal.run("gc pods").stderr;
    for flag in ["--keep", "--keep-live", "--all"] {
        assert!(hint.contains(flag), "{hint}");
    }
    assert_eq!(reserved(), ["10.1.0.2"]);
}

/// B086: `ns:ifname` names an interface, not a namespace of that name.
#[test]
fn b086_gc_keeps_what_its_namespaces_name() {
    let terminal = Terminal::new();
    terminal.pods();
    terminal.world.netns("a");
    terminal.run("add pods /run/netns/a").success();
    terminal.run_with(&["CNI_IFNAME=eth1"], &["add", "pods", "/run/netns/a"]).success();
    terminal.run("gc pods --keep /run/netns/a --keep /var/run/netns/a:eth1").success();
    assert_eq!(reserved(), ["10.1.0.2", "10.1.0.3"]);
    let output = terminal.run("gc pods --keep /run/netns/a").success();
    assert!(output.stdout.contains("/eth1 (attached): removed\n"), "{output:#?}");
    assert_eq!(reserved(), ["10.1.0.2"]);
    assert_eq!(terminal.states(), ["alive"]);
}

/// B086: a path stands for the record that holds it, under whatever id, and by whatever
/// other path leads to the same namespace; also when that is gone.
#[test]
fn b086_gc_keeps_what_a_path_leads_to() {
    let terminal = Terminal::new();
    terminal.pods();
    terminal.world.netns("a");
    terminal.run("add pods /run/netns/a --container-id chosen").success();
    let (link, bound) = (terminal.world.path("link"), terminal.world.write("bound", ""));
    std::os::unix::fs::symlink("/run/netns/a", &link).unwrap();
    podwire_sys::mount::bind(std::path::Path::new("/run/netns/a"), &bound).unwrap();
    for path in ["/run/netns/a", "/run/../run/netns/a", "/run/world/link", "/run/world/bound"] {
        terminal.run(&format!("gc pods --keep {path}")).success();
        assert_eq!(reserved(), ["10.1.0.2"], "{path}");
    }
    terminal.run("check pods --container-id chosen /run/netns/a").success();
    podwire_sys::mount::detach(&bound).unwrap();
    podwire_sys::netns::NamedNetNs::remove("/run/netns/a").unwrap();
    terminal.run("gc pods --keep /run/netns/a").success();
    assert_eq!(reserved(), ["10.1.0.2"]);
    assert_eq!(terminal.states(), ["dead"]);
    terminal.run("gc pods --all").success();
    assert!(reserved().is_empty());
}

/// B086: a path of which nothing is recorded was mistyped, and frees nothing, whatever
/// else is to be kept.
#[test]
fn b086_gc_refuses_to_keep_a_path_of_which_nothing_is_recorded() {
    let terminal = Terminal::new();
    terminal.pods();
    for name in ["a", "b"] {
        terminal.world.netns(name);
        terminal.run(&format!("add pods /run/netns/{name}")).success();
    }
    terminal.world.netns("other");
    for keep in [
        "/run/netns/typo",
        "/run/netns/other",
        "/run/netns/a:eth7",
        "/run/netns/b --keep /run/netns/typo",
    ] {
        let output = terminal.run(&format!("gc pods --keep {keep}"));
        assert_eq!(output.code, 2, "{keep}: {output:#?}");
        assert!(output.stderr.contains("no such attachment of network pods"), "{output:#?}");
        assert!(output.stderr.contains("nothing was freed"), "{output:#?}");
        assert_eq!(reserved().len(), 2, "{keep}");
    }
    // An id may be another runtime's: it needs no record.
    terminal.run("gc pods --keep /run/netns/a --keep somebody:eth0").success();
    assert_eq!(reserved(), ["10.1.0.2"]);
}

/// B005: what lives, and what can't be told, stays.
#[test]
fn b005_keep_live_frees_the_dead_only() {
    let terminal = Terminal::new();
    terminal.pods();
    for name in ["alive", "dead"] {
        terminal.world.netns(name);
        terminal.run(&format!("add pods /run/netns/{name} --container-id {name}")).success();
    }
    let moved = terminal.world.path("deep");
    std::fs::create_dir(&moved).unwrap();
    terminal.world.netns("unknown");
    std::os::unix::fs::symlink("/run/netns/unknown", moved.join("ns")).unwrap();
    terminal.run(&format!("add pods {}/ns --container-id unknown", moved.display())).success();
    std::fs::remove_dir_all(&moved).unwrap();
    podwire_sys::netns::NamedNetNs::remove("/run/netns/dead").unwrap();
    assert_eq!(terminal.states(), ["alive", "dead", "unknown"]);

    let dry = terminal.run("gc pods --keep-live --dry-run -o json").success().json();
    assert_eq!(
        dry["stale"],
        json!([{"containerId": "dead", "ifName": "eth0", "state": "attached", "removed": false}])
    );
    assert_eq!(reserved().len(), 3, "a dry run changes nothing");
    let output = terminal.run("gc pods --keep-live").success();
    assert_eq!(
        output.stdout,
        "pods/dead/eth0 (attached): removed\npods: told to collect: bridge\n"
    );
    assert_eq!(terminal.states(), ["alive", "unknown"]);
    assert_eq!(reserved().len(), 2);
    terminal.run("gc pods --all").success();
    assert!(reserved().is_empty() && terminal.states().is_empty());
}

/// B005 (e): what is attached while GC waits lives as well.
#[test]
fn b005_an_add_that_ends_while_gc_waits_is_kept() {
    let terminal = Terminal::new();
    let go = terminal.world.path("go");
    let wait =
        format!("while [ $CNI_COMMAND = ADD ] && [ ! -e {} ]; do sleep 0.02; done", go.display());
    terminal.fakes("n", &[("slow", fake::record("slow").script(&wait))]);
    terminal.world.netns("blue");
    let add = terminal.start(&["add", "n", "/run/netns/blue", "--container-id", "c1"]);
    wait_until("the call of slow", || !calls(&terminal.fakes).is_empty());
    let collecting = terminal.start(&["gc", "n", "--keep-live", "-o", "json"]);
    let open = format!("/proc/{}/fd", collecting.id());
    wait_until("gc waiting for its lock", || {
        let files = std::fs::read_dir(&open).unwrap().flatten();
        files
            .filter_map(|entry| std::fs::read_link(entry.path()).ok())
            .any(|path| path.ends_with("podwire/runtime/network/n"))
    });
    std::fs::write(&go, "").unwrap();
    let (code, _, stderr) = finish(add);
    assert_eq!(code, Some(0), "{stderr}");
    let (code, report, stderr) = finish(collecting);
    assert_eq!(code, Some(0), "{stderr}");
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    assert_eq!(report["kept"], json!([{"containerId": "c1", "ifName": "eth0"}]));
    assert_eq!(terminal.states(), ["alive"]);
    let seen = calls(&terminal.fakes);
    assert_eq!(seen.iter().map(|call| call.command.as_str()).collect::<Vec<_>>(), ["ADD", "GC"]);
    let valid = &seen[1].request()["cni.dev/valid-attachments"];
    assert_eq!(valid, &json!([{"containerID": "c1", "ifname": "eth0"}]));
}

/// B037: the DEL of a stale attachment is that of its own configuration.
#[test]
fn b037_gc_deletes_with_what_was_recorded() {
    let terminal = Terminal::new();
    terminal.fakes("n", &[("old", fake::record("old")), ("both", fake::record("both"))]);
    terminal.world.netns("blue");
    terminal.run("add n /run/netns/blue --container-id c1 --args K=V").success();
    terminal.fakes("n", &[("both", fake::record("both")), ("new", fake::record("new"))]);
    terminal.run("gc n --all").success();
    let seen: Vec<_> = calls(&terminal.fakes)
        .iter()
        .skip(2)
        .map(|call| format!("{} {} {} {}", call.command, call.plugin, call.args, call.netns))
        .collect();
    assert_eq!(
        seen,
        ["DEL both K=V /run/netns/blue", "DEL old K=V /run/netns/blue", "GC both  ", "GC new  "]
    );
}

/// B056
#[test]
fn b056_every_failure_is_told_and_none_stops_the_rest() {
    let terminal = Terminal::new();
    let plugins = [("stuck", fake::fail_del("stuck")), ("sour", fake::fail_gc("sour"))];
    terminal.fakes("n", &plugins);
    for id in ["c1", "c2"] {
        terminal.world.netns(id);
        terminal.run(&format!("add n /run/netns/{id} --container-id {id}")).success();
    }
    let output = terminal.run("gc n --all");
    assert_eq!(output.code, 1);
    assert_eq!(output.stdout.matches("NOT removed").count(), 2, "{output:#?}");
    assert_eq!(output.stderr.matches("error: ").count(), 3, "{output:#?}");
    assert_eq!(calls(&terminal.fakes).iter().filter(|call| call.command == "GC").count(), 2);
    let report = terminal.run("gc n --all -o json");
    assert_eq!(report.json()["failures"].as_array().unwrap().len(), 3, "{report:#?}");
    assert_eq!(terminal.states().len(), 2, "they stay recorded");
}

/// B056: what is unreadable counts for the network whose record it may be, and for no
/// other, every time.
#[test]
fn b056_a_torn_record_of_another_network_is_a_warning() {
    let terminal = Terminal::new();
    terminal.pods();
    std::fs::create_dir_all("/var/lib/cni/results").unwrap();
    std::fs::write("/var/lib/cni/results/others-c1-eth0", "{torn").unwrap();
    for _ in 0..2 {
        let output = terminal.run("gc pods --all").success();
        assert!(output.stderr.contains("warning: ") && output.stderr.contains("others-c1-eth0"));
        let report = terminal.run("gc pods --all -o json").success().json();
        assert_eq!(report["warnings"].as_array().unwrap().len(), 1, "{report}");
        assert!(report["failures"].is_null(), "{report}");
    }
    std::fs::write("/var/lib/cni/results/pods-c1-eth0", "{torn").unwrap();
    let output = terminal.run("gc pods --all");
    assert_eq!(output.code, 1, "{output:#?}");
    assert!(output.stderr.contains("delete the attachment"), "{output:#?}");
    terminal.run("del pods /run/netns/c1 --container-id c1").success();
    terminal.run("gc pods --all").success();
}

/// A container that another call is busy with is left for the next GC.
#[test]
fn a_busy_container_is_no_failure() {
    let terminal = Terminal::new();
    terminal.pods();
    for name in ["busy", "idle"] {
        terminal.world.netns(name);
        terminal.run(&format!("add pods /run/netns/{name} --container-id {name}")).success();
    }
    let lock = podwire_sys::lock::FileLock::exclusive(
        "/run/podwire/runtime/container/busy",
        std::time::Duration::ZERO,
    )
    .unwrap();
    let output = terminal.run("gc pods --all").success();
    assert!(output.stdout.contains("pods/busy/eth0 (attached): busy, left for the next GC\n"));
    assert!(output.stdout.contains("pods/idle/eth0 (attached): removed\n"), "{output:#?}");
    let report = terminal.run("gc pods --all -o json").success().json();
    assert_eq!(report["stale"][0]["busy"], true, "{report}");
    drop(lock);
    let output = terminal.run("gc pods --all").success();
    assert!(output.stdout.contains("pods/busy/eth0 (attached): removed\n"), "{output:#?}");
    assert!(terminal.states().is_empty());
}

/// GC is exclusive, and who waits for it doesn't wait for ever.
#[test]
fn a_second_gc_and_an_add_wait_for_the_first_and_then_fail_with_code_11() {
    let terminal = Terminal::new();
    let go = terminal.world.path("go");
    let wait =
        format!("while [ $CNI_COMMAND = GC ] && [ ! -e {} ]; do sleep 0.02; done", go.display());
    terminal.fakes("n", &[("slow", fake::record("slow").script(&wait))]);
    terminal.world.netns("blue");
    let first = terminal.start(&["gc", "n", "--all"]);
    wait_until("the call of slow", || !calls(&terminal.fakes).is_empty());
    let others = [
        terminal.start(&["gc", "n", "--all", "-o", "json"]),
        terminal.start(&["add", "n", "/run/netns/blue", "-o", "json"]),
    ];
    for other in others {
        let (code, _, stderr) = finish(other);
        let error: serde_json::Value = serde_json::from_str(&stderr).unwrap();
        assert_eq!((code, &error["code"]), (Some(1), &json!(11)), "{stderr}");
        assert!(error["msg"].as_str().unwrap().contains("in use"), "{stderr}");
        assert!(error["msg"].as_str().unwrap().contains("podwire"), "{stderr}");
    }
    std::fs::write(&go, "").unwrap();
    let (code, _, stderr) = finish(first);
    assert_eq!(code, Some(0), "{stderr}");
    terminal.run("gc n --all").success();
}

/// Whoever asks for JSON gets it for a mistake in the command line, too.
#[test]
fn mistakes_are_told_in_the_format_asked_for() {
    let terminal = Terminal::new();
    for line in ["gc -o json", "nonsense -o json", "-o json add", "gc n --all --keep-live -o json"]
    {
        let output = terminal.run(line);
        assert_eq!((output.code, output.stdout.as_str()), (2, ""), "{output:#?}");
        let error: serde_json::Value = serde_json::from_str(&output.stderr).unwrap();
        assert_eq!(error["code"], 4, "{output:#?}");
        assert!(error["details"].as_str().unwrap().contains("podwire"), "{output:#?}");
    }
    assert!(terminal.run("gc").stderr.starts_with("error: "));
    let help = terminal.run("--help -o json").success();
    assert!(help.stdout.contains("Usage: podwire"), "{help:#?}");
    // A file that can't be used is told on the same line as the rest.
    terminal.configure("torn.conflist", "{\n\"name\": \"n\",");
    terminal.configure("worse.conflist", "{\n]");
    let output = terminal.run("status n -o json");
    let error: serde_json::Value = serde_json::from_str(&output.stderr).unwrap();
    let message = error["msg"].as_str().unwrap();
    assert!(message.contains("torn.conflist") && message.contains("worse.conflist"), "{message}");
    assert!(!message.contains('\n'), "{message}");
}
