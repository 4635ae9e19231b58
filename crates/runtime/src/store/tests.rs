//! The store, without any plugin.

use std::os::unix::fs::PermissionsExt;

use podwire_spec::id::{ContainerId, IfName, NetworkName};

use super::*;

fn key(network: &str, id: &str, ifname: &str) -> AttachmentKey {
    AttachmentKey {
        network: NetworkName::parse(network).unwrap(),
        container_id: ContainerId::parse(id).unwrap(),
        ifname: IfName::parse(ifname).unwrap(),
    }
}

fn record(key: AttachmentKey, state: State) -> Record {
    Record {
        key,
        state,
        config: Some(b"{}".to_vec()),
        netns: "/run/netns/x".into(),
        args: Vec::new(),
        capability_args: podwire_spec::request::CapabilityArguments::default(),
        result: if state == State::Attached {
            r#"{"cniVersion":"1.1.0"}"#.into()
        } else {
            String::new()
        },
    }
}

fn store() -> (tempfile::TempDir, Store) {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::new(directory.path().join("cni"));
    (directory, store)
}

fn names(directory: &Path) -> Vec<String> {
    let paths = files_of(directory).unwrap();
    paths.iter().map(|path| path.file_name().unwrap().to_str().unwrap().to_owned()).collect()
}

#[test]
fn b008_an_intent_becomes_the_record_and_one_file_is_there_at_each_moment() {
    let (directory, store) = store();
    let cache = directory.path().join("cni");
    let key = key("net", "c1", "eth0");
    assert!(store.find(&key).unwrap().best().is_none());
    store.write_intent(&record(key.clone(), State::Adding)).unwrap();
    let found = store.find(&key).unwrap();
    assert_eq!(found.best().unwrap().record.state, State::Adding);
    assert!(!cache.join("results").exists(), "nothing lies where libcni looks");

    let path = store.commit(&record(key.clone(), State::Attached)).unwrap();
    assert_eq!(path, cache.join("results/net-c1-eth0"));
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    for below in ["results", "podwire", "podwire/intents"] {
        assert_eq!(fs::metadata(cache.join(below)).unwrap().permissions().mode() & 0o777, 0o700);
    }
    assert!(names(&cache.join("podwire/intents")).is_empty());
    let found = store.find(&key).unwrap();
    assert!(found.attached.is_some() && found.unfinished.is_none());
    store.remove(&found).unwrap();
    assert!(names(&cache.join("results")).is_empty());
    store.remove(&found).unwrap();
}

#[test]
fn b008_a_commit_cut_short_counts_as_attached_and_is_removed_whole() {
    let (directory, store) = store();
    let intents = directory.path().join("cni/podwire/intents");
    let key = key("net", "c1", "eth0");
    store.write_intent(&record(key.clone(), State::Attached)).unwrap();
    assert!(store.find(&key).unwrap().attached.is_some());
    let path = store.commit(&record(key.clone(), State::Attached)).unwrap();
    fs::hard_link(path, intents.join("net:c1:eth0")).unwrap();
    assert_eq!(store.list().unwrap().attachments.len(), 1);
    store.remove(&store.find(&key).unwrap()).unwrap();
    assert!(store.list().unwrap().attachments.is_empty());
}

#[test]
fn b046_two_attachments_with_one_libcni_name_do_not_meet() {
    let (directory, store) = store();
    let (first, second) = (key("a-b", "c", "eth0"), key("a", "b-c", "eth0"));
    let one = store.commit(&record(first.clone(), State::Attached)).unwrap();
    let other = store.commit(&record(second.clone(), State::Attached)).unwrap();
    assert_eq!(one, directory.path().join("cni/results/a-b-c-eth0"));
    assert_eq!(other, directory.path().join("cni/podwire/results/a:b-c:eth0"));
    assert_eq!(store.list().unwrap().attachments.len(), 2);
    store.remove(&store.find(&first).unwrap()).unwrap();
    let left = store.find(&second).unwrap().attached.unwrap();
    assert_eq!((left.record.key, left.path), (second, other));
    assert!(store.find(&first).unwrap().best().is_none());
}

