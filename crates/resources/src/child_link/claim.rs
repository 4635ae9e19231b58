//! Whose an interface in the container is.
//!
//! The container's namespace is the first proof: nothing of another attachment
//! has this name there. Beyond it, an interface that Podwire made carries its
//! owner's mark as its alias from the instant it has its final name, and a
//! temporary name derived from the mark before that. One without any alias, as
//! other plugins leave it, is the attachment's if it is of the right kind and
//! prevResult lists it, with the same MAC address where it tells one. Versions
//! of the specification before 0.4.0 send no prevResult to DEL; there the kind
//! must do.

use podwire_netlink::route::link_change::{ChangeLink, DeleteLink};
use podwire_netlink::route::{Link, MacAddress};
use podwire_plugin::{Attachment, Difference, OwnerMark};
use podwire_spec::error::Error;
use podwire_spec::id::AttachmentKey;
use podwire_spec::result::CniResult;
use podwire_spec::version::SpecVersion;

use crate::host_end::{alias, owner_of_alias};
use crate::kernel::{Kernel, refused};
use crate::sandbox_path;

/// Temporary names tried before a collision is an error.
const CANDIDATES: u32 = 4;

/// How temporary names begin.
const PREFIX: &str = "new";

/// What the runtime's record says of an interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Evidence {
    /// prevResult lists it.
    Listed {
        /// Its MAC address.
        mac: Option<String>,
        /// Its MTU in bytes.
        mtu: Option<u32>,
        /// Where it is.
        sandbox: Option<String>,
    },
    /// There is no prevResult, or it doesn't list it.
    Missing,
    /// The version doesn't send prevResult to DEL.
    NeverSent,
}

impl Evidence {
    /// What a result of an earlier ADD says of the interface `ifname`.
    pub fn of(result: Option<&CniResult>, ifname: &str, version: SpecVersion) -> Self {
        let text = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
        match result.and_then(|result| result.interface_in_sandbox(ifname)) {
            Some((_, interface)) => Self::Listed {
                mac: text(&interface.mac),
                mtu: interface.mtu,
                sandbox: text(&interface.sandbox),
            },
            None if result.is_none() && version < SpecVersion::V0_4_0 => Self::NeverSent,
            None => Self::Missing,
        }
    }

    /// The same, with an MTU where the record tells none.
    #[must_use]
    pub fn or_mtu(self, expected: Option<u32>) -> Self {
        match self {
            Self::Listed { mac, mtu, sandbox } => {
                Self::Listed { mac, mtu: mtu.or(expected), sandbox }
            }
            other => other,
        }
    }

    pub(crate) fn mtu(&self) -> Option<u32> {
        match self {
            Self::Listed { mtu, .. } => *mtu,
            _ => None,
        }
    }

    fn mac(&self) -> Option<&str> {
        match self {
            Self::Listed { mac, .. } => mac.as_deref(),
            _ => None,
        }
    }

    /// Whether a link without any mark may be taken for the attachment's.
    fn admits(&self, link: &Link) -> bool {
        match self {
            Self::Listed { mac, .. } => mac.as_ref().is_none_or(|mac| has_mac(link, mac)),
            Self::Missing => false,
            Self::NeverSent => true,
        }
    }
}

/// A refusal to make a link under a temporary name.
pub enum Refused {
    /// Something has the name (`EEXIST`), or so it seems; the text for when it
    /// doesn't.
    Taken(Error),
    /// Any other.
    Other(Error),
}

/// The claim of an attachment on an interface of a kind in its namespace.
pub struct Claim {
    owner: OwnerMark,
    key: AttachmentKey,
    /// The kernel's name for the kind.
    kind: &'static str,
    /// What the runtime's record says.
    pub evidence: Evidence,
}

impl Claim {
    /// An attachment's claim; `kind` is the kernel's name: `macvlan`, `tun`.
    pub fn new(attachment: &Attachment, kind: &'static str, evidence: Evidence) -> Self {
        Self { owner: attachment.owner, key: attachment.key.clone(), kind, evidence }
    }

