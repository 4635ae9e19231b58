//! What is on the disk.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::Outcome;
use crate::bench::Bench;
use crate::subject::Subject;

pub(super) fn run(bench: &mut Bench<'_>) -> Outcome {
    for subject in bench.with_plugins() {
        let Some(directory) = bench.options.programs.plugins(subject) else { continue };
        let (bytes, files, names) = weigh(&directory)?;
        bench.report.figure("size", "all plugins, bytes", subject, number(bytes));
        bench.report.figure("size", "all plugins, files", subject, number(files));
        bench.report.figure("size", "all plugins, names", subject, number(names));
        if subject.is_go() {
            match stripped(bench, subject, &directory) {
                Ok(bytes) => {
                    bench.report.figure("size", "the same stripped, bytes", subject, number(bytes));
                }
                Err(error) => bench.report.remark(&error),
            }
        }
    }
    let podwire = std::fs::metadata(&bench.options.programs.podwire)
        .map_err(|error| format!("podwire: {error}"))?;
    let bytes = number(podwire.len());
    bench.report.figure("size", "the podwire command, bytes", Subject::Podwire, bytes);
    Ok(())
}

/// Bytes without counting a file twice, files, and names.
fn weigh(directory: &Path) -> Outcome<(u64, u64, u64)> {
    let failed = |error: std::io::Error| format!("{}: {error}", directory.display());
    let (mut seen, mut bytes, mut names) = (BTreeSet::new(), 0, 0);
    for entry in std::fs::read_dir(directory).map_err(failed)? {
        let status = entry.and_then(|entry| entry.metadata()).map_err(failed)?;
        if !status.is_file() {
            continue;
        }
        names += 1;
        if seen.insert(status.ino()) {
            bytes += status.len();
        }
    }
    Ok((bytes, seen.len() as u64, names))
}

/// The size without symbols, as a packager might ship it.
fn stripped(bench: &Bench<'_>, subject: Subject, directory: &Path) -> Outcome<u64> {
    let copy = bench.world.path(&format!("stripped-{}", subject.word()));
    std::fs::create_dir_all(&copy).map_err(|error| error.to_string())?;
    for entry in std::fs::read_dir(directory).map_err(|error| error.to_string())? {
        let entry = entry.map_err(|error| error.to_string())?;
        let to = copy.join(entry.file_name());
        std::fs::copy(entry.path(), &to).map_err(|error| error.to_string())?;
        let output = bench.world.try_exec(&["strip", &to.display().to_string()]);
        if output.code != 0 {
            return Err(format!("strip: {}", output.stderr));
        }
    }
    let (bytes, ..) = weigh(&copy)?;
    std::fs::remove_dir_all(&copy).map_err(|error| error.to_string())?;
    Ok(bytes)
}

#[allow(clippy::cast_precision_loss, reason = "sizes are far below 2^52")]
fn number(value: u64) -> f64 {
    value as f64
}
