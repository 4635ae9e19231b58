//! What is on the host, as comparable facts, and what changed.

mod capture;
mod detail;
mod nftables;
mod residue;

use std::collections::BTreeMap;
use std::fmt;

/// The state of a host or a namespace: a name for each fact and its value.
///
/// What the kernel changes by itself is left out: indexes, counters, neighbours,
/// operational states, link-local IPv6, the `local` table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostState {
    facts: BTreeMap<String, String>,
}

impl HostState {
    /// The state of the calling thread's namespace and of the state directories.
    #[track_caller]
    pub fn of_host() -> Self {
        let mut state = Self::of_namespace();
        for root in ["/var/lib/cni", "/run/podwire"] {
            capture::files(&mut state, root.as_ref());
        }
        state
    }

    /// The state of the calling thread's namespace alone.
    #[track_caller]
    pub fn of_namespace() -> Self {
        let mut state = Self::default();
        capture::links(&mut state);
        capture::routing(&mut state);
        capture::queues(&mut state);
        nftables::ruleset(&mut state);
        capture::sysctls(&mut state);
        state
    }

    /// The same and what few plugins touch: permanent neighbours, each link's own
    /// sysctls, the tables of the old xtables.
    #[track_caller]
    pub fn of_host_in_detail() -> Self {
        let mut state = Self::of_host();
        detail::neighbours(&mut state);
        detail::link_sysctls(&mut state);
        detail::old_tables(&mut state);
        state
    }

    /// Every fact, by name: `link br0`, `address br0 10.1.0.1/24`, `file /...`.
    pub fn facts(&self) -> impl Iterator<Item = (&str, &str)> {
        self.facts.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// The names of the facts of one kind: `link`, `address`, `route`, `rule`,
    /// `qdisc`, `nft`, `file`, `sysctl`.
    pub fn of_kind<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a str> {
        let is_kind = move |name: &&str| name.split_once(' ').is_some_and(|(k, _)| k == kind);
        self.facts.keys().map(String::as_str).filter(is_kind)
    }

    /// What became different from `before` to now.
    pub fn since(&self, before: &Self) -> Difference {
        let mut changes = Vec::new();
        for (name, value) in &self.facts {
            match before.facts.get(name) {
                None => changes.push(Change::Added(name.clone(), value.clone())),
                Some(old) if old != value => {
                    changes.push(Change::Changed(name.clone(), old.clone(), value.clone()));
                }
                Some(_) => {}
            }
        }
        for (name, value) in &before.facts {
            if !self.facts.contains_key(name) {
                changes.push(Change::Removed(name.clone(), value.clone()));
            }
        }
        Difference { changes }
    }

    /// Adds a fact; a second one of the same name gets a number.
    fn add(&mut self, name: String, value: String) {
        let is_free = |name: &String| !self.facts.contains_key(name);
        let unique = if is_free(&name) {
            name
        } else {
            (2..=u32::MAX).map(|number| format!("{name} #{number}")).find(is_free).unwrap_or(name)
        };
        self.facts.insert(unique, value);
    }
}

/// One fact that is different.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// New: name and value.
    Added(String, String),
    /// Gone: name and former value.
    Removed(String, String),
    /// Another value: name, before, after.
    Changed(String, String, String),
}

impl Change {
    /// The fact's name.
    pub fn name(&self) -> &str {
        match self {
            Self::Added(name, _) | Self::Removed(name, _) | Self::Changed(name, ..) => name,
        }
    }
}

/// All facts that are different.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// In order of their names, what is gone last.
    pub changes: Vec<Change>,
}

impl Difference {
    /// Without the changes that `is_expected` names.
    #[must_use]
    pub fn without(mut self, is_expected: impl Fn(&Change) -> bool) -> Self {
        self.changes.retain(|change| !is_expected(change));
        self
    }

    /// Without what may stay on a host after the last DEL: the named bridges with
    /// their addresses and routes, forwarding switched on, tables with empty base
    /// chains and sets, `lock`, `last_reserved_ip.*`, and our indexes and stamps.
    #[must_use]
    pub fn beyond_residue(self, bridges: &[&str]) -> Self {
        self.without(|change| residue::is_allowed(change, bridges))
    }

    /// Panics with the changes if there are any.
    #[track_caller]
    pub fn assert_empty(&self) {
        assert!(self.changes.is_empty(), "the state is different:\n{self}");
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for change in &self.changes {
            match change {
                Change::Added(name, value) => writeln!(formatter, "+ {name}: {value}")?,
                Change::Removed(name, value) => writeln!(formatter, "- {name}: {value}")?,
                Change::Changed(name, old, new) => {
                    writeln!(formatter, "~ {name}:\n    was {old}\n    is  {new}")?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(facts: &[(&str, &str)]) -> HostState {
        let mut state = HostState::default();
        for (name, value) in facts {
            state.add((*name).to_owned(), (*value).to_owned());
        }
        state
    }

    #[test]
    fn names_what_came_went_and_changed() {
        let before = state(&[("link a", "1"), ("link b", "1"), ("rule x", "")]);
        let after = state(&[("link b", "2"), ("link c", "1"), ("rule x", "")]);
        let text = after.since(&before).to_string();
        assert_eq!(text, "~ link b:\n    was 1\n    is  2\n+ link c: 1\n- link a: 1\n");
        after.since(&after).assert_empty();
        assert_eq!(after.of_kind("link").collect::<Vec<_>>(), ["link b", "link c"]);
    }

    #[test]
    fn a_second_fact_of_the_same_name_counts() {
        let one = state(&[("rule x", "y")]);
        let two = state(&[("rule x", "y"), ("rule x", "y")]);
        assert_eq!(two.since(&one).changes.len(), 1);
    }
}
