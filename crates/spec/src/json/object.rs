//! One JSON object, borrowed from its text.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::syntax::{self, SyntaxError};
use super::value::{Integer, Kind, Value};
use crate::error::Error;

/// One JSON object whose values are still text, in the order they were
/// written.
#[derive(Debug, Clone)]
pub struct Object<'a> {
    text: &'a str,
    path: String,
    members: Vec<Member<'a>>,
}

/// A key and its value.
#[derive(Debug, Clone)]
struct Member<'a> {
    key: Cow<'a, str>,
    value: &'a str,
}

impl<'a> Object<'a> {
    /// Reads a document that is one object.
    ///
    /// # Errors
    /// Code 6 with line, column and, for the usual mistakes (comments, a comma
    /// too many, a byte order mark, text after the object), what it is.
    pub fn parse(text: &'a str) -> Result<Self, Error> {
        Self::parse_document(text).map_err(Error::from)
    }

    /// As [`Object::parse`], with the position of the mistake as numbers.
    pub fn parse_document(text: &'a str) -> Result<Self, SyntaxError> {
        if syntax::is_too_deep(text) {
            return Err(SyntaxError::too_deep(text));
        }
        let trimmed = text.trim_start_matches([' ', '\t', '\r', '\n']);
        if !trimmed.starts_with('{') {
            return Err(SyntaxError::not_an_object(text));
        }
        let Members(members) =
            serde_json::from_str(text).map_err(|error| SyntaxError::diagnose(text, &error))?;
        Ok(Self { text: trimmed, path: String::new(), members })
    }

    /// Reads an object that is part of a document already found to be JSON.
    pub(super) fn parse_part(text: &'a str, path: String) -> Option<Self> {
        let Members(members) = serde_json::from_str(text).ok()?;
        Some(Self { text, path, members })
    }

