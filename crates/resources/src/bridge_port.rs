//! The host end of a pair as a port of a bridge: plugged in, switched on,
//! forwarding.

use std::time::Duration;

use podwire_netlink::route::bridge::{ChangePort, PortSettings};
use podwire_netlink::route::link::OperationalState;
use podwire_netlink::route::link_change::ChangeLink;
use podwire_netlink::route::{Change, Link};
use podwire_plugin::{Belongs, Difference, Made, Resource};
use podwire_spec::error::Error;

use crate::bridge::{no_filtering, settings};
use crate::host_end::host_end_of;
use crate::kernel::{Kernel, refused};
use crate::port_vlans::PortVlans;

/// How long a port may take to come up once both ends are switched on.
const UP_WAIT: Duration = Duration::from_millis(2_500);

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
    pub vlans: Option<PortVlans>,
}

impl BridgePort {
    /// The host end, made by this call or looked up.
    fn port(&self, kernel: &mut Kernel) -> Result<Option<Link>, Error> {
        if let Some(pair) = kernel.made_pair(&self.ifname) {
            return Ok(Some(pair.host.clone()));
        }
        let inside = kernel.container()?.link_by_name(&self.ifname).map_err(refused)?;
        match inside {
            Some(inside) => host_end_of(kernel, &inside),
            None => Ok(None),
        }
    }

    /// The VLAN that the bridge gives every port; 0 for none.
    fn default_vlan(&self, kernel: &mut Kernel) -> Result<u16, Error> {
        Ok(settings(&kernel.host_link(&self.bridge)?).default_pvid.unwrap_or(0))
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
        let bridge = kernel.host_index(&self.bridge)?;
        let port = self.port(kernel)?.ok_or_else(|| {
            Error::internal(format!("the host end of {} is missing", self.ifname))
        })?;
        let vlans = match &self.vlans {
            Some(vlans) => vlans.changes(&port, self.default_vlan(kernel)?),
            None => Vec::new(),
        };
        let up = ChangeLink::new(port.device()).up();
        let plug = ChangeLink::new(port.device()).master(bridge);
        let flags = ChangePort {
            port: port.device(),
            settings: PortSettings {
                hairpin: Some(self.hairpin),
                isolated: Some(self.isolated),
                ..PortSettings::default()
            },
        };
        let mut changes: Vec<&dyn Change> = Vec::new();
        if self.isolated || self.vlans.is_some() {
            // Nothing may pass before the port is confined.
            changes.extend([&plug as &dyn Change, &flags]);
            changes.extend(vlans.iter().map(|change| change as &dyn Change));
            changes.push(&up);
        } else {
            // Switched on before it is plugged in: a port with carrier
            // forwards at once, without waiting for the kernel's link watch.
            changes.extend([&up as &dyn Change, &plug]);
            // A fresh port doesn't have the flag.
            if self.hairpin {
                changes.push(&flags);
            }
        }
        kernel.host()?.apply_all(&changes).map_err(|error| {
            let unsupported = error.is_unsupported() && self.vlans.is_some();
            if unsupported { no_filtering() } else { refused(error) }
        })?;
        Ok(Made::Created)
    }

    fn check(&self, kernel: &mut Kernel) -> Result<Vec<Difference>, Error> {
        let name = self.describe();
        // A missing pair is the pair's own difference.
        let Some(port) = self.port(kernel)? else { return Ok(Vec::new()) };
        // So is a missing bridge the bridge's.
        let Some(bridge) = kernel.host()?.link_by_name(&self.bridge).map_err(refused)? else {
            return Ok(Vec::new());
        };
        if port.master != Some(bridge.index) {
            return Ok(vec![Difference::missing(name)]);
        }
        let there = port.bridge_port.unwrap_or_default();
        let mut found = Vec::new();
        for (flag, wanted, actual) in [
            ("hairpin mode", self.hairpin, there.hairpin),
            ("isolation", self.isolated, there.isolated),
        ] {
            let actual = actual.unwrap_or(false);
            if wanted != actual {
                let word = |on| if on { "on" } else { "off" };
                found.push(Difference::new(format!("{name}, {flag}"), word(wanted), word(actual)));
            }
        }
        if let Some(vlans) = &self.vlans {
            let there = kernel.host()?.port_vlans().map_err(refused)?;
            let default = settings(&bridge).default_pvid.unwrap_or(0);
            vlans.compare(&port, default, &there, &mut found);
        }
        Ok(found)
    }

    fn remove(&self, _: &mut Kernel) -> Result<(), Error> {
        Ok(())
    }
}

/// A bridge drops frames of a port that isn't up yet; ADD returns when it is.
/// Made late, so that the kernel's link watch runs beside other work.
pub struct PortUp {
    /// The interface inside the container, switched on; its peer is the port.
    pub ifname: String,
}

impl Resource<Kernel> for PortUp {
    fn describe(&self) -> String {
        format!("bridge port of {}", self.ifname)
    }

    fn belongs(&self) -> Belongs {
        Belongs::Sandbox
    }

    fn make(&mut self, kernel: &mut Kernel) -> Result<Made, Error> {
        let Some(port) = kernel.made_pair(&self.ifname).map(|pair| pair.host.clone()) else {
            return Err(Error::internal("the bridge port was not made by this call"));
        };
        // A new one is unknown at first on older kernels.
        let is_up = |link: &Link| link.operational_state == OperationalState::Up;
        let host = kernel.host()?;
        // Mostly it is up already, and needs no second socket to hear of it.
        let now = host.link_by_index(port.index).map_err(refused)?;
        if now.as_ref().is_some_and(is_up) {
            return Ok(Made::Found);
        }
        let last = host.wait_operational(port.device(), UP_WAIT).map_err(refused)?;
        let state = match last {
            Some(link) if is_up(&link) => return Ok(Made::Found),
            Some(link) => link.operational_state.as_str(),
            None => "gone",
        };
        Err(Error::try_again(format!("bridge port {} in error state: {state}", port.name))
            .with_details(format!("it did not come up within {UP_WAIT:?}")))
    }

    /// Its state is compared with the pair and the port.
    fn check(&self, _: &mut Kernel) -> Result<Vec<Difference>, Error> {
        Ok(Vec::new())
    }

    fn remove(&self, _: &mut Kernel) -> Result<(), Error> {
        Ok(())
    }
}
