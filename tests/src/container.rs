//! A container, as far as a network sees one.

use std::net::IpAddr;

use podwire_runtime::Attachment;
use podwire_spec::id::{ContainerId, IfName};
use podwire_spec::request::CapabilityArguments;
use podwire_testkit::Netns;
use serde_json::Value;

/// A network namespace with the names that a runtime gives it.
#[derive(Debug, Clone)]
pub struct Container {
    /// Its id.
    pub id: String,
    /// The interface to be attached.
    pub ifname: String,
    /// Its network namespace.
    pub netns: Netns,
    /// Host ports and the container's ports behind them, all TCP.
    pub ports: Vec<(u16, u16)>,
    /// `CNI_ARGS`.
    pub args: Vec<(String, String)>,
}

impl Container {
    /// The same with a host port for one of its ports.
    #[must_use]
    pub fn with_port(mut self, host: u16, inside: u16) -> Self {
        self.ports.push((host, inside));
        self
    }

    /// The same with another interface name.
    #[must_use]
    pub fn with_ifname(mut self, name: &str) -> Self {
        name.clone_into(&mut self.ifname);
        self
    }

    /// The same with a pair of `CNI_ARGS`.
    #[must_use]
    pub fn with_arg(mut self, key: &str, value: &str) -> Self {
        self.args.push((key.to_owned(), value.to_owned()));
        self
    }

    /// The capability arguments as the runtimes take them.
    pub fn capabilities(&self) -> Value {
        if self.ports.is_empty() {
            return serde_json::json!({});
        }
        let mappings: Vec<_> = self
            .ports
            .iter()
            .map(|(host, inside)| {
                serde_json::json!({"hostPort": host, "containerPort": inside, "protocol": "tcp"})
            })
            .collect();
        serde_json::json!({ "portMappings": mappings })
    }

    /// The attachment for our runtime.
    #[track_caller]
    pub fn attachment(&self) -> Attachment {
        let id = ContainerId::parse(&self.id).unwrap();
        let ifname = IfName::parse(&self.ifname).unwrap();
        let mut attachment = Attachment::new(id, ifname).with_netns(self.netns.path());
        attachment.args.clone_from(&self.args);
        attachment.capability_args =
            CapabilityArguments::parse(&self.capabilities().to_string()).unwrap();
        attachment
    }

    /// The addresses on the interface, link-local ones left out.
    #[track_caller]
    pub fn addresses(&self) -> Vec<IpAddr> {
        let links = self.netns.ip_json(&["addr", "show", "dev", &self.ifname]);
        let addresses = links[0]["addr_info"].as_array().expect("addresses").iter();
        addresses
            .filter(|address| address["scope"] != "link")
            .map(|address| address["local"].as_str().unwrap().parse().unwrap())
            .collect()
    }

    /// The only address of the interface.
    #[track_caller]
    pub fn address(&self) -> IpAddr {
        let addresses = self.addresses();
        assert_eq!(addresses.len(), 1, "{addresses:?}");
        addresses[0]
    }

    /// Whether the interface is there.
    pub fn is_attached(&self) -> bool {
        self.netns.try_exec(&["ip", "link", "show", "dev", &self.ifname]).code == 0
    }
}
