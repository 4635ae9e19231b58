//! Whose an interface in a sandbox is.
//!
//! A namespace's path may be a stranger's by now, with an interface of the same name,
//! so who changes something about one by its name asks first.

use podwire_netlink::route::{Link, MacAddress};
use podwire_plugin::OwnerMark;
use podwire_spec::error::Error;

use crate::host_end::{host_end_of, owner_of_alias};
use crate::kernel::Kernel;

/// Whose an interface in a sandbox is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Whose {
    /// Proven to be the attachment's.
    Ours,
    /// It has the MAC address that the attachment's had. All interfaces on one ipvlan
    /// master have the same, so that this alone proves nothing.
    Alike,
    /// Proven to be another's.
    AnothersOwn,
    /// Nothing tells.
    Unknown,
}

/// Looks for our mark on the interface or on its host end; where neither has any, the
/// MAC address that a result tells decides.
///
/// # Errors
/// The kernel refused to tell.
pub(crate) fn whose(
    kernel: &mut Kernel,
    link: &Link,
    owner: &OwnerMark,
    made: Option<MacAddress>,
) -> Result<Whose, Error> {
    let host_end = host_end_of(kernel, link)?.and_then(|host| host.alias);
    Ok(decide([link.alias.as_deref(), host_end.as_deref()], owner, [made, link.mac]))
}

fn decide(
    aliases: [Option<&str>; 2],
    owner: &OwnerMark,
    [made, found]: [Option<MacAddress>; 2],
) -> Whose {
    let marks: Vec<_> = aliases.into_iter().flatten().filter_map(owner_of_alias).collect();
    match (marks.contains(owner), marks.is_empty(), made, found) {
        (true, ..) => Whose::Ours,
        (false, false, ..) => Whose::AnothersOwn,
        (.., Some(made), Some(found)) if made == found => Whose::Alike,
        (.., Some(_), Some(_)) => Whose::AnothersOwn,
        _ => Whose::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use podwire_spec::id::NetworkName;

    use super::*;

    #[test]
    fn a_mark_decides_before_an_address_and_without_both_nothing_tells() {
        let owner = OwnerMark::new(&NetworkName::parse("pods").unwrap(), "c1", "eth0");
        let [ours, others] = [Some("podwire:pods:c1:eth0"), Some("podwire:pods:c2:eth0")];
        let [one, two] = [1, 2].map(|last| Some(MacAddress([2, 0, 0, 0, 0, last])));
        for (aliases, made, found, expected) in [
            ([None, ours], one, two, Whose::Ours),
            ([ours, None], None, one, Whose::Ours),
            ([None, others], one, one, Whose::AnothersOwn),
            ([others, None], None, one, Whose::AnothersOwn),
            ([Some("uplink"), None], one, one, Whose::Alike),
            ([None, None], one, two, Whose::AnothersOwn),
            ([Some("uplink"), None], None, one, Whose::Unknown),
            ([None, None], one, None, Whose::Unknown),
        ] {
            let found = decide(aliases, &owner, [made, found]);
            assert_eq!(found, expected, "{aliases:?} {made:?}");
        }
    }
}
