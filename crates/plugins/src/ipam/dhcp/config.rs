//! The configuration of `dhcp`, all under `ipam`:
//!
//! | key | value |
//! |---|---|
//! | `daemonSocketPath` | where the daemon listens; `/run/cni/dhcp.sock` |
//! | `request` | options to ask for, in this order: `[{"option": "ntp-servers"}, {"option": "43"}]`, by name or by number as text. The usual ones follow, unless an entry has `"skipDefault": true` |
//! | `provide` | options to tell the server: `[{"option": "host-name", "value": "web"}]`; with `"fromArg": "K8S_POD_NAME"` the value is that of this key of `CNI_ARGS`, where it's there |
//! | `priority` | metric of all routes |
//! | `clientId` | `"compatible"` as the Go plugin (the default), `"short"` in 34 bytes, or `"mac"` |
//! | `broadcast` | `true` asks servers to answer by broadcast; always so for `ipvlan` |
//! | `dataDir` | where the daemon keeps its leases (its flag `-datadir`), for DEL and GC while it doesn't run |

use std::path::PathBuf;

use podwire_dhcp::key::Key;
use podwire_dhcp::message::code;
use podwire_dhcp::protocol::{Client, DEFAULT_SOCKET};
use podwire_dhcp::store::DEFAULT_DIRECTORY;
use podwire_plugin::Request;
use podwire_spec::Error;
use podwire_spec::json::Object;
use podwire_spec::request::PluginRequest;

use crate::ipam::input;

/// What is asked for unless `skipDefault` says otherwise. Classless routes
/// stand before the others (RFC 3442).
const ASKED_FOR: [u8; 10] = [
    code::CLASSLESS_ROUTES,
    code::ROUTERS,
    code::SUBNET_MASK,
    code::STATIC_ROUTES,
    code::NAME_SERVERS,
    code::DOMAIN_NAME,
    code::DOMAIN_SEARCH,
    code::INTERFACE_MTU,
    code::RENEWAL_TIME,
    code::REBINDING_TIME,
];

/// Where the daemon is and where it keeps its leases: all that DEL, STATUS and
/// GC need.
#[derive(Debug, Clone)]
pub(super) struct Daemon {
    pub(super) socket: PathBuf,
    pub(super) data: PathBuf,
}

impl Daemon {
    /// Reads `ipam.daemonSocketPath` and `ipam.dataDir`.
    ///
    /// # Errors
    /// Code 6 for a wrong type, code 7 for what is no path.
    pub(super) fn of(request: &PluginRequest<'_>) -> Result<Self, Error> {
        let path = |key: &str, default: &str| -> Result<PathBuf, Error> {
            let given = match &request.ipam {
                Some(ipam) => ipam.text_of(key)?,
                None => None,
            };
            match given {
                None => Ok(default.into()),
                Some(path) if path.starts_with('/') && !path.contains('\0') => {
                    Ok(path.as_ref().into())
                }
                Some(path) => {
                    Err(input::unusable(&format!("ipam.{key}"), "an absolute path", &path))
                }
            }
        };
        Ok(Self {
            socket: path("daemonSocketPath", DEFAULT_SOCKET)?,
            data: path("dataDir", DEFAULT_DIRECTORY)?,
        })
    }
}

/// How a client is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ClientId {
    /// As the Go plugin calls it, so that servers give the same address.
    Compatible,
    /// In 34 bytes.
    Short,
    /// By its hardware address.
    Mac,
}

impl ClientId {
    pub(super) fn of(self, key: &Key) -> Result<Client, Error> {
        Ok(match self {
            Self::Compatible => Client::Identifier(key.compatible_client()),
            Self::Short => Client::Identifier(key.short_client()?),
            Self::Mac => Client::Hardware,
        })
    }
}

/// A configuration that ADD can work with.
#[derive(Debug)]
pub(super) struct Config {
    pub(super) daemon: Daemon,
    pub(super) client: ClientId,
    pub(super) requested: Vec<u8>,
    pub(super) provided: Vec<(u8, Vec<u8>)>,
    pub(super) broadcast: bool,
    pub(super) priority: Option<u32>,
}

