//! `CNI_ARGS`: pairs of key and value, `K=V;K2=V2` (specification, section 2
//! "Parameters"; its conventions call it deprecated, and everyone sends it).
//!
//! The rules are those of the Go library, which plugins of others keep to:
//! every piece is a pair, keys keep their case, a plugin refuses keys it
//! doesn't know unless `IgnoreUnknown` is true. One is wider here: a value may
//! hold `=`, which the Go library refuses (people pass annotations so). `;`
//! has no escape and can't be passed at all.

use std::fmt;

use crate::error::Error;

/// The key that makes unknown keys acceptable.
const IGNORE_UNKNOWN: &str = "IgnoreUnknown";

/// The arguments, in the order given.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CniArgs {
    pairs: Vec<(String, String)>,
    ignore_unknown: bool,
}

impl CniArgs {
    /// Reads the variable; empty has no pairs.
    ///
    /// # Errors
    /// Code 4 for a piece that isn't a pair (an empty one included, so a `;`
    /// at the end as well) and for an `IgnoreUnknown` that is no truth value.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let mut arguments = Self::default();
        if text.is_empty() {
            return Ok(arguments);
        }
        for piece in text.split(';') {
            let Some((key, value)) = piece.split_once('=') else {
                return Err(Error::environment(format!("ARGS: invalid pair {piece:?}"))
                    .with_details("CNI_ARGS is KEY=VALUE, more of them after a ';' each"));
            };
            arguments.push(key, value)?;
        }
        Ok(arguments)
    }

    /// Appends a pair; an earlier one of the same key no longer counts.
    ///
    /// # Errors
    /// Code 4 for an empty key, one with `=`, a `;` or NUL in either, and for
    /// an `IgnoreUnknown` that is no truth value.
    pub fn push(&mut self, key: &str, value: &str) -> Result<(), Error> {
        if key.is_empty() || key.contains(['=', ';', '\0']) || value.contains([';', '\0']) {
            let pair = format!("{key}={value}");
            return Err(Error::environment(format!("ARGS: invalid pair {pair:?}")));
        }
        if key == IGNORE_UNKNOWN {
            self.ignore_unknown = truth(value).ok_or_else(|| {
                Error::environment(format!("ARGS: {IGNORE_UNKNOWN}={value:?} is no truth value"))
                    .with_details("write 1, 0, true or false")
            })?;
        }
        self.pairs.push((key.to_owned(), value.to_owned()));
        Ok(())
    }

    /// The value of a key, of several the last; an empty value counts as
    /// absent.
    pub fn get(&self, key: &str) -> Option<&str> {
        let mut pairs = self.pairs.iter().rev();
        let (_, value) = pairs.find(|(present, _)| present == key)?;
        Some(value.as_str()).filter(|value| !value.is_empty())
    }

    /// Keys and values in the order given.
    pub fn pairs(&self) -> impl ExactSizeIterator<Item = (&str, &str)> {
        self.pairs.iter().map(|(key, value)| (key.as_str(), value.as_str()))
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    /// Refuses keys that are neither in `known` nor declared to be ignored.
    ///
    /// # Errors
    /// Code 4, naming every such key.
    pub fn refuse_unknown(&self, known: &[&str]) -> Result<(), Error> {
        if self.ignore_unknown {
            return Ok(());
        }
        let unknown: Vec<_> = self
            .pairs()
            .filter(|(key, _)| *key != IGNORE_UNKNOWN && !known.contains(key))
            .map(|(key, value)| format!("{key}={value}"))
            .collect();
        if unknown.is_empty() {
            return Ok(());
        }
        Err(Error::environment(format!("ARGS: unknown args {unknown:?}")).with_details(format!(
            "known are {}; IgnoreUnknown=1 accepts others",
            known.join(", ")
        )))
    }
}

impl fmt::Display for CniArgs {
    /// The value of the variable.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (key, value)) in self.pairs().enumerate() {
            let separator = if index == 0 { "" } else { ";" };
            write!(formatter, "{separator}{key}={value}")?;
        }
        Ok(())
    }
}

fn truth(value: &str) -> Option<bool> {
    if value == "1" || value.eq_ignore_ascii_case("true") {
        Some(true)
    } else if value == "0" || value.eq_ignore_ascii_case("false") {
        Some(false)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(text: &str) -> Result<Option<String>, (u32, String)> {
        let refusal = |error: Error| (error.code.number(), error.msg);
        let arguments = CniArgs::parse(text).map_err(refusal)?;
        arguments.refuse_unknown(&["IP"]).map_err(refusal)?;
        Ok(arguments.get("IP").map(str::to_owned))
    }

    #[test]
    fn b047_unknown_keys_are_refused_unless_declared() {
        assert_eq!(
            outcome("K8S_POD_NAME=p;IP=10.9.6.4"),
            Err((4, "ARGS: unknown args [\"K8S_POD_NAME=p\"]".into()))
        );
        let address = Ok(Some("10.9.6.4".into()));
        for truth in ["1", "true", "TRUE"] {
            assert_eq!(outcome(&format!("IgnoreUnknown={truth};A=b;IP=10.9.6.4")), address);
            assert_eq!(outcome(&format!("A=b;IP=10.9.6.4;IgnoreUnknown={truth}")), address);
        }
        assert!(outcome("IgnoreUnknown=0;A=b").is_err());
        assert!(outcome("ip=10.9.6.4").is_err(), "keys keep their case");
    }

    #[test]
    fn b047_shapes_of_the_variable() {
        assert_eq!(outcome(""), Ok(None));
        assert_eq!(outcome("IP="), Ok(None));
        assert_eq!(outcome("IP=a;IP=b"), Ok(Some("b".into())));
        assert_eq!(outcome("IP=b=c"), Ok(Some("b=c".into())));
        for text in ["IP", ";;", "IP=a;", ";IP=a", "=a"] {
            assert_eq!(outcome(text).unwrap_err().0, 4, "{text}");
        }
        assert_eq!(outcome("IP").unwrap_err().1, "ARGS: invalid pair \"IP\"");
        assert!(outcome("IgnoreUnknown=yes").unwrap_err().1.contains("no truth value"));
    }

    #[test]
    fn written_as_read() {
        let text = "IgnoreUnknown=1;FOO=BAR;IP=";
        let arguments = CniArgs::parse(text).unwrap();
        assert_eq!(arguments.to_string(), text);
        assert_eq!(arguments.pairs().len(), 3);
        assert!(CniArgs::default().is_empty());
        assert!(CniArgs::default().push("A", "b;c=d").is_err());
    }
}
