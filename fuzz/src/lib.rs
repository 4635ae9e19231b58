//! Every parser of outside data, each as a function from bytes to nothing that
//! must return: no panic, no endless loop, no invariant broken.
//!
//! The same functions are run twice. `cargo nextest run -p podwire-fuzz`
//! replays the corpus, with the compiler that builds everything else. And
//! `cargo xtask fuzz` gives them to libFuzzer, which looks for inputs of its
//! own. The layout is cargo-fuzz's, so that
//! `cargo +nightly fuzz run --features libfuzzer TARGET` works as well.
//!
//! A target writes to no place but a directory of its own below the
//! temporary directory, and changes nothing of the kernel.
//!
//! ```
//! let target = podwire_fuzz::target("cni_args").unwrap();
//! (target.run)(b"IgnoreUnknown=1;IP=10.1.0.2");
//! ```

#![allow(clippy::unwrap_used, clippy::panic, reason = "a target fails by panicking")]

mod dhcp;
mod host_local;
mod migrate;
mod netlink;
mod plugins;
mod protocol;
mod rehearsal;
mod runtime;
mod scratch;
mod system;

/// A parser with all that reads what it gives.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// Its name, of the corpus' directory and of the program.
    pub name: &'static str,
    /// Where its input comes from in the field.
    pub about: &'static str,
    /// Reads an input. Panics if anything is wrong with how that was done.
    pub run: fn(&[u8]),
}

/// All of them.
pub const TARGETS: &[Target] = &[
    Target {
        name: "plugin_stdin",
        about: "what a runtime writes to a plugin, and the CNI variables",
        run: plugins::stdin,
    },
    Target {
        name: "plugin_config",
        about: "each plugin's own configuration, and its plan for every verb",
        run: plugins::config,
    },
    Target {
        name: "host_local_config",
        about: "host-local's configuration, through all verbs on an empty pool",
        run: host_local::config,
    },
    Target {
        name: "host_local_files",
        about: "host-local's reservations, index and hints, through all verbs",
        run: host_local::files,
    },
    Target {
        name: "dhcp_config",
        about: "dhcp's configuration, through all verbs without a daemon",
        run: dhcp::config,
    },
    Target {
        name: "dhcp_packets",
        about: "frames and messages of DHCP servers",
        run: dhcp::packets,
    },
    Target {
        name: "dhcp_documents",
        about: "what dhcp and its daemon say to each other, and records of leases",
        run: dhcp::documents,
    },
    Target {
        name: "dhcp_greeting",
        about: "the socket between dhcp and its daemon, heard by either",
        run: dhcp::greeting,
    },
    Target {
        name: "migrate_node",
        about: "the plugins, lists and records of a node to be migrated",
        run: migrate::node,
    },
    Target {
        name: "static_config",
        about: "static's configuration, through all verbs",
        run: plugins::static_ipam,
    },
    Target {
        name: "network_list",
        about: "a network list or a single configuration",
        run: protocol::network_list,
    },
    Target {
        name: "network_directory",
        about: "a configuration directory with a plugin folder",
        run: runtime::directory,
    },
    Target {
        name: "result",
        about: "a plugin's result or prevResult, converted to each version",
        run: protocol::result,
    },
    Target {
        name: "error_object",
        about: "a failed plugin's standard output",
        run: protocol::error_object,
    },
    Target {
        name: "version_info",
        about: "a plugin's answer to VERSION, and a runtime's question",
        run: protocol::version_info,
    },
    Target { name: "cni_args", about: "CNI_ARGS", run: protocol::cni_args },
    Target {
        name: "capabilities",
        about: "runtimeConfig and capability arguments",
        run: protocol::capabilities,
    },
    Target {
        name: "attachment_record",
        about: "libcni's cache, and intents",
        run: runtime::record,
    },
    Target {
        name: "state_files",
        about: "tuning's backup, host-device's record, resolv.conf, portmap's record",
        run: system::state_files,
    },
    Target {
        name: "proc_tables",
        about: "/proc/locks, mountinfo, stat, boot_id, and `iptables -S`",
        run: system::proc_tables,
    },
    Target { name: "bus_message", about: "answers of firewalld's bus", run: system::bus },
    Target {
        name: "netlink_replies",
        about: "datagrams of any netlink socket",
        run: netlink::replies,
    },
    Target {
        name: "route_messages",
        about: "links, addresses, routes, rules, neighbours",
        run: netlink::route,
    },
    Target {
        name: "tc_messages",
        about: "queueing disciplines, classes and filters",
        run: netlink::tc,
    },
    Target {
        name: "nft_messages",
        about: "tables, chains, rules, sets and elements of nftables",
        run: netlink::nft,
    },
    Target {
        name: "nft_refusals",
        about: "refusals of nftables, explained by the message that they are about",
        run: netlink::refusal,
    },
    Target { name: "conntrack_messages", about: "tracked connections", run: netlink::conntrack },
];

/// The target of this name.
pub fn target(name: &str) -> Option<Target> {
    TARGETS.iter().copied().find(|target| target.name == name)
}

/// Makes the program that libFuzzer calls for one target.
#[macro_export]
macro_rules! program {
    ($name:literal) => {
        libfuzzer_sys::fuzz_target!(|data: &[u8]| {
            if let Some(target) = $crate::target($name) {
                (target.run)(data);
            }
        });
    };
}
