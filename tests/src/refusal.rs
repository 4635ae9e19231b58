//! Calls that must be refused: one error object, the right code, a message that
//! names what is wrong, and nothing changed.

use podwire_testkit::{HostState, Netns, Output, Plugin};
use serde_json::Value;

use crate::node::{Node, Plugins};

/// A node with one container, on which every call is to be refused.
#[derive(Debug)]
pub struct Refusals {
    /// The node, with our plugins.
    pub node: Node,
    /// The container, not attached.
    pub netns: Netns,
    before: [HostState; 2],
    count: usize,
    complaints: Vec<String>,
}

impl Refusals {
    /// A fresh node and container.
    #[track_caller]
    #[allow(clippy::new_without_default)] // It has an effect.
    pub fn new() -> Self {
        let node = Node::new(Plugins::Ours);
        let netns = node.world.netns("c1");
        let before = [node.world.snapshot(), netns.snapshot()];
        Self { node, netns, before, count: 0, complaints: Vec::new() }
    }

    /// A call of this plugin with all variables set.
    #[track_caller]
    pub fn call(&self, plugin: &str, verb: &str, config: &Value) -> Plugin {
        let call = self.node.world.plugin(plugin).command(verb).container("c1");
        call.netns(&self.netns).ifname("eth0").config(config)
    }

    /// Notes what is wrong unless the call failed as a plugin should: with one of these
    /// codes and all of these words in its message or details.
    pub fn refused(&mut self, output: &Output, codes: &[u64], words: &[&str]) {
        self.count += 1;
        let complaint = match clean_failure(output) {
            Err(complaint) => complaint,
            Ok(error) => {
                let text = format!("{} {}", error["msg"], error["details"]);
                // As it stands in the message, without what JSON adds to it.
                let plain = text.replace("\\\"", "\"");
                let missing: Vec<_> = words.iter().filter(|word| !plain.contains(**word)).collect();
                if !codes.iter().any(|code| error["code"] == *code) {
                    format!("code {} is none of {codes:?}", error["code"])
                } else if !missing.is_empty() {
                    format!("the message lacks {missing:?}")
                } else {
                    return;
                }
            }
        };
        self.complaints.push(format!("{complaint}:\n{}", shortened(output)));
    }

    /// Panics with all complaints, if any; and if any of the calls changed anything, or
    /// none was made.
    #[track_caller]
    pub fn assert_nothing_changed(&self) {
        assert!(self.count > 0, "nothing was tried");
        assert!(
            self.complaints.is_empty(),
            "{} of {} calls:\n\n{}",
            self.complaints.len(),
            self.count,
            self.complaints.join("\n")
        );
        // But for empty lock files; no bridge may have been made.
        self.node.world.snapshot().since(&self.before[0]).beyond_residue(&[]).assert_empty();
        self.netns.snapshot().since(&self.before[1]).assert_empty();
    }
}

/// The error object of a program that failed in an orderly way: status 1, not by a
/// signal or a panic, with exactly one JSON object on standard output that has a code
/// and a message. Else what is wrong.
fn clean_failure(output: &Output) -> Result<Value, String> {
    if output.code != 1 {
        return Err(format!("status {}", output.code));
    }
    let error: Value =
        serde_json::from_str(&output.stdout).map_err(|error| format!("{error} in its output"))?;
    if !error["code"].is_u64() || error["msg"].as_str().is_none_or(str::is_empty) {
        return Err("no error object".to_owned());
    }
    if output.stderr.contains("panicked") || output.stdout.contains("a bug in") {
        return Err("it panicked".to_owned());
    }
    Ok(error)
}

/// Some of the configurations are megabytes long.
fn shortened(output: &Output) -> String {
    let cut = |text: &str| text.chars().take(1500).collect::<String>();
    let (stdout, stderr) = (cut(&output.stdout), cut(&output.stderr));
    format!("  {}\n  {stdout}\n  {stderr}", cut(&output.command))
}
