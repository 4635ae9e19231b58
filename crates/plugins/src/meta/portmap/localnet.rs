//! `route_localnet` on the interface that leads to the container: without it
//! the kernel drops what this host sends to its own 127.0.0.1 and has
//! translated to go out there.

use std::net::Ipv4Addr;

use podwire_plugin::{Belongs, Difference, Made, Resource};
use podwire_resources::{Kernel, refused};
use podwire_spec::Error;
use podwire_sys::sysctl::{self, Ensured};

/// The parameter for the way to one container.
///
/// It stays when the container goes: others behind the same bridge need it.
pub(super) struct RouteLocalnet {
    /// The container's address.
    pub(super) address: Ipv4Addr,
}

impl RouteLocalnet {
    /// The interface that the container is behind. `None` when it is behind a
    /// router: on an uplink the parameter would let neighbours of the host in
    /// to what listens on 127.0.0.1 only (CVE-2020-8558).
    fn device(&self, kernel: &mut Kernel) -> Result<Option<String>, Error> {
        let host = kernel.host()?;
        let route = host.route_to(self.address.into()).map_err(refused)?.ok_or_else(|| {
            Error::internal(format!("the host has no route to the container at {}", self.address))
                .with_details(
                    "the plugins before portmap must make the container reachable from the host",
                )
        })?;
        if route.gateway.is_some() {
            return Ok(None);
        }
        let Some(index) = route.output else { return Ok(None) };
        Ok(host.link_by_index(index).map_err(refused)?.map(|link| link.name))
    }
}

fn key(device: &str) -> [&str; 5] {
    ["net", "ipv4", "conf", device, "route_localnet"]
}

impl Resource<Kernel> for RouteLocalnet {
    fn describe(&self) -> String {
        format!("route_localnet on the interface to {}", self.address)
    }

    fn belongs(&self) -> Belongs {
        Belongs::Host
    }

    fn make(&mut self, kernel: &mut Kernel) -> Result<Made, Error> {
        let Some(device) = self.device(kernel)? else {
            log::warn!("{} is behind a router, so its ports don't work on 127.0.0.1", self.address);
            return Ok(Made::Found);
        };
        match sysctl::ensure(&key(&device), "1") {
            Ok(Ensured::Unchanged | Ensured::Changed { .. }) => Ok(Made::Found),
            Err(error) => Err(Error::internal(error.to_string()).with_details(
                "ports on 127.0.0.1 need it; set it yourself, or configure portmap with \
                 \"snat\": false",
            )),
        }
    }

    fn check(&self, kernel: &mut Kernel) -> Result<Vec<Difference>, Error> {
        let Some(device) = self.device(kernel)? else { return Ok(Vec::new()) };
        let object = key(&device).join("/");
        Ok(match sysctl::read(&key(&device)) {
            Ok(value) if value == "1" => Vec::new(),
            Ok(value) => vec![Difference::new(object, "1", value)],
            Err(error) => vec![Difference::new(object, "1", error.to_string())],
        })
    }

    fn remove(&self, _: &mut Kernel) -> Result<(), Error> {
        Ok(())
    }
}
