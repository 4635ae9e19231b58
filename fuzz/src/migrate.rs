//! What `podwire migrate` finds on a node that it knows nothing of.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use podwire_migrate::fuzzing;
use podwire_runtime::Runtime;

use crate::scratch::{Scratch, parts};

/// In this order: a program's words, of which the first line is its version too; the
/// names in a plugin directory, one a line, of which those behind an empty line are kept
/// originals; a network list; a record of libcni.
pub(crate) fn node(data: &[u8]) {
    let mut parts = parts(data).chain(std::iter::repeat(&[][..]));
    let mut next = || parts.next().unwrap_or_default();
    let (words, names, list, record) = (next(), next(), next(), next());
    let words = String::from_utf8_lossy(words);
    let (first, rest) = words.split_once('\n').unwrap_or((&words, ""));
    for name in ["bridge", "host-local"] {
        let _ = fuzzing::about(&words, name).to_string();
    }

    let scratch = Scratch::new("migrate");
    scratch.write("bin/podwire-cni", b"");
    scratch.write("bin/.podwire/originals/bridge", b"");
    let mut below = "bin";
    for name in names.split(|byte| *byte == b'\n') {
        if name.is_empty() {
            below = "bin/.podwire/originals";
        } else if !name.contains(&0) && !name.contains(&b'/') && name.len() < 256 {
            // No program, so it can't be executed. `.` and `..` can't be written.
            let _ = std::fs::write(scratch.path().join(below).join(OsStr::from_bytes(name)), b"");
        }
    }
    let own = scratch.path().join("bin/podwire-cni");
    if let Ok(source) = fuzzing::source(&own, first, rest) {
        assert!(source.plugins.iter().all(|name| !name.contains('/') && !name.starts_with('.')));
        let few = podwire_migrate::Source {
            plugins: source.plugins.iter().take(3).cloned().collect(),
            ..source
        };
        if let Ok((survey, ours)) = fuzzing::directory(&scratch.path().join("bin"), &few) {
            assert_eq!(survey.files.len(), few.plugins.len());
            assert!(ours.is_empty(), "nothing there is executable: {ours:?}");
        }
    }

    scratch.write("net.d/10-n.conflist", list);
    scratch.write("net.d/20-n.conf", list);
    scratch.write("cache/results/n-c1-eth0", record);
    let runtime = Runtime::builder()
        .configuration_directory(scratch.path().join("net.d"))
        .cache_directory(scratch.path().join("cache"))
        .lock_directory(scratch.path().join("locks"))
        .build();
    let (uses, types) = fuzzing::files(&runtime).unwrap();
    assert!(uses.networks.len() <= 2 && types <= record.len());
}
