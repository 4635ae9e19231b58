//! Accepting what a container sends and what answers it, past a host whose
//! policy is to drop what it would route.

use std::collections::BTreeSet;
use std::net::IpAddr;

use podwire_netlink::nft::IpVersion;
use podwire_plugin::{Belongs, Difference, Made, OwnerMark, Resource};
use podwire_spec::error::Error;
use podwire_spec::id::AttachmentKey;

use super::filter::{self, Answer, Where};
use super::isolation::STAGE_1;
use super::rule::{HostRule, Match, Target};
use super::view::{Edit, FORWARD, View};
use crate::kernel::Kernel;
use crate::nft::{display_name, owner_comment};

/// The chain that holds the rules of all containers.
pub(super) const CHAIN: &str = "CNI-FORWARD";
/// The comments of what they share, by which administrators and other tools
/// (nerdctl) find it.
const ENTRY_COMMENT: &str = "CNI firewall plugin rules";
const ADMIN_COMMENT: &str = "CNI firewall plugin admin overrides";

/// Both IP versions.
pub(super) const VERSIONS: [IpVersion; 2] = [IpVersion::V4, IpVersion::V6];

/// The accepting rules of one attachment.
#[derive(Debug, Clone)]
pub struct Accepts {
    owner: OwnerMark,
    key: AttachmentKey,
    addresses: Vec<IpAddr>,
    admin_chain: String,
}

impl Accepts {
    /// The rules for these addresses of an attachment. `admin_chain` comes
    /// before all of them; it is made if need be, and never deleted. On DEL
    /// addresses are needed only for rules that the Go plugin made.
    pub fn new(key: &AttachmentKey, addresses: Vec<IpAddr>, admin_chain: &str) -> Self {
        let admin_chain = admin_chain.to_owned();
        Self { owner: OwnerMark::of(key), key: key.clone(), addresses, admin_chain }
    }

    fn of_version(&self, version: IpVersion) -> Vec<IpAddr> {
        let is_v4 = version == IpVersion::V4;
        self.addresses.iter().copied().filter(|address| address.is_ipv4() == is_v4).collect()
    }

    /// The rules of one address as we make them.
    fn rules(&self, address: IpAddr) -> [HostRule; 2] {
        let comment = owner_comment(&self.key);
        go_rules(address).map(|rule| rule.with_comment(&comment))
    }

    /// Whether the rules are there for all addresses, ours or the Go
    /// plugin's, in the filters that the host uses.
    ///
    /// # Errors
    /// When the kernel refuses to tell.
    pub fn differences(&self, kernel: &mut Kernel) -> Result<Vec<Difference>, Error> {
        let mut found = Vec::new();
        for version in VERSIONS {
            let addresses = self.of_version(version);
            if !addresses.is_empty() {
                for view in filter::views(kernel, version, &[FORWARD, CHAIN])? {
                    self.compare(&view, &addresses, &mut found);
                }
            }
        }
        Ok(found)
    }

    fn compare(&self, view: &View, addresses: &[IpAddr], found: &mut Vec<Difference>) {
        let tool = if view.version == IpVersion::V4 { "iptables" } else { "ip6tables" };
        if view.jump(FORWARD, CHAIN).is_none() {
            found.push(Difference::missing(format!("{tool} rule from {FORWARD} to {CHAIN}")));
        }
        if view.jump(CHAIN, &self.admin_chain).is_none() {
            let object = format!("{tool} rule from {CHAIN} to {}", self.admin_chain);
            found.push(Difference::missing(object));
        }
        for address in addresses {
            for (ours, gos) in self.rules(*address).iter().zip(go_rules(*address)) {
                if view.find(ours).or_else(|| view.find(&gos)).is_none() {
                    let words = gos.words().join(" ");
                    found.push(Difference::missing(format!("{tool} rule -A {CHAIN} {words}")));
                }
            }
        }
    }
}

/// The rules of one address as the Go plugin makes them: whose they are can't
/// be seen.
fn go_rules(address: IpAddr) -> [HostRule; 2] {
    let answers = vec![Match::Destination(address), Match::Established];
    [
        HostRule::new(CHAIN, answers, Target::Accept),
        HostRule::new(CHAIN, vec![Match::Source(address)], Target::Accept),
    ]
}

fn entry() -> HostRule {
    HostRule::new(FORWARD, Vec::new(), Target::Jump(CHAIN.to_owned())).with_comment(ENTRY_COMMENT)
}

fn admin(chain: &str) -> HostRule {
    HostRule::new(CHAIN, Vec::new(), Target::Jump(chain.to_owned())).with_comment(ADMIN_COMMENT)
}

