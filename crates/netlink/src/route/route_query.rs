//! Listing routes, and asking which one the kernel would take.

use std::net::IpAddr;

use crate::error::{Error, Subject};
use crate::route::RouteSocket;
use crate::route::family::Family;
use crate::route::routes::{
    HEADER, RTA_DST, RTA_OIF, RTA_TABLE, RTM_GETROUTE, RTM_NEWROUTE, Route,
};

/// Which routes to list. Everything that is set must match.
#[derive(Debug, Clone, Copy, Default)]
pub struct RouteFilter {
    /// The family; both unless set.
    pub family: Option<Family>,
    /// The table; all unless set.
    pub table: Option<u32>,
    /// The output link's index; for a multipath route, that of any of its ways.
    pub output: Option<u32>,
}

impl RouteFilter {
    fn admits(&self, route: &Route) -> bool {
        let leaves_by = |index| {
            route.output == Some(index) || route.next_hops.iter().any(|hop| hop.output == index)
        };
        !route.cloned
            && self.family.is_none_or(|family| route.family() == family)
            && self.table.is_none_or(|table| route.table == table)
            && self.output.is_none_or(leaves_by)
    }
}

impl RouteSocket {
    /// The routes that a filter admits, without the kernel's cached copies.
    ///
    /// # Errors
    /// The exchange failed.
    pub fn routes(&mut self, filter: RouteFilter) -> Result<Vec<Route>, Error> {
        let families = match filter.family {
            Some(family) => vec![family],
            None => vec![Family::V4, Family::V6],
        };
        let mut routes = Vec::new();
        for family in families {
            routes.extend(self.list_routes(family, filter)?);
        }
        Ok(routes)
    }

    fn list_routes(&mut self, family: Family, filter: RouteFilter) -> Result<Vec<Route>, Error> {
        let listed = self.socket.dump(
            Subject::new("listing", &"routes"),
            RTM_GETROUTE,
            |body| {
                let mut header = [0; HEADER];
                header[0] = family.number();
                body.raw(&header);
                if let Some(table) = filter.table {
                    body.u32(RTA_TABLE, table);
                }
                if let Some(output) = filter.output {
                    body.u32(RTA_OIF, output);
                }
            },
            |reply| match reply.kind {
                RTM_NEWROUTE => {
                    Ok(Route::decode(reply.payload)?.filter(|route| filter.admits(route)))
                }
                _ => Ok(None),
            },
        );
        match listed {
            // Strict kernels say so for a table that nothing was put in yet.
            Err(error) if filter.table.is_some() && error.is_not_found() => Ok(Vec::new()),
            other => other,
        }
    }

    /// The way that the kernel would choose to an address, or `None` where
    /// there is no way.
    ///
    /// # Errors
    /// The exchange failed.
    pub fn route_to(&mut self, address: IpAddr) -> Result<Option<Route>, Error> {
        let family = Family::of(address);
        let answer = self.socket.fetch(
            Subject::new("finding the route to", &address),
            RTM_GETROUTE,
            |body| {
                let mut header = [0; HEADER];
                header[0] = family.number();
                header[1] = family.everything().max_prefix_len();
                body.raw(&header);
                body.ip(RTA_DST, address);
            },
            |reply| Route::decode(reply.payload),
        );
        match answer {
            Ok(route) => Ok(route.filter(|route| !route.is_refusal())),
            Err(error) if error.is_no_way() => Ok(None),
            Err(error) => Err(error),
        }
    }
}
