//! Printing results, in the order and form the Go implementation prints, so
//! that whoever compares or reads them by eye sees no difference: in 1.x keys
//! in alphabetical order and `dns` only when set, in 0.x in their order of old
//! and `dns` always.

use super::newest::{CniResult, Dns, Interface, IpConfig, Route};
use super::older::{MiddleResult, OldestIp, OldestResult};
use super::{Shape, VersionedResult};
use crate::json::Writer;

pub(super) fn pretty(result: &VersionedResult) -> String {
    print(result, Writer::pretty())
}

pub(super) fn compact(result: &VersionedResult) -> String {
    print(result, Writer::compact())
}

fn print(result: &VersionedResult, mut writer: Writer) -> String {
    let writing = &mut writer;
    writing.begin_object();
    writing.key("cniVersion").string(result.version.as_str());
    match &result.shape {
        Shape::Newest(shape) => newest(writing, shape),
        Shape::Middle(shape) => middle(writing, shape),
        Shape::Oldest(shape) => oldest(writing, shape),
    }
    writing.end_object();
    writer.finish()
}

fn newest(writer: &mut Writer, result: &CniResult) {
    if !result.dns.is_empty() {
        writer.key("dns").begin_object();
        text(writer, "domain", result.dns.domain.as_deref());
        writer.strings("nameservers", &result.dns.nameservers);
        writer.strings("options", &result.dns.options);
        writer.strings("search", &result.dns.search);
        writer.end_object();
    }
    list(writer, "interfaces", &result.interfaces, |writer, interface: &Interface| {
        text(writer, "mac", interface.mac.as_deref());
        number(writer, "mtu", interface.mtu.filter(|mtu| *mtu != 0));
        writer.key("name").string(&interface.name);
        text(writer, "pciID", interface.pci_id.as_deref());
        text(writer, "sandbox", interface.sandbox.as_deref());
        text(writer, "socketPath", interface.socket_path.as_deref());
    });
    list(writer, "ips", &result.ips, |writer, ip: &IpConfig| {
        writer.key("address").display(ip.address);
        if let Some(gateway) = ip.gateway {
            writer.key("gateway").display(gateway);
        }
        interface_index(writer, ip);
    });
    list(writer, "routes", &result.routes, |writer, route: &Route| {
        number(writer, "advmss", route.advmss.filter(|value| *value != 0));
        writer.key("dst").display(route.dst);
        if let Some(gw) = route.gw {
            writer.key("gw").display(gw);
        }
        number(writer, "mtu", route.mtu.filter(|value| *value != 0));
        number(writer, "priority", route.priority.filter(|value| *value != 0));
        number(writer, "scope", route.scope);
        number(writer, "table", route.table);
    });
}

fn middle(writer: &mut Writer, result: &MiddleResult) {
    list(writer, "interfaces", &result.interfaces, |writer, interface: &Interface| {
        writer.key("name").string(&interface.name);
        text(writer, "mac", interface.mac.as_deref());
        text(writer, "sandbox", interface.sandbox.as_deref());
    });
    list(writer, "ips", &result.ips, |writer, ip| {
        writer.key("version").string(&ip.version);
        interface_index(writer, &ip.config);
        writer.key("address").display(ip.config.address);
        if let Some(gateway) = ip.config.gateway {
            writer.key("gateway").display(gateway);
        }
    });
    older_routes(writer, &result.routes);
    older_dns(writer, &result.dns);
}

fn oldest(writer: &mut Writer, result: &OldestResult) {
    oldest_ip(writer, "ip4", result.ip4.as_ref());
    oldest_ip(writer, "ip6", result.ip6.as_ref());
    older_dns(writer, &result.dns);
}

fn oldest_ip(writer: &mut Writer, key: &str, ip: Option<&OldestIp>) {
    let Some(ip) = ip else { return };
    writer.key(key).begin_object();
    writer.key("ip").display(ip.ip);
    if let Some(gateway) = ip.gateway {
        writer.key("gateway").display(gateway);
    }
    older_routes(writer, &ip.routes);
    writer.end_object();
}

fn older_routes(writer: &mut Writer, routes: &[Route]) {
    list(writer, "routes", routes, |writer, route: &Route| {
        writer.key("dst").display(route.dst);
        if let Some(gw) = route.gw {
            writer.key("gw").display(gw);
        }
        number(writer, "mtu", route.mtu.filter(|value| *value != 0));
        number(writer, "advmss", route.advmss.filter(|value| *value != 0));
        number(writer, "priority", route.priority.filter(|value| *value != 0));
        number(writer, "table", route.table);
        number(writer, "scope", route.scope);
    });
}

fn older_dns(writer: &mut Writer, dns: &Dns) {
    writer.key("dns").begin_object();
    writer.strings("nameservers", &dns.nameservers);
    text(writer, "domain", dns.domain.as_deref());
    writer.strings("search", &dns.search);
    writer.strings("options", &dns.options);
    writer.end_object();
}

fn interface_index(writer: &mut Writer, ip: &IpConfig) {
    // An index beyond u64 can't exist: usize has at most 64 bits.
    number(writer, "interface", ip.interface.and_then(|index| u64::try_from(index).ok()));
}

fn list<T>(writer: &mut Writer, key: &str, entries: &[T], print: impl Fn(&mut Writer, &T)) {
    if entries.is_empty() {
        return;
    }
    writer.key(key).begin_array();
    for entry in entries {
        writer.begin_object();
        print(writer, entry);
        writer.end_object();
    }
    writer.end_array();
}

fn text(writer: &mut Writer, key: &str, value: Option<&str>) {
    if let Some(value) = value.filter(|value| !value.is_empty()) {
        writer.key(key).string(value);
    }
}

fn number(writer: &mut Writer, key: &str, value: Option<impl Into<i128>>) {
    if let Some(value) = value {
        writer.key(key).integer(value);
    }
}
