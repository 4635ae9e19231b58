//! In a directory that others may write to, somebody puts links, FIFOs and
//! devices where our files are to be. What they lead to stays as it is, and
//! nobody waits.

use std::path::{Path, PathBuf};

use podwire_runtime::store::Store;
use podwire_sys::lock::FileLock;
use podwire_testkit::World;
use serde_json::json;

use crate::lab::{Lab, SHARED, STRANGER, host_local};

const OBSTACLES: [&str; 4] = ["symbolic link", "second name", "FIFO", "device"];

fn boot_id() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap().trim().to_owned()
}

fn in_shared(name: &str) -> PathBuf {
    Path::new(SHARED).join(name)
}

/// The files of `host-local`, each with each obstacle in its place.
#[test]
fn host_local_writes_through_nothing() {
    for obstacle in OBSTACLES {
        for place in ["last_reserved_ip.0", "index", "10.1.0.2", "lock"] {
            let lab = Lab::new();
            std::fs::create_dir_all(in_shared("pods")).unwrap();
            std::fs::create_dir_all(in_shared(".podwire/pods")).unwrap();
            let path = match place {
                "index" => in_shared(&format!(".podwire/pods/{}", boot_id())),
                file => in_shared("pods").join(file),
            };
            lab.plant(obstacle, &path);
            let what = format!("{obstacle} at {place}");
            let outcome = lab.call("host-local", "ADD", &host_local()).run();
            match (place, obstacle) {
                // A lock that can't be one is an error that names it.
                ("lock", "symbolic link" | "FIFO" | "device") => {
                    let error = outcome.error(5);
                    assert!(error.to_string().contains("lock"), "{what}: {error}");
                    std::fs::remove_file(&path).unwrap();
                }
                _ => drop(outcome.success()),
            }
            lab.assert_untouched(&what);
            lab.call("host-local", "ADD", &host_local()).container("c2").run().success();
            for id in ["c1", "c2"] {
                lab.call("host-local", "DEL", &host_local()).container(id).run().success();
            }
            lab.assert_untouched(&what);
        }
    }
}

/// A directory of state that is a link: root's is followed, as administrators
/// move directories so; a stranger's is refused.
#[test]
fn a_stranger_s_link_is_no_directory() {
    for place in ["pods", ".podwire"] {
        let lab = Lab::new();
        let elsewhere = lab.world.path("elsewhere");
        std::fs::create_dir(&elsewhere).unwrap();
        let link = in_shared(place);
        std::os::unix::fs::symlink(&elsewhere, &link).unwrap();
        lab.world.exec(&["chown", "-h", STRANGER, link.to_str().unwrap()]);
        let outcome = lab.call("host-local", "ADD", &host_local()).run();
        if place == "pods" {
            let error = outcome.failure().json();
            assert!(error.to_string().contains("symbolic link of user 65534"), "{error}");
        } else {
            // The index is a hint, and is done without.
            outcome.success();
        }
        assert_eq!(std::fs::read_dir(&elsewhere).unwrap().count(), 0, "{place}");
        lab.world.exec(&["chown", "-h", "0", link.to_str().unwrap()]);
        lab.call("host-local", "ADD", &host_local()).container("c2").run().success();
        assert_ne!(std::fs::read_dir(&elsewhere).unwrap().count(), 0, "{place}");
    }
}

/// The backup of `tuning` replaces what lies in its place.
#[test]
fn tuning_writes_through_nothing() {
    for obstacle in OBSTACLES {
        let lab = Lab::new();
        lab.netns.exec(&["ip", "link", "add", "eth0", "type", "veth", "peer", "name", "x"]);
        lab.plant(obstacle, &in_shared("c1_eth0.json"));
        let config = json!({
            "cniVersion": "1.1.0", "name": "n", "type": "tuning", "mtu": 1400,
            "dataDir": SHARED,
            "prevResult": {"cniVersion": "1.1.0", "interfaces": [
                {"name": "eth0", "sandbox": "/run/netns/c1"}]},
        });
        let _ = lab.call("tuning", "ADD", &config).run();
        lab.assert_untouched(obstacle);
        let _ = lab.call("tuning", "DEL", &config).run();
        lab.assert_untouched(obstacle);
    }
}

/// A record that is something else is set aside, not read through for ever.
#[test]
fn records_are_read_without_waiting() {
    for obstacle in ["symbolic link", "FIFO", "device"] {
        let lab = Lab::new();
        std::fs::create_dir_all("/var/lib/cni/results").unwrap();
        std::fs::create_dir_all("/var/lib/cni/podwire/intents").unwrap();
        for place in ["results/pods-c1-eth0", "podwire/intents/pods:c1:eth0"] {
            let path = Path::new("/var/lib/cni").join(place);
            lab.plant(obstacle, &path);
            // It returns, and tells of what it can't read.
            let _ = Store::new("/var/lib/cni").list().map(|listing| listing.unreadable.len());
            lab.assert_untouched(obstacle);
        }
    }
}

/// Configuration, allow-list and resolv.conf are read without waiting, too.
#[test]
fn what_is_only_read_is_not_waited_for() {
    let lab = Lab::new();
    let fifo = in_shared("resolv.conf");
    lab.plant("FIFO", &fifo);
    let mut config = host_local();
    config["ipam"]["resolvConf"] = json!(fifo);
    let error = lab.call("host-local", "ADD", &config).run().failure().json();
    assert!(error.to_string().contains("not a plain file"), "{error}");
    config["ipam"]["resolvConf"] = json!("/dev/zero");
    lab.call("host-local", "ADD", &config).run().failure();

    lab.plant("FIFO", Path::new("/etc/cni/net.d/10-a.conflist"));
    std::os::unix::fs::symlink("/dev/zero", "/etc/cni/net.d/20-b.conflist").unwrap();
    let found = podwire_runtime::load::Directory::read(Path::new("/etc/cni/net.d")).unwrap();
    assert_eq!((found.networks.len(), found.problems.len()), (0, 2));
}

/// A lock is never taken through a link.
#[test]
fn a_lock_is_a_plain_file() {
    let lab = Lab::new();
    for obstacle in ["symbolic link", "FIFO", "device"] {
        let path = in_shared(&format!("lock of {obstacle}"));
        lab.plant(obstacle, &path);
        assert!(FileLock::exclusive(&path, std::time::Duration::ZERO).is_err(), "{obstacle}");
    }
    lab.assert_untouched("lock");
}

/// Anybody can open `/run/netns` and lock it: that delays nobody for ever.
#[test]
fn a_stranger_s_lock_on_the_directory_of_namespaces_is_waited_out() {
    use podwire_sys::netns::NamedNetNs;
    let _world = World::new();
    std::fs::create_dir("/run/held").unwrap();
    let held = std::fs::File::open("/run/held").unwrap();
    held.lock().unwrap();
    let error = NamedNetNs::create("/run/held/x").unwrap_err();
    assert!(error.to_string().contains("/run/held"), "{error}");
    drop(held);
    NamedNetNs::create("/run/held/x").unwrap();
    NamedNetNs::remove("/run/held/x").unwrap();
}
