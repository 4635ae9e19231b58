//! Rules about the project as a whole, one file per kind of rule.

mod architecture;
mod dependencies;
mod security;
mod text;

use crate::{Result, workspace};

/// Everything that breaks a rule, a line each.
///
/// # Errors
/// When the project can't be read.
pub(crate) fn faults() -> Result<Vec<String>> {
    let root = workspace::root();
    let files = workspace::files()?;
    let mut faults = text::faults(&root, &files)?;
    faults.extend(architecture::faults(&root, &files)?);
    faults.extend(security::faults(&root, &files)?);
    faults.extend(dependencies::faults()?);
    Ok(faults)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_project_is_tidy() {
        let faults = super::faults().unwrap();
        assert!(faults.is_empty(), "{}", faults.join("\n"));
    }
}
