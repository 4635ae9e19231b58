//! The table.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

use crate::measure::Samples;

/// One call's samples by subject, in the order the calls were first seen.
#[derive(Debug, Default)]
pub struct Report {
    rows: Vec<(String, BTreeMap<&'static str, Samples>)>,
}

impl Report {
    /// Adds a time.
    pub fn add(&mut self, call: &str, subject: &'static str, time: Duration) {
        let index = match self.rows.iter().position(|(name, _)| name == call) {
            Some(index) => index,
            None => {
                self.rows.push((call.to_owned(), BTreeMap::new()));
                self.rows.len() - 1
            }
        };
        if let Some((_, samples)) = self.rows.get_mut(index) {
            samples.entry(subject).or_default().push(time);
        }
    }

    /// Milliseconds, best and median, and how ours compares.
    pub fn table(&self) -> String {
        let mut text = format!(
            "{:<44} {:>15} {:>17} {:>15} {:>9} {:>11}\n",
            "call (ms: best / median)", "podwire", "go", "floor", "go/ours", "ours/floor"
        );
        for (call, samples) in &self.rows {
            let cell = |subject| samples.get(subject).map_or_else(|| "-".to_owned(), both);
            let _ = writeln!(
                text,
                "{call:<44} {:>15} {:>17} {:>15} {:>9} {:>11}",
                cell("podwire"),
                cell("go"),
                cell("floor"),
                ratio(samples, "go", "podwire"),
                ratio(samples, "podwire", "floor"),
            );
        }
        text
    }
}

fn both(samples: &Samples) -> String {
    let milliseconds = |time: Option<Duration>| time.unwrap_or_default().as_secs_f64() * 1000.0;
    format!("{:.2} / {:.2}", milliseconds(samples.best()), milliseconds(samples.median()))
}

/// Medians, since a single lucky run is no promise.
fn ratio(samples: &BTreeMap<&'static str, Samples>, over: &str, under: &str) -> String {
    let median = |subject| samples.get(subject).and_then(Samples::median);
    match (median(over), median(under)) {
        (Some(over), Some(under)) if !under.is_zero() => {
            format!("{:.1} x", over.as_secs_f64() / under.as_secs_f64())
        }
        _ => "-".to_owned(),
    }
}
