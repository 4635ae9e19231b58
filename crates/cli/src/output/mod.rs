//! What is shown, and how: results and lists on standard output, everything
//! else on standard error; colour only on a terminal.

mod report;
mod table;
mod watcher;

use std::io::Write as _;

pub(crate) use report::{plugin_failure, report, warn};
pub(crate) use table::Table;
pub(crate) use watcher::Watcher;

use crate::failure::Failure;

/// Writes text to standard output, with a line end after it. Nobody reading
/// (a closed pipe) is no failure.
///
/// # Errors
/// If it can't be written, as to a full disk.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut stdout = anstream::stdout().lock();
    let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    match write!(stdout, "{text}{end}").and_then(|()| stdout.flush()) {
        Err(source) if source.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Failure::System { action: "writing to", path: "standard output".into(), source })
        }
        _ => Ok(()),
    }
}

/// Text on one line that can't move the cursor of a terminal, whatever a file
/// or a plugin put into it: control characters are shown escaped.
pub(crate) fn harmless(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for letter in text.chars() {
        if letter.is_control() {
            shown.extend(letter.escape_debug());
        } else {
            shown.push(letter);
        }
    }
    shown
}
