//! Finds the place of a key that is named by its path, as `plugins[1].type`.

use podwire_spec::json::{Object, Value};

/// The path of a key in this very file, and the text of its value; of the
/// nearest object around it if it isn't there. A file with a single plugin has
/// no `plugins`: what is said of the first one is about the whole.
pub(super) fn find<'a>(document: &Object<'a>, path: &str) -> Option<(String, &'a str)> {
    let path = match path.strip_prefix("plugins[0].") {
        Some(rest) if document.get_exact("plugins").is_none() => rest,
        _ => path,
    };
    let mut object = document.clone();
    let mut part = document.text();
    let mut rest = path;
    while !rest.is_empty() {
        // A key may hold dots itself: the longest that is there counts.
        let ends = rest.match_indices(['.', '[']).map(|(end, _)| end).chain([rest.len()]);
        let there = ends.collect::<Vec<_>>().into_iter().rev().find_map(|end| {
            let (key, tail) = rest.split_at_checked(end)?;
            Some((object.get(key)?, tail))
        });
        let Some((value, tail)) = there else { break };
        let (value, tail) = elements(value, tail)?;
        part = value.text();
        rest = tail.strip_prefix('.').unwrap_or(tail);
        let Ok(next) = value.object() else { break };
        object = next;
    }
    Some((path.to_owned(), part))
}

/// Follows the indexes at the start of `path`; `None` if there is no such
/// element: it came from another file.
fn elements<'a, 'b>(mut value: Value<'a>, mut path: &'b str) -> Option<(Value<'a>, &'b str)> {
    while let Some((index, tail)) = path.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        value = value.array().ok()?.into_iter().nth(index.parse().ok()?)?;
        path = tail;
    }
    Some((value, path))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = r#"{"name":"n","plugins":[{"type":"a"},
        {"type":"b","capabilities":{"io.k8s.x":true},"ipam":{"ranges":[[{"subnet":"s"}]]}}]}"#;

    #[test]
    fn keys_are_found_by_their_path() {
        let object = Object::parse(LIST).unwrap();
        for (path, text) in [
            ("name", r#""n""#),
            ("plugins[1].type", r#""b""#),
            ("plugins[1].capabilities.io.k8s.x", "true"),
            ("plugins[1].ipam.ranges[0][0].subnet", r#""s""#),
            ("plugins[0].ipam.type", r#"{"type":"a"}"#),
            ("", LIST),
        ] {
            assert_eq!(find(&object, path), Some((path.to_owned(), text)), "{path}");
        }
        for path in ["plugins[7].type", "plugins[1].ipam.ranges[0][9]", "plugins[x].type"] {
            assert_eq!(find(&object, path), None, "{path}");
        }
    }

    #[test]
    fn a_single_plugin_is_the_whole_file() {
        let object = Object::parse(r#"{"type":"a"}"#).unwrap();
        assert_eq!(find(&object, "plugins[0].type"), Some(("type".to_owned(), r#""a""#)));
    }
}
