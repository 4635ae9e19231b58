//! What looks wrong in the configuration of our own plugins (B118): keys that
//! nobody reads, ranges that overlap. Foreign plugins' keys are their affair
//! (C07).

mod keys;
mod locate;
mod ranges;

use std::path::Path;

use podwire_runtime::{Finding, Severity};
use podwire_spec::json::{Kind, Object, Position, Value, decode_text};
use podwire_spec::lint::nearest;

use self::keys::Shape;

/// The largest file that is looked at, in bytes; as for loading one.
const SIZE_LIMIT: usize = 1 << 20;

/// Gives findings about a configuration file the place of their key, where
/// they have none.
pub(crate) fn locate(file: &Path, findings: &mut [Finding]) {
    let Ok(bytes) = podwire_sys::file::read_bounded(file, SIZE_LIMIT) else { return };
    let Ok(text) = decode_text(&bytes) else { return };
    let Ok(object) = Object::parse(&text) else { return };
    let unplaced = findings
        .iter_mut()
        .filter(|finding| finding.position.is_none() && finding.file.as_deref() == Some(file));
    for finding in unplaced {
        if let Some((key, part)) = locate::find(&object, &finding.key) {
            finding.position = Position::of(&text, part);
            finding.key = key;
        }
    }
}

/// Looks through a configuration file. Empty for one that can't be read or
/// isn't JSON: loading it says so.
pub(crate) fn check(file: &Path) -> Vec<Finding> {
    let Ok(bytes) = podwire_sys::file::read_bounded(file, SIZE_LIMIT) else { return Vec::new() };
    check_bytes(&bytes)
        .into_iter()
        .map(|finding| Finding { file: Some(file.to_owned()), ..finding })
        .collect()
}

fn check_bytes(bytes: &[u8]) -> Vec<Finding> {
    let Ok(text) = decode_text(bytes) else { return Vec::new() };
    let Ok(object) = Object::parse(&text) else { return Vec::new() };
    let mut linter = Linter { text: &text, findings: Vec::new() };
    match object.get_exact("plugins") {
        None => linter.plugin(&object),
        Some(plugins) => {
            for value in plugins.array().unwrap_or_default() {
                if let Ok(plugin) = value.object() {
                    linter.plugin(&plugin);
                }
            }
        }
    }
    linter.findings
}

/// Collects findings about one text.
struct Linter<'a> {
    text: &'a str,
    findings: Vec<Finding>,
}

impl Linter<'_> {
    fn plugin(&mut self, plugin: &Object<'_>) {
        let Ok(Some(plugin_type)) = plugin.string("type") else { return };
        if let Some(shape) = keys::of_plugin(&plugin_type) {
            self.object(plugin, shape, &keys::EVERYWHERE);
        }
        if !keys::HAND_IPAM_ON.contains(&plugin_type.as_ref()) {
            return;
        }
        let Ok(Some(ipam)) = plugin.object("ipam") else { return };
        let ipam_type = ipam.string("type").ok().flatten().unwrap_or_default();
        match keys::of_ipam(&ipam_type) {
            Some(shape) => self.object(&ipam, shape, &[]),
            None if ipam_type.is_empty() => {}
            None => self.foreign_ipam(&ipam),
        }
        if ipam_type == "host-local" {
            let findings = ranges::check(&ipam);
            for (part, key, message, hint) in findings {
                self.add(Severity::Error, part, key, message, hint);
            }
        }
    }

    /// Looks for keys that `shape` doesn't have, and below those it has.
    fn object(&mut self, object: &Object<'_>, shape: &Shape, also: &[&str]) {
        let known: Vec<_> = shape.keys().into_iter().chain(also.iter().copied()).collect();
        for (key, value) in object.members() {
            let path = object.path_of(key);
            if let (Some(below), Some(value)) = (shape.below(key), object.get(key)) {
                self.below(&value, below);
            }
            if known.contains(&key) || is_remark(key) {
                continue;
            }
            let same = known.iter().find(|known| known.eq_ignore_ascii_case(key));
            let (message, hint) = match (same, nearest(key, &known)) {
                (Some(same), _) => (
                    "this key is read without regard to case here, but not by every plugin",
                    format!("write {same}"),
                ),
                (None, Some(near)) => {
                    ("unknown key; it is ignored", format!("did you mean {near}?"))
                }
                (None, None) => ("unknown key; it is ignored", String::new()),
            };
            self.add(Severity::Warning, value, path, message.to_owned(), hint);
        }
    }

    /// Looks into what stands under a key: an object, or arrays of them.
    fn below(&mut self, value: &Value<'_>, shape: &Shape) {
        match value.kind() {
            Kind::Object => {
                if let Ok(object) = value.object() {
                    self.object(&object, shape, &[]);
                }
            }
            Kind::Array => {
                for element in value.array().unwrap_or_default() {
                    self.below(&element, shape);
                }
            }
            Kind::Null | Kind::Boolean | Kind::Number | Kind::String => {}
        }
    }

    /// Only what is near a key that all IPAM plugins share (C16).
    fn foreign_ipam(&mut self, ipam: &Object<'_>) {
        for (key, value) in ipam.members() {
            let known = keys::IPAM_EVERYWHERE;
            if let Some(near) = nearest(key, &known).filter(|near| !near.eq_ignore_ascii_case(key))
            {
                self.add(
                    Severity::Warning,
                    value,
                    ipam.path_of(key),
                    "looks like a slip".to_owned(),
                    format!("did you mean {near}?"),
                );
            }
        }
    }

    fn add(
        &mut self,
        severity: Severity,
        part: &str,
        key: String,
        message: String,
        hint: impl Into<String>,
    ) {
        self.findings.push(Finding {
            severity,
            file: None,
            position: Position::of(self.text, part),
            key,
            message,
            hint: hint.into(),
        });
    }
}

/// A key that is there for readers: `_comment`, `//`, `$schema`.
fn is_remark(key: &str) -> bool {
    key.starts_with(['_', '/', '$', '#']) || key.eq_ignore_ascii_case("comment")
}

#[cfg(test)]
mod tests;
