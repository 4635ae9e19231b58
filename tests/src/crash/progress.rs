//! The jobs of a long run that are done, in a file, so that a run that was cut off goes
//! on where it was.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::sync::Mutex;

use serde_json::{Value, json};

use super::place::Density;
use super::report::{Score, Tally};
use super::subject::Verb;

/// A line of JSON for each job that is done.
pub struct Progress {
    file: Mutex<File>,
    extent: String,
    done: Vec<Tally>,
}

impl Progress {
    /// Opens or makes the file. Jobs in it that were done with another density don't
    /// count.
    ///
    /// # Errors
    /// What the file system said, or that a line is not one of ours.
    pub fn open(path: &Path, density: Density) -> io::Result<Self> {
        let extent = format!("{density:?}");
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(error),
        };
        let mut done = Vec::new();
        // What follows the last newline was being written when the run was cut off.
        let whole = text.rfind('\n').map_or(0, |last| last + 1);
        for line in text.get(..whole).unwrap_or_default().lines() {
            let line: Value = serde_json::from_str(line)?;
            if line["extent"] == extent.as_str() {
                let tally = read(&line).ok_or_else(|| io::Error::other(format!("line {line}")))?;
                done.push(tally);
            }
        }
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        file.set_len(whole as u64)?;
        Ok(Self { file: Mutex::new(file), extent, done })
    }

    /// What a job came to that was done in an earlier run.
    pub fn of(&self, subject: &str, verb: Verb) -> Option<&Tally> {
        self.done.iter().find(|tally| tally.subject == subject && tally.verb == verb)
    }

    /// Notes that a job is done.
    ///
    /// # Panics
    /// When it can't be written: the run would be for nothing.
    pub fn note(&self, tally: &Tally) {
        let line = format!("{}\n", write(&self.extent, tally));
        self.file.lock().unwrap().write_all(line.as_bytes()).unwrap();
    }
}

fn write(extent: &str, tally: &Tally) -> Value {
    let programs = tally.programs.iter();
    let programs: BTreeMap<_, _> =
        programs.map(|(name, score)| (name, [score.kills, score.leaks])).collect();
    json!({
        "extent": extent,
        "subject": tally.subject,
        "verb": tally.verb.as_str(),
        "places": tally.places,
        "tried": tally.tried,
        "histogram": tally.histogram,
        "scenes": tally.scenes,
        "programs": programs,
        "faults": tally.faults,
    })
}

fn read(line: &Value) -> Option<Tally> {
    let verbs = [Verb::Add, Verb::Del, Verb::Gc];
    let verb = verbs.into_iter().find(|verb| line["verb"] == verb.as_str())?;
    let number = |value: &Value| value.as_u64().and_then(|number| usize::try_from(number).ok());
    let counts = |value: &Value| -> Option<BTreeMap<String, usize>> {
        let counts = value.as_object()?.iter();
        counts.map(|(name, count)| Some((name.clone(), number(count)?))).collect()
    };
    let mut tally = Tally::new(line["subject"].as_str()?, verb);
    tally.places = number(&line["places"])?;
    tally.tried = number(&line["tried"])?;
    tally.histogram = counts(&line["histogram"])?;
    tally.scenes = counts(&line["scenes"])?;
    for (name, score) in line["programs"].as_object()? {
        let score = Score { kills: number(&score[0])?, leaks: number(&score[1])? };
        tally.programs.insert(name.clone(), score);
    }
    for fault in line["faults"].as_array()? {
        tally.faults.push(fault.as_str()?.to_owned());
    }
    Some(tally)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_goes_on_where_it_was_cut_off() {
        let path = std::env::temp_dir().join(format!("progress-{}", std::process::id()));
        let mut tally = Tally::new("bridge", Verb::Del);
        (tally.places, tally.tried) = (9, 8);
        tally.histogram.insert("openat".to_owned(), 8);
        tally.scenes.insert("namespace gone".to_owned(), 8);
        tally.programs.insert("bridge".to_owned(), Score { kills: 8, leaks: 1 });
        tally.faults.push("a leak\nof two lines".to_owned());
        Progress::open(&path, Density::Every).unwrap().note(&tally);
        // Cut off in the middle of the next line.
        let mut file = OpenOptions::new().append(true).open(&path).unwrap();
        file.write_all(b"{\"extent\":").unwrap();
        let again = Progress::open(&path, Density::Every).unwrap();
        let read = again.of("bridge", Verb::Del).unwrap();
        assert_eq!(format!("{read:?}"), format!("{tally:?}"));
        assert!(again.of("bridge", Verb::Add).is_none());
        again.note(&Tally::new("bridge", Verb::Add));
        let third = Progress::open(&path, Density::Every).unwrap();
        assert!(third.of("bridge", Verb::Add).is_some() && third.of("bridge", Verb::Del).is_some());
        let other = Progress::open(&path, Density::Exhaustive).unwrap();
        assert!(other.of("bridge", Verb::Del).is_none());
        std::fs::remove_file(&path).unwrap();
    }
}
