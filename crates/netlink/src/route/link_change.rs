//! Changing and deleting links.

use std::fmt;
use std::os::fd::{AsRawFd, BorrowedFd};

use crate::message::Requests;
use crate::route::change::{ACKNOWLEDGED, Change};
use crate::route::device::{Device, MacAddress, encode_name};
use crate::route::link::{
    IFLA_ADDRESS, IFLA_IFALIAS, IFLA_MASTER, IFLA_MTU, IFLA_NET_NS_FD, IFLA_TXQLEN, LinkFlags,
    RTM_DELLINK, RTM_SETLINK, encode_header,
};

/// Longest alias (`IFALIASZ` less the NUL, linux/if.h).
pub const ALIAS_LIMIT: usize = 255;

/// Changes to one link, made in one request (`RTM_SETLINK`): moved to another
/// namespace first, then address, MTU, name, master, flags.
///
/// The kernel undoes none of them when a later one is refused.
#[derive(Debug, Clone)]
pub struct ChangeLink<'a> {
    device: Device<'a>,
    flags: LinkFlags,
    mask: LinkFlags,
    mac: Option<MacAddress>,
    mtu: Option<u32>,
    transmit_queue_length: Option<u32>,
    name: Option<&'a str>,
    alias: Option<&'a str>,
    master: Option<u32>,
    namespace: Option<BorrowedFd<'a>>,
}

impl<'a> ChangeLink<'a> {
    /// Nothing changed yet.
    #[must_use]
    pub const fn new(device: Device<'a>) -> Self {
        Self {
            device,
            flags: LinkFlags::empty(),
            mask: LinkFlags::empty(),
            mac: None,
            mtu: None,
            transmit_queue_length: None,
            name: None,
            alias: None,
            master: None,
            namespace: None,
        }
    }

    /// Switches it on.
    #[must_use]
    pub fn up(self) -> Self {
        self.flag(LinkFlags::UP, true)
    }

    /// Switches it off; the kernel forgets its routes and most IPv6 addresses.
    #[must_use]
    pub fn down(self) -> Self {
        self.flag(LinkFlags::UP, false)
    }

    /// Receives everything, or no longer for this reason.
    #[must_use]
    pub fn promiscuous(self, on: bool) -> Self {
        self.flag(LinkFlags::PROMISCUOUS, on)
    }

    /// Receives all multicast, or no longer for this reason.
    #[must_use]
    pub fn all_multicast(self, on: bool) -> Self {
        self.flag(LinkFlags::ALL_MULTICAST, on)
    }

    fn flag(mut self, flag: LinkFlags, on: bool) -> Self {
        self.mask |= flag;
        self.flags.set(flag, on);
        self
    }

    /// Its Ethernet address.
    #[must_use]
    pub const fn mac(mut self, mac: MacAddress) -> Self {
        self.mac = Some(mac);
        self
    }

    /// Largest packet, in bytes.
    #[must_use]
    pub const fn mtu(mut self, mtu: u32) -> Self {
        self.mtu = Some(mtu);
        self
    }

    /// Length of its transmit queue, in packets.
    #[must_use]
    pub const fn transmit_queue_length(mut self, length: u32) -> Self {
        self.transmit_queue_length = Some(length);
        self
    }

    /// A new name. Old kernels (before 6.3) refuse while the link is up.
    #[must_use]
    pub const fn name(mut self, name: &'a str) -> Self {
        self.name = Some(name);
        self
    }

    /// The administrator's note, at most 255 bytes; empty removes it.
    #[must_use]
    pub const fn alias(mut self, alias: &'a str) -> Self {
        self.alias = Some(alias);
        self
    }

    /// Enslaves it to a bridge or other master, by index.
    #[must_use]
    pub const fn master(mut self, index: u32) -> Self {
        self.master = Some(index);
        self
    }

    /// Frees it of its master.
    #[must_use]
    pub const fn no_master(mut self) -> Self {
        self.master = Some(0);
        self
    }

