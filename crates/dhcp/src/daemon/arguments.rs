//! The daemon's flags, in the forms that Go programs take them: one dash or
//! two, `-x=y` or `-x y`.

use std::path::PathBuf;
use std::time::Duration;

use crate::protocol::DEFAULT_SOCKET;
use crate::store::DEFAULT_DIRECTORY;

/// What `--help` prints.
pub const HELP: &str = "\
Keeps the leases that the CNI plugin dhcp asks for.

Usage: dhcp daemon [flags]

Flags, with one dash or two, as -x=y or -x y:
  -socketpath PATH         where to listen; ignored when systemd passes a socket
                           (default /run/cni/dhcp.sock)
  -pidfile PATH            write the process id to this absolute path
  -hostprefix PATH         put in front of the socket's path, of the lease folder
                           and of every network namespace's path
  -datadir PATH            where leases are kept
                           (default /var/lib/cni/podwire/dhcp)
  -timeout DURATION        the longest wait for one answer (default 10s)
  -resendmax DURATION      the longest pause between two tries (default 1m2s)
  -resendtimeout DURATION  give an ADD up after this time (default 3m28s)
  -broadcast               ask servers to answer by broadcast
  -help                    this text

SIGTERM ends it and keeps all leases; the next daemon goes on with them.
`curl --unix-socket /run/cni/dhcp.sock http://localhost/metrics` prints counters.
";

/// How the daemon is to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Where to listen, the prefix in front.
    pub socket: PathBuf,
    /// Where to write the process id.
    pub pidfile: Option<PathBuf>,
    /// What goes in front of namespaces' paths.
    pub host_prefix: String,
    /// Where leases are kept, the prefix in front.
    pub data: PathBuf,
    /// The longest wait for one answer.
    pub timeout: Duration,
    /// The longest pause between two tries.
    pub resend_max: Duration,
    /// After how long an ADD is given up.
    pub resend_timeout: Duration,
    /// Whether servers are to answer by broadcast.
    pub broadcast: bool,
}

/// What the flags ask for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Arguments {
    /// To run.
    Run(Settings),
    /// The text.
    Help,
}

impl Arguments {
    /// Reads the flags behind `daemon`.
    ///
    /// # Errors
    /// What is wrong, for a person.
    pub fn parse(arguments: impl IntoIterator<Item = String>) -> Result<Self, String> {
        let mut settings = Settings {
            socket: DEFAULT_SOCKET.into(),
            pidfile: None,
            host_prefix: String::new(),
            data: DEFAULT_DIRECTORY.into(),
            timeout: Duration::from_secs(10),
            resend_max: Duration::from_secs(62),
            resend_timeout: Duration::from_secs(208),
            broadcast: false,
        };
        let mut arguments = arguments.into_iter();
        while let Some(argument) = arguments.next() {
            let flag = argument.strip_prefix("--").or_else(|| argument.strip_prefix('-'));
            let Some(flag) = flag.filter(|flag| !flag.is_empty()) else {
                return Err(format!("unexpected argument {argument:?}"));
            };
            let (name, value) = match flag.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (flag, None),
            };
            match name {
                "h" | "help" => return Ok(Self::Help),
                "broadcast" => {
                    settings.broadcast = truth(value.as_deref().unwrap_or("true"))
                        .ok_or_else(|| wrong(name, value.as_deref(), "true or false"))?;
                    continue;
                }
                "socketpath" | "pidfile" | "hostprefix" | "datadir" | "timeout" | "resendmax"
                | "resendtimeout" => {}
                _ => return Err(format!("there is no flag -{name}")),
            }
            let Some(value) = value.or_else(|| arguments.next()) else {
                return Err(format!("the flag -{name} needs a value"));
            };
            let absolute = || -> Result<PathBuf, String> {
                let fine = value.starts_with('/') && !value.contains('\0');
                if fine {
                    Ok(PathBuf::from(&value))
                } else {
                    Err(wrong(name, Some(&value), "an absolute path"))
                }
            };
            let time = || {
                duration(&value)
                    .filter(|time| !time.is_zero())
                    .ok_or_else(|| wrong(name, Some(&value), "a time above zero, as 10s or 1m2s"))
            };
            match name {
                "socketpath" => settings.socket = absolute()?,
                "pidfile" => {
                    settings.pidfile = if value.is_empty() { None } else { Some(absolute()?) };
                }
                "hostprefix" => {
                    if !value.is_empty() {
                        absolute()?;
                    }
                    value.trim_end_matches('/').clone_into(&mut settings.host_prefix);
                }
                "datadir" => settings.data = absolute()?,
                "timeout" => settings.timeout = time()?,
                "resendmax" => settings.resend_max = time()?,
                _ => settings.resend_timeout = time()?,
            }
        }
        for path in [&mut settings.socket, &mut settings.data] {
            *path = PathBuf::from(format!("{}{}", settings.host_prefix, path.display()));
        }
        Ok(Self::Run(settings))
    }
}

