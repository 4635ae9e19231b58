//! Who may read what we write: the table of the page, read back.

use std::path::Path;

use podwire_plugin::OwnerMark;
use podwire_runtime::{Attachment, Existing, Source};
use podwire_spec::id::{ContainerId, IfName};
use podwire_testkit::GoPlugins;
use podwire_tests::dhcp::{self, Server, Settings, Side, Software, Wiring};
use podwire_tests::lab::with_previous;
use podwire_tests::{Node, Plugins};
use serde_json::json;

use crate::lab::modes;

/// The page's own words.
const PAGE: &str = include_str!("../../../docs/security.md");

/// All of them.
const PLUGINS: &str = "bandwidth bridge dhcp dummy firewall host-device host-local ipvlan \
    loopback macvlan portmap ptp sbr static tap tuning vlan vrf";

/// The modes that the page gives a path.
fn promised(path: &str) -> Vec<&'static str> {
    let pattern = path.replace(&boot_id(), "BOOT");
    let pattern: Vec<_> = pattern.split('/').map(placeholder).collect();
    let pattern = format!("`{}`", pattern.join("/"));
    let rows = PAGE.lines().filter_map(|line| {
        let mut cells = line.split('|').map(str::trim).skip(1);
        Some((cells.next()?, cells.next()?))
    });
    rows.filter(|(name, _)| *name == pattern).map(|(_, mode)| mode).collect()
}

/// The page's word for a part of a path that is an owner mark; else the part.
fn placeholder(part: &str) -> String {
    let (stem, ending) = part.split_once('.').map_or((part, ""), |(stem, rest)| (stem, rest));
    match OwnerMark::from_comment(stem) {
        Some(mark) if mark.to_string() == stem => format!("MARK.{ending}"),
        _ => part.to_owned(),
    }
}

fn boot_id() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap().trim().to_owned()
}

/// Panics unless each of these lines, `MODE PATH`, stands in the page.
#[track_caller]
fn assert_promised(lines: &str) {
    let unsaid: Vec<_> = lines
        .lines()
        .map(|line| line.split_once(' ').unwrap())
        .filter(|(mode, path)| *path != "/var/lib/cni" && !promised(path).contains(mode))
        .map(|(mode, path)| format!("{path}: {mode}, the page says {:?}", promised(path)))
        .collect();
    assert!(unsaid.is_empty(), "{}", unsaid.join("\n"));
}

/// All that lies where state lies.
fn state() -> String {
    let roots = ["/var/lib/cni", "/run/cni", "/run/podwire"];
    roots.into_iter().filter(|root| Path::new(root).exists()).map(modes).collect()
}

/// Panics unless all of these paths are among the lines.
#[track_caller]
fn assert_has(lines: &str, parts: &[&str]) {
    for part in parts {
        assert!(lines.lines().any(|line| line.contains(part)), "no {part}:\n{lines}");
    }
}

/// The `podwire` that was built with this test.
fn podwire() -> String {
    let own = std::env::current_exe().unwrap();
    own.parent().unwrap().with_file_name("podwire").display().to_string()
}

/// Each file that an attachment leaves stands in the page, with its mode.
#[test]
fn the_modes_of_all_files_are_those_of_the_page() {
    let node = Node::new(Plugins::Ours);
    let network = node.network(&json!({
        "cniVersion": "1.1.0",
        "name": "NETWORK",
        "plugins": [
            {
                "type": "bridge", "bridge": "br0", "isGateway": true,
                "ipam": {"type": "host-local", "subnet": "10.1.0.0/24"},
            },
            {"type": "tuning", "mtu": 1400},
        ],
    }));
    node.world.netns("ID");
    let id = ContainerId::parse("ID").unwrap();
    let attachment = Attachment::new(id, IfName::parse("IF").unwrap()).with_netns("/run/netns/ID");
    node.runtime().add(&network, &attachment, Existing::Refuse).unwrap();
    assert_promised(&state());
    node.runtime().del(&network, &attachment, Source::Recorded).unwrap();
}

