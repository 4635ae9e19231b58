use super::*;
use crate::ipam::host_local::pool::RESERVATION;

struct Fixture(tempfile::TempDir);

impl Fixture {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn network() -> NetworkName {
        NetworkName::parse("n1").unwrap()
    }

    fn open(&self, purpose: Purpose) -> Ledger {
        let pool = Pool::open_or_create(self.0.path(), &Self::network()).unwrap();
        Ledger::open(pool, self.0.path(), purpose).unwrap()
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.path().join("n1").join(name)
    }

    fn index(&self, boot: &str) -> PathBuf {
        index_directory(self.0.path(), &Self::network()).join(boot)
    }

    fn this_boot(&self) -> PathBuf {
        self.index(boot::boot_id().unwrap().as_str())
    }
}

fn owner(container: &str) -> Owner {
    Owner::attachment(container, "eth0")
}

fn ip(last: u8) -> IpAddr {
    IpAddr::from([10, 9, 0, last])
}

fn reserve(ledger: &mut Ledger, container: &str, last: u8) {
    let path = ledger.pool().path().to_owned();
    let owner = owner(container);
    let content = owner.content();
    let prepared = Unnamed::write(&path, content.as_bytes(), RESERVATION).unwrap();
    assert_eq!(ledger.reserve(&prepared, ip(last), &owner).unwrap(), Linked::Created);
}

fn held(ledger: &Ledger, container: &str) -> Vec<IpAddr> {
    ledger.held_by(&owner(container)).unwrap().into_iter().map(|one| one.address).collect()
}

fn is_indexed(ledger: &Ledger) -> bool {
    matches!(ledger.known, Known::Indexed(_))
}

#[test]
fn our_own_changes_keep_the_index_sealed() {
    let pool = Fixture::new();
    for number in 2..30 {
        let mut ledger = pool.open(Purpose::Allocate);
        reserve(&mut ledger, &format!("c{number}"), number);
    }
    let ledger = pool.open(Purpose::Look);
    assert!(is_indexed(&ledger), "nothing has to be read");
    assert_eq!(held(&ledger, "c7"), [ip(7)]);
    assert!(held(&ledger, "c99").is_empty());
    let reservation = ledger.held_by(&owner("c7")).unwrap().remove(0);
    drop(ledger);
    pool.open(Purpose::Free).free(&reservation).unwrap();
    let ledger = pool.open(Purpose::Look);
    assert!(is_indexed(&ledger));
    assert!(held(&ledger, "c7").is_empty());
}

/// A Go plugin that runs in between is noticed, whatever it does and however
/// soon.
#[test]
fn changes_of_others_break_the_seal() {
    let pool = Fixture::new();
    for number in 2..200 {
        reserve(&mut pool.open(Purpose::Allocate), "ours", number);
        std::fs::rename(pool.file(&ip(number).to_string()), pool.file("moved")).unwrap();
        std::fs::remove_file(pool.file("moved")).unwrap();
        std::fs::write(pool.file(&ip(number).to_string()), "theirs\r\neth0").unwrap();
        let ledger = pool.open(Purpose::Look);
        assert!(!is_indexed(&ledger));
        assert_eq!(held(&ledger, "theirs").len(), usize::from(number) - 1);
        assert!(held(&ledger, "ours").is_empty());
    }
}

#[test]
fn a_reservation_without_its_entry_is_found() {
    let pool = Fixture::new();
    reserve(&mut pool.open(Purpose::Allocate), "c1", 2);
    // As a plugin leaves it that is killed behind the link.
    std::fs::write(pool.file("10.9.0.3"), "c2\r\neth0").unwrap();
    assert_eq!(held(&pool.open(Purpose::Free), "c2"), [ip(3)]);
    assert!(is_indexed(&pool.open(Purpose::Look)), "DEL wrote the index anew");
}

#[test]
fn an_entry_without_its_reservation_is_harmless() {
    let pool = Fixture::new();
    let mut ledger = pool.open(Purpose::Allocate);
    reserve(&mut ledger, "c1", 2);
    std::fs::write(pool.file("10.9.0.2"), "other\r\neth0").unwrap();
    assert!(held(&ledger, "c1").is_empty(), "verified in the file");
    std::fs::remove_file(pool.file("10.9.0.2")).unwrap();
    assert!(held(&ledger, "c1").is_empty());
}

