//! `vlan`, `vlanTrunk` and `preserveDefaultVlan`.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use podwire_resources::port_vlans::{PortVlans, Vlan};
use podwire_spec::error::Error;
use podwire_spec::json::Object;

/// VLAN ids an administrator may use: 0 and 4095 are reserved (802.1Q).
const IDS: RangeInclusive<u16> = 1..=4094;

/// The VLANs of a bridge port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Vlans {
    /// The VLAN of untagged frames; `None` on a trunk without `vlan`, where
    /// it is VLAN 1.
    pub untagged: Option<u16>,
    /// VLANs that pass tagged, sorted.
    pub tagged: BTreeSet<u16>,
    /// Keep the VLAN 1 that the kernel gives every port.
    pub preserve_default: bool,
}

impl Vlans {
    /// The VLANs of the port, sorted: a trunk without `vlan` keeps VLAN 1 for
    /// untagged frames.
    pub(super) fn of_port(&self) -> PortVlans {
        let untagged = self.untagged.unwrap_or(1);
        let mut vlans: Vec<_> = self
            .tagged
            .iter()
            .filter(|id| **id != untagged)
            .map(|id| Vlan { id: *id, untagged: false })
            .collect();
        vlans.push(Vlan { id: untagged, untagged: true });
        vlans.sort_by_key(|vlan| vlan.id);
        PortVlans { vlans, keep_default: self.preserve_default }
    }
}

/// Reads the keys; none of `vlan` and `vlanTrunk` means no VLAN filtering.
///
/// # Errors
/// Code 7 in the reference's words, with key and value.
pub(super) fn parse(object: &Object<'_>) -> Result<Option<Vlans>, Error> {
    let vlan = object.integer::<i64>("vlan")?.unwrap_or(0);
    let untagged = match u16::try_from(vlan) {
        Ok(0) => None,
        Ok(id) if IDS.contains(&id) => Some(id),
        _ => {
            return Err(Error::config(format!(
                "vlan: invalid VLAN ID {vlan} (must be between 0 and 4094)"
            )));
        }
    };
    let preserve_default = object.boolean("preserveDefaultVlan")?.unwrap_or(false);
    let mut tagged = BTreeSet::new();
    for element in object.array("vlanTrunk")? {
        let entry = element.object()?;
        if let Some(id) = id(&entry, "id")? {
            tagged.insert(id);
        }
        match (id(&entry, "minID")?, id(&entry, "maxID")?) {
            (None, None) => {}
            (Some(first), Some(last)) if first <= last => tagged.extend(first..=last),
            (Some(first), Some(last)) => {
                return Err(Error::config(format!(
                    "minID is greater than maxID in trunk parameter ({}: {first} > {last})",
                    entry.path()
                )));
            }
            (Some(only), None) | (None, Some(only)) => {
                return Err(Error::config(format!(
                    "minID and maxID should be configured simultaneously in {}, found only {only}",
                    entry.path()
                )));
            }
        }
    }
    if untagged.is_none() && tagged.is_empty() {
        return Ok(None);
    }
    Ok(Some(Vlans { untagged, tagged, preserve_default }))
}

fn id(entry: &Object<'_>, key: &str) -> Result<Option<u16>, Error> {
    let Some(number) = entry.integer::<i64>(key)? else { return Ok(None) };
    match u16::try_from(number) {
        Ok(id) if IDS.contains(&id) => Ok(Some(id)),
        _ => Err(Error::config(format!(
            "incorrect trunk {key} parameter: {} is {number}, not between 1 and 4094",
            entry.path_of(key)
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Option<Vlans>, Error> {
        parse(&Object::parse(text).unwrap())
    }

    #[test]
    fn no_key_means_no_filtering() {
        assert_eq!(read("{}").unwrap(), None);
        assert_eq!(read(r#"{"vlan":0,"vlanTrunk":null}"#).unwrap(), None);
        assert_eq!(read(r#"{"vlanTrunk":[{}]}"#).unwrap(), None);
    }

    #[test]
    fn trunks_are_sorted_and_deduplicated() {
        let vlans = read(r#"{"vlan":7,"vlanTrunk":[{"minID":10,"maxID":12},{"id":11},{"id":3}]}"#)
            .unwrap()
            .unwrap();
        assert_eq!(vlans.untagged, Some(7));
        assert_eq!(vlans.tagged.into_iter().collect::<Vec<_>>(), [3, 10, 11, 12]);
        assert!(!vlans.preserve_default);
    }

    #[test]
    fn mistakes_name_key_and_value() {
        for (text, words) in [
            (r#"{"vlan":4095}"#, "invalid VLAN ID 4095"),
            (r#"{"vlan":-1}"#, "invalid VLAN ID -1"),
            (r#"{"vlanTrunk":[{"id":0}]}"#, "incorrect trunk id parameter: vlanTrunk[0].id is 0"),
            (r#"{"vlanTrunk":[{"minID":5,"maxID":4}]}"#, "minID is greater than maxID"),
            (r#"{"vlanTrunk":[{"minID":5}]}"#, "configured simultaneously"),
            (r#"{"vlanTrunk":[{"minID":5,"maxID":5000}]}"#, "incorrect trunk maxID"),
        ] {
            let error = read(text).unwrap_err();
            assert_eq!(error.code.number(), 7);
            assert!(error.msg.contains(words), "{error}");
        }
    }
}
