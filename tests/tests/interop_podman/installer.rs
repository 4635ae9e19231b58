//! The image and the manifest of `deploy/`, on a node of Podman's: what a cluster would
//! do with them, without the cluster. The image holds the programs that ship.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use podwire_testkit::{GoPlugins, Output, shipped};
use podwire_tests::{Plugins, wait_until};

use crate::engine::{Podman, read_page};

/// Where the manifest has the plugins.
const BIN: &str = "/opt/cni/bin";
const IMAGE: &str = concat!("localhost/podwire:", env!("CARGO_PKG_VERSION"));
/// What `RuntimeDefault` and the security contexts of both containers come to.
const CONFINED: [&str; 5] = [
    "--cap-drop=ALL",
    "--security-opt=no-new-privileges",
    "--read-only",
    "--network=host",
    "--memory=64m",
];
fn deploy(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy").join(name)
}

/// The commands of the manifest's containers, in its order.
fn commands() -> Vec<Vec<String>> {
    let manifest = std::fs::read_to_string(deploy("daemonset.yaml")).unwrap();
    let lines = manifest.lines().filter_map(|line| line.trim().strip_prefix("command: "));
    lines.map(|list| serde_json::from_str(list).unwrap()).collect()
}

/// Builds the image from the Containerfile and nothing else.
fn build(podman: &Podman) {
    let context = podman.node.world.path("context");
    std::fs::create_dir(&context).unwrap();
    for program in ["podwire", "podwire-cni"] {
        std::fs::copy(shipped(program), context.join(program)).unwrap();
    }
    let file = deploy("Containerfile");
    podman.run(&[
        "build",
        "--tag",
        IMAGE,
        "--file",
        file.to_str().unwrap(),
        context.to_str().unwrap(),
    ]);
    std::fs::remove_dir_all(&context).unwrap();
}

/// Runs a container of the image as the manifest has it.
fn run(podman: &Podman, options: &[&str], command: &[String]) -> Output {
    let entry = format!("--entrypoint=[{:?}]", command[0]);
    let group = podman.control_group_option();
    let start = [&["run", &entry, &group][..], &CONFINED, options, &[IMAGE]].concat();
    let rest: Vec<_> = command[1..].iter().map(String::as_str).collect();
    podman.try_run(&[&start[..], &rest].concat())
}

fn install(podman: &Podman, command: &[String]) -> Output {
    let volume = format!("--volume={BIN}:{BIN}");
    run(podman, &["--rm", "--user=0:0", &volume], command)
}

fn is_ours(plugin: &str) -> bool {
    let own = |path: PathBuf| {
        use std::os::unix::fs::MetadataExt;
        std::fs::metadata(path).map(|found| found.ino()).ok()
    };
    let file = own(Path::new(BIN).join(plugin));
    file.is_some() && file == own(Path::new(BIN).join("podwire-cni"))
}

#[test]
fn the_daemon_sets_image_exchanges_the_plugins_of_a_live_node() {
    let podman = Podman::new(Plugins::Sid);
    let plugins = ["bridge", "firewall", "host-local", "portmap", "tuning"];
    for plugin in plugins {
        let from = GoPlugins::sid().directory().join(plugin);
        std::fs::copy(from, Path::new(BIN).join(plugin)).unwrap();
    }
    podman.install_from(Path::new(BIN));
    let outside = podman.node.outside();
    podman.network("one", &["--subnet", "10.5.0.0/24"]);
    podman.serve("first", &["--network", "one", "-p", "8079:80"]);
    podman.remove(&["first"]);
    let before = podman.node.world.detailed_snapshot();
    podman.serve("old", &["--network", "one", "-p", "8080:80"]);
    read_page(&outside.netns, "192.0.2.1:8080");
    build(&podman);
    let [first, stay] = <[Vec<String>; 2]>::try_from(commands()).unwrap();

    // A file that isn't what its name says stops everything, and the pod says why.
    std::fs::write(Path::new(BIN).join("vlan"), "#!/bin/sh\nexit 7\n").unwrap();
    podman.node.world.exec(&["chmod", "755", &format!("{BIN}/vlan")]);
    let refused = install(&podman, &first).failure();
    assert!(refused.stderr.contains("vlan"), "{refused:#?}");
    assert!(plugins.iter().all(|plugin| !is_ours(plugin)));
    std::fs::remove_file(Path::new(BIN).join("vlan")).unwrap();

    install(&podman, &first).success();
    assert!(plugins.iter().all(|plugin| is_ours(plugin)));
    read_page(&outside.netns, "192.0.2.1:8080");
    podman.serve("new", &["--network", "one", "-p", "8081:80"]);
    read_page(&outside.netns, "192.0.2.1:8081");
    // A pod that is started again finds nothing to do.
    let again = install(&podman, &first).success();
    assert!(again.stdout.contains("already"), "{again:#?}");

    // What waits beside needs nothing, and ends when told.
    run(&podman, &["--detach", "--name=stay", "--user=65534:65534"], &stay).success();
    let state = ["inspect", "--format={{.State.Running}}", "stay"];
    wait_until("the second container", || podman.run(&state).stdout.trim() == "true");
    let told = Instant::now();
    podman.run(&["stop", "--time=5", "stay"]);
    assert!(told.elapsed() < Duration::from_secs(4), "it had to be killed");
    let code = ["inspect", "--format={{.State.ExitCode}}", "stay"];
    assert_eq!(podman.run(&code).stdout.trim(), "0");

    podman.remove(&["old", "new", "stay"]);
    podman.assert_nothing_left(&before, &["CNI-FORWARD"]);
    // Back, on the node itself, as the manifest says.
    podman.node.world.exec(&[shipped("podwire").to_str().unwrap(), "migrate", "--rollback"]);
    assert!(plugins.iter().all(|plugin| !is_ours(plugin)));
    assert!(!Path::new(BIN).join(".podwire").exists());
}
