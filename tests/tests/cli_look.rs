//! `podwire list`, `validate` and `completions`.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod cli_support;

use std::os::unix::fs::PermissionsExt as _;
use std::time::{Duration, Instant};

use cli_support::{CONFIGURATION, Terminal};
use podwire_testkit::fake;
use serde_json::json;

#[test]
fn list_shows_every_attachment_with_its_state() {
    let terminal = Terminal::new();
    terminal.pods();
    let stuck = fake::fail_add("stuck").fail_on("DEL", 100, "told to fail");
    terminal.fakes("stuck", &[("stuck", stuck)]);
    for name in ["alive", "dead", "pending"] {
        terminal.world.netns(name);
    }
    terminal.run("add pods /run/netns/alive --container-id alive").success();
    terminal.run("add pods /run/netns/dead --container-id dead").success();
    terminal.run("add stuck /run/netns/pending --container-id pending").failure();
    podwire_sys::netns::NamedNetNs::remove("/run/netns/dead").unwrap();
    std::fs::write("/var/lib/cni/results/pods-torn-eth0", "").unwrap();

    let rows = |output: &podwire_testkit::Output| -> Vec<Vec<String>> {
        let lines = output.stdout.lines();
        lines.map(|line| line.split_whitespace().map(str::to_owned).collect()).collect()
    };
    let output = terminal.run("list").success();
    let rows_now = rows(&output);
    assert_eq!(rows_now[0], ["NETWORK", "CONTAINER", "INTERFACE", "ADDRESSES", "AGE", "STATE"]);
    assert_eq!(rows_now[1][..4], ["pods", "alive", "eth0", "10.1.0.2/24"]);
    assert_eq!(rows_now[1][5], "alive");
    assert_eq!((rows_now[2][1].as_str(), rows_now[2][5].as_str()), ("dead", "dead"));
    assert_eq!(rows_now[3][3], "-");
    assert_eq!(rows_now[3][5..], ["delete", "pending"]);
    assert_eq!(rows_now[4][..2], ["unreadable:", "/var/lib/cni/results/pods-torn-eth0:"]);
    let of_one = terminal.run("list --network stuck -o json").success().json();
    assert_eq!(of_one["attachments"].as_array().unwrap().len(), 1);

    // A DEL of what the torn file was about sets it aside.
    terminal.run("del pods --container-id torn").success();
    let output = terminal.run("list").success();
    assert!(output.stdout.contains("set aside: /var/lib/cni/podwire/quarantine/"), "{output:#?}");
}

/// B088: what can't be listed is an error, not an empty list.
#[test]
fn b088_a_store_that_cannot_be_read_is_no_empty_one() {
    let terminal = Terminal::new();
    let plain = terminal.world.write("plain", "");
    let file = plain.display().to_string();
    std::fs::create_dir(terminal.world.path("cache")).unwrap();
    std::fs::write(terminal.world.path("cache/results"), "").unwrap();
    let broken = terminal.world.path("cache").display().to_string();
    for cache in [file, broken] {
        let output = terminal.run(&format!("list --cache-dir {cache}"));
        assert!(output.code == 1 && output.stderr.contains("attachment store"), "{output:#?}");
    }
    let full = terminal.world.path("full");
    std::fs::create_dir(&full).unwrap();
    podwire_sys::mount::tmpfs_with(&full, "size=4k,mode=755").unwrap();
    let filler = std::fs::write(full.join("filler"), vec![0; 4096]);
    filler.unwrap();
    terminal.pods();
    terminal.world.netns("blue");
    let before = terminal.world.snapshot();
    let output = terminal.run(&format!("add pods /run/netns/blue --cache-dir {}", full.display()));
    assert!(output.code == 1 && output.stderr.contains("No space left"), "{output:#?}");
    let left = terminal.world.snapshot().since(&before);
    left.without(|change| change.name().starts_with("file /run/podwire/")).assert_empty();
}

