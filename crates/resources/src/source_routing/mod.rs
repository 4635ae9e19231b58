//! Source-based routing: packets from an address of an interface leave by
//! that interface, whatever other interfaces the container has.
//!
//! For each address there is a rule `from ADDRESS lookup TABLE`, and a table
//! with the address's routes; the main table loses those of the interface.
//! All of it is inside the container's namespace and goes with it.

mod plan;

use std::collections::BTreeSet;
use std::net::IpAddr;

use ipnet::IpNet;
use podwire_netlink::route::family::Family;
use podwire_netlink::route::routes::{AddRoute, DeleteRoute, RouteFilter, RouteMode};
use podwire_netlink::route::rule::{AddRule, DeleteRule};
use podwire_netlink::route::{Change, MacAddress, Route, RouteSocket, Rule};
use podwire_plugin::{Attachment, Belongs, Difference, Made, OwnerMark, Resource};
use podwire_spec::error::Error;

use crate::common_lock;
use crate::kernel::{Kernel, refused};
use crate::whose::{Whose, whose};

pub use plan::{Source, needs_table};

/// Held while tables are chosen, so that two calls for one namespace don't
/// choose the same: an instant each, so one for all namespaces will do.
const LOCK: &str = "/run/podwire/plugin/sbr/lock";

/// The rules and tables of one interface.
#[derive(Debug)]
pub struct SourceRouting {
    owner: OwnerMark,
    ifname: String,
    mac: Option<MacAddress>,
    sources: Vec<Source>,
    defaults: Vec<IpAddr>,
    table: Option<u32>,
    add_source_hints: bool,
    done: Vec<Step>,
}

/// What this call did, to be taken back when it fails.
#[derive(Debug)]
enum Step {
    RuleAdded(Rule),
    RouteAdded(Route),
    /// The new one, and what was there before.
    RouteReplaced(Route),
    RouteDeleted(Route),
}

impl SourceRouting {
    /// Tables for these addresses of an interface. With `table`, only rules
    /// are made, that lead to it. `add_source_hints` leaves the routes to what
    /// is on the link in the main table, naming their source.
    pub fn new(
        attachment: &Attachment,
        sources: Vec<Source>,
        table: Option<u32>,
        add_source_hints: bool,
    ) -> Self {
        let ifname = attachment.ifname().as_str().to_owned();
        let (owner, mac) = (attachment.owner, None);
        let (defaults, done) = (Vec::new(), Vec::new());
        Self { owner, ifname, mac, sources, defaults, table, add_source_hints, done }
    }

    /// Gateways of default routes that were recorded: an ADD finds such a route and
    /// takes it along, unless the configuration names another gateway.
    #[must_use]
    pub fn with_defaults(mut self, gateways: Vec<IpAddr>) -> Self {
        self.defaults = gateways;
        self
    }

    /// The MAC address that the interface had when it was made: tells it from
    /// a stranger's on DEL.
    #[must_use]
    pub const fn with_mac(mut self, mac: Option<MacAddress>) -> Self {
        self.mac = mac;
        self
    }

    fn families(&self) -> BTreeSet<Family> {
        self.sources.iter().map(|source| Family::of(source.address.addr())).collect()
    }

    fn rules(&self, socket: &mut RouteSocket) -> Result<Vec<Rule>, Error> {
        let mut rules = Vec::new();
        for family in self.families() {
            rules.extend(socket.rules(family).map_err(refused)?);
        }
        Ok(rules)
    }

    fn apply(
        &mut self,
        socket: &mut RouteSocket,
        change: &dyn Change,
        step: Step,
    ) -> Result<(), Error> {
        match socket.apply(change) {
            Ok(()) => self.done.push(step),
            Err(error) if error.is_exists() => {}
            Err(error) if error.is_not_found() && matches!(step, Step::RouteDeleted(_)) => {}
            Err(error) => return Err(refused(error)),
        }
        Ok(())
    }

