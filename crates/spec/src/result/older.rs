//! The results of 0.1.0 to 0.4.0.

use std::net::IpAddr;

use ipnet::IpNet;

use super::newest::{Dns, Interface, IpConfig, Route};

/// The result of 0.1.0 and 0.2.0: at most one address a family.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct OldestResult {
    pub(super) ip4: Option<OldestIp>,
    pub(super) ip6: Option<OldestIp>,
    pub(super) dns: Dns,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OldestIp {
    pub(super) ip: IpNet,
    pub(super) gateway: Option<IpAddr>,
    pub(super) routes: Vec<Route>,
}

/// The result of 0.3.0, 0.3.1 and 0.4.0. Its interfaces have only name, mac
/// and sandbox.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct MiddleResult {
    pub(super) interfaces: Vec<Interface>,
    pub(super) ips: Vec<MiddleIp>,
    pub(super) routes: Vec<Route>,
    pub(super) dns: Dns,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct MiddleIp {
    /// As declared, `4` or `6` if the plugin is sane. It, not the address,
    /// decides what the address becomes in 0.2.0.
    pub(super) version: String,
    pub(super) config: IpConfig,
}
