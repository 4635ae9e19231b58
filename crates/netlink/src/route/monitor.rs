//! Waiting for the kernel, on its notifications rather than by sleeping.

use std::fmt;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use crate::attribute::read_u32;
use crate::error::{Cause, Error, Subject};
use crate::exchange::Event;
use crate::route::RouteSocket;
use crate::route::address::Address;
use crate::route::device::Device;
use crate::route::link::{Link, LinkFlags, OperationalState};
use crate::route::link_kind::LinkKind;
use crate::socket::{Protocol, Socket};

/// Multicast groups (`enum rtnetlink_groups`).
const RTNLGRP_LINK: u32 = 1;
const RTNLGRP_IPV6_IFADDR: u32 = 9;

/// What to hear about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Topic {
    /// Links that come, change and go.
    Links,
    /// IPv6 addresses that come, settle and go.
    Ipv6Addresses,
}

/// A socket that hears the kernel's notifications about its namespace.
///
/// Open it before the change to be waited for, or look at the state once after
/// opening, as [`wait`](Self::wait) does: then nothing is missed.
#[derive(Debug)]
pub struct Monitor {
    socket: Socket,
}

impl Monitor {
    /// Hears about topics in the thread's current network namespace.
    ///
    /// # Errors
    /// The process is out of descriptors or memory.
    pub fn open(topics: &[Topic]) -> Result<Self, Error> {
        let socket = Socket::open(Protocol::Route)?;
        for topic in topics {
            let (group, name) = match topic {
                Topic::Links => (RTNLGRP_LINK, "links"),
                Topic::Ipv6Addresses => (RTNLGRP_IPV6_IFADDR, "IPv6 addresses"),
            };
            socket
                .join(group)
                .map_err(|cause| Subject::new("subscribing to", &name).error(cause))?;
        }
        Ok(Self { socket })
    }

    /// Calls `check` now, and again after each notification about the device
    /// (any device where it has no index), until it returns `Some`; `None` when
    /// the limit passed first.
    ///
    /// # Errors
    /// `check` failed, or the socket did.
    pub fn wait<T>(
        &mut self,
        device: Device<'_>,
        limit: Duration,
        mut check: impl FnMut() -> Result<Option<T>, Error>,
    ) -> Result<Option<T>, Error> {
        let until = Instant::now() + limit;
        loop {
            if let Some(value) = check()? {
                return Ok(Some(value));
            }
            let heard = self.socket.converse(until, |event| {
                let relevant = match event {
                    // Whatever was lost may have been about the device.
                    Event::Lost => true,
                    // struct ifinfomsg and ifaddrmsg both have the index here.
                    Event::Reply(reply) => {
                        device.index().is_none_or(|index| read_u32(reply.payload, 4) == Some(index))
                    }
                };
                Ok(if relevant { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
            });
            match heard {
                Ok(()) => {}
                Err(Cause::Deadline(_)) => return check(),
                Err(cause) => return Err(Subject::new("waiting for", &device).error(cause)),
            }
        }
    }
}

/// Whether a link can pass packets, as far as its driver will ever tell.
fn is_ready(link: &Link) -> bool {
    // These tell, but only after a moment: a new one is unknown at first on
    // older kernels (seen with 6.1).
    let tells = matches!(
        link.kind,
        Some(
            LinkKind::Veth
                | LinkKind::Bridge(_)
                | LinkKind::Macvlan { .. }
                | LinkKind::Ipvlan { .. }
                | LinkKind::Vlan { .. }
        )
    );
    match link.operational_state {
        OperationalState::Up => true,
        OperationalState::Unknown => !tells && link.flags.contains(LinkFlags::LOWER_UP),
        _ => false,
    }
}

/// How waiting for addresses ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Settled {
    /// All can be used.
    All,
    /// These are someone else's too.
    Duplicate(Vec<Address>),
    /// These were still being checked when the limit passed.
    Tentative(Vec<Address>),
}

impl fmt::Display for Settled {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, addresses) = match self {
            Self::All => return formatter.write_str("all addresses are usable"),
            Self::Duplicate(addresses) => ("in use elsewhere", addresses),
            Self::Tentative(addresses) => ("still being checked for duplicates", addresses),
        };
        let names: Vec<_> = addresses.iter().map(|entry| entry.address.to_string()).collect();
        write!(formatter, "{what}: {}", names.join(", "))
    }
}

impl RouteSocket {
    /// Waits until a link's operational state is `Up`, or `Unknown` with carrier
    /// for drivers that never say; returns the link as it was seen last, `None` when it
    /// is gone.
    ///
    /// The socket must be of the thread's current namespace.
    ///
    /// # Errors
    /// An exchange failed. A limit that passed is none: look at the state.
    pub fn wait_operational(
        &mut self,
        device: Device<'_>,
        limit: Duration,
    ) -> Result<Option<Link>, Error> {
        let mut monitor = Monitor::open(&[Topic::Links])?;
        let mut last = None;
        monitor.wait(device, limit, || {
            last = match device.index() {
                Some(index) => self.link_by_index(index)?,
                None => self.link_by_name(device.name())?,
            };
            Ok(last.as_ref().is_none_or(is_ready).then_some(()))
        })?;
        Ok(last)
    }

    /// Waits until the duplicate check of a link's IPv6 addresses has ended.
    ///
    /// The socket must be of the thread's current namespace.
    ///
    /// # Errors
    /// An exchange failed. What was found, and that the limit passed, is no
    /// error but the answer.
    pub fn wait_settled(&mut self, device: Device<'_>, limit: Duration) -> Result<Settled, Error> {
        // Mostly there is nothing to wait for, and no need of a second socket.
        let look = |socket: &mut Self| -> Result<Settled, Error> {
            let addresses = socket.addresses_of(device)?;
            let pick = |test: fn(&Address) -> bool| {
                addresses.iter().filter(|entry| test(entry)).cloned().collect::<Vec<_>>()
            };
            let (duplicate, tentative) = (pick(Address::is_duplicate), pick(Address::is_tentative));
            Ok(match (duplicate.is_empty(), tentative.is_empty()) {
                (false, _) => Settled::Duplicate(duplicate),
                (true, false) => Settled::Tentative(tentative),
                (true, true) => Settled::All,
            })
        };
        let first = look(self)?;
        if !matches!(first, Settled::Tentative(_)) {
            return Ok(first);
        }
        let mut monitor = Monitor::open(&[Topic::Ipv6Addresses])?;
        let mut last = first;
        monitor.wait(device, limit, || {
            last = look(self)?;
            Ok((!matches!(last, Settled::Tentative(_))).then_some(()))
        })?;
        Ok(last)
    }
}
