//! Which VLANs a port of a bridge carries.

use podwire_netlink::route::Link;
use podwire_netlink::route::bridge::{ChangeVlans, PortVlan, VlanFlags};
use podwire_plugin::Difference;

/// One VLAN of a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Vlan {
    /// Its id, 1 to 4094.
    pub id: u16,
    /// Whether untagged frames belong to it.
    pub untagged: bool,
}

/// The VLANs of a port, nothing else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortVlans {
    /// The VLANs, sorted by id.
    pub vlans: Vec<Vlan>,
    /// Keep the VLAN that the bridge gives every port beside them.
    pub keep_default: bool,
}

impl PortVlans {
    /// A port that has one VLAN, untagged.
    pub fn access(id: u16, keep_default: bool) -> Self {
        Self { vlans: vec![Vlan { id, untagged: true }], keep_default }
    }

    fn wants(&self, id: u16) -> bool {
        self.vlans.iter().any(|vlan| vlan.id == id)
    }

    /// What makes a port that was just plugged in carry these VLANs. `default`
    /// is the VLAN that the bridge gave it; 0 for none.
    pub(crate) fn changes<'a>(&self, port: &'a Link, default: u16) -> Vec<ChangeVlans<'a>> {
        let mut changes = Vec::new();
        if !self.keep_default && default != 0 && !self.wants(default) {
            changes.push(ChangeVlans::delete(port.device(), default));
        }
        // Tagged neighbours go as one range.
        let mut tagged: Vec<(u16, u16)> = Vec::new();
        for vlan in &self.vlans {
            if vlan.untagged {
                let flags = VlanFlags::PVID | VlanFlags::UNTAGGED;
                changes.push(ChangeVlans::add(port.device(), vlan.id, flags));
                continue;
            }
            match tagged.last_mut() {
                Some((_, last)) if last.checked_add(1) == Some(vlan.id) => *last = vlan.id,
                _ => tagged.push((vlan.id, vlan.id)),
            }
        }
        changes.extend(tagged.into_iter().map(|(first, last)| {
            ChangeVlans::add(port.device(), first, VlanFlags::empty()).to(last)
        }));
        changes
    }

    /// Where a port's VLANs differ from these.
    pub(crate) fn compare(
        &self,
        port: &Link,
        default: u16,
        there: &[PortVlan],
        found: &mut Vec<Difference>,
    ) {
        let mine = || there.iter().filter(|vlan| vlan.port == port.index);
        let name = |id: u16| format!("VLAN {id} of port {}", port.name);
        for vlan in &self.vlans {
            let wanted = if vlan.untagged { "untagged" } else { "tagged" };
            let actual = mine().find(|one| one.id == vlan.id).map(|one| {
                if one.flags.contains(VlanFlags::UNTAGGED) { "untagged" } else { "tagged" }
            });
            if actual != Some(wanted) {
                let actual = actual.unwrap_or("missing");
                found.push(Difference::new(name(vlan.id), wanted, actual));
            }
        }
        for extra in mine().filter(|one| !self.wants(one.id)) {
            if !(self.keep_default && extra.id == default) {
                found.push(Difference::new(name(extra.id), "missing", "present"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use podwire_netlink::route::link::LinkFlags;

    /// A link message with nothing but an index: what `Link::decode` needs.
    fn port() -> Link {
        let mut message = [0; 16];
        message[4] = 7;
        let mut link = Link::decode(&message).unwrap();
        link.flags = LinkFlags::UP;
        link
    }

    fn vlans(list: &[(u16, bool)], keep_default: bool) -> PortVlans {
        let vlans = list.iter().map(|(id, untagged)| Vlan { id: *id, untagged: *untagged });
        PortVlans { vlans: vlans.collect(), keep_default }
    }

    fn described(vlans: &PortVlans, default: u16) -> Vec<String> {
        let port = port();
        let changes = vlans.changes(&port, default);
        changes
            .iter()
            .map(|one| {
                let sign = if one.delete { '-' } else { '+' };
                format!("{sign}{}-{} {:#x}", one.first, one.last, one.flags.bits())
            })
            .collect()
    }

    #[test]
    fn b103_the_default_vlan_goes_unless_it_is_wanted_or_kept() {
        let access = PortVlans::access(100, false);
        assert_eq!(described(&access, 1), ["-1-1 0x0", "+100-100 0x6"]);
        assert_eq!(described(&access, 10), ["-10-10 0x0", "+100-100 0x6"]);
        assert_eq!(described(&access, 0), ["+100-100 0x6"]);
        assert_eq!(described(&PortVlans::access(100, true), 1), ["+100-100 0x6"]);
        assert_eq!(described(&PortVlans::access(1, false), 1), ["+1-1 0x6"]);
    }

    #[test]
    fn tagged_neighbours_go_as_ranges() {
        let trunk = vlans(&[(1, true), (10, false), (11, false), (12, false), (20, false)], false);
        assert_eq!(described(&trunk, 1), ["+1-1 0x6", "+10-12 0x0", "+20-20 0x0"]);
    }

    #[test]
    fn differences_name_the_vlan() {
        let wanted = vlans(&[(5, true), (6, false)], false);
        let there = [
            PortVlan { port: 7, id: 5, flags: VlanFlags::empty() },
            PortVlan { port: 7, id: 1, flags: VlanFlags::UNTAGGED },
            PortVlan { port: 8, id: 6, flags: VlanFlags::empty() },
        ];
        let mut found = Vec::new();
        wanted.compare(&port(), 1, &there, &mut found);
        let texts: Vec<_> = found.iter().map(ToString::to_string).collect();
        assert_eq!(
            texts,
            [
                "VLAN 5 of port : expected untagged, found tagged",
                "VLAN 6 of port : expected tagged, found missing",
                "VLAN 1 of port : expected missing, found present",
            ]
        );
        found.clear();
        PortVlans { keep_default: true, ..wanted }.compare(&port(), 1, &there[1..], &mut found);
        assert_eq!(found.len(), 2, "{found:?}");
    }
}
