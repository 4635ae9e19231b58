//! Writing JSON, in the form the Go implementation prints.

use std::fmt::{Display, Write as _};

/// Builds one JSON text piece by piece. With indent it prints as the Go
/// plugins do: four spaces, no newline at the end, `{}` for nothing.
///
/// The caller keeps to the grammar; nothing here checks it.
#[derive(Debug)]
pub struct Writer {
    text: String,
    indented: bool,
    depth: usize,
    /// Whether the next entry is the first of its object or array.
    first: bool,
    /// Whether a key was just written, so that a value follows on the line.
    after_key: bool,
}

impl Writer {
    /// A writer that indents by four spaces.
    pub fn pretty() -> Self {
        Self { text: String::with_capacity(512), ..Self::dense() }
    }

    /// A writer without any white space.
    pub fn compact() -> Self {
        Self { indented: false, ..Self::dense() }
    }

    fn dense() -> Self {
        Self { text: String::new(), indented: true, depth: 0, first: true, after_key: false }
    }

    /// Starts an object.
    pub fn begin_object(&mut self) {
        self.begin('{');
    }

    /// Ends an object.
    pub fn end_object(&mut self) {
        self.end('}');
    }

    /// Starts an array.
    pub fn begin_array(&mut self) {
        self.begin('[');
    }

    /// Ends an array.
    pub fn end_array(&mut self) {
        self.end(']');
    }

    /// Writes a key; its value comes next.
    pub fn key(&mut self, key: &str) -> &mut Self {
        self.separate();
        quote(&mut self.text, key);
        self.text.push_str(if self.indented { ": " } else { ":" });
        self.after_key = true;
        self
    }

    /// Writes a string.
    pub fn string(&mut self, value: &str) {
        self.separate();
        quote(&mut self.text, value);
    }

    /// Writes what displays as something that needs no escape, as an address.
    pub fn display(&mut self, value: impl Display) {
        self.separate();
        // Writing to a String can't fail.
        let _ = write!(self.text, "\"{value}\"");
    }

    /// Writes a number.
    pub fn integer(&mut self, value: impl Into<i128>) {
        self.separate();
        let _ = write!(self.text, "{}", value.into());
    }

    /// Writes `true` or `false`.
    pub fn boolean(&mut self, value: bool) {
        self.separate();
        self.text.push_str(if value { "true" } else { "false" });
    }

    /// Writes a value that is JSON already, as it is.
    pub fn raw(&mut self, json: &str) {
        self.separate();
        self.text.push_str(json);
    }

    /// Writes an array of strings under a key, unless it is empty.
    pub fn strings(&mut self, key: &str, values: &[String]) {
        if values.is_empty() {
            return;
        }
        self.key(key).begin_array();
        for value in values {
            self.string(value);
        }
        self.end_array();
    }

    /// The text.
    pub fn finish(self) -> String {
        self.text
    }

    fn begin(&mut self, bracket: char) {
        self.separate();
        self.text.push(bracket);
        self.depth += 1;
        self.first = true;
    }

    fn end(&mut self, bracket: char) {
        self.depth = self.depth.saturating_sub(1);
        if !self.first {
            self.break_line();
        }
        self.text.push(bracket);
        self.first = false;
    }

    /// What stands between an entry and the one before.
    fn separate(&mut self) {
        if std::mem::take(&mut self.after_key) || self.depth == 0 {
            self.first = false;
            return;
        }
        if !std::mem::take(&mut self.first) {
            self.text.push(',');
        }
        self.break_line();
    }

    fn break_line(&mut self) {
        if self.indented {
            self.text.push('\n');
            self.text.extend(std::iter::repeat_n("    ", self.depth));
        }
    }
}

/// Appends a string literal, escaping what Go's encoder escapes: beside what
/// JSON demands, `<`, `>`, `&` and the two line separators of Unicode.
pub(super) fn quote(text: &mut String, value: &str) {
    text.push('"');
    for letter in value.chars() {
        match letter {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            '\u{0}'..='\u{1f}' | '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                let _ = write!(text, "\\u{:04x}", u32::from(letter));
            }
            _ => text.push(letter),
        }
    }
    text.push('"');
}

/// The same JSON without white space outside strings, so that a request is
/// one line for plugins that read lines.
pub fn compact(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    append_compact(&mut text, json);
    text
}

/// Appends `json` without white space outside strings.
pub(super) fn append_compact(text: &mut String, json: &str) {
    let mut in_string = false;
    let mut escaped = false;
    let mut kept_from = 0;
    for (at, byte) in json.bytes().enumerate() {
        if in_string {
            in_string = escaped || byte != b'"';
            escaped = !escaped && byte == b'\\';
        } else if byte == b'"' {
            in_string = true;
        } else if matches!(byte, b' ' | b'\t' | b'\r' | b'\n') {
            text.push_str(json.get(kept_from..at).unwrap_or_default());
            kept_from = at + 1;
        }
    }
    text.push_str(json.get(kept_from..).unwrap_or_default());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indents_as_go_does() {
        let mut writer = Writer::pretty();
        writer.begin_object();
        writer.key("a").integer(1);
        writer.key("empty").begin_object();
        writer.end_object();
        writer.strings("list", &["x".into(), "y".into()]);
        writer.strings("none", &[]);
        writer.end_object();
        assert_eq!(
            writer.finish(),
            "{\n    \"a\": 1,\n    \"empty\": {},\n    \"list\": [\n        \"x\",\n        \
             \"y\"\n    ]\n}"
        );
    }

    #[test]
    fn compact_writes_no_white_space() {
        let mut writer = Writer::compact();
        writer.begin_object();
        writer.key("a").begin_array();
        writer.boolean(true);
        writer.raw("1.10");
        writer.end_array();
        writer.key("b").string("<é\u{1}\"\\>");
        writer.end_object();
        assert_eq!(writer.finish(), r#"{"a":[true,1.10],"b":"\u003cé\u0001\"\\\u003e"}"#);
    }

    #[test]
    fn compacting_leaves_strings_alone() {
        assert_eq!(compact("{ \"a b\" : [ 1 ,\r\n\t\"\\\" , \" ] }"), "{\"a b\":[1,\"\\\" , \"]}");
        assert_eq!(compact("\"\\\\\" "), "\"\\\\\"");
    }
}
