//! The bridge that attachments of a network share.

use podwire_netlink::route::link_change::{ChangeLink, DeleteLink};
use podwire_netlink::route::link_new::{End, NewKind, NewLink};
use podwire_netlink::route::{Link, MacAddress};
use podwire_plugin::{Belongs, Difference, Made, Resource};
use podwire_spec::error::Error;
use podwire_sys::{random, sysctl};

use crate::kernel::{Kernel, refused};

/// A bridge on the host, made by the first attachment and left by the last:
/// others may use it, and its address and MAC are known to containers.
pub struct Bridge {
    /// Its name.
    pub name: String,
    /// MTU at creation, in bytes; an existing bridge keeps its own.
    pub mtu: Option<u32>,
    /// Filter VLANs. Sent only when wanted: kernels without the feature
    /// refuse the very attribute (containernetworking/plugins PR 434).
    pub vlan_filtering: bool,
    /// Promiscuous mode.
    pub promiscuous: bool,
    /// Its MAC address as CHECK expects it.
    pub expected_mac: Option<String>,
}

impl Bridge {
    fn describe_name(&self) -> String {
        format!("bridge {}", self.name)
    }

    /// The link, if it is there and is a bridge.
    fn find(&self, kernel: &mut Kernel) -> Result<Option<Link>, Error> {
        let link = kernel.host()?.link_by_name(&self.name).map_err(refused)?;
        match link {
            Some(link) if !link.is_bridge() => Err(Error::config(format!(
                "\"{}\" already exists but is not a bridge (it is {})",
                self.name,
                if link.kind_name().is_empty() { "a physical device" } else { link.kind_name() }
            ))
            .with_details("choose another name with the key \"bridge\"")),
            found => Ok(found),
        }
    }

    fn create(&self, kernel: &mut Kernel) -> Result<bool, Error> {
        // Set explicitly, or the bridge changes its address with its ports
        // until the first IP address pins it, and udev may rewrite it.
        let mut end = End::new(&self.name).mac(random_mac()?);
        if let Some(mtu) = self.mtu {
            end = end.mtu(mtu);
        }
        let vlan_filtering = self.vlan_filtering.then_some(true);
        let kind = NewKind::Bridge { vlan_filtering, default_pvid: None };
        let new = NewLink::new(end, kind).up();
        match kernel.host()?.apply(&new) {
            Ok(()) => Ok(true),
            // A parallel first ADD was faster.
            Err(error) if error.is_exists() => Ok(false),
            Err(error) if self.vlan_filtering && error.is_unsupported() => Err(refused(error)
                .with_details(
                    "this kernel has no VLAN filtering for bridges (CONFIG_BRIDGE_VLAN_FILTERING); \
                     remove \"vlan\" and \"vlanTrunk\" or boot a kernel that has it",
                )),
            Err(error) => Err(refused(error)),
        }
    }
}

impl Resource<Kernel> for Bridge {
    fn describe(&self) -> String {
        self.describe_name()
    }

    fn belongs(&self) -> Belongs {
        Belongs::Host
    }

    fn make(&mut self, kernel: &mut Kernel) -> Result<Made, Error> {
        let mut made = Made::Found;
        let link = match self.find(kernel)? {
            Some(link) => link,
            None => {
                if self.create(kernel)? {
                    made = Made::Created;
                }
                self.find(kernel)?.ok_or_else(|| {
                    Error::try_again(format!(
                        "bridge {} vanished right after it was made",
                        self.name
                    ))
                })?
            }
        };
        if made == Made::Created {
            // Without it the host would take router advertisements from
            // containers. Absent where IPv6 is off.
            let _ = sysctl::ensure(&["net", "ipv6", "conf", &self.name, "accept_ra"], "0");
        }
        let promiscuous = self.promiscuous && !is_promiscuous(&link);
        if !link.is_up() || promiscuous {
            let mut change = ChangeLink::new(link.device()).up();
            if promiscuous {
                change = change.promiscuous(true);
            }
            kernel.host()?.apply(&change).map_err(refused)?;
        }
        Ok(made)
    }

    fn check(&self, kernel: &mut Kernel) -> Result<Vec<Difference>, Error> {
        let name = self.describe_name();
        let Some(link) = self.find(kernel)? else {
            return Ok(vec![Difference::missing(name)]);
        };
        let mut found = Vec::new();
        if !link.is_up() {
            found.push(Difference::new(&name, "up", "down"));
        }
        let mac = link.mac.map(|mac| mac.to_string()).unwrap_or_default();
        if let Some(expected) = self.expected_mac.as_ref().filter(|mac| !mac.is_empty())
            && !expected.eq_ignore_ascii_case(&mac)
        {
            found.push(Difference::new(format!("{name}, MAC address"), expected, mac));
        }
        // Only a missing mode is a difference: tcpdump sets it as well.
        if self.promiscuous && !is_promiscuous(&link) {
            found.push(Difference::new(format!("{name}, promiscuous mode"), "on", "off"));
        }
        if self.vlan_filtering && !is_filtering(&link) {
            found.push(Difference::new(format!("{name}, VLAN filtering"), "on", "off"));
        }
        Ok(found)
    }

    fn remove(&self, _: &mut Kernel) -> Result<(), Error> {
        Ok(())
    }

    /// Only reached for a bridge this call made. It goes unless another
    /// attachment has joined it meanwhile.
    fn undo(&mut self, kernel: &mut Kernel) -> Result<(), Error> {
        let Some(link) = self.find(kernel)? else { return Ok(()) };
        let ports = kernel.host()?.links().map_err(refused)?;
        if ports.iter().any(|port| port.master == Some(link.index)) {
            return Ok(());
        }
        match kernel.host()?.apply(&DeleteLink(link.device())) {
            Err(error) if !error.is_not_found() => Err(refused(error)),
            _ => Ok(()),
        }
    }
}

/// Whether somebody wants every frame.
fn is_promiscuous(link: &Link) -> bool {
    link.promiscuity > 0
}

fn is_filtering(link: &Link) -> bool {
    use podwire_netlink::route::link_kind::LinkKind;
    matches!(&link.kind, Some(LinkKind::Bridge(settings)) if settings.vlan_filtering == Some(true))
}

/// A random locally administered unicast address (IEEE 802).
///
/// # Errors
/// The kernel gave no random bytes.
pub fn random_mac() -> Result<MacAddress, Error> {
    let mut octets: [u8; 6] = random::bytes()
        .map_err(|error| Error::io(format!("random bytes for a MAC address: {error}")))?;
    let [first, ..] = &mut octets;
    *first = (*first & 0xfe) | 2;
    Ok(MacAddress(octets))
}
