//! The most that a call may ask of the kernel: `limits.tsv`.
//!
//! Counts are exact, so that a regression shows on the noisiest machine. Fewer
//! than the limit is good news: `--bless` writes the file anew, and the change
//! is reviewed like any other.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;

use crate::Outcome;
use crate::report::Report;
use crate::sections;
use crate::subject::Subject;

const HEAD: &str = "\
# The most that Podwire's calls may ask of the kernel, checked by
# `cargo xtask bench --quick`; written by `cargo xtask bench --quick --bless`.
# A call, what is there already, programs started, system calls (where a program
# waits for another: without those that depend on how long), netlink messages;
# for sizes: what, bytes.
";

/// Bytes may grow by one part in so many before a limit is passed: another
/// compiler lays code out differently.
const ROOM: u64 = 50;

/// One line of limits: by its name, the numbers.
type Limits = BTreeMap<String, Vec<u64>>;

fn measured(report: &Report) -> Limits {
    let mut found = Limits::new();
    for section in sections::ALL {
        for (place, cells) in report.rows(section.name) {
            let counts = cells.get(&Subject::Podwire).and_then(|cell| cell.counts);
            if let Some(counts) = counts {
                let at = place.at.map_or_else(|| "-".to_owned(), |at| at.to_string());
                let name = format!("{}\t{}\t{at}", place.section, place.call);
                found.insert(name, vec![counts.processes, counts.steady_calls, counts.messages]);
            }
        }
        for (name, values) in report.figures(section.name) {
            if let (Some(bytes), true) = (values.get(&Subject::Podwire), name.ends_with("bytes")) {
                #[allow(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "bytes"
                )]
                found.insert(format!("{}\t{name}", section.name), vec![*bytes as u64]);
            }
        }
    }
    found
}

/// Writes what was measured as the limits.
///
/// # Errors
/// The file can't be written.
pub fn bless(report: &Report, file: &Path) -> Outcome {
    let mut text = String::from(HEAD);
    for (name, numbers) in measured(report) {
        let numbers = match numbers.as_slice() {
            [bytes] => vec![(bytes + bytes / ROOM).next_multiple_of(10_000)],
            _ => numbers,
        };
        let numbers: Vec<_> = numbers.iter().map(u64::to_string).collect();
        let _ = writeln!(text, "{name}\t{}", numbers.join("\t"));
    }
    std::fs::write(file, text).map_err(|error| format!("{}: {error}", file.display()))
}

/// Compares what was measured with the limits.
///
/// # Errors
/// Names every call that asks for more, or that has no limit.
pub fn compare(report: &Report, file: &Path) -> Outcome {
    let text =
        std::fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
    let limits = parse(&text).map_err(|error| format!("{}: {error}", file.display()))?;
    let (over, under) = judge(&measured(report), &limits);
    for line in &under {
        let _ = writeln!(std::io::stdout(), "  fewer than the limit: {line}");
    }
    if over.is_empty() {
        return Ok(());
    }
    Err(format!(
        "more than {} allows; if that is meant, run `cargo xtask bench --quick --bless`:\n  {}",
        file.display(),
        over.join("\n  ")
    ))
}

fn parse(text: &str) -> Result<Limits, String> {
    let mut limits = Limits::new();
    for line in text.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
        let fields: Vec<_> = line.split('\t').collect();
        let names = if fields.len() > 3 { 3 } else { 2 };
        let (name, numbers) = fields.split_at(names.min(fields.len()));
        let numbers: Result<Vec<u64>, _> = numbers.iter().map(|field| field.parse()).collect();
        let numbers = numbers.map_err(|error| format!("{line:?}: {error}"))?;
        limits.insert(name.join("\t"), numbers);
    }
    Ok(limits)
}

/// Lines that are over a limit, and lines that are under one.
fn judge(measured: &Limits, limits: &Limits) -> (Vec<String>, Vec<String>) {
    let (mut over, mut under) = (Vec::new(), Vec::new());
    let shown = |name: &str| name.replace('\t', ", ");
    for (name, found) in measured {
        let Some(limit) = limits.get(name) else {
            over.push(format!("{}: has no limit", shown(name)));
            continue;
        };
        let line = format!("{}: {found:?}, the limit is {limit:?}", shown(name));
        let pairs = || found.iter().zip(limit);
        if pairs().any(|(found, limit)| found > limit) {
            over.push(line);
        } else if found.len() > 1 && pairs().any(|(found, limit)| found < limit) {
            under.push(line);
        }
    }
    (over, under)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_system_call_more_is_over_and_one_less_is_told() {
        let limits = parse("# x\na\tADD\t-\t1\t50\t7\nsize\tall, bytes\t900\n").unwrap();
        let found = |calls: u64| Limits::from([("a\tADD\t-".to_owned(), vec![1, calls, 7])]);
        assert_eq!(judge(&found(50), &limits), (Vec::new(), Vec::new()));
        assert_eq!(judge(&found(51), &limits).0.len(), 1);
        assert_eq!(judge(&found(49), &limits).1.len(), 1);
    }

    #[test]
    fn sizes_and_calls_without_a_limit_are_judged_too() {
        let limits = parse("size\tall, bytes\t900\n").unwrap();
        let size = |bytes: u64| Limits::from([("size\tall, bytes".to_owned(), vec![bytes])]);
        assert_eq!(judge(&size(899), &limits), (Vec::new(), Vec::new()));
        assert_eq!(judge(&size(901), &limits).0.len(), 1);
        assert_eq!(judge(&size(1), &Limits::new()).0, ["size, all, bytes: has no limit"]);
        assert!(parse("a\tb\tc\tx").is_err());
    }
}