    fn ifname(&self) -> &str {
        self.key.ifname.as_str()
    }

    /// The interface for people, as ADD and DEL name it.
    pub fn describe(&self) -> String {
        format!("interface {} of container {}", self.ifname(), self.key.container_id)
    }

    /// The interface for people, as CHECK names it.
    pub fn name_inside(&self) -> String {
        format!("interface {} in the container", self.ifname())
    }

    /// Refuses to go on where the interface's name is taken.
    ///
    /// # Errors
    /// It is, or the kernel refused to tell.
    pub fn refuse_taken(&self, kernel: &mut Kernel) -> Result<(), Error> {
        match kernel.container()?.link_by_name(self.ifname()).map_err(refused)? {
            Some(_) => Err(self.taken()),
            None => Ok(()),
        }
    }

    fn taken(&self) -> Error {
        Error::already_exists(format!(
            "interface {} already exists in the container",
            self.ifname()
        ))
        .with_details("nothing was changed; DEL the attachment first, or choose another CNI_IFNAME")
    }

    /// Has `make` make a link in the container under the first free temporary
    /// name, and returns it. What a killed ADD of this attachment left under one
    /// is removed.
    ///
    /// # Errors
    /// What `make` says, or all names are taken by others.
    pub fn under_temporary_name(
        &self,
        kernel: &mut Kernel,
        make: impl Fn(&mut Kernel, &str) -> Result<Result<(), Refused>, Error>,
    ) -> Result<Link, Error> {
        for candidate in 0..CANDIDATES {
            let name = self.owner.short_name(PREFIX, candidate);
            let mut made = make(kernel, &name)?;
            if matches!(made, Err(Refused::Taken(_))) && self.remove_left_over(kernel, &name)? {
                made = make(kernel, &name)?;
            }
            match made {
                Ok(()) => return kernel.container_link(&name),
                Err(Refused::Other(error)) => return Err(error),
                Err(Refused::Taken(error)) => {
                    let inside = kernel.container()?.link_by_name(&name).map_err(refused)?;
                    let outside = kernel.host()?.link_by_name(&name).map_err(refused)?;
                    if inside.is_none() && outside.is_none() {
                        return Err(error);
                    }
                }
            }
        }
        Err(Error::internal(format!(
            "{CANDIDATES} temporary interface names of attachment {} are taken by others",
            self.owner
        )))
    }

    /// Gives a link in the container its final name and its owner's mark, and a
    /// MAC address where one is due. If it can't have them, it is deleted.
    ///
    /// # Errors
    /// The name is taken, or the kernel refuses the address.
    pub fn take(
        &self,
        kernel: &mut Kernel,
        mut link: Link,
        mac: Option<MacAddress>,
    ) -> Result<Link, Error> {
        let alias = alias(&self.key, &self.owner);
        let mut change = ChangeLink::new(link.device()).name(self.ifname()).alias(&alias);
        if let Some(mac) = mac {
            change = change.mac(mac);
        }
        let outcome = kernel.container()?.apply(&change);
        if let Err(error) = outcome {
            delete_inside(kernel, &link)?;
            return Err(if error.is_exists() { self.taken() } else { refused(error) });
        }
        link.mac = mac.or(link.mac);
        self.ifname().clone_into(&mut link.name);
        link.alias = Some(alias);
        Ok(link)
    }

    /// The interface, if it is provably this attachment's.
    ///
    /// # Errors
    /// The kernel refused to tell.
    pub fn find(&self, kernel: &mut Kernel) -> Result<Option<Link>, Error> {
        let link = kernel.container()?.link_by_name(self.ifname()).map_err(refused)?;
        Ok(link.filter(|link| self.is_ours(link)))
    }

