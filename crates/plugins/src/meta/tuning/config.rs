//! The keys of `tuning`, read once.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use podwire_netlink::route::MacAddress;
use podwire_plugin::Request;
use podwire_resources::link_attributes::Attributes;
use podwire_resources::sandbox_sysctls::Parameter;
use podwire_spec::error::Error;
use podwire_spec::id::IfName;
use podwire_spec::json::Object;
use podwire_spec::mac;

/// Where originals are kept unless told otherwise.
const DATA_DIR: &str = "/run/cni/tuning";

/// Stands for the interface's name in a key.
const PLACEHOLDER: &str = "IFNAME";

/// What is to be tuned.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Config {
    sysctls: Vec<Parameter>,
    /// Attributes of the interface.
    pub attributes: Attributes,
    /// Where originals are kept.
    pub data_dir: PathBuf,
}

impl Config {
    /// Reads the configuration, `CNI_ARGS`, the capability `mac` and
    /// `args.cni`; of several MAC addresses the last in this order counts.
    ///
    /// # Errors
    /// Code 4, 6 or 7 that names the key and its value.
    pub fn parse(request: &Request<'_>) -> Result<Self, Error> {
        let arguments = request.arguments(&["MAC"])?;
        let mut config = Self::from_object(request.object())?;
        let mut mac = mac_of("MAC in CNI_ARGS", arguments.get("MAC"))?;
        if let Some(runtime) = &request.config.runtime_config {
            mac = mac_of("runtimeConfig.mac", runtime.text_of("mac")?.as_deref())?.or(mac);
        }
        config.attributes.mac = mac.or(config.attributes.mac);
        if let Some(args) = request.args_cni()? {
            config.overridden_by(Self::from_object(&args)?, &args)?;
        }
        config.data_dir = data_dir(request.object())?;
        Ok(config)
    }

    /// For verbs that look for what was kept and nothing else.
    pub fn only_data_dir(request: &Request<'_>) -> Self {
        let data_dir = data_dir(request.object()).unwrap_or_else(|_| DATA_DIR.into());
        Self { data_dir, ..Self::default() }
    }

    fn from_object(object: &Object<'_>) -> Result<Self, Error> {
        let number = |key: &str| object.integer::<u32>(key);
        let attributes = Attributes {
            mac: mac_of(&object.path_of("mac"), object.text_of("mac")?.as_deref())?,
            // Only true acts.
            promiscuous: object.boolean("promisc")?.filter(|on| *on),
            mtu: number("mtu")?.filter(|mtu| *mtu != 0),
            all_multicast: object.boolean("allmulti")?,
            transmit_queue_length: number("txQLen")?,
        };
        Ok(Self { sysctls: sysctls(object)?, attributes, data_dir: PathBuf::new() })
    }

    /// Takes over what `args.cni` says.
    fn overridden_by(&mut self, other: Self, args: &Object<'_>) -> Result<(), Error> {
        let named = |(at, present): (usize, &Parameter)| (present.name.clone(), at);
        let places: BTreeMap<_, _> = self.sysctls.iter().enumerate().map(named).collect();
        for parameter in other.sysctls {
            match places.get(&parameter.name).and_then(|at| self.sysctls.get_mut(*at)) {
                Some(present) => present.value = parameter.value,
                None => self.sysctls.push(parameter),
            }
        }
        let (own, over) = (&mut self.attributes, other.attributes);
        own.mac = over.mac.or(own.mac);
        own.mtu = over.mtu.or(own.mtu);
        own.all_multicast = over.all_multicast.or(own.all_multicast);
        own.transmit_queue_length = over.transmit_queue_length.or(own.transmit_queue_length);
        if let Some(on) = args.boolean("promisc")? {
            own.promiscuous = Some(true).filter(|_| on);
        }
        Ok(())
    }

    /// The keys of the sysctls as they are written.
    pub fn names(&self) -> impl Iterator<Item = &str> + Clone {
        self.sysctls.iter().map(|parameter| parameter.name.as_str())
    }

    /// The sysctls of an interface.
    pub fn parameters(&self, ifname: &IfName) -> Vec<Parameter> {
        let mut parameters = self.sysctls.clone();
        for parameter in &mut parameters {
            let mut parts = parameter.path.iter_mut();
            if let Some(part) = parts.find(|part| part.contains(PLACEHOLDER)) {
                *part = part.replacen(PLACEHOLDER, ifname.as_str(), 1);
            }
        }
        parameters
    }
}

fn data_dir(object: &Object<'_>) -> Result<PathBuf, Error> {
    Ok(object.text_of("dataDir")?.map_or_else(|| DATA_DIR.into(), |text| PathBuf::from(&*text)))
}

/// A MAC address that a link can have.
fn mac_of(key: &str, text: Option<&str>) -> Result<Option<MacAddress>, Error> {
    let Some(text) = text else { return Ok(None) };
    let mac: mac::MacAddress = text.parse().map_err(|_| {
        Error::config(format!(
            "{key}: expected a MAC address, as 02:00:5e:10:00:01, found {text:?}"
        ))
    })?;
    if mac.is_multicast() || mac.octets() == [0; 6] {
        return Err(Error::config(format!("{key}: no interface can have the address {text}")));
    }
    Ok(Some(MacAddress(mac.octets())))
}

