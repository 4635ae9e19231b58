//! The corpus, replayed: what was found once stays found.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use podwire_fuzz::{TARGETS, target};

/// Damaged copies made of each input.
const COPIES: usize = 40;

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus")
}

/// The next number of a generator that always gives the same ones.
fn next(seed: &mut u64) -> usize {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    usize::try_from(*seed >> 33).unwrap()
}

/// A copy with some bytes changed, cut out or doubled.
fn damaged(input: &[u8], seed: &mut u64) -> Vec<u8> {
    let mut copy = input.to_vec();
    for _ in 0..=next(seed) % 4 {
        let at = next(seed) % (copy.len() + 1);
        let end = (at + next(seed) % 9).min(copy.len());
        match next(seed) % 4 {
            0 => drop(copy.drain(at..end)),
            1 => copy.truncate(at),
            2 => {
                let piece: Vec<u8> = copy.get(at..end).unwrap_or_default().to_vec();
                copy.splice(at..at, piece);
            }
            _ => {
                if let Some(byte) = copy.get_mut(at) {
                    *byte = u8::try_from(next(seed) % 256).unwrap();
                }
            }
        }
    }
    copy
}

fn replay(name: &str) {
    let target = target(name).unwrap();
    let mut files: Vec<_> = std::fs::read_dir(corpus().join(name))
        .unwrap_or_else(|error| panic!("the corpus of {name}: {error}"))
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    assert!(!files.is_empty(), "the corpus of {name} is empty");
    let mut seed = 7;
    for file in files {
        let input = std::fs::read(&file).unwrap();
        (target.run)(&input);
        for _ in 0..COPIES {
            (target.run)(&damaged(&input, &mut seed));
        }
    }
}

#[test]
fn every_target_has_a_program_a_test_and_a_corpus() {
    let manifest = include_str!("../Cargo.toml");
    let this = include_str!("replay.rs");
    let names: BTreeSet<String> = TARGETS.iter().map(|target| target.name.to_owned()).collect();
    for name in &names {
        assert!(manifest.contains(&format!("name = \"{name}\"")), "{name} has no program");
        assert!(this.contains(&format!("replay(\"{name}\")")), "{name} has no test");
        let program = format!("fuzz_targets/{name}.rs");
        let text = std::fs::read_to_string(corpus().with_file_name(&program)).unwrap();
        assert!(text.contains(&format!("\"{name}\"")), "{program} runs another target");
    }
    let directories: BTreeSet<String> = std::fs::read_dir(corpus())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(directories, names, "targets and directories of the corpus");
}

#[test]
fn plugin_stdin() {
    replay("plugin_stdin");
}

#[test]
fn plugin_config() {
    replay("plugin_config");
}

#[test]
fn host_local_config() {
    replay("host_local_config");
}

#[test]
fn host_local_files() {
    replay("host_local_files");
}

#[test]
fn static_config() {
    replay("static_config");
}

#[test]
fn network_list() {
    replay("network_list");
}

#[test]
fn network_directory() {
    replay("network_directory");
}

#[test]
fn result() {
    replay("result");
}

#[test]
fn error_object() {
    replay("error_object");
}

#[test]
fn version_info() {
    replay("version_info");
}

#[test]
fn cni_args() {
    replay("cni_args");
}

#[test]
fn capabilities() {
    replay("capabilities");
}

#[test]
fn attachment_record() {
    replay("attachment_record");
}

#[test]
fn state_files() {
    replay("state_files");
}

#[test]
fn proc_tables() {
    replay("proc_tables");
}

#[test]
fn bus_message() {
    replay("bus_message");
}

#[test]
fn netlink_replies() {
    replay("netlink_replies");
}

#[test]
fn route_messages() {
    replay("route_messages");
}

#[test]
fn tc_messages() {
    replay("tc_messages");
}

#[test]
fn nft_messages() {
    replay("nft_messages");
}

#[test]
fn conntrack_messages() {
    replay("conntrack_messages");
}

#[test]
fn dhcp_config() {
    replay("dhcp_config");
}

#[test]
fn dhcp_packets() {
    replay("dhcp_packets");
}

#[test]
fn dhcp_documents() {
    replay("dhcp_documents");
}

#[test]
fn dhcp_greeting() {
    replay("dhcp_greeting");
}

#[test]
fn migrate_node() {
    replay("migrate_node");
}

#[test]
fn nft_refusals() {
    replay("nft_refusals");
}
