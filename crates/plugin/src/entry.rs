//! The entry point of a plugin program.

use std::io::{IsTerminal, Read, Write};
use std::process::ExitCode;

use podwire_spec::operation::Operation;
use podwire_sys::process::{BeyondSizeLimit, beyond_size_limit};

use crate::dispatch::dispatch;
use crate::environment::Environment;
use crate::logger::log_to_stderr;
use crate::plugin::{Plugin, Registry};

/// Runs the plugin on this process's variables and standard streams.
pub fn run(plugin: &'static dyn Plugin) -> ExitCode {
    run_with(plugin, &[])
}

/// The same for a program that holds several plugins: IPAM delegates among
/// `registry` run in-process when the delegate's executable is this very
/// file.
pub fn run_with(plugin: &'static dyn Plugin, registry: &'static Registry) -> ExitCode {
    log_to_stderr(plugin.description().name);
    // The message of a panic becomes part of the log, not of the protocol.
    std::panic::set_hook(Box::new(|info| log::error!("{info}")));
    // A full file is an error that is answered, never the end in the middle of a change.
    beyond_size_limit(BeyondSizeLimit::IsAnError);
    let environment = Environment::read(|name| std::env::var_os(name));
    let mut input = Kept { source: input(), bytes: Vec::new() };
    let output = dispatch(plugin, registry, environment.clone(), &mut input);
    let mut stderr = std::io::stderr();
    let _ = stderr.write_all(output.stderr.as_bytes());
    let Err(error) = write_whole(output.stdout.as_bytes()) else {
        return ExitCode::from(output.code);
    };
    log::error!("could not write the answer to standard output: {error}");
    if let Ok(environment) = environment
        && output.code == 0
        && Operation::parse(&environment.command) == Some(Operation::Add)
    {
        take_back(plugin, registry, environment, &input.bytes);
    }
    ExitCode::FAILURE
}

/// An ADD whose result nobody gets has failed: what it made is removed, as by the DEL
/// that the runtime owes, but perhaps can't make any more.
fn take_back(
    plugin: &'static dyn Plugin,
    registry: &'static Registry,
    environment: Environment,
    mut input: &[u8],
) {
    let command = Operation::Del.as_str().to_owned();
    let environment = Environment { command, ..environment };
    let output = dispatch(plugin, registry, Ok(environment), &mut input);
    if output.code != 0 {
        log::error!("what was made could not be removed again: {}", output.stdout);
    }
}

/// Standard input, kept for a second call.
struct Kept<R> {
    source: R,
    bytes: Vec<u8>,
}

impl<R: Read> Read for Kept<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = self.source.read(buffer)?;
        self.bytes.extend_from_slice(buffer.get(..count).unwrap_or_default());
        Ok(count)
    }
}

/// Writes to standard output without the library's line buffering, which
/// would split the one document in two.
fn write_whole(mut bytes: &[u8]) -> std::io::Result<()> {
    let stdout = std::io::stdout();
    while !bytes.is_empty() {
        match rustix::io::write(&stdout, bytes) {
            Ok(0) => return Err(std::io::ErrorKind::WriteZero.into()),
            Ok(written) => bytes = bytes.get(written..).unwrap_or_default(),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Standard input, which is empty when it is a terminal: somebody trying a
/// plugin by hand isn't left with a program that waits.
fn input() -> Box<dyn Read> {
    let stdin = std::io::stdin();
    if stdin.is_terminal() { Box::new(std::io::empty()) } else { Box::new(stdin) }
}