    /// The text the object was read from.
    pub fn text(&self) -> &'a str {
        self.text
    }

    /// Where in the document the object stands, as `ipam.ranges[0]`; empty for
    /// the document itself.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The same object with another path, for one that its owner knows to be
    /// part of a larger document.
    #[must_use]
    pub fn with_path(mut self, path: impl Into<String>) -> Self {
        self.path = path.into();
        self
    }

    /// Whether it has no entries.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// Keys and values as written, equal keys and `null` included.
    pub fn members(&self) -> impl Iterator<Item = (&str, &'a str)> {
        self.members.iter().map(|member| (member.key.as_ref(), member.value))
    }

    /// The same to be decoded. For who wants all of them: asking for each by its key is
    /// a search each time.
    pub fn values(&self) -> impl Iterator<Item = (&str, Value<'a>)> {
        self.members().map(|(key, text)| (key, Value::new(text, self.path_of(key))))
    }

    /// The value of the last entry with this key, compared without regard to
    /// ASCII case; `null` counts as absent.
    pub fn get(&self, key: &str) -> Option<Value<'a>> {
        self.raw(key)
            .filter(|text| Kind::of(text) != Kind::Null)
            .map(|text| Value::new(text, self.path_of(key)))
    }

    /// The text of the last entry with this key, compared without regard to
    /// ASCII case, `null` included.
    pub fn raw(&self, key: &str) -> Option<&'a str> {
        let mut entries = self.members.iter().rev();
        entries.find(|member| member.key.eq_ignore_ascii_case(key)).map(|member| member.value)
    }

    /// The text of the last entry with exactly this key, `null` included.
    pub fn raw_exact(&self, key: &str) -> Option<&'a str> {
        self.members.iter().rev().find(|member| member.key == key).map(|member| member.value)
    }

    /// The value of the last entry with exactly this key; `null` counts as
    /// absent.
    pub fn get_exact(&self, key: &str) -> Option<Value<'a>> {
        self.raw_exact(key)
            .filter(|text| Kind::of(text) != Kind::Null)
            .map(|text| Value::new(text, self.path_of(key)))
    }

    /// The path of one of the object's keys.
    pub fn path_of(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    /// A string.
    ///
    /// # Errors
    /// Code 6, naming path, value and type wanted, as all getters.
    pub fn string(&self, key: &str) -> Result<Option<Cow<'a, str>>, Error> {
        self.get(key).map(|value| value.string()).transpose()
    }

    /// A string that says something: empty counts as absent.
    pub fn text_of(&self, key: &str) -> Result<Option<Cow<'a, str>>, Error> {
        Ok(self.string(key)?.filter(|text| !text.is_empty()))
    }

    /// A string in a form that `T` reads; empty counts as absent. `wanted`
    /// names that form in the error, as `an IP address`.
    pub fn parsed<T: std::str::FromStr>(
        &self,
        key: &str,
        wanted: &str,
    ) -> Result<Option<T>, Error> {
        let Some(value) = self.get(key) else { return Ok(None) };
        let text = value.string()?;
        if text.is_empty() {
            return Ok(None);
        }
        text.parse().map(Some).map_err(|_| value.mismatch(wanted))
    }

    /// `true` or `false`.
    pub fn boolean(&self, key: &str) -> Result<Option<bool>, Error> {
        self.get(key).map(|value| value.boolean()).transpose()
    }

    /// `true`, `false`, or the strings of these in any case.
    pub fn lenient_boolean(&self, key: &str) -> Result<Option<bool>, Error> {
        self.get(key).map(|value| value.lenient_boolean()).transpose()
    }

    /// A whole number that fits `T`.
    pub fn integer<T: Integer>(&self, key: &str) -> Result<Option<T>, Error> {
        self.get(key).map(|value| value.integer()).transpose()
    }

    /// A whole number from 0.
    pub fn unsigned(&self, key: &str) -> Result<Option<u64>, Error> {
        self.integer(key)
    }

    /// A whole number.
    pub fn signed(&self, key: &str) -> Result<Option<i64>, Error> {
        self.integer(key)
    }

    /// An object.
    pub fn object(&self, key: &str) -> Result<Option<Object<'a>>, Error> {
        self.get(key).map(|value| value.object()).transpose()
    }

    /// The elements of an array; empty when the key is absent.
    pub fn array(&self, key: &str) -> Result<Vec<Value<'a>>, Error> {
        self.get(key).map_or(Ok(Vec::new()), |value| value.array())
    }

    /// An array of strings, `null` elements left out.
    pub fn string_array(&self, key: &str) -> Result<Vec<String>, Error> {
        let elements = self.array(key)?;
        let present = elements.iter().filter(|element| !element.is_null());
        present.map(|element| element.string().map(Cow::into_owned)).collect()
    }

    /// An object whose values are strings, `null` values left out.
    pub fn string_map(&self, key: &str) -> Result<BTreeMap<String, String>, Error> {
        self.map_of(key, |value| value.string().map(Cow::into_owned))
    }

    /// An object whose values are `true` or `false`, `null` values left out.
    pub fn boolean_map(&self, key: &str) -> Result<BTreeMap<String, bool>, Error> {
        self.map_of(key, Value::boolean)
    }

    fn map_of<T>(
        &self,
        key: &str,
        decode: impl Fn(&Value<'a>) -> Result<T, Error>,
    ) -> Result<BTreeMap<String, T>, Error> {
        let Some(object) = self.object(key)? else { return Ok(BTreeMap::new()) };
        let mut map = BTreeMap::new();
        for (name, value) in object.values() {
            if !value.is_null() {
                map.insert(name.to_owned(), decode(&value)?);
            }
        }
        Ok(map)
    }
}

/// The entries of an object, as serde hands them over.
struct Members<'a>(Vec<Member<'a>>);

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(MembersVisitor)
    }
}

struct MembersVisitor;

impl<'de> Visitor<'de> for MembersVisitor {
    type Value = Members<'de>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Vec::with_capacity(8);
        while let Some(key) = map.next_key::<Key<'de>>()? {
            let value = map.next_value::<&'de RawValue>()?;
            members.push(Member { key: key.0, value: value.get() });
        }
        Ok(Members(members))
    }
}

