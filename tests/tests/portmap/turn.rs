//! Many writers of nftables at once: who looks long before it commits has its turn.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use podwire_netlink::nft::{
    Batch, Chain, ChainKind, Family, Hook, NftSocket, Rule, Table, TableId, Verdict, priority,
};
use podwire_resources::Kernel;
use podwire_resources::nft::{retrying, transaction};
use podwire_testkit::World;

/// Where a call that has its turn says so.
const TURNSTILE: &str = "/run/podwire/plugin/nft/turn";

/// Writers that never pause.
const WRITERS: u32 = 8;

/// Makes and deletes a table of its own over and over, each time as a call of its own.
fn write(number: u32, commits: &AtomicU32, stop: &AtomicBool) {
    let name = format!("quick{number}");
    let id = TableId::new(Family::Ipv4, &name);
    let mut exists = false;
    while !stop.load(Ordering::SeqCst) {
        let mut kernel = Kernel::new(None).unwrap();
        let mut batch = Batch::new();
        if exists {
            batch.delete_table(id);
        } else {
            batch.add_table(&Table::new(id));
        }
        kernel.nft().unwrap().commit(&batch).unwrap();
        exists = !exists;
        commits.fetch_add(1, Ordering::SeqCst);
    }
}

/// A look that takes until others have committed; when none does for a second, it ends.
fn slow_look(commits: &AtomicU32) {
    let (before, until) = (commits.load(Ordering::SeqCst), Instant::now() + Duration::from_secs(1));
    while commits.load(Ordering::SeqCst) < before + 2 && Instant::now() < until {
        std::thread::yield_now();
    }
}

/// Under a load of 100, DEL of port mappings was overtaken for 20 s and failed.
#[test]
fn who_is_overtaken_has_its_turn_among_many_quick_writers() {
    let world = World::new();
    let (stop, commits) = (AtomicBool::new(false), AtomicU32::new(0));
    let mut tries = 0;
    let outcome = std::thread::scope(|scope| {
        for number in 0..WRITERS {
            let (commits, stop) = (&commits, &stop);
            scope.spawn(move || write(number, commits, stop));
        }
        let mut kernel = Kernel::new(None).unwrap();
        let outcome = retrying(|| {
            tries += 1;
            let socket: &mut NftSocket = kernel.nft().unwrap();
            transaction(socket, |_, batch| {
                slow_look(&commits);
                batch.add_table(&Table::new(TableId::new(Family::Ipv4, "slow")));
                Ok(())
            })
        });
        stop.store(true, Ordering::SeqCst);
        outcome
    });
    outcome.unwrap();
    // Those that had begun before its turn may each come in once more.
    assert!((4..=4 + WRITERS).contains(&tries), "{tries} tries");
    assert!(!Path::new(TURNSTILE).exists());
    assert!(world.exec(&["nft", "list", "tables"]).stdout.contains("table ip slow"));
}

/// Calls that are killed in their turn, and calls that never end.
#[test]
fn nobody_waits_for_ever_for_another_ones_turn() {
    let _world = World::new();
    std::fs::create_dir_all(Path::new(TURNSTILE).parent().unwrap()).unwrap();
    std::fs::write(TURNSTILE, "").unwrap();
    let started = Instant::now();
    Kernel::new(None).unwrap().nft().unwrap();
    assert!(started.elapsed() < Duration::from_secs(4), "the holder was killed");
    let held = podwire_sys::lock::FileLock::exclusive(TURNSTILE, Duration::ZERO).unwrap();
    let started = Instant::now();
    Kernel::new(None).unwrap().nft().unwrap().generation().unwrap();
    assert!(started.elapsed() >= Duration::from_secs(4), "it was let pass");
    drop(held);
}

/// A chain that a rule leads to can't be deleted (`EBUSY`).
const IN_USE: TableId<'_> = TableId::new(Family::Ipv4, "inuse");

fn make_chain_in_use() {
    let mut batch = Batch::new();
    batch.add_table(&Table::new(IN_USE));
    batch.add_chain(&Chain::regular(IN_USE.chain("used")));
    let user = IN_USE.chain("user");
    batch.add_chain(&Chain::base(user, ChainKind::Filter, Hook::Input, priority::FILTER));
    batch.add_rule(&Rule::new(user).verdict(Verdict::jump("used")));
    NftSocket::open().unwrap().commit(&batch).unwrap();
}

fn delete_used() -> Result<(), podwire_netlink::Error> {
    let mut batch = Batch::new();
    batch.delete_chain(IN_USE.chain("used"));
    Kernel::new(None).unwrap().nft().unwrap().commit(&batch)
}

/// What stays in use is given up after a few tries, long before the patience for what
/// others overtake has run out; and it is no reason to keep the others waiting.
#[test]
fn what_stays_in_use_is_asked_for_a_bounded_number_of_times() {
    let _world = World::new();
    make_chain_in_use();
    let mut tries = 0;
    let outcome = retrying(|| {
        tries += 1;
        assert!(!Path::new(TURNSTILE).exists(), "try {tries} kept the others out");
        delete_used()
    });
    let error = outcome.unwrap_err();
    assert_eq!(tries, 16, "{error}");
    assert!(error.to_string().contains("inuse used"), "{error}");
}

#[test]
fn what_is_released_meanwhile_is_had() {
    let world = World::new();
    make_chain_in_use();
    let mut tries = 0;
    let outcome = retrying(|| {
        tries += 1;
        if tries == 5 {
            let mut batch = Batch::new();
            batch.flush_chain(IN_USE.chain("user"));
            NftSocket::open().unwrap().commit(&batch).unwrap();
        }
        delete_used()
    });
    outcome.unwrap();
    assert_eq!(tries, 5);
    let left = world.exec(&["nft", "list", "table", "ip", "inuse"]).stdout;
    assert!(!left.contains("chain used"), "{left}");
}
