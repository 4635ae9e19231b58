//! Port mappings of other containers, written as each subject writes them:
//! two a container, laid in bulk.

use std::fmt::Write as _;

use crate::Outcome;
use crate::bench::Bench;
use crate::subject::Subject;

/// The first port of the host that a neighbour has.
const FIRST: u32 = 20_000;

/// How Go's portmap keeps mappings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Backend {
    /// A chain a container in `ip nat`.
    Iptables,
    /// A rule a mapping in `ip cni_hostport`.
    Nftables,
}

impl Backend {
    /// The value of portmap's `backend`.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Iptables => "iptables",
            Self::Nftables => "nftables",
        }
    }
}

/// Lays `count` mappings of others. The subject's own chains and maps must be
/// there: one ADD of it went before.
pub(super) fn lay(bench: &Bench<'_>, subject: Subject, backend: Backend, count: u32) -> Outcome {
    match (subject, backend) {
        (Subject::Podwire | Subject::Floor, _) => elements(bench, subject, count),
        (_, Backend::Iptables) => chains(bench, count),
        (_, Backend::Nftables) => rules(bench, count),
    }
}

fn neighbour(number: u32) -> (u32, String, u32) {
    let container = number / 2;
    let address = format!("10.9.{}.{}", container / 250, container % 250 + 2);
    (FIRST + number, address, 80 + number % 2)
}

fn load(bench: &Bench<'_>, name: &str, script: &str, command: &[&str]) -> Outcome {
    let path = bench.world.write(name, script);
    let path = path.display().to_string();
    let output = bench.world.try_exec(&[command, &[path.as_str()]].concat());
    if output.code == 0 { Ok(()) } else { Err(format!("{name}: {}", output.stderr)) }
}

/// Elements of our maps, and of the floor's.
fn elements(bench: &Bench<'_>, subject: Subject, count: u32) -> Outcome {
    let is_floor = subject == Subject::Floor;
    let table = if is_floor { "floor" } else { "podwire_hostports" };
    let mut script = String::new();
    for number in 0..count {
        let (port, address, inner) = neighbour(number);
        let comment = if is_floor {
            String::new()
        } else {
            format!("comment \"0000000000000000-{number:016x} others/c{number}/eth0\" ")
        };
        let _ = writeln!(
            script,
            "add element ip {table} ports {{ tcp . {port} {comment}: {address} . {inner} }}"
        );
        if !is_floor {
            let _ = writeln!(
                script,
                "add element ip {table} owners {{ 0:0:0:0:0:0:{:x}:{:x} . 0 comment \"1 \
                 others/c{number}/eth0 to={address} tcp:{port}:{inner}\" : goto hostports }}",
                number >> 16,
                number & 0xffff
            );
        }
    }
    load(bench, "elements.nft", &script, &["nft", "-f"])
}

/// A chain for each container, and a rule that leads to it.
fn chains(bench: &Bench<'_>, count: u32) -> Outcome {
    let mut script = String::from("*nat\n");
    let chain = |container: u32| format!("CNI-DN-{container:021x}");
    for container in 0..count / 2 {
        let _ = writeln!(script, ":{} - [0:0]", chain(container));
    }
    for container in 0..count / 2 {
        let (first, ..) = neighbour(container * 2);
        let chain = chain(container);
        let _ = writeln!(
            script,
            "-A CNI-HOSTPORT-DNAT -p tcp -m comment --comment \"dnat name: \\\"others\\\" id: \
             \\\"c{container}\\\"\" -m multiport --dports {first},{} -j {chain}",
            first + 1
        );
        for number in [container * 2, container * 2 + 1] {
            let (port, address, inner) = neighbour(number);
            for source in ["10.9.0.0/16", "127.0.0.1/32"] {
                let _ = writeln!(
                    script,
                    "-A {chain} -s {source} -p tcp -m tcp --dport {port} -j CNI-HOSTPORT-SETMARK"
                );
            }
            let _ = writeln!(
                script,
                "-A {chain} -p tcp -m tcp --dport {port} -j DNAT --to-destination {address}:{inner}"
            );
        }
    }
    script.push_str("COMMIT\n");
    load(bench, "chains.rules", &script, &["iptables-restore", "--noflush"])
}

/// A rule for each mapping.
fn rules(bench: &Bench<'_>, count: u32) -> Outcome {
    let mut script = String::new();
    for number in 0..count {
        let (port, address, inner) = neighbour(number);
        let _ = writeln!(
            script,
            "add rule ip cni_hostport hostports tcp dport {port} dnat to {address}:{inner} \
             comment \"c{}\"",
            number / 2
        );
    }
    load(bench, "rules.nft", &script, &["nft", "-f"])
}

/// Takes all rules of a subject away.
pub(super) fn clear(bench: &Bench<'_>, subject: Subject, backend: Backend) {
    let tables: &[&[&str]] = match (subject, backend) {
        (Subject::Podwire, _) => &[&["ip", "podwire_hostports"], &["ip6", "podwire_hostports"]],
        (Subject::Floor, _) => &[&["ip", "floor"]],
        (_, Backend::Iptables) => &[&["ip", "nat"], &["ip6", "nat"]],
        (_, Backend::Nftables) => &[&["ip", "cni_hostport"], &["ip6", "cni_hostport"]],
    };
    for table in tables {
        bench.world.try_exec(&[&["nft", "delete", "table"], *table].concat());
    }
}
