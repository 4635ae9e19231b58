//! `dhcp`: addresses of the network's own DHCP server.
//!
//! The plugin keeps nothing itself: a daemon (`dhcp daemon`, the crate
//! `podwire-dhcp`) gets the leases, renews them while containers run and gives
//! them back. Every call to it ends by a deadline. Where the daemon doesn't run,
//! ADD and CHECK fail, STATUS says so with code 50, and DEL succeeds: it leaves
//! a wish on the disk, which the daemon fulfils when it's back.

mod config;

use std::time::Duration;

use ipnet::IpNet;
use podwire_dhcp::call::call;
use podwire_dhcp::daemon::attachment_half;
use podwire_dhcp::key::Key;
use podwire_dhcp::protocol::{Allocate, Call, Reply};
use podwire_dhcp::store::Store;
use podwire_dhcp::terms::Terms;
use podwire_plugin::{Attachment, DRIFT, Description, OwnerMark, Plugin, Request, Role, Undo};
use podwire_spec::Error;
use podwire_spec::error::ErrorCode;
use podwire_spec::request::ValidAttachments;
use podwire_spec::result::{CniResult, Dns, IpConfig, Route};

use config::{Config, Daemon};

/// How long an ADD waits at most. The daemon gives up sooner (its flag
/// `-resendtimeout`) and then says why.
const PATIENCE: Duration = Duration::from_mins(10);

/// Scope of a route to what is on the link (`rt_scope_t`, linux/rtnetlink.h).
const SCOPE_LINK: u32 = 253;

/// The `dhcp` IPAM plugin.
#[derive(Debug, Clone, Copy)]
pub struct Dhcp;

impl Plugin for Dhcp {
    fn description(&self) -> Description {
        Description::new("dhcp", Role::Ipam)
    }

    fn add<'a>(
        &'a self,
        request: &'a Request<'a>,
        attachment: &'a Attachment,
        undo: &mut Undo<'a>,
    ) -> Result<CniResult, Error> {
        let config = Config::parse(request)?;
        let key = Key::from(&attachment.key);
        let allocate = Allocate {
            netns: config::absolute(&attachment.sandbox_text())?,
            client: config.client.of(&key)?,
            key: key.clone(),
            requested: config.requested,
            provided: config.provided,
            broadcast: config.broadcast,
            priority: config.priority,
            patience: u64::try_from(PATIENCE.as_millis()).unwrap_or(u64::MAX),
        };
        let daemon = config.daemon;
        let ask = Call::Allocate(Box::new(allocate));
        let reply = match call(&daemon.socket, &ask, PATIENCE) {
            // It was restarted: the next one may listen already, and what the
            // one before it has agreed to is on the disk.
            Err(error) if error.is_interrupted() => call(&daemon.socket, &ask, PATIENCE)?,
            other => other?,
        };
        let Reply::Lease(terms) = reply else { return Err(unexpected(reply)) };
        let address = terms.address;
        undo.push(format!("the lease of {address}"), move || release(&daemon, &key));
        result(&terms, config.priority)
    }

    /// Needs nothing of the configuration but where the daemon is, and not even
    /// the daemon.
    fn del(&self, request: &Request<'_>, attachment: &Attachment) -> Result<(), Error> {
        release(&Daemon::of(request.config)?, &Key::from(&attachment.key))
    }

    /// The lease that the daemon holds must be the one in the result. Nothing
    /// is acquired.
    fn check(&self, request: &Request<'_>, attachment: &Attachment) -> Result<(), Error> {
        let daemon = Daemon::of(request.config)?;
        let key = Key::from(&attachment.key);
        let drifted = |what: String| {
            Err(Error::new(DRIFT, format!("dhcp: {what}"))
                .with_details("detach the container and attach it again (DEL, then ADD)"))
        };
        match call(&daemon.socket, &Call::Look(key.clone()), Duration::ZERO)? {
            Reply::Lease(terms) => {
                let Some(previous) = request.prev_result()? else { return Ok(()) };
                let held = |ip: &IpConfig| ip.address.addr() == terms.address;
                if previous.ips.is_empty() || previous.ips.iter().any(held) {
                    return Ok(());
                }
                let had: Vec<_> = previous.ips.iter().map(|ip| ip.address.to_string()).collect();
                drifted(format!(
                    "the lease of {key} is {} now, and the result has {}",
                    terms.address,
                    had.join(", ")
                ))
            }
            Reply::Unknown => drifted(format!("the daemon holds no lease for {key}")),
            other => Err(unexpected(other)),
        }
    }

    fn status(&self, request: &Request<'_>) -> Result<(), Error> {
        let daemon = Daemon::of(request.config)?;
        let unavailable = |error: Error| Error { code: ErrorCode::Unavailable, ..error };
        match call(&daemon.socket, &Call::Status, Duration::ZERO) {
            Ok(Reply::Done) => Ok(()),
            Ok(other) => Err(unavailable(unexpected(other))),
            Err(error) => Err(unavailable(error.into())),
        }
    }

    fn gc(&self, request: &Request<'_>, valid: &ValidAttachments) -> Result<(), Error> {
        let daemon = Daemon::of(request.config)?;
        let network = &request.config.name;
        let live = valid.as_slice().iter();
        let live = live.map(|one| OwnerMark::new(network, &one.container_id, &one.ifname));
        let valid: Vec<_> = live.map(|mark| attachment_half(&mark)).collect();
        let collect = Call::Collect { network: network.to_string(), valid: valid.clone() };
        match call(&daemon.socket, &collect, Duration::ZERO) {
            Ok(Reply::Done) => Ok(()),
            Ok(other) => Err(unexpected(other)),
            Err(error) => {
                log::warn!("{error}; what is stale is given back when it's there again");
                wish_for_stale(&daemon, network, &valid)
            }
        }
    }
}

