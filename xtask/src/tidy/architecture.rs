//! ARCHITECTURE.md names every folder, so that a newcomer finds each explained.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::Result;

/// Folders that ARCHITECTURE.md doesn't name. A folder inside a crate may
/// instead be a module that begins with its purpose.
///
/// # Errors
/// When ARCHITECTURE.md can't be read.
pub(super) fn faults(root: &Path, files: &[PathBuf]) -> Result<Vec<String>> {
    let page = std::fs::read_to_string(root.join("ARCHITECTURE.md"))?;
    Ok(folders(files)
        .into_iter()
        .filter(|folder| !page.contains(&format!("`{folder}/`")))
        .filter(|folder| !explains_itself(&root.join(folder)))
        .map(|folder| format!("ARCHITECTURE.md doesn't name `{folder}/`"))
        .collect())
}

/// Whether a folder's module, in `folder.rs` or `folder/mod.rs`, begins with
/// documentation.
fn explains_itself(folder: &Path) -> bool {
    [folder.with_extension("rs"), folder.join("mod.rs")]
        .iter()
        .any(|module| std::fs::read_to_string(module).is_ok_and(|text| text.starts_with("//!")))
}

/// Top-level folders, crates, and the folders right under a crate's `src`.
fn folders(files: &[PathBuf]) -> BTreeSet<String> {
    let mut folders = BTreeSet::new();
    for file in files {
        let parts: Vec<&str> = file.iter().filter_map(|part| part.to_str()).collect();
        match parts.as_slice() {
            ["crates", name, "src", inner, _, ..] => {
                folders.insert(format!("crates/{name}"));
                folders.insert(format!("crates/{name}/src/{inner}"));
            }
            ["crates", name, _, ..] => {
                folders.insert(format!("crates/{name}"));
            }
            [top, _, ..] => {
                folders.insert((*top).to_owned());
            }
            _ => {}
        }
    }
    folders
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::{explains_itself, folders};

    #[test]
    fn crates_and_their_source_folders_count() {
        let files = [
            "README.md",
            ".ci/run",
            "crates/a/src/b/c.rs",
            "crates/a/src/bin/a.rs",
            "tests/x/y.rs",
        ];
        let found = folders(&files.map(PathBuf::from));
        let found: Vec<&str> = found.iter().map(String::as_str).collect();
        assert_eq!(found, [".ci", "crates/a", "crates/a/src/b", "crates/a/src/bin", "tests"]);
    }

    #[test]
    fn a_module_with_documentation_explains_itself() {
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        assert!(explains_itself(&sources.join("tidy")));
        assert!(!explains_itself(&sources));
    }
}
