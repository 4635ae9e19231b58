//! The keys of a tap network.

use podwire_netlink::route::MacAddress;
use podwire_plugin::Request;
use podwire_spec::error::{Error, ErrorCode};
use podwire_spec::id::IfName;
use podwire_spec::operation::Operation;
use podwire_spec::result::Dns;
use podwire_spec::version::SpecVersion;

use crate::interface::keys::{self, flag};

/// A tap network's configuration.
#[derive(Debug, Clone)]
pub struct Config {
    /// The user who may attach to the device.
    pub owner: Option<u32>,
    /// The group that may attach to it.
    pub group: Option<u32>,
    /// Several queues.
    pub multi_queue: bool,
    /// MTU in bytes; the kernel's default if none.
    pub mtu: Option<u32>,
    /// The device's MAC address, if one was asked for.
    pub mac: Option<MacAddress>,
    /// The `SELinux` label of whom may attach to it.
    pub label: Option<String>,
    /// The bridge in the container that it is a port of.
    pub bridge: Option<String>,
    /// Whether an IPAM plugin is named.
    pub has_ipam: bool,
    /// DNS from the configuration, which replaces IPAM's.
    pub dns: Dns,
    /// The request's version: whether DEL gets prevResult.
    pub version: SpecVersion,
}

impl Config {
    /// Reads the configuration. DEL and GC need nothing of it but whether there
    /// is an IPAM plugin.
    ///
    /// # Errors
    /// Code 6 for a value of the wrong type, code 7 for one that can't be
    /// served; the message names key and value.
    pub fn parse(request: &Request<'_>, operation: Operation) -> Result<Self, Error> {
        let least = Self {
            owner: None,
            group: None,
            multi_queue: false,
            mtu: None,
            mac: None,
            label: None,
            bridge: None,
            has_ipam: !request.config.ipam_type.is_empty(),
            dns: request.config.dns.clone(),
            version: request.version,
        };
        if matches!(operation, Operation::Del | Operation::Gc) {
            return Ok(least);
        }
        let object = request.object();
        let text = |key: &str| -> Result<Option<String>, Error> {
            Ok(object.string(key)?.filter(|text| !text.is_empty()).map(Into::into))
        };
        let bridge = text("bridge")?;
        if let Some(bridge) = &bridge {
            IfName::parse(bridge).map_err(|error| Error {
                code: ErrorCode::InvalidConfiguration,
                ..error.context(format!("bridge {bridge:?}"))
            })?;
        }
        Ok(Self {
            owner: id(object.integer::<u32>("owner")?, "owner")?,
            group: id(object.integer::<u32>("group")?, "group")?,
            multi_queue: flag(object, "multiQueue")?,
            mtu: keys::mtu(object)?,
            mac: keys::mac(request, object.text_of("mac")?)?,
            label: text("selinuxContext")?,
            bridge,
            ..least
        })
    }
}

/// The greatest number means nobody to the kernel (`INVALID_UID`).
fn id(number: Option<u32>, key: &str) -> Result<Option<u32>, Error> {
    match number {
        Some(u32::MAX) => Err(Error::config(format!("{key}: {} is no id", u32::MAX))),
        number => Ok(number),
    }
}
