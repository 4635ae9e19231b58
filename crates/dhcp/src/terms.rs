//! What a server agreed to: the lease's address, times and settings.

use std::net::Ipv4Addr;

use ipnet::Ipv4Net;
use serde::{Deserialize, Serialize};

use crate::message::{Message, Route, code};

/// No more of each list are taken from a server.
const MOST: usize = 64;
/// The lease of a server that doesn't say how long it lasts, in seconds.
const UNSAID_LEASE: u32 = 3600;
/// A lease that never ends (RFC 2131, section 3.3).
pub const FOREVER: u32 = u32::MAX;
/// The smallest MTU that every host must take (RFC 791, section 3.2).
const SMALLEST_MTU: u16 = 576;

/// The terms of a lease.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Terms {
    /// The address.
    pub address: Ipv4Addr,
    /// Bits of the subnet's mask.
    pub prefix: u8,
    /// The server, by an address of its own (option 54).
    pub server: Ipv4Addr,
    /// How long it lasts from the request on, in seconds; [`FOREVER`].
    pub lease: u32,
    /// When to renew (T1), in seconds.
    pub renewal: u32,
    /// When to ask any server (T2), in seconds.
    pub rebinding: u32,
    /// Routers, best first.
    pub routers: Vec<Ipv4Addr>,
    /// Routes: those of option 121, or else those of option 33 and the default
    /// route through the first router.
    pub routes: Vec<Route>,
    /// Name servers.
    pub name_servers: Vec<Ipv4Addr>,
    /// The domain.
    pub domain: Option<String>,
    /// Domains to search.
    pub search: Vec<String>,
    /// The MTU in bytes.
    pub mtu: Option<u16>,
}

impl Terms {
    /// The terms in a server's message, `before` filling in what an answer to a
    /// renewal leaves out.
    ///
    /// # Errors
    /// Why they can't be used.
    pub fn read(message: &Message, before: Option<&Self>) -> Result<Self, &'static str> {
        let options = &message.options;
        let address = message.yours;
        if !is_usable(address) {
            return Err("it gives no address that an interface can have");
        }
        let server = options.address(code::SERVER_IDENTIFIER).or(before.map(|terms| terms.server));
        let server = server.ok_or("it doesn't say which server it is from (option 54)")?;
        let prefix = match options.address(code::SUBNET_MASK) {
            Some(mask) => {
                ipnet::ipv4_mask_to_prefix(mask).map_err(|_| "its subnet mask is no mask")?
            }
            None => before.ok_or("DHCP option Subnet Mask not found in DHCPACK (option 1)")?.prefix,
        };
        let lease = options.number(code::LEASE_TIME).unwrap_or(UNSAID_LEASE);
        if lease == 0 {
            return Err("its lease lasts no time");
        }
        let (renewal, rebinding) =
            times(lease, options.number(code::RENEWAL_TIME), options.number(code::REBINDING_TIME));
        let routers: Vec<_> = options
            .addresses(code::ROUTERS, MOST)
            .into_iter()
            .filter(|at| is_usable(*at))
            .collect();
        let routes = options.classless_routes(MOST).unwrap_or_else(|| {
            let mut routes = options.static_routes(MOST);
            if let Some(router) = routers.first() {
                routes.push(Route {
                    destination: Ipv4Addr::UNSPECIFIED,
                    prefix: 0,
                    gateway: Some(*router),
                });
            }
            routes
        });
        Ok(Self {
            address,
            prefix,
            server,
            lease,
            renewal,
            rebinding,
            routers,
            routes,
            name_servers: options.addresses(code::NAME_SERVERS, MOST),
            domain: options.domain(code::DOMAIN_NAME),
            search: options.domains(code::DOMAIN_SEARCH, MOST),
            mtu: options.short_number(code::INTERFACE_MTU).filter(|mtu| *mtu >= SMALLEST_MTU),
        })
    }

    /// The address with its subnet.
    pub fn network(&self) -> Option<Ipv4Net> {
        Ipv4Net::new(self.address, self.prefix).ok()
    }

    /// Whether what a container sees is the same.
    pub fn is_same_for_container(&self, other: &Self) -> bool {
        self.network() == other.network() && self.routes == other.routes
    }
}