/// The sysctls of an object, in their order.
fn sysctls(object: &Object<'_>) -> Result<Vec<Parameter>, Error> {
    let Some(entries) = object.object("sysctl")? else { return Ok(Vec::new()) };
    let mut parameters: Vec<Parameter> = Vec::new();
    let mut names = BTreeSet::new();
    for (name, value) in entries.values() {
        let value = value.string()?;
        if !names.insert(name) {
            return Err(Error::config(format!(
                "duplicated sysctl keys are not allowed: {} is there twice",
                entries.path_of(name)
            )));
        }
        let path = path_of(name).ok_or_else(|| {
            Error::config(format!("invalid net sysctl key: {name:?}")).with_details(
                "keys are those of sysctl(8) that begin with net, as net.ipv4.conf.IFNAME.arp_notify",
            )
        })?;
        parameters.push(Parameter { name: name.to_owned(), path, value: value.into_owned() });
    }
    Ok(parameters)
}

/// The components of a key, which has dots or slashes between them; `None`
/// for one that leads out of `net`.
fn path_of(key: &str) -> Option<Vec<String>> {
    let mut path: Vec<&str> = Vec::new();
    for part in key.split(['.', '/']) {
        // Dots are separators, so that no component is one.
        if !part.is_empty() {
            path.push(part);
        }
    }
    let is_net = path.first() == Some(&"net") && path.len() > 1 && !key.contains('\0');
    is_net.then(|| path.into_iter().map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Config, Error> {
        Config::from_object(&Object::parse(text).unwrap())
    }

    #[test]
    fn sysctls_keep_their_order_and_get_the_interfaces_name() {
        let config = parse(
            r#"{"sysctl":{"net.ipv6.conf.IFNAME.disable_ipv6":"0",
                "net/ipv4/conf/IFNAME/arp_notify":"1","net.core.somaxconn":"500"}}"#,
        )
        .unwrap();
        let parameters = config.parameters(&IfName::parse("eth0.5").unwrap());
        let paths: Vec<_> = parameters.iter().map(|parameter| parameter.path.join("/")).collect();
        assert_eq!(
            paths,
            [
                "net/ipv6/conf/eth0.5/disable_ipv6",
                "net/ipv4/conf/eth0.5/arp_notify",
                "net/core/somaxconn"
            ]
        );
    }

    /// As many as standard input has room for, and no search among all for each: found
    /// with long inputs of the fuzz targets.
    #[test]
    fn a_great_many_sysctls_are_read() {
        let all = |value: u32| {
            let entries: Vec<_> =
                (0..100_000).map(|at| format!(r#""net.a{at}":"{value}""#)).collect();
            format!(r#"{{"sysctl":{{{}}}}}"#, entries.join(","))
        };
        let mut config = parse(&all(1)).unwrap();
        let (text, args) = (all(2), Object::parse("{}").unwrap());
        config.overridden_by(parse(&text).unwrap(), &args).unwrap();
        assert_eq!(config.sysctls.len(), 100_000);
        assert!(config.sysctls.iter().all(|parameter| parameter.value == "2"));
    }

    #[test]
    fn keys_that_lead_out_of_net_are_refused() {
        for key in ["kernel.pid_max", "net", "", "..", "netx.y", "fs/net/x", "kernel/../net/x"] {
            let error = parse(&format!(r#"{{"sysctl":{{"{key}":"1"}}}}"#)).unwrap_err();
            assert!(error.msg.starts_with("invalid net sysctl key"), "{key}: {error}");
        }
    }

    #[test]
    fn mistakes_name_key_and_value() {
        for (text, words) in [
            (r#"{"sysctl":{"net.a":"1","net.a":"2"}}"#, "duplicated sysctl keys"),
            (r#"{"sysctl":{"net.a":1}}"#, "sysctl.net.a"),
            (r#"{"sysctl":[]}"#, "sysctl"),
            (r#"{"mac":"x"}"#, "found \"x\""),
            (r#"{"mac":"01:00:00:00:00:00"}"#, "01:00:00:00:00:00"),
            (r#"{"mtu":-1}"#, "mtu"),
            (r#"{"txQLen":-1}"#, "txQLen"),
            (r#"{"promisc":"yes"}"#, "promisc"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.msg.contains(words), "{text}: {error}");
        }
    }

    #[test]
    fn args_override_without_a_sysctl_in_the_configuration() {
        let mut config = parse(r#"{"mtu":1400,"promisc":true,"allmulti":false}"#).unwrap();
        let args = r#"{"sysctl":{"net.a":"1"},"mtu":1300,"promisc":false,"txQLen":5}"#;
        let args = Object::parse(args).unwrap();
        config.overridden_by(Config::from_object(&args).unwrap(), &args).unwrap();
        let wanted = Attributes {
            mtu: Some(1300),
            all_multicast: Some(false),
            transmit_queue_length: Some(5),
            ..Attributes::default()
        };
        assert_eq!(config.attributes, wanted);
        assert_eq!(config.names().collect::<Vec<_>>(), ["net.a"]);
    }
}