/// B023: each file that can't be used is a warning; the others work.
#[test]
fn b023_broken_files_hide_no_network() {
    let terminal = Terminal::new();
    terminal.fakes("good", &[("rec", fake::record("rec"))]);
    terminal.configure("05-bad.conflist", "{\n  \"name\": \"bad\",\n}");
    let empty = terminal.configure("06-empty.conflist", "");
    // A fresh one would count as being written, and lookups would wait for it.
    terminal.world.exec(&["touch", "--date=@0", empty.to_str().unwrap()]);
    std::fs::create_dir(format!("{CONFIGURATION}/07-dir.conflist")).unwrap();
    terminal.configure("09-binary.conf", b"\x7fELF\x00\x01");
    terminal.world.netns("blue");
    terminal.run("add good /run/netns/blue").success();
    let output = terminal.run("list --networks").success();
    assert_eq!(output.stdout.lines().count(), 2, "{output:#?}");
    for part in [
        "warning: /etc/cni/net.d/05-bad.conflist:2:16: ",
        "warning: /etc/cni/net.d/06-empty.conflist",
        "warning: /etc/cni/net.d/09-binary.conf",
    ] {
        assert!(output.stderr.contains(part), "{part}: {output:#?}");
    }
    assert_eq!(terminal.run("list --networks -o json").json()["networks"][0]["name"], "good");
    let missing = terminal.run("add missing /run/netns/blue");
    for part in ["\"missing\"", "05-bad.conflist:2:16", "06-empty", "09-binary"] {
        assert!(missing.stderr.contains(part), "{part}: {missing:#?}");
    }
}

/// B118
#[test]
fn b118_validate_tells_each_mistake_with_its_place() {
    let terminal = Terminal::new();
    terminal.pods();
    terminal.expect("validate", 0, "");
    let silent = fake::record("silent").write(&terminal.fakes);
    std::fs::write(&silent, "#!/bin/sh\nexit 0\n").unwrap();
    let hanging = fake::record("hanging").write(&terminal.fakes);
    std::fs::write(&hanging, "#!/bin/sh\nexec sleep 100\n").unwrap();
    let old = fake::record("old").write(&terminal.fakes);
    std::fs::write(
        &old,
        "#!/bin/sh\necho '{\"cniVersion\":\"0.4.0\",\"supportedVersions\":[\"0.4.0\"]}'\n",
    )
    .unwrap();
    let file = terminal.network(&json!({
        "cniVersion": "1.1.0",
        "name": "mistakes",
        "plugins": [
            {"type": "bridge", "isGatway": true, "ipam": {"type": "host-local", "rangestart": "10.1.0.9",
                "ranges": [[{"subnet": "10.1.0.0/24"}], [{"subnet": "10.1.0.0/16"}]]}},
            {"type": "absent", "capabilities": {"telepathy": true}},
            {"type": "silent"},
            {"type": "old"},
            {"type": "hanging"},
        ],
    }));
    let started = Instant::now();
    let output = terminal.run("validate --timeout 1s /etc/cni/net.d/mistakes.conflist");
    assert!(started.elapsed() < Duration::from_secs(8), "--timeout 1s counts for a question too");
    assert_eq!(output.code, 2, "{output:#?}");
    for (severity, key, text) in [
        ("warning", "plugins[0].isGatway", "did you mean isGateway?"),
        ("warning", "plugins[0].ipam.rangestart", "write rangeStart"),
        ("error", "plugins[0].ipam.ranges[1][0]", "overlaps with plugins[0].ipam.ranges[0][0]"),
        ("error", "plugins[1].type", "/run/world/fakes (not there)"),
        ("warning", "plugins[1].capabilities.telepathy", "no runtime is known"),
        ("error", "plugins[2].type", "silent"),
        ("error", "plugins[3].type", "does not support version 1.1.0, only 0.4.0"),
        ("error", "plugins[4].type", "timeout"),
    ] {
        let wanted = |line: &&str| {
            line.starts_with(&format!("{}:", file.display()))
                && line.contains(&format!(": {severity}: {key}: "))
                && line.contains(text)
        };
        let lines = output.stdout.lines().filter(wanted).count();
        assert_eq!(lines, 1, "{severity} {key} {text}: {output:#?}");
    }
    assert_eq!(output.stdout.lines().count(), 8, "{output:#?}");
    let found = terminal.run("validate --timeout 1s -o json").json();
    let found = found["findings"].as_array().unwrap();
    assert_eq!(found.len(), 8);
    assert!(found.iter().all(|finding| finding["line"].as_u64().unwrap() > 4), "{found:#?}");
}

