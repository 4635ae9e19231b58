//! What it costs to start at all.

use serde_json::json;

use crate::Outcome;
use crate::bench::{Bench, Place};
use crate::call::{Target, VERSION};
use crate::subject::Subject;
use crate::turns::Turns;

pub(super) fn run(bench: &mut Bench<'_>) -> Outcome {
    let place = Place::new("start", "VERSION");
    let nobody = Target { container: "", netns: "", ifname: "" };
    let config = json!({"cniVersion": VERSION, "type": "bridge"});
    let turns = Turns { rounds: bench.options.rounds * 2, ..bench.turns() };
    let subjects = bench.subjects(&Subject::ALL);
    bench.take(turns, &subjects, |bench, subject, pass| {
        let call = match subject {
            Subject::Floor => bench.floor(&["exit"]),
            _ => bench.plugin(subject, "VERSION", nobody, &config)?,
        };
        bench.measure(&place, subject, pass, &call).map(drop)
    })
}