    fn route(&mut self, socket: &mut RouteSocket) -> Result<(), Error> {
        let rules = self.rules(socket)?;
        if let Some(table) = self.table {
            for source in self.sources.clone() {
                if source.table(&rules, Some(table)).is_none() {
                    let rule = source.rule(table);
                    self.apply(socket, &AddRule(&rule), Step::RuleAdded(rule.clone()))?;
                }
            }
            return Ok(());
        }
        let link = socket.link_by_name(&self.ifname).map_err(refused)?.ok_or_else(|| {
            Error::internal(format!("there is no interface {} in the container", self.ifname))
        })?;
        let all = socket.routes(RouteFilter::default()).map_err(refused)?;
        let main = plan::movable(&all, link.index, &self.sources);
        // A table that only rules of the other family use is taken too.
        let mut every = rules.clone();
        for family in [Family::V4, Family::V6] {
            if !self.families().contains(&family) {
                // A kernel without IPv6 has no such rules.
                every.extend(socket.rules(family).unwrap_or_default());
            }
        }
        let mut tables = plan::Tables::new(&every, &all);
        for source in self.sources.clone() {
            let known = source.table(&rules, None).filter(|table| plan::is_takeable(*table));
            let table = known
                .or_else(|| tables.take())
                .ok_or_else(|| Error::internal("every routing table of the container is in use"))?;
            for route in plan::routes_of(&source, &self.sources, &main, table, link.index) {
                let add = AddRoute {
                    route: &route,
                    mode: RouteMode::Replace,
                    output_name: &self.ifname.clone(),
                };
                self.apply(socket, &add, Step::RouteAdded(route.clone()))?;
            }
            if known.is_none() {
                let rule = source.rule(table);
                self.apply(socket, &AddRule(&rule), Step::RuleAdded(rule.clone()))?;
            }
        }
        let (going, hinted) = plan::main_after(&main, &self.sources, self.add_source_hints);
        let name = self.ifname.clone();
        for route in hinted {
            let add = AddRoute { route: &route, mode: RouteMode::Replace, output_name: &name };
            let mut before = route.clone();
            before.preferred_source = None;
            self.apply(socket, &add, Step::RouteReplaced(before))?;
        }
        for route in going {
            let delete = DeleteRoute { route: &route, output_name: &name };
            self.apply(socket, &delete, Step::RouteDeleted(route.clone()))?;
        }
        Ok(())
    }

    /// Takes back what this call did, last first.
    fn take_back(&mut self, socket: &mut RouteSocket) {
        let name = self.ifname.clone();
        while let Some(step) = self.done.pop() {
            let outcome = match &step {
                Step::RuleAdded(rule) => socket.apply(&DeleteRule(rule)),
                Step::RouteAdded(route) => socket.apply(&DeleteRoute { route, output_name: &name }),
                Step::RouteReplaced(route) => {
                    let mode = RouteMode::Replace;
                    socket.apply(&AddRoute { route, mode, output_name: &name })
                }
                Step::RouteDeleted(route) => {
                    let mode = RouteMode::Beside;
                    socket.apply(&AddRoute { route, mode, output_name: &name })
                }
            };
            if let Err(error) = outcome
                && !error.is_not_found()
                && !error.is_exists()
            {
                log::warn!("could not take back: {error}");
            }
        }
    }

    fn compare(&self, socket: &mut RouteSocket, found: &mut Vec<Difference>) -> Result<(), Error> {
        if socket.link_by_name(&self.ifname).map_err(refused)?.is_none() {
            found.push(Difference::missing(format!("interface {} in the container", self.ifname)));
            return Ok(());
        }
        let rules = self.rules(socket)?;
        let routes = socket.routes(RouteFilter::default()).map_err(refused)?;
        for source in &self.sources {
            let host = source.host();
            let Some(table) = source.table(&rules, self.table) else {
                let table =
                    self.table.map(|table| format!(" to table {table}")).unwrap_or_default();
                let object =
                    format!("routing rule for packets from {host}{table} in the container");
                found.push(Difference::missing(object));
                continue;
            };
            if self.table.is_some() {
                continue;
            }
            let in_table = |wanted: &dyn Fn(&Route) -> bool| {
                routes.iter().any(|route| route.table == table && wanted(route))
            };
            if let Some(gateway) = source.gateway
                && !in_table(&|route| {
                    route.is_default()
                        && route.family() == Family::of(gateway)
                        && (route.gateway == Some(gateway)
                            || !source.is_configured
                                && route.gateway.is_some_and(|one| self.defaults.contains(&one)))
                })
            {
                found.push(Difference::missing(format!(
                    "default route via {gateway} in table {table} of the container"
                )));
            }
            let subnet = source.address.trunc();
            if subnet.prefix_len() < subnet.max_prefix_len()
                && !in_table(&|route| route.destination == subnet)
            {
                found.push(Difference::missing(format!(
                    "route to {subnet} in table {table} of the container"
                )));
            }
        }
        Ok(())
    }

    /// Where neither result nor interface is left: rules of our form that no packet can
    /// meet, since nothing has their address and their table is empty. Whoever made
    /// them, their interface is gone.
    fn dead(socket: &mut RouteSocket) -> Result<BTreeSet<IpNet>, Error> {
        let addresses = socket.addresses().map_err(refused)?;
        let routes = socket.routes(RouteFilter::default()).map_err(refused)?;
        let mut dead = BTreeSet::new();
        for family in [Family::V4, Family::V6] {
            // A kernel without IPv6 has no such rules.
            for rule in socket.rules(family).unwrap_or_default() {
                let source = rule.source.filter(|_| plan::is_ours(&rule));
                dead.extend(source.filter(|source| {
                    plan::is_takeable(rule.table)
                        && !addresses.iter().any(|one| one.address.addr() == source.addr())
                        && !routes.iter().any(|route| route.table == rule.table)
                }));
            }
        }
        Ok(dead)
    }

