//! The programs built a second time, elsewhere: the same sources must give the same
//! bytes, wherever the checkout and cargo's folder lie.

use std::path::Path;

use crate::process::{run, this_program};
use crate::{Result, workspace};

/// Builds in a copy of the checkout, without anything that was compiled before, and
/// compares with what is in `target/dist`.
///
/// # Errors
/// When the build fails, or a program differs.
pub(super) fn compare() -> Result<()> {
    let place = std::env::temp_dir().join(format!("podwire-again-{}", std::process::id()));
    let outcome = copy(&place).and_then(|()| build(&place));
    let differing = outcome.and_then(|()| differing(&workspace::dist(), &place.join("out/dist")));
    std::fs::remove_dir_all(&place)?;
    match differing? {
        names if names.is_empty() => Ok(()),
        names => {
            Err(format!("built again in {}, differs: {}", place.display(), names.join(", ")).into())
        }
    }
}

/// Copies what belongs to the project.
fn copy(place: &Path) -> Result<()> {
    let root = workspace::root();
    for file in workspace::files()? {
        let to = place.join(&file);
        if let Some(folder) = to.parent() {
            std::fs::create_dir_all(folder)?;
        }
        std::fs::copy(root.join(&file), &to)?;
    }
    Ok(())
}

/// `cargo xtask build` there.
fn build(place: &Path) -> Result<()> {
    let mut again = this_program();
    again.arg("build").current_dir(place);
    again.env("CARGO_MANIFEST_DIR", place.join("xtask"));
    again.env("CARGO_TARGET_DIR", place.join("out"));
    run(&mut again)
}

/// Names of the programs that aren't the same, or not in both.
fn differing(one: &Path, other: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for name in ["podwire", "podwire-cni"] {
        let [one, other] = [one, other].map(|folder| std::fs::read(folder.join(name)));
        if one? != other? {
            names.push(name.to_owned());
        }
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_differs_is_named_and_one_that_lacks_is_an_error() {
        let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        for name in ["podwire", "podwire-cni"] {
            std::fs::write(one.path().join(name), name).unwrap();
            std::fs::write(other.path().join(name), name).unwrap();
        }
        let compare = || differing(one.path(), other.path());
        assert!(compare().unwrap().is_empty());
        std::fs::write(other.path().join("podwire-cni"), "otherwise").unwrap();
        assert_eq!(compare().unwrap(), ["podwire-cni"]);
        std::fs::remove_file(other.path().join("podwire")).unwrap();
        assert!(compare().is_err());
    }
}
