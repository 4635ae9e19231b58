//! `cargo xtask cases`: which test covers which case from the field.
//!
//! `xtask/cases.tsv` lists the cases; a test covers one when the id stands as
//! a word in its function's name (`b016_reversed_range_is_refused`) or in the
//! comment directly above it.

use std::collections::BTreeMap;

use super::{no_more, take_switch, take_value};
use crate::{Result, workspace};

/// The list, a line each: id, component, value (10 is most), title.
const LIST: &str = include_str!("../../cases.tsv");

/// Prints the map. Options: `--component NAME`, `--missing`.
///
/// # Errors
/// When the list or the sources can't be read.
pub(super) fn run(arguments: &[String]) -> Result<()> {
    let mut arguments = arguments.to_vec();
    let component = take_value(&mut arguments, "--component")?;
    let missing_only = take_switch(&mut arguments, "--missing");
    no_more(&arguments)?;

    let cases = parse(LIST)?;
    let tests = tests()?;
    let wanted: Vec<&Case> = cases
        .iter()
        .filter(|case| component.as_deref().is_none_or(|component| component == case.component))
        .collect();
    if wanted.is_empty() {
        let mut known: Vec<&str> = cases.iter().map(|case| case.component).collect();
        known.sort_unstable();
        known.dedup();
        return Err(format!("no case has that component; there are: {}", known.join(" ")).into());
    }
    let mut covered = 0;
    for case in &wanted {
        let found = tests.get(case.id).map_or(&[][..], Vec::as_slice);
        covered += usize::from(!found.is_empty());
        if missing_only && !found.is_empty() {
            continue;
        }
        println!("{} {:<13} {:>2}  {}", case.id, case.component, case.value, case.title);
        for test in found {
            println!("       {test}");
        }
        if found.is_empty() && !missing_only {
            println!("       NO TEST");
        }
    }
    println!(
        "{covered} of {} cases have a test, {} have none",
        wanted.len(),
        wanted.len() - covered
    );
    for (id, tests) in &tests {
        if !cases.iter().any(|case| case.id == id) {
            println!("{id} isn't in the list, but named by {}", tests.join(", "));
        }
    }
    Ok(())
}

struct Case<'a> {
    id: &'a str,
    component: &'a str,
    value: &'a str,
    title: &'a str,
}

fn parse(list: &str) -> Result<Vec<Case<'_>>> {
    let mut cases = Vec::new();
    for line in list.lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        let [id, component, value, title] = fields[..] else {
            return Err(format!("xtask/cases.tsv: not four fields: `{line}`").into());
        };
        cases.push(Case { id, component, value, title });
    }
    Ok(cases)
}

/// Case id to `file: function`.
fn tests() -> Result<BTreeMap<String, Vec<String>>> {
    let root = workspace::root();
    let mut tests: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for file in workspace::files()? {
        // The samples in this crate's own tests cover nothing.
        if file.extension().is_none_or(|extension| extension != "rs") || file.starts_with("xtask") {
            continue;
        }
        for (id, function) in covered(&std::fs::read_to_string(root.join(&file))?) {
            tests.entry(id).or_default().push(format!("{}: {function}", file.display()));
        }
    }
    Ok(tests)
}

/// The ids in one source file, each with the test that names it.
fn covered(source: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut comment = String::new();
    let mut is_test = false;
    for line in source.lines().map(str::trim) {
        if line.starts_with("//") {
            comment.push_str(line);
            comment.push('\n');
        } else if line.starts_with("#[") {
            is_test |= line.contains("test]") || line.contains("test(");
        } else if is_test && let Some(function) = function_name(line) {
            let mut ids = ids(&comment, |byte| byte.is_ascii_alphanumeric() || byte == b'_', 'A');
            ids.extend(self::ids(function, |byte| byte.is_ascii_alphanumeric(), 'a'));
            ids.sort();
            ids.dedup();
            found.extend(ids.into_iter().map(|id| (id, function.to_owned())));
            comment.clear();
            is_test = false;
        } else {
            comment.clear();
            is_test = false;
        }
    }
    found
}

fn function_name(line: &str) -> Option<&str> {
    let after = line.split_once("fn ")?.1;
    after.split(|character: char| !character.is_alphanumeric() && character != '_').next()
}

/// Words of the form B001 or C01, in the letter case of `a`, in upper case.
fn ids(text: &str, in_word: fn(u8) -> bool, a: char) -> Vec<String> {
    text.as_bytes()
        .split(|byte| !in_word(*byte))
        .filter_map(|word| std::str::from_utf8(word).ok())
        .filter(|word| {
            let letter = |upper: char| if a == 'A' { upper } else { upper.to_ascii_lowercase() };
            let digits = |rest: &str, count: usize| {
                rest.len() == count && rest.bytes().all(|byte| byte.is_ascii_digit())
            };
            word.strip_prefix(letter('B')).is_some_and(|rest| digits(rest, 3))
                || word.strip_prefix(letter('C')).is_some_and(|rest| digits(rest, 2))
        })
        .map(str::to_ascii_uppercase)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{LIST, covered, parse};

    #[test]
    fn names_and_comments_of_tests_count_and_nothing_else() {
        let source = "
            // B001 in a comment of no test.
            fn b002_helper() {}
            /// Also B059.
            #[test]
            fn b016_reversed_range_is_refused() {}
            #[test]
            // C19: as found on nodes.
            fn b052_and_c28_old_syntax() {}
            #[test]
            fn c1_1_0_is_no_case() {}
        ";
        let found: Vec<String> = covered(source).into_iter().map(|(id, _)| id).collect();
        assert_eq!(found, ["B016", "B059", "B052", "C19", "C28"]);
    }

    #[test]
    fn the_list_is_whole_and_sorted() {
        let cases = parse(LIST).unwrap();
        assert_eq!(cases.len(), 103);
        assert!(cases.is_sorted_by(|one, other| one.id < other.id));
    }
}
