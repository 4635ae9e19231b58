//! What was killed and what was left, as a page of the documentation.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::place::Density;
use super::report::{Score, Tally};

/// The page, in Markdown.
pub fn page(tallies: &[Tally], density: Density) -> String {
    let kills: usize = tallies.iter().map(|tally| tally.tried).sum();
    let leaks: usize = tallies.iter().map(|tally| tally.faults.len()).sum();
    let mut text = format!("{HEAD}\n{}\n", extent(density));
    let _ = writeln!(text, "**{kills} kills, {leaks} leaks.**");
    text += "\n## By plugin\n\n| program | kills | leaks |\n|---|---|---|\n";
    let mut programs: BTreeMap<&str, Score> = BTreeMap::new();
    for (program, score) in tallies.iter().flat_map(|tally| &tally.programs) {
        let sum = programs.entry(program).or_default();
        sum.kills += score.kills;
        sum.leaks += score.leaks;
    }
    for (program, score) in programs {
        let _ = writeln!(text, "| `{program}` | {} | {} |", score.kills, score.leaks);
    }
    text += "\n## By chain and verb\n\n\
        | chain | verb | system calls | kills | leaks |\n|---|---|---|---|---|\n";
    for tally in tallies {
        let verb = tally.verb.as_str();
        let (places, tried, leaks) = (tally.places, tally.tried, tally.faults.len());
        let _ = writeln!(text, "| {} | {verb} | {places} | {tried} | {leaks} |", tally.subject);
    }
    text += "\n## By what became of the sandbox\n\n| scene | kills |\n|---|---|\n";
    for (scene, count) in sum(tallies, |tally| &tally.scenes) {
        let _ = writeln!(text, "| {scene} | {count} |");
    }
    text += "\n## By system call\n\n| killed before | kills |\n|---|---|\n";
    let mut calls: Vec<_> = sum(tallies, |tally| &tally.histogram).into_iter().collect();
    calls.sort_by_key(|(name, count)| (std::cmp::Reverse(*count), *name));
    for (name, count) in calls {
        let _ = writeln!(text, "| {name} | {count} |");
    }
    text + RARER
}

fn sum(
    tallies: &[Tally],
    of: impl Fn(&Tally) -> &BTreeMap<String, usize>,
) -> BTreeMap<&str, usize> {
    let mut sums = BTreeMap::new();
    for (name, count) in tallies.iter().flat_map(of) {
        *sums.entry(name.as_str()).or_default() += count;
    }
    sums
}

fn extent(density: Density) -> String {
    let scenes = "in one scene each, the scenes taken in turn";
    match density {
        Density::Spread(wanted) => {
            format!("This run: {wanted} system calls of each verb, evenly spread, {scenes}.\n")
        }
        Density::Every => format!("This run: every system call of every verb, {scenes}.\n"),
        Density::Exhaustive => "This run: every system call of every verb, each with every \
            fate of the sandbox, and the\nprocess alone and with what it had started, where \
            there was something.\n"
            .to_owned(),
    }
}

const HEAD: &str = "\
# Killed at every system call

Written by `cargo xtask crash --page docs/crash.md`; `cargo xtask crash` repeats it.

A program is traced with ptrace(2) and gets SIGKILL when it is about to make its
n-th system call: a plugin of a chain in one of its verbs, or `podwire`, whose
plugin then lives on or is killed with it. Then the sandbox

- stays, or is gone,
- or another container's lies at its path, made by Podwire or by the Go plugins,
- or the host is rebooted: another boot id, nothing in the kernel or in `/run`, the
  files as they were.

Then comes what a runtime does, with the result or without: DEL, DEL again, GC; or
GC alone, when whoever attached was forgotten. Afterwards the host is compared with
what it was before: links, addresses, routes, rules, permanent neighbours, queueing
disciplines, nftables and what iptables made there, sysctls of the host and of each
link, files. What may stay is the bridge with its gateway address, forwarding
switched on, empty base tables and chains, `lock`, `last_reserved_ip.*`, index and
stamps; anything else is a leak, and so is anything missing of another container
that was on the host or came to the old path. After a reboot a further container
must be attached, checked and detached.

Two things are the kernel's and no leak: a virtual device that was in a sandbox
ends with it; and what is inside a sandbox that stays, and cannot be seen from the
host, stays there when GC alone is called (it has no path to it), as does what only a
record told how it was before, once GC has removed that record.
";

const RARER: &str = "
## What few kernels have

`ipvlan`, `vlan`, `dummy` and `vrf` are killed in the virtual machine, at four places of
each verb whenever the tests run, and at N by
`cargo xtask vmtest --kernel 6.1 --filter vm_crash --kills N`.
";

#[cfg(test)]
mod tests {
    use super::super::subject::Verb;
    use super::*;

    #[test]
    fn the_page_sums_up_by_plugin() {
        let score = Score { kills: 3, leaks: 1 };
        let mut tally = Tally::new("bridge+portmap", Verb::Del);
        tally.tried = 3;
        tally.programs.insert("portmap".to_owned(), score);
        tally.faults.push("a leak".to_owned());
        let page = page(&[tally.clone(), tally], Density::Every);
        assert!(page.contains("**6 kills, 2 leaks.**"), "{page}");
        assert!(page.contains("| `portmap` | 6 | 2 |"), "{page}");
        assert!(page.contains("| bridge+portmap | DEL | 0 | 3 | 1 |"), "{page}");
    }
}
