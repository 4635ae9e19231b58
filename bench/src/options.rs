//! What is asked of a run.

use std::path::PathBuf;

use crate::Outcome;
use crate::subject::Programs;

/// How the program is called; `cargo xtask bench` fills in the paths.
pub const USAGE: &str = "podwire-bench --plugins DIR --podwire FILE --floor FILE --disk DIR \
[--peers DIR] [--section NAME]... [--rounds N] [--quick] [--limits FILE] [--bless] [--report DIR]";

/// A run.
#[derive(Debug, Clone)]
pub struct Options {
    /// What is measured.
    pub programs: Programs,
    /// A directory on a real disk for state; emptied.
    pub disk: PathBuf,
    /// The sections, all if none is named.
    pub sections: Vec<String>,
    /// Timed rounds of a call.
    pub rounds: u32,
    /// Few rounds, and only what has limits.
    pub quick: bool,
    /// The file of limits.
    pub limits: Option<PathBuf>,
    /// Write the limits anew instead of comparing.
    pub bless: bool,
    /// Where the report and its plots go; nowhere if none.
    pub report: Option<PathBuf>,
}

impl Options {
    /// Reads the command line behind the program's name.
    ///
    /// # Errors
    /// Says what is missing or unknown.
    pub fn parse(arguments: impl IntoIterator<Item = String>) -> Outcome<Self> {
        let mut arguments = arguments.into_iter();
        let (mut plugins, mut podwire, mut floor, mut disk) = (None, None, None, None);
        let (mut peers, mut limits, mut report) = (None, None, None);
        let (mut sections, mut rounds) = (Vec::new(), None);
        let (mut quick, mut bless) = (false, false);
        while let Some(name) = arguments.next() {
            let mut value = || arguments.next().ok_or(format!("{name} needs a value"));
            match name.as_str() {
                "--plugins" => plugins = Some(PathBuf::from(value()?)),
                "--podwire" => podwire = Some(PathBuf::from(value()?)),
                "--floor" => floor = Some(PathBuf::from(value()?)),
                "--disk" => disk = Some(PathBuf::from(value()?)),
                "--peers" => peers = Some(PathBuf::from(value()?)),
                "--limits" => limits = Some(PathBuf::from(value()?)),
                "--report" => report = Some(PathBuf::from(value()?)),
                "--section" => sections.push(value()?),
                "--rounds" => {
                    let number = value()?;
                    let parsed = number.parse().map_err(|_| format!("{number:?} is no number"))?;
                    rounds = Some(parsed);
                }
                "--quick" => quick = true,
                "--bless" => bless = true,
                _ => return Err(format!("unknown argument {name:?}\n{USAGE}")),
            }
        }
        let needed = |name: &str| format!("{name} is needed\n{USAGE}");
        Ok(Self {
            programs: Programs {
                plugins: plugins.ok_or_else(|| needed("--plugins"))?,
                podwire: podwire.ok_or_else(|| needed("--podwire"))?,
                floor: floor.ok_or_else(|| needed("--floor"))?,
                peers,
            },
            disk: disk.ok_or_else(|| needed("--disk"))?,
            sections,
            rounds: rounds.unwrap_or(if quick { 3 } else { 12 }),
            quick,
            limits,
            bless,
            report,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Options;

    fn parse(text: &str) -> Result<Options, String> {
        Options::parse(text.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn what_is_missing_or_unknown_is_named() {
        assert!(parse("--plugins a --podwire b --floor c").unwrap_err().starts_with("--disk"));
        assert!(parse("--fast").unwrap_err().contains("--fast"));
        assert!(parse("--rounds x").unwrap_err().contains("\"x\""));
    }

    #[test]
    fn a_quick_run_has_few_rounds_unless_told() {
        let paths = "--plugins a --podwire b --floor c --disk d";
        assert_eq!(parse(&format!("{paths} --quick")).unwrap().rounds, 3);
        assert_eq!(parse(&format!("{paths} --quick --rounds 7")).unwrap().rounds, 7);
        assert_eq!(
            parse(&format!("{paths} --section a --section b")).unwrap().sections,
            ["a", "b"]
        );
    }
}
