//! A private network namespace for a test, and what other tools see in it.

#![allow(unsafe_code)] // unshare(2) on the test's own thread.
#![allow(dead_code, unreachable_pub)] // Each test program uses a part.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // Tests fail by panicking.

use std::process::Command;

use podwire_netlink::route::{Device, Link, MacAddress, RouteSocket};
use rustix::thread::{UnshareFlags, unshare_unsafe};
use serde_json::Value;

/// Moves this thread, and the commands it starts, into a namespace of its own
/// and opens a socket there.
pub fn private_namespace() -> RouteSocket {
    // SAFETY: only the network namespace is unshared; no file descriptor or
    // memory is affected.
    unsafe { unshare_unsafe(UnshareFlags::NEWNET) }.expect("unshare: the tests need root");
    RouteSocket::open().unwrap()
}

/// Runs a command line that must go well.
pub fn run(line: &str) -> String {
    let mut words = line.split_whitespace();
    let output = Command::new(words.next().unwrap()).args(words).output().unwrap();
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// What a command line prints as JSON; nothing is an empty list.
pub fn json(line: &str) -> Value {
    let text = run(line);
    if text.trim().is_empty() {
        Value::Array(Vec::new())
    } else {
        serde_json::from_str(&text).unwrap()
    }
}

/// A link that must exist.
pub fn link(socket: &mut RouteSocket, name: &str) -> Link {
    socket.link_by_name(name).unwrap().unwrap_or_else(|| panic!("no link {name}"))
}

/// The loopback.
pub fn loopback() -> Device<'static> {
    Device::new(1, "lo")
}

pub fn mac(last: u8) -> MacAddress {
    MacAddress([0x0a, 0x58, 0, 0, 0, last])
}
