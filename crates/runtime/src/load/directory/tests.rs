//! Directories as they are found in the field.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::time::{Duration, SystemTime};

use podwire_spec::error::ErrorCode;

use super::*;

struct Folder(tempfile::TempDir);

impl Folder {
    fn new(files: &[(&str, &str)]) -> Self {
        let folder = Self(tempfile::tempdir().unwrap());
        for (name, text) in files {
            folder.write(name, text);
        }
        folder
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.0.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Makes a file look as if nobody had touched it for an hour.
    fn age(&self, name: &str) {
        let file = fs::File::options().append(true).open(self.0.path().join(name)).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_hours(1)).unwrap();
    }

    fn read(&self) -> Directory {
        Directory::read(self.0.path()).unwrap()
    }
}

fn list(name: &str, plugin: &str) -> String {
    format!(r#"{{"cniVersion":"1.0.0","name":"{name}","plugins":[{{"type":"{plugin}"}}]}}"#)
}

fn single(name: &str, plugin: &str) -> String {
    format!(r#"{{"cniVersion":"0.4.0","name":"{name}","type":"{plugin}"}}"#)
}

fn plugins(network: &Network) -> Vec<&str> {
    network.list().plugins.iter().map(|plugin| plugin.plugin_type.as_str()).collect()
}

#[test]
fn b023_one_broken_file_hides_no_good_one() {
    let folder = Folder::new(&[
        ("05-bad.conflist", "{\"name\": \"bad\",\n}"),
        ("06-empty.conflist", ""),
        ("07-dir.conflist/x", ""),
        ("09-binary.conf", "\u{1}\u{2}\u{3}"),
        ("10-good.conflist", &list("good", "bridge")),
        ("20-other.conflist", &list("other", "ptp")),
        ("30-ignored.conflist.bak", "{"),
    ]);
    folder.age("06-empty.conflist");
    let path = std::ffi::CString::new(folder.0.path().join("08-pipe.conf").as_os_str().as_bytes());
    let made = std::process::Command::new("mkfifo").arg(path.unwrap().to_str().unwrap()).status();
    assert!(made.unwrap().success());

    let read = folder.read();
    let shown: Vec<_> = read.problems.iter().map(ToString::to_string).collect();
    assert_eq!(shown.len(), 5, "{shown:#?}");
    assert!(
        shown[0].contains("05-bad.conflist:1:15: ") && shown[0].contains("comma"),
        "{shown:#?}"
    );
    assert!(shown[1].contains("06-empty") && shown[1].contains("empty"), "{shown:#?}");
    assert!(shown[2].contains("07-dir") && shown[2].contains("directory"), "{shown:#?}");
    assert!(shown[3].contains("08-pipe") && shown[3].contains("regular"), "{shown:#?}");
    assert!(shown[4].contains("09-binary.conf:1:1"), "{shown:#?}");
    assert_eq!(plugins(&read.clone().take("good").unwrap()), ["bridge"]);
    assert_eq!(read.first_networks(1).unwrap()[0].name().as_str(), "good");

    let error = read.take("missing").unwrap_err();
    assert_eq!(error.code(), ErrorCode::InvalidConfiguration);
    let text = error.to_string();
    assert!(text.contains("\"missing\"") && text.contains("05-bad") && text.contains("09-binary"));
}

#[test]
fn by_name_libcnis_precedence_and_for_the_first_go_cnis() {
    let folder = Folder::new(&[
        ("10-a.conf", &single("net", "first")),
        ("20-b.json", &single("net", "second")),
        ("30-c.conflist", &list("net", "third")),
        ("40-d.conflist", &list("net", "fourth")),
    ]);
    assert_eq!(plugins(&folder.read().take("net").unwrap()), ["third"]);
    let read = folder.read();
    let first: Vec<_> = read.first_networks(2).unwrap().iter().map(plugins).collect();
    assert_eq!(first, [["first"], ["second"]]);
    assert_eq!(read.first_networks(9).unwrap().len(), 4);
    fs::remove_file(folder.0.path().join("30-c.conflist")).unwrap();
    fs::remove_file(folder.0.path().join("40-d.conflist")).unwrap();
    assert_eq!(plugins(&folder.read().take("net").unwrap()), ["first"]);
}

#[test]
fn b067_a_file_in_someones_pen_is_not_passed_over() {
    let folder = Folder::new(&[
        ("10-net.conflist", "{\"cniVersion\":\"1.0.0\",\"na"),
        ("20-net.conflist", &list("net", "other")),
    ]);
    let read = folder.read();
    assert_eq!(read.clone().take("net").unwrap_err().code(), ErrorCode::TryAgainLater);
    let error = read.first_networks(1).unwrap_err();
    assert_eq!(error.code(), ErrorCode::TryAgainLater);
    assert!(error.to_string().contains("try again"), "{error}");
    assert_eq!(read.take("gone").unwrap_err().code(), ErrorCode::TryAgainLater);
    // Left so for long it is broken, and hides nothing (B023).
    folder.age("10-net.conflist");
    assert_eq!(plugins(&folder.read().take("net").unwrap()), ["other"]);
    assert_eq!(folder.read().first_networks(1).unwrap().len(), 1);
    // Behind what is chosen it doesn't matter.
    folder.write("90-late.conflist", "{");
    assert_eq!(plugins(&folder.read().take("net").unwrap()), ["other"]);
    assert_eq!(folder.read().first_networks(1).unwrap().len(), 1);
}

#[test]
fn folder_plugins_follow_the_inlined_ones_in_the_order_of_their_names() {
    let folder = Folder::new(&[
        ("net.conflist", &list("net", "main")),
        ("net/20-b.conf", r#"{"type":"b"}"#),
        ("net/10-a.conf", r#"{"type":"a","name":"ignored"}"#),
        ("net/30-c.json", r#"{"type":"c"}"#),
        ("net/sub.conf/x", ""),
        ("only.conflist", r#"{"cniVersion":"1.1.0","name":"only"}"#),
        ("only/x.conf", r#"{"type":"x"}"#),
        (
            "not.conflist",
            r#"{"cniVersion":"1.1.0","name":"not","loadOnlyInlinedPlugins":true,"plugins":[{"type":"y"}]}"#,
        ),
        ("not/z.conf", r#"{"type":"z"}"#),
    ]);
    let network = folder.read().take("net").unwrap();
    assert_eq!(plugins(&network), ["main", "a", "b"]);
    let recorded = Network::from_recorded(&network.recorded()).unwrap();
    assert_eq!(plugins(&recorded), ["main", "a", "b"]);
    assert!(recorded.list().load_only_inlined_plugins);
    assert_eq!(plugins(&folder.read().take("only").unwrap()), ["x"]);
    let inlined = folder.read().take("not").unwrap();
    assert_eq!(plugins(&inlined), ["y"]);
    assert_eq!(inlined.recorded(), fs::read(folder.0.path().join("not.conflist")).unwrap());

    folder.write("net/15-bad.conf", "{\"type\":}");
    let text = folder.read().take("net").unwrap_err().to_string();
    assert!(text.contains("net/15-bad.conf:1:9"), "{text}");
}

#[test]
fn a_name_that_leads_elsewhere_loads_no_folder() {
    let folder = Folder::new(&[
        ("net.d/x.conflist", r#"{"cniVersion":"1.1.0","name":"../evil"}"#),
        ("evil/x.conf", r#"{"type":"x"}"#),
        ("net.d/y.conflist", r#"{"cniVersion":"1.1.0","name":""}"#),
    ]);
    let read = Directory::read(&folder.0.path().join("net.d")).unwrap();
    assert!(read.networks.is_empty());
    assert_eq!(read.problems.len(), 2);
    assert!(read.problems[0].to_string().contains("invalid characters"), "{}", read.problems[0]);
}

#[test]
fn b049_each_read_looks_anew_and_links_count_as_files() {
    let folder = Folder::new(&[
        ("v1/net.conflist", &list("net", "one")),
        ("v2/net.conflist", &list("net", "two")),
    ]);
    let current = folder.0.path().join("net.d");
    let read = || Directory::read(&current).unwrap();
    assert!(read().networks.is_empty(), "a directory that isn't there is empty");
    for (version, plugin) in [("v1", "one"), ("v2", "two")] {
        let _ = fs::remove_file(&current);
        std::os::unix::fs::symlink(version, &current).unwrap();
        assert_eq!(plugins(&read().take("net").unwrap()), [plugin]);
    }
    fs::remove_file(&current).unwrap();
    fs::create_dir(&current).unwrap();
    std::os::unix::fs::symlink("../v1/net.conflist", current.join("linked.conflist")).unwrap();
    std::os::unix::fs::symlink("nowhere", current.join("dangling.conflist")).unwrap();
    assert_eq!(plugins(&read().take("net").unwrap()), ["one"]);
}

#[test]
fn c11_a_plugin_without_a_name_is_no_network() {
    let folder =
        Folder::new(&[("99-loopback.conf", r#"{"cniVersion":"0.3.1","type":"loopback"}"#)]);
    let read = folder.read();
    assert!(read.networks.is_empty());
    assert!(read.problems[0].to_string().contains("missing network name"), "{}", read.problems[0]);
    let name = NetworkName::parse("lo").unwrap();
    let bytes = fs::read(folder.0.path().join("99-loopback.conf")).unwrap();
    assert_eq!(Network::from_plugin_bytes(&bytes, Some(&name)).unwrap().name(), &name);
}

#[test]
fn huge_files_are_refused() {
    let folder = Folder::new(&[("big.conflist", &" ".repeat((1 << 20) + 1))]);
    assert!(folder.read().problems[0].to_string().contains("larger"));
}

#[test]
fn b067_a_writer_in_place_never_makes_the_reader_choose_another_file() {
    let folder = Folder::new(&[
        ("10-net.conflist", &list("net", "mine")),
        ("20-net.conflist", &list("net", "another")),
    ]);
    let path = folder.0.path().join("10-net.conflist");
    let text = list("net", "mine");
    let done = std::sync::atomic::AtomicBool::new(false);
    let (whole, in_pen) = std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let (mut whole, mut in_pen) = (0, 0);
            while !done.load(std::sync::atomic::Ordering::Relaxed) {
                match folder.read().take("net") {
                    Ok(network) => {
                        assert_eq!(plugins(&network), ["mine"]);
                        whole += 1;
                    }
                    Err(error) => {
                        assert_eq!(error.code(), ErrorCode::TryAgainLater, "{error}");
                        in_pen += 1;
                    }
                }
            }
            (whole, in_pen)
        });
        let (first, rest) = text.split_at(text.len() / 2);
        for _ in 0..500 {
            use std::io::Write as _;
            let mut file = fs::File::create(&path).unwrap();
            file.write_all(first.as_bytes()).unwrap();
            std::thread::yield_now();
            file.write_all(rest.as_bytes()).unwrap();
        }
        done.store(true, std::sync::atomic::Ordering::Relaxed);
        reader.join().unwrap()
    });
    assert!(whole + in_pen > 0);
    assert_eq!(plugins(&folder.read().take("net").unwrap()), ["mine"]);
}
