//! Devices by their place on a bus, in a tree of our own below `/sys`.

use std::os::unix::fs::symlink;
use std::path::Path;

use podwire_tests::lab::{Lab, links, reservations, with};
use serde_json::{Value, json};

use crate::{addressed, assert_home, lab, plain};

/// Puts an empty tree over the buses and devices of this world.
fn own_tree(lab: &Lab) {
    for directory in ["/sys/bus", "/sys/devices"] {
        lab.world.exec(&["mount", "-t", "tmpfs", "tree", directory]);
    }
}

fn directory(path: &str) {
    std::fs::create_dir_all(path).unwrap();
}

/// The driver of a PCI device.
fn driver(address: &str, name: &str) {
    let driver = format!("/sys/bus/pci/drivers/{name}");
    directory(&driver);
    directory(&format!("/sys/bus/pci/devices/{address}"));
    symlink(driver, Path::new("/sys/bus/pci/devices").join(address).join("driver")).unwrap();
}

fn without_device(keys: &Value) -> Value {
    with(&with(&plain(), &json!({"device": null})), keys)
}

#[test]
fn devices_are_found_by_path_bus_and_capability() {
    const ADDRESS: &str = "0000:3d:00.1";
    for (tree, keys) in [
        ("/sys/devices/pci0000:00/x/net/hdev", json!({"kernelpath": "/sys/devices/pci0000:00/x"})),
        ("/sys/bus/pci/devices/0000:3d:00.1/net/hdev", json!({"pciBusID": ADDRESS})),
        ("/sys/bus/pci/devices/0000:3d:00.1/virtio3/net/hdev", json!({"pciBusID": ADDRESS})),
        (
            "/sys/bus/pci/devices/0000:3d:00.1/net/hdev",
            json!({"runtimeConfig": {"deviceID": ADDRESS}, "pciBusID": "0000:00:00.0"}),
        ),
        (
            "/sys/bus/auxiliary/devices/mlx5_core.sf.4/net/hdev",
            json!({"runtimeConfig": {"deviceID": "mlx5_core.sf.4"}, "pciBusID": "0000:00:00.0"}),
        ),
    ] {
        let (lab, _peer) = lab();
        own_tree(&lab);
        directory(tree);
        driver(ADDRESS, "some");
        let netns = lab.container("c1");
        let config = without_device(&keys);
        let result = lab.add(&netns, &config);
        assert_eq!(links(&netns), ["net1"], "{tree}");
        lab.check(&netns, &config, &result).success();
        // DEL finds it though the hardware is gone.
        lab.world.exec(&["umount", "/sys/bus"]);
        lab.world.exec(&["umount", "/sys/devices"]);
        lab.del(&netns, &config, &result);
        assert_home(&lab);
    }
}

/// What a program in user space drives has no interface: nothing is moved.
#[test]
fn devices_for_user_space_are_only_named() {
    for name in ["vfio-pci", "uio_pci_generic", "igb_uio"] {
        let (lab, _peer) = lab();
        own_tree(&lab);
        driver("0000:3d:00.1", name);
        let netns = lab.container("c1");
        let keys = json!({"runtimeConfig": {"deviceID": "0000:3d:00.1"}});
        let sandbox = netns.path().to_str().unwrap();
        let result = lab.add(&netns, &without_device(&keys));
        assert_eq!(
            result,
            json!({"cniVersion": "1.1.0", "interfaces": [{"name": "net1", "sandbox": sandbox}]})
        );
        lab.check(&netns, &without_device(&keys), &result).success();
        lab.del(&netns, &without_device(&keys), &result);
        // containernetworking/plugins#578: addresses are only reserved.
        let config = with(&with(&addressed(), &json!({"device": null})), &keys);
        let result = lab.add(&netns, &config);
        assert_eq!(result["ips"][0]["address"], "10.1.0.2/24");
        assert!(links(&netns).is_empty());
        lab.check(&netns, &config, &result).success();
        lab.world.exec(&["umount", "/sys/bus"]);
        lab.del(&netns, &config, &result);
        assert!(reservations("n").is_empty());
        assert_home(&lab);
    }
}

#[test]
fn what_is_not_on_a_bus_is_refused() {
    let (lab, _peer) = lab();
    own_tree(&lab);
    let netns = lab.container("c1");
    directory("/sys/bus/pci/devices/0000:3d:00.2");
    driver("0000:3d:00.3", "vfio-pci");
    for (keys, words) in [
        (json!({}), "specify either \"device\""),
        (json!({"runtimeConfig": {"deviceID": "absent"}}), "not found or unsupported"),
        (json!({"runtimeConfig": {"deviceID": "../0000:3d:00.2"}}), "not found or unsupported"),
        (json!({"pciBusID": "0000:3d:00.9"}), "error with host device"),
        (json!({"pciBusID": "0000:3d:00.2"}), "error with host device"),
        (json!({"kernelpath": "/sys/devices/absent"}), "there is no device at"),
        (json!({"pciBusID": "0000:3d:00.3", "useInterfaceNetwork": true}), "useInterfaceNetwork"),
    ] {
        let error = lab.call("ADD", &netns, &without_device(&keys)).run().failure().json();
        assert!(error["msg"].as_str().unwrap().contains(words), "{keys}: {error}");
    }
    assert_home(&lab);
}
