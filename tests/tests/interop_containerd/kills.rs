//! containerd killed with signal 9 in the middle of what it does with a pod.

use std::path::Path;

use podwire_testkit::fake;
use podwire_tests::containerd::{Containerd, Failure, Pod, Release};
use podwire_tests::lab::reservations;
use podwire_tests::wait_until;
use serde_json::json;

use crate::lab::{HAND_ON, PLUGINS, RANGES, list, remove, run, under_each_release};

under_each_release!(
    killed_while_a_pod_is_run,
    killed_while_a_pod_is_stopped,
    killed_while_a_plugin_runs_on,
    killed_among_many_pods_at_once,
);

/// There while the plugin waits.
const HELD: &str = "/run/world/held";
/// What it waits for.
const RELEASE: &str = "/run/world/release";

/// A line of a plugin's script: when it is asked for this verb, it says so and waits.
fn wait_on(verb: &str) -> String {
    format!(r#"if [ "$CNI_COMMAND" = {verb} ]; then : > {HELD}; read -r line < {RELEASE}; fi"#)
}

/// A node whose list stops at a verb: before the first plugin, between two, or after
/// the last.
fn held(release: Release, verb: &str, place: usize) -> Containerd {
    let mut config = list(release, &RANGES);
    config["plugins"].as_array_mut().unwrap().insert(place, json!({"type": "hold"}));
    let hold = fake::record("hold").script(&wait_on(verb)).script(HAND_ON);
    let containerd = Containerd::start_with(release, &config, &[hold]);
    containerd.node.world.exec(&["mkfifo", RELEASE]);
    containerd
}

/// Makes a call, kills containerd when the plugin has begun to wait, and starts it again
/// when the plugin has ended, too.
#[track_caller]
fn kill_during<T: Send + std::fmt::Debug>(
    containerd: &mut Containerd,
    call: impl FnOnce() -> Result<T, Failure> + Send,
) {
    std::thread::scope(|scope| {
        let caller = scope.spawn(call);
        wait_until("the plugin that waits", || Path::new(HELD).exists());
        containerd.kill();
        let answer = caller.join().unwrap();
        assert!(matches!(answer, Err(Failure::Lost(_))), "{answer:?}");
    });
    std::fs::write(RELEASE, "go on\n").unwrap();
    containerd.restart();
}

fn killed_while_a_pod_is_run(release: Release) {
    for place in 0..=3 {
        let mut containerd = held(release, "ADD", place);
        let before = containerd.node.world.snapshot();
        let cri = containerd.cri.clone();
        let pod = Pod::new("cut short").with_port(8080, 80);
        kill_during(&mut containerd, || cri.run_pod(&pod));
        if place > 0 {
            let half_made = containerd.node.left(&before);
            assert!(!half_made.changes.is_empty(), "the bridge plugin had been called");
        }
        remove_all(&containerd);
        containerd.node.assert_nothing_left(&before);
    }
}

fn killed_while_a_pod_is_stopped(release: Release) {
    for place in 0..=3 {
        let mut containerd = held(release, "DEL", place);
        let before = containerd.node.world.snapshot();
        let id = run(&containerd, &Pod::new("cut short").with_port(8080, 80));
        let cri = containerd.cri.clone();
        kill_during(&mut containerd, || cri.stop_pod(&id));
        // It waits no more, whoever asks.
        fake::record("hold").write(Path::new(PLUGINS));
        remove_all(&containerd);
        containerd.node.assert_nothing_left(&before);
    }
}

/// The plugin of the dead runtime is in the middle of an ADD when the DEL of the next one
/// comes, and ends only then.
fn killed_while_a_plugin_runs_on(release: Release) {
    let mut config = list(release, &RANGES);
    config["plugins"][0]["ipam"]["type"] = json!("slow");
    config["plugins"].as_array_mut().unwrap().push(json!({"type": "witness"}));
    let slow = fake::record("slow")
        .script(&wait_on("ADD"))
        .script(&format!("printf '%s' \"$request\" | {PLUGINS}/host-local; exit"));
    let witness = fake::record("witness").script(HAND_ON);
    let mut containerd = Containerd::start_with(release, &config, &[slow, witness]);
    containerd.node.world.exec(&["mkfifo", RELEASE]);
    let before = containerd.node.world.snapshot();

    let cri = containerd.cri.clone();
    std::thread::scope(|scope| {
        let caller = scope.spawn(|| cri.run_pod(&Pod::new("cut short").with_port(8080, 80)));
        wait_until("the plugin that waits", || Path::new(HELD).exists());
        containerd.kill();
        assert!(matches!(caller.join().unwrap(), Err(Failure::Lost(_))));
        containerd.restart();
        let id = containerd.cri.pods().remove(0);
        let cri = &cri;
        let stop = scope.spawn(move || cri.stop_pod(&id));
        // The first of the list in the order of DEL; ours wait for their attachment.
        wait_until("DEL", || {
            let calls = fake::calls(Path::new(PLUGINS));
            calls.iter().any(|call| call.plugin == "witness" && call.command == "DEL")
        });
        std::fs::write(RELEASE, "go on\n").unwrap();
        stop.join().unwrap().unwrap();
    });
    remove_all(&containerd);
    containerd.node.assert_nothing_left(&before);
}

/// Pods begin all at once, each somewhere else when the end comes: what the next runtime
/// knows of is removed, and nothing else is there.
fn killed_among_many_pods_at_once(release: Release) {
    let mut containerd = Containerd::start(release, &list(release, &RANGES));
    let before = containerd.node.world.snapshot();
    let cri = containerd.cri.clone();
    std::thread::scope(|scope| {
        let callers: Vec<_> = (0..20)
            .map(|number| {
                let pod = Pod::new(&format!("pod-{number}")).with_port(9000 + number, 80);
                let cri = &cri;
                scope.spawn(move || cri.run_pod(&pod))
            })
            .collect();
        wait_until("some addresses", || reservations("pods").len() >= 8);
        containerd.kill();
        let answers = callers.into_iter().map(|caller| caller.join().unwrap());
        let lost = answers.filter(|answer| matches!(answer, Err(Failure::Lost(_)))).count();
        assert!(lost > 0, "all had their answer");
    });
    containerd.restart();
    let pods = containerd.cri.pods();
    assert!(!pods.is_empty());
    for id in pods {
        remove(&containerd, &id);
    }
    containerd.node.assert_nothing_left(&before);
    // And the node takes pods as before, at the same ports.
    let id = run(&containerd, &Pod::new("next").with_port(9000, 80));
    remove(&containerd, &id);
    containerd.node.assert_nothing_left(&before);
}

/// Removes what the runtime still knows of, which is the one pod.
#[track_caller]
fn remove_all(containerd: &Containerd) {
    let pods = containerd.cri.pods();
    assert_eq!(pods.len(), 1, "{pods:?}");
    for id in pods {
        remove(containerd, &id);
    }
    assert_eq!(std::fs::read_dir("/run/netns").unwrap().count(), 0, "namespaces");
}