/// Whether an interface can have the address.
fn is_usable(address: Ipv4Addr) -> bool {
    let [first, ..] = address.octets();
    first != 0 && first < 224 && !address.is_loopback()
}

/// T1 and T2: the server's where they are in order, else one half and seven
/// eighths of the lease (RFC 2131, section 4.4.5).
fn times(lease: u32, renewal: Option<u32>, rebinding: Option<u32>) -> (u32, u32) {
    if lease == FOREVER {
        return (FOREVER, FOREVER);
    }
    let default = (lease / 2, lease - lease / 8);
    let given = (renewal.unwrap_or(default.0), rebinding.unwrap_or(default.1));
    if given.0 > 0 && given.0 < given.1 && given.1 < lease { given } else { default }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::message::{Direction, Kind};

    pub(crate) fn reply(kind: Kind, address: [u8; 4]) -> Message {
        let mut message = Message::request(kind, 7, [2, 0, 0, 0, 0, 9]);
        message.direction = Direction::Reply;
        message.yours = address.into();
        for (option, value) in [
            (code::SERVER_IDENTIFIER, vec![10, 0, 0, 1]),
            (code::SUBNET_MASK, vec![255, 255, 255, 0]),
            (code::LEASE_TIME, 100_u32.to_be_bytes().to_vec()),
            (code::ROUTERS, vec![10, 0, 0, 1]),
        ] {
            message.options.set(option, value);
        }
        message
    }

    #[test]
    fn what_a_server_gives() {
        let mut message = reply(Kind::Ack, [10, 0, 0, 9]);
        message.options.set(code::NAME_SERVERS, vec![10, 0, 0, 2, 10, 0, 0, 3]);
        message.options.set(code::DOMAIN_NAME, b"example.org".to_vec());
        message.options.set(code::INTERFACE_MTU, vec![5, 120]);
        message.options.set(code::STATIC_ROUTES, vec![192, 168, 0, 0, 10, 0, 0, 4]);
        let terms = Terms::read(&message, None).unwrap();
        assert_eq!(terms.network().unwrap().to_string(), "10.0.0.9/24");
        assert_eq!((terms.lease, terms.renewal, terms.rebinding), (100, 50, 88));
        assert_eq!(terms.routes.len(), 2);
        assert_eq!(terms.routes[1].prefix, 0);
        assert_eq!(terms.mtu, Some(1400));
        assert_eq!(terms.domain.as_deref(), Some("example.org"));
        message.options.set(code::CLASSLESS_ROUTES, vec![8, 10, 0, 0, 0, 0]);
        let terms = Terms::read(&message, None).unwrap();
        assert_eq!(terms.routes.len(), 1, "option 121 stands for 3 and 33");
        message.options.set(code::CLASSLESS_ROUTES, vec![8, 10, 0]);
        assert_eq!(Terms::read(&message, None).unwrap().routes.len(), 2);
    }

    #[test]
    fn times_out_of_order_are_replaced() {
        assert_eq!(times(100, Some(10), Some(20)), (10, 20));
        for (renewal, rebinding) in [(90, 80), (0, 50), (10, 100), (200, 300)] {
            assert_eq!(times(100, Some(renewal), Some(rebinding)), (50, 88));
        }
        assert_eq!(times(FOREVER, Some(1), Some(2)), (FOREVER, FOREVER));
        assert_eq!(times(1, None, None), (0, 1));
    }

    #[test]
    fn unusable_terms_are_refused() {
        for address in [[0, 0, 0, 0], [127, 0, 0, 1], [224, 0, 0, 1], [255, 255, 255, 255]] {
            assert!(Terms::read(&reply(Kind::Ack, address), None).is_err());
        }
        let good = reply(Kind::Ack, [10, 0, 0, 9]);
        let before = Terms::read(&good, None).unwrap();
        for option in [code::SUBNET_MASK, code::SERVER_IDENTIFIER] {
            let mut message = good.clone();
            message.options.remove(option);
            assert!(Terms::read(&message, None).is_err());
            assert_eq!(Terms::read(&message, Some(&before)).unwrap(), before);
        }
        for (option, value) in
            [(code::SUBNET_MASK, vec![255, 0, 255, 0]), (code::LEASE_TIME, vec![0; 4])]
        {
            let mut message = good.clone();
            message.options.set(option, value);
            assert!(Terms::read(&message, None).is_err());
        }
    }
}
