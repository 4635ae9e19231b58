//! A lock that is held, a disk that is full or can't be written.

use std::io::BufRead;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use podwire_sys::mount;

use super::*;

/// Another process, as the Go plugin, that holds the lock of a pool.
struct Holder(Child);

impl Holder {
    fn start(lock: &Path) -> Self {
        let mut holder = Command::new("flock")
            .arg("--no-fork")
            .arg(lock)
            .args(["sh", "-c", "echo held; exec cat"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut output = std::io::BufReader::new(holder.stdout.take().unwrap());
        output.read_line(&mut line).unwrap();
        Self(holder)
    }

    /// Panics unless the call waits as long as it may, and names file and holder.
    fn assert_keeps_out(&self, call: Plugin, lock: &Path) {
        let started = std::time::Instant::now();
        let error = call.run().error(11);
        let waited = started.elapsed().as_secs();
        assert!((7..=10).contains(&waited), "waited {waited} s");
        let text = error["msg"].as_str().unwrap();
        assert!(text.contains(lock.to_str().unwrap()), "{text}");
        assert!(text.contains(&format!("pid {} (cat)", self.0.id())), "{text}");
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// B091: neither waits for ever nor goes on without the lock, and each does its work when
/// it is run again. They wait beside each other: it takes as long as one.
#[test]
fn b091_a_held_lock_ends_add_and_gc_in_code_11_that_names_file_and_holder() {
    let pool = Pool::new();
    let config = pool.config(&one_range("10.9.0.0/24"));
    pool.add("c1", &config);
    pool.add("c2", &config);
    let lock = pool.file("lock");
    let mut collection = config.clone();
    collection["cni.dev/valid-attachments"] = json!([{"containerID": "c1", "ifname": "eth0"}]);
    let holder = Holder::start(&lock);
    std::thread::scope(|scope| {
        for call in [pool.call("ADD", "c3", &config), pool.call("GC", "", &collection)] {
            scope.spawn(|| holder.assert_keeps_out(call, &lock));
        }
    });
    assert_eq!(pool.reservations().len(), 2);
    pool.call("STATUS", "", &config).run().success();
    drop(holder);
    pool.add("c3", &config);
    pool.call("GC", "", &collection).run().success();
    assert_eq!(pool.reservations().len(), 1);
    let taken = std::fs::metadata(&lock).unwrap();
    assert_eq!(taken.len(), 0, "it is the file that the Go plugin locks, and stays");
}

/// B088
#[test]
fn b088_a_full_disk_leaves_nothing() {
    let pool = Pool::new();
    std::fs::create_dir(&pool.directory).unwrap();
    mount::tmpfs_with(&pool.directory, "size=16k").unwrap();
    let config =
        pool.config(&json!({"ranges": [[{"subnet": "10.9.0.0/24"}], [{"subnet": "fd09::/64"}]]}));
    let mut attached = Vec::new();
    let error = loop {
        let container = format!("c{}", attached.len());
        let output = pool.call("ADD", &container, &config).run();
        if output.code != 0 {
            break output.error(5);
        }
        attached.push(container);
        assert!(attached.len() < 20, "16 KiB hold that many?");
    };
    let text = error.to_string();
    assert!(text.contains("No space left on device"), "{text}");
    assert!(text.contains("free space"), "{text}");
    let held = pool.reservations();
    assert_eq!(held.len(), 2 * attached.len(), "{held:?}");
    assert!(held.values().all(|content| content.ends_with("\r\neth0")), "{held:?}");
    for container in &attached {
        pool.del(container, &config);
    }
    assert!(pool.reservations().is_empty());
}

/// B088
#[test]
fn b088_a_read_only_directory_is_said_to_be_one() {
    let pool = Pool::new();
    let config = pool.config(&one_range("10.9.0.0/24"));
    let mut held = config.clone();
    held["prevResult"] = pool.call("ADD", "c1", &config).run().success().json();
    mount::bind(&pool.directory, &pool.directory).unwrap();
    mount::set_read_only(&pool.directory, true).unwrap();
    for verb in ["ADD", "DEL"] {
        let container = if verb == "ADD" { "c2" } else { "c1" };
        let text = pool.call(verb, container, &config).run().error(5).to_string();
        assert!(text.contains("Read-only file system"), "{verb}: {text}");
    }
    let mut none_valid = config.clone();
    none_valid["cni.dev/valid-attachments"] = json!([]);
    pool.call("GC", "", &none_valid).run().error(5);
    let text = pool.call("STATUS", "", &config).run().error(50)["msg"].to_string();
    assert!(text.contains("ipam.dataDir"), "{text}");
    pool.call("CHECK", "c1", &held).run().success();
    pool.del("never-added", &config);
    mount::set_read_only(&pool.directory, false).unwrap();
    assert_eq!(pool.reservations().len(), 1);
    pool.del("c1", &config);
    assert!(pool.reservations().is_empty());
}

#[test]
fn input_of_every_wrong_kind_is_refused_with_its_code() {
    let pool = Pool::new();
    let good = pool.config(&one_range("10.9.0.0/24"));
    let raw = |config: &str| {
        attach(pool.world.plugin("host-local"), "ADD", "c1", &Value::Null).config(config).run()
    };
    raw("").error(6);
    raw("{").error(6);
    raw("[]").error(6);
    raw(r#"{"cniVersion":"1.1.0"}"#).error(7);
    raw(r#"{"cniVersion":"1.1.0","name":"../../etc","ipam":{"subnet":"10.9.0.0/24"}}"#).error(7);
    raw(r#"{"cniVersion":"1.1.0","name":"n1"}"#).error(7);
    raw(r#"{"cniVersion":"1.1.0","name":"n1","ipam":7}"#).error(6);
    raw(r#"{"cniVersion":"9.9.9","name":"n1"}"#).error(1);
    pool.call("ADD", "../x", &good).run().error(4);
    pool.call("ADD", "c1", &good).ifname("a/b").run().error(4);
    pool.call("NONSENSE", "c1", &good).run().error(4);
    pool.call("ADD", "c1", &good).without_env("CNI_CONTAINERID").run().error(4);
    for ipam in [
        json!({"subnet": "10.9.0.0/24", "routes": [{"dst": "x"}]}),
        json!({"subnet": "10.9.0.0/24", "routes": {}}),
        json!({"subnet": ["10.9.0.0/24"]}),
        json!({"ranges": "10.9.0.0/24"}),
        json!({"ranges": [["10.9.0.0/24"]]}),
    ] {
        pool.call("ADD", "c1", &pool.config(&ipam)).run().error(6);
    }
    assert!(!pool.directory.exists());
}
