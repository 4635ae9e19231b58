//! Messages of the Container Runtime Interface, as far as the tests use them.
//!
//! Names and numbers are those of `k8s.io/cri-api/pkg/apis/runtime/v1/api.proto`;
//! fields that are not listed are skipped when read and absent when written.

use std::collections::HashMap;

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct PodSandboxConfig {
    #[prost(message, optional, tag = "1")]
    pub(super) metadata: Option<PodSandboxMetadata>,
    #[prost(string, tag = "2")]
    pub(super) hostname: String,
    #[prost(string, tag = "3")]
    pub(super) log_directory: String,
    #[prost(message, repeated, tag = "5")]
    pub(super) port_mappings: Vec<PortMapping>,
    #[prost(map = "string, string", tag = "6")]
    pub(super) labels: HashMap<String, String>,
    #[prost(map = "string, string", tag = "7")]
    pub(super) annotations: HashMap<String, String>,
    #[prost(message, optional, tag = "8")]
    pub(super) linux: Option<LinuxPodSandboxConfig>,
}

#[derive(Clone, PartialEq, Eq, Hash, prost::Message)]
pub(super) struct PodSandboxMetadata {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(string, tag = "2")]
    pub(super) uid: String,
    #[prost(string, tag = "3")]
    pub(super) namespace: String,
    #[prost(uint32, tag = "4")]
    pub(super) attempt: u32,
}

/// TCP where `protocol` is absent.
#[derive(Clone, PartialEq, Eq, Hash, prost::Message)]
pub(super) struct PortMapping {
    #[prost(int32, tag = "1")]
    pub(super) protocol: i32,
    #[prost(int32, tag = "2")]
    pub(super) container_port: i32,
    #[prost(int32, tag = "3")]
    pub(super) host_port: i32,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct LinuxPodSandboxConfig {
    #[prost(string, tag = "1")]
    pub(super) cgroup_parent: String,
    #[prost(message, optional, tag = "2")]
    pub(super) security_context: Option<LinuxSandboxSecurityContext>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct LinuxSandboxSecurityContext {
    #[prost(message, optional, tag = "1")]
    pub(super) namespace_options: Option<NamespaceOption>,
}

/// 0 is the pod's, 1 the container's own, 2 the node's.
#[derive(Clone, PartialEq, Eq, Hash, prost::Message)]
pub(super) struct NamespaceOption {
    #[prost(int32, tag = "1")]
    pub(super) network: i32,
    #[prost(int32, tag = "2")]
    pub(super) pid: i32,
    #[prost(int32, tag = "3")]
    pub(super) ipc: i32,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct RunPodSandboxRequest {
    #[prost(message, optional, tag = "1")]
    pub(super) config: Option<PodSandboxConfig>,
}

/// What requests about one sandbox hold, and the answer of `RunPodSandbox`.
#[derive(Clone, PartialEq, Eq, Hash, prost::Message)]
pub(super) struct PodSandboxId {
    #[prost(string, tag = "1")]
    pub(super) pod_sandbox_id: String,
}

/// An answer of which nothing is read.
#[derive(Clone, PartialEq, Eq, Hash, prost::Message)]
pub(super) struct Empty {}

#[derive(Clone, PartialEq, Eq, Hash, prost::Message)]
pub(super) struct PodSandboxStatusRequest {
    #[prost(string, tag = "1")]
    pub(super) pod_sandbox_id: String,
    #[prost(bool, tag = "2")]
    pub(super) verbose: bool,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct PodSandboxStatusResponse {
    #[prost(message, optional, tag = "1")]
    pub(super) status: Option<PodSandboxStatus>,
    #[prost(map = "string, string", tag = "2")]
    pub(super) info: HashMap<String, String>,
}

#[derive(Clone, PartialEq, Eq, Hash, prost::Message)]
pub(super) struct PodSandboxStatus {
    #[prost(string, tag = "1")]
    pub(super) id: String,
    /// 0 when ready.
    #[prost(int32, tag = "3")]
    pub(super) state: i32,
    #[prost(message, optional, tag = "5")]
    pub(super) network: Option<PodSandboxNetworkStatus>,
}

#[derive(Clone, PartialEq, Eq, Hash, prost::Message)]
pub(super) struct PodSandboxNetworkStatus {
    #[prost(string, tag = "1")]
    pub(super) ip: String,
    #[prost(message, repeated, tag = "2")]
    pub(super) additional_ips: Vec<PodIp>,
}

#[derive(Clone, PartialEq, Eq, Hash, prost::Message)]
pub(super) struct PodIp {
    #[prost(string, tag = "1")]
    pub(super) ip: String,
}

#[derive(Clone, PartialEq, Eq, Hash, prost::Message)]
pub(super) struct ListPodSandboxResponse {
    #[prost(message, repeated, tag = "1")]
    pub(super) items: Vec<PodSandboxId>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct CreateContainerRequest {
    #[prost(string, tag = "1")]
    pub(super) pod_sandbox_id: String,
    #[prost(message, optional, tag = "2")]
    pub(super) config: Option<ContainerConfig>,
    #[prost(message, optional, tag = "3")]
    pub(super) sandbox_config: Option<PodSandboxConfig>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct ContainerConfig {
    #[prost(message, optional, tag = "1")]
    pub(super) metadata: Option<ContainerMetadata>,
    #[prost(message, optional, tag = "2")]
    pub(super) image: Option<ImageSpec>,
    #[prost(string, repeated, tag = "3")]
    pub(super) command: Vec<String>,
    #[prost(string, tag = "11")]
    pub(super) log_path: String,
    #[prost(message, optional, tag = "15")]
    pub(super) linux: Option<LinuxContainerConfig>,
}

#[derive(Clone, PartialEq, Eq, Hash, prost::Message)]
pub(super) struct ContainerMetadata {
    #[prost(string, tag = "1")]
    pub(super) name: String,
}

#[derive(Clone, PartialEq, Eq, Hash, prost::Message)]
pub(super) struct ImageSpec {
    #[prost(string, tag = "1")]
    pub(super) image: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct LinuxContainerConfig {
    #[prost(message, optional, tag = "2")]
    pub(super) security_context: Option<LinuxContainerSecurityContext>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct LinuxContainerSecurityContext {
    #[prost(message, optional, tag = "3")]
    pub(super) namespace_options: Option<NamespaceOption>,
}

/// The answer of `CreateContainer` and the request of `StartContainer`.
#[derive(Clone, PartialEq, Eq, Hash, prost::Message)]
pub(super) struct ContainerId {
    #[prost(string, tag = "1")]
    pub(super) container_id: String,
}

#[derive(Clone, PartialEq, Eq, Hash, prost::Message)]
pub(super) struct StatusResponse {
    #[prost(message, optional, tag = "1")]
    pub(super) status: Option<RuntimeStatus>,
}

#[derive(Clone, PartialEq, Eq, Hash, prost::Message)]
pub(super) struct RuntimeStatus {
    #[prost(message, repeated, tag = "1")]
    pub(super) conditions: Vec<RuntimeCondition>,
}

/// What the runtime says of one side of itself.
#[derive(Clone, PartialEq, Eq, Hash, prost::Message)]
pub struct RuntimeCondition {
    /// Of which.
    #[prost(string, tag = "1")]
    pub r#type: String,
    /// Whether it is well.
    #[prost(bool, tag = "2")]
    pub status: bool,
    /// Why it isn't, in a word.
    #[prost(string, tag = "3")]
    pub reason: String,
    /// Why it isn't.
    #[prost(string, tag = "4")]
    pub message: String,
}
