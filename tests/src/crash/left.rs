//! What is left on a host.

use podwire_testkit::HostState;
use podwire_testkit::state::{Change, Difference};

/// Every difference of a host that is not documented as residue. Empty lock files
/// may be gone too: whoever finds an idle one removes it.
pub fn left(before: &HostState, after: &HostState, bridges: &[&str]) -> Difference {
    after.since(before).beyond_residue(bridges).without(|change| match change {
        Change::Removed(name, content) => {
            name.starts_with("file /run/podwire/runtime/") && content == "\"\""
        }
        Change::Added(name, value) => is_fixed_rule(name, value),
        Change::Changed(..) => false,
    })
}

/// Whether a rule is of the fixed part of portmap's tables, which names neither a
/// container nor a network, and whose number doesn't grow with attachments.
fn is_fixed_rule(name: &str, value: &str) -> bool {
    let words: Vec<&str> = name.split(' ').collect();
    let [_, "rule", _, "podwire_hostports", chain, ..] = words.as_slice() else { return false };
    let fixed = ["prerouting", "output", "hostports", "postrouting"];
    fixed.contains(chain) && value.ends_with(" \"\"")
}
