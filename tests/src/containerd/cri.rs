//! The Container Runtime Interface as the kubelet calls it.

use std::collections::HashMap;
use std::net::IpAddr;
use std::path::PathBuf;

use serde_json::Value;

use super::call::{Failure, call};
use super::image::IMAGE;
use super::messages::{
    ContainerConfig, ContainerId, ContainerMetadata, CreateContainerRequest, Empty, ImageSpec,
    LinuxContainerConfig, LinuxContainerSecurityContext, LinuxPodSandboxConfig,
    LinuxSandboxSecurityContext, ListPodSandboxResponse, NamespaceOption, PodSandboxConfig,
    PodSandboxId, PodSandboxMetadata, PodSandboxStatusRequest, PodSandboxStatusResponse,
    PortMapping, RunPodSandboxRequest, RuntimeCondition, StatusResponse,
};

const SERVICE: &str = "runtime.v1.RuntimeService";

/// A client; may be cloned into threads.
#[derive(Debug, Clone)]
pub struct Cri {
    pub(super) socket: PathBuf,
    pub(super) cgroup: String,
}

/// A pod that is to be run.
#[derive(Debug, Clone, Default)]
pub struct Pod {
    /// Its name, unique on the node.
    pub name: String,
    /// Host ports and the pod's ports behind them, all TCP.
    pub ports: Vec<(u16, u16)>,
    /// Annotations.
    pub annotations: HashMap<String, String>,
}

impl Pod {
    /// A pod of this name.
    pub fn new(name: &str) -> Self {
        Self { name: name.to_owned(), ..Self::default() }
    }

    /// The same with a host port for one of its ports.
    #[must_use]
    pub fn with_port(mut self, host: u16, inside: u16) -> Self {
        self.ports.push((host, inside));
        self
    }

    /// The same with an annotation.
    #[must_use]
    pub fn with_annotation(mut self, name: &str, value: &str) -> Self {
        self.annotations.insert(name.to_owned(), value.to_owned());
        self
    }
}

/// What the runtime says of a sandbox.
#[derive(Debug, Clone)]
pub struct Sandbox {
    /// Whether it is ready.
    pub is_ready: bool,
    /// Its addresses.
    pub addresses: Vec<IpAddr>,
    /// The path of its network namespace, as the runtime sees it.
    pub namespace: PathBuf,
    /// The number of the process that holds it, as the runtime sees it.
    pub process: u64,
}

impl Cri {
    /// Runs a pod's sandbox; returns its id.
    ///
    /// # Errors
    /// The runtime's.
    pub fn run_pod(&self, pod: &Pod) -> Result<String, Failure> {
        let request = RunPodSandboxRequest { config: Some(self.config(pod)) };
        self.call::<PodSandboxId>("RunPodSandbox", &request).map(|answer| answer.pod_sandbox_id)
    }

    /// Stops a sandbox, which takes its network away.
    ///
    /// # Errors
    /// The runtime's.
    pub fn stop_pod(&self, id: &str) -> Result<(), Failure> {
        let request = PodSandboxId { pod_sandbox_id: id.to_owned() };
        self.call::<Empty>("StopPodSandbox", &request).map(drop)
    }

    /// Removes a sandbox.
    ///
    /// # Errors
    /// The runtime's.
    pub fn remove_pod(&self, id: &str) -> Result<(), Failure> {
        let request = PodSandboxId { pod_sandbox_id: id.to_owned() };
        self.call::<Empty>("RemovePodSandbox", &request).map(drop)
    }

    /// The ids of all sandboxes that the runtime knows.
    #[track_caller]
    pub fn pods(&self) -> Vec<String> {
        let listed = self.call::<ListPodSandboxResponse>("ListPodSandbox", &Empty {});
        let listed = listed.unwrap_or_else(|failure| panic!("ListPodSandbox: {failure}"));
        listed.items.into_iter().map(|item| item.pod_sandbox_id).collect()
    }