#[test]
fn a_second_commit_of_the_same_attachment_replaces_the_first() {
    let (_directory, store) = store();
    let key = key("net", "c1", "eth0");
    store.commit(&record(key.clone(), State::Attached)).unwrap();
    let mut again = record(key.clone(), State::Attached);
    again.netns = "/run/netns/other".into();
    store.commit(&again).unwrap();
    assert_eq!(store.find(&key).unwrap().attached.unwrap().record.netns, "/run/netns/other");
}

#[test]
fn a_bare_result_of_an_old_runtime_is_read_where_its_name_is_known() {
    let (directory, store) = store();
    let results = directory.path().join("cni/results");
    fs::create_dir_all(&results).unwrap();
    fs::write(results.join("net-c1-eth0"), r#"{"cniVersion":"0.2.0","dns":{}}"#).unwrap();
    let found = store.find(&key("net", "c1", "eth0")).unwrap().attached.unwrap();
    assert_eq!((found.record.config, found.record.result.contains("0.2.0")), (None, true));
    let listing = store.list().unwrap();
    assert!(listing.attachments.is_empty());
    assert!(listing.unreadable[0].reason.contains("bare result"));
}

#[test]
fn torn_and_foreign_files_are_reported_and_can_be_set_aside() {
    let (directory, store) = store();
    let results = directory.path().join("cni/results");
    fs::create_dir_all(results.join("subdirectory")).unwrap();
    fs::write(results.join("net-c1-eth0"), "").unwrap();
    fs::write(results.join("net-c2-eth0"), "{\"kind\":\"cniCacheV1\",\"contai").unwrap();
    let stray = record(key("net", "c3", "eth0"), State::Attached).to_json();
    fs::write(results.join("copy"), stray).unwrap();
    fs::write(results.join(".podwire-0011223344556677.tmp"), "").unwrap();
    store.commit(&record(key("net", "c4", "eth0"), State::Attached)).unwrap();

    let listing = store.list().unwrap();
    assert_eq!(listing.attachments.len(), 1);
    let reasons: Vec<_> = listing.unreadable.iter().map(|file| file.reason.as_str()).collect();
    assert_eq!(reasons.len(), 3, "{reasons:?}");
    assert!(reasons[0].contains("net/c3/eth0"), "{reasons:?}");

    let found = store.find(&key("net", "c1", "eth0")).unwrap();
    assert!(found.best().is_none());
    let moved = store.set_aside(&found.unreadable[0]).unwrap();
    assert!(moved.starts_with(directory.path().join("cni/podwire/quarantine")));
    assert_eq!(store.quarantined().unwrap(), [moved]);
    assert!(store.find(&key("net", "c1", "eth0")).unwrap().unreadable.is_empty());
}

#[test]
fn b056_a_missing_cache_is_empty_and_one_that_is_a_file_an_error() {
    let (directory, store) = store();
    assert!(store.list().unwrap().attachments.is_empty());
    fs::create_dir_all(directory.path().join("cni")).unwrap();
    fs::write(directory.path().join("cni/results"), "").unwrap();
    let error = store.list().unwrap_err().to_string();
    assert!(error.contains("results"), "{error}");
}

#[test]
fn names_too_long_for_a_file_are_refused() {
    let fits = key("n", &"c".repeat(248), "eth0");
    check_length(&fits).unwrap();
    let (_directory, store) = store();
    store.write_intent(&record(fits.clone(), State::Adding)).unwrap();
    store.commit(&record(fits, State::Attached)).unwrap();
    let error = check_length(&key("n", &"c".repeat(249), "eth0")).unwrap_err();
    assert!(error.msg.contains("256 bytes"), "{error}");
}

#[test]
fn what_killed_writers_left_is_swept() {
    let (directory, store) = store();
    store.write_intent(&record(key("net", "c1", "eth0"), State::Adding)).unwrap();
    let intents = directory.path().join("cni/podwire/intents");
    fs::write(intents.join(".podwire-0011223344556677.tmp"), "half").unwrap();
    assert_eq!(store.list().unwrap().attachments.len(), 1);
    assert_eq!(store.sweep().unwrap(), 1);
}

/// The namespace of the test itself, and one that has a mark but is another.
fn attached_here(store: &Store, id: &str) -> PathBuf {
    let mut record = record(key("net", id, "eth0"), State::Attached);
    record.netns = "/proc/self/ns/net".to_owned();
    store.write_intent(&Record { state: State::Adding, ..record.clone() }).unwrap();
    store.commit(&record).unwrap()
}

fn only(store: &Store) -> Stored {
    let mut listing = store.list().unwrap();
    assert_eq!(listing.attachments.len(), 1);
    listing.attachments.remove(0)
}

/// A boot id or cookie that isn't the present one proves that the namespace is gone,
/// whatever lies at its path.
#[test]
fn b005_another_boot_or_namespace_at_the_path_is_dead() {
    use crate::live::{Liveness, liveness};
    let (directory, store) = store();
    let file = directory.path().join("cni/podwire/sandboxes/net:c1:eth0");
    let place = attached_here(&store, "c1");
    let stored = only(&store);
    assert!(stored.sandbox.is_some());
    assert_eq!(liveness(&stored), Liveness::Alive);
    let line = fs::read_to_string(&file).unwrap();
    let (about, identity) = line.trim_end().split_once('\n').unwrap();
    let (boot, cookie) = identity.split_once(':').unwrap();
    let another_boot = "00000000-1111-2222-3333-444444444444";
    for (identity, wanted) in [
        (format!("{another_boot}:{cookie}"), Liveness::Dead),
        (format!("{boot}:{cookie}9"), Liveness::Dead),
        (format!("{boot}:"), Liveness::Alive), // Torn: it proves nothing.
    ] {
        fs::write(&file, format!("{about}\n{identity}\n")).unwrap();
        assert_eq!(liveness(&only(&store)), wanted, "{identity}");
    }
    // What libcni has written since is another attachment, of which nothing is known.
    fs::write(&file, format!("{about}\n{another_boot}:{cookie}\n")).unwrap();
    let content = fs::read(&place).unwrap();
    fs::write(&place, content).unwrap();
    assert_eq!(liveness(&only(&store)), Liveness::Alive);

    store.remove(&store.find(&key("net", "c1", "eth0")).unwrap()).unwrap();
    assert!(!file.exists());
}

/// libcni before 1.2 recorded no path; only a namespace that was there and is not proves
/// anything then.
#[test]
fn a_record_without_a_path_has_the_one_of_its_result() {
    use crate::live::{Liveness, liveness};
    let (directory, store) = store();
    let gone = directory.path().join("gone");
    let socket = directory.path().join("socket");
    fs::write(&socket, "").unwrap();
    let mut record = record(key("net", "c1", "eth0"), State::Attached);
    record.netns.clear();
    for (sandbox, wanted) in [
        ("/proc/self/ns/net", Liveness::Alive),
        (gone.to_str().unwrap(), Liveness::Dead),
        (socket.to_str().unwrap(), Liveness::Unknown),
        ("the-id-of-a-machine", Liveness::Unknown),
        ("", Liveness::Unknown),
    ] {
        let interfaces = format!(
            r#"[{{"name":"veth0"}},{{"name":"lo","sandbox":"/x/y"}},{{"name":"eth0","sandbox":"{sandbox}"}}]"#
        );
        record.result = format!(r#"{{"cniVersion":"1.0.0","interfaces":{interfaces}}}"#);
        store.commit(&record).unwrap();
        let stored = only(&store);
        assert_eq!(stored.record.netns, "");
        assert_eq!(liveness(&stored), wanted, "{sandbox}");
        let expected = if sandbox.starts_with('/') { sandbox } else { "" };
        assert_eq!(stored.record.namespace_path(), expected);
    }
}

#[test]
fn what_libcni_has_deleted_is_swept() {
    let (directory, store) = store();
    let sandboxes = directory.path().join("cni/podwire/sandboxes");
    attached_here(&store, "c1");
    let gone = attached_here(&store, "c2");
    fs::remove_file(gone).unwrap();
    store.write_intent(&record(key("net", "c3", "eth0"), State::Adding)).unwrap();
    fs::write(sandboxes.join("net:c3:eth0"), "").unwrap();
    assert_eq!(store.sweep().unwrap(), 1);
    assert_eq!(names(&sandboxes), ["net:c1:eth0", "net:c3:eth0"]);
}
