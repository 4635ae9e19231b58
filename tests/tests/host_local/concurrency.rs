//! Many at once, and many reservations.

use std::collections::BTreeSet;

use podwire_testkit::kill::Killed;

use super::*;

#[test]
fn fifty_at_once_get_fifty_addresses() {
    let pool = Pool::new();
    let config =
        pool.config(&json!({"ranges": [[{"subnet": "10.9.0.0/24"}], [{"subnet": "fd09::/64"}]]}));
    let calls = |verb: &str| -> Vec<Plugin> {
        (0..50).map(|number| pool.call(verb, &format!("c{number}"), &config)).collect()
    };
    let given: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> =
            calls("ADD").into_iter().map(|call| scope.spawn(move || call.run())).collect();
        threads
            .into_iter()
            .map(|thread| addresses(&thread.join().unwrap().success().json()))
            .collect()
    });
    let distinct: BTreeSet<_> = given.iter().flatten().collect();
    assert_eq!(distinct.len(), 100);
    assert_eq!(pool.reservations().len(), 100);
    std::thread::scope(|scope| {
        let threads: Vec<_> =
            calls("DEL").into_iter().map(|call| scope.spawn(move || call.run())).collect();
        for thread in threads {
            thread.join().unwrap().success();
        }
    });
    assert!(pool.reservations().is_empty());
}

/// The number of system calls of ADD and DEL does not grow with the pool.
#[test]
fn calls_do_not_depend_on_the_number_of_reservations() {
    let count = |reserved: u32| {
        let pool = Pool::new();
        let config = pool.config(&one_range("10.64.0.0/12"));
        for number in 0..reserved {
            let [_, b, c, d] = (0x0a40_0002 + number).to_be_bytes();
            pool.write(&format!("10.{b}.{c}.{d}"), &format!("old{number}\r\neth0"));
        }
        pool.add("first", &config);
        let calls = |verb| match pool.call(verb, "c1", &config).kill_at(u64::MAX) {
            Killed::Finished { calls, output } => {
                output.success();
                calls
            }
            Killed::At { call, .. } => panic!("killed at {call}"),
        };
        (calls("ADD"), calls("DEL"), calls("DEL"))
    };
    let (add, del, again) = count(3);
    let (add_full, del_full, again_full) = count(20_000);
    // The allocator's own calls vary a little with addresses in memory.
    assert!(add_full <= add + 4, "ADD: {add} and {add_full}");
    assert!(del_full <= del + 4, "DEL: {del} and {del_full}");
    assert!(again_full <= again + 4, "DEL of nothing: {again} and {again_full}");
    assert!(add < 150, "ADD makes {add} system calls");
}
