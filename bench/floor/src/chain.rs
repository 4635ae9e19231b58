//! What chained plugins add to an interface.

use podwire_netlink::route::link_change::{ChangeLink, DeleteLink};
use podwire_netlink::route::link_new::{End, NewKind, NewLink};
use podwire_netlink::route::tc::filter::{Match, Verdict};
use podwire_netlink::route::tc::{AddQdisc, AddRedirect, Handle, QdiscKind, Tbf};
use podwire_netlink::route::{Device, RouteSocket};
use podwire_sys::netns::NetNs;
use podwire_sys::sysctl;

use crate::{Outcome, links, ports};

/// 80 Mbit/s, as the benchmarks give it to the `bandwidth` plugin.
const RATE: u64 = 10_000_000;
const BURST: u32 = 100_000;

/// The extras of an attachment that has its interface already.
pub(crate) fn add(netns: &NetNs, host_end: &str, address: &str, extras: &[&str]) -> Outcome {
    let has = |name| extras.contains(&name);
    if has("masquerade") || has("ports") {
        ports::add(address, has("ports"), has("masquerade"))?;
    }
    if has("limits") {
        limits(host_end)?;
    }
    if has("tuning") {
        let write = || {
            sysctl::write(&["net", "core", "somaxconn"], "500")?;
            Ok::<_, sysctl::SysctlError>(())
        };
        netns.run(write)??;
        let mut inside = netns.run(RouteSocket::open)??;
        inside.apply(&ChangeLink::new(Device::named("eth0")).mtu(1400))?;
    }
    Ok(())
}

/// Interface and extras gone.
pub(crate) fn remove(host_end: &str, address: &str, extras: &[&str]) -> Outcome {
    let has = |name| extras.contains(&name);
    let is_translated = has("masquerade") || has("ports");
    let _open = is_translated
        .then(|| ports::remove(address, has("ports"), has("masquerade")))
        .transpose()?;
    let mut host = RouteSocket::open()?;
    if has("limits") {
        let ifb = ifb_name(host_end);
        return Ok(host.apply_all(&[
            &DeleteLink(Device::named(host_end)),
            &DeleteLink(Device::named(&ifb)),
        ])?);
    }
    Ok(host.apply(&DeleteLink(Device::named(host_end)))?)
}

/// A token bucket each way: on the host end, and on an ifb that all that comes
/// in by the host end is sent to.
fn limits(host_end: &str) -> Outcome {
    let bucket = || QdiscKind::Tbf(Tbf::new(RATE, BURST, 25_000));
    let root = Handle::new(1, 0);
    let mut host = RouteSocket::open()?;
    let name = ifb_name(host_end);
    let ifb = host.create_link(&NewLink::new(End::new(&name), NewKind::Ifb).up())?;
    let end = links::link(&mut host, host_end)?;
    let redirect = AddRedirect {
        device: end.device(),
        parent: Handle::new(0xffff, 0),
        priority: 1,
        matching: Match::Everything,
        verdict: Verdict::RedirectTo(ifb.device()),
    };
    Ok(host.apply_all(&[
        &AddQdisc::root(end.device(), root, bucket()),
        &AddQdisc::root(ifb.device(), root, bucket()),
        &AddQdisc::ingress(end.device()),
        &redirect,
    ])?)
}

fn ifb_name(host_end: &str) -> String {
    host_end.replacen('v', "i", 1)
}