fn wrong(name: &str, value: Option<&str>, wanted: &str) -> String {
    format!("the flag -{name} is {:?}, and {wanted} is wanted", value.unwrap_or_default())
}

/// A truth value as Go reads it (strconv.ParseBool).
fn truth(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}

/// A time as Go writes it: `1m30s`, `1.5s`, `300ms`; at most a year.
fn duration(text: &str) -> Option<Duration> {
    const UNITS: [(&str, f64); 7] = [
        ("ms", 1e-3),
        ("us", 1e-6),
        ("µs", 1e-6),
        ("ns", 1e-9),
        ("h", 3600.0),
        ("m", 60.0),
        ("s", 1.0),
    ];
    let mut seconds = 0.0;
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, tail) = rest.split_at_checked(end)?;
        let (unit, factor) = UNITS.iter().find(|(unit, _)| tail.starts_with(unit))?;
        seconds += number.parse::<f64>().ok()? * factor;
        rest = tail.strip_prefix(unit)?;
    }
    let fits = !text.is_empty() && seconds <= 366.0 * 86_400.0;
    if fits { Duration::try_from_secs_f64(seconds).ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: &[&str]) -> Result<Arguments, String> {
        Arguments::parse(arguments.iter().map(ToString::to_string))
    }

    fn settings(arguments: &[&str]) -> Settings {
        match parse(arguments).unwrap() {
            Arguments::Run(settings) => settings,
            Arguments::Help => panic!("help"),
        }
    }

    #[test]
    fn flags_have_the_go_daemons_defaults() {
        let defaults = settings(&[]);
        assert_eq!(defaults.socket, PathBuf::from("/run/cni/dhcp.sock"));
        assert_eq!(defaults.resend_timeout, Duration::from_secs(208));
        assert_eq!((defaults.pidfile, defaults.broadcast), (None, false));
    }

    #[test]
    fn one_dash_or_two_and_both_ways_of_values() {
        for form in [
            &["-timeout", "1m2s", "-broadcast", "-pidfile=/x"][..],
            &["--timeout=62s", "--broadcast=true", "--pidfile", "/x"],
        ] {
            let settings = settings(form);
            assert_eq!(settings.timeout, Duration::from_secs(62));
            assert!(settings.broadcast);
            assert_eq!(settings.pidfile, Some("/x".into()));
        }
        assert!(!settings(&["-broadcast=0"]).broadcast);
        let prefixed = settings(&["-hostprefix", "/host/", "-datadir=/d"]);
        assert_eq!(prefixed.socket, PathBuf::from("/host/run/cni/dhcp.sock"));
        assert_eq!(prefixed.data, PathBuf::from("/host/d"));
        assert_eq!(prefixed.host_prefix, "/host");
        for help in ["-h", "-help", "--help"] {
            assert_eq!(parse(&["-broadcast", help]), Ok(Arguments::Help));
        }
    }

    #[test]
    fn mistakes_are_told() {
        for (arguments, text) in [
            (&["-x"][..], "no flag -x"),
            (&["-timeout"], "needs a value"),
            (&["-timeout", "10"], "a time"),
            (&["-timeout", "0s"], "above zero"),
            (&["-timeout", "999999h"], "a time"),
            (&["-pidfile", "x"], "absolute path"),
            (&["-socketpath="], "absolute path"),
            (&["-broadcast=maybe"], "true or false"),
            (&["extra"], "unexpected argument"),
            (&["-"], "unexpected argument"),
        ] {
            let error = parse(arguments).unwrap_err();
            assert!(error.contains(text), "{arguments:?}: {error}");
        }
    }

    #[test]
    fn times_are_gos() {
        assert_eq!(duration("1.5s"), Some(Duration::from_millis(1500)));
        assert_eq!(duration("1h2m3s"), Some(Duration::from_secs(3723)));
        assert_eq!(duration("250ms"), Some(Duration::from_millis(250)));
        for bad in ["", "s", "1", "1x", "-1s", "1..2s"] {
            assert_eq!(duration(bad), None, "{bad}");
        }
    }
}
