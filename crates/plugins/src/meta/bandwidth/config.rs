//! The keys of a limit, read once.

use ipnet::IpNet;
use podwire_resources::shaper::{Limit, Scope};
use podwire_spec::address::parse_cidr;
use podwire_spec::capability::Bandwidth;
use podwire_spec::error::Error;
use podwire_spec::json::Object;

use crate::distinct::distinct;

/// Bursts that stand for "none was asked for", in bits: the Go plugin wants
/// one, and pods have no way to give it. kubelet's, containerd's, CRI-O's
/// (containernetworking/plugins#609). Taken literally the first of them lets a
/// container go without limit for 2147 s at 1 Mbit/s.
const PLACEHOLDERS: [u64; 3] = [(1 << 31) - 1, (1 << 32) - 1, ((1 << 32) - 1) * 8 - 1];

/// What is used instead: as much as the rate gives in a tenth of a second, ...
const BURSTS_A_SECOND: u64 = 10;
/// ... and at least as much as a sender hands over at once, in bytes.
const LEAST_BURST: u64 = 64 << 10;

/// The keys that make a configuration shut the capability out.
const KEYS: [&str; 4] = ["ingressRate", "ingressBurst", "egressRate", "egressBurst"];

/// What is limited, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// What goes to the container.
    pub ingress: Option<Limit>,
    /// What comes from it.
    pub egress: Option<Limit>,
    /// With whom.
    pub scope: Scope,
}

impl Default for Config {
    fn default() -> Self {
        Self { ingress: None, egress: None, scope: Scope::All }
    }
}

impl Config {
    /// Reads the configuration and the capability.
    ///
    /// # Errors
    /// Code 6 or 7 that names the key and its value.
    pub fn parse(object: &Object<'_>, runtime_config: Option<&Object<'_>>) -> Result<Self, Error> {
        let capability = match runtime_config {
            Some(all) => all.object("bandwidth")?,
            None => None,
        };
        let is_static = KEYS.iter().any(|key| object.get(key).is_some());
        let source = match &capability {
            Some(capability) if !is_static => capability,
            _ => object,
        };
        let amounts = Bandwidth::from_object(source)?;
        let side = |name, rate, burst| limit(source, name, rate, burst, !is_static);
        let mut scope = scope(object)?;
        if let Some(capability) = &capability
            && scope == Scope::All
        {
            scope = self::scope(capability)?;
        }
        Ok(Self {
            ingress: side("ingress", amounts.ingress_rate, amounts.ingress_burst)?,
            egress: side("egress", amounts.egress_rate, amounts.egress_burst)?,
            scope,
        })
    }
}

/// One direction's limit, from bits.
fn limit(
    source: &Object<'_>,
    side: &str,
    rate: u64,
    burst: u64,
    from_runtime: bool,
) -> Result<Option<Limit>, Error> {
    let rate_key = source.path_of(&format!("{side}Rate"));
    let burst_key = source.path_of(&format!("{side}Burst"));
    if rate == 0 && burst == 0 {
        return Ok(None);
    }
    if burst == 0 {
        return Err(Error::config(format!("if {rate_key} is set, {burst_key} must be set too"))
            .with_details(format!(
                "{rate_key} is {rate} bits a second; {} bits would be a burst to begin with",
                default_burst(rate / 8) * 8
            )));
    }
    if rate == 0 {
        return Err(Error::config(format!("if {burst_key} is set, {rate_key} must be set too"))
            .with_details(format!("{burst_key} is {burst} bits")));
    }
    if rate < 8 {
        return Err(Error::config(format!("{rate_key}: expected at least 8, found {rate}"))
            .with_details("rates are in bits a second"));
    }
    let asked_burst = u32::try_from(burst / 8).ok().filter(|bytes| *bytes < u32::MAX);
    let asked_burst = asked_burst.ok_or_else(|| {
        Error::config(format!("{burst_key}: burst cannot be more than 4GB, found {burst}"))
            .with_details("bursts are in bits")
    })?;
    let rate = rate / 8;
    let burst = if from_runtime && PLACEHOLDERS.contains(&burst) {
        u32::try_from(default_burst(rate)).unwrap_or(asked_burst).min(asked_burst)
    } else {
        asked_burst
    };
    Ok(Some(Limit { rate, burst, asked_burst }))
}

/// Bytes, of bytes a second.
fn default_burst(rate: u64) -> u64 {
    (rate / BURSTS_A_SECOND).max(LEAST_BURST)
}

fn scope(object: &Object<'_>) -> Result<Scope, Error> {
    let [only, except] = ["shapedSubnets", "unshapedSubnets"].map(|key| subnets(object, key));
    match (only?, except?) {
        (only, except) if !only.is_empty() && !except.is_empty() => Err(Error::config(format!(
            "{} and {} can't be set both",
            object.path_of("shapedSubnets"),
            object.path_of("unshapedSubnets")
        ))
        .with_details("what is in neither would be limited by one and not by the other")),
        (only, except) if only.is_empty() && except.is_empty() => Ok(Scope::All),
        (only, except) if except.is_empty() => Ok(Scope::Only(only)),
        (_, except) => Ok(Scope::Except(except)),
    }
}

