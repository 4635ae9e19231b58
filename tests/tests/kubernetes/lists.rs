//! The lists, each from its file to its last DEL.

use podwire_tests::Container;
use serde_json::json;

use crate::cluster::Cluster;
use crate::stand_ins::{aws, calico, chained, flannel, kube_ovn, multus};

/// The files, as they were found.
macro_rules! file {
    ($name:literal) => {
        include_str!(concat!("../../../crates/spec/tests/data/", $name, ".json"))
    };
}

fn check(cluster: &Cluster, container: &Container) {
    cluster.node.check(&cluster.network, container).unwrap();
}

#[test]
fn c01_flannel_with_portmap_and_bandwidth() {
    let cluster = Cluster::new("10-flannel.conflist", file!("c01"), &[flannel()]);
    cluster.validate();
    let pod = cluster.node.container("pod").with_port(8080, 80);
    let mut attachment = pod.attachment();
    let limit = json!({"ingressRate": 8_000_000, "ingressBurst": 800_000,
                       "egressRate": 8_000_000, "egressBurst": 800_000});
    attachment.capability_args.insert("bandwidth", &limit.to_string()).unwrap();
    let runtime = cluster.node.runtime();
    runtime.add(&cluster.network, &attachment, podwire_runtime::Existing::Refuse).unwrap();
    let address = pod.address().to_string();
    assert!(address.starts_with("10.42.0."), "{address}");
    cluster.is_reached(&pod, &address);
    check(&cluster, &pod);
    // B116: the delegate's configuration is the wrapper's affair, and DEL has no prevResult.
    let asked = cluster.calls("ADD")[0].request();
    assert_eq!(asked["delegate"]["forceAddress"], true);
    assert!(asked.get("runtimeConfig").is_none());
    let links = cluster.node.world.ip_json(&["link", "show", "type", "ifb"]);
    assert_eq!(links.as_array().unwrap().len(), 1);
    let routes = pod.netns.exec(&["ip", "route"]).stdout;
    assert!(routes.contains("default via 10.42.0.1") && routes.contains("10.42.0.0/16"));
    cluster.del(&pod, &["cni0"]);
    assert!(!std::path::Path::new("/var/lib/cni/flannel/pod").exists());
}

#[test]
fn c04_cilium_chained_behind_the_aws_plugin() {
    let stand_ins = [aws(), chained("egress-cni"), chained("cilium-cni")];
    let cluster = Cluster::new("05-cilium.conflist", file!("c04"), &stand_ins);
    cluster.validate();
    let pod = cluster.node.container("pod").with_port(8080, 80);
    cluster.node.add(&cluster.network, &pod);
    cluster.is_reached(&pod, "10.244.9.77");
    // `disableCheck`: nobody is asked.
    check(&cluster, &pod);
    assert!(cluster.calls("CHECK").is_empty());
    let calls = cluster.calls("ADD");
    let names: Vec<_> = calls.iter().map(|call| call.plugin.as_str()).collect();
    assert_eq!(names, ["aws-cni", "egress-cni", "cilium-cni"]);
    assert_eq!(calls[0].request()["mtu"], "9001", "a string stays one");
    assert_eq!(calls[1].request()["enabled"], "true");
    assert_eq!(calls[2].request()["prevResult"]["ips"][0]["address"], "10.244.9.77/32");
    cluster.del(&pod, &[]);
    let names: Vec<_> = cluster.calls("DEL").into_iter().map(|call| call.plugin).collect();
    assert_eq!(names[..3], ["cilium-cni", "egress-cni", "aws-cni"]);
}

#[test]
fn c07_calico_with_addresses_of_host_local_and_our_portmap() {
    let cluster = Cluster::new("10-canal.conflist", file!("c07"), &[calico()]);
    let said = cluster.validate();
    assert!(!said.stdout.contains("usePodCidr"), "{said:#?}");
    let pods = [("one", 8080), ("two", 8081)].map(|(name, port)| {
        let pod = cluster.node.container(name).with_port(port, 80);
        cluster.node.add(&cluster.network, &pod);
        pod
    });
    assert_eq!(cluster.calls("ADD")[0].request()["ipam"]["subnet"], "usePodCidr");
    for (pod, address) in pods.iter().zip(["10.244.9.2", "10.244.9.3"]) {
        assert_eq!(pod.address().to_string(), address);
        // B022: no index of an interface, and only the host's end in the result.
        cluster.is_reached(pod, address);
    }
    let [one, two] = pods;
    cluster.node.del(&cluster.network, &two);
    cluster.is_reached(&one, "10.244.9.2");
    cluster.del(&one, &[]);
}

#[test]
fn c08_kube_ovn_with_an_ipam_type_of_its_own_name() {
    let stand_ins = [kube_ovn(), chained("cilium-cni")];
    let cluster = Cluster::new("01-kube-ovn.conflist", file!("c08"), &stand_ins);
    cluster.validate();
    let pod = cluster.node.container("pod").with_port(8080, 80);
    cluster.node.add(&cluster.network, &pod);
    cluster.is_reached(&pod, "10.244.9.77");
    assert_eq!(cluster.calls("ADD").len(), 2, "the IPAM of its own name is its own affair");
    cluster.del(&pod, &[]);
}

#[test]
fn c14_multus_as_a_single_configuration_with_a_list_inside() {
    let cluster = Cluster::new("00-multus.conf", file!("c14"), &[flannel(), multus()]);
    cluster.validate();
    let pod = cluster.node.container("pod").with_port(8080, 80);
    cluster.node.add(&cluster.network, &pod);
    let address = pod.address().to_string();
    cluster.is_reached(&pod, &address);
    let asked = cluster.calls("ADD")[0].request();
    assert_eq!(asked["runtimeConfig"]["portMappings"][0]["hostPort"], 8080);
    assert_eq!(asked["delegates"][0]["plugins"][0]["type"], "flannel");
    // The runtime and the delegates know it under different names of the network.
    cluster.del(&pod, &["cni0"]);
}

#[test]
fn c10_nerdctls_list_runs_with_its_labels() {
    let cluster = Cluster::new("nerdctl-bridge.conflist", file!("c10"), &[]);
    cluster.validate();
    let pods = ["one", "two"].map(|name| {
        let pod = cluster.node.container(name);
        cluster.node.add(&cluster.network, &pod);
        pod
    });
    check(&cluster, &pods[0]);
    let mapped = cluster.node.container("three").with_port(8080, 80);
    cluster.node.add(&cluster.network, &mapped);
    let address = mapped.address().to_string();
    cluster.is_reached(&mapped, &address);
    let record = std::fs::read("/var/lib/cni/results/bridge-one-eth0").unwrap();
    assert!(!record.is_empty());
    for pod in &pods {
        cluster.node.del(&cluster.network, pod);
    }
    cluster.del(&mapped, &["nerdctl0"]);
}