impl Config {
    /// Reads the configuration, with the values that `CNI_ARGS` has for it.
    ///
    /// # Errors
    /// Code 7, or 6 for values of another type, naming the key and the value.
    pub(super) fn parse(request: &Request<'_>) -> Result<Self, Error> {
        Self::read(request.config, request.arguments_text())
    }

    fn read(request: &PluginRequest<'_>, arguments: &str) -> Result<Self, Error> {
        let ipam =
            request.ipam.as_ref().ok_or_else(|| Error::config("IPAM config missing 'ipam' key"))?;
        let client = match ipam.text_of("clientId")?.as_deref() {
            None | Some("compatible") => ClientId::Compatible,
            Some("short") => ClientId::Short,
            Some("mac") => ClientId::Mac,
            Some(other) => {
                let wanted = "\"compatible\", \"short\" or \"mac\"";
                return Err(input::unusable("ipam.clientId", wanted, other));
            }
        };
        Ok(Self {
            daemon: Daemon::of(request)?,
            client,
            requested: requested(ipam)?,
            provided: provided(ipam, arguments)?,
            broadcast: ipam.boolean("broadcast")?.unwrap_or(false),
            priority: ipam.integer::<u32>("priority")?.filter(|priority| *priority != 0),
        })
    }
}

/// The options to ask for: those of the configuration, in its order, then the
/// usual ones.
fn requested(ipam: &Object<'_>) -> Result<Vec<u8>, Error> {
    let mut requested = Vec::new();
    let mut defaults = true;
    for entry in ipam.array("request")?.iter().filter(|entry| !entry.is_null()) {
        let entry = entry.object()?;
        if entry.boolean("skipDefault")?.unwrap_or(false) {
            defaults = false;
        }
        if let Some(option) = option(&entry)?
            && !requested.contains(&option)
        {
            requested.push(option);
        }
    }
    if defaults {
        let missing = ASKED_FOR.into_iter().filter(|option| !requested.contains(option));
        let missing: Vec<_> = missing.collect();
        requested.extend(missing);
    }
    Ok(requested)
}

/// The options to tell the server: `value`, or that of the `CNI_ARGS` key that
/// `fromArg` names, where there is one.
fn provided(ipam: &Object<'_>, arguments: &str) -> Result<Vec<(u8, Vec<u8>)>, Error> {
    let mut provided: Vec<(u8, Vec<u8>)> = Vec::new();
    for entry in ipam.array("provide")?.iter().filter(|entry| !entry.is_null()) {
        let entry = entry.object()?;
        let Some(option) = option(&entry)? else { continue };
        if code::is_protocol(option) {
            return Err(Error::config(format!(
                "{}: option {option} is set by the protocol itself",
                entry.path_of("option")
            )));
        }
        let mut value = entry.text_of("value")?.map(std::borrow::Cow::into_owned);
        if let Some(key) = entry.text_of("fromArg")?
            && let Some(argument) = argument(arguments, &key)
        {
            value = Some(argument.to_owned());
        }
        let Some(value) = value.filter(|value| !value.is_empty()) else { continue };
        if value.len() > 255 {
            return Err(Error::config(format!(
                "{}: the value has {} bytes, and an option holds 255",
                entry.path_of("value"),
                value.len()
            )));
        }
        provided.retain(|(earlier, _)| *earlier != option);
        provided.push((option, value.into_bytes()));
    }
    Ok(provided)
}

/// The option of an entry, by name or by number as text.
fn option(entry: &Object<'_>) -> Result<Option<u8>, Error> {
    let Some(text) = entry.text_of("option")? else { return Ok(None) };
    code::parse(&text).map(Some).ok_or_else(|| {
        let known: Vec<_> = code::names().collect();
        input::unusable(&entry.path_of("option"), "the name or number of a DHCP option", &text)
            .with_details(format!("a number from \"0\" to \"255\", or one of {}", known.join(", ")))
    })
}

/// A value of `CNI_ARGS`. What is malformed or unknown is passed over, as
/// runtimes put much in there.
fn argument<'a>(arguments: &'a str, wanted: &str) -> Option<&'a str> {
    let pairs = arguments.split(';').filter_map(|piece| piece.split_once('='));
    pairs.filter(|(key, _)| *key == wanted).map(|(_, value)| value).next_back()
}

