//! The host end of a pair as a port of a bridge: plugged in, switched on,
//! forwarding.

use std::time::Duration;

use podwire_netlink::route::bridge::{ChangePort, ChangeVlans, PortSettings, PortVlan, VlanFlags};
use podwire_netlink::route::link::OperationalState;
use podwire_netlink::route::link_change::ChangeLink;
use podwire_netlink::route::{Change, Link};
use podwire_plugin::{Belongs, Difference, Made, Resource};
use podwire_spec::error::Error;

use crate::kernel::{Kernel, refused};
use crate::veth::host_end_of;

/// How long a port may take to come up once both ends are switched on.
const UP_WAIT: Duration = Duration::from_millis(2_500);

/// The VLAN that the kernel gives every port of a filtering bridge.
const DEFAULT_VLAN: u16 = 1;

/// One VLAN of a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Vlan {
    /// Its id, 1 to 4094.
    pub id: u16,
    /// Whether untagged frames belong to it.
    pub untagged: bool,
}

/// The host end as a port.
pub struct BridgePort {
    /// The bridge.
    pub bridge: String,
    /// The interface inside the container; its peer is the port.
    pub ifname: String,
    /// Frames may leave where they came in.
    pub hairpin: bool,
    /// Doesn't reach other isolated ports.
    pub isolated: bool,
    /// The port's VLANs; `None` leaves them to the kernel.
    pub vlans: Option<Vec<Vlan>>,
    /// Keep the kernel's default VLAN beside them.
    pub keep_default_vlan: bool,
    /// Whether the container's end is switched on, so that the port comes up.
    pub expect_up: bool,
}

impl BridgePort {
    fn port(&self, kernel: &mut Kernel) -> Result<Option<Link>, Error> {
        let inside = kernel.container()?.link_by_name(&self.ifname).map_err(refused)?;
        match inside {
            Some(inside) => host_end_of(kernel, &inside),
            None => Ok(None),
        }
    }

