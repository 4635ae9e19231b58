//! Who may read what we write: the table of the page, read back.

use std::path::Path;

use podwire_runtime::{Attachment, Existing, Source};
use podwire_spec::id::{ContainerId, IfName};
use podwire_tests::{Node, Plugins};
use serde_json::json;

use crate::lab::modes;

/// The page's own words.
const PAGE: &str = include_str!("../../../docs/security.md");

/// What the page says of a path; `None` if nothing.
fn promised(path: &str) -> Option<String> {
    let pattern = path.replace(&boot_id(), "BOOT");
    PAGE.lines().find_map(|line| {
        let mut cells = line.split('|').map(str::trim).skip(1);
        let (name, mode) = (cells.next()?, cells.next()?);
        (name == format!("`{pattern}`")).then(|| mode.to_owned())
    })
}

fn boot_id() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap().trim().to_owned()
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
    let mut unsaid = Vec::new();
    for root in ["/var/lib/cni", "/run/cni", "/run/podwire"] {
        for line in modes(root).lines().filter(|_| Path::new(root).exists()) {
            let (mode, path) = line.split_once(' ').unwrap();
            let said = promised(path);
            if said.as_deref() != Some(mode) && path != "/var/lib/cni" {
                unsaid.push(format!("{path} has mode {mode}, the page says {said:?}"));
            }
        }
    }
    assert!(unsaid.is_empty(), "{}", unsaid.join("\n"));
    node.runtime().del(&network, &attachment, Source::Recorded).unwrap();
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
