//! What is measured.

use std::fmt::Write as _;
use std::path::Path;

use podwire_testkit::World;
use serde_json::{Value, json};

use crate::measure::{Run, run};
use crate::report::Report;
use crate::subject::Subject;

/// A private world and what is found out in it.
pub struct Bench<'a> {
    world: &'a World,
    subjects: &'a [Subject],
    rounds: u32,
    /// The results.
    pub report: Report,
}

type Outcome = Result<(), String>;

/// Reservations laid in advance, to see what a full pool costs.
const POOLS: [(u32, &str); 3] = [(10, "10"), (10_000, "10,000"), (60_000, "60,000")];

/// Mappings of other containers, to see what neighbours cost.
const NEIGHBOURS: u32 = 1_000;

impl<'a> Bench<'a> {
    /// `rounds` rounds of each scenario, every subject once a round.
    pub fn new(world: &'a World, subjects: &'a [Subject], rounds: u32) -> Self {
        Self { world, subjects, rounds, report: Report::default() }
    }

    /// All scenarios.
    ///
    /// # Errors
    /// A call failed: then there is nothing to compare.
    pub fn run(&mut self) -> Outcome {
        self.version()?;
        for (count, name) in POOLS {
            self.host_local(count, name)?;
        }
        self.chain("bridge + host-local", false, &[])?;
        self.chain("bridge + masquerade", true, &[])?;
        self.portmap(0)?;
        self.portmap(NEIGHBOURS)
    }

    fn version(&mut self) -> Outcome {
        for _ in 0..self.rounds * 2 {
            for subject in self.subjects {
                let done = match subject {
                    Subject::Floor(program) => run(&text(program), &["exit"], &[], "")?,
                    Subject::Podwire(directory) | Subject::Go(directory) => run(
                        &text(&directory.join("bridge")),
                        &[],
                        &[("CNI_COMMAND", "VERSION")],
                        "{\"cniVersion\":\"1.1.0\"}",
                    )?,
                };
                self.report.add("VERSION", subject.name(), done.time);
            }
        }
        Ok(())
    }

    fn host_local(&mut self, count: u32, name: &str) -> Outcome {
        for subject in self.subjects {
            let Some(directory) = subject.plugins() else { continue };
            let data = self.world.path(&format!("pool-{}-{count}", subject.name()));
            fill(&data.join("pool"), count)?;
            let config = json!({
                "cniVersion": "1.1.0", "name": "pool", "type": "bridge",
                "ipam": {"type": "host-local", "subnet": "10.64.0.0/14", "dataDir": data}
            });
            for round in 0..self.rounds {
                for command in ["ADD", "DEL"] {
                    let done = call(directory, "host-local", command, round, "/nowhere", &config)?;
                    let name = format!("host-local {command}, {name} reserved");
                    // The first call may build an index; it is told apart.
                    if round > 0 {
                        self.report.add(&name, subject.name(), done.time);
                    }
                }
            }
        }
        Ok(())
    }

    /// A main plugin with host-local, then chained plugins.
    fn chain(&mut self, name: &str, masquerade: bool, chained: &[Value]) -> Outcome {
        for round in 0..self.rounds {
            for (number, subject) in self.subjects.iter().enumerate() {
                let container = format!("ns-{}-{round}", subject.name());
                let netns = self.world.netns(&container);
                let path = text(netns.path());
                let time = |report: &mut Report, call: &str, done: &Run| {
                    report.add(&format!("{name} {call}"), subject.name(), done.time);
                };
                let Some(directory) = subject.plugins() else {
                    if !masquerade && chained.is_empty() {
                        let (add, del) = self.floor(subject, &path, number)?;
                        time(&mut self.report, "ADD", &add);
                        time(&mut self.report, "DEL", &del);
                    }
                    netns.remove();
                    continue;
                };
                let config = self.bridge(subject, number, masquerade);
                let add = call(directory, "bridge", "ADD", round, &path, &config)?;
                let with_result = with_previous(&config, &add.stdout)?;
                let check = call(directory, "bridge", "CHECK", round, &path, &with_result)?;
                let del = call(directory, "bridge", "DEL", round, &path, &with_result)?;
                time(&mut self.report, "ADD", &add);
                time(&mut self.report, "CHECK", &check);
                time(&mut self.report, "DEL", &del);
                netns.remove();
            }
        }
        Ok(())
    }