/// What makes the rules of an attachment stand, behind the isolation of
/// bridges and the administrator's chain.
pub(super) fn opening(view: &View, accepts: &Accepts, addresses: &[IpAddr]) -> Vec<Edit> {
    let mut edits = Vec::new();
    if view.jump(FORWARD, CHAIN).is_none() {
        edits.push(Edit::AddChain(FORWARD.to_owned()));
        edits.push(Edit::AddChain(CHAIN.to_owned()));
        edits.push(match view.jump(FORWARD, STAGE_1) {
            Some(isolation) => Edit::InsertBehind(entry(), isolation),
            None => Edit::Insert(entry()),
        });
    }
    if view.jump(CHAIN, &accepts.admin_chain).is_none() {
        edits.push(Edit::AddChain(accepts.admin_chain.clone()));
        edits.push(Edit::Insert(admin(&accepts.admin_chain)));
    }
    let wanted: Vec<_> = addresses.iter().flat_map(|address| accepts.rules(*address)).collect();
    let nobodys: Vec<_> = addresses.iter().flat_map(|address| go_rules(*address)).collect();
    let mut kept = BTreeSet::new();
    for (number, seen) in view.of(CHAIN) {
        let place = wanted.iter().position(|rule| seen.is(rule));
        let is_old = seen.owner() == Some(accepts.owner) || nobodys.iter().any(|one| seen.is(one));
        match place {
            Some(place) if kept.insert(place) => {}
            _ if is_old => edits.push(Edit::Delete(number)),
            _ => {}
        }
    }
    let missing = wanted.into_iter().enumerate().filter(|(place, _)| !kept.contains(place));
    edits.extend(missing.map(|(_, rule)| Edit::Append(rule)));
    edits
}

/// What takes the rules of owners away. Rules without an owner go only if
/// these addresses are given and the owners have no rules of their own: then
/// the Go plugin made them. With the last rule goes the chain, unless an
/// administrator has put something into it or into the chain before it.
pub(super) fn closing(
    view: &View,
    is_leaving: &dyn Fn(&OwnerMark) -> bool,
    addresses: &[IpAddr],
) -> Answer {
    let own = |seen: &super::rule::Seen| seen.owner().is_some_and(|owner| is_leaving(&owner));
    let mut leaving: Vec<_> =
        view.of(CHAIN).filter(|(_, seen)| own(seen)).map(|(number, _)| number).collect();
    if leaving.is_empty() {
        let nobodys: Vec<_> = addresses.iter().flat_map(|address| go_rules(*address)).collect();
        let is_nobodys = |seen: &super::rule::Seen| nobodys.iter().any(|rule| seen.is(rule));
        leaving.extend(view.of(CHAIN).filter(|(_, seen)| is_nobodys(seen)).map(|(one, _)| one));
    }
    let mut edits: Vec<_> = leaving.iter().map(|number| Edit::Delete(*number)).collect();
    let mut staying = view.of(CHAIN).filter(|(number, _)| !leaving.contains(number));
    let mut overrides = Vec::new();
    let is_idle = view.chains.contains(CHAIN)
        && staying.all(|(_, seen)| match (seen.jumps_to(), seen.comment.as_deref()) {
            (Some(chain), Some(ADMIN_COMMENT)) => {
                overrides.push(chain.to_owned());
                true
            }
            _ => false,
        });
    if is_idle {
        overrides.retain(|chain| !view.chains.contains(chain));
        if !overrides.is_empty() {
            // The kernel has every chain that a rule jumps to.
            return Answer::Look(overrides);
        }
        let has_overrides =
            view.rules.iter().any(|seen| seen.chain != FORWARD && seen.chain != CHAIN);
        if !has_overrides {
            let jumps = view.of(FORWARD).filter(|(_, seen)| seen.jumps_to() == Some(CHAIN));
            edits.extend(jumps.map(|(number, _)| Edit::Delete(number)));
            edits.push(Edit::DeleteChain(CHAIN.to_owned()));
        }
    }
    Answer::Edits(edits)
}

/// Removes the rules of owners from every filter.
pub(super) fn remove(
    kernel: &mut Kernel,
    is_leaving: &dyn Fn(&OwnerMark) -> bool,
    addresses: &[IpAddr],
) -> Result<(), Error> {
    for version in VERSIONS {
        let of_version: Vec<_> = addresses
            .iter()
            .copied()
            .filter(|address| address.is_ipv4() == (version == IpVersion::V4))
            .collect();
        filter::change(kernel, version, &[FORWARD, CHAIN], Where::Everywhere, |_, view| {
            Ok(closing(view, is_leaving, &of_version))
        })?;
    }
    Ok(())
}

impl Resource<Kernel> for Accepts {
    fn describe(&self) -> String {
        format!("firewall rules of {}", display_name(&self.key))
    }

    fn belongs(&self) -> Belongs {
        Belongs::Attachment
    }

    fn make(&mut self, kernel: &mut Kernel) -> Result<Made, Error> {
        let mut made = Made::Found;
        for version in VERSIONS {
            let addresses = self.of_version(version);
            if addresses.is_empty() {
                continue;
            }
            let changed =
                filter::change(kernel, version, &[FORWARD, CHAIN], Where::Used, |_, view| {
                    Ok(Answer::Edits(opening(view, self, &addresses)))
                });
            match changed {
                Ok(true) => made = Made::Created,
                Ok(false) => {}
                Err(error) => {
                    if made == Made::Created
                        && let Err(left) = self.remove(kernel)
                    {
                        log::warn!("could not take back {}: {left}", self.describe());
                    }
                    return Err(error);
                }
            }
        }
        Ok(made)
    }

    fn check(&self, kernel: &mut Kernel) -> Result<Vec<Difference>, Error> {
        self.differences(kernel)
    }

    fn remove(&self, kernel: &mut Kernel) -> Result<(), Error> {
        remove(kernel, &|owner| *owner == self.owner, &self.addresses)
    }
}
