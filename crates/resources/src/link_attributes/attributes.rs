//! The attributes, as values.

use podwire_netlink::route::link::LinkFlags;
use podwire_netlink::route::link_change::ChangeLink;
use podwire_netlink::route::{Change, Link, MacAddress, RouteSocket};
use podwire_plugin::Difference;
use podwire_spec::error::Error;

use crate::kernel::refused;

/// Attributes of a link; `None` leaves one as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Attributes {
    /// Its Ethernet address.
    pub mac: Option<MacAddress>,
    /// Whether it was asked to receive everything.
    pub promiscuous: Option<bool>,
    /// Largest packet, in bytes.
    pub mtu: Option<u32>,
    /// Whether it was asked to receive all multicast.
    pub all_multicast: Option<bool>,
    /// Length of its transmit queue, in packets.
    pub transmit_queue_length: Option<u32>,
}

impl Attributes {
    /// Whether none is set.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// What a link has of those that are set in `like`.
    ///
    /// Reasons of others for receiving everything don't count, as a packet
    /// capture, which is none of ours to switch off or to keep.
    pub(super) fn of(link: &Link, like: &Self) -> Self {
        Self {
            mac: link.mac.filter(|_| like.mac.is_some()),
            promiscuous: like.promiscuous.map(|_| link.flags.contains(LinkFlags::PROMISCUOUS)),
            mtu: like.mtu.map(|_| link.mtu),
            all_multicast: like
                .all_multicast
                .map(|_| link.flags.contains(LinkFlags::ALL_MULTICAST)),
            transmit_queue_length: like.transmit_queue_length.map(|_| link.transmit_queue_length),
        }
    }

    /// Those set here, else those of another.
    pub(super) fn or(&self, other: &Self) -> Self {
        Self {
            mac: self.mac.or(other.mac),
            promiscuous: self.promiscuous.or(other.promiscuous),
            mtu: self.mtu.or(other.mtu),
            all_multicast: self.all_multicast.or(other.all_multicast),
            transmit_queue_length: self.transmit_queue_length.or(other.transmit_queue_length),
        }
    }

    /// Sets those that differ, each by itself, so that one that is refused
    /// doesn't keep the others; gives back what was refused.
    pub(super) fn apply(&self, socket: &mut RouteSocket, link: &Link) -> Vec<Error> {
        let device = link.device();
        let change = || ChangeLink::new(device);
        let changes: Vec<_> = [
            self.mtu.map(|mtu| change().mtu(mtu)),
            self.mac.map(|mac| change().mac(mac)),
            self.promiscuous.map(|on| change().promiscuous(on)),
            self.all_multicast.map(|on| change().all_multicast(on)),
            self.transmit_queue_length.map(|length| change().transmit_queue_length(length)),
        ]
        .into_iter()
        .flatten()
        .collect();
        let changes: Vec<_> = changes.iter().map(|change| change as &dyn Change).collect();
        match socket.apply_each(&changes) {
            Ok(outcomes) => outcomes.into_iter().filter_map(Result::err).map(refused).collect(),
            Err(error) => vec![refused(error)],
        }
    }

    /// How a link differs from this.
    pub(super) fn differences(&self, link: &Link) -> Vec<Difference> {
        let there = Self::of(link, self);
        let texts = |of: &Self| {
            let switch = |on: bool| if on { "on" } else { "off" }.to_owned();
            [
                of.mac.map(|mac| mac.to_string()),
                of.promiscuous.map(switch),
                of.mtu.map(|mtu| mtu.to_string()),
                of.all_multicast.map(switch),
                of.transmit_queue_length.map(|length| length.to_string()),
            ]
        };
        let names = ["MAC address", "promiscuous", "MTU", "allmulti", "transmit queue length"];
        let both = texts(self).into_iter().zip(texts(&there));
        names
            .into_iter()
            .zip(both)
            .filter(|(_, (wanted, found))| wanted != found)
            .map(|(name, (wanted, found))| {
                Difference::new(
                    format!("{name} of {} in the container", link.name),
                    wanted.unwrap_or_default(),
                    found.unwrap_or_else(|| "none".to_owned()),
                )
            })
            .collect()
    }
}
