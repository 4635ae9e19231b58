//! The commands, one file each.

mod bench;
mod build;
mod cases;
mod crash;
mod demo;
mod docs;
mod fuzz;
mod install;
mod interop;
mod package;
mod peers;
mod races;
mod setup;
mod test;
mod tidy;
mod vmtest;

use crate::Result;

/// A developer command.
pub(crate) struct Command {
    /// What is typed after `cargo xtask`.
    pub(crate) name: &'static str,
    /// One line for the help, options included.
    pub(crate) about: &'static str,
    /// The work; receives the arguments after the name.
    pub(crate) run: fn(&[String]) -> Result<()>,
}

/// Every command, in the order of the help.
pub(crate) const ALL: &[Command] = &[
    Command {
        name: "demo",
        about: "two containers wired, reachable, checked, collected and removed",
        run: demo::run,
    },
    Command {
        name: "test",
        about: "everything that CI runs, on a fresh machine; --fast leaves out the slow steps",
        run: test::run,
    },
    Command {
        name: "crash",
        about: "kill all chains at every system call; --full in every scene, --only TEXT, --kills N, \
                --page FILE",
        run: crash::run,
    },
    Command {
        name: "fuzz",
        about: "every parser of outside data; --target NAME, --seconds N of each (0 replays only)",
        run: fuzz::run,
    },
    Command {
        name: "races",
        about: "operations that meet on purpose, and a witness; --operations N, --crowd N",
        run: races::run,
    },
    Command { name: "setup", about: "install what this machine lacks", run: setup::run },
    Command {
        name: "peers",
        about: "fetch the Go plugins and build the Go client that tests compare with; --refresh",
        run: peers::run,
    },
    Command {
        name: "interop",
        about: "under the runtimes that people have, and beside the Go plugins; --filter TEST",
        run: interop::run,
    },
    Command { name: "build", about: "static programs in target/dist", run: build::run },
    Command {
        name: "install",
        about: "--cni-bin-dir DIR [--bin-dir DIR] [--unit-dir DIR]: put programs and units there",
        run: install::run,
    },
    Command {
        name: "package",
        about: "a .deb and a .tar.gz in target/package; --built takes the programs of target/dist, --rebuild makes them twice",
        run: package::run,
    },
    Command {
        name: "bench",
        about: "podwire, Go and the kernel's floor; --section NAME, --rounds N, --report, --quick",
        run: bench::run,
    },
    Command {
        name: "vmtest",
        about: "tests on other kernels; --kernel 6.1|6.1-without-ipv6|6.12, --filter TEST, --kills N, --refresh",
        run: vmtest::run,
    },
    Command { name: "tidy", about: "the rules that a compiler can't hold", run: tidy::run },
    Command {
        name: "docs",
        about: "write the pages of docs/ that the tests hold to what they prove",
        run: docs::run,
    },
    Command {
        name: "cases",
        about: "which test covers which case; --component NAME, --missing",
        run: cases::run,
    },
];

/// Takes the value of `--name VALUE` or `--name=VALUE` out of `arguments`.
///
/// # Errors
/// When the option is there but its value isn't.
fn take_value(arguments: &mut Vec<String>, name: &str) -> Result<Option<String>> {
    if let Some(position) = arguments.iter().position(|argument| argument == name) {
        arguments.remove(position);
        if position < arguments.len() {
            return Ok(Some(arguments.remove(position)));
        }
        return Err(format!("{name} needs a value").into());
    }
    let prefix = format!("{name}=");
    let Some(position) = arguments.iter().position(|argument| argument.starts_with(&prefix)) else {
        return Ok(None);
    };
    Ok(arguments.remove(position).strip_prefix(&prefix).map(str::to_owned))
}

/// Takes the switch `name` out of `arguments`; true if it was there.
fn take_switch(arguments: &mut Vec<String>, name: &str) -> bool {
    let before = arguments.len();
    arguments.retain(|argument| argument != name);
    arguments.len() != before
}

/// Refuses what no option has taken.
///
/// # Errors
/// Names the first argument left.
fn no_more(arguments: &[String]) -> Result<()> {
    match arguments.first() {
        None => Ok(()),
        Some(argument) => Err(format!("unknown argument `{argument}`").into()),
    }
}

#[cfg(test)]
mod tests {
    use super::{take_switch, take_value};

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn an_option_is_taken_with_its_value_in_both_spellings() {
        let mut arguments = words("--a 1 --b=2 --c");
        assert_eq!(take_value(&mut arguments, "--a").unwrap().as_deref(), Some("1"));
        assert_eq!(take_value(&mut arguments, "--b").unwrap().as_deref(), Some("2"));
        assert!(take_value(&mut arguments, "--c").is_err());
        assert!(arguments.is_empty());
    }

    #[test]
    fn a_switch_is_taken_once() {
        let mut arguments = words("--fast");
        assert!(take_switch(&mut arguments, "--fast"));
        assert!(!take_switch(&mut arguments, "--fast"));
    }
}