    /// What the runtime says of a sandbox.
    ///
    /// # Errors
    /// The runtime's.
    pub fn pod(&self, id: &str) -> Result<Sandbox, Failure> {
        let request = PodSandboxStatusRequest { pod_sandbox_id: id.to_owned(), verbose: true };
        let answer = self.call::<PodSandboxStatusResponse>("PodSandboxStatus", &request)?;
        let status = answer.status.expect("a status");
        let network = status.network.unwrap_or_default();
        let more = network.additional_ips.into_iter().map(|address| address.ip);
        let addresses = std::iter::once(network.ip).chain(more);
        let info: Value = serde_json::from_str(&answer.info["info"]).unwrap();
        let namespaces = info["runtimeSpec"]["linux"]["namespaces"].as_array();
        let namespace = namespaces
            .into_iter()
            .flatten()
            .find(|namespace| namespace["type"] == "network")
            .and_then(|namespace| namespace["path"].as_str());
        Ok(Sandbox {
            is_ready: status.state == 0,
            addresses: addresses.filter_map(|address| address.parse().ok()).collect(),
            namespace: namespace.unwrap_or_default().into(),
            process: info["pid"].as_u64().unwrap_or_default(),
        })
    }

    /// Starts a container in a sandbox, by its command line.
    ///
    /// # Errors
    /// The runtime's.
    pub fn start(&self, pod: &Pod, id: &str, command: &[&str]) -> Result<(), Failure> {
        let security_context =
            Some(LinuxContainerSecurityContext { namespace_options: Some(namespaces()) });
        let config = ContainerConfig {
            metadata: Some(ContainerMetadata { name: "main".to_owned() }),
            image: Some(ImageSpec { image: IMAGE.to_owned() }),
            command: command.iter().map(|&word| word.to_owned()).collect(),
            log_path: "main.log".to_owned(),
            linux: Some(LinuxContainerConfig { security_context }),
        };
        let request = CreateContainerRequest {
            pod_sandbox_id: id.to_owned(),
            config: Some(config),
            sandbox_config: Some(self.config(pod)),
        };
        let created = self.call::<ContainerId>("CreateContainer", &request)?;
        self.call::<Empty>("StartContainer", &created).map(drop)
    }

    /// The condition `NetworkReady`, as the kubelet reads it every few seconds.
    #[track_caller]
    pub fn network_ready(&self) -> RuntimeCondition {
        let answer = self.call::<StatusResponse>("Status", &Empty {});
        let answer = answer.unwrap_or_else(|failure| panic!("Status: {failure}"));
        let conditions = answer.status.expect("a status").conditions;
        let network = conditions.into_iter().find(|condition| condition.r#type == "NetworkReady");
        network.expect("the condition NetworkReady")
    }

    /// Whether the runtime answers.
    pub fn answers(&self) -> bool {
        self.call::<Empty>("Status", &Empty {}).is_ok()
    }

    fn call<Answer: prost::Message + Default>(
        &self,
        method: &str,
        request: &impl prost::Message,
    ) -> Result<Answer, Failure> {
        call(&self.socket, SERVICE, method, request)
    }

    fn config(&self, pod: &Pod) -> PodSandboxConfig {
        let security_context =
            Some(LinuxSandboxSecurityContext { namespace_options: Some(namespaces()) });
        PodSandboxConfig {
            metadata: Some(PodSandboxMetadata {
                name: pod.name.clone(),
                uid: format!("uid-{}", pod.name),
                namespace: "default".to_owned(),
                attempt: 0,
            }),
            hostname: pod.name.clone(),
            log_directory: format!("/run/world/logs/{}", pod.name),
            port_mappings: pod.ports.iter().copied().map(port_mapping).collect(),
            labels: HashMap::new(),
            annotations: pod.annotations.clone(),
            linux: Some(LinuxPodSandboxConfig {
                cgroup_parent: self.cgroup.clone(),
                security_context,
            }),
        }
    }
}

fn port_mapping((host, inside): (u16, u16)) -> PortMapping {
    PortMapping { protocol: 0, container_port: inside.into(), host_port: host.into() }
}

/// A network of the pod's, processes of the container's own.
fn namespaces() -> NamespaceOption {
    NamespaceOption { network: 0, pid: 1, ipc: 0 }
}
