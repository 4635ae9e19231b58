//! Pods that come, serve, and go.

use std::collections::BTreeSet;
use std::net::IpAddr;

use podwire_tests::containerd::{Containerd, Failure, IMAGE, PAGE, Pod, Release};
use podwire_tests::wait_until;

use crate::lab::{RANGES, addresses, list, page, remove, run, under_each_release};

under_each_release!(
    a_pod_serves_its_page_and_is_removed_whole,
    fifty_pods_at_once,
    a_pod_outlives_its_runtime,
    ctr_runs_a_container_with_a_network,
);

/// The server in the image.
const SERVER: [&str; 6] = ["/bin/httpd", "-f", "-p", "80", "-h", "/www"];

fn a_pod_serves_its_page_and_is_removed_whole(release: Release) {
    let containerd = Containerd::start(release, &list(release, &RANGES));
    let world = &containerd.node.world;
    let outside = containerd.node.outside();
    let before = world.snapshot();

    let pod = Pod::new("web")
        .with_port(8080, 80)
        .with_annotation("kubernetes.io/ingress-bandwidth", "10M")
        .with_annotation("kubernetes.io/egress-bandwidth", "20M");
    let id = run(&containerd, &pod);
    let sandbox = containerd.cri.pod(&id).unwrap();
    assert!(sandbox.is_ready);
    assert_eq!(sandbox.addresses, ["10.1.0.2", "fd01::2"].map(|it| it.parse::<IpAddr>().unwrap()));
    assert_eq!(sandbox.addresses, addresses(&containerd, &sandbox.namespace));

    containerd.cri.start(&pod, &id, &SERVER).unwrap();
    let served =
        |from, address, port| page(from, address, port).is_ok_and(|answer| answer.ends_with(PAGE));
    for address in &sandbox.addresses {
        wait_until("the pod's page", || served(world.host(), *address, 80));
    }
    assert!(served(&outside.netns, outside.node, 8080), "the host port from outside");
    assert!(served(world.host(), outside.node, 8080), "the host port from the node itself");
    assert_eq!(rates(&containerd), [1_250_000, 2_500_000], "bytes per second");

    containerd.cri.stop_pod(&id).unwrap();
    assert!(!containerd.cri.pod(&id).unwrap().is_ready);
    assert!(!served(&outside.netns, outside.node, 8080));
    remove(&containerd, &id); // Stops it a second time, as the kubelet may.
    assert!(containerd.cri.pods().is_empty());
    containerd.node.assert_nothing_left(&before);
}

/// The rates of all token buckets on the node.
fn rates(containerd: &Containerd) -> Vec<u64> {
    let queues = containerd.node.world.exec(&["tc", "-j", "qdisc", "show"]).json();
    let buckets = queues.as_array().unwrap().iter().filter(|queue| queue["kind"] == "tbf");
    let mut rates: Vec<u64> =
        buckets.map(|bucket| bucket["options"]["rate"].as_u64().unwrap()).collect();
    rates.sort_unstable();
    rates
}

fn fifty_pods_at_once(release: Release) {
    let containerd = Containerd::start(release, &list(release, &RANGES));
    let world = &containerd.node.world;
    let before = world.snapshot();

    let cri = &containerd.cri;
    let ids = at_once(50, |number| {
        let port = 9000 + u16::try_from(number).unwrap();
        cri.run_pod(&Pod::new(&format!("pod-{number}")).with_port(port, 80))
    });
    let mut seen = BTreeSet::new();
    for id in &ids {
        let sandbox = containerd.cri.pod(id).unwrap();
        assert_eq!(sandbox.addresses, addresses(&containerd, &sandbox.namespace));
        seen.extend(sandbox.addresses);
    }
    assert_eq!(seen.len(), 100, "an IPv4 and an IPv6 address for each: {seen:?}");
    at_once(50, |number| cri.stop_pod(&ids[number]).and_then(|()| cri.remove_pod(&ids[number])));
    assert!(containerd.cri.pods().is_empty());
    containerd.node.assert_nothing_left(&before);
}

/// Makes so many calls in threads of their own; all must succeed.
#[track_caller]
fn at_once<T: Send>(count: usize, work: impl Fn(usize) -> Result<T, Failure> + Sync) -> Vec<T> {
    let work = &work;
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..count).map(|number| scope.spawn(move || work(number))).collect();
        let done = threads.into_iter().map(|thread| thread.join().unwrap());
        done.map(|outcome| outcome.unwrap_or_else(|failure| panic!("{failure}"))).collect()
    })
}

fn a_pod_outlives_its_runtime(release: Release) {
    let mut containerd = Containerd::start(release, &list(release, &RANGES));
    let before = containerd.node.world.snapshot();
    let pod = Pod::new("web").with_port(8080, 80);
    let id = run(&containerd, &pod);
    containerd.cri.start(&pod, &id, &SERVER).unwrap();
    let address = containerd.cri.pod(&id).unwrap().addresses[0];

    containerd.kill();
    let host = containerd.node.world.host().clone();
    wait_until("the pod's page", || page(&host, address, 80).is_ok());
    containerd.restart();
    let sandbox = containerd.cri.pod(&id).unwrap();
    assert!(sandbox.is_ready);
    assert_eq!(sandbox.addresses[0], address);
    assert!(page(&host, address, 80).unwrap().ends_with(PAGE));
    // Another pod gets another address.
    let other = run(&containerd, &Pod::new("other"));
    assert_ne!(containerd.cri.pod(&other).unwrap().addresses[0], address);

    remove(&containerd, &id);
    remove(&containerd, &other);
    containerd.node.assert_nothing_left(&before);
}

fn ctr_runs_a_container_with_a_network(release: Release) {
    let containerd = Containerd::start(release, &list(release, &RANGES));
    let before = containerd.node.world.snapshot();
    let group = format!("{}/ctr", containerd.cgroup());
    let said = containerd.ctr(&[
        "-n", "k8s.io", "run", "--rm", "--cni", "--cgroup", &group, IMAGE, "c1", "/bin/ip", "-o",
        "addr", "show", "dev", "eth0",
    ]);
    let said = said.success().stdout;
    assert!(said.contains("inet 10.1.0.2/24"), "{said}");
    assert!(said.contains("inet6 fd01::2/64"), "{said}");
    containerd.node.assert_nothing_left(&before);
}