    /// The addresses whose rules go, and the interface if it is there.
    ///
    /// A namespace's path may be a stranger's by now, with an interface of the
    /// same name and even the same address. So an interface counts only if it
    /// is proven to be ours, or, where nothing but a MAC address tells, has an
    /// address of ours.
    fn hosts(&self, kernel: &mut Kernel) -> Result<(Option<u32>, BTreeSet<IpNet>), Error> {
        let socket = kernel.container()?;
        let mut hosts: BTreeSet<_> = self.sources.iter().map(Source::host).collect();
        let everybodys = socket.addresses().map_err(refused)?;
        let Some(link) = socket.link_by_name(&self.ifname).map_err(refused)? else {
            if hosts.is_empty() {
                return Ok((None, Self::dead(socket)?));
            }
            // Rules for an address that nothing has are nobody else's.
            hosts.retain(|host| !everybodys.iter().any(|one| one.address.addr() == host.addr()));
            return Ok((None, hosts));
        };
        let own: BTreeSet<_> = everybodys
            .iter()
            .filter(|one| one.link == link.index)
            .map(|one| IpNet::from(one.address.addr()))
            .collect();
        let is_proven = match whose(kernel, &link, &self.owner, self.mac)? {
            Whose::Ours => true,
            Whose::AnothersOwn => false,
            Whose::Alike => {
                !own.is_disjoint(&hosts) || !own.iter().any(|one| needs_table(one.addr()))
            }
            Whose::Unknown => !own.is_disjoint(&hosts),
        };
        if !is_proven {
            return Ok((None, BTreeSet::new()));
        }
        hosts.extend(own);
        Ok((Some(link.index), hosts))
    }
}

impl Resource<Kernel> for SourceRouting {
    fn describe(&self) -> String {
        format!("source-based routing of {} in the container", self.ifname)
    }

    fn belongs(&self) -> Belongs {
        Belongs::Attachment
    }

    fn make(&mut self, kernel: &mut Kernel) -> Result<Made, Error> {
        let _alone = common_lock::alone(LOCK, "choosing routing tables")?;
        let socket = kernel.container()?;
        if let Err(error) = self.route(socket) {
            self.take_back(socket);
            return Err(error);
        }
        Ok(if self.done.is_empty() { Made::Found } else { Made::Created })
    }

    fn check(&self, kernel: &mut Kernel) -> Result<Vec<Difference>, Error> {
        let mut found = Vec::new();
        self.compare(kernel.container()?, &mut found)?;
        Ok(found)
    }

    fn remove(&self, kernel: &mut Kernel) -> Result<(), Error> {
        if !kernel.has_sandbox() {
            return Ok(());
        }
        let (link, hosts) = self.hosts(kernel)?;
        let socket = kernel.container()?;
        let mut rules = Vec::new();
        for family in [Family::V4, Family::V6] {
            if hosts.iter().any(|host| Family::of(host.addr()) == family) {
                rules.extend(socket.rules(family).map_err(refused)?);
            }
        }
        let is_own = |rule: &&Rule| {
            plan::is_ours(rule)
                && rule.source.is_some_and(|source| hosts.contains(&source))
                && match self.table {
                    Some(table) => rule.table == table,
                    None => plan::is_takeable(rule.table),
                }
        };
        let own: Vec<_> = rules.iter().filter(is_own).collect();
        let ignore_absent = |outcome: Result<(), podwire_netlink::Error>| match outcome {
            Err(error) if !error.is_not_found() => Err(refused(error)),
            _ => Ok(()),
        };
        for rule in &own {
            ignore_absent(socket.apply(&DeleteRule(rule)))?;
        }
        // A table that the configuration names is filled by others.
        let Some(link) = link.filter(|_| self.table.is_none()) else { return Ok(()) };
        let tables: BTreeSet<_> = own.iter().map(|rule| rule.table).collect();
        let routes = if tables.is_empty() {
            Vec::new()
        } else {
            let filter = RouteFilter { output: Some(link), ..RouteFilter::default() };
            socket.routes(filter).map_err(refused)?
        };
        let mut routes: Vec<_> =
            routes.iter().filter(|route| tables.contains(&route.table)).collect();
        routes.sort_by_key(|route| route.gateway.is_none());
        for route in routes {
            ignore_absent(socket.apply(&DeleteRoute { route, output_name: &self.ifname }))?;
        }
        Ok(())
    }

    fn undo(&mut self, kernel: &mut Kernel) -> Result<(), Error> {
        self.take_back(kernel.container()?);
        Ok(())
    }
}
