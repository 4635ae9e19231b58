//! Keys that several interface plugins read the same way.

use std::borrow::Cow;

use podwire_netlink::route::MacAddress;
use podwire_plugin::Request;
use podwire_resources::masquerade::Backend;
use podwire_spec::error::Error;
use podwire_spec::json::Object;
use podwire_spec::version::SpecVersion;

/// The largest MTU a virtual Ethernet takes (`ETH_MAX_MTU`,
/// `linux/if_ether.h`).
const MTU_LIMIT: u32 = 65_535;

/// A switch that is off unless set.
///
/// # Errors
/// Code 6: it is no boolean.
pub(crate) fn flag(object: &Object<'_>, key: &str) -> Result<bool, Error> {
    Ok(object.boolean(key)?.unwrap_or(false))
}

/// `mtu` in bytes, of which 0 means the kernel's own.
///
/// # Errors
/// Code 6 or 7 with the value.
pub(crate) fn mtu(object: &Object<'_>) -> Result<Option<u32>, Error> {
    let number = object.integer::<i64>("mtu")?.unwrap_or(0);
    match u32::try_from(number) {
        Ok(0) => Ok(None),
        Ok(number) if number <= MTU_LIMIT => Ok(Some(number)),
        _ => Err(Error::config(format!("mtu: {number} is not between 0 and {MTU_LIMIT}"))),
    }
}

/// The MTU that CHECK holds an interface to whose record tells none. Results have had a
/// field for it since version 1.1.0, so a plugin behind this one that changed it has
/// written so; before that nobody could.
pub(crate) fn expected_mtu(version: SpecVersion, mtu: Option<u32>) -> Option<u32> {
    mtu.filter(|_| version >= SpecVersion::V1_1_0)
}

/// `ipMasq`. `ipMasqBackend` names one of the reference's two ways, which are
/// one here; a name that is neither is a mistake.
///
/// # Errors
/// Code 6 or 7 with the value.
pub(crate) fn masquerade(object: &Object<'_>) -> Result<bool, Error> {
    let wanted = flag(object, "ipMasq")?;
    let backend = object.text_of("ipMasqBackend")?;
    if wanted {
        Backend::parse(backend.as_deref())?;
    }
    Ok(wanted)
}

/// The MAC address asked for: capability `mac`, then `args.cni.mac`, then
/// `MAC` in `CNI_ARGS`, then `configured`, the configuration's own key if the
/// plugin has one.
///
/// # Errors
/// Code 7 that names the source of a text that is no interface's address.
pub(crate) fn mac(
    request: &Request<'_>,
    configured: Option<Cow<'_, str>>,
) -> Result<Option<MacAddress>, Error> {
    let arguments = request.arguments(&["MAC"])?;
    let from_capability = match &request.config.runtime_config {
        Some(runtime) => runtime.text_of("mac")?.map(|text| ("runtimeConfig.mac", text)),
        None => None,
    };
    let from_args = match request.args_cni()? {
        Some(args) => args.text_of("mac")?.map(|text| ("args.cni.mac", text)),
        None => None,
    };
    let from_variable = arguments.get("MAC").map(|text| ("MAC in CNI_ARGS", text.into()));
    let from_key = configured.map(|text| ("mac", text));
    let Some((source, text)) = from_capability.or(from_args).or(from_variable).or(from_key) else {
        return Ok(None);
    };
    parse_mac(source, &text)
}

/// A MAC address that an interface can have; none for an empty text.
///
/// # Errors
/// Code 7 that names `source` and the text.
pub(crate) fn parse_mac(source: &str, text: &str) -> Result<Option<MacAddress>, Error> {
    if text.is_empty() {
        return Ok(None);
    }
    let mac: MacAddress = text.parse().map_err(|_| {
        Error::config(format!("{source}: {text:?} is not a MAC address"))
            .with_details("write six bytes in hexadecimal, as 02:00:5e:10:00:01")
    })?;
    if mac.is_multicast() || mac.0 == [0; 6] {
        return Err(Error::config(format!("{source}: {text:?} can't be an interface's address"))
            .with_details("the first byte must be even, and not all bytes zero"));
    }
    Ok(Some(mac))
}
