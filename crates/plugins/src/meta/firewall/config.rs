//! The plugin's configuration.

use podwire_resources::host_chains::IngressPolicy;
use podwire_spec::Error;
use podwire_spec::json::Object;

/// Chain names that the kernel's xtables take: fewer than 29 bytes.
const CHAIN_NAME_LIMIT: usize = 28;
/// What zone names are made of, with room to spare: firewalld allows 17.
const ZONE_NAME_LIMIT: usize = 64;

/// Which firewall of the host is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Backend {
    /// firewalld where it runs, else the host's chains.
    #[default]
    Auto,
    /// The host's chains.
    HostChains,
    /// firewalld.
    Firewalld,
}

/// What the configuration asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Config {
    pub(super) backend: Backend,
    pub(super) admin_chain: String,
    pub(super) zone: String,
    pub(super) policy: IngressPolicy,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            backend: Backend::default(),
            admin_chain: "CNI-ADMIN".to_owned(),
            zone: "trusted".to_owned(),
            policy: IngressPolicy::default(),
        }
    }
}

impl Config {
    /// Reads the configuration.
    ///
    /// # Errors
    /// Code 6 or 7 that names the key and its value.
    pub(super) fn parse(object: &Object<'_>) -> Result<Self, Error> {
        // Any other word, "nftables" of those who hoped for it too, lets the
        // plugin choose, as it does for the Go plugin.
        let backend = match object.text_of("backend")?.as_deref() {
            Some("iptables") => Backend::HostChains,
            Some("firewalld") => Backend::Firewalld,
            _ => Backend::Auto,
        };
        let mut config = Self { backend, ..Self::default() };
        if let Some(chain) = object.text_of("iptablesAdminChainName")? {
            config.admin_chain = chain_name(&chain)?;
        }
        if let Some(zone) = object.text_of("firewalldZone")? {
            config.zone = zone_name(&zone)?;
        }
        if let Some(policy) = object.text_of("ingressPolicy")? {
            config.policy = IngressPolicy::parse(&policy).ok_or_else(|| {
                Error::config(format!("unknown ingress policy: {policy:?}"))
                    .with_details("ingressPolicy must be \"open\", \"same-bridge\" or \"isolated\"")
            })?;
        }
        Ok(config)
    }

    /// The same for what only takes away: a mistake must not keep anything
    /// from being removed.
    pub(super) fn parse_leniently(object: &Object<'_>) -> Self {
        Self::parse(object).unwrap_or_else(|error| {
            log::warn!("going on with the defaults: {error}");
            Self::default()
        })
    }
}

fn chain_name(name: &str) -> Result<String, Error> {
    let is_plain = name.bytes().all(|byte| byte.is_ascii_graphic());
    let is_own = name.starts_with("CNI-FORWARD") || name.starts_with("CNI-ISOLATION-STAGE-");
    let is_built_in = ["INPUT", "FORWARD", "OUTPUT", "ACCEPT", "DROP", "RETURN"].contains(&name);
    let is_named = name.len() <= CHAIN_NAME_LIMIT && !name.starts_with(['-', '!']);
    if is_plain && is_named && !is_own && !is_built_in {
        return Ok(name.to_owned());
    }
    Err(Error::config(format!(
        "iptablesAdminChainName: {name:?} can't be an administrator's chain"
    ))
    .with_details(format!(
        "a name of at most {CHAIN_NAME_LIMIT} letters, digits and signs, not one of iptables' \
             or the plugin's own chains"
    )))
}

fn zone_name(name: &str) -> Result<String, Error> {
    if name.len() <= ZONE_NAME_LIMIT && name.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Ok(name.to_owned());
    }
    Err(Error::config(format!("firewalldZone: {name:?} is no name of a zone")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Config, Error> {
        Config::parse(&Object::parse(text).unwrap())
    }

    #[test]
    fn without_keys_everything_is_as_with_the_go_plugin() {
        let config = parse(r#"{"backend":"","ingressPolicy":""}"#).unwrap();
        assert_eq!(config, Config::default());
        assert_eq!(
            (config.admin_chain.as_str(), config.zone.as_str(), config.policy),
            ("CNI-ADMIN", "trusted", IngressPolicy::Open)
        );
    }

    #[test]
    fn backends_are_two_words_and_all_others() {
        let backend = |text| parse(text).unwrap().backend;
        assert_eq!(backend(r#"{"backend":"iptables"}"#), Backend::HostChains);
        assert_eq!(backend(r#"{"backend":"firewalld"}"#), Backend::Firewalld);
        assert_eq!(backend(r#"{"backend":"nftables"}"#), Backend::Auto);
    }

    #[test]
    fn b110_an_unknown_policy_is_named() {
        let error = parse(r#"{"ingressPolicy":"isolate"}"#).unwrap_err();
        assert_eq!(error.msg, "unknown ingress policy: \"isolate\"");
        let object = Object::parse(r#"{"ingressPolicy":"isolate","backend":7}"#).unwrap();
        assert_eq!(Config::parse_leniently(&object), Config::default());
    }

    #[test]
    fn names_that_would_be_something_else_are_refused() {
        for name in ["FORWARD", "CNI-FORWARD", "-A", "a b", &"x".repeat(29), "ü"] {
            let text = serde_text(name);
            let error = parse(&format!("{{\"iptablesAdminChainName\":{text}}}")).unwrap_err();
            assert!(error.msg.starts_with("iptablesAdminChainName"), "{error}");
        }
        assert!(parse(r#"{"firewalldZone":"a b"}"#).is_err());
        let config = parse(r#"{"iptablesAdminChainName":"NOMAD-ADMIN"}"#).unwrap();
        assert_eq!(config.admin_chain, "NOMAD-ADMIN");
    }

    fn serde_text(name: &str) -> String {
        format!("\"{name}\"")
    }
}