/// The subnets under a key, each once.
fn subnets(object: &Object<'_>, key: &str) -> Result<Vec<IpNet>, Error> {
    let mut nets = Vec::new();
    for value in object.array(key)?.iter().filter(|value| !value.is_null()) {
        let text = value.string()?;
        let net = parse_cidr(&text).ok_or_else(|| {
            Error::config(format!(
                "{}: expected a subnet, as 10.1.0.0/16, found {text:?}",
                value.path()
            ))
        })?;
        nets.push(net.trunc());
    }
    Ok(distinct(nets))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(config: &str, runtime_config: &str) -> Result<Config, Error> {
        let runtime_config = Object::parse(runtime_config).unwrap().with_path("runtimeConfig");
        Config::parse(&Object::parse(config).unwrap(), Some(&runtime_config))
    }

    fn limit(rate: u64, burst: u32) -> Limit {
        Limit { rate, burst, asked_burst: burst }
    }

    #[test]
    fn one_key_of_the_configuration_shuts_the_capability_out() {
        let capability = r#"{"bandwidth":{"ingressRate":80,"ingressBurst":160}}"#;
        let taken = parse(r#"{"mtu":1}"#, capability).unwrap();
        assert_eq!((taken.ingress, taken.egress), (Some(limit(10, 20)), None));
        let own = parse(r#"{"egressRate":800,"egressBurst":1600}"#, capability).unwrap();
        assert_eq!((own.ingress, own.egress), (None, Some(limit(100, 200))));
        assert_eq!(parse(r#"{"egressRate":0}"#, capability).unwrap(), Config::default());
        assert_eq!(parse("{}", "{}").unwrap(), Config::default());
        assert_eq!(parse("{}", r#"{"bandwidth":null}"#).unwrap(), Config::default());
    }

    #[test]
    fn capitalised_keys_are_the_same() {
        let capability = r#"{"bandwidth":{"IngressRate":80,"IngressBurst":160,"EgressRate":0}}"#;
        assert_eq!(parse("{}", capability).unwrap().ingress, Some(limit(10, 20)));
    }

    #[test]
    fn mistakes_name_key_and_value() {
        for (config, words) in [
            (r#"{"ingressRate":8000}"#, ["ingressBurst must be set", "8000"]),
            (r#"{"egressBurst":8000}"#, ["egressRate must be set", "8000"]),
            (r#"{"egressBurst":8000,"egressRate":7}"#, ["egressRate", "found 7"]),
            (
                r#"{"ingressRate":8,"ingressBurst":34359738360}"#,
                ["cannot be more than 4GB", "34359738360"],
            ),
            (r#"{"ingressRate":"1M"}"#, ["ingressRate", "1M"]),
            (r#"{"ingressRate":-1,"ingressBurst":1}"#, ["ingressRate", "-1"]),
            (r#"{"shapedSubnets":["10.0.0.0/33"]}"#, ["shapedSubnets[0]", "10.0.0.0/33"]),
            (
                r#"{"shapedSubnets":["10.0.0.0/8"],"unshapedSubnets":["fd00::/8"]}"#,
                ["shapedSubnets", "both"],
            ),
        ] {
            let error = parse(config, "{}").unwrap_err().to_string();
            assert!(words.iter().all(|word| error.contains(word)), "{config}: {error}");
        }
        let error = parse("{}", r#"{"bandwidth":{"ingressRate":80}}"#).unwrap_err();
        assert!(error.msg.contains("runtimeConfig.bandwidth.ingressBurst"), "{error}");
    }

    #[test]
    fn placeholders_of_runtimes_become_a_sane_burst() {
        for burst in PLACEHOLDERS {
            let capability =
                format!(r#"{{"bandwidth":{{"egressRate":80000000,"egressBurst":{burst}}}}}"#);
            let egress = parse("{}", &capability).unwrap().egress.unwrap();
            assert_eq!((egress.rate, egress.burst), (10_000_000, 1_000_000));
            assert_eq!(u64::from(egress.asked_burst), burst / 8);
        }
        // What an administrator writes is meant.
        let config = parse(r#"{"egressRate":80000000,"egressBurst":2147483647}"#, "{}").unwrap();
        assert_eq!(config.egress, Some(limit(10_000_000, 268_435_455)));
        let slow = r#"{"bandwidth":{"egressRate":8000,"egressBurst":2147483647}}"#;
        assert_eq!(parse("{}", slow).unwrap().egress.unwrap().burst, 64 << 10);
    }

    #[test]
    fn subnets_stand_beside_rates_of_the_capability() {
        let capability = r#"{"bandwidth":{"ingressRate":80,"ingressBurst":160}}"#;
        let config =
            parse(r#"{"unshapedSubnets":["10.1.2.3/8","10.0.0.0/8","fd00::/8"]}"#, capability);
        let nets = ["10.0.0.0/8", "fd00::/8"].map(|net| net.parse().unwrap()).to_vec();
        assert_eq!(config.unwrap().scope, Scope::Except(nets.clone()));
        let capability = r#"{"bandwidth":{"shapedSubnets":["10.0.0.0/8","fd00::/8"]}}"#;
        assert_eq!(parse("{}", capability).unwrap().scope, Scope::Only(nets));
    }
}
