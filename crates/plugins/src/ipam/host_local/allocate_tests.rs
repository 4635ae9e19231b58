use super::*;
use crate::ipam::host_local::config::Config;
use crate::ipam::host_local::ledger::Purpose;
use crate::ipam::host_local::pool::Pool;
use podwire_spec::id::NetworkName;
use podwire_spec::request::PluginRequest;
use podwire_spec::version::SpecVersion;

struct Fixture {
    directory: tempfile::TempDir,
    sets: Vec<RangeSet>,
}

impl Fixture {
    fn new(ranges: &str) -> Self {
        let text = format!(r#"{{"name":"n1","ipam":{{"ranges":{ranges}}}}}"#);
        let request = PluginRequest::parse(&text).unwrap();
        let sets = Config::parse(&request, SpecVersion::LATEST).unwrap().sets;
        Self { directory: tempfile::tempdir().unwrap(), sets }
    }

    fn ledger(&self) -> Ledger {
        let network = NetworkName::parse("n1").unwrap();
        let pool = Pool::open_or_create(self.directory.path(), &network).unwrap();
        Ledger::open(pool, self.directory.path(), Purpose::Allocate).unwrap()
    }

    fn add(&self, container: &str, requested: &[&str]) -> Result<Vec<String>, Error> {
        let requested: Vec<_> = requested
            .iter()
            .map(|text| Requested { address: text.parse().unwrap(), source: "CNI_ARGS IP".into() })
            .collect();
        let owner = Owner::attachment(container, "eth0");
        let made = allocate(&mut self.ledger(), &self.sets, &owner, &requested)?;
        Ok(made.into_iter().map(|one| one.address.to_string()).collect())
    }

    fn write(&self, name: &str, content: &str) {
        drop(self.ledger());
        std::fs::write(self.directory.path().join("n1").join(name), content).unwrap();
    }

    fn free(&self, address: &str) {
        std::fs::remove_file(self.directory.path().join("n1").join(address)).unwrap();
    }

    fn reserved(&self) -> Vec<String> {
        let mut all: Vec<_> =
            self.ledger().pool().addresses().unwrap().iter().map(ToString::to_string).collect();
        all.sort();
        all
    }
}

/// B092
#[test]
fn b092_addresses_go_round() {
    let pool = Fixture::new(r#"[[{"subnet":"10.9.0.0/29"}]]"#);
    for (round, expected) in ["2", "3", "4", "5", "6", "2"].iter().enumerate() {
        let container = format!("c{round}");
        let made = pool.add(&container, &[]).unwrap();
        assert_eq!(made, [format!("10.9.0.{expected}/29")]);
        pool.free(made[0].trim_end_matches("/29"));
    }
    for last in ["3", "4", "6"] {
        pool.write(&format!("10.9.0.{last}"), "other\r\neth0");
    }
    pool.add("c7", &["10.9.0.2"]).unwrap();
    assert_eq!(pool.add("c8", &[]).unwrap(), ["10.9.0.5/29"], "the only one that is free");
}

/// B058
#[test]
fn b058_exhaustion_says_how_many_are_stale_and_what_to_do() {
    let pool = Fixture::new(r#"[[{"subnet":"10.9.0.0/29"}]]"#);
    for last in 2..=6 {
        pool.write(&format!("10.9.0.{last}"), &format!("c{last}\r\neth0"));
    }
    let text = pool.add("new", &[]).unwrap_err().to_string();
    assert!(text.contains("no IP addresses available in range set: 10.9.0.1-10.9.0.6"), "{text}");
    assert!(text.contains("5 reserved, none of them provably stale"), "{text}");
    let long_ago = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000);
    for last in [3, 5] {
        let path = pool.directory.path().join(format!("n1/10.9.0.{last}"));
        std::fs::File::options().write(true).open(path).unwrap().set_modified(long_ago).unwrap();
    }
    let text = pool.add("new", &[]).unwrap_err().to_string();
    assert!(text.contains("5 reserved, 2 of them before this boot"), "{text}");
    assert!(text.contains("podwire gc n1 --keep-live"), "{text}");
    assert_eq!(pool.reserved().len(), 5, "nothing is freed by a guess");
}

/// B002
#[test]
fn b002_empty_files_are_taken_back_only_when_nothing_else_is_free() {
    let pool = Fixture::new(r#"[[{"subnet":"10.9.0.0/29"}]]"#);
    pool.write("10.9.0.2", "");
    pool.write("10.9.0.4", " \n");
    for (container, last) in [("c1", 3), ("c2", 5), ("c3", 6), ("c4", 2), ("c5", 4)] {
        assert_eq!(pool.add(container, &[]).unwrap(), [format!("10.9.0.{last}/29")]);
    }
    assert!(pool.add("c6", &[]).is_err());
}

/// B061
#[test]
fn b061_a_failing_second_set_leaves_nothing() {
    let pool = Fixture::new(r#"[[{"subnet":"10.9.10.0/29"}],[{"subnet":"10.9.11.0/30"}]]"#);
    pool.write("10.9.11.2", "other\r\neth0");
    for _ in 0..20 {
        let error = pool.add("c1", &[]).unwrap_err();
        assert!(error.msg.contains("10.9.11.1-10.9.11.2"), "{error}");
        assert_eq!(pool.reserved(), ["10.9.11.2"]);
    }
    pool.free("10.9.11.2");
    assert_eq!(pool.add("c1", &[]).unwrap().len(), 2);
}

/// B061: the Go plugin frees the first ADD's addresses when the second fails.
#[test]
fn b061_a_failing_add_leaves_an_earlier_one_alone() {
    let one = r#"[[{"subnet":"10.9.10.0/29"}]]"#;
    let mut pool = Fixture::new(one);
    pool.add("c1", &[]).unwrap();
    let wider = r#"[[{"subnet":"10.9.12.0/29"}],[{"subnet":"10.9.11.0/30"}]]"#;
    pool.sets = Fixture::new(wider).sets;
    pool.write("10.9.11.2", "other\r\neth0");
    assert!(pool.add("c1", &[]).is_err());
    assert_eq!(pool.reserved(), ["10.9.10.2", "10.9.11.2"]);
}

/// B038, B059
#[test]
fn b059_an_attachment_gets_no_second_address() {
    let pool = Fixture::new(r#"[[{"subnet":"10.9.5.0/24"}],[{"subnet":"fd00::/64"}]]"#);
    assert_eq!(pool.add("c1", &["10.9.5.9"]).unwrap(), ["10.9.5.9/24", "fd00::2/64"]);
    for requested in [&[][..], &["10.9.5.9"], &["10.9.5.10"], &["10.9.5.1"], &["192.0.2.1"]] {
        let text = pool.add("c1", requested).unwrap_err().to_string();
        assert!(text.contains("network n1: 10.9.5.9 has been allocated to c1/eth0"), "{text}");
        assert!(text.contains("n1/10.9.5.9)"), "names the file: {text}");
        assert!(text.contains("podwire gc n1 --keep-live"), "{text}");
    }
    assert_eq!(pool.reserved(), ["10.9.5.9", "fd00::2"]);
    pool.write("10.9.5.77", "old");
    let text = pool.add("old", &[]).unwrap_err().msg;
    assert!(text.contains("10.9.5.77 has been allocated to old"), "{text}");
}

/// B062
#[test]
fn b062_four_distinct_refusals() {
    let pool = Fixture::new(
        r#"[[{"subnet":"10.9.0.0/24","rangeStart":"10.9.0.2","rangeEnd":"10.9.0.99","exclude":["10.9.0.50"]}]]"#,
    );
    pool.add("dyn", &[]).unwrap();
    for (requested, code, part) in [
        ("10.9.0.2", 999, "held by dyn/eth0 (file "),
        ("10.8.0.2", 7, "outside every range (10.9.0.2-10.9.0.99)"),
        ("10.9.0.100", 7, "outside every range: 10.9.0.0/24 is limited to 10.9.0.2-10.9.0.99"),
        ("10.9.0.1", 7, "requested ip 10.9.0.1 is subnet 10.9.0.0/24's gateway"),
        ("10.9.0.0", 7, "it is the network address of 10.9.0.0/24"),
        ("10.9.0.255", 7, "it is the broadcast address of 10.9.0.0/24"),
        ("10.9.0.50", 7, "ipam.ranges[0][0].exclude names it"),
        ("fd00::1", 7, "outside every range"),
    ] {
        let error = pool.add("st", &[requested]).unwrap_err();
        assert_eq!(error.code.number(), code, "{error}");
        assert!(error.msg.contains(part), "{error}");
        assert!(error.msg.starts_with("CNI_ARGS IP: "), "{error}");
    }
    let error = pool.add("st", &["10.9.0.7", "10.9.0.8"]).unwrap_err();
    assert!(error.msg.contains("10.9.0.8 is of range set"), "{error}");
    assert_eq!(pool.reserved(), ["10.9.0.2"]);
    let path = pool.directory.path().join("n1/10.9.0.2");
    let file = std::fs::File::options().write(true).open(path).unwrap();
    file.set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
    let text = pool.add("st", &["10.9.0.2"]).unwrap_err().to_string();
    assert!(text.contains("reserved before this boot, so its container is gone"), "{text}");
}

#[test]
fn a_long_run_of_taken_addresses_is_stepped_over() {
    let pool = Fixture::new(r#"[[{"subnet":"10.9.0.0/16"}]]"#);
    for number in 2..1000 {
        let name = format!("10.9.{}.{}", number / 256, number % 256);
        std::fs::create_dir_all(pool.directory.path().join("n1")).unwrap();
        std::fs::write(pool.directory.path().join("n1").join(name), "x\r\neth0").unwrap();
    }
    assert_eq!(pool.add("c1", &[]).unwrap(), ["10.9.3.232/16"]);
    assert_eq!(pool.add("c2", &[]).unwrap(), ["10.9.3.233/16"]);
}
