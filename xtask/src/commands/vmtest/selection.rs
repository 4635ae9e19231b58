//! Which tests a boot runs: cargo-nextest builds and lists them here, the
//! guest only runs what stands in the list.

use std::path::PathBuf;

use serde_json::Value;

use crate::Result;
use crate::process::{cargo, output};

/// One test, and how it is started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Test {
    /// The test program.
    pub(super) program: PathBuf,
    /// The folder to be in: that of its package.
    pub(super) folder: PathBuf,
    /// The package and the test program, as nextest names it.
    pub(super) suite: String,
    /// The test's name in the program.
    pub(super) name: String,
}

/// Builds what the filters may match and returns the tests that match any.
///
/// # Errors
/// When it doesn't build, or one isn't a nextest filter, or none matches a
/// test: an empty run would look like a good one.
pub(super) fn select(filters: &[&str]) -> Result<Vec<Test>> {
    let mut list = cargo();
    list.args(["nextest", "list", "--workspace", "--ignore-default-filter"]);
    list.args(["--message-format", "json"]);
    for filter in filters {
        println!("  $ cargo nextest list --filterset '{filter}'");
        list.args(["--filterset", filter]);
    }
    let tests = matching(&serde_json::from_str(&output(&mut list)?)?)?;
    if tests.is_empty() {
        return Err(format!("no test matches {filters:?}").into());
    }
    Ok(tests)
}

/// The tests that match, of nextest's list.
fn matching(list: &Value) -> Result<Vec<Test>> {
    let text = |value: &Value, key: &str| -> Result<String> {
        Ok(value.get(key).and_then(Value::as_str).ok_or(format!("no `{key}` in the list"))?.into())
    };
    let suites = list.get("rust-suites").and_then(Value::as_object).ok_or("no suites listed")?;
    let mut tests = Vec::new();
    for (suite, value) in suites {
        let cases = value.get("testcases").and_then(Value::as_object);
        for (name, case) in cases.into_iter().flatten() {
            let status = case.pointer("/filter-match/status").and_then(Value::as_str);
            if status == Some("matches") {
                tests.push(Test {
                    program: text(value, "binary-path")?.into(),
                    folder: text(value, "cwd")?.into(),
                    suite: suite.clone(),
                    name: name.clone(),
                });
            }
        }
    }
    Ok(tests)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::matching;

    #[test]
    fn only_matching_tests_are_taken() {
        let case = |status: &str| json!({"ignored": false, "filter-match": {"status": status}});
        let list = json!({"rust-suites": {"tests::portmap": {
            "binary-path": "/t/portmap-1", "cwd": "/tests",
            "testcases": {"a": case("matches"), "b": case("mismatch")},
        }}});
        let tests = matching(&list).unwrap();
        assert_eq!(tests.len(), 1);
        assert_eq!(tests[0].name, "a");
        assert_eq!(tests[0].suite, "tests::portmap");
    }
}
