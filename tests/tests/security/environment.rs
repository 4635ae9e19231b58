//! Which variables change what is done: those of the page, and no others.

use serde_json::json;

use crate::lab::Lab;

/// Variables that other programs listen to, and some that one might think ours.
const FOREIGN: [(&str, &str); 15] = [
    ("PODWIRE_DEBUG", "1"),
    ("PODWIRE_STATE_DIR", "/run/elsewhere"),
    ("PODWIRE_PEERS_DIR", "/run/elsewhere"),
    ("RUST_LOG", "trace"),
    ("RUST_BACKTRACE", "full"),
    ("RUST_MIN_STACK", "1"),
    ("TMPDIR", "/run/elsewhere"),
    ("HOME", "/run/elsewhere"),
    ("XDG_RUNTIME_DIR", "/run/elsewhere"),
    ("LANG", "tr_TR.UTF-8"),
    ("TZ", "Pacific/Kiritimati"),
    ("NETCONFPATH", "/run/elsewhere"),
    ("CAP_ARGS", "{\"mac\":\"x\"}"),
    ("DEBUG", "1"),
    ("MALLOC_CONF", "junk:true"),
];

/// A plugin with these set does to the letter what it does without.
#[test]
fn no_other_variable_changes_what_a_plugin_does() {
    let attached = |foreign: &[(&str, &str)]| {
        let lab = Lab::new();
        let config = json!({
            "cniVersion": "1.1.0", "name": "n", "type": "bridge", "bridge": "br0",
            "isGateway": true, "ipMasq": true,
            "ipam": {"type": "host-local", "subnet": "10.1.0.0/24"},
        });
        let variables = |call: podwire_testkit::Plugin| {
            foreign.iter().fold(call, |call, (name, value)| call.env(name, *value))
        };
        let before = lab.world.snapshot();
        let added = variables(lab.call("bridge", "ADD", &config)).run().success();
        let host = lab.world.snapshot();
        let files: Vec<_> = host.of_kind("file").map(str::to_owned).collect();
        // Both ends have MAC addresses of the kernel's choice.
        let mut result = added.json();
        for interface in result["interfaces"].as_array_mut().unwrap() {
            interface["mac"] = json!("any");
        }
        let deleted = variables(lab.call("bridge", "DEL", &config)).run().success();
        lab.world.snapshot().since(&before).beyond_residue(&["br0"]).assert_empty();
        assert!(!std::path::Path::new("/run/elsewhere").exists());
        (result, added.stderr, files, deleted.stdout, deleted.stderr)
    };
    assert_eq!(attached(&FOREIGN), attached(&[]));
}

/// The page lists every variable that the sources ask for.
#[test]
fn every_variable_that_is_read_stands_in_the_page() {
    let page = include_str!("../../../docs/security.md");
    for name in [
        "CNI_COMMAND",
        "CNI_CONTAINERID",
        "CNI_NETNS",
        "CNI_IFNAME",
        "CNI_ARGS",
        "CNI_PATH",
        "CNI_NETNS_OVERRIDE",
        "NETCONFPATH",
        "CAP_ARGS",
        "PATH",
        "LISTEN_PID",
        "LISTEN_FDS",
        "DBUS_SYSTEM_BUS_ADDRESS",
    ] {
        assert!(page.contains(&format!("| `{name}` |")), "{name}");
    }
}
