//! A node with many recorded attachments: what one more costs, and what it
//! costs to look at all.

use std::path::Path;
use std::time::Instant;

use podwire_runtime::store::{Record, State as Recorded, Store};
use podwire_runtime::{
    Attachment, Existing, GcMode, Network, Runtime, Source, StaleOutcome, ValidSet,
};
use podwire_spec::id::{AttachmentKey, ContainerId, IfName, NetworkName};
use podwire_spec::request::CapabilityArguments;
use serde_json::json;

use super::driver::{self, Driver};
use super::tolerate;
use crate::Outcome;
use crate::bench::{Bench, Place, State};
use crate::subject::Subject;
use crate::turns::Turns;

/// Attachments that are recorded.
const COUNTS: [u32; 4] = [0, 100, 1_000, 10_000];
/// Attachments made for real by the library.
const REAL: u32 = 1_000;
/// The network: nothing but `lo`.
const NETWORK: &str = "quiet";

pub(super) fn run(bench: &mut Bench<'_>) -> Outcome {
    let counts: &[u32] = if bench.options.quick { &[0, 1_000] } else { &COUNTS };
    for subject in bench.subjects(&[Subject::Podwire, Subject::GoNew]) {
        let mut there = 0;
        for count in counts {
            let outcome = one(bench, subject, there..*count);
            tolerate(bench, subject, outcome)?;
            there = *count;
        }
    }
    if bench.options.quick { Ok(()) } else { thousand(bench) }
}

fn one(bench: &mut Bench<'_>, subject: Subject, new: std::ops::Range<u32>) -> Outcome {
    let configurations = configure(bench, subject)?;
    let cache = bench.directory(State::Tmpfs, subject, "records")?;
    let count = new.end;
    lay(&cache, new)?;
    let runtime = match subject {
        Subject::Podwire => driver::Runtime::Podwire,
        _ => driver::Runtime::Libcni,
    };
    let driver = Driver::new(bench, runtime, subject, &configurations, &cache)?;
    let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
    let looks = match subject {
        Subject::Podwire => vec![
            ("list", driver.bare(&words(&["list", "--output", "json"]))),
            ("GC, dry run", driver.bare(&words(&["gc", NETWORK, "--all", "--dry-run"]))),
        ],
        _ => vec![("list", driver.bare(&words(&["cached-attachments"])))],
    };
    let rounds = bench.options.rounds.min(10);
    bench.take(Turns { rounds, counts_go: count == 0 }, &[subject], |bench, subject, pass| {
        let container = bench.container(subject);
        for verb in ["add", "check", "del"] {
            let call = driver.call(verb, NETWORK, &container, "lo", &json!({}));
            let place = Place::new("store", format!("loopback {}", verb.to_uppercase())).at(count);
            bench.measure(&place, subject, pass, &call)?;
        }
        bench.retire(container);
        for (name, call) in &looks {
            bench.measure(&Place::new("store", *name).at(count), subject, pass, call)?;
        }
        Ok(())
    })
}

fn configure(bench: &Bench<'_>, subject: Subject) -> Outcome<std::path::PathBuf> {
    let directory = bench.directory(State::Tmpfs, subject, "quiet.d")?;
    let list = json!({"cniVersion": "1.1.0", "name": NETWORK, "plugins": [{"type": "loopback"}]});
    std::fs::write(directory.join("quiet.conflist"), list.to_string())
        .map_err(|error| error.to_string())?;
    Ok(directory)
}

/// Records of containers that are gone, as both runtimes read them.
fn lay(cache: &Path, numbers: std::ops::Range<u32>) -> Outcome {
    let store = Store::new(cache);
    let text = |error: &dyn std::fmt::Display| error.to_string();
    for number in numbers {
        let id = format!("gone{number}");
        let key = AttachmentKey {
            network: NetworkName::parse(NETWORK).map_err(|error| text(&error))?,
            container_id: ContainerId::parse(&id).map_err(|error| text(&error))?,
            ifname: IfName::parse("lo").map_err(|error| text(&error))?,
        };
        let config = json!({
            "cniVersion": "1.1.0", "name": NETWORK, "plugins": [{"type": "loopback"}]
        });
        let record = Record {
            key,
            state: Recorded::Attached,
            config: Some(config.to_string().into_bytes()),
            netns: format!("/run/netns/{id}"),
            args: Vec::new(),
            capability_args: CapabilityArguments::default(),
            result: json!({"cniVersion": "1.1.0", "interfaces": [{"name": "lo"}]}).to_string(),
        };
        store.commit(&record).map_err(|error| text(&error))?;
    }
    Ok(())
}

/// The library in one process: attached, checked, listed and collected.
fn thousand(bench: &mut Bench<'_>) -> Outcome {
    let configurations = configure(bench, Subject::Podwire)?;
    let cache = bench.directory(State::Tmpfs, Subject::Podwire, "thousand")?;
    let runtime = Runtime::builder()
        .plugin_directory(&bench.options.programs.plugins)
        .configuration_directory(&configurations)
        .cache_directory(&cache)
        .build();
    let network = runtime.network(NETWORK).map_err(|error| error.to_string())?;
    let netns = bench.container(Subject::Podwire);
    let attachments: Vec<_> = (0..REAL)
        .map(|number| attachment(&format!("real{number}"), &netns.path))
        .collect::<Outcome<_>>()?;
    let mut note = |what: &str, work: &dyn Fn() -> Outcome| {
        let started = Instant::now();
        work()?;
        let each = started.elapsed().as_secs_f64() * 1000.0 / f64::from(REAL);
        bench.report.figure("store", what, Subject::Podwire, each);
        Ok::<_, String>(())
    };
    let text = |error: podwire_runtime::RuntimeError| error.to_string();
    note("library, 1,000 attached, ms each", &|| {
        each(&attachments, |attachment| {
            runtime.add(&network, attachment, Existing::Refuse).map(drop).map_err(text)
        })
    })?;
    note("library, 1,000 checked, ms each", &|| {
        each(&attachments, |attachment| {
            runtime.check(&network, attachment, Source::Recorded).map(drop).map_err(text)
        })
    })?;
    note("library, 1,000 listed, ms each", &|| {
        let found = runtime.store().list().map_err(text)?.attachments.len();
        if found == attachments.len() { Ok(()) } else { Err(format!("{found} are listed")) }
    })?;
    note("library, 1,000 collected, ms each", &|| collect(&runtime, &network))?;
    netns.netns.remove();
    Ok(())
}

fn collect(runtime: &Runtime, network: &Network) -> Outcome {
    let report = runtime
        .gc(network, &ValidSet::none(), GcMode::Collect)
        .map_err(|error| error.to_string())?;
    let removed =
        report.stale.iter().filter(|stale| stale.outcome == StaleOutcome::Removed).count();
    if report.is_clean() && removed == REAL as usize {
        return Ok(());
    }
    Err(format!("{removed} were removed, {:?}", report.failures))
}

fn attachment(id: &str, netns: &str) -> Outcome<Attachment> {
    let id = ContainerId::parse(id).map_err(|error| error.to_string())?;
    let ifname = IfName::parse("lo").map_err(|error| error.to_string())?;
    Ok(Attachment::new(id, ifname).with_netns(netns))
}

fn each(attachments: &[Attachment], work: impl Fn(&Attachment) -> Outcome) -> Outcome {
    attachments.iter().try_for_each(work)
}
