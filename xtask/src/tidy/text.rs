//! Rules about the text of files.

use std::path::{Path, PathBuf};

use crate::Result;

/// No file may have more lines: a longer one holds more than one concern.
const MOST_LINES: usize = 600;

/// Crates that may switch `unsafe` on: kernel structures and namespaces.
const UNSAFE: &[&str] = &["crates/sys/", "crates/netlink/", "crates/testkit/"];

/// Files that may sleep: the back-off of a contended lock, and the pause
/// between two tries of a download.
const MAY_SLEEP: &[&str] = &["crates/sys/src/lock", "xtask/src/process.rs"];

/// Text files whose words are checked, by extension; the rest is data.
const CHECKED: &[&str] = &[
    "rs", "toml", "md", "go", "conf", "conflist", "json", "yaml", "yml", "txt", "tsv", "service",
    "",
];

/// Files made by tools, or copied as they must be.
const EXEMPT: &[&str] = &["Cargo.lock", "LICENSE"];

/// Lines and words that break a rule.
///
/// # Errors
/// When a file can't be read.
pub(super) fn faults(root: &Path, files: &[PathBuf]) -> Result<Vec<String>> {
    let mut faults = Vec::new();
    for file in files {
        let name = file.to_string_lossy();
        let extension = file.extension().unwrap_or_default().to_string_lossy();
        if EXEMPT.contains(&&*name) || !CHECKED.contains(&&*extension) {
            continue;
        }
        let Ok(text) = String::from_utf8(std::fs::read(root.join(file))?) else {
            // Samples of broken input needn't be text.
            continue;
        };
        check(&name, &text, &mut faults);
    }
    Ok(faults)
}

fn check(name: &str, text: &str, faults: &mut Vec<String>) {
    let rust = Path::new(name).extension().is_some_and(|extension| extension == "rs");
    let lines = text.lines().count();
    if rust && lines > MOST_LINES {
        faults.push(format!("{name}: {lines} lines; split it, {MOST_LINES} is the most"));
    }
    let anywhere = forbidden_anywhere();
    let in_code = forbidden_in_code();
    for (index, line) in text.lines().enumerate() {
        let mut found = |why: &str| faults.push(format!("{name}:{}: {why}", index + 1));
        for (word, why) in &anywhere {
            if line.contains(word) {
                found(&format!("`{word}`: {why}"));
            }
        }
        if !rust {
            continue;
        }
        for (word, why, allowed) in &in_code {
            if line.contains(word) && !allowed.iter().any(|prefix| name.starts_with(prefix)) {
                found(&format!("`{word}`: {why}"));
            }
        }
    }
}

/// What no file may say. Put together here so that this file may be checked too.
fn forbidden_anywhere() -> Vec<(String, &'static str)> {
    let mut words: Vec<(String, &str)> = [
        ["deb", "debian", "org"].as_slice(),
        &["security", "debian", "org"],
        &["pypi", "org"],
        &["pythonhosted", "org"],
        &["registry", "npmjs"],
        &["crates", "io"],
        &["static", "rust-lang", "org"],
        &["proxy", "golang", "org"],
    ]
    .iter()
    .map(|parts| {
        (parts.join("."), "the host of a registry; the machine's own configuration names it")
    })
    .collect();
    for folder in ["work", "root"] {
        words.push((format!("/{folder}/"), "a path of one machine"));
    }
    words.push((["..", "shared"].join("/"), "a file outside the project"));
    words.push((["FIX", "ME"].concat(), "finish it, or write down why it stays so"));
    words
}

/// What no Rust file may say, and where it may all the same.
fn forbidden_in_code() -> Vec<(String, &'static str, &'static [&'static str])> {
    vec![
        (["to", "do!("].concat(), "an unfinished piece", &[]),
        (["unimplement", "ed!("].concat(), "an unfinished piece", &[]),
        (["#[ign", "ore"].concat(), "a test that doesn't run", &[]),
        (["thread::sl", "eep"].concat(), "wait on an event with a deadline", MAY_SLEEP),
        (["nanosl", "eep("].concat(), "wait on an event with a deadline", MAY_SLEEP),
        (["allow(unsafe", "_code"].concat(), "only sys, netlink and testkit may", UNSAFE),
        (["expect(unsafe", "_code"].concat(), "only sys, netlink and testkit may", UNSAFE),
    ]
}

#[cfg(test)]
mod tests {
    use super::check;

    fn faults(name: &str, text: &str) -> Vec<String> {
        let mut faults = Vec::new();
        check(name, text, &mut faults);
        faults
    }

    #[test]
    fn each_rule_names_file_line_and_reason() {
        let sleeping = ["fn f() {\n    std::thread::sl", "eep(x);\n}"].concat();
        let found = faults("crates/cli/src/wait.rs", &sleeping);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found.iter().all(|fault| fault.starts_with("crates/cli/src/wait.rs:2: ")));
        assert!(faults("crates/sys/src/lock.rs", &sleeping).is_empty());
    }

    #[test]
    fn unsafe_code_is_for_three_crates() {
        let text = ["#![allow(unsafe", "_code)]"].concat();
        assert_eq!(faults("crates/spec/src/lib.rs", &text).len(), 1);
        assert!(faults("crates/netlink/src/lib.rs", &text).is_empty());
    }

    #[test]
    fn a_long_file_is_a_fault() {
        assert_eq!(faults("a.rs", &"//\n".repeat(601)).len(), 1);
        assert!(faults("a.rs", &"//\n".repeat(600)).is_empty());
    }

    #[test]
    fn paths_of_one_machine_are_found_in_any_text() {
        assert_eq!(faults("README.md", &["see /ro", "ot/x"].concat()).len(), 1);
    }
}
