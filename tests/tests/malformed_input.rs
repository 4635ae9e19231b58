//! Requests that can't be understood, variables that are missing or wrong,
//! namespaces that are none: each plugin gives the specification's code, names what
//! is wrong, and changes nothing.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use podwire_testkit::Plugin;
use podwire_tests::Refusals;
use serde_json::{Value, json};

const PLUGINS: [&str; 5] = ["bridge", "host-local", "loopback", "portmap", "static"];

/// What every one of them would accept.
fn good(plugin: &str) -> Value {
    let ipam = match plugin {
        "static" => json!({"type": "static", "addresses": [{"address": "10.1.0.9/24"}]}),
        _ => json!({"type": "host-local", "subnet": "10.1.0.0/24"}),
    };
    json!({
        "cniVersion": "1.1.0", "name": "pods", "type": plugin, "bridge": "br0",
        "isGateway": true, "ipam": ipam,
    })
}

/// The verbs that carry a request.
const VERBS: [&str; 5] = ["ADD", "DEL", "CHECK", "STATUS", "GC"];

#[test]
fn what_is_no_json_object_gets_code_6() {
    let mut refusals = Refusals::new();
    let nested =
        format!("{{\"name\":\"pods\",\"x\":{}{}}}", "[".repeat(50_000), "]".repeat(50_000));
    let huge = format!("{{\"name\":\"pods\",\"x\":\"{}\"}}", "x".repeat(9 << 20));
    let texts = [
        "",
        "  \n",
        "nonsense",
        "{",
        "{\"name\":\"pods\"",
        "{'name':'pods'}",
        "{\"name\":\"pods\"} {}",
        "{\"name\":\"pods\",}",
        "\u{feff}{\"name\":\"pods\"}",
        "{\"name\":\"po\u{0}ds\"}",
        "// comment\n{\"name\":\"pods\"}",
        "[]",
        "7",
        "\"pods\"",
        "{\"name\":7}",
        "{\"name\":[\"pods\"]}",
        "{\"name\":\"pods\",\"cniVersion\":1.0}",
        "{\"name\":\"pods\",\"cniVersion\":\"abc\"}",
        "{\"name\":\"pods\",\"cniVersion\":\"1.0.0.0\"}",
        &nested,
        &huge,
    ];
    for plugin in PLUGINS {
        for text in texts {
            for verb in ["ADD", "DEL"] {
                let call = refusals.call(plugin, verb, &json!({})).config(text);
                refusals.refused(&call.run(), &[6], &[]);
            }
        }
        for verb in VERBS {
            let call = refusals.call(plugin, verb, &json!({})).config("{");
            refusals.refused(&call.run(), &[6], &[]);
        }
    }
    refusals.assert_nothing_changed();
}

#[test]
fn bytes_that_are_no_text_get_code_6() {
    let mut refusals = Refusals::new();
    for plugin in PLUGINS {
        let line = format!(
            "printf '{{\"name\":\"p\\377\\376\"}}' | CNI_COMMAND=ADD CNI_CONTAINERID=c1 \
             CNI_NETNS=/run/netns/c1 CNI_IFNAME=eth0 {}",
            refusals.node.plugin_directory().join(plugin).display()
        );
        let output = refusals.node.world.try_exec(&["sh", "-c", &line]);
        refusals.refused(&output, &[6], &["UTF-8"]);
        // A value that isn't UTF-8 in a variable.
        let line = format!(
            "echo '{{\"name\":\"pods\"}}' | CNI_COMMAND=ADD CNI_CONTAINERID=$(printf 'c\\377') \
             CNI_NETNS=/run/netns/c1 CNI_IFNAME=eth0 {}",
            refusals.node.plugin_directory().join(plugin).display()
        );
        let output = refusals.node.world.try_exec(&["sh", "-c", &line]);
        refusals.refused(&output, &[4], &["CNI_CONTAINERID", "UTF-8"]);
    }
    refusals.assert_nothing_changed();
}

#[test]
fn network_names_that_lead_elsewhere_get_code_7() {
    let mut refusals = Refusals::new();
    for plugin in PLUGINS {
        for verb in VERBS {
            for name in ["../x", "a/b", "..", ".", "a\nb", "a\u{0}b", "-a", "ä", " "] {
                let mut config = good(plugin);
                config["name"] = json!(name);
                let output = refusals.call(plugin, verb, &config).run();
                let shown = name.trim_matches(|other: char| !other.is_ascii_graphic());
                refusals.refused(&output, &[7], &["network name", &shown[..1.min(shown.len())]]);
            }
            for config in [json!({}), json!({"name": ""}), json!({"name": null}), json!(null)] {
                let output = refusals.call(plugin, verb, &config).run();
                refusals.refused(&output, &[6, 7], &[]);
            }
        }
    }
    refusals.assert_nothing_changed();
}

#[test]
fn versions_nobody_speaks_get_code_1() {
    let mut refusals = Refusals::new();
    for plugin in PLUGINS {
        for verb in VERBS {
            let mut config = good(plugin);
            config["cniVersion"] = json!("9.9.9");
            refusals.refused(&refusals.call(plugin, verb, &config).run(), &[1], &[]);
        }
        for (verb, version) in [("CHECK", "0.3.1"), ("STATUS", "1.0.0"), ("GC", "0.4.0")] {
            let mut config = good(plugin);
            config["cniVersion"] = json!(version);
            refusals.refused(&refusals.call(plugin, verb, &config).run(), &[1], &[verb]);
        }
    }
    refusals.assert_nothing_changed();
}

