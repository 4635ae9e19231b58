//! One JSON value, still text, and where it stands.

use std::borrow::Cow;
use std::str::FromStr;

use serde::de::{Deserializer, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::object::{Object, unescape};
use crate::error::Error;

/// The type of a JSON value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// `null`
    Null,
    /// `true` or `false`
    Boolean,
    /// A number.
    Number,
    /// A string.
    String,
    /// An array.
    Array,
    /// An object.
    Object,
}

impl Kind {
    /// The type in words, with its article.
    pub const fn in_words(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Boolean => "true or false",
            Self::Number => "a number",
            Self::String => "a string",
            Self::Array => "an array",
            Self::Object => "an object",
        }
    }

    /// The type of a value's text, by its first letter.
    pub fn of(text: &str) -> Self {
        match text.trim_start().as_bytes().first() {
            Some(b'{') => Self::Object,
            Some(b'[') => Self::Array,
            Some(b'"') => Self::String,
            Some(b't' | b'f') => Self::Boolean,
            Some(b'n') | None => Self::Null,
            Some(_) => Self::Number,
        }
    }
}

/// One JSON value of a document.
#[derive(Debug, Clone)]
pub struct Value<'a> {
    text: &'a str,
    path: String,
}

impl<'a> Value<'a> {
    pub(super) fn new(text: &'a str, path: String) -> Self {
        Self { text, path }
    }

    /// The value as written.
    pub fn text(&self) -> &'a str {
        self.text
    }

    /// Where it stands, as `ipam.ranges[0][1].subnet`.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Its type.
    pub fn kind(&self) -> Kind {
        Kind::of(self.text)
    }

    /// Whether it is `null`.
    pub fn is_null(&self) -> bool {
        self.kind() == Kind::Null
    }

    /// A string.
    ///
    /// # Errors
    /// Code 6, naming path, value and type wanted, as all of these.
    pub fn string(&self) -> Result<Cow<'a, str>, Error> {
        decode_string(self.text).ok_or_else(|| self.mismatch("a string"))
    }

    /// `true` or `false`.
    pub fn boolean(&self) -> Result<bool, Error> {
        match self.text {
            "true" => Ok(true),
            "false" => Ok(false),
            _ => Err(self.mismatch("true or false")),
        }
    }

    /// `true`, `false`, or the strings of these in any case, as the runtime
    /// keys `disableCheck` and its like have been written.
    pub fn lenient_boolean(&self) -> Result<bool, Error> {
        let text = decode_string(self.text).unwrap_or(Cow::Borrowed(self.text));
        if text.eq_ignore_ascii_case("true") && self.kind() != Kind::Null {
            Ok(true)
        } else if text.eq_ignore_ascii_case("false") {
            Ok(false)
        } else {
            Err(self.mismatch("true or false"))
        }
    }

    /// A whole number that fits `T`, written without fraction or exponent.
    pub fn integer<T: Integer>(&self) -> Result<T, Error> {
        self.text.parse().map_err(|_| self.mismatch(T::WANTED))
    }

    /// An object.
    pub fn object(&self) -> Result<Object<'a>, Error> {
        if self.kind() != Kind::Object {
            return Err(self.mismatch("an object"));
        }
        Object::parse_part(self.text, self.path.clone())
            .ok_or_else(|| self.mismatch("an object with readable keys"))
    }

    /// The elements of an array.
    pub fn array(&self) -> Result<Vec<Value<'a>>, Error> {
        if self.kind() != Kind::Array {
            return Err(self.mismatch("an array"));
        }
        let mut deserializer = serde_json::Deserializer::from_str(self.text);
        let elements =
            deserializer.deserialize_seq(ElementsVisitor).map_err(|_| self.mismatch("an array"))?;
        let numbered = elements.into_iter().enumerate();
        Ok(numbered
            .map(|(index, text)| Value::new(text, format!("{}[{index}]", self.path)))
            .collect())
    }

    /// The error for a value of another type or form than `wanted`.
    pub fn mismatch(&self, wanted: &str) -> Error {
        let path = if self.path.is_empty() { "document" } else { &self.path };
        Error::decode(format!("{path}: expected {wanted}, found {}", excerpt(self.text)))
    }
}

/// Decodes a JSON string literal; `None` for anything else.
pub(super) fn decode_string(text: &str) -> Option<Cow<'_, str>> {
    let inner = text.strip_prefix('"')?.strip_suffix('"')?;
    if inner.contains(['\\', '"']) { unescape(text) } else { Some(Cow::Borrowed(inner)) }
}

/// The longest part of a value shown in an error, in bytes.
const EXCERPT_LIMIT: usize = 60;

/// The start of a value on one line.
fn excerpt(text: &str) -> Cow<'_, str> {
    let compact = super::compact(text);
    if compact.len() <= EXCERPT_LIMIT {
        return Cow::Owned(compact);
    }
    let end = (0..=EXCERPT_LIMIT).rev().find(|&end| compact.is_char_boundary(end)).unwrap_or(0);
    Cow::Owned(format!("{}…", compact.get(..end).unwrap_or_default()))
}

/// Whole numbers a value can be read as.
pub trait Integer: FromStr {
    /// The type as an error message names it.
    const WANTED: &'static str;
}

macro_rules! integers {
    ($($name:ty: $wanted:literal),* $(,)?) => {
        $(impl Integer for $name {
            const WANTED: &'static str = concat!("a whole number from ", $wanted);
        })*
    };
}

integers! {
    u8: "0 to 255",
    u16: "0 to 65535",
    u32: "0 to 4294967295",
    u64: "0 to 18446744073709551615",
    usize: "0",
    i32: "-2147483648 to 2147483647",
    i64: "-9223372036854775808 to 9223372036854775807",
}

struct ElementsVisitor;

impl<'de> Visitor<'de> for ElementsVisitor {
    type Value = Vec<&'de str>;

    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Self::Value, A::Error> {
        let mut elements = Vec::new();
        while let Some(element) = sequence.next_element::<&'de RawValue>()? {
            elements.push(element.get());
        }
        Ok(elements)
    }
}
