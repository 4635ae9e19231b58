//! What the Go plugin changed is set back by ours, and the reverse.

use podwire_testkit::GoPlugins;
use serde_json::{Value, json};

use crate::lab::{Lab, everything, originals};

/// What 1.1.1 knows: no queue length, version 1.0.0.
fn known_to_all(lab: &Lab) -> Value {
    let mut keys = everything();
    keys.as_object_mut().unwrap().remove("txQLen");
    keys["cniVersion"] = json!("1.0.0");
    keys["prevResult"] = lab.prev_result();
    keys["prevResult"]["cniVersion"] = json!("1.0.0");
    keys
}

#[test]
fn what_either_release_changed_is_checked_and_set_back() {
    for go in [GoPlugins::debian(), GoPlugins::sid()] {
        let lab = Lab::new();
        let mut keys = known_to_all(&lab);
        let added = lab.with(go.plugin("tuning"), "ADD", &keys).run().success().json();
        assert!(Lab::backup().exists());
        keys["prevResult"] = added;
        lab.check_passes(&keys);
        lab.call("DEL", &keys).run().success();
        assert_eq!(lab.attributes(), originals());
        assert!(!Lab::backup().exists());
    }
}

#[test]
fn what_we_changed_is_set_back_by_either_release() {
    for go in [GoPlugins::debian(), GoPlugins::sid()] {
        let lab = Lab::new();
        let mut keys = known_to_all(&lab);
        keys["prevResult"] = lab.add(&keys).json();
        lab.with(go.plugin("tuning"), "DEL", &keys).run().success();
        assert_eq!(lab.attributes(), originals());
        assert!(!Lab::backup().exists());
    }
}
