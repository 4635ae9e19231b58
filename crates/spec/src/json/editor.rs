//! An object rebuilt with other entries.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::object::Object;
use super::writer::{append_compact, quote};

/// The entries of an object, to be set, removed and printed again: sorted by
/// key, white space removed, values exactly as they were.
///
/// Equal keys become one, the last. Setting or removing a key also removes
/// those that differ from it only in case, since a reader that ignores case
/// could otherwise see the old value.
#[derive(Debug, Clone, Default)]
pub struct Editor<'a> {
    entries: BTreeMap<Cow<'a, str>, Cow<'a, str>>,
}

impl<'a> Editor<'a> {
    /// Starts from an object.
    pub fn new(object: &'a Object<'_>) -> Self {
        let entries = object.members().map(|(key, value)| (key.into(), value.into())).collect();
        Self { entries }
    }

    /// Starts from nothing.
    pub fn empty() -> Self {
        Self::default()
    }

    /// Sets a key to a value that is JSON already.
    pub fn set_raw(&mut self, key: impl Into<Cow<'a, str>>, json: impl Into<Cow<'a, str>>) {
        let key = key.into();
        self.remove(&key);
        self.entries.insert(key, json.into());
    }

    /// Sets a key to a value that is JSON already, and leaves those alone that
    /// differ from it in case: for maps whose keys are data.
    pub fn insert_exact(&mut self, key: impl Into<Cow<'a, str>>, json: impl Into<Cow<'a, str>>) {
        self.entries.insert(key.into(), json.into());
    }

    /// Sets a key to a string.
    pub fn set_string(&mut self, key: impl Into<Cow<'a, str>>, value: &str) {
        let mut text = String::with_capacity(value.len() + 2);
        quote(&mut text, value);
        self.set_raw(key, text);
    }

    /// Removes a key in any case.
    pub fn remove(&mut self, key: &str) {
        self.entries.retain(|present, _| !present.eq_ignore_ascii_case(key));
    }

    /// Removes the keys a function picks.
    pub fn remove_where(&mut self, picks: impl Fn(&str) -> bool) {
        self.entries.retain(|present, _| !picks(present));
    }

    /// The object as text.
    pub fn finish(&self) -> String {
        let mut text = String::with_capacity(512);
        text.push('{');
        for (key, value) in &self.entries {
            if text.len() > 1 {
                text.push(',');
            }
            quote(&mut text, key);
            text.push(':');
            append_compact(&mut text, value);
        }
        text.push('}');
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c25_values_pass_exactly_and_keys_are_sorted() {
        let text = r#"{"id":18446744073709551615,"neg":-9223372036854775808,"f":1.10,"e":1e3,
            "deep":{"x":[{"y":null}]},"uni":"\u00e9\ud83d\ude00","empty":{},"dup":1,"dup":2}"#;
        let object = Object::parse(text).unwrap();
        assert_eq!(
            Editor::new(&object).finish(),
            r#"{"deep":{"x":[{"y":null}]},"dup":2,"e":1e3,"empty":{},"f":1.10,"id":18446744073709551615,"neg":-9223372036854775808,"uni":"\u00e9\ud83d\ude00"}"#
        );
    }

    #[test]
    fn setting_a_key_replaces_it_in_every_case() {
        let object = Object::parse(r#"{"CNIVersion":"1.0.0","cniversion":"0.1.0","a":1}"#).unwrap();
        let mut editor = Editor::new(&object);
        editor.set_string("cniVersion", "1.1.0");
        editor.remove("A");
        editor.set_raw("b", "[ 1, 2 ]");
        assert_eq!(editor.finish(), r#"{"b":[1,2],"cniVersion":"1.1.0"}"#);
        editor.remove_where(|key| key.starts_with('b') || key == "cniVersion");
        assert_eq!(editor.finish(), "{}");
    }
}
