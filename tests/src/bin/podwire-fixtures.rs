//! Writes `tests/fixtures/VERSION` anew: the state that this version leaves on a node,
//! in every scenario. Run once for each release, and whenever a format changes before it.

use std::path::Path;

use podwire_tests::fixture::{self, SCENARIOS};

fn main() {
    let name = env!("CARGO_PKG_VERSION");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(name);
    for scenario in &SCENARIOS {
        let folder = folder.join(scenario.name);
        fixture::record(scenario, &folder);
        #[allow(clippy::print_stdout)] // It is a program for people.
        {
            println!("{}", folder.display());
        }
    }
}