/// The namespace's path as another process finds it.
///
/// # Errors
/// Code 4 when there is none.
pub(super) fn absolute(netns: &str) -> Result<String, Error> {
    if netns.is_empty() {
        return Err(Error::environment("required env variables [CNI_NETNS] missing"));
    }
    let path = std::path::absolute(netns)
        .map_err(|error| Error::io(format!("CNI_NETNS {netns:?}: {error}")))?;
    path.into_os_string().into_string().map_err(|path| {
        Error::environment(format!("CNI_NETNS is not valid UTF-8: {}", path.display()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(ipam: &str, arguments: &str) -> Result<Config, Error> {
        let text = format!(r#"{{"cniVersion":"1.1.0","name":"n1","type":"bridge","ipam":{ipam}}}"#);
        Config::read(&PluginRequest::parse(&text).unwrap(), arguments)
    }

    #[test]
    fn without_anything_the_usual_is_asked_for() {
        let config = read(r#"{"type":"dhcp"}"#, "").unwrap();
        assert_eq!(config.requested[..3], [121, 3, 1]);
        assert!(config.provided.is_empty() && !config.broadcast);
        assert_eq!((config.client, config.priority), (ClientId::Compatible, None));
        assert_eq!(config.daemon.socket, PathBuf::from("/run/cni/dhcp.sock"));
        assert_eq!(config.daemon.data, PathBuf::from("/var/lib/cni/podwire/dhcp"));
    }

    #[test]
    fn options_by_name_and_number_in_the_given_order() {
        let config =
            read(r#"{"request":[{"option":"host-name"},{"option":"43"},{"option":"1"}]}"#, "");
        let requested = config.unwrap().requested;
        assert_eq!(requested[..4], [12, 43, 1, 121]);
        assert_eq!(requested.len(), 12);
        let only = r#"{"request":[{"option":"routers","skipDefault":true},{"skipDefault":true}]}"#;
        assert_eq!(read(only, "").unwrap().requested, [3]);
    }

    #[test]
    fn values_come_from_the_configuration_or_the_runtime() {
        let ipam = r#"{"priority": 50, "broadcast": true, "clientId": "short", "provide":[
            {"option":"host-name","value":"fixed","fromArg":"K8S_POD_NAME"},
            {"option":"60","value":"vendor"},
            {"option":"user-class","fromArg":"NONE"}]}"#;
        let config = read(ipam, "x;IgnoreUnknown=1;K8S_POD_NAME=a=b;OTHER=1").unwrap();
        assert_eq!(config.provided, [(12, b"a=b".to_vec()), (60, b"vendor".to_vec())]);
        assert_eq!((config.priority, config.broadcast), (Some(50), true));
        assert_eq!(config.client, ClientId::Short);
        assert_eq!(read(ipam, "").unwrap().provided[0], (12, b"fixed".to_vec()));
    }

    #[test]
    fn mistakes_name_key_and_value() {
        let long = format!(r#"{{"provide":[{{"option":"12","value":"{}"}}]}}"#, "x".repeat(256));
        for (ipam, text) in [
            (r#"{"request":[{"option":"nope"}]}"#, "\"nope\""),
            (r#"{"request":[{"option":"256"}]}"#, "\"256\""),
            (r#"{"request":[{"option":3}]}"#, "option"),
            (r#"{"provide":[{"option":"53","value":"x"}]}"#, "option 53"),
            (&long, "256 bytes"),
            (r#"{"daemonSocketPath":"relative"}"#, "absolute path"),
            (r#"{"clientId":"x"}"#, "clientId"),
            (r#"{"priority":-1}"#, "priority"),
        ] {
            let error = read(ipam, "").unwrap_err();
            assert!(error.msg.contains(text), "{ipam}: {error}");
        }
        let bare = r#"{"cniVersion":"1.1.0","name":"n1","type":"dhcp"}"#;
        let request = PluginRequest::parse(bare).unwrap();
        assert!(Config::read(&request, "").unwrap_err().msg.contains("missing 'ipam'"));
        assert!(Daemon::of(&request).is_ok(), "DEL does without");
    }

    #[test]
    fn the_namespace_is_named_for_another_process() {
        assert_eq!(absolute("/run/netns/x").unwrap(), "/run/netns/x");
        assert!(absolute("x").unwrap().ends_with("/x"));
        assert!(absolute("").is_err());
    }
}
