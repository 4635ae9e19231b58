//! The same in legacy xtables, which netlink doesn't reach.
//!
//! Only where the kernel has such a table at all is a program run:
//! `iptables-legacy`, with a bound on how long. Listing a table with it brings
//! the table into being, so nothing is asked where the kernel lists none.

use std::path::{Path, PathBuf};
use std::time::Duration;

use podwire_netlink::nft::IpVersion;
use podwire_spec::Error;
use podwire_sys::process::{ChildSpec, Exit, run};

/// How long one run may take, its wait for the lock included.
const DEADLINE: Duration = Duration::from_secs(10);
/// How long the program itself waits for the lock (`-w`), in seconds.
const LOCK_WAIT: &str = "5";
/// Where programs of the administrator are, beside PATH: runtimes give their
/// plugins a short one.
const DIRECTORIES: [&str; 5] = ["/usr/sbin", "/sbin", "/usr/local/sbin", "/usr/bin", "/bin"];

/// Whether legacy xtables have this table in the caller's network namespace.
pub fn has_table(version: IpVersion, table: &str) -> bool {
    let file = match version {
        IpVersion::V4 => "/proc/thread-self/net/ip_tables_names",
        IpVersion::V6 => "/proc/thread-self/net/ip6_tables_names",
    };
    std::fs::read_to_string(file).is_ok_and(|names| names.lines().any(|name| name == table))
}

/// What is run, as the end of its name.
#[derive(Clone, Copy)]
enum Tool {
    /// Lists, and does one command.
    Single,
    /// Does many commands as one.
    Restore,
}

fn program(version: IpVersion, tool: Tool) -> Option<PathBuf> {
    let stem = match version {
        IpVersion::V4 => "iptables",
        IpVersion::V6 => "ip6tables",
    };
    let end = match tool {
        Tool::Single => "",
        Tool::Restore => "-restore",
    };
    let path = std::env::var_os("PATH").unwrap_or_default();
    let directories: Vec<_> =
        std::env::split_paths(&path).chain(DIRECTORIES.map(PathBuf::from)).collect();
    let find = |name: String| {
        let mut candidates = directories.iter().map(|directory| directory.join(&name));
        candidates.find(|candidate| candidate.is_absolute() && candidate.is_file())
    };
    find(format!("{stem}-legacy{end}"))
        .or_else(|| find(format!("{stem}{end}")).filter(|found| is_legacy(found)))
}

/// Whether a program of the plain name works on legacy xtables: those that
/// don't say so in their version.
fn is_legacy(program: &Path) -> bool {
    let mut spec = ChildSpec::new(program);
    spec.arguments = vec!["-V".into()];
    spec.deadline = Some(DEADLINE);
    run(&spec).is_ok_and(|outcome| {
        outcome.exit.is_success() && !outcome.stdout.text().contains("nf_tables")
    })
}

/// The rules of a legacy table, each as the words that `-S` prints. `None`
/// when there is no such table, or, with a warning, no program to ask.
///
/// # Errors
/// The program failed, or took too long.
pub fn rules(version: IpVersion, table: &str) -> Result<Option<Vec<Vec<String>>>, Error> {
    if !has_table(version, table) {
        return Ok(None);
    }
    let Some(program) = program(version, Tool::Single) else {
        log::warn!(
            "legacy xtables have a table {table}, but iptables-legacy isn't installed: what may be \
             left there of former attachments stays"
        );
        return Ok(None);
    };
    let output = execute(&program, table, &["-S"])?;
    Ok(Some(output.lines().map(words).filter(|words| !words.is_empty()).collect()))
}

/// Removes a chain and the rules that jump to it. Says whether there was one.
///
/// # Errors
/// The program failed, or took too long.
pub fn remove_chain(version: IpVersion, table: &str, chain: &str) -> Result<bool, Error> {
    let Some(rules) = rules(version, table)? else { return Ok(false) };
    let is_it =
        |rule: &Vec<String>| matches!(rule.as_slice(), [new, name] if new == "-N" && name == chain);
    if !rules.iter().any(is_it) {
        return Ok(false);
    }
    let Some(program) = program(version, Tool::Single) else { return Ok(false) };
    for rule in rules.iter().filter(|rule| jumps_to(rule, chain)) {
        let mut arguments: Vec<&str> = rule.iter().map(String::as_str).collect();
        if let Some(command) = arguments.first_mut() {
            *command = "-D";
        }
        execute(&program, table, &arguments)?;
    }
    execute(&program, table, &["-F", chain])?;
    execute(&program, table, &["-X", chain])?;
    Ok(true)
}

/// Whether a legacy table does anything: has chains or rules of its own, or a
/// policy other than accept. Merely to list one makes it exist.
///
/// # Errors
/// The program failed, or took too long.
pub fn is_in_use(version: IpVersion, table: &str) -> Result<bool, Error> {
    let is_idle = |line: &Vec<String>| matches!(line.as_slice(), [command, _, policy, ..] if command == "-P" && policy == "ACCEPT");
    Ok(rules(version, table)?.is_some_and(|rules| !rules.iter().all(is_idle)))
}

