//! docs/security.md stays true: it counts `unsafe` and the reads of the
//! environment file by file.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::Result;

/// The page.
const PAGE: &str = "docs/security.md";

/// What ships: only there the counts matter.
const SHIPS: &[&str] = &[
    "crates/cli/src/",
    "crates/dhcp/src/",
    "crates/keeper/src/",
    "crates/migrate/src/",
    "crates/netlink/src/",
    "crates/plugin/src/",
    "crates/plugins/src/",
    "crates/resources/src/",
    "crates/runtime/src/",
    "crates/spec/src/",
    "crates/sys/src/",
];

/// Files whose counts differ from the page's.
///
/// # Errors
/// When a file can't be read.
pub(super) fn faults(root: &Path, files: &[PathBuf]) -> Result<Vec<String>> {
    let page = std::fs::read_to_string(root.join(PAGE))?;
    let mut faults = Vec::new();
    for (heading, what, words) in [
        ("places", "`unsafe`", unsafe_words()),
        ("reads of the environment", "reads of the environment", environment_words()),
    ] {
        let mut found = BTreeMap::new();
        for file in files {
            let name = file.to_string_lossy();
            if !SHIPS.iter().any(|prefix| name.starts_with(prefix)) || is_test(&name) {
                continue;
            }
            let text = std::fs::read_to_string(root.join(file))?;
            let count = count(&text, &words);
            if count > 0 {
                found.insert(name.into_owned(), count);
            }
        }
        faults.extend(differences(what, &found, &table(&page, heading)));
    }
    Ok(faults)
}

fn is_test(name: &str) -> bool {
    name.contains("tests") || name.contains("fuzzing")
}

/// Put together here so that this file doesn't count.
fn unsafe_words() -> Vec<String> {
    ["{", "impl", "fn", "extern"].map(|next| format!("unsa{} {next}", "fe")).to_vec()
}

fn environment_words() -> Vec<String> {
    ["var(", "var_os(", "vars(", "vars_os("].map(|call| format!("en{}::{call}", "v")).to_vec()
}

/// Lines of code, comments and tests left out, that hold one of the words.
fn count(text: &str, words: &[String]) -> usize {
    text.lines()
        .take_while(|line| !line.starts_with("mod tests {"))
        .filter(|line| !line.trim_start().starts_with("//"))
        .filter(|line| words.iter().any(|word| line.contains(word)))
        .count()
}

/// The rows of the table with this heading in its second column.
fn table(page: &str, heading: &str) -> BTreeMap<String, usize> {
    let mut rows = BTreeMap::new();
    let start = |line: &&str| line.starts_with(&format!("| file | {heading} |"));
    let lines = page.lines().skip_while(|line| !start(line)).skip(2);
    for line in lines.take_while(|line| line.starts_with('|')) {
        let mut cells = line.split('|').map(str::trim).skip(1);
        let name = cells.next().unwrap_or_default().trim_matches('`').to_owned();
        let number = cells.next().and_then(|cell| cell.parse().ok()).unwrap_or_default();
        rows.insert(name, number);
    }
    rows
}

fn differences(
    what: &str,
    found: &BTreeMap<String, usize>,
    said: &BTreeMap<String, usize>,
) -> Vec<String> {
    let mut names: Vec<_> = found.keys().chain(said.keys()).collect();
    names.sort();
    names.dedup();
    let count = |map: &BTreeMap<String, usize>, name: &str| map.get(name).copied().unwrap_or(0);
    names
        .into_iter()
        .map(|name| (name, count(found, name), count(said, name)))
        .filter(|(_, found, said)| found != said)
        .map(|(name, found, said)| {
            format!("{PAGE}: {name} has {found} {what}, the page says {said}")
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{count, differences, environment_words, table, unsafe_words};

    #[test]
    fn places_are_counted_but_for_comments_and_tests() {
        let text = ["a = unsa", "fe { b };\n// unsa", "fe { c }\nmod tests {\n unsa", "fe { d }"];
        assert_eq!(count(&text.concat(), &unsafe_words()), 1);
        assert_eq!(count(&["std::en", "v::var_os(x)"].concat(), &environment_words()), 1);
    }

    #[test]
    fn the_page_and_the_sources_must_agree() {
        let page =
            "| file | places | why |\n|---|---|---|\n| `a.rs` | 2 | x |\n| `b.rs` | 1 | y |\n";
        let said = table(page, "places");
        assert_eq!(said.len(), 2);
        let found = [("a.rs".to_owned(), 2), ("c.rs".to_owned(), 1)].into();
        let faults = differences("`unsafe`", &found, &said);
        assert_eq!(faults.len(), 2, "{faults:?}");
    }
}
