//! The result of 1.0.0 and 1.1.0.

use std::net::IpAddr;

use ipnet::IpNet;

/// What an attachment consists of.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CniResult {
    /// Interfaces made or used, inside the container and outside.
    pub interfaces: Vec<Interface>,
    /// Addresses given.
    pub ips: Vec<IpConfig>,
    /// Routes set inside the container.
    pub routes: Vec<Route>,
    /// Name resolution for the container.
    pub dns: Dns,
}

/// An interface of an attachment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Interface {
    /// Its name.
    pub name: String,
    /// Its hardware address.
    pub mac: Option<String>,
    /// Its MTU in bytes (from 1.1.0).
    pub mtu: Option<u32>,
    /// The namespace it is in, as `CNI_NETNS` named it; none for an interface
    /// of the host.
    pub sandbox: Option<String>,
    /// The socket of a vhost-user interface (from 1.1.0).
    pub socket_path: Option<String>,
    /// The PCI address of the device behind it (from 1.1.0).
    pub pci_id: Option<String>,
}

/// An address of an attachment.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct IpConfig {
    /// The address with the prefix of its network; the bits beside the prefix
    /// are the container's.
    pub address: IpNet,
    /// The gateway of that network, for information: it is no route.
    pub gateway: Option<IpAddr>,
    /// Which of the interfaces has it. Not checked on reading, see
    /// [`CniResult::validate_indices`].
    pub interface: Option<usize>,
}

impl IpConfig {
    /// An address that belongs to no interface yet, as IPAM plugins give it.
    pub const fn new(address: IpNet) -> Self {
        Self { address, gateway: None, interface: None }
    }
}

/// A route of an attachment. A number of 0 is absent for `mtu`, `advmss` and
/// `priority`, and a value for `table` and `scope`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Route {
    /// The destination.
    pub dst: IpNet,
    /// The next hop; without one, a gateway of `ips` of the same family may
    /// serve.
    pub gw: Option<IpAddr>,
    /// Path MTU in bytes.
    pub mtu: Option<u32>,
    /// TCP maximum segment size to advertise, in bytes.
    pub advmss: Option<u32>,
    /// Metric; lower wins.
    pub priority: Option<u32>,
    /// Routing table.
    pub table: Option<u32>,
    /// Scope: 0 global, 253 link, 254 host (`rt_scope_t`, linux/rtnetlink.h).
    pub scope: Option<u32>,
}

impl Route {
    /// A route without attributes.
    pub const fn new(dst: IpNet, gw: Option<IpAddr>) -> Self {
        Self { dst, gw, mtu: None, advmss: None, priority: None, table: None, scope: None }
    }
}

/// Name resolution, as the lines of a resolv.conf.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Dns {
    /// Addresses of name servers, first asked first.
    pub nameservers: Vec<String>,
    /// The local domain.
    pub domain: Option<String>,
    /// Domains to search.
    pub search: Vec<String>,
    /// Options of the resolver.
    pub options: Vec<String>,
}

impl Dns {
    /// Whether nothing is set.
    pub fn is_empty(&self) -> bool {
        self.nameservers.is_empty()
            && self.domain.is_none()
            && self.search.is_empty()
            && self.options.is_empty()
    }
}