    fn vlan_changes<'a>(&'a self, port: &'a Link, vlans: &[Vlan]) -> Vec<ChangeVlans<'a>> {
        let mut changes = Vec::new();
        let wants_default = vlans.iter().any(|vlan| vlan.id == DEFAULT_VLAN);
        if !self.keep_default_vlan && !wants_default {
            changes.push(ChangeVlans::delete(port.device(), DEFAULT_VLAN));
        }
        // Tagged neighbours go as one range.
        let mut tagged: Vec<(u16, u16)> = Vec::new();
        for vlan in vlans {
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
}

impl Resource<Kernel> for BridgePort {
    fn describe(&self) -> String {
        format!("port of {} on bridge {}", self.ifname, self.bridge)
    }

    fn belongs(&self) -> Belongs {
        Belongs::Sandbox
    }

    fn make(&mut self, kernel: &mut Kernel) -> Result<Made, Error> {
        let bridge = kernel.host_link(&self.bridge)?;
        let port = self.port(kernel)?.ok_or_else(|| {
            Error::internal(format!("the host end of {} is missing", self.ifname))
        })?;
        // Switched on before it is plugged in: a port with carrier forwards
        // at once, without waiting for the kernel's link watch.
        let up = ChangeLink::new(port.device()).up();
        let plug = ChangeLink::new(port.device()).master(bridge.index);
        let flags = ChangePort {
            port: port.device(),
            settings: PortSettings {
                hairpin: Some(self.hairpin),
                isolated: Some(self.isolated),
                ..PortSettings::default()
            },
        };
        let vlans = self.vlans.as_ref().map(|vlans| self.vlan_changes(&port, vlans));
        let mut changes: Vec<&dyn Change> = vec![&up, &plug];
        // A fresh port has neither flag.
        if self.hairpin || self.isolated {
            changes.push(&flags);
        }
        changes.extend(vlans.iter().flatten().map(|change| change as &dyn Change));
        kernel.host()?.apply_all(&changes).map_err(|error| {
            let unsupported = error.is_unsupported() && self.vlans.is_some();
            let error = refused(error);
            if unsupported {
                return error.with_details(
                    "this kernel, or this bridge, has no VLAN filtering; remove \"vlan\" and \
                     \"vlanTrunk\", or use a bridge that was made with them",
                );
            }
            error
        })?;
        if self.expect_up {
            wait_until_up(kernel, &port)?;
        }
        Ok(Made::Created)
    }

    fn check(&self, kernel: &mut Kernel) -> Result<Vec<Difference>, Error> {
        let name = self.describe();
        // A missing pair is the pair's own difference.
        let Some(port) = self.port(kernel)? else { return Ok(Vec::new()) };
        let bridge = kernel.host()?.link_by_name(&self.bridge).map_err(refused)?;
        if bridge.is_none_or(|bridge| port.master != Some(bridge.index)) {
            return Ok(vec![Difference::missing(name)]);
        }
        let settings = port.bridge_port.unwrap_or_default();
        let mut found = Vec::new();
        for (flag, wanted, actual) in [
            ("hairpin mode", self.hairpin, settings.hairpin),
            ("isolation", self.isolated, settings.isolated),
        ] {
            let actual = actual.unwrap_or(false);
            if wanted != actual {
                let word = |on| if on { "on" } else { "off" };
                found.push(Difference::new(format!("{name}, {flag}"), word(wanted), word(actual)));
            }
        }
        if let Some(vlans) = &self.vlans {
            let there = kernel.host()?.port_vlans().map_err(refused)?;
            self.compare_vlans(&port, vlans, &there, &mut found);
        }
        Ok(found)
    }

    fn remove(&self, _: &mut Kernel) -> Result<(), Error> {
        Ok(())
    }
}

impl BridgePort {
    fn compare_vlans(
        &self,
        port: &Link,
        wanted: &[Vlan],
        there: &[PortVlan],
        found: &mut Vec<Difference>,
    ) {
        let mine = || there.iter().filter(|vlan| vlan.port == port.index);
        for vlan in wanted {
            let flags = if vlan.untagged { "untagged" } else { "tagged" };
            let actual = mine().find(|one| one.id == vlan.id).map(|one| {
                if one.flags.contains(VlanFlags::UNTAGGED) { "untagged" } else { "tagged" }
            });
            if actual != Some(flags) {
                found.push(Difference::new(
                    format!("VLAN {} of port {}", vlan.id, port.name),
                    flags,
                    actual.unwrap_or("missing"),
                ));
            }
        }
        for extra in mine().filter(|one| !wanted.iter().any(|vlan| vlan.id == one.id)) {
            if !(self.keep_default_vlan && extra.id == DEFAULT_VLAN) {
                found.push(Difference::new(
                    format!("VLAN {} of port {}", extra.id, port.name),
                    "missing",
                    "present",
                ));
            }
        }
    }
}

/// A bridge drops frames of a port that isn't up yet; ADD returns when it is.
fn wait_until_up(kernel: &mut Kernel, port: &Link) -> Result<(), Error> {
    let up = |link: &Link| {
        matches!(link.operational_state, OperationalState::Up | OperationalState::Unknown)
    };
    let host = kernel.host()?;
    // Mostly it is up already, and needs no second socket to hear of it.
    let now = host.link_by_index(port.index).map_err(refused)?;
    if now.as_ref().is_some_and(up) {
        return Ok(());
    }
    let last = host.wait_operational(port.device(), UP_WAIT).map_err(refused)?;
    let state = match last {
        Some(link) if up(&link) => return Ok(()),
        Some(link) => format!("{:?}", link.operational_state).to_lowercase(),
        None => "gone".to_owned(),
    };
    Err(Error::try_again(format!("bridge port {} in error state: {state}", port.name))
        .with_details(format!("it did not come up within {UP_WAIT:?}")))
}
