//! How each server is configured and started.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use super::server::Settings;

/// A DHCP server that people run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Software {
    /// dnsmasq.
    Dnsmasq,
    /// Kea's `kea-dhcp4`.
    Kea,
    /// The `dhcpd` of isc-dhcp-server.
    Isc,
    /// The `udhcpd` of busybox.
    Udhcpd,
}

impl Software {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Dnsmasq, Self::Kea, Self::Isc, Self::Udhcpd];

    /// Whether a line of the log says that it serves now.
    pub fn is_started(self, line: &str) -> bool {
        match self {
            Self::Dnsmasq => line.contains("DHCP, IP range"),
            Self::Kea => line.contains("DHCP4_STARTED"),
            Self::Isc => line.contains("Server starting service."),
            Self::Udhcpd => line.contains("started, v"),
        }
    }

    /// The command that serves these settings on `eth0`, with all files in
    /// `directory`.
    pub(super) fn command(self, directory: &Path, settings: &Settings) -> Command {
        match self {
            Self::Dnsmasq => dnsmasq(directory, settings),
            Self::Kea => kea(directory, settings),
            Self::Isc => isc(directory, settings),
            Self::Udhcpd => udhcpd(directory, settings),
        }
    }
}

/// Plays the same scene with each server at once, each in a thread and so in a
/// world of its own: they mostly wait. Panics when any of them did, naming it.
#[track_caller]
pub fn with_every_server(scene: impl Fn(Software) + Sync) {
    let scene = &scene;
    let failed = std::thread::scope(|threads| {
        let play = |software| {
            let thread = std::thread::Builder::new().name(format!("{software:?}"));
            (software, thread.spawn_scoped(threads, move || scene(software)).unwrap())
        };
        // All start before any is waited for.
        let playing = Software::ALL.map(play);
        let ended = playing.map(|(software, thread)| (software, thread.join().is_err()));
        ended.into_iter().filter(|(_, failed)| *failed).map(|(name, _)| name).collect::<Vec<_>>()
    });
    assert!(failed.is_empty(), "failed with {failed:?}; the reasons stand above");
}

fn dnsmasq(directory: &Path, settings: &Settings) -> Command {
    let (first, last) = settings.range;
    // Two minutes are the least; asked for less, it takes two minutes.
    let lease = settings.lease.as_secs().max(120);
    let mut command = Command::new("/usr/sbin/dnsmasq");
    command.args(["--keep-in-foreground", "--conf-file=/dev/null", "--port=0", "--user=root"]);
    command.args(["--interface=eth0", "--bind-interfaces", "--log-dhcp", "--log-facility=-"]);
    command.args(["--dhcp-authoritative", "--no-ping", "--pid-file="]);
    command.arg(format!("--dhcp-range={first},{last},{lease}s"));
    command.arg(format!("--dhcp-leasefile={}", directory.join("leases").display()));
    // Sent whether asked for or not, as the other servers do.
    command.arg(format!("--dhcp-option-force=58,{}", settings.renew.as_secs()));
    command.arg(format!("--dhcp-option-force=59,{}", settings.rebind.as_secs()));
    match settings.router {
        Some(router) => command.arg(format!("--dhcp-option=3,{router}")),
        None => command.arg("--dhcp-option=3"),
    };
    if !settings.routes.is_empty() {
        let mut option = "--dhcp-option=121".to_owned();
        for (destination, gateway) in &settings.routes {
            let _ = write!(option, ",{destination},{gateway}");
        }
        command.arg(option);
    }
    if settings.name_servers.is_empty() {
        command.arg("--dhcp-option=6");
    } else {
        command.arg(format!("--dhcp-option=6,{}", list(&settings.name_servers, ",")));
    }
    if let Some(domain) = settings.domain {
        command.arg(format!("--dhcp-option=15,{domain}"));
    }
    if let Some(mtu) = settings.mtu {
        command.arg(format!("--dhcp-option=26,{mtu}"));
    }
    command
}

fn kea(directory: &Path, settings: &Settings) -> Command {
    let mut options = Vec::new();
    let mut option = |name: &str, data: String| {
        options.push(json!({"name": name, "data": data}));
    };
    if let Some(router) = settings.router {
        option("routers", router.to_string());
    }
    if !settings.name_servers.is_empty() {
        option("domain-name-servers", list(&settings.name_servers, ", "));
    }
    if let Some(domain) = settings.domain {
        option("domain-name", domain.to_owned());
    }
    if let Some(mtu) = settings.mtu {
        option("interface-mtu", mtu.to_string());
    }
    if !settings.routes.is_empty() {
        // Kea 2.2 has no words for it: a hexadecimal string.
        let bytes = hexadecimal(&classless(settings), "");
        options.push(json!({"code": 121, "csv-format": false, "data": bytes}));
    }
    let (first, last) = settings.range;
    let config: Value = json!({"Dhcp4": {
        "interfaces-config": {"interfaces": ["eth0"]},
        "lease-database": {
            "type": "memfile", "persist": true, "lfc-interval": 0,
            "name": directory.join("leases"),
        },
        "expired-leases-processing": {"reclaim-timer-wait-time": 1},
        "valid-lifetime": settings.lease.as_secs(),
        "renew-timer": settings.renew.as_secs(),
        "rebind-timer": settings.rebind.as_secs(),
        "authoritative": true,
        "option-data": options,
        "subnet4": [{
            "subnet": settings.subnet.to_string(), "id": 1,
            "pools": [{"pool": format!("{first} - {last}")}],
        }],
        "loggers": [{
            "name": "kea-dhcp4", "severity": "DEBUG", "debuglevel": 50,
            "output_options": [{"output": "stdout", "flush": true}],
        }],
    }});
    let file = directory.join("kea.json");
    std::fs::write(&file, format!("{config:#}")).unwrap();
    let mut command = Command::new("/usr/sbin/kea-dhcp4");
    command.arg("-c").arg(file);
    command.env("KEA_PIDFILE_DIR", directory).env("KEA_LOCKFILE_DIR", directory);
    command
}

