//! What is wrong with a text that isn't JSON, said so that its writer can mend
//! it: where, what, and what to do about the usual mistakes.

use std::borrow::Cow;
use std::fmt;

use super::value::Kind;
use crate::error::Error;

/// How deep arrays and objects may nest. The Go implementation allows 10000,
/// the decoders of other languages mostly 128; no configuration needs 20.
const DEPTH_LIMIT: usize = 128;

/// A place in a text, both counted from 1; the column counts letters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// The line.
    pub line: usize,
    /// The letter in the line.
    pub column: usize,
}

impl Position {
    /// The position of the byte at `offset`, or of the end of the text.
    pub fn at(text: &str, offset: usize) -> Self {
        let mut end = offset.min(text.len());
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let before = text.get(..end).unwrap_or_default();
        let line = before.bytes().filter(|&byte| byte == b'\n').count() + 1;
        let column = before.chars().rev().take_while(|&letter| letter != '\n').count() + 1;
        Self { line, column }
    }

    /// The position of a part borrowed from the text; `None` if it isn't.
    pub fn of(text: &str, part: &str) -> Option<Self> {
        let offset = (part.as_ptr() as usize).checked_sub(text.as_ptr() as usize)?;
        (offset.checked_add(part.len())? <= text.len()).then(|| Self::at(text, offset))
    }
}

impl fmt::Display for Position {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "line {}, column {}", self.line, self.column)
    }
}

/// Why a text isn't one JSON object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyntaxError {
    /// Where.
    pub position: Position,
    /// What is wrong there.
    pub reason: Cow<'static, str>,
    /// What to do; empty if the reason says all.
    pub hint: &'static str,
}

impl SyntaxError {
    fn new(text: &str, offset: usize, reason: impl Into<Cow<'static, str>>) -> Self {
        Self { position: Position::at(text, offset), reason: reason.into(), hint: "" }
    }

    fn hint(mut self, hint: &'static str) -> Self {
        self.hint = hint;
        self
    }

    pub(super) fn too_deep(text: &str) -> Self {
        Self::new(text, 0, format!("arrays and objects nest deeper than {DEPTH_LIMIT}"))
    }

    /// For a text that doesn't begin with `{`.
    pub(super) fn not_an_object(text: &str) -> Self {
        let start = text.len() - text.trim_start().len();
        let rest = text.get(start..).unwrap_or_default();
        if rest.is_empty() {
            return Self::new(text, 0, "the text is empty, not a JSON object")
                .hint("if it comes from a file, a crash may have emptied it; write it again");
        }
        if rest.starts_with('\u{feff}') {
            return byte_order_mark();
        }
        if let Some(known) = Self::usual_mistake(text, start) {
            return known;
        }
        let found = match serde_json::from_str::<serde::de::IgnoredAny>(rest) {
            Ok(_) => format!("expected a JSON object, found {}", Kind::of(rest).in_words()),
            Err(_) => "expected a JSON object, found something that is not JSON".to_owned(),
        };
        Self::new(text, start, found)
    }

    /// For a text that `serde_json` refused.
    pub(super) fn diagnose(text: &str, error: &serde_json::Error) -> Self {
        let offset = offset_of(text, error.line(), error.column());
        if let Some(known) = Self::usual_mistake(text, offset) {
            return known;
        }
        if error.is_eof() {
            return Self::new(text, text.trim_end().len(), "the text ends before the object does")
                .hint("the file may be only half written");
        }
        let message = error.to_string();
        let reason = message.split(" at line ").next().unwrap_or_default();
        if reason == "trailing characters" {
            return Self::new(text, offset, "something follows after the end of the object");
        }
        Self::new(text, offset, reason.to_owned())
    }

    fn usual_mistake(text: &str, offset: usize) -> Option<Self> {
        let rest = text.get(offset..)?;
        let before = text.get(..offset)?.trim_end();
        let first = rest.chars().next()?;
        let error = match first {
            '/' if rest.starts_with("//") || rest.starts_with("/*") => {
                Self::new(text, offset, "comments are not JSON").hint("remove the comment")
            }
            '#' => Self::new(text, offset, "comments are not JSON").hint("remove the comment"),
            '}' | ']' if before.ends_with(',') => {
                Self::new(text, before.len() - 1, "a comma before the closing bracket is not JSON")
                    .hint("remove the trailing comma")
            }
            '\'' => Self::new(text, offset, "strings are written in double quotes in JSON"),
            '\0' => Self::new(text, offset, "a NUL byte is not JSON")
                .hint("the file is padded with NUL bytes, as a crash or a faulty tool leaves it"),
            _ => return None,
        };
        Some(error)
    }
}

impl fmt::Display for SyntaxError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.position, self.reason)
    }
}

impl std::error::Error for SyntaxError {}

impl From<SyntaxError> for Error {
    fn from(error: SyntaxError) -> Self {
        Self::decode(error.to_string()).with_details(error.hint)
    }
}

/// The text of a file or of standard input.
///
/// Bytes that are not UTF-8 become U+FFFD, as in the Go implementation: they
/// do no harm in a value that nobody reads.
///
/// # Errors
/// A byte order mark, which other runtimes refuse as well, and UTF-16, both
/// named.
pub fn decode_text(bytes: &[u8]) -> Result<Cow<'_, str>, SyntaxError> {
    match bytes {
        [0xEF, 0xBB, 0xBF, ..] => Err(byte_order_mark()),
        [0xFF, 0xFE, ..] | [b'{', 0, ..] => Err(utf_16("UTF-16, little endian")),
        [0xFE, 0xFF, ..] | [0, b'{', ..] => Err(utf_16("UTF-16, big endian")),
        _ => Ok(String::from_utf8_lossy(bytes)),
    }
}

