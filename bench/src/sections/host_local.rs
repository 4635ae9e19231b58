//! host-local beside many reservations of others.

use std::net::Ipv4Addr;
use std::path::Path;

use serde_json::json;

use crate::Outcome;
use crate::bench::{Bench, Place, State};
use crate::call::{Target, VERSION};
use crate::turns::Turns;

/// Reservations that are there already.
const POOLS: [u32; 4] = [10, 1_000, 10_000, 60_000];

pub(super) fn run(bench: &mut Bench<'_>) -> Outcome {
    let counts: &[u32] = if bench.options.quick { &[10, 10_000] } else { &POOLS };
    for count in counts {
        one(bench, State::Tmpfs, *count)?;
    }
    if bench.options.quick {
        return Ok(());
    }
    one(bench, State::Disk, 10)?;
    one(bench, State::Disk, 10_000)
}

fn one(bench: &mut Bench<'_>, state: State, count: u32) -> Outcome {
    let network = format!("pool{count}");
    for subject in bench.with_plugins() {
        let directory = bench.directory(state, subject, "pools")?;
        fill(&directory.join(&network), count)?;
    }
    // Every call of the Go plugins reads them all.
    let turns = Turns { counts_go: count == POOLS[0], ..bench.turns() };
    let subjects = bench.with_plugins();
    bench.take(turns, &subjects, |bench, subject, pass| {
        let config = json!({
            "cniVersion": VERSION, "name": network, "type": "bridge",
            "ipam": {
                "type": "host-local", "subnet": "10.64.0.0/14",
                "dataDir": bench.directory(state, subject, "pools")?
            }
        });
        let container = format!("c{}", bench.fresh_number());
        let target = Target { container: &container, netns: "/nowhere", ifname: "eth0" };
        for verb in ["ADD", "DEL"] {
            let name = format!("host-local {verb}{}", state.suffix());
            let call = bench.plugin(subject, verb, target, &config)?.by_name("host-local");
            let place = Place::new("host-local", name).at(count);
            bench.measure(&place, subject, pass, &call)?;
        }
        Ok(())
    })?;
    for subject in bench.with_plugins() {
        let directory = bench.directory(state, subject, "pools")?;
        std::fs::remove_dir_all(&directory).map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// Lays reservations of containers that don't exist.
fn fill(directory: &Path, count: u32) -> Outcome {
    let failed = |error: std::io::Error| format!("{}: {error}", directory.display());
    std::fs::create_dir_all(directory).map_err(failed)?;
    let address = |number: u32| Ipv4Addr::from(u32::from_be_bytes([10, 64, 0, 2]) + number);
    for number in 0..count {
        let content = format!("neighbour{number}\r\neth0");
        std::fs::write(directory.join(address(number).to_string()), content).map_err(failed)?;
    }
    let last = address(count.saturating_sub(1)).to_string();
    std::fs::write(directory.join("last_reserved_ip.0"), last).map_err(failed)
}
