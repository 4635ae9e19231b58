//! The page in the documentation.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::{Mutation, Subject, subjects};

/// What `docs/check.md` must hold.
pub fn page() -> String {
    let subjects = subjects();
    let mut page = INTRODUCTION.to_owned();
    matrix(&mut page, &subjects);
    page.push_str(BEARABLE);
    for plugin in plugins(&subjects) {
        let _ = write!(page, "- `{plugin}`");
        let own: Vec<_> = subjects.iter().filter(|one| one.plugin == plugin).collect();
        let plain = own.iter().flat_map(|one| (one.tolerated)());
        let mut words: Vec<_> = plain.map(|one| one.what.to_owned()).collect();
        let chains = own.iter().filter(|one| (one.noticed)().is_empty());
        words.extend(chains.map(|one| one.setting.to_owned()));
        let mut seen = BTreeSet::new();
        words.retain(|word| seen.insert(word.clone()));
        let words = if words.is_empty() { "-".to_owned() } else { words.join("; ") };
        let _ = writeln!(page, ": {words}");
    }
    page.push_str(MTU);
    page.push_str(DETAILS);
    for subject in subjects.iter().filter(|one| !(one.noticed)().is_empty()) {
        details(&mut page, subject);
    }
    page
}

const INTRODUCTION: &str = "\
# What CHECK notices

This page is written by the tests (`cargo xtask docs`), and they fail when it is not as
they are. Each row is tried in a world of its own: attach, CHECK passes, one thing is
removed or altered behind the plugin's back, CHECK of that plugin fails with code 100 and
names the object, DEL succeeds. Code 100 is the first that the specification leaves to
plugins.

`*` stands for a row that is tried on the kernels of the virtual machine (`cargo xtask
vmtest`), since build machines may lack what the plugin needs.

";

const BEARABLE: &str = "
## What CHECK does not mind

Right after ADD nothing is different, for no plugin of the chain. What later plugins of
the chain change, what an observer does, and what others keep beside it is no difference
either:

";

const MTU: &str = "
The MTU of the container's interface is compared where the configuration sets it and the
version is 1.1.0 or newer, since from then on a plugin behind can write down that it
changed it. The Go project's `tuning` changes it and doesn't write it down: where that one
is in the chain, set the MTU there alone.
";

const DETAILS: &str = "
## What it says

The words that an answer must contain; `$HOST` and `$IFB` are the names of the
attachment's interfaces on the host.
";

fn plugins(subjects: &[Subject]) -> Vec<&'static str> {
    let mut plugins: Vec<_> = subjects.iter().map(|one| one.plugin).collect();
    plugins.sort_unstable();
    plugins.dedup();
    plugins
}

fn matrix(page: &mut String, subjects: &[Subject]) {
    let plugins = plugins(subjects);
    let _ = writeln!(page, "| | {} |", plugins.join(" | "));
    let _ = writeln!(page, "|---|{}", "---|".repeat(plugins.len()));
    let mut rows: Vec<&'static str> = Vec::new();
    for mutation in subjects.iter().flat_map(|one| (one.noticed)()) {
        if !rows.contains(&mutation.what) {
            rows.push(mutation.what);
        }
    }
    for row in rows {
        let _ = write!(page, "| {row} |");
        for plugin in &plugins {
            let _ = write!(page, " {} |", cell(subjects, plugin, row));
        }
        page.push('\n');
    }
}

fn cell(subjects: &[Subject], plugin: &str, row: &str) -> &'static str {
    let with = subjects
        .iter()
        .find(|one| one.plugin == plugin && (one.noticed)().iter().any(|row_| row_.what == row));
    match with {
        None => "",
        Some(subject) if subject.needs.is_empty() => "yes",
        Some(_) => "yes*",
    }
}

fn details(page: &mut String, subject: &Subject) {
    let star = if subject.needs.is_empty() { "" } else { " *" };
    let setting = if subject.setting.is_empty() { "as it is" } else { subject.setting };
    let _ = write!(page, "\n### {}: {setting}{star}\n\n", subject.plugin);
    page.push_str("| what is done | what CHECK says |\n|---|---|\n");
    for Mutation { what, says, .. } in (subject.noticed)() {
        let says: Vec<_> = says.iter().map(|word| format!("`{word}`")).collect();
        let _ = writeln!(page, "| {what} | {} |", says.join(", "));
    }
}
