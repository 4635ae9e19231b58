//! The bridge that attachments of a network share.

use podwire_netlink::route::link_change::ChangeLink;
use podwire_netlink::route::link_kind::{BridgeSettings, LinkKind};
use podwire_netlink::route::link_new::{End, NewKind, NewLink};
use podwire_netlink::route::{Link, MacAddress, RouteSocket};
use podwire_plugin::{Belongs, Difference, Made, Resource};
use podwire_spec::error::{Error, ErrorCode};
use podwire_sys::netns::NetNs;
use podwire_sys::{random, sysctl};

use crate::kernel::{Kernel, delete, refused};

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
    /// Its MAC address as CHECK expects it. Matters only where containers
    /// know it, as their gateway's: a bridge that was made without an address
    /// takes its ports'.
    pub expected_mac: Option<String>,
    done: Done,
}

/// What this call did to the bridge, to be taken back when the ADD fails.
#[derive(Default)]
struct Done {
    created: bool,
    switched_on: bool,
    made_promiscuous: bool,
    /// Who was plugged in before.
    ports: Vec<u32>,
}

impl Bridge {
    /// A bridge with nothing asked of it.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            mtu: None,
            vlan_filtering: false,
            promiscuous: false,
            expected_mac: None,
            done: Done::default(),
        }
    }

    /// Whether an ADD could use or make the bridge.
    ///
    /// # Errors
    /// Code 50 when its name is another interface's, or VLANs are wanted and
    /// the bridge, or the kernel, doesn't filter them.
    pub fn could_serve(&self, kernel: &mut Kernel) -> Result<(), Error> {
        let unavailable = |error| Error { code: ErrorCode::Unavailable, ..error };
        let found = self.find(kernel).map_err(unavailable)?;
        match found {
            Some(link) => self
                .require_filtering(&link)
                .map_err(|error| unavailable(error.context(self.describe()))),
            None if self.vlan_filtering => kernel_filters_vlans().map_err(unavailable),
            None => Ok(()),
        }
    }

    /// The link, if it is there and is a bridge.
    fn find(&self, kernel: &mut Kernel) -> Result<Option<Link>, Error> {
        let link = kernel.host()?.link_by_name(&self.name).map_err(refused)?;
        match link {
            Some(link) if !link.is_bridge() => Err(Error::config(format!(
                "\"{}\" already exists but is not a bridge (it is {})",
                self.name,
                match link.kind_name() {
                    "" => "a physical device",
                    kind => kind,
                }
            ))
            .with_details("choose another name with the key \"bridge\"")),
            found => Ok(found),
        }
    }

    /// A bridge that was made without VLANs stays so: filtering would cut off
    /// tagged traffic that its other ports may rely on.
    fn require_filtering(&self, link: &Link) -> Result<(), Error> {
        match settings(link).vlan_filtering {
            Some(true) => Ok(()),
            _ if !self.vlan_filtering => Ok(()),
            None => Err(no_filtering()),
            Some(false) => Err(Error::internal(format!(
                "bridge {} exists and doesn't filter VLANs",
                self.name
            ))
            .with_details(format!(
                "if none of its ports carries tagged frames: ip link set {} type bridge \
                     vlan_filtering 1; or choose another bridge",
                self.name
            ))),
        }
    }

    /// Makes it; `None` when a parallel first ADD was faster.
    fn create(&self, kernel: &mut Kernel) -> Result<Option<Link>, Error> {
        // Set explicitly, or the bridge changes its address with its ports
        // until the first IP address pins it, and udev may rewrite it.
        let mut end = End::new(&self.name).mac(random_mac()?);
        if let Some(mtu) = self.mtu {
            end = end.mtu(mtu);
        }
        match kernel.host()?.create_link(&new_bridge(end, self.vlan_filtering)) {
            Ok(link) => Ok(Some(link)),
            Err(error) if error.is_exists() => Ok(None),
            Err(error) if self.vlan_filtering && error.is_unsupported() => Err(no_filtering()),
            Err(error) => Err(refused(error)),
        }
    }

    /// Switches on what isn't yet.
    fn adjust(&mut self, kernel: &mut Kernel, link: &Link) -> Result<(), Error> {
        self.done.switched_on = !link.is_up();
        self.done.made_promiscuous = self.promiscuous && !is_promiscuous(link);
        // A bridge that was made without an address has forgotten it with its
        // last port; none could be pinned then (containernetworking/plugins#620).
        let has_mac = link.mac.is_some_and(|mac| mac.0 != [0; 6]);
        if !self.done.switched_on && !self.done.made_promiscuous && has_mac {
            return Ok(());
        }
        if !self.done.created {
            self.done.ports = ports(kernel, link.index)?;
        }
        let mut change = ChangeLink::new(link.device()).up();
        if self.done.made_promiscuous {
            change = change.promiscuous(true);
        }
        if !has_mac {
            change = change.mac(random_mac()?);
        }
        kernel.host()?.apply(&change).map_err(refused)
    }
}

impl Resource<Kernel> for Bridge {
    fn describe(&self) -> String {
        format!("bridge {}", self.name)
    }

    fn belongs(&self) -> Belongs {
        Belongs::Host
    }

