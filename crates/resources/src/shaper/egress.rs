//! The limit on what comes from the container.

use podwire_netlink::route::Link;
use podwire_plugin::{Attachment, Belongs, Difference, Made, OwnerMark, Resource};
use podwire_spec::error::Error;
use podwire_spec::id::AttachmentKey;

use super::ifb::{self, is_ifb};
use super::shaping::Shaping;
use super::{Present, Recorded, redirect, require_host_end, takeover};
use crate::host_end::is_ours;
use crate::kernel::{Kernel, delete, refused};

/// An ifb with a limit, and the filter that leads to it.
pub struct EgressShaper {
    owner: OwnerMark,
    key: AttachmentKey,
    shaping: Option<Shaping>,
    recorded: Recorded,
    made: Option<(Link, Link)>,
}

impl EgressShaper {
    /// For an attachment; without a limit only to be removed.
    pub fn new(attachment: &Attachment, shaping: Option<Shaping>, recorded: Recorded) -> Self {
        Self { owner: attachment.owner, key: attachment.key.clone(), shaping, recorded, made: None }
    }

    fn ifname(&self) -> &str {
        self.key.ifname.as_str()
    }

    /// Every ifb of this attachment, ours and the Go plugin's.
    fn present(&self, kernel: &mut Kernel, host: Option<&Link>) -> Result<Vec<Link>, Error> {
        let mut all = ifb::owned(kernel, &self.owner)?;
        all.extend(takeover::of_attachment(
            kernel,
            &self.key,
            host,
            &self.recorded.host_interfaces,
        )?);
        Ok(all)
    }

    /// The filters first: what they send to a link that is gone is lost.
    fn take_away(kernel: &mut Kernel, host: Option<&Link>, ifbs: &[Link]) -> Result<(), Error> {
        if let Some(host) = host {
            redirect::remove(kernel.host()?, host, ifbs)?;
        }
        ifbs.iter().try_for_each(|ifb| delete(kernel, ifb))
    }

    fn fill(shaping: &Shaping, kernel: &mut Kernel, host: &Link, ifb: &Link) -> Result<(), Error> {
        let socket = kernel.host()?;
        shaping.apply(socket, ifb)?;
        redirect::add(socket, host, ifb)
    }
}

impl Resource<Kernel> for EgressShaper {
    fn describe(&self) -> String {
        format!("limit of what comes from {} of container {}", self.ifname(), self.key.container_id)
    }

    fn belongs(&self) -> Belongs {
        Belongs::Attachment
    }

    fn make(&mut self, kernel: &mut Kernel) -> Result<Made, Error> {
        let Some(shaping) = self.shaping.clone() else { return Ok(Made::Found) };
        let host = require_host_end(kernel, self.ifname())?;
        if !redirect::targets(kernel.host()?, &host)?.is_empty() {
            // What an ADD without a DEL has left.
            let old = self.present(kernel, Some(&host))?;
            Self::take_away(kernel, Some(&host), &old)?;
        }
        let ifb = ifb::create(kernel, &self.owner, &self.key, host.mtu)?;
        if let Err(error) = Self::fill(&shaping, kernel, &host, &ifb) {
            Self::take_away(kernel, Some(&host), std::slice::from_ref(&ifb))?;
            return Err(error);
        }
        self.made = Some((host, ifb));
        Ok(Made::Created)
    }

    fn check(&self, kernel: &mut Kernel) -> Result<Vec<Difference>, Error> {
        let Some(shaping) = &self.shaping else { return Ok(Vec::new()) };
        let mut found = Vec::new();
        let host = require_host_end(kernel, self.ifname())?;
        let go = takeover::name(self.key.network.as_str(), self.key.container_id.as_str());
        for (index, is_all) in redirect::targets(kernel.host()?, &host)? {
            let ifb = kernel.host()?.link_by_index(index).map_err(refused)?;
            let is_of_attachment =
                |link: &Link| ifb::is_ours(link, &self.owner) || link.name == go && is_ifb(link);
            let Some(ifb) = ifb.filter(is_of_attachment) else { continue };
            let name = format!("redirection of what comes from {} to {}", host.name, ifb.name);
            if !is_all {
                found.push(Difference::new(name, "of everything", "of a part"));
            }
            if !ifb.is_up() {
                found.push(Difference::new(&ifb.name, "up", "down"));
            }
            shaping.check(kernel.host()?, &ifb, &mut found)?;
            return Ok(found);
        }
        let name = format!("redirection of what comes from {} to its ifb", host.name);
        found.push(Difference::missing(name));
        Ok(found)
    }

    /// A host end that was made for this attachment takes the filter with it.
    fn remove(&self, kernel: &mut Kernel) -> Result<(), Error> {
        let pair = Present::find(kernel, self.ifname())?;
        let lasting = pair.as_ref().filter(|pair| !pair.is_marked()).map(|pair| &pair.host);
        let is_own = |pair: &&Present| {
            !pair.is_marked() || is_ours(&pair.host, &self.owner, Some(&self.key))
        };
        let own = pair.as_ref().filter(is_own).map(|pair| &pair.host);
        let ifbs = self.present(kernel, own)?;
        Self::take_away(kernel, lasting, &ifbs)
    }

    fn undo(&mut self, kernel: &mut Kernel) -> Result<(), Error> {
        match self.made.take() {
            Some((host, ifb)) => Self::take_away(kernel, Some(&host), &[ifb]),
            None => Ok(()),
        }
    }
}