/// A key, borrowed when it holds no escapes.
struct Key<'a>(Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Key<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(KeyVisitor)
    }
}

struct KeyVisitor;

impl<'de> Visitor<'de> for KeyVisitor {
    type Value = Key<'de>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a key")
    }

    fn visit_borrowed_str<E>(self, key: &'de str) -> Result<Self::Value, E> {
        Ok(Key(Cow::Borrowed(key)))
    }

    fn visit_str<E>(self, key: &str) -> Result<Self::Value, E> {
        Ok(Key(Cow::Owned(key.to_owned())))
    }
}

/// Decodes a JSON string literal; used by [`Value`].
pub(super) fn unescape(text: &str) -> Option<Cow<'_, str>> {
    serde_json::from_str::<Key<'_>>(text).ok().map(|key| key.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_match_without_case_and_the_last_one_counts() {
        let object = Object::parse(r#" {"name":"a","NAME":"b","x":null,"X\u0079":1} "#).unwrap();
        assert_eq!(object.string("Name").unwrap().unwrap(), "b");
        assert!(object.get("x").is_none());
        assert_eq!(object.raw("x"), Some("null"));
        assert_eq!(object.unsigned("xy").unwrap(), Some(1));
        assert_eq!(object.raw_exact("name"), Some("\"a\""));
        assert_eq!(object.members().count(), 4);
    }

    #[test]
    fn c23_errors_name_path_value_and_type() {
        let text = r#"{"mtu":"1400","isGateway":"true","ipam":{"ranges":[[{"subnet":7}]]},"n":-1,
                       "f":1.0,"b":{"x":1},"long":[1111111111,2222222222,3333333333,4444444444,5555555555,6666666666]}"#;
        let object = Object::parse(text).unwrap();
        let message = |error: Error| {
            assert_eq!(error.code.number(), 6);
            error.msg
        };
        assert_eq!(
            message(object.integer::<u32>("mtu").unwrap_err()),
            "mtu: expected a whole number from 0 to 4294967295, found \"1400\""
        );
        assert_eq!(
            message(object.boolean("isGateway").unwrap_err()),
            "isGateway: expected true or false, found \"true\""
        );
        assert_eq!(object.lenient_boolean("isGateway").unwrap(), Some(true));
        let ranges = object.object("ipam").unwrap().unwrap().array("ranges").unwrap();
        let range = ranges[0].array().unwrap()[0].object().unwrap();
        assert_eq!(
            message(range.string("subnet").unwrap_err()),
            "ipam.ranges[0][0].subnet: expected a string, found 7"
        );
        assert!(message(object.unsigned("n").unwrap_err()).ends_with("found -1"));
        assert!(message(object.signed("f").unwrap_err()).ends_with("found 1.0"));
        assert_eq!(
            message(object.boolean_map("b").unwrap_err()),
            "b.x: expected true or false, found 1"
        );
        assert!(message(object.string("long").unwrap_err()).ends_with('…'));
    }

    #[test]
    fn collections_leave_null_out() {
        let object =
            Object::parse(r#"{"s":["a",null,"b"],"m":{"k":"v","n":null},"b":{"x":true}}"#).unwrap();
        assert_eq!(object.string_array("s").unwrap(), ["a", "b"]);
        assert_eq!(object.string_map("m").unwrap(), [("k".into(), "v".into())].into());
        assert_eq!(object.boolean_map("b").unwrap(), [("x".into(), true)].into());
        assert!(object.string_array("absent").unwrap().is_empty());
    }

    #[test]
    fn strings_in_a_form_are_read_or_named() {
        let object = Object::parse(r#"{"a":"10.0.0.1","b":"","c":"10.0.0"}"#).unwrap();
        let address = |key| object.parsed::<std::net::IpAddr>(key, "an IP address");
        assert_eq!(address("a").unwrap().unwrap().to_string(), "10.0.0.1");
        assert_eq!(address("b").unwrap(), None);
        assert_eq!(address("c").unwrap_err().msg, "c: expected an IP address, found \"10.0.0\"");
    }
}
