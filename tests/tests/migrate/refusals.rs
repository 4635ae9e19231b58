//! What can't be told is not touched.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use podwire_testkit::GoPlugins;
use podwire_tests::Plugins;
use serde_json::json;

use crate::lab::{BIN, Lab, names};

fn script(name: &str, text: &str) {
    let path = Path::new(BIN).join(name);
    std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn a_foreign_program_under_a_plugins_name_stops_everything_until_it_is_excepted() {
    let lab = Lab::new(Plugins::Sid);
    script("ptp", "echo of another vendor >&2");
    script("cilium-cni", "touch /run/world/ran");
    let before = names();
    let check = lab.migrate("--check --output json");
    assert_eq!(check.code, 3, "{check:#?}");
    let told = check.json();
    assert_eq!(told["leftAlone"], json!(["cilium-cni"]));
    assert_eq!(told["refused"], true);
    let text = lab.migrate("--check").stdout;
    assert!(text.contains("REFUSED") && text.contains("of another vendor"), "{text}");
    let refused = lab.migrate("");
    assert_eq!(refused.code, 1, "{refused:#?}");
    assert!(refused.stderr.contains("ptp: it says: of another vendor"), "{refused:#?}");
    assert_eq!(names(), before);

    lab.migrate("--except ptp").success();
    let text = std::fs::read_to_string(Path::new(BIN).join("ptp")).unwrap();
    assert!(text.contains("of another vendor"));
    lab.migrate("--rollback").success();
    assert_eq!(names(), before);
    assert!(!Path::new("/run/world/ran").exists(), "a foreign program was run");
}

#[test]
fn links_to_another_folder_come_back_as_links() {
    let lab = Lab::new(Plugins::Sid);
    let bridge = Path::new(BIN).join("bridge");
    let target = GoPlugins::sid().directory().join("bridge");
    std::fs::remove_file(&bridge).unwrap();
    symlink(&target, &bridge).unwrap();
    let before = names();
    lab.migrate("").success();
    assert!(!bridge.is_symlink());
    lab.migrate("--rollback").success();
    assert_eq!(std::fs::read_link(&bridge).unwrap(), target);
    assert_eq!(names(), before);
}

/// As k3s lays its plugins: links to one program beside them.
#[test]
fn links_to_a_program_beside_them_come_back_as_links() {
    let lab = Lab::new(Plugins::Debian);
    let bridge = Path::new(BIN).join("bridge");
    std::fs::rename(&bridge, Path::new(BIN).join("real-bridge")).unwrap();
    symlink("real-bridge", &bridge).unwrap();
    lab.migrate("").success();
    assert!(!bridge.is_symlink());
    lab.migrate("--rollback").success();
    assert_eq!(std::fs::read_link(&bridge).unwrap(), Path::new("real-bridge"));
    assert!(!Path::new(BIN).join(".podwire").exists());
}

/// A node half of whose plugins were Podwire's, by hand.
#[test]
fn what_was_podwires_before_stays_on_the_way_back() {
    let lab = Lab::new(Plugins::Debian);
    let host_local = Path::new(BIN).join("host-local");
    std::fs::remove_file(&host_local).unwrap();
    std::fs::copy(lab.node.world.plugin_directory().join("host-local"), &host_local).unwrap();
    let listed = || names().into_iter().map(|(name, _)| name).collect::<Vec<_>>();
    let before = listed();
    for _ in 0..2 {
        lab.migrate("").success();
        // Once more: what this one renews was not there before.
        lab.migrate("").success();
        let back = lab.migrate("--rollback").success();
        assert!(back.stdout.contains("as before: host-local"), "{back:#?}");
        assert_eq!(listed(), before);
    }
}

#[test]
fn a_pipe_in_the_place_of_the_program_is_not_waited_for() {
    let lab = Lab::new(Plugins::Debian);
    let pipe = Path::new(BIN).join("podwire-cni");
    lab.node.world.exec(&["mkfifo", pipe.to_str().unwrap()]);
    let before = names();
    for arguments in ["--check", ""] {
        let refused = lab.migrate(arguments);
        assert_eq!(refused.code, 1, "{refused:#?}");
        assert!(refused.stderr.contains("podwire-cni is no file"), "{refused:#?}");
    }
    assert_eq!(names(), before);
}

#[test]
fn what_another_installer_puts_there_meanwhile_stays_its_own() {
    let lab = Lab::new(Plugins::Debian);
    lab.migrate("").success();
    // A package upgrade writes a newer Go plugin over ours.
    let portmap = Path::new(BIN).join("portmap");
    std::fs::remove_file(&portmap).unwrap();
    std::fs::copy(GoPlugins::sid().directory().join("portmap"), &portmap).unwrap();
    let newer = std::fs::read(&portmap).unwrap();
    lab.migrate("--rollback").success();
    assert!(std::fs::read(&portmap).unwrap() == newer, "the newer one was lost");

    // And moved again, the newer is what is kept.
    lab.migrate("").success();
    assert!(std::fs::read(&portmap).unwrap() != newer);
    lab.migrate("--rollback").success();
    assert!(std::fs::read(&portmap).unwrap() == newer);
}

#[test]
fn originals_that_are_not_what_they_were_are_not_put_back() {
    let lab = Lab::new(Plugins::Debian);
    lab.migrate("").success();
    let kept = Path::new(BIN).join(".podwire/originals/bridge");
    std::fs::remove_file(&kept).unwrap();
    std::fs::write(&kept, "torn").unwrap();
    let before = names();
    let refused = lab.migrate("--rollback");
    assert_eq!(refused.code, 1, "{refused:#?}");
    assert!(refused.stderr.contains("bridge"), "{refused:#?}");
    assert_eq!(names(), before);
}

#[test]
fn a_node_that_was_never_moved_has_no_way_back() {
    let lab = Lab::new(Plugins::Debian);
    lab.migrate("--rollback").success();
    lab.assert_as_before();
    for entry in std::fs::read_dir(BIN).unwrap() {
        std::fs::remove_file(entry.unwrap().path()).unwrap();
    }
    lab.migrate("").success();
    let refused = lab.migrate("--rollback");
    assert_eq!(refused.code, 1, "{refused:#?}");
    assert!(refused.stderr.contains("no originals"), "{refused:#?}");
    assert_eq!(lab.migrate("--plugin-dir /nowhere").code, 1);
    assert_eq!(lab.migrate("--plugin-dir /a --plugin-dir /b").code, 2);
    assert_eq!(lab.migrate("--from /bin/true").code, 1);
    assert_eq!(lab.migrate("--check --rollback").code, 2);
}
