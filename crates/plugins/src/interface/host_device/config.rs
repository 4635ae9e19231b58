//! The keys of a host-device network.

use podwire_plugin::Request;
use podwire_resources::moved_device::Selector;
use podwire_spec::error::{Error, ErrorCode};
use podwire_spec::id::IfName;
use podwire_spec::json::Object;
use podwire_spec::operation::Operation;
use podwire_spec::result::Dns;

use crate::interface::keys::{flag, parse_mac};

/// A host-device network's configuration.
#[derive(Debug, Clone, Default)]
pub struct Config {
    /// Which device; only STATUS and GC may not know.
    pub selector: Option<Selector>,
    /// A program in user space drives it: there is nothing to move.
    pub user_space: bool,
    /// Give the container the addresses and routes that the device has on the
    /// host.
    pub use_interface_network: bool,
    /// Whether an IPAM plugin is named.
    pub has_ipam: bool,
    /// DNS from the configuration, which replaces IPAM's.
    pub dns: Dns,
}

impl Config {
    /// Reads the configuration. ADD and CHECK look the device up in `/sys`; the
    /// other operations do without it, since it may be gone.
    ///
    /// # Errors
    /// Code 6 for a value of the wrong type, code 7 for one that can't be
    /// served; the message names key and value.
    pub fn parse(request: &Request<'_>, operation: Operation) -> Result<Self, Error> {
        match operation {
            Operation::Add | Operation::Check => Self::strict(request),
            Operation::Del | Operation::Gc => Ok(Self::lenient(request)),
            _ => {
                let object = request.object();
                let config = Self {
                    // The device of a capability is known only on ADD.
                    selector: named(object)?,
                    use_interface_network: flag(object, "useInterfaceNetwork")?,
                    ..Self::lenient(request)
                };
                Ok(config)
            }
        }
    }

    /// What DEL goes by, whatever mistakes there are.
    fn lenient(request: &Request<'_>) -> Self {
        let selector = named(request.object()).unwrap_or_else(|error| {
            log::warn!("going on without the device's name: {error}");
            None
        });
        Self { selector, has_ipam: !request.config.ipam_type.is_empty(), ..Self::default() }
    }

    fn strict(request: &Request<'_>) -> Result<Self, Error> {
        let object = request.object();
        let named = named(object)?;
        let by_capability = device_id(request)?;
        // The capability replaces a PCI address, and nothing else.
        let selector = match (named, by_capability) {
            (Some(Selector::Pci(_)) | None, Some(device)) => device,
            (Some(named), _) => named,
            (None, None) => {
                return Err(Error::config(
                    "specify either \"device\", \"hwaddr\", \"kernelpath\" or \"pciBusID\"",
                )
                .with_details("or let the runtime send capability deviceID"));
            }
        };
        let user_space = flag(object, "DPDKMode")? || selector.is_driven_from_user_space()?;
        let config = Self {
            selector: Some(selector),
            user_space,
            use_interface_network: flag(object, "useInterfaceNetwork")?,
            has_ipam: !request.config.ipam_type.is_empty(),
            dns: request.config.dns.clone(),
        };
        if config.user_space && config.use_interface_network {
            return Err(Error::config(
                "useInterfaceNetwork: a device that is driven from user space has no network",
            )
            .with_details("remove useInterfaceNetwork, or bind the device to its kernel driver"));
        }
        Ok(config)
    }
}

/// The device that the configuration names, the first of its keys.
fn named(object: &Object<'_>) -> Result<Option<Selector>, Error> {
    let text = |key: &str| -> Result<Option<String>, Error> {
        Ok(object.string(key)?.filter(|text| !text.is_empty()).map(Into::into))
    };
    if let Some(name) = text("device")? {
        IfName::parse(&name).map_err(|error| Error {
            code: ErrorCode::InvalidConfiguration,
            ..error.context(format!("device {name:?}"))
        })?;
        return Ok(Some(Selector::Name(name)));
    }
    if let Some(mac) = text("hwaddr")? {
        return Ok(parse_mac("hwaddr", &mac)?.map(Selector::Mac));
    }
    if let Some(path) = text("kernelpath")? {
        return Selector::of_kernel_path(&path).map(Some);
    }
    text("pciBusID")?.map(|address| Selector::of_pci(&address)).transpose()
}

/// The device of capability `deviceID`.
fn device_id(request: &Request<'_>) -> Result<Option<Selector>, Error> {
    let Some(runtime) = &request.config.runtime_config else { return Ok(None) };
    let id = runtime.string("deviceID")?.filter(|id| !id.is_empty());
    id.map(|id| Selector::of_device_id(&id)).transpose()
}