    fn is_ours(&self, link: &Link) -> bool {
        link.kind_name() == self.kind
            && match &link.alias {
                Some(text) => {
                    *text == alias(&self.key, &self.owner)
                        || owner_of_alias(text) == Some(self.owner)
                }
                None => self.evidence.admits(link),
            }
    }

    /// Removes the interface as far as it is provably this attachment's, under
    /// its final name or a temporary one. Without a namespace it is gone.
    ///
    /// # Errors
    /// The kernel refused.
    pub fn remove(&self, kernel: &mut Kernel) -> Result<(), Error> {
        if !kernel.has_sandbox() {
            return Ok(());
        }
        let there = kernel.container()?.link_by_name(self.ifname()).map_err(refused)?;
        match there {
            Some(link) if self.is_ours(&link) => return delete_inside(kernel, &link),
            Some(_) => log::warn!(
                "interface {} in the namespace is left alone: nothing proves that it belongs to \
                 container {}",
                self.ifname(),
                self.key.container_id
            ),
            None => {}
        }
        for candidate in 0..CANDIDATES {
            self.remove_left_over(kernel, &self.owner.short_name(PREFIX, candidate))?;
        }
        Ok(())
    }

    /// Removes what an ADD that was killed left under a temporary name; says
    /// whether there was something.
    fn remove_left_over(&self, kernel: &mut Kernel, name: &str) -> Result<bool, Error> {
        let link = kernel.container()?.link_by_name(name).map_err(refused)?;
        match link.filter(|link| link.kind_name() == self.kind && link.alias.is_none()) {
            Some(link) => delete_inside(kernel, &link).map(|()| true),
            None => Ok(false),
        }
    }

    /// Compares kind, MAC address, MTU and namespace with what is recorded.
    /// Returns the interface if it is there and of its kind.
    ///
    /// # Errors
    /// The kernel refused to tell.
    pub fn check(
        &self,
        kernel: &mut Kernel,
        found: &mut Vec<Difference>,
    ) -> Result<Option<Link>, Error> {
        let name = self.name_inside();
        if let Evidence::Listed { sandbox, .. } = &self.evidence {
            sandbox_path::compare(kernel, sandbox.as_deref(), self.ifname(), found)?;
        }
        let Some(link) = kernel.container()?.link_by_name(self.ifname()).map_err(refused)? else {
            found.push(Difference::missing(name));
            return Ok(None);
        };
        if link.kind_name() != self.kind {
            let kind = if link.kind.is_none() { "a device" } else { link.kind_name() };
            found.push(Difference::new(&name, format!("a {}", self.kind), kind));
            return Ok(None);
        }
        // Where there is none it may be another plugin's work.
        if let Some(text) = link.alias.as_ref().filter(|_| !self.is_ours(&link)) {
            let expected = alias(&self.key, &self.owner);
            found.push(Difference::new(format!("{name}, alias"), expected, text));
        }
        if let Some(expected) = self.evidence.mac().filter(|mac| !has_mac(&link, mac)) {
            let mac = link.mac.map(|mac| mac.to_string()).unwrap_or_default();
            found.push(Difference::new(format!("{name}, MAC address"), expected, mac));
        }
        if let Some(expected) = self.evidence.mtu().filter(|mtu| *mtu != link.mtu) {
            let (expected, actual) = (expected.to_string(), link.mtu.to_string());
            found.push(Difference::new(format!("{name}, MTU"), expected, actual));
        }
        Ok(Some(link))
    }
}

/// Deletes a link in the container; one that is gone already is fine.
fn delete_inside(kernel: &mut Kernel, link: &Link) -> Result<(), Error> {
    match kernel.container()?.apply(&DeleteLink(link.device())) {
        Err(error) if !error.is_not_found() => Err(refused(error)),
        _ => Ok(()),
    }
}

fn has_mac(link: &Link, text: &str) -> bool {
    link.mac.is_some_and(|mac| mac.to_string().eq_ignore_ascii_case(text))
}
