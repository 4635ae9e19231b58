//! The administrator's list of sysctls that may be set: one regular expression
//! a line, which must match somewhere in the key as it is written.

use std::path::Path;

use podwire_spec::error::Error;
use podwire_sys::file::read_bounded;
use regex_lite::Regex;

/// Longer than any such list.
const LIMIT: usize = 1 << 20;

/// Refuses keys that no line matches. Without the file all are allowed.
///
/// # Errors
/// Code 7 that names key and lines; code 5 when the file can't be read.
pub(super) fn admit<'k>(
    path: &Path,
    keys: impl Iterator<Item = &'k str> + Clone,
) -> Result<(), Error> {
    if keys.clone().next().is_none() {
        return Ok(());
    }
    let text = match read_bounded(path, LIMIT) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(error) if error.is_missing() => return Ok(()),
        Err(error) => return Err(Error::io(error.to_string())),
    };
    let patterns = patterns(&text).map_err(|error| error.context(path.display()))?;
    for key in keys {
        if !patterns.iter().any(|(_, pattern)| pattern.is_match(key)) {
            let lines: Vec<_> = patterns.iter().map(|(line, _)| *line).collect();
            return Err(Error::config(format!(
                "Sysctl {key} is not allowed. Only the following sysctls are allowed: {lines:?}"
            ))
            .with_details(format!("the list is {}", path.display())));
        }
    }
    Ok(())
}

fn patterns(text: &str) -> Result<Vec<(&str, Regex)>, Error> {
    let lines = text.lines().map(str::trim).enumerate().filter(|(_, line)| !line.is_empty());
    lines
        .map(|(at, line)| match Regex::new(line) {
            Ok(pattern) => Ok((line, pattern)),
            Err(error) => Err(Error::config(format!("line {}, {line:?}: {error}", at + 1))),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admits(list: Option<&str>, key: &str) -> Result<(), Error> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("allowlist.conf");
        if let Some(list) = list {
            std::fs::write(&path, list).unwrap();
        }
        admit(&path, [key].into_iter())
    }

    #[test]
    fn without_a_file_all_are_allowed_and_with_an_empty_one_none() {
        assert!(admits(None, "net.ipv4.ip_forward").is_ok());
        assert!(admits(Some("\n \n"), "net.ipv4.ip_forward").is_err());
    }

    #[test]
    fn lines_match_anywhere_in_the_key_as_written() {
        let list = "^net\\.ipv4\\.conf\\.IFNAME\\.[a-z_]*$\r\n\n  somaxconn  \n";
        assert!(admits(Some(list), "net.ipv4.conf.IFNAME.log_martians").is_ok());
        assert!(admits(Some(list), "net.core.somaxconn").is_ok());
        let error = admits(Some(list), "net/ipv4/conf/IFNAME/log_martians").unwrap_err();
        assert!(error.msg.starts_with("Sysctl net/ipv4/conf/IFNAME/log_martians is not allowed."));
        assert!(error.msg.contains("\"somaxconn\""), "{error}");
    }

    #[test]
    fn a_line_that_is_no_expression_is_named() {
        let error = admits(Some("net\n(\n"), "net.x").unwrap_err();
        assert!(error.msg.contains("line 2") && error.msg.contains("\"(\""), "{error}");
    }
}