    fn make(&mut self, kernel: &mut Kernel) -> Result<Made, Error> {
        kernel.share_bridges()?;
        let mut found = self.find(kernel)?;
        if found.is_none() {
            found = self.create(kernel)?;
            self.done.created = found.is_some();
        }
        let link = match found {
            Some(link) => link,
            None => self.find(kernel)?.ok_or_else(|| {
                Error::try_again(format!("{} vanished right after it was made", self.describe()))
            })?,
        };
        self.require_filtering(&link)?;
        // Without it the host would take router advertisements from
        // containers. Absent where IPv6 is off, and no reason to fail.
        let _ = sysctl::ensure(&["net", "ipv6", "conf", &self.name, "accept_ra"], "0");
        if let Err(error) = self.adjust(kernel, &link) {
            self.undo(kernel)?;
            return Err(error);
        }
        kernel.remember_host(&link);
        let Done { created, switched_on, made_promiscuous, .. } = self.done;
        let changed = created || switched_on || made_promiscuous;
        Ok(if changed { Made::Created } else { Made::Found })
    }

    fn check(&self, kernel: &mut Kernel) -> Result<Vec<Difference>, Error> {
        let name = self.describe();
        let Some(link) = self.find(kernel)? else {
            return Ok(vec![Difference::missing(name)]);
        };
        let mut found = Vec::new();
        if !link.is_up() {
            found.push(Difference::new(&name, "up", "down"));
        }
        found.extend(mac_difference(&name, &link, self.expected_mac.as_deref()));
        // Only a missing mode is a difference: tcpdump sets it as well.
        if self.promiscuous && !is_promiscuous(&link) {
            found.push(Difference::new(format!("{name}, promiscuous mode"), "on", "off"));
        }
        if self.vlan_filtering && settings(&link).vlan_filtering != Some(true) {
            found.push(Difference::new(format!("{name}, VLAN filtering"), "on", "off"));
        }
        Ok(found)
    }

    fn remove(&self, _: &mut Kernel) -> Result<(), Error> {
        Ok(())
    }

    /// Only reached when this call changed something, which is taken back
    /// unless another attachment has joined the bridge or is about to.
    fn undo(&mut self, kernel: &mut Kernel) -> Result<(), Error> {
        if !kernel.has_bridges_alone() {
            return Ok(());
        }
        let Some(link) = self.find(kernel)? else { return Ok(()) };
        if somebody_joined(kernel, link.index, &self.done.ports)? {
            return Ok(());
        }
        if self.done.created {
            return delete(kernel, &link);
        }
        let mut change = ChangeLink::new(link.device());
        if self.done.made_promiscuous {
            change = change.promiscuous(false);
        }
        if self.done.switched_on {
            change = change.down();
        }
        kernel.host()?.apply(&change).map_err(refused)
    }
}

fn new_bridge(end: End<'_>, vlan_filtering: bool) -> NewLink<'_> {
    let vlan_filtering = vlan_filtering.then_some(true);
    NewLink::new(end, NewKind::Bridge { vlan_filtering, default_pvid: None }).up()
}

/// Asks the kernel by making such a bridge where nobody sees it.
fn kernel_filters_vlans() -> Result<(), Error> {
    let failed = |error| Error::io(format!("making a network namespace for a trial: {error}"));
    let mut nowhere = NetNs::anonymous()
        .and_then(|netns| netns.run(RouteSocket::open))
        .map_err(failed)?
        .map_err(refused)?;
    match nowhere.apply(&new_bridge(End::new("trial"), true)) {
        Err(error) if error.is_unsupported() => Err(no_filtering()),
        outcome => outcome.map_err(refused),
    }
}

/// The difference of a link whose MAC address isn't the one of the record.
pub(crate) fn mac_difference(
    name: &str,
    link: &Link,
    expected: Option<&str>,
) -> Option<Difference> {
    let mac = link.mac.map(|mac| mac.to_string()).unwrap_or_default();
    let expected = expected.filter(|wanted| !wanted.is_empty())?;
    let differs = !expected.eq_ignore_ascii_case(&mac);
    differs.then(|| Difference::new(format!("{name}, MAC address"), expected, mac))
}

/// VLANs were asked for and can't be had.
pub(crate) fn no_filtering() -> Error {
    Error::internal("this kernel has no VLAN filtering for bridges").with_details(
        "remove \"vlan\" and \"vlanTrunk\", or boot a kernel with CONFIG_BRIDGE_VLAN_FILTERING",
    )
}

/// The interfaces plugged into a bridge, without the one that this call made.
pub(crate) fn ports(kernel: &mut Kernel, bridge: u32) -> Result<Vec<u32>, Error> {
    let own = kernel.pair_index();
    let links = kernel.host()?.links().map_err(refused)?;
    let ports = links.iter().filter(|port| port.master == Some(bridge));
    Ok(ports.map(|port| port.index).filter(|index| Some(*index) != own).collect())
}

/// Whether a bridge has a port that wasn't there `before`.
pub(crate) fn somebody_joined(
    kernel: &mut Kernel,
    bridge: u32,
    before: &[u32],
) -> Result<bool, Error> {
    Ok(ports(kernel, bridge)?.iter().any(|port| !before.contains(port)))
}

/// Whether an administrator, or we, asked for every frame; not tcpdump, whose
/// wish goes with it.
fn is_promiscuous(link: &Link) -> bool {
    use podwire_netlink::route::link::LinkFlags;
    link.flags.contains(LinkFlags::PROMISCUOUS)
}

/// The settings of a link that is a bridge.
pub(crate) fn settings(link: &Link) -> BridgeSettings {
    match &link.kind {
        Some(LinkKind::Bridge(settings)) => *settings,
        _ => BridgeSettings::default(),
    }
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
