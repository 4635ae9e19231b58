//! The Go plugin on the same directory, and on one of its own to compare with.

use std::os::unix::fs::PermissionsExt;

use podwire_testkit::GoPlugins;

use super::*;

#[test]
fn go_and_ours_take_turns_on_one_directory() {
    let pool = Pool::new();
    for go in [GoPlugins::debian(), GoPlugins::sid()] {
        let mut config = pool.config(&one_range("10.9.0.0/24"));
        config["cniVersion"] = json!("1.0.0");
        let theirs = |verb: &str, container: &str| {
            attach(go.plugin("host-local"), verb, container, &config).run()
        };
        let mut expected = BTreeMap::new();
        for number in 0..20 {
            let (ours, other) = (format!("ours{number}"), format!("theirs{number}"));
            let address = pool.add(&ours, &config).remove(0);
            expected.insert(address, format!("{ours}\r\neth0"));
            let address = addresses(&theirs("ADD", &other).success().json()).remove(0);
            expected.insert(address, format!("{other}\r\neth0"));
            // Each knows what the other has given.
            let text = pool.call("ADD", &other, &config).run().error(102)["msg"].to_string();
            assert!(text.contains(&format!("has been allocated to {other}/eth0")), "{text}");
            let text = theirs("ADD", &ours).failure().stdout;
            assert!(text.contains("duplicate allocation is not allowed"), "{text}");
        }
        let held: BTreeMap<_, _> = pool
            .reservations()
            .into_iter()
            .map(|(name, content)| (format!("{name}/24"), content))
            .collect();
        assert_eq!(held, expected);
        // Each frees what the other has given.
        for number in 0..20 {
            theirs("DEL", &format!("ours{number}")).success();
            pool.del(&format!("theirs{number}"), &config);
        }
        assert!(pool.reservations().is_empty());
        // And gives it again.
        pool.add("theirs0", &config);
        theirs("ADD", "ours0").success();
        pool.del("ours0", &config);
        theirs("DEL", "theirs0").success();
        assert!(pool.reservations().is_empty());
    }
}

#[test]
fn go_and_ours_at_once_give_no_address_twice() {
    let pool = Pool::new();
    let go = GoPlugins::sid();
    let config = pool.config(&one_range("10.9.0.0/24"));
    let calls = |verb: &str| -> Vec<Plugin> {
        (0..25)
            .flat_map(|number| {
                [
                    pool.call(verb, &format!("ours{number}"), &config),
                    attach(go.plugin("host-local"), verb, &format!("theirs{number}"), &config),
                ]
            })
            .collect()
    };
    for _ in 0..2 {
        let given: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> =
                calls("ADD").into_iter().map(|call| scope.spawn(move || call.run())).collect();
            threads
                .into_iter()
                .flat_map(|thread| addresses(&thread.join().unwrap().success().json()))
                .collect()
        });
        let distinct: std::collections::BTreeSet<_> = given.iter().collect();
        assert_eq!(distinct.len(), 50);
        assert_eq!(pool.reservations().len(), 50);
        std::thread::scope(|scope| {
            let threads: Vec<_> =
                calls("DEL").into_iter().map(|call| scope.spawn(move || call.run())).collect();
            for thread in threads {
                thread.join().unwrap().success();
            }
        });
        assert!(pool.reservations().is_empty());
    }
}

/// The same calls, each on its own directory: the same results and the same files,
/// byte for byte. Only the modes of `lock` differ, and our index beside them.
#[test]
fn results_and_files_are_those_of_the_go_plugin() {
    let pool = Pool::new();
    let go = GoPlugins::sid();
    let their_directory = pool.world.path("their-networks");
    let ipam = json!({
        "subnet": "10.1.0.0/29",
        "ranges": [[{"subnet": "10.2.0.0/30", "gateway": "10.2.0.2"},
                    {"subnet": "10.2.1.0/24", "rangeStart": "10.2.1.7", "rangeEnd": "10.2.1.9"}],
                   [{"subnet": "fd09:0:0:1::/64", "rangeStart": "fd09:0:0:1::ff"}]],
        "routes": [{"dst": "0.0.0.0/0"}, {"dst": "10.99.0.0/16", "gw": "10.1.0.5"}],
        "resolvConf": pool.world.write("resolv.conf", "# x\nnameserver 192.0.2.1\noptions a b\n"),
    });
    let ours = pool.config(&ipam);
    let mut theirs = ours.clone();
    theirs["ipam"]["dataDir"] = json!(their_directory);
    let steps = [
        ("ADD", "c1", ""),
        ("ADD", "c2", ""),
        ("ADD", "c3", "IP=10.1.0.6"),
        ("CHECK", "c2", ""),
        ("DEL", "c1", ""),
        ("DEL", "c1", ""),
        ("ADD", "c4", ""),
        ("ADD", "c5", ""),
        ("DEL", "c2", ""),
        ("ADD", "c1", ""),
        ("ADD", "c6", ""),
        ("DEL", "c6", ""),
        ("ADD", "c7", "IP=fd09:0:0:1::1:1"),
    ];
    for (step, (verb, container, args)) in steps.into_iter().enumerate() {
        let our_call = pool.call(verb, container, &ours).args(args).run();
        let their_call = attach(go.plugin("host-local"), verb, container, &theirs).args(args).run();
        let shown = format!("step {step}: {our_call:#?} {their_call:#?}");
        assert_eq!(our_call.code, their_call.code, "{shown}");
        if our_call.code == 0 {
            let json = |output: &podwire_testkit::Output| match output.stdout.as_str() {
                "" => Value::Null,
                _ => output.json(),
            };
            assert_eq!(json(&our_call), json(&their_call), "{shown}");
        }
        assert_eq!(
            files(&pool.directory.join("n1")),
            files(&their_directory.join("n1")),
            "{shown}"
        );
    }
    let mode = |directory: &Path, name: &str| {
        std::fs::metadata(directory.join("n1").join(name)).unwrap().permissions().mode()
    };
    for name in ["", "last_reserved_ip.0", "last_reserved_ip.2", "10.1.0.6"] {
        assert_eq!(mode(&pool.directory, name), mode(&their_directory, name), "mode of {name}");
    }
}

/// B002: the empty file at which the Go plugin gives up.
#[test]
fn b002_what_the_go_plugin_left_is_put_right() {
    let pool = Pool::new();
    let go = GoPlugins::sid();
    let config = pool.config(&one_range("10.9.0.0/29"));
    pool.write("10.9.0.2", "");
    for container in ["c1", "c2", "c3", "c4"] {
        attach(go.plugin("host-local"), "ADD", container, &config).run().success();
    }
    attach(go.plugin("host-local"), "ADD", "c5", &config).run().failure();
    assert_eq!(pool.add("c5", &config), ["10.9.0.2/29"]);
}
