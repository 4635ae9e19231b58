//! What is left on a host.

use podwire_testkit::HostState;
use podwire_testkit::state::{Change, Difference};

/// Every difference of a host that is not documented as residue. Empty lock files
/// may be gone too: whoever finds an idle one removes it.
pub fn left(before: &HostState, after: &HostState, bridges: &[&str]) -> Difference {
    after.since(before).beyond_residue(bridges).without(|change| {
        matches!(change, Change::Removed(name, content)
            if name.starts_with("file /run/podwire/runtime/") && content == "\"\"")
    })
}
