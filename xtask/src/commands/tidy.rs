//! `cargo xtask tidy`: the rules that a compiler can't hold.

use super::no_more;
use crate::{Result, tidy};

/// Checks every rule and prints all that is wrong.
///
/// # Errors
/// Counts the faults.
pub(super) fn run(arguments: &[String]) -> Result<()> {
    no_more(arguments)?;
    let faults = tidy::faults()?;
    for fault in &faults {
        println!("  {fault}");
    }
    if faults.is_empty() {
        println!("  tidy");
        return Ok(());
    }
    Err(format!("{} faults", faults.len()).into())
}
