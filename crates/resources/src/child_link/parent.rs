//! The device that a child link hangs on (`master`).

use podwire_netlink::route::family::{Family, TABLE_MAIN};
use podwire_netlink::route::routes::{Route, RouteFilter, RouteKind};
use podwire_netlink::route::{Link, RouteSocket};
use podwire_plugin::Difference;
use podwire_spec::error::Error;

use super::claim::Claim;
use crate::kernel::{Kernel, refused};

/// Which device, and where it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parent {
    /// Its name, or how to find it.
    pub name: ParentName,
    /// The namespace it is in.
    pub place: Place,
}

/// How the parent is chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ParentName {
    /// By its name.
    Named(String),
    /// The one that the default route leaves by, IPv4's first.
    DefaultRoute,
}

/// Where the parent is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Place {
    /// On the host.
    #[default]
    Host,
    /// In the container (`linkInContainer`).
    Container,
}

impl Place {
    const fn phrase(self) -> &'static str {
        match self {
            Self::Host => "on the host",
            Self::Container => "in the container",
        }
    }

    fn socket(self, kernel: &mut Kernel) -> Result<&mut RouteSocket, Error> {
        match self {
            Self::Host => kernel.host(),
            Self::Container => kernel.container(),
        }
    }
}

impl Parent {
    /// The device, which must be there.
    ///
    /// # Errors
    /// It isn't, or the kernel refused to tell.
    pub fn find(&self, kernel: &mut Kernel) -> Result<Link, Error> {
        match &self.name {
            ParentName::Named(name) => self.look_up(kernel, name)?.ok_or_else(|| {
                Error::internal(format!(
                    "master {name:?}: there is no such interface {}",
                    self.place.phrase()
                ))
                .with_details("set master to a device that is there: ip link show")
            }),
            ParentName::DefaultRoute => {
                let socket = self.place.socket(kernel)?;
                let index = default_output(socket)?.ok_or_else(|| {
                    Error::internal(format!(
                        "no default route interface found {}",
                        self.place.phrase()
                    ))
                    .with_details("without a default route, set master to a device's name")
                })?;
                socket.link_by_index(index).map_err(refused)?.ok_or_else(|| {
                    Error::try_again("the interface of the default route has just vanished")
                })
            }
        }
    }

    fn look_up(&self, kernel: &mut Kernel, name: &str) -> Result<Option<Link>, Error> {
        self.place.socket(kernel)?.link_by_name(name).map_err(refused)
    }

    /// Compares the parent that a link has with the one that is configured. The
    /// default route may have moved since ADD: no difference.
    pub(super) fn compare(
        &self,
        kernel: &mut Kernel,
        claim: &Claim,
        link: &Link,
        found: &mut Vec<Difference>,
    ) -> Result<(), Error> {
        let ParentName::Named(name) = &self.name else { return Ok(()) };
        let Some(parent) = self.look_up(kernel, name)? else {
            let phrase = self.place.phrase();
            found.push(Difference::missing(format!("master {name} {phrase}")));
            return Ok(());
        };
        // A child of a child hangs on the same device as that one.
        let is_of_kind = parent.kind_name() == link.kind_name();
        let same = link.parent == Some(parent.index)
            || is_of_kind && link.parent.is_some() && link.parent == parent.parent;
        if !same {
            let text = link.parent.map_or("none".to_owned(), |index| format!("link {index}"));
            let expected = format!("{name} (link {})", parent.index);
            found.push(Difference::new(format!("{}, master", claim.name_inside()), expected, text));
        }
        Ok(())
    }
}

/// The link that the best default route of the main table leaves by.
fn default_output(socket: &mut RouteSocket) -> Result<Option<u32>, Error> {
    for family in [Family::V4, Family::V6] {
        let filter =
            RouteFilter { family: Some(family), table: Some(TABLE_MAIN), ..RouteFilter::default() };
        let routes = socket.routes(filter).map_err(refused)?;
        if let Some(index) = best_default(&routes) {
            return Ok(Some(index));
        }
    }
    Ok(None)
}

fn best_default(routes: &[Route]) -> Option<u32> {
    let output = |route: &Route| {
        route.output.or_else(|| route.next_hops.first().map(|next_hop| next_hop.output))
    };
    routes
        .iter()
        .filter(|route| route.is_default() && route.kind == RouteKind::UNICAST)
        .min_by_key(|route| route.priority.unwrap_or(0))
        .and_then(output)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_route_of_the_lowest_metric_counts() {
        let route = |destination: &str, priority, output| Route {
            priority,
            output: Some(output),
            ..Route::new(destination.parse().unwrap())
        };
        let mut routes = vec![
            route("10.0.0.0/8", None, 1),
            route("0.0.0.0/0", Some(200), 2),
            route("0.0.0.0/0", Some(100), 3),
        ];
        assert_eq!(best_default(&routes), Some(3));
        routes.push(Route { kind: RouteKind::UNREACHABLE, ..route("0.0.0.0/0", None, 4) });
        assert_eq!(best_default(&routes), Some(3));
        assert_eq!(best_default(&routes[..1]), None);
    }
}