    fn portmap(&mut self, neighbours: u32) -> Outcome {
        for (number, subject) in self.subjects.iter().enumerate() {
            let Some(directory) = subject.plugins() else { continue };
            let netns = self.world.netns(&format!("portmap-{}-{neighbours}", subject.name()));
            let path = text(netns.path());
            let bridge = self.bridge(subject, number, false);
            let attached = call(directory, "bridge", "ADD", 0, &path, &bridge)?;
            let name = format!("ports{neighbours}");
            for first in (0..neighbours).step_by(100) {
                let ports: Vec<_> = (first..neighbours.min(first + 100)).collect();
                let config = ports_config(&name, &attached.stdout, 20_000, &ports)?;
                call(directory, "portmap", "ADD", 1_000_000 + first, &path, &config)?;
            }
            for round in 0..self.rounds.min(20) {
                for command in ["ADD", "CHECK", "DEL"] {
                    let config = ports_config(&name, &attached.stdout, 8_000, &[0, 1])?;
                    let done = call(directory, "portmap", command, round, &path, &config)?;
                    let row = format!("portmap {command}, 2 ports, {neighbours} others");
                    self.report.add(&row, subject.name(), done.time);
                }
            }
            for first in (0..neighbours).step_by(100) {
                let config = ports_config(&name, &attached.stdout, 20_000, &[first])?;
                call(directory, "portmap", "DEL", 1_000_000 + first, &path, &config)?;
            }
            call(directory, "bridge", "DEL", 0, &path, &with_previous(&bridge, &attached.stdout)?)?;
            netns.remove();
        }
        Ok(())
    }

    fn floor(&self, subject: &Subject, netns: &str, number: usize) -> Result<(Run, Run), String> {
        let Subject::Floor(program) = subject else { return Err("not the floor".to_owned()) };
        let bridge = format!("floor{number}");
        let _ = self.world.try_exec(&["ip", "link", "add", &bridge, "type", "bridge"]);
        let _ = self.world.try_exec(&["ip", "link", "set", &bridge, "up"]);
        let gateway = "10.200.0.1";
        let attach = ["attach", netns, &bridge, "vethfloor", "10.200.0.2/24", gateway];
        let add = run(&text(program), &attach, &[], "")?;
        let del = run(&text(program), &["detach", "vethfloor"], &[], "")?;
        Ok((add, del))
    }

    /// Each subject has a bridge and a pool of its own.
    fn bridge(&self, subject: &Subject, number: usize, masquerade: bool) -> Value {
        let data = self.world.path(&format!("data-{}", subject.name()));
        json!({
            "cniVersion": "1.1.0", "name": "bench", "type": "bridge",
            "bridge": format!("bench{number}"), "isGateway": true, "ipMasq": masquerade,
            "ipam": {
                "type": "host-local", "dataDir": data,
                "subnet": format!("10.{}.0.0/16", 100 + number),
                "routes": [{"dst": "0.0.0.0/0"}]
            }
        })
    }
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

/// Lays reservations of containers that don't exist.
fn fill(directory: &Path, count: u32) -> Outcome {
    let failed = |error: std::io::Error| format!("{}: {error}", directory.display());
    std::fs::create_dir_all(directory).map_err(failed)?;
    for number in 0..count {
        let address = std::net::Ipv4Addr::from(u32::from_be_bytes([10, 64, 0, 2]) + number);
        let content = format!("neighbour{number}\r\neth0");
        std::fs::write(directory.join(address.to_string()), content).map_err(failed)?;
    }
    let last = std::net::Ipv4Addr::from(u32::from_be_bytes([10, 64, 0, 1]) + count);
    std::fs::write(directory.join("last_reserved_ip.0"), last.to_string()).map_err(failed)
}

fn call(
    directory: &Path,
    plugin: &str,
    command: &str,
    container: u32,
    netns: &str,
    config: &Value,
) -> Result<Run, String> {
    let mut id = String::new();
    let _ = write!(id, "c{container}");
    run(
        &text(&directory.join(plugin)),
        &[],
        &[
            ("CNI_COMMAND", command),
            ("CNI_CONTAINERID", &id),
            ("CNI_NETNS", netns),
            ("CNI_IFNAME", "eth0"),
            ("CNI_PATH", &text(directory)),
        ],
        &config.to_string(),
    )
    .map_err(|error| format!("{plugin} {command}: {error}"))
}

fn with_previous(config: &Value, result: &str) -> Result<Value, String> {
    let mut config = config.clone();
    let result: Value = serde_json::from_str(result).map_err(|error| error.to_string())?;
    if let Some(object) = config.as_object_mut() {
        object.insert("prevResult".to_owned(), result);
    }
    Ok(config)
}

fn ports_config(name: &str, result: &str, first: u32, ports: &[u32]) -> Result<Value, String> {
    let mappings: Vec<_> = ports
        .iter()
        .map(|port| json!({"hostPort": first + port, "containerPort": 80, "protocol": "tcp"}))
        .collect();
    let config = json!({
        "cniVersion": "1.1.0", "name": name, "type": "portmap",
        "capabilities": {"portMappings": true}, "runtimeConfig": {"portMappings": mappings}
    });
    with_previous(&config, result)
}