/// Does commands (`-N`, `-A`, `-I`, `-D`, `-F`, `-X`), each given as words,
/// together or not at all.
///
/// # Errors
/// There is no program for it, or it failed or took too long.
pub fn apply(version: IpVersion, table: &str, commands: &[Vec<String>]) -> Result<(), Error> {
    let program = program(version, Tool::Restore).ok_or_else(|| {
        Error::internal(format!(
            "this host's firewall is in legacy xtables (table {table}), and iptables-legacy-restore \
             isn't installed"
        ))
        .with_details("install the iptables package, or move the host's rules to nftables")
    })?;
    let input = restore_input(table, commands);
    let mut spec = ChildSpec::new(&program);
    spec.arguments = ["-w", LOCK_WAIT, "--noflush"].map(Into::into).into();
    spec.stdin = input.as_bytes();
    spec.deadline = Some(DEADLINE);
    conclude(&format!("{} --noflush", program.display()), &spec).map(drop)
}

fn restore_input(table: &str, commands: &[Vec<String>]) -> String {
    let mut input = format!("*{table}\n");
    for command in commands {
        for word in command {
            let is_plain = !word.is_empty()
                && word.bytes().all(|byte| byte.is_ascii_graphic() && !b"\"'\\".contains(&byte));
            if is_plain {
                input.push_str(word);
            } else {
                input.push('"');
                for letter in word.chars().filter(|letter| !letter.is_control()) {
                    if matches!(letter, '"' | '\\') {
                        input.push('\\');
                    }
                    input.push(letter);
                }
                input.push('"');
            }
            input.push(' ');
        }
        input.push('\n');
    }
    input.push_str("COMMIT\n");
    input
}

/// Whether a rule, as words, jumps or goes over to a chain.
pub fn jumps_to(rule: &[String], chain: &str) -> bool {
    rule.first().is_some_and(|word| word == "-A")
        && rule.windows(2).any(|pair| {
            matches!(pair, [option, name] if matches!(option.as_str(), "-j" | "-g") && name == chain)
        })
}

/// The comment of a rule, as words.
pub fn comment(rule: &[String]) -> Option<&str> {
    let at = rule.iter().position(|word| word == "--comment")?;
    rule.get(at + 1).map(String::as_str)
}

fn execute(program: &Path, table: &str, arguments: &[&str]) -> Result<String, Error> {
    let mut spec = ChildSpec::new(program);
    spec.arguments = ["-w", LOCK_WAIT, "-t", table]
        .iter()
        .chain(arguments)
        .map(|argument| (*argument).into())
        .collect();
    spec.deadline = Some(DEADLINE);
    conclude(&format!("{} -t {table} {}", program.display(), arguments.join(" ")), &spec)
}

/// Runs it and returns what it said.
fn conclude(doing: &str, spec: &ChildSpec<'_>) -> Result<String, Error> {
    let outcome = run(spec).map_err(|error| Error::internal(format!("{doing}: {error}")))?;
    if outcome.exit.is_success() {
        return Ok(String::from_utf8_lossy(&outcome.stdout.bytes).into_owned());
    }
    let text = format!("{doing}: {}", outcome.exit);
    // 4: the lock was held too long, or memory was short: worth another try.
    let error =
        if outcome.exit == Exit::Code(4) { Error::try_again(text) } else { Error::internal(text) };
    Err(error.with_details(String::from_utf8_lossy(&outcome.stderr.bytes).trim().to_owned()))
}

/// Splits a line of `-S` as a shell would: blanks part, double quotes keep
/// together, a backslash takes the next letter as it is.
pub(crate) fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = None::<String>;
    let mut quoted = false;
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '"' => {
                quoted = !quoted;
                word.get_or_insert_default();
            }
            '\\' => word.get_or_insert_default().extend(letters.next()),
            ' ' if !quoted => words.extend(word.take()),
            other => word.get_or_insert_default().push(other),
        }
    }
    words.extend(word);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_split_as_a_shell_does() {
        let rule = words(
            r#"-A CNI-HOSTPORT-DNAT -p tcp -m comment --comment "dnat name: \"n1\" id: \"c1\"" -j CNI-DN-1"#,
        );
        assert_eq!(comment(&rule), Some(r#"dnat name: "n1" id: "c1""#));
        assert!(jumps_to(&rule, "CNI-DN-1") && !jumps_to(&rule, "CNI-DN-2"));
        assert_eq!(words(r#"-N """#), ["-N", ""]);
        assert!(words("").is_empty() && words("  ").is_empty());
        assert_eq!(comment(&words("-A X --comment")), None);
    }
    #[test]
    fn commands_are_quoted_for_restore() {
        let command = ["-A", "C", "--comment", r#"a "b" \c"#, "-j", "ACCEPT"].map(str::to_owned);
        assert_eq!(
            restore_input("filter", &[command.into()]),
            "*filter\n-A C --comment \"a \\\"b\\\" \\\\c\" -j ACCEPT \nCOMMIT\n"
        );
        let smuggled = ["-N", "x\nCOMMIT"].map(str::to_owned);
        assert_eq!(restore_input("t", &[smuggled.into()]), "*t\n-N \"xCOMMIT\" \nCOMMIT\n");
    }
}
