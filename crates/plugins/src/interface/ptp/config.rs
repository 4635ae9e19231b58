//! The keys of a point-to-point network.

use podwire_plugin::Request;
use podwire_spec::error::Error;
use podwire_spec::operation::Operation;
use podwire_spec::result::Dns;

use crate::interface::keys::{self, flag};

/// A point-to-point network's configuration.
#[derive(Debug, Clone, Default)]
pub struct Config {
    /// Masquerade what leaves the network.
    pub masquerade: bool,
    /// MTU of both ends, in bytes; the kernel's default if none.
    pub mtu: Option<u32>,
    /// The MTU that CHECK expects of the container's end where the record tells none.
    pub expected_mtu: Option<u32>,
    /// Whether an IPAM plugin is named.
    pub has_ipam: bool,
    /// DNS from the configuration, which replaces IPAM's.
    pub dns: Dns,
}

impl Config {
    /// Reads the configuration. For DEL and GC only what names objects on the
    /// host counts, and a mistake elsewhere is no reason to keep them.
    ///
    /// # Errors
    /// Code 6 for a value of the wrong type, code 7 for one that can't be
    /// served; the message names key and value.
    pub fn parse(request: &Request<'_>, operation: Operation) -> Result<Self, Error> {
        if !matches!(operation, Operation::Del | Operation::Gc) {
            return Self::strict(request);
        }
        Self::strict(request).or_else(|error| {
            log::warn!("going on with what names objects on the host: {error}");
            Ok(Self {
                masquerade: flag(request.object(), "ipMasq").unwrap_or(true),
                has_ipam: !request.config.ipam_type.is_empty(),
                ..Self::default()
            })
        })
    }

    fn strict(request: &Request<'_>) -> Result<Self, Error> {
        let object = request.object();
        let mtu = keys::mtu(object)?;
        Ok(Self {
            masquerade: keys::masquerade(object)?,
            mtu,
            expected_mtu: keys::expected_mtu(request.version, mtu),
            has_ipam: !request.config.ipam_type.is_empty(),
            dns: request.config.dns.clone(),
        })
    }
}