/// Gives a lease back, or leaves the wish that it be.
fn release(daemon: &Daemon, key: &Key) -> Result<(), Error> {
    let ask = || call(&daemon.socket, &Call::Release(key.clone()), Duration::ZERO);
    let failed = |error: podwire_sys::PathError| Error::io(error.to_string());
    let reply = match ask() {
        Ok(reply) => reply,
        // Also where the Go daemon listens: it doesn't hold our leases, and a
        // container must be removable.
        Err(error) => {
            let (store, mark) = (Store::new(&daemon.data), key.mark()?);
            if !error.is_silent() && !store.may_hold(&mark) {
                return Ok(());
            }
            store.wish(key).map_err(failed)?;
            // It may have come up meanwhile, too late to find the wish.
            let Ok(reply) = ask() else {
                log::warn!("{error}; the lease of {key} is given back when it's there again");
                return Ok(());
            };
            store.forget_wish(&mark).map_err(failed)?;
            reply
        }
    };
    match reply {
        Reply::Done | Reply::Unknown => Ok(()),
        other => Err(unexpected(other)),
    }
}

/// Leaves wishes for the leases of a network that no attachment has which
/// lives.
fn wish_for_stale(
    daemon: &Daemon,
    network: &podwire_spec::id::NetworkName,
    valid: &[String],
) -> Result<(), Error> {
    let store = Store::new(&daemon.data);
    let failed = |error: podwire_sys::PathError| Error::io(error.to_string());
    let half = OwnerMark::network_half(network);
    for (mark, record) in store.load().map_err(failed)?.good {
        if mark.network == half && !valid.contains(&attachment_half(&mark)) {
            store.wish(&record.key).map_err(failed)?;
        }
    }
    Ok(())
}

/// What the main plugin is to set up.
fn result(terms: &Terms, priority: Option<u32>) -> Result<CniResult, Error> {
    let network = terms.network().ok_or_else(|| {
        Error::internal(format!("the server gave {}/{}", terms.address, terms.prefix))
    })?;
    let mut ip = IpConfig::new(IpNet::V4(network));
    ip.gateway = terms.routers.first().copied().map(Into::into);
    let route = |route: &podwire_dhcp::message::Route| {
        let mut made = Route::new(IpNet::V4(route.network()?), route.gateway.map(Into::into));
        made.priority = priority;
        made.mtu = terms.mtu.map(u32::from);
        if route.gateway.is_none() {
            made.scope = Some(SCOPE_LINK);
        }
        Some(made)
    };
    Ok(CniResult {
        ips: vec![ip],
        routes: terms.routes.iter().filter_map(route).collect(),
        dns: Dns {
            nameservers: terms.name_servers.iter().map(ToString::to_string).collect(),
            domain: terms.domain.clone(),
            search: terms.search.clone(),
            options: Vec::new(),
        },
        ..CniResult::default()
    })
}

/// The error that the daemon gave, or that its answer is.
fn unexpected(reply: Reply) -> Error {
    match reply {
        Reply::Failed { code, message, details } => {
            Error::new(ErrorCode::from_number(code), message).with_details(details)
        }
        other => {
            Error::internal(format!("the DHCP daemon's answer has no meaning here: {other:?}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_has_what_the_server_gave() {
        let route = |prefix, gateway: Option<[u8; 4]>| podwire_dhcp::message::Route {
            destination: [10, 9, 0, 0].into(),
            prefix,
            gateway: gateway.map(Into::into),
        };
        let terms = Terms {
            address: [10, 1, 0, 9].into(),
            prefix: 16,
            server: [10, 1, 0, 1].into(),
            lease: 60,
            renewal: 30,
            rebinding: 50,
            routers: vec![[10, 1, 0, 1].into()],
            routes: vec![route(24, Some([10, 1, 0, 1])), route(32, None)],
            name_servers: vec![[10, 1, 0, 2].into()],
            domain: Some("example.org".into()),
            search: vec!["a.example.org".into()],
            mtu: Some(1400),
        };
        let result = result(&terms, Some(50)).unwrap();
        assert_eq!(result.ips[0].address.to_string(), "10.1.0.9/16");
        assert_eq!(result.ips[0].gateway.unwrap().to_string(), "10.1.0.1");
        let [routed, on_link] = result.routes.as_slice() else { panic!("{result:?}") };
        assert_eq!((routed.priority, routed.mtu, routed.scope), (Some(50), Some(1400), None));
        assert_eq!((on_link.gw, on_link.scope), (None, Some(253)));
        assert_eq!(result.dns.nameservers, ["10.1.0.2"]);
        assert_eq!(result.dns.search, ["a.example.org"]);
    }
}