const SAVE_AS: &str = "save it as UTF-8 without a byte order mark";

fn byte_order_mark() -> SyntaxError {
    SyntaxError::new("", 0, "the text starts with a byte order mark").hint(SAVE_AS)
}

fn utf_16(encoding: &str) -> SyntaxError {
    SyntaxError::new("", 0, format!("the text is encoded in {encoding}")).hint(SAVE_AS)
}

/// Whether brackets nest too deep; strings are stepped over.
pub(super) fn is_too_deep(text: &str) -> bool {
    let mut depth = 0_usize;
    let mut in_string = false;
    let mut escaped = false;
    for byte in text.bytes() {
        if in_string {
            in_string = escaped || byte != b'"';
            escaped = !escaped && byte == b'\\';
            continue;
        }
        match byte {
            b'"' => in_string = true,
            b'{' | b'[' => {
                depth += 1;
                if depth > DEPTH_LIMIT {
                    return true;
                }
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    false
}

/// The byte that `serde_json` means: it counts lines from 1 and bytes in the
/// line from 1.
fn offset_of(text: &str, line: usize, column: usize) -> usize {
    let line_start: usize =
        text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
    let mut offset = line_start.saturating_add(column.saturating_sub(1)).min(text.len());
    while !text.is_char_boundary(offset) {
        offset -= 1;
    }
    offset
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Object;

    fn refusal(text: &str) -> (usize, usize, String) {
        let error = Object::parse_document(text).unwrap_err();
        (error.position.line, error.position.column, error.reason.into_owned())
    }

    #[test]
    fn c20_comments_are_named_where_they_stand() {
        let text = "{\n  \"cniVersion\": \"1.0.0\", // version\n  \"name\": \"dbnet\"\n}";
        assert_eq!(refusal(text), (2, 26, "comments are not JSON".into()));
        let text = "{\n  \"name\": \"http://x/*y*/\", \"a\": 1 /* x */\n}";
        assert_eq!(refusal(text), (2, 35, "comments are not JSON".into()));
        assert_eq!(refusal("// first\n{}"), (1, 1, "comments are not JSON".into()));
        assert_eq!(refusal("{}\n# last"), (2, 1, "comments are not JSON".into()));
        assert!(Object::parse("{\"a\":\"http://x\",\"b\":\"/* y */ # z\"}").is_ok());
    }

    #[test]
    fn b023_a_trailing_comma_is_called_one() {
        let comma = "a comma before the closing bracket is not JSON";
        assert_eq!(refusal("{\"a\":1,\n}"), (1, 7, comma.into()));
        assert_eq!(refusal("{\"a\":[1,2 , ]}"), (1, 11, comma.into()));
        assert_eq!(refusal("{,}").1, 2);
    }

    #[test]
    fn c22_marks_encodings_and_padding_are_named() {
        let reason = |bytes: &[u8]| decode_text(bytes).unwrap_err().reason.into_owned();
        assert_eq!(reason(b"\xEF\xBB\xBF{}"), "the text starts with a byte order mark");
        assert_eq!(reason(b"\xFF\xFE{\0}\0"), "the text is encoded in UTF-16, little endian");
        assert_eq!(reason(b"{\0}\0"), "the text is encoded in UTF-16, little endian");
        assert_eq!(reason(b"\0{\0}"), "the text is encoded in UTF-16, big endian");
        assert_eq!(refusal("\u{feff}{}").2, "the text starts with a byte order mark");
        assert_eq!(refusal("{}\0\0\0"), (1, 3, "a NUL byte is not JSON".into()));
        assert_eq!(refusal("{} x").2, "something follows after the end of the object");
        assert_eq!(refusal("{}{}").1, 3);
        assert!(Object::parse("{\r\n\t\"a\":\r\n1}\r\n").is_ok());
        assert!(Object::parse(&decode_text(b"{\"a\":\"\xE9\"}").unwrap()).is_ok());
    }

    #[test]
    fn other_mistakes_are_placed() {
        assert_eq!(refusal("").2, "the text is empty, not a JSON object");
        assert_eq!(refusal(" \n").2, "the text is empty, not a JSON object");
        assert_eq!(refusal("[]").2, "expected a JSON object, found an array");
        assert_eq!(refusal("null").2, "expected a JSON object, found null");
        assert_eq!(refusal("nil").2, "expected a JSON object, found something that is not JSON");
        assert_eq!(
            refusal("{\"é\":'x'}"),
            (1, 6, "strings are written in double quotes in JSON".into())
        );
        assert_eq!(refusal("{\"a\":1").2, "the text ends before the object does");
        let deep = format!("{{\"a\":{}{}}}", "[".repeat(200), "]".repeat(200));
        assert_eq!(refusal(&deep).2, "arrays and objects nest deeper than 128");
        let error = Error::from(Object::parse_document("{\"a\":1,}").unwrap_err());
        assert_eq!(
            error.to_string(),
            "line 1, column 7: a comma before the closing bracket is not JSON; remove the \
             trailing comma"
        );
    }

    #[test]
    fn a_part_knows_its_position() {
        let text = "{\n  \"a\": { \"b\": 7 } }";
        let object = Object::parse(text).unwrap();
        let inner = object.object("a").unwrap().unwrap().get("b").unwrap();
        assert_eq!(Position::of(text, inner.text()), Some(Position { line: 2, column: 15 }));
        assert_eq!(Position::of(text, "elsewhere"), None);
    }
}
