//! Doubts about a configuration that loads: what its writer most likely meant
//! otherwise. Nothing here is an error, and nothing here is about the keys of
//! a plugin, which only that plugin knows.

use crate::json::{Object, Position, decode_text};

/// The keys of a list.
const LIST_KEYS: [&str; 7] = [
    "cniVersion",
    "cniVersions",
    "name",
    "disableCheck",
    "disableGC",
    "loadOnlyInlinedPlugins",
    "plugins",
];

/// The most doubts reported about one text; each costs a look through it.
const FINDINGS_LIMIT: usize = 100;

/// One doubt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Where in the text; `None` if it is about something that isn't there.
    pub position: Option<Position>,
    /// The key it is about, with its path.
    pub path: String,
    /// What looks wrong.
    pub message: String,
    /// What to do.
    pub hint: String,
}

/// Looks through a list or a single plugin configuration. Empty for what isn't
/// JSON: loading says that better.
pub fn check(bytes: &[u8]) -> Vec<Finding> {
    let Ok(text) = decode_text(bytes) else { return Vec::new() };
    let Ok(object) = Object::parse(&text) else { return Vec::new() };
    let mut findings = Vec::new();
    if object.get("plugins").is_some() {
        check_list_keys(&text, &object, &mut findings);
        for (index, value) in object.array("plugins").unwrap_or_default().iter().enumerate() {
            if let Ok(plugin) = value.object() {
                check_reserved_keys(
                    &text,
                    &plugin.with_path(format!("plugins[{index}]")),
                    &mut findings,
                );
            }
        }
    } else {
        check_reserved_keys(&text, &object, &mut findings);
    }
    check_version(&text, &object, &mut findings);
    check_placeholders(&text, &mut findings);
    findings.sort_by_key(|finding| finding.position);
    findings
}

fn check_list_keys(text: &str, object: &Object<'_>, findings: &mut Vec<Finding>) {
    for (key, value) in object.members().filter(|(key, _)| !LIST_KEYS.contains(key)) {
        if findings.len() == FINDINGS_LIMIT {
            return;
        }
        let other_case = LIST_KEYS.into_iter().find(|known| known.eq_ignore_ascii_case(key));
        let (known, message) = match other_case {
            Some(known) => (known, "the keys of a list keep their case; this one is ignored"),
            None => match nearest(key, &LIST_KEYS) {
                Some(known) => (known, "unknown key; it is ignored"),
                None => continue,
            },
        };
        findings.push(Finding {
            position: Position::of(text, value),
            path: key.to_owned(),
            message: message.to_owned(),
            hint: format!("did you mean {known}?"),
        });
    }
}

/// Keys of a plugin that a runtime writes, and that in a file are ignored or
/// misunderstood.
fn check_reserved_keys(text: &str, object: &Object<'_>, findings: &mut Vec<Finding>) {
    for (key, value) in object.members() {
        let reserved =
            ["runtimeConfig", "prevResult"].contains(&key) || key.starts_with("cni.dev/");
        if reserved && findings.len() < FINDINGS_LIMIT {
            findings.push(Finding {
                position: Position::of(text, value),
                path: object.path_of(key),
                message: "this key is for the runtime to write".to_owned(),
                hint: "remove it".to_owned(),
            });
        }
    }
}

fn check_version(text: &str, object: &Object<'_>, findings: &mut Vec<Finding>) {
    if object.get("cniVersion").is_some() || object.get("cniVersions").is_some() {
        return;
    }
    let instead = object.get("version");
    findings.push(Finding {
        position: instead.as_ref().and_then(|value| Position::of(text, value.text())),
        path: if instead.is_some() { "version" } else { "cniVersion" }.to_owned(),
        message: "there is no cniVersion, so this counts as 0.1.0".to_owned(),
        hint: if instead.is_some() {
            "did you mean cniVersion?".to_owned()
        } else {
            "write \"cniVersion\": \"1.1.0\", or 1.0.0 for containerd 1.x".to_owned()
        },
    });
}

/// `__UPPER__` as an installer leaves it that failed to fill in its template.
fn check_placeholders(text: &str, findings: &mut Vec<Finding>) {
    let mut rest = text;
    while findings.len() < FINDINGS_LIMIT {
        let Some(start) = rest.find("__") else { return };
        let after = rest.get(start + 2..).unwrap_or_default();
        let name: &str = after
            .find(|letter: char| {
                !letter.is_ascii_uppercase() && !letter.is_ascii_digit() && letter != '_'
            })
            .map_or(after, |end| after.get(..end).unwrap_or_default());
        let inner = name.trim_end_matches('_');
        if !inner.is_empty() && name.len() >= inner.len() + 2 {
            let whole = rest.get(start..start + 4 + inner.len()).unwrap_or_default();
            findings.push(Finding {
                position: Position::of(text, whole),
                path: whole.to_owned(),
                message: format!("{whole} looks like a placeholder that was never filled in"),
                hint: "put the value in its place".to_owned(),
            });
        }
        rest = after.get(name.len()..).unwrap_or_default();
    }
}

