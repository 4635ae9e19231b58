//! What the tests share: each test for each release, a list, and questions to the kernel.

use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use podwire_testkit::probe::http_page;
use podwire_testkit::{Netns, Output};
use podwire_tests::containerd::{Containerd, Pod, Release};
use serde_json::{Value, json};

/// Makes a test of each function for each release.
macro_rules! under_each_release {
    ($($test:ident),+ $(,)?) => {
        mod installed {
            $(#[test]
            fn $test() {
                super::$test(podwire_tests::containerd::Release::Installed);
            })+
        }
        mod newest {
            $(#[test]
            fn $test() {
                super::$test(podwire_tests::containerd::Release::Newest);
            })+
        }
    };
}
pub(crate) use under_each_release;

/// A list as clusters have it, with addresses of these ranges.
pub(crate) fn list(release: Release, ranges: &[&str]) -> Value {
    let ranges: Vec<Value> = ranges.iter().map(|range| json!([{"subnet": range}])).collect();
    json!({
        "cniVersion": release.cni_version(),
        "name": "pods",
        "plugins": [
            {
                "type": "bridge",
                "bridge": "br0",
                "isGateway": true,
                "hairpinMode": true,
                "ipMasq": true,
                "ipam": {
                    "type": "host-local",
                    "ranges": ranges,
                    "routes": [{"dst": "0.0.0.0/0"}],
                },
            },
            {"type": "portmap", "capabilities": {"portMappings": true}},
            {"type": "bandwidth", "capabilities": {"bandwidth": true}},
        ],
    })
}

/// Addresses of both families for all.
pub(crate) const RANGES: [&str; 2] = ["10.1.0.0/24", "fd01::/64"];

/// Runs a pod that must run; returns its id.
#[track_caller]
pub(crate) fn run(containerd: &Containerd, pod: &Pod) -> String {
    match containerd.cri.run_pod(pod) {
        Ok(id) => id,
        Err(failure) => panic!("{}: {failure}; the log:\n{}", pod.name, containerd.log().text()),
    }
}

/// Stops and removes a pod, as the kubelet does.
#[track_caller]
pub(crate) fn remove(containerd: &Containerd, id: &str) {
    for step in [containerd.cri.stop_pod(id), containerd.cri.remove_pod(id)] {
        if let Err(failure) = step {
            panic!("{id}: {failure}; the log:\n{}", containerd.log().text());
        }
    }
}

/// The addresses of `eth0` in a namespace, as the kernel has them.
#[track_caller]
pub(crate) fn addresses(containerd: &Containerd, namespace: &Path) -> Vec<IpAddr> {
    let enter = format!("--net={}", namespace.display());
    let command = ["nsenter", &enter, "ip", "-j", "addr", "show", "dev", "eth0"];
    let links = containerd.node.world.exec(&command).json();
    let addresses = links[0]["addr_info"].as_array().unwrap().iter();
    addresses
        .filter(|address| address["scope"] == "global")
        .map(|address| address["local"].as_str().unwrap().parse().unwrap())
        .collect()
}

/// Asks a server for its page.
pub(crate) fn page(from: &Netns, address: IpAddr, port: u16) -> std::io::Result<String> {
    let patience = Duration::from_secs(3);
    http_page(from, SocketAddr::new(address, port), patience, patience)
}

/// Where the plugins are.
pub(crate) const PLUGINS: &str = "/opt/cni/bin";

/// Hands on the result of the plugin before, which libcni writes before the type.
pub(crate) const HAND_ON: &str = r#"case "$CNI_COMMAND $request" in "ADD "*'"prevResult"'*)
    printf '%s' "$request" | sed 's/.*"prevResult"://; s/,"type":"[a-z]*"}$//'
    exit 0 ;;
esac"#;

/// Runs a line of our command.
pub(crate) fn podwire(containerd: &Containerd, line: &str) -> Output {
    let own = std::env::current_exe().unwrap();
    let program = own.parent().unwrap().with_file_name("podwire");
    let program = program.to_str().unwrap();
    let words: Vec<&str> = std::iter::once(program).chain(line.split(' ')).collect();
    containerd.node.world.try_exec(&words)
}
