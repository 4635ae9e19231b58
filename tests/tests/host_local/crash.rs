//! Killed at every system call: nothing is lost, nothing blocks.

use podwire_testkit::kill::Killed;

use super::*;

fn check_whole(pool: &Pool, at: &str) {
    for (name, content) in pool.reservations() {
        assert_eq!(content, "c1\r\neth0", "{name}, killed at {at}");
    }
}

/// What is beside the reservations: the index, and nothing half-written.
fn check_index(pool: &Pool, at: &str) {
    let names: Vec<_> = files_named(&pool.directory.join(".podwire/n1"));
    assert!(names.len() <= 1, "{names:?}, killed at {at}");
}

fn files_named(directory: &Path) -> Vec<String> {
    let names = podwire_sys::file::regular_files(directory, 100).unwrap();
    names.into_iter().map(|name| name.into_string().unwrap()).collect()
}

/// B002, B091: from an empty directory on, so that making it is killed too.
#[test]
fn b002_an_add_killed_anywhere_loses_no_address() {
    let pool = Pool::new();
    let config =
        pool.config(&json!({"ranges": [[{"subnet": "10.9.0.0/29"}], [{"subnet": "fd09::/125"}]]}));
    let mut kills = 0;
    for fresh in [true, false] {
        for number in 1.. {
            if fresh && pool.directory.exists() {
                std::fs::remove_dir_all(&pool.directory).unwrap();
            }
            let at = match pool.call("ADD", "c1", &config).kill_at(number) {
                Killed::At { call, .. } => call.to_string(),
                Killed::Finished { output, .. } => {
                    output.success();
                    pool.del("c1", &config);
                    break;
                }
            };
            kills += 1;
            check_whole(&pool, &at);
            pool.del("c1", &config);
            assert!(pool.reservations().is_empty(), "killed at {at}");
            // Nothing blocks, and no address is missing from the pool.
            assert_eq!(pool.add("c1", &config).len(), 2, "killed at {at}");
            check_index(&pool, &at);
            pool.del("c1", &config);
        }
    }
    assert!(kills > 100, "only {kills} places to kill at");
    for container in ["a", "b", "c", "d", "e"] {
        assert_eq!(pool.add(container, &config).len(), 2);
    }
}

#[test]
fn a_del_killed_anywhere_can_be_repeated() {
    let pool = Pool::new();
    let config =
        pool.config(&json!({"ranges": [[{"subnet": "10.9.0.0/29"}], [{"subnet": "fd09::/125"}]]}));
    pool.add("other", &config);
    let other = pool.reservations();
    for number in 1.. {
        pool.add("c1", &config);
        let at = match pool.call("DEL", "c1", &config).kill_at(number) {
            Killed::At { call, .. } => call.to_string(),
            Killed::Finished { output, .. } => {
                output.success();
                break;
            }
        };
        pool.del("c1", &config);
        assert_eq!(pool.reservations(), other, "killed at {at}");
    }
    // By GC in place of DEL.
    for number in (1..).step_by(5) {
        pool.add("c1", &config);
        let killed = pool.call("DEL", "c1", &config).kill_at(number).is_killed();
        let mut collected = config.clone();
        collected["cni.dev/valid-attachments"] =
            json!([{"containerID": "other", "ifname": "eth0"}]);
        pool.call("GC", "", &collected).run().success();
        assert_eq!(pool.reservations(), other, "killed at call {number}");
        if !killed {
            break;
        }
    }
    check_index(&pool, "last");
}
