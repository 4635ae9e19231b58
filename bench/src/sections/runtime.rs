//! The same chain by a runtime's command line: Podwire's over Podwire's
//! plugins, libcni over Go's; and libcni over Podwire's.

use serde_json::{Value, json};

use super::chain::chained;
use super::driver::{Driver, Runtime};
use super::{portmap, tolerate};
use crate::Outcome;
use crate::bench::{Bench, Pass, Place, State};
use crate::call::{VERSION, with};
use crate::subject::Subject;

pub(super) fn run(bench: &mut Bench<'_>) -> Outcome {
    one(bench, State::Tmpfs, false)?;
    if bench.options.quick {
        return Ok(());
    }
    one(bench, State::Tmpfs, true)?;
    one(bench, State::Disk, false)
}

fn one(bench: &mut Bench<'_>, state: State, libcni_for_all: bool) -> Outcome {
    let has_libcni = bench.options.programs.peers.is_some();
    let mut subjects = bench.with_plugins();
    subjects.retain(|subject| !libcni_for_all || (*subject == Subject::Podwire && has_libcni));
    bench.take(bench.turns(), &subjects, |bench, subject, pass| {
        let is_ours = subject == Subject::Podwire && !libcni_for_all;
        let runtime = if is_ours { Runtime::Podwire } else { Runtime::Libcni };
        life(bench, state, runtime, subject, pass)
    })
}

/// Writes the network list of the chain.
fn configure(bench: &Bench<'_>, state: State, subject: Subject) -> Outcome<std::path::PathBuf> {
    let mut bridge = bench.bridge(state, subject, false)?;
    if let Some(bridge) = bridge.as_object_mut() {
        bridge.remove("cniVersion");
        bridge.remove("name");
    }
    let mut plugins: Vec<Value> = vec![bridge];
    let tuning_data = bench.directory(state, subject, "tuning")?;
    plugins.extend(chained().map(|plugin| {
        let is_tuning = plugin.get("type") == Some(&json!("tuning"));
        if is_tuning { with(&plugin, json!({"dataDir": tuning_data})) } else { plugin }
    }));
    let list = json!({"cniVersion": VERSION, "name": "bench", "plugins": plugins});
    let directory = bench.directory(State::Tmpfs, subject, "net.d")?;
    std::fs::write(directory.join("bench.conflist"), list.to_string())
        .map_err(|error| error.to_string())?;
    Ok(directory)
}

fn life(
    bench: &mut Bench<'_>,
    state: State,
    runtime: Runtime,
    subject: Subject,
    pass: Pass,
) -> Outcome {
    let configurations = configure(bench, state, subject)?;
    let cache = bench.directory(state, subject, "cache")?;
    let driver = Driver::new(bench, runtime, subject, &configurations, &cache)?;
    let by =
        if runtime == Runtime::Libcni && subject == Subject::Podwire { ", by libcni" } else { "" };
    let container = bench.container(subject);
    let mappings = portmap::two(8_080 + 2 * u32::from(subject.number()));
    let capabilities = json!({"portMappings": mappings});
    let mut outcome = Ok(());
    for verb in ["add", "check", "del"] {
        let name = format!("chain {}{by}{}", verb.to_uppercase(), state.suffix());
        let call = driver.call(verb, "bench", &container, "eth0", &capabilities);
        let measured = bench.measure(&Place::new("runtime", name), subject, pass, &call).map(drop);
        // What is there is deleted, also after a CHECK that a peer got wrong.
        outcome = tolerate(bench, subject, measured);
        if outcome.is_err() {
            break;
        }
    }
    bench.retire(container);
    outcome
}
