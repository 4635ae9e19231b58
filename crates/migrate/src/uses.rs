//! What the node uses its plugins for, and what ours do otherwise there.

use std::collections::{BTreeMap, BTreeSet};

use podwire_netlink::nft::IpVersion;
use podwire_resources::nft::legacy::xtables;
use podwire_runtime::load::Directory;
use podwire_runtime::store::{Record, Store};
use podwire_runtime::{Network, Runtime};
use podwire_spec::Error;
use podwire_spec::config::{NetworkList, PluginConfig};
use podwire_spec::json::Object;

/// Networks, attachments, and what to know before the plugins are exchanged.
#[derive(Debug, Clone, Default)]
pub struct Uses {
    /// The networks, each with the plugins that it runs, IPAM included.
    pub networks: Vec<(String, Vec<String>)>,
    /// Configuration files that don't load, with the reason.
    pub invalid: Vec<String>,
    /// Recorded attachments by network.
    pub attachments: BTreeMap<String, usize>,
    /// Records that can't be understood.
    pub unreadable: usize,
    /// Tables of legacy xtables with rules or chains in them.
    pub legacy: Vec<&'static str>,
    /// Where ours differ from the Go plugins in what this node uses.
    pub differences: BTreeSet<String>,
}

/// Looks at configurations, records and the host's tables; changes nothing.
///
/// # Errors
/// A folder that is there can't be listed, or the kernel refuses to tell.
pub fn uses(runtime: &Runtime) -> Result<Uses, Error> {
    let mut uses = in_files(runtime)?;
    for (version, table, name) in [
        (IpVersion::V4, "nat", "ip nat"),
        (IpVersion::V4, "filter", "ip filter"),
        (IpVersion::V6, "nat", "ip6 nat"),
        (IpVersion::V6, "filter", "ip6 filter"),
    ] {
        if xtables::is_in_use(version, table)? {
            uses.legacy.push(name);
        }
    }
    Ok(uses)
}

/// What configurations and records tell.
pub(crate) fn in_files(runtime: &Runtime) -> Result<Uses, Error> {
    let mut uses = Uses::default();
    let found =
        Directory::read(runtime.configuration_directory()).map_err(|error| error.to_cni_error())?;
    for network in &found.networks {
        let mut types = BTreeSet::new();
        for plugin in &network.list().plugins {
            add_types(plugin, &mut types);
        }
        uses.networks.push((network.name().to_string(), types.into_iter().collect()));
        note_differences(network, &mut uses.differences);
    }
    uses.invalid = found.problems.iter().map(ToString::to_string).collect();
    let listing = runtime.store().list().map_err(|error| error.to_cni_error())?;
    for stored in &listing.attachments {
        *uses.attachments.entry(stored.record.key.network.to_string()).or_default() += 1;
    }
    uses.unreadable = listing.unreadable.len();
    Ok(uses)
}

/// The plugins that recorded attachments were made with; `None` if a record
/// doesn't tell.
pub(crate) fn recorded_types(store: &Store) -> Result<Option<BTreeSet<String>>, Error> {
    let listing = store.list().map_err(|error| error.to_cni_error())?;
    if !listing.unreadable.is_empty() {
        return Ok(None);
    }
    let mut types = BTreeSet::new();
    for stored in &listing.attachments {
        let Some(plugins) = plugins_of(&stored.record) else { return Ok(None) };
        for plugin in &plugins {
            add_types(plugin, &mut types);
        }
    }
    Ok(Some(types))
}

fn plugins_of(record: &Record) -> Option<Vec<PluginConfig>> {
    let config = record.config.as_deref()?;
    match NetworkList::from_bytes(config) {
        Ok(list) => Some(list.plugins),
        Err(_) => PluginConfig::from_bytes(config).ok().map(|plugin| vec![plugin]),
    }
}

fn add_types(plugin: &PluginConfig, types: &mut BTreeSet<String>) {
    types.insert(plugin.plugin_type.to_string());
    types.extend(plugin.ipam_type.clone());
}

/// What of the intended differences this network touches.
fn note_differences(network: &Network, notes: &mut BTreeSet<String>) {
    for plugin in &network.list().plugins {
        let Ok(object) = Object::parse(plugin.text()) else { continue };
        let kind = plugin.plugin_type.to_string();
        let is_true = |key: &str| object.boolean(key).ok().flatten().unwrap_or_default();
        let mut note = |text: &str| notes.insert(format!("{} {kind}: {text}", network.name()));
        match kind.as_str() {
            "bridge" | "ptp" if is_true("ipMasq") => {
                note(
                    "new containers are masqueraded by elements of the nftables tables \
                     podwire_masquerade, whatever ipMasqBackend says; those attached before keep \
                     the rules that they have",
                );
            }
            "portmap" => {
                note(
                    "new mappings stand in the nftables tables podwire_hostports, whatever backend \
                     says; a host port that another container holds is refused",
                );
                if ["conditionsV4", "conditionsV6"].iter().any(|key| object.get(key).is_some()) {
                    note("conditions are translated to nftables; one that can't be is an error");
                }
            }
            "firewall" => {
                note("a container's rules carry a comment that names their owner");
            }
            "macvlan" if plugin.ipam_type.is_some() => {
                note("DNS settings that IPAM gives are kept in the result");
            }
            "bandwidth" => {
                note("the name of an ifb is another; DEL takes the queues of lasting pairs too");
            }
            "tuning" if object.get("mtu").is_some() => {
                note("the result tells the new MTU");
            }
            _ => {}
        }
        let routes = object.object("ipam").ok().flatten().map(|ipam| ipam.array("routes"));
        let is_set = |route: &podwire_spec::json::Value<'_>| {
            route
                .object()
                .is_ok_and(|route| route.get("mtu").is_some() || route.get("advmss").is_some())
        };
        if routes.is_some_and(|routes| routes.is_ok_and(|routes| routes.iter().any(is_set))) {
            note("mtu and advmss of routes are set, not only reported");
        }
        if plugin.ipam_type.as_deref() == Some("host-local") {
            note(
                "STATUS answers 50 while no address is free; ipam.statusOnExhausted: \"warn\" \
                 makes that a warning",
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_told_for_what_a_network_uses() {
        let text = r#"{"cniVersion":"1.0.0","name":"pods","plugins":[
            {"type":"bridge","ipMasq":true,"ipam":{"type":"host-local",
             "routes":[{"dst":"0.0.0.0/0","mtu":1400}]}},
            {"type":"portmap","conditionsV4":["-s","10.0.0.0/8"]},
            {"type":"tuning"},{"type":"some-vendors"}]}"#;
        let network = Network::from_list_bytes(text.as_bytes()).unwrap();
        let mut notes = BTreeSet::new();
        note_differences(&network, &mut notes);
        let told: Vec<_> = notes.iter().map(|note| note.split(' ').nth(1).unwrap()).collect();
        assert_eq!(told, ["bridge:", "bridge:", "bridge:", "portmap:", "portmap:"]);
    }

    #[test]
    fn a_record_tells_its_plugins_or_nothing_is_certain() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::new(directory.path());
        assert_eq!(recorded_types(&store).unwrap(), Some(BTreeSet::new()));
        std::fs::create_dir(directory.path().join("results")).unwrap();
        std::fs::write(directory.path().join("results/torn"), "{").unwrap();
        assert_eq!(recorded_types(&store).unwrap(), None);
    }
}