/// The known key that an unknown one was most likely meant to be: the first
/// that differs from it by at most two letters.
pub fn nearest<'a>(key: &str, known: &'a [&'a str]) -> Option<&'a str> {
    known.iter().copied().find(|known| is_near(known, key))
}

/// Whether two keys differ by at most two letters added, left out or changed,
/// but for case. Only for keys long enough that this is no coincidence.
fn is_near(known: &str, key: &str) -> bool {
    const FEWEST_LETTERS: usize = 5;
    const MOST_LETTERS: usize = 32;
    let length = key.chars().count();
    if !(FEWEST_LETTERS..=MOST_LETTERS).contains(&length) || known.len() < FEWEST_LETTERS {
        return false;
    }
    // Levenshtein's distance, row by row.
    let key: Vec<char> = key.to_lowercase().chars().collect();
    let mut row: Vec<usize> = (0..=key.len()).collect();
    for (index, letter) in known.to_lowercase().chars().enumerate() {
        let mut diagonal = index;
        let mut left = index + 1;
        if let Some(first) = row.first_mut() {
            *first = left;
        }
        for (other, above) in key.iter().zip(row.iter_mut().skip(1)) {
            let changed = diagonal + usize::from(*other != letter);
            diagonal = *above;
            left = changed.min(*above + 1).min(left + 1);
            *above = left;
        }
    }
    row.last().is_some_and(|distance| *distance <= 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<(String, String)> {
        check(text.as_bytes()).into_iter().map(|finding| (finding.path, finding.hint)).collect()
    }

    #[test]
    fn c17_version_is_taken_for_what_it_was_meant() {
        assert_eq!(
            found(r#"{"version":"0.3.0","type":"bridge"}"#),
            [("version".into(), "did you mean cniVersion?".into())]
        );
        assert_eq!(found(r#"{"type":"bridge"}"#)[0].0, "cniVersion");
        assert!(found(r#"{"CNIVersion":"1.0.0","version":"x","type":"bridge"}"#).is_empty());
    }

    #[test]
    fn b118_keys_near_a_known_one_are_pointed_out() {
        let text = r#"{"cniVersion":"1.0.0","name":"a","plugins":[],"DisableCheck":true,
            "disabelGC":true,"cniversoin":1,"nerdctlID":"x","adapterName":"","args":{},"nam":1}"#;
        assert_eq!(nearest("route", &["subnet", "routes"]), Some("routes"));
        assert_eq!(
            found(text),
            [
                ("DisableCheck".into(), "did you mean disableCheck?".into()),
                ("disabelGC".into(), "did you mean disableGC?".into()),
                ("cniversoin".into(), "did you mean cniVersion?".into()),
            ]
        );
    }

    #[test]
    fn c05_placeholders_left_by_an_installer() {
        let text = include_str!("../tests/data/c05.json");
        let paths: Vec<_> = found(text).into_iter().map(|(path, _)| path).collect();
        assert_eq!(paths, ["__VETHPREFIX__", "__MTU__"]);
        assert!(
            found(r#"{"cniVersion":"1.0.0","a":"__init__","b":"____","c":"__X","d":"a__B"}"#)
                .is_empty()
        );
        assert_eq!(found("{\"cniVersion\":\"1.0.0\",\"a\":\"__A_B____C__\"}").len(), 1);
    }

    #[test]
    fn keys_of_the_runtime_have_no_place_in_a_file() {
        let text = r#"{"cniVersion":"1.0.0","name":"a","plugins":[{"type":"x"},
            {"type":"y","runtimeConfig":{},"cni.dev/valid-attachments":[]}]}"#;
        let findings = check(text.as_bytes());
        assert_eq!(findings.len(), 2);
        assert_eq!(findings[0].path, "plugins[1].runtimeConfig");
        assert_eq!(findings[0].position, Some(Position { line: 2, column: 41 }));
    }

    #[test]
    fn good_files_and_broken_ones_raise_no_doubt() {
        assert!(found(include_str!("../tests/data/c01.json")).is_empty());
        assert!(found(include_str!("../tests/data/c10.json")).is_empty());
        assert!(found("{").is_empty());
        let many = format!("{{\"cniVersion\":\"1.0.0\",\"a\":\"{}\"}}", "__A__ ".repeat(1000));
        assert_eq!(found(&many).len(), FINDINGS_LIMIT);
    }
}
