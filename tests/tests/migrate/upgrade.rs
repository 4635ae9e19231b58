//! Another release of ours in the place of ours, both ways, while containers run.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use podwire_tests::Plugins;

use crate::lab::{BIN, Lab, Traffic, is_reached, program};
use crate::traffic::pods;

/// Another build of our plugins: its bytes are others.
fn another(lab: &Lab) -> PathBuf {
    let own = program().with_file_name("podwire-cni");
    let mut bytes = std::fs::read(&own).unwrap();
    bytes.extend(b"another");
    let path = lab.node.world.write("another/podwire-cni", bytes);
    lab.node.world.exec(&["chmod", "755", path.to_str().unwrap()]);
    path
}

/// Whether every plugin's name leads to the program with this content.
fn all_are(program: &Path) -> bool {
    let of = |path: &Path| std::fs::metadata(path).unwrap();
    let installed = of(&Path::new(BIN).join("podwire-cni"));
    let plugins = ["bandwidth", "bridge", "firewall", "host-local", "portmap"];
    installed.len() == of(program).len()
        && plugins.iter().all(|name| of(&Path::new(BIN).join(name)).ino() == installed.ino())
}

#[test]
fn a_release_of_ours_takes_the_place_of_another_there_and_back() {
    let lab = Lab::new(Plugins::Sid);
    let (node, another) = (&lab.node, another(&lab));
    let own = program().with_file_name("podwire-cni");
    lab.migrate("").success();
    assert!(all_are(&own));
    let network = node.network(&pods());
    let outside = node.outside();
    let first = node.container("first").with_port(8080, 80);
    node.add(&network, &first);
    let traffic = Traffic::start(&outside, &first);

    let upgrade = format!("--from {}", another.display());
    let check = lab.migrate(&format!("--check --output json {upgrade}")).success().json();
    let steps = check["files"].as_array().unwrap().iter().map(|file| &file["step"]);
    assert!(steps.clone().all(|step| step == "renew"), "{check:#}");
    assert!(all_are(&own), "a check changes nothing");
    lab.migrate(&upgrade).success();
    assert!(all_are(&another));
    node.check(&network, &first).unwrap();
    let second = node.container("second").with_port(8081, 80);
    node.add(&network, &second);
    is_reached(&outside, &second);

    // Back: what the newer made, the older checks and deletes.
    lab.migrate("").success();
    assert!(all_are(&own));
    for container in [&first, &second] {
        node.check(&network, container).unwrap_or_else(|error| panic!("{}: {error}", container.id));
    }
    is_reached(&outside, &second);
    traffic.assert_unbroken();
    node.del(&network, &second);
    node.check(&network, &first).unwrap();
    node.del(&network, &first);
    let rules = lab.rules();
    assert!(!rules.contains("10.1.0."), "{rules}");
    // What was kept aside is still Go's.
    lab.migrate("--rollback").success();
    lab.assert_as_before();
}