/// What `validate` says about one file of this name.
fn validated(terminal: &Terminal, name: &str, content: impl AsRef<[u8]>) -> (i32, String) {
    let path = terminal.world.write(name, content);
    let output = terminal.run(&format!("validate {}", path.display()));
    assert_eq!(output.stderr, "");
    (output.code, output.stdout)
}

/// C05, C07, C16, C17: files as found in the wild, whose plugins aren't here.
#[test]
fn files_of_others_are_judged_by_what_is_known() {
    let terminal = Terminal::new();
    for plugin in ["aws-cni", "calico", "portmap", "macvlan", "whereabouts"] {
        fake::record(plugin).write(&terminal.fakes);
    }
    // C05
    let aws = r#"{"cniVersion":"0.3.1","name":"aws-cni","plugins":[{"name":"aws-cni","type":"aws-cni","vethPrefix":"__VETHPREFIX__","mtu":"__MTU__"},{"type":"portmap","capabilities":{"portMappings":true},"snat":true}]}"#;
    let (code, text) = validated(&terminal, "10-aws.conflist", aws);
    assert_eq!((code, text.lines().count()), (1, 2), "{text}");
    assert!(text.contains("__VETHPREFIX__") && text.contains("__MTU__"), "{text}");
    // C07
    let canal = r#"{"name":"k8s-pod-network","cniVersion":"0.3.1","plugins":[{"type":"calico","datastore_type":"kubernetes","nodename":"n1","ipam":{"type":"host-local","subnet":"usePodCidr"},"policy":{"type":"k8s"}},{"type":"portmap","snat":true,"capabilities":{"portMappings":true}}]}"#;
    assert_eq!(validated(&terminal, "10-canal.conflist", canal), (0, String::new()));
    // C16
    let macvlan = r#"{"cniVersion":"0.3.1","name":"m","type":"macvlan","master":"eth0","mode":"bridge","ipam":{"type":"whereabouts","range":"192.168.2.225/28","exclude":["192.168.2.229/30"],"route":[{"dst":"0.0.0.0/0"}]}}"#;
    let (code, text) = validated(&terminal, "macvlan.conf", macvlan);
    assert!(code == 1 && text.contains("did you mean routes?"), "{code} {text}");
    // C17
    let named = r#"{"version":"0.3.0","name":"n","type":"bridge","bridge":"br-net","mtu":1500}"#;
    let (code, text) = validated(&terminal, "net.conf", named);
    assert!(code == 1 && text.contains("did you mean cniVersion?"), "{code} {text}");
}

/// C20, C22
#[test]
fn what_is_not_json_is_called_what_it_is() {
    let terminal = Terminal::new();
    // C20
    let comments = "{\n  \"cniVersion\": \"1.0.0\", // version\n  \"name\": \"dbnet\" }";
    let (code, text) = validated(&terminal, "a.conflist", comments);
    assert_eq!(code, 2);
    assert!(text.contains("a.conflist:2:26: error: ") && text.contains("comment"), "{text}");
    // C22
    let mark = b"\xef\xbb\xbf{\"cniVersion\":\"1.0.0\",\"name\":\"b\",\"type\":\"loopback\"}";
    let (code, text) = validated(&terminal, "b.conf", mark);
    assert!(code == 2 && text.contains("byte order mark"), "{code} {text}");
    let wide: Vec<u8> = "\u{feff}{}".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let (code, text) = validated(&terminal, "c.conf", wide);
    assert!(code == 2 && text.contains("UTF-16"), "{code} {text}");
    let absent = terminal.run("validate /nowhere.conflist");
    assert_eq!(absent.code, 2);
    assert!(absent.stdout.starts_with("/nowhere.conflist: error: "), "{absent:#?}");
}

#[test]
fn completions_are_scripts_that_shells_take() {
    let terminal = Terminal::new();
    let script = terminal.run("completions bash").success().stdout;
    let path = terminal.world.write("podwire.bash", &script);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    terminal.world.exec(&["bash", "-n", path.to_str().unwrap()]);
    for shell in ["zsh", "fish"] {
        let script = terminal.run(&format!("completions {shell}")).success().stdout;
        assert!(script.contains("validate"), "{shell}");
    }
}
