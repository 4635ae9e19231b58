//! A network namespace for each test, and the tools to look at it from outside.
#![allow(unsafe_code)] // unshare(2): each test has a namespace for itself.
#![allow(clippy::expect_used, clippy::panic)] // It is all of tests.
#![allow(dead_code, unreachable_pub)] // Not every test file needs all of it.

use std::process::{Command, Stdio};

/// Moves the test's thread into a fresh network namespace, which goes with the thread.
pub fn private_namespace() {
    // SAFETY: only the network namespace of this thread changes; no descriptor table or other
    // state that threads share is taken apart.
    unsafe { rustix::thread::unshare_unsafe(rustix::thread::UnshareFlags::NEWNET) }
        .expect("a network namespace of the test's own (root is needed)");
    run("ip", &["link", "set", "lo", "up"]);
}

/// Runs a program in the test's namespace and returns what it prints.
pub fn run(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .unwrap_or_else(|error| panic!("{program} is needed by this test: {error}"));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{program} {arguments:?}: {}\n{text}{}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    text
}

/// Runs a line of shell in the test's namespace.
pub fn shell(line: &str) -> String {
    run("sh", &["-ec", line])
}

/// Loads a ruleset with nft.
pub fn nft_load(ruleset: &str) {
    shell(&format!("nft -f - <<'END'\n{ruleset}\nEND\n"));
}

/// The ruleset as nft prints it, blanks reduced to single spaces.
pub fn ruleset() -> String {
    squeeze(&run("nft", &["list", "ruleset"]))
}

/// Blanks reduced to single spaces.
pub fn squeeze(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Fails with both texts unless the part is in the whole.
#[track_caller]
pub fn assert_contains(whole: &str, part: &str) {
    assert!(whole.contains(part), "expected\n  {part}\nin\n{whole}");
}