fn isc(directory: &Path, settings: &Settings) -> Command {
    let (first, last) = settings.range;
    let lease = settings.lease.as_secs();
    let mut config = format!(
        "authoritative;\nping-check false;\nddns-update-style none;\n\
         option classless-routes code 121 = string;\n\
         default-lease-time {lease};\nmax-lease-time {lease};\nmin-lease-time {lease};\n\
         option dhcp-renewal-time {};\noption dhcp-rebinding-time {};\n\
         subnet {} netmask {} {{\n  range {first} {last};\n",
        settings.renew.as_secs(),
        settings.rebind.as_secs(),
        settings.subnet.network(),
        settings.subnet.netmask(),
    );
    if let Some(router) = settings.router {
        let _ = writeln!(config, "  option routers {router};");
    }
    if !settings.name_servers.is_empty() {
        let servers = list(&settings.name_servers, ", ");
        let _ = writeln!(config, "  option domain-name-servers {servers};");
    }
    if let Some(domain) = settings.domain {
        let _ = writeln!(config, "  option domain-name \"{domain}\";");
    }
    if let Some(mtu) = settings.mtu {
        let _ = writeln!(config, "  option interface-mtu {mtu};");
    }
    if !settings.routes.is_empty() {
        let bytes = hexadecimal(&classless(settings), ":");
        let _ = writeln!(config, "  option classless-routes {bytes};");
    }
    config.push_str("}\n");
    let file = directory.join("dhcpd.conf");
    std::fs::write(&file, config).unwrap();
    let leases = directory.join("leases");
    if !leases.exists() {
        std::fs::write(&leases, "").unwrap();
    }
    let mut command = Command::new("/usr/sbin/dhcpd");
    command.args(["-4", "-d", "-f", "-cf"]).arg(file).arg("-lf").arg(leases);
    command.arg("-pf").arg(directory.join("dhcpd.pid")).arg("eth0");
    command
}

fn udhcpd(directory: &Path, settings: &Settings) -> Command {
    let (first, last) = settings.range;
    let mut config = format!(
        "start {first}\nend {last}\ninterface eth0\nlease_file {}\npidfile {}\nmin_lease 1\n\
         option subnet {}\noption lease {}\n\
         option 0x3a {:08x}\noption 0x3b {:08x}\n",
        directory.join("leases").display(),
        directory.join("udhcpd.pid").display(),
        settings.subnet.netmask(),
        settings.lease.as_secs(),
        settings.renew.as_secs(),
        settings.rebind.as_secs(),
    );
    if let Some(router) = settings.router {
        let _ = writeln!(config, "option router {router}");
    }
    for server in &settings.name_servers {
        let _ = writeln!(config, "option dns {server}");
    }
    if let Some(domain) = settings.domain {
        let _ = writeln!(config, "option domain {domain}");
    }
    if let Some(mtu) = settings.mtu {
        let _ = writeln!(config, "option mtu {mtu}");
    }
    for (destination, gateway) in &settings.routes {
        let _ = writeln!(config, "option staticroutes {destination} {gateway}");
    }
    let file = directory.join("udhcpd.conf");
    std::fs::write(&file, config).unwrap();
    let leases = directory.join("leases");
    if !leases.exists() {
        std::fs::write(&leases, "").unwrap();
    }
    let mut command = Command::new("/bin/busybox");
    // Looks for other users of an address for 50 ms instead of two seconds.
    command.args(["udhcpd", "-f", "-a", "50", "-I", &settings.own.to_string()]).arg(file);
    command
}

/// Option 121 as it is sent (RFC 3442).
fn classless(settings: &Settings) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (destination, gateway) in &settings.routes {
        let network: ipnet::Ipv4Net = destination.parse().expect("a network");
        let significant = usize::from(network.prefix_len().div_ceil(8));
        bytes.push(network.prefix_len());
        bytes.extend(&network.network().octets()[..significant]);
        bytes.extend(gateway.octets());
    }
    bytes
}

fn hexadecimal(bytes: &[u8], separator: &str) -> String {
    let digits: Vec<_> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    digits.join(separator)
}

fn list(addresses: &[std::net::Ipv4Addr], separator: &str) -> String {
    let words: Vec<_> = addresses.iter().map(ToString::to_string).collect();
    words.join(separator)
}
