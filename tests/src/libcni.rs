//! Go's own runtime library, driving the plugins of a node.

use std::path::PathBuf;

use podwire_testkit::{Output, libcni_client};

use crate::container::Container;
use crate::node::Node;

/// The small Go program around libcni.
#[derive(Debug)]
pub struct Libcni<'a> {
    node: &'a Node,
    program: PathBuf,
}

impl<'a> Libcni<'a> {
    #[track_caller]
    pub(crate) fn new(node: &'a Node) -> Self {
        Self { node, program: libcni_client() }
    }

    /// An operation on an attachment: `add`, `check`, `del`, `cached-result`,
    /// `cached-config` or `cached-attachments`.
    #[track_caller]
    pub fn on(&self, verb: &str, network: &str, container: &Container) -> Output {
        let args: Vec<_> =
            container.args.iter().map(|(key, value)| format!("{key}={value}")).collect();
        self.run(&[
            verb,
            "--network",
            network,
            "--container-id",
            &container.id,
            "--ifname",
            &container.ifname,
            "--netns",
            container.netns.path().to_str().unwrap(),
            "--args",
            &args.join(";"),
            "--capability-args",
            &container.capabilities().to_string(),
        ])
    }

    /// An operation on a network: `status` or `validate`.
    #[track_caller]
    pub fn status(&self, verb: &str, network: &str) -> Output {
        self.run(&[verb, "--network", network])
    }

    /// Garbage collection that keeps these containers.
    #[track_caller]
    pub fn gc(&self, network: &str, keep: &[&Container]) -> Output {
        let valid: Vec<_> = keep
            .iter()
            .map(|kept| serde_json::json!({"containerID": kept.id, "ifname": kept.ifname}))
            .collect();
        let valid = serde_json::Value::from(valid).to_string();
        self.run(&["gc", "--network", network, "--valid-attachments", &valid])
    }

    /// Any command line of the program; the plugin directory is added.
    #[track_caller]
    pub fn run(&self, arguments: &[&str]) -> Output {
        let plugins = self.node.plugin_directory();
        let (command, options) = arguments.split_first().unwrap();
        let start = [self.program.to_str().unwrap(), command, "--plugin-dir"];
        let line = [&start[..], &[plugins.to_str().unwrap()], options].concat();
        self.node.world.try_exec(&line)
    }
}
