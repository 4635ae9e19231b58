//! Tests on real namespaces; they need root.

use super::*;
use crate::mount;

/// A mount namespace of the thread's own with a tmpfs at `directory`.
fn private_mounts(directory: &Path) {
    mount::enter_private_namespace().unwrap();
    mount::tmpfs(directory, 0o755).unwrap();
}

/// Runs `work` on a thread of its own, so that what it unshares goes with it.
fn isolated<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| scope.spawn(work).join().unwrap())
}

#[test]
fn a_named_namespace_is_made_entered_and_removed() {
    isolated(|| {
        let directory = tempfile::tempdir().unwrap();
        private_mounts(directory.path());
        let path = directory.path().join("netns/blue");
        let named = NamedNetNs::create(&path).unwrap();
        assert_eq!(named.path(), path);
        let (home, blue) = (NetNs::current().unwrap(), NetNs::open(&path).unwrap());
        assert!(!home.is_same(&blue).unwrap());
        let inside = blue.run(|| NetNs::current().unwrap()).unwrap();
        assert!(inside.is_same(&blue).unwrap());
        assert!(NetNs::current().unwrap().is_same(&home).unwrap());
        NamedNetNs::remove(&path).unwrap();
        assert!(!path.exists());
        NamedNetNs::remove(&path).unwrap();
    });
}

#[test]
fn creating_over_something_fails_and_leaves_it() {
    isolated(|| {
        let directory = tempfile::tempdir().unwrap();
        private_mounts(directory.path());
        let path = directory.path().join("blue");
        std::fs::write(&path, "mine").unwrap();
        let error = NamedNetNs::create(&path).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "mine");
    });
}

#[test]
fn the_directory_becomes_shared_once() {
    isolated(|| {
        let directory = tempfile::tempdir().unwrap();
        private_mounts(directory.path());
        let parent = directory.path().join("netns");
        for name in ["one", "two"] {
            NamedNetNs::create(parent.join(name)).unwrap();
        }
        let all = mount::all().unwrap();
        let there: Vec<_> = all.iter().filter(|entry| entry.mount_point == parent).collect();
        assert_eq!(there.len(), 1, "{there:?}");
        assert!(there[0].shared);
        for name in ["one", "two"] {
            assert!(NetNs::open(parent.join(name)).is_ok());
        }
    });
}

#[test]
fn a_panic_inside_comes_back_first() {
    isolated(|| {
        let directory = tempfile::tempdir().unwrap();
        private_mounts(directory.path());
        let path = directory.path().join("blue");
        NamedNetNs::create(&path).unwrap();
        let (home, blue) = (NetNs::current().unwrap(), NetNs::open(&path).unwrap());
        let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            blue.run(|| panic!("inside"))
        }));
        assert!(caught.is_err());
        assert!(NetNs::current().unwrap().is_same(&home).unwrap());
    });
}

#[test]
fn cookies_differ_between_namespaces_and_are_stable() {
    isolated(|| {
        let directory = tempfile::tempdir().unwrap();
        private_mounts(directory.path());
        let path = directory.path().join("blue");
        NamedNetNs::create(&path).unwrap();
        let (home, blue) = (NetNs::current().unwrap(), NetNs::open(&path).unwrap());
        assert!(blue.cookie().is_some(), "this kernel has SO_NETNS_COOKIE");
        assert_ne!(home.cookie(), blue.cookie());
        assert_eq!(blue.cookie(), NetNs::open(&path).unwrap().cookie());
    });
}

#[test]
fn a_missing_path_is_missing() {
    let directory = tempfile::tempdir().unwrap();
    let plain = directory.path().join("plain");
    std::fs::write(&plain, "").unwrap();
    for path in [directory.path().join("none"), plain.join("below"), PathBuf::new()] {
        assert!(NetNs::open(&path).unwrap_err().is_missing(), "{}", path.display());
    }
}

#[test]
fn other_things_are_not_a_namespace() {
    let directory = tempfile::tempdir().unwrap();
    let plain = directory.path().join("plain");
    std::fs::write(&plain, "").unwrap();
    let fifo = directory.path().join("fifo");
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, Mode::RUSR, 0).unwrap();
    let cases = [
        (plain, "a plain file"),
        (directory.path().to_owned(), "a directory"),
        (fifo, "a special file"),
        (PathBuf::from("/proc/self/ns/mnt"), "a namespace of another type"),
    ];
    for (path, expected) in cases {
        match NetNs::open(&path) {
            Err(OpenError::NotANamespace { found, .. }) => assert_eq!(found, expected),
            other => panic!("{}: {other:?}", path.display()),
        }
    }
}

/// A user namespace may enter a network namespace that it made, but not return to
/// one that it does not own.
#[test]
fn without_a_way_back_nothing_runs() {
    isolated(|| {
        // A process with one thread is needed for a new user namespace: a child.
        let child = "mount -t tmpfs t /run && exec \"$0\" --exact --nocapture \
                     netns::tests::in_a_user_namespace";
        let output = std::process::Command::new("unshare")
            .args(["--user", "--map-root-user", "--mount", "sh", "-c", child])
            .arg(std::env::current_exe().unwrap())
            .env(MARK, "1")
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
        assert!(text.contains("refused: Operation not permitted"), "{text}");
    });
}

/// Set for the child of the test above.
const MARK: &str = "PODWIRE_TEST_USER_NAMESPACE";

/// The other half of the test above; on its own, outside a user namespace of ours,
/// the same steps must succeed.
#[test]
fn in_a_user_namespace() {
    isolated(|| {
        let is_child = std::env::var_os(MARK).is_some();
        let directory = tempfile::tempdir_in("/run").unwrap();
        if !is_child {
            private_mounts(directory.path());
        }
        let path = directory.path().join("blue");
        NamedNetNs::create(&path).unwrap();
        let mut has_run = false;
        let result = NetNs::open(&path).unwrap().run(|| has_run = true);
        assert_eq!(has_run, !is_child);
        match result {
            Ok(()) => assert!(!is_child),
            Err(error) => println!("refused: {error}"),
        }
        NamedNetNs::remove(&path).unwrap();
    });
}

#[test]
fn an_anonymous_namespace_is_nobodys() {
    let one = NetNs::anonymous().unwrap();
    assert!(!one.is_same(&NetNs::current().unwrap()).unwrap());
    assert!(!one.is_same(&NetNs::anonymous().unwrap()).unwrap());
    let inside = one.run(|| NetNs::current().unwrap()).unwrap();
    assert!(one.is_same(&inside).unwrap());
}