/// A lease, the socket, and what is kept for a daemon that isn't there.
#[test]
fn the_modes_of_the_daemon_s_files_are_those_of_the_page() {
    let lab = dhcp::Lab::new(Wiring::Bridge);
    let _server = Server::start(&lab.server, Software::Dnsmasq, Settings::default());
    let mut daemon = lab.daemon(Side::Ours, &[]);
    let (container, config) = (lab.container("ID"), lab.config());
    let result = lab.add(&container, &config);
    let lines = state();
    assert_has(&lines, &["/leases/", "/run/cni/dhcp.sock"]);
    assert_promised(&lines);
    daemon.kill();
    let _ = lab.call("DEL", &container, &with_previous(&config, &result)).run();
    let lines = state();
    assert_has(&lines, &["/wishes/"]);
    assert_promised(&lines);
}

/// How a moved device was.
#[test]
fn the_modes_of_a_device_s_record_are_those_of_the_page() {
    let lab = crate::lab::Lab::new();
    lab.world.exec(&["ip", "link", "add", "hdev", "type", "veth", "peer", "name", "far"]);
    let config =
        json!({"cniVersion": "1.1.0", "name": "n", "type": "host-device", "device": "hdev"});
    lab.call("host-device", "ADD", &config).run().success();
    let lines = state();
    assert_has(&lines, &["/run/podwire/devices/"]);
    assert_promised(&lines);
}

/// While a command runs, and afterwards.
#[test]
fn the_modes_of_podwire_run_are_those_of_the_page() {
    let node = Node::new(Plugins::Ours);
    node.network(&json!({
        "cniVersion": "1.1.0", "name": "NETWORK",
        "plugins": [{"type": "bridge", "bridge": "br0", "dns": {"nameservers": ["10.1.0.1"]}}],
    }));
    let program = podwire();
    let plugins = format!("CNI_PATH={}", node.world.plugin_directory().display());
    let list = ["find", "/run/podwire", "-printf", "%04m %p\\n"];
    let run = ["env", &plugins, &program, "run", "NETWORK", "--container-id", "ID", "--"];
    let output = node.world.exec(&[&run[..], &list].concat());
    assert_has(&output.stdout, &["/run/podwire/run/ID", "/run/podwire/run/ID.resolv.conf"]);
    assert_promised(&output.stdout.replace("-eth0", "-IF").replace(":eth0", ":IF"));
    assert_promised(&state());
}

/// What is kept aside of the plugins that ours took the place of.
#[test]
fn the_modes_of_podwire_migrate_are_those_of_the_page() {
    let node = Node::new(Plugins::Sid);
    let (program, go) = (podwire(), GoPlugins::sid());
    let directory = Path::new("/opt/cni/bin");
    std::fs::copy(go.directory().join("bridge"), directory.join("bridge")).unwrap();
    for arguments in [&[][..], &["--rollback"]] {
        node.world.try_exec(&[&[program.as_str(), "migrate"], arguments].concat());
        let lines = modes("/opt/cni/bin");
        let mut lines = lines.replace("/opt/cni/bin", "BIN");
        for plugin in PLUGINS.split_ascii_whitespace() {
            lines = lines.replace(&format!("/{plugin}\n"), "/PLUGIN\n");
        }
        assert_promised(&lines);
        if arguments.is_empty() {
            assert_has(&lines, &["/.podwire/originals/PLUGIN", "/.podwire/lock"]);
        }
    }
}

/// A wide-open umask of the runtime makes nothing wider, a narrow one nothing
/// unusable.
#[test]
fn the_umask_of_the_runtime_opens_nothing() {
    for umask in ["0000", "0077"] {
        let lab = crate::lab::Lab::new();
        let plugin = lab.world.plugin_directory().join("bridge");
        let config = lab.world.write(
            "config",
            json!({
                "cniVersion": "1.1.0", "name": "n", "type": "bridge", "bridge": "br0",
                "ipam": {"type": "host-local", "subnet": "10.1.0.0/24"},
            })
            .to_string(),
        );
        let line = format!(
            "umask {umask}; CNI_COMMAND=ADD CNI_CONTAINERID=c1 CNI_IFNAME=eth0 \
             CNI_NETNS=/run/netns/c1 CNI_PATH={} {} < {}",
            lab.world.plugin_directory().display(),
            plugin.display(),
            config.display()
        );
        lab.world.exec(&["sh", "-c", &line]).success();
        for root in ["/var/lib/cni", "/run/podwire"] {
            for line in modes(root).lines() {
                let (mode, path) = line.split_once(' ').unwrap();
                let mode = u32::from_str_radix(mode, 8).unwrap();
                assert_eq!(mode & 0o022, 0, "others may write {path} under umask {umask}");
                assert_ne!(mode & 0o400, 0, "{path} under umask {umask}");
            }
        }
    }
}