    /// Moves it to a network namespace. It arrives down, its addresses gone;
    /// the index changes only when it's taken there.
    #[must_use]
    pub const fn namespace(mut self, namespace: BorrowedFd<'a>) -> Self {
        self.namespace = Some(namespace);
        self
    }
}

impl fmt::Display for ChangeLink<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.device)?;
        let mut separator = ": ";
        let mut item = |formatter: &mut fmt::Formatter<'_>, arguments: fmt::Arguments<'_>| {
            let result = write!(formatter, "{separator}{arguments}");
            separator = ", ";
            result
        };
        if self.namespace.is_some() {
            item(formatter, format_args!("move to namespace"))?;
        }
        if let Some(mac) = self.mac {
            item(formatter, format_args!("MAC {mac}"))?;
        }
        if let Some(mtu) = self.mtu {
            item(formatter, format_args!("MTU {mtu}"))?;
        }
        if let Some(length) = self.transmit_queue_length {
            item(formatter, format_args!("transmit queue length {length}"))?;
        }
        if let Some(name) = self.name {
            item(formatter, format_args!("name {name}"))?;
        }
        if let Some(alias) = self.alias {
            item(formatter, format_args!("alias {alias:?}"))?;
        }
        match self.master {
            Some(0) => item(formatter, format_args!("no master"))?,
            Some(index) => item(formatter, format_args!("master {index}"))?,
            None => {}
        }
        for (flag, on, off) in [
            (LinkFlags::UP, "up", "down"),
            (LinkFlags::PROMISCUOUS, "promiscuous", "not promiscuous"),
            (LinkFlags::ALL_MULTICAST, "all multicast", "not all multicast"),
        ] {
            if self.mask.contains(flag) {
                let word = if self.flags.contains(flag) { on } else { off };
                item(formatter, format_args!("{word}"))?;
            }
        }
        Ok(())
    }
}

impl Change for ChangeLink<'_> {
    fn operation(&self) -> &'static str {
        "changing link"
    }

    fn encode(&self, requests: &mut Requests) {
        requests.push(RTM_SETLINK, ACKNOWLEDGED, |body| {
            let index = self.device.index().unwrap_or(0);
            encode_header(body, 0, index, self.flags.bits(), self.mask.bits());
            match self.name {
                // IFLA_IFNAME either finds the link or renames it.
                Some(_) if index == 0 => body.fail("renaming a link needs its index"),
                Some(name) => encode_name(body, name),
                None => self.device.encode_name(body),
            }
            if let Some(namespace) = self.namespace {
                body.u32(IFLA_NET_NS_FD, namespace.as_raw_fd().cast_unsigned());
            }
            if let Some(mac) = self.mac {
                body.attribute(IFLA_ADDRESS, &mac.0);
            }
            if let Some(mtu) = self.mtu {
                body.u32(IFLA_MTU, mtu);
            }
            if let Some(length) = self.transmit_queue_length {
                body.u32(IFLA_TXQLEN, length);
            }
            if let Some(index) = self.master {
                body.u32(IFLA_MASTER, index);
            }
            match self.alias {
                Some(alias) if alias.len() > ALIAS_LIMIT => {
                    body.fail("a link's alias is longer than 255 bytes");
                }
                Some(alias) => body.string(IFLA_IFALIAS, alias),
                None => {}
            }
        });
    }
}

/// Deletes a link; of a veth pair, both ends.
#[derive(Debug, Clone, Copy)]
pub struct DeleteLink<'a>(
    /// The link.
    pub Device<'a>,
);

impl fmt::Display for DeleteLink<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

impl Change for DeleteLink<'_> {
    fn operation(&self) -> &'static str {
        "deleting link"
    }

    fn encode(&self, requests: &mut Requests) {
        requests.push(RTM_DELLINK, ACKNOWLEDGED, |body| {
            encode_header(body, 0, self.0.index().unwrap_or(0), 0, 0);
            self.0.encode_name(body);
        });
    }
}
