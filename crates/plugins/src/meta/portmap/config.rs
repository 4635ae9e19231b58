//! The plugin's configuration.

use std::borrow::Cow;

use podwire_netlink::nft::IpVersion;
use podwire_spec::Error;
use podwire_spec::json::Object;

use super::condition::Condition;
use super::mapping::Mapping;

/// The bit that the Go plugin marks packets with unless told another one.
const DEFAULT_MASQUERADE_BIT: i64 = 13;

/// What the configuration asks for.
///
/// `backend` may be `iptables` or `nftables`, as for the Go plugin; both mean
/// the same here, since all is done with nftables over netlink. `markMasqBit`
/// is checked and otherwise unused: no mark is needed to masquerade a
/// connection that our own table can recognise.
#[derive(Debug, Clone, Default)]
pub(super) struct Config {
    /// Whether connections of this host and of the container's own subnet get
    /// the host's address as their source, so that answers find back.
    pub(super) masquerade: Masquerade,
    /// What IPv4 packets must be like to be forwarded.
    pub(super) conditions_v4: Option<Condition>,
    /// What IPv6 packets must be like to be forwarded.
    pub(super) conditions_v6: Option<Condition>,
    /// What is to be forwarded; empty when the verb doesn't need it.
    pub(super) mappings: Vec<Mapping>,
}

/// Which forwarded connections get the host's address as their source.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) enum Masquerade {
    /// None (`snat: false`). Then a container doesn't reach itself or a
    /// neighbour through the host's port, nor does the host by 127.0.0.1.
    Nothing,
    /// Those from the container's subnet and from this host's 127.0.0.0/8.
    #[default]
    Local,
    /// All (`masqAll`).
    Everything,
    /// As the variants before, but by marking their packets in this chain of
    /// the host's own nat table (`externalSetMarkChain`).
    Marked {
        /// The chain, as `KUBE-MARK-MASQ`.
        chain: String,
        /// All instead of local ones.
        everything: bool,
    },
}

/// How much of the configuration a verb needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Strictness {
    /// ADD and CHECK: all of it, and every mistake is an error.
    Whole,
    /// STATUS: all but the mappings.
    WithoutMappings,
    /// DEL and GC: nothing, since what is to be removed is found by its
    /// owner. A mistake must not keep anything from being removed.
    Nothing,
}

impl Config {
    /// Reads the configuration.
    ///
    /// # Errors
    /// Code 6 or 7 that names the key and its value.
    pub(super) fn parse(
        object: &Object<'_>,
        runtime_config: Option<&Object<'_>>,
        strictness: Strictness,
    ) -> Result<Self, Error> {
        if strictness == Strictness::Nothing {
            return Ok(Self::default());
        }
        if let Some(backend) = object.text_of("backend")?
            && !matches!(&*backend, "iptables" | "nftables")
        {
            return Err(Error::config(format!("unrecognized backend {backend:?}"))
                .with_details("backend must be \"iptables\" or \"nftables\", or left out"));
        }
        let mappings = match runtime_config {
            Some(runtime_config) if strictness == Strictness::Whole => {
                Mapping::list(runtime_config)?
            }
            _ => Vec::new(),
        };
        Ok(Self {
            masquerade: masquerade(object)?,
            conditions_v4: condition(object, "conditionsV4", IpVersion::V4)?,
            conditions_v6: condition(object, "conditionsV6", IpVersion::V6)?,
            mappings,
        })
    }

    /// What packets of this IP version must be like to be forwarded.
    pub(super) fn condition(&self, version: IpVersion) -> Option<&Condition> {
        match version {
            IpVersion::V4 => self.conditions_v4.as_ref(),
            IpVersion::V6 => self.conditions_v6.as_ref(),
        }
    }
}

fn masquerade(object: &Object<'_>) -> Result<Masquerade, Error> {
    let chain = object.text_of("externalSetMarkChain")?.map(Cow::into_owned);
    let bit = object.signed("markMasqBit")?;
    if chain.is_some() && bit.is_some() {
        return Err(Error::config("Cannot specify externalSetMarkChain and markMasqBit")
            .with_details("the chain decides which bit is set"));
    }
    let bit = bit.unwrap_or(DEFAULT_MASQUERADE_BIT);
    if !(0..=31).contains(&bit) {
        return Err(Error::config("MasqMarkBit must be between 0 and 31")
            .with_details(format!("markMasqBit is {bit}")));
    }
    let snat = object.boolean("snat")?.unwrap_or(true);
    let everything = object.boolean("masqAll")?.unwrap_or(false);
    Ok(match chain {
        _ if !snat => Masquerade::Nothing,
        Some(chain) => Masquerade::Marked { chain, everything },
        None if everything => Masquerade::Everything,
        None => Masquerade::Local,
    })
}

fn condition(
    object: &Object<'_>,
    key: &str,
    version: IpVersion,
) -> Result<Option<Condition>, Error> {
    let words = object.string_array(key)?;
    if words.is_empty() {
        return Ok(None);
    }
    Condition::parse(&words, version).map(Some).map_err(|error| error.context(object.path_of(key)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Config, Error> {
        Config::parse(&Object::parse(text).unwrap(), None, Strictness::Whole)
    }

    #[test]
    fn without_keys_local_connections_are_masqueraded() {
        let config = parse("{}").unwrap();
        assert_eq!(config.masquerade, Masquerade::Local);
        assert!(config.conditions_v4.is_none() && config.conditions_v6.is_none());
    }

    #[test]
    fn masquerading_follows_snat_masq_all_and_the_external_chain() {
        let masquerade = |text| parse(text).unwrap().masquerade;
        assert_eq!(masquerade(r#"{"snat":false,"masqAll":true}"#), Masquerade::Nothing);
        assert_eq!(masquerade(r#"{"masqAll":true}"#), Masquerade::Everything);
        assert_eq!(
            masquerade(r#"{"externalSetMarkChain":"KUBE-MARK-MASQ"}"#),
            Masquerade::Marked { chain: "KUBE-MARK-MASQ".into(), everything: false }
        );
        assert_eq!(
            masquerade(r#"{"externalSetMarkChain":null,"markMasqBit":14}"#),
            Masquerade::Local
        );
    }

    #[test]
    fn both_backends_are_taken_and_others_named() {
        assert!(parse(r#"{"backend":"iptables"}"#).is_ok());
        assert!(parse(r#"{"backend":"nftables"}"#).is_ok());
        let error = parse(r#"{"backend":"ipvs"}"#).unwrap_err();
        assert_eq!(error.msg, "unrecognized backend \"ipvs\"");
    }

    #[test]
    fn mark_bits_have_bounds_and_exclude_an_external_chain() {
        for bit in [-1, 32] {
            let error = parse(&format!("{{\"markMasqBit\":{bit}}}")).unwrap_err();
            assert_eq!(error.msg, "MasqMarkBit must be between 0 and 31");
            assert!(error.details.ends_with(&bit.to_string()));
        }
        assert!(parse(r#"{"markMasqBit":0}"#).is_ok() && parse(r#"{"markMasqBit":31}"#).is_ok());
        let error = parse(r#"{"markMasqBit":1,"externalSetMarkChain":"X"}"#).unwrap_err();
        assert_eq!(error.msg, "Cannot specify externalSetMarkChain and markMasqBit");
    }

    #[test]
    fn removal_is_never_kept_off_by_a_mistake() {
        let text = r#"{"backend":7,"snat":"x","conditionsV4":["-x"]}"#;
        assert!(parse(text).is_err());
        let object = Object::parse(text).unwrap();
        assert!(Config::parse(&object, None, Strictness::Nothing).is_ok());
    }
}
