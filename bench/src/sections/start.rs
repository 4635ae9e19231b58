//! What it costs to start at all.

use serde_json::json;

use crate::Outcome;
use crate::bench::{Bench, Place};
use crate::call::{Target, VERSION};
use crate::subject::Subject;

pub(super) fn run(bench: &mut Bench<'_>) -> Outcome {
    let place = Place::new("start", "VERSION");
    let nobody = Target { container: "", netns: "", ifname: "" };
    let config = json!({"cniVersion": VERSION, "type": "bridge"});
    for pass in bench.some_passes(bench.options.rounds * 2) {
        for subject in bench.subjects(&Subject::ALL) {
            let call = match subject {
                Subject::Floor => bench.floor(&["exit"]),
                _ => bench.plugin(subject, "VERSION", nobody, &config)?,
            };
            bench.measure(&place, subject, pass, &call)?;
        }
    }
    Ok(())
}
