//! The keys of a bridge network, read once into types that hold only what
//! the plugin can do.

use podwire_netlink::route::MacAddress;
use podwire_plugin::Request;
use podwire_resources::vlan_gateway::VlanGateway;
use podwire_spec::error::{Error, ErrorCode};
use podwire_spec::id::IfName;
use podwire_spec::json::Object;
use podwire_spec::operation::Operation;
use podwire_spec::result::Dns;

use super::vlan::{self, Vlans};
use crate::interface::keys::{self, flag};

/// A bridge network's configuration.
#[derive(Debug, Clone, Default)]
pub struct Config {
    /// The bridge's name on the host.
    pub bridge: String,
    /// How the bridge takes part in layer 3.
    pub gateway: Gateway,
    /// Replace an address of the bridge that is in the way.
    pub force_address: bool,
    /// Masquerade what leaves the network.
    pub masquerade: bool,
    /// MTU of the bridge at creation and of both interface ends, in bytes.
    pub mtu: Option<u32>,
    /// The MTU that CHECK expects of the container's end where the record tells none.
    pub expected_mtu: Option<u32>,
    /// Let frames leave through the port they came in by.
    pub hairpin: bool,
    /// Put the bridge into promiscuous mode.
    pub promiscuous: bool,
    /// VLANs of the bridge port.
    pub vlans: Option<Vlans>,
    /// Drop frames whose source MAC address isn't the container's.
    pub mac_spoof_check: bool,
    /// Duplicate address detection inside the container.
    pub duplicate_address_detection: bool,
    /// Leave the container's interface down.
    pub container_interface_disabled: bool,
    /// Ports with this flag don't reach each other.
    pub port_isolation: bool,
    /// Whether an IPAM plugin is named.
    pub has_ipam: bool,
    /// DNS from the configuration, which replaces IPAM's.
    pub dns: Dns,
    /// The container interface's MAC address, if one was asked for.
    pub mac: Option<MacAddress>,
}

/// How the bridge takes part in layer 3.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Gateway {
    /// Not at all.
    #[default]
    None,
    /// It holds the gateway addresses.
    Address,
    /// It holds them, and containers get a default route through it.
    DefaultRoute,
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
                bridge: bridge_name(request.object())?,
                masquerade: flag(request.object(), "ipMasq").unwrap_or(true),
                mac_spoof_check: flag(request.object(), "macspoofchk").unwrap_or(true),
                has_ipam: !request.config.ipam_type.is_empty(),
                ..Self::default()
            })
        })
    }

    fn strict(request: &Request<'_>) -> Result<Self, Error> {
        let object = request.object();
        let mtu = keys::mtu(object)?;
        let config = Self {
            bridge: bridge_name(object)?,
            gateway: gateway(object)?,
            force_address: flag(object, "forceAddress")?,
            masquerade: keys::masquerade(object)?,
            mtu,
            expected_mtu: keys::expected_mtu(request.version, mtu),
            hairpin: flag(object, "hairpinMode")?,
            promiscuous: flag(object, "promiscMode")?,
            vlans: vlan::parse(object)?,
            mac_spoof_check: flag(object, "macspoofchk")?,
            duplicate_address_detection: flag(object, "enabledad")?,
            container_interface_disabled: flag(object, "disableContainerInterface")?,
            port_isolation: flag(object, "portIsolation")?,
            has_ipam: !request.config.ipam_type.is_empty(),
            dns: request.config.dns.clone(),
            mac: keys::mac(request, None)?,
        };
        config.validate()?;
        Ok(config)
    }

    /// The interface of the host that holds the gateway addresses of the
    /// network's VLAN, and the VLAN; none where the bridge holds them.
    pub(super) fn vlan_gateway(&self) -> Option<u16> {
        let vlan = self.vlans.as_ref().and_then(|vlans| vlans.untagged);
        vlan.filter(|_| self.gateway > Gateway::None)
    }

    fn validate(&self) -> Result<(), Error> {
        if self.hairpin && self.promiscuous {
            return Err(Error::config(
                "cannot set hairpin mode and promiscuous mode at the same time",
            )
            .with_details("choose one of hairpinMode and promiscMode"));
        }
        if self.container_interface_disabled && self.has_ipam {
            return Err(Error::config(
                "cannot use IPAM when DisableContainerInterface flag is set",
            )
            .with_details("remove ipam, or disableContainerInterface"));
        }
        if let Some(vlan) = self.vlan_gateway() {
            let name = VlanGateway::name(self.bridge.as_str(), vlan);
            IfName::parse(&name).map_err(|error| Error {
                code: ErrorCode::InvalidConfiguration,
                ..error.context(format!(
                    "the gateway of VLAN {vlan} would be interface {name:?}; choose a shorter \
                     name for the bridge"
                ))
            })?;
        }
        Ok(())
    }
}

fn bridge_name(object: &Object<'_>) -> Result<String, Error> {
    let name = object.string("bridge")?.unwrap_or("cni0".into());
    IfName::parse(&name).map_err(|error| Error {
        code: ErrorCode::InvalidConfiguration,
        ..error.context(format!("bridge {name:?}"))
    })?;
    Ok(name.into_owned())
}

fn gateway(object: &Object<'_>) -> Result<Gateway, Error> {
    Ok(if flag(object, "isDefaultGateway")? {
        Gateway::DefaultRoute
    } else if flag(object, "isGateway")? {
        Gateway::Address
    } else {
        Gateway::None
    })
}
