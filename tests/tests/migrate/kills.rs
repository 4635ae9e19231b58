//! Killed at whichever system call, the same command does the rest.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::Command;

use podwire_testkit::World;
use podwire_testkit::kill::{self, Killed};

use crate::lab::{BIN, command, names};

/// How many places are tried in each direction.
const KILLS: u64 = 60;
const NAMES: [&str; 4] = ["bridge", "host-local", "portmap", "ptp"];

/// Programs that say what the real ones say, and are small: what is copied and
/// compared would else be most of the system calls.
fn prepare(world: &World) -> String {
    let write = |path: &Path, text: &str| {
        std::fs::write(path, text).unwrap();
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    };
    for name in &NAMES[..3] {
        let text = format!(
            "#!/bin/sh\necho 'CNI {name} plugin v1.9.1' >&2\n\
             echo 'CNI protocol versions supported: 1.0.0' >&2\n"
        );
        write(&Path::new(BIN).join(name), &text);
    }
    let source = world.path("podwire-cni");
    write(
        &source,
        "#!/bin/sh\ncase \"$1\" in\n--version) echo podwire-cni 0.1.0;;\n\
         --list-plugins) printf '%s\\n' bridge host-local portmap ptp;;\n\
         *) name=${0##*/}; printf 'CNI %s plugin v1.9.1\\nPodwire 0.1.0\\n' \"$name\" >&2;;\nesac\n",
    );
    source.display().to_string()
}

/// What a name says of itself; a runtime may execute it at any moment.
fn says(name: &str) -> String {
    let output = Command::new(Path::new(BIN).join(name)).output();
    output.map(|output| String::from_utf8(output.stderr).unwrap()).unwrap_or_default()
}

#[track_caller]
fn all_work(call: &dyn std::fmt::Display) {
    for name in &NAMES[..3] {
        let said = says(name);
        assert!(said.starts_with(&format!("CNI {name} plugin")), "{call}: {name}: {said:?}");
    }
}

/// Kills at places all over the run, doing `before` each time, and `after` with what
/// the kill has left.
fn kill_everywhere(arguments: &[&str], before: &dyn Fn(), after: &dyn Fn(&dyn std::fmt::Display)) {
    before();
    let calls = kill::count(command(arguments), b"");
    // An odd distance, so that the places move through what repeats.
    let step = (calls / KILLS).max(1) | 1;
    let mut killed = 0;
    for place in (1..=calls).step_by(usize::try_from(step).unwrap()) {
        before();
        match kill::run_and_kill(command(arguments), b"", place) {
            Killed::At { call, .. } => {
                all_work(&call);
                after(&call);
                killed += 1;
            }
            Killed::Finished { .. } => {}
        }
    }
    assert!(killed >= KILLS / 2, "only {killed} of {calls} places were tried");
}

#[test]
fn a_killed_migration_is_finished_by_the_next() {
    let world = World::new();
    let source = prepare(&world);
    let before = names();
    let go = |arguments: &[&str]| {
        let output = command(arguments).output().unwrap();
        assert!(output.status.success(), "{output:?}");
    };
    let there = ["--from", source.as_str()];
    kill_everywhere(
        &there,
        &|| {
            go(&["--rollback"]);
            assert_eq!(names(), before);
        },
        &|call| {
            go(&there);
            let inode = |name| std::fs::metadata(Path::new(BIN).join(name)).unwrap().ino();
            for name in NAMES {
                assert_eq!(inode(name), inode("podwire-cni"), "{call}: {name}");
                assert!(says(name).contains("Podwire"), "{call}: {name}");
            }
        },
    );
}

#[test]
fn a_killed_roll_back_is_finished_by_the_next() {
    let world = World::new();
    let source = prepare(&world);
    let before = names();
    let go = |arguments: &[&str]| {
        let output = command(arguments).output().unwrap();
        assert!(output.status.success(), "{output:?}");
    };
    kill_everywhere(&["--rollback"], &|| go(&["--from", &source]), &|call| {
        go(&["--rollback"]);
        assert_eq!(names(), before, "{call}");
        assert!(!Path::new(BIN).join(".podwire").exists(), "{call}");
    });
}