#[test]
fn only_add_begins_an_index_and_it_is_private() {
    use std::os::unix::fs::PermissionsExt;
    let pool = Fixture::new();
    drop(pool.open(Purpose::Free));
    drop(pool.open(Purpose::Look));
    assert!(!pool.this_boot().exists());
    drop(pool.open(Purpose::Allocate));
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&pool.this_boot()), 0o600);
    assert_eq!(mode(pool.this_boot().parent().unwrap()), 0o700);
    assert_eq!(mode(&pool.file("")), 0o755);
}

#[test]
fn without_a_place_for_the_index_all_still_works() {
    let pool = Fixture::new();
    std::fs::write(pool.0.path().join(".podwire"), "in the way").unwrap();
    reserve(&mut pool.open(Purpose::Allocate), "c1", 2);
    let mut ledger = pool.open(Purpose::Allocate);
    assert!(!is_indexed(&ledger));
    assert_eq!(held(&ledger, "c1"), [ip(2)]);
    reserve(&mut ledger, "c2", 3);
    assert_eq!(held(&ledger, "c2"), [ip(3)]);
    assert_eq!(ledger.all().unwrap().len(), 2);
}

#[test]
fn an_index_that_cannot_be_written_is_given_up_not_trusted() {
    let pool = Fixture::new();
    let mut ledger = pool.open(Purpose::Allocate);
    reserve(&mut ledger, "c1", 2);
    // Cut behind the header: every look at it fails from now on.
    std::fs::File::options().write(true).open(pool.this_boot()).unwrap().set_len(64).unwrap();
    assert_eq!(held(&ledger, "c1"), [ip(2)]);
    reserve(&mut ledger, "c2", 3);
    assert!(matches!(ledger.known, Known::Nothing));
    let first = ledger.held_by(&owner("c1")).unwrap().remove(0);
    ledger.free(&first).unwrap();
    assert!(held(&ledger, "c1").is_empty());
    assert_eq!(ledger.all().unwrap().len(), 1);
    drop(ledger);
    assert_eq!(held(&pool.open(Purpose::Allocate), "c2"), [ip(3)]);
}

const OTHER_BOOT: &str = "00000000-1111-2222-3333-444444444444";

fn date_back(path: &Path) {
    let file = std::fs::File::options().write(true).open(path).unwrap();
    file.set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
}

/// B001: what each of the two proofs is good for alone, and both together.
#[test]
fn b001_a_reboot_frees_what_is_proven_dead() {
    let pool = Fixture::new();
    let mut ledger = pool.open(Purpose::Allocate);
    for (container, last) in [("both", 2), ("index-only", 3), ("clock-only", 4), ("taken-over", 5)]
    {
        reserve(&mut ledger, container, last);
    }
    drop(ledger);
    std::fs::rename(pool.this_boot(), pool.index(OTHER_BOOT)).unwrap();
    for last in [2, 4, 5] {
        std::fs::remove_file(pool.file(&ip(last).to_string())).unwrap();
    }
    std::fs::write(pool.file("10.9.0.2"), "both\r\neth0").unwrap();
    date_back(&pool.file("10.9.0.2"));
    // Another name than the index holds: somebody else's by now.
    std::fs::write(pool.file("10.9.0.5"), "new\r\neth0").unwrap();
    date_back(&pool.file("10.9.0.5"));
    std::fs::write(pool.file("10.9.0.9"), "clock-only\r\neth0").unwrap();
    date_back(&pool.file("10.9.0.9"));

    drop(pool.open(Purpose::Free));
    drop(pool.open(Purpose::Look));
    assert!(pool.file("10.9.0.2").exists(), "DEL and CHECK free nothing of others");

    let ledger = pool.open(Purpose::Allocate);
    let mut left: Vec<_> = ledger.pool().addresses().unwrap();
    left.sort();
    assert_eq!(left, [ip(3), ip(5), ip(9)]);
    assert_eq!(held(&ledger, "index-only"), [ip(3)]);
    assert!(!pool.index(OTHER_BOOT).exists(), "the old index has served");
    assert!(pool.this_boot().exists());
}

#[test]
fn within_a_boot_nothing_is_freed_by_age() {
    let pool = Fixture::new();
    reserve(&mut pool.open(Purpose::Allocate), "c1", 2);
    date_back(&pool.file("10.9.0.2"));
    std::fs::write(pool.file("10.9.0.3"), "c2\r\neth0").unwrap();
    assert_eq!(held(&pool.open(Purpose::Allocate), "c1"), [ip(2)]);
}
