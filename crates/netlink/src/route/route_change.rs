//! Adding and deleting routes.

use std::fmt;

use crate::message::{Flags, Requests};
use crate::route::change::{ACKNOWLEDGED, Change};
use crate::route::routes::{RTM_DELROUTE, RTM_NEWROUTE, Route};

/// How a new route meets those that are there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RouteMode {
    /// Refused (`EEXIST`) where a route to the same place has the same rank
    /// and table.
    Exclusive,
    /// Beside others to the same place; refused only when the same is there.
    /// IPv6 makes it one more way of the existing route.
    Beside,
    /// In place of the first with the same place, rank and table, if any.
    Replace,
}

/// Adds a route.
#[derive(Debug, Clone, Copy)]
pub struct AddRoute<'a> {
    /// The route.
    pub route: &'a Route,
    /// How it meets those that are there.
    pub mode: RouteMode,
    /// The output link's name, for errors only; may be empty.
    pub output_name: &'a str,
}

/// Deletes the first route that has everything this one has set.
#[derive(Debug, Clone, Copy)]
pub struct DeleteRoute<'a> {
    /// The route.
    pub route: &'a Route,
    /// The output link's name, for errors only; may be empty.
    pub output_name: &'a str,
}

fn describe(f: &mut fmt::Formatter<'_>, route: &Route, output_name: &str) -> fmt::Result {
    write!(f, "{route}")?;
    if output_name.is_empty() { Ok(()) } else { write!(f, " on {output_name}") }
}

impl fmt::Display for AddRoute<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        describe(formatter, self.route, self.output_name)
    }
}

impl fmt::Display for DeleteRoute<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        describe(formatter, self.route, self.output_name)
    }
}

impl Change for AddRoute<'_> {
    fn operation(&self) -> &'static str {
        match self.mode {
            RouteMode::Replace => "replacing route",
            RouteMode::Exclusive | RouteMode::Beside => "adding route",
        }
    }

    fn encode(&self, requests: &mut Requests) {
        let mode = match self.mode {
            RouteMode::Exclusive => Flags::CREATE | Flags::EXCLUSIVE,
            RouteMode::Beside => Flags::CREATE,
            RouteMode::Replace => Flags::CREATE | Flags::REPLACE,
        };
        requests.push(RTM_NEWROUTE, ACKNOWLEDGED | mode, |body| self.route.encode(body));
    }
}

impl Change for DeleteRoute<'_> {
    fn operation(&self) -> &'static str {
        "deleting route"
    }

    fn encode(&self, requests: &mut Requests) {
        requests.push(RTM_DELROUTE, ACKNOWLEDGED, |body| self.route.encode(body));
    }
}