#[test]
fn missing_variables_get_code_4_and_are_named() {
    let mut refusals = Refusals::new();
    for plugin in PLUGINS {
        for verb in ["ADD", "CHECK", "DEL"] {
            for variable in ["CNI_CONTAINERID", "CNI_NETNS", "CNI_IFNAME"] {
                if verb == "DEL" && variable == "CNI_NETNS" {
                    continue; // Optional there.
                }
                let call = refusals.call(plugin, verb, &good(plugin));
                let output = call.clone().without_env(variable).run();
                refusals.refused(&output, &[4], &[variable, "missing"]);
                refusals.refused(&call.env(variable, "").run(), &[4], &[variable, "missing"]);
            }
        }
        let program = refusals.node.plugin_directory().join(plugin);
        let bare = Plugin::at(program).command("ADD").config(good(plugin)).run();
        let all = "[CNI_CONTAINERID,CNI_NETNS,CNI_IFNAME]";
        refusals.refused(&bare, &[4], &[all]);
    }
    // Only what delegates needs to know where plugins are.
    for verb in ["ADD", "STATUS"] {
        let call = refusals.call("bridge", verb, &good("bridge"));
        refusals.refused(&call.clone().without_env("CNI_PATH").run(), &[4], &["CNI_PATH"]);
        refusals.refused(&call.env("CNI_PATH", "").run(), &[4], &["CNI_PATH"]);
    }
    refusals.assert_nothing_changed();
}

#[test]
fn unknown_verbs_get_code_4_and_are_named() {
    let mut refusals = Refusals::new();
    for plugin in PLUGINS {
        for verb in ["add", "FOO", " ADD", "ADD\n", "VERSION ", "../ADD"] {
            let output = refusals.call(plugin, verb, &good(plugin)).run();
            refusals.refused(&output, &[4], &["CNI_COMMAND", verb.trim()]);
        }
    }
    refusals.assert_nothing_changed();
}

#[test]
fn names_that_cannot_be_get_code_4_and_are_shown() {
    let mut refusals = Refusals::new();
    let ids = ["a/b", "../c1", "a\nb", "c1\n", "-c1", ".c1", "ä", "a b", "a;b"];
    let interfaces = ["a/b", "..", ".", "a b", "a:b", "eth0\n", "sixteen-bytes-xx"];
    for plugin in PLUGINS {
        for verb in ["ADD", "CHECK", "DEL"] {
            for id in ids {
                let output = refusals.call(plugin, verb, &good(plugin)).container(id).run();
                let shown = id.lines().next().unwrap();
                refusals.refused(&output, &[4], &["containerID", shown]);
            }
            for name in interfaces {
                let output = refusals.call(plugin, verb, &good(plugin)).ifname(name).run();
                refusals.refused(&output, &[4], &["interface name"]);
            }
        }
    }
    refusals.assert_nothing_changed();
}

#[test]
fn what_is_no_network_namespace_is_named() {
    let mut refusals = Refusals::new();
    let file = refusals.node.world.write("file", "x");
    let directory = refusals.node.world.path("");
    let long = format!("/run/{}", "x".repeat(300));
    let longer = format!("/run/{}", "x/".repeat(3000));
    let paths = [
        ("/run/netns/nowhere", "/run/netns/nowhere"),
        (file.to_str().unwrap(), "/run/world/file"),
        (directory.to_str().unwrap(), "/run/world"),
        ("/proc/self/ns/uts", "/proc/self/ns/uts"),
        ("/proc/self/ns/mnt", "/proc/self/ns/mnt"),
        ("/dev/null", "/dev/null"),
        ("/proc/999999999/ns/net", "/proc/999999999/ns/net"),
        ("relative", "relative"),
        ("/run/netns/c1/x", "/run/netns/c1/x"),
        ("/run/new\nline", "/run/new"),
        (&long, "/run/xxx"),
        (&longer, "/run/x/x"),
    ];
    for plugin in ["bridge", "loopback", "portmap"] {
        for (path, shown) in paths {
            for verb in ["ADD", "CHECK"] {
                let output =
                    refusals.call(plugin, verb, &good(plugin)).env("CNI_NETNS", path).run();
                refusals.refused(&output, &[4, 5, 8], &["CNI_NETNS", shown]);
            }
        }
    }
    // Our own: refused before anything is done, unless it is asked for.
    for plugin in PLUGINS {
        for verb in ["ADD", "DEL"] {
            let host = refusals.node.world.host().clone();
            let output = refusals.call(plugin, verb, &good(plugin)).netns(&host).run();
            refusals.refused(&output, &[8], &["same"]);
        }
    }
    refusals.assert_nothing_changed();
}

#[test]
fn deletion_bears_every_path_that_is_no_namespace() {
    let refusals = Refusals::new();
    let file = refusals.node.world.write("file", "x");
    let directory = refusals.node.world.path("");
    let long = format!("/run/{}", "x".repeat(300));
    let before = refusals.node.world.snapshot();
    let loops = refusals.node.world.path("loop");
    std::os::unix::fs::symlink(&loops, &loops).unwrap();
    for plugin in PLUGINS {
        for path in [
            "",
            "/run/netns/nowhere",
            file.to_str().unwrap(),
            directory.to_str().unwrap(),
            "/proc/self/ns/uts",
            "/proc/999999999/ns/net",
            loops.to_str().unwrap(),
            &long,
        ] {
            let call = refusals.call(plugin, "DEL", &good(plugin)).env("CNI_NETNS", path);
            assert_eq!(call.run().success().stdout, "");
        }
        // Long names that follow the rules are deleted like others.
        let id = "c".repeat(300);
        refusals.call(plugin, "DEL", &good(plugin)).container(&id).run().success();
    }
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "x");
    refusals.node.assert_nothing_left(&before);
}
