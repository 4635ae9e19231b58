//! `podwire run`: a command in a fresh namespace, attached to networks.

mod child;
mod mounts;
mod resolver;
mod sandbox;
mod signals;

use podwire_runtime::{Attached, Attachment, Existing, Network, Runtime, Source};
use podwire_spec::id::IfName;

use self::child::Started;
use self::sandbox::Sandbox;
use self::signals::Signals;
use crate::arguments::{CommonArguments, Format, RunArguments};
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output;
use crate::signals::{Interruption, SecondInterrupt};

/// The exit code when it isn't the command's: the convention of env(1) and of
/// container tools.
const NOT_SET_UP: Exit = Exit::Code(125);

/// Runs the command; whatever happens, removes what was set up for it.
pub(super) fn run(common: CommonArguments, arguments: &RunArguments) -> Result<Exit, Failure> {
    let format = common.output;
    let (context, interruption) = Context::watched(common, SecondInterrupt::Waits)?;
    let report = |failure: &Failure| match output::report(failure, format) {
        Exit::Usage => Exit::Usage,
        _ => interruption.exit().unwrap_or(NOT_SET_UP),
    };
    Ok(match prepare_and_run(&context, arguments, &interruption, &report) {
        Ok(exit) => exit,
        Err(failure) => report(&failure),
    })
}

fn prepare_and_run(
    context: &Context,
    arguments: &RunArguments,
    interruption: &Interruption,
    report: &dyn Fn(&Failure) -> Exit,
) -> Result<Exit, Failure> {
    let runtime = &context.runtime;
    // All that may be wrong with what was asked for comes before anything is made.
    let networks = arguments
        .networks
        .iter()
        .map(|name| runtime.network(name.as_str()))
        .collect::<Result<Vec<_>, _>>()?;
    let mut first = Some((
        context.args(arguments.args.as_ref())?,
        context.capability_args(arguments.cap_args.as_ref())?,
    ));
    sandbox::sweep(runtime);
    let sandbox = Sandbox::create(arguments.container_id.as_ref())?;
    let mut attachments = Vec::new();
    for (index, network) in networks.iter().enumerate() {
        let ifname = IfName::parse(&format!("eth{index}"))?;
        let mut attachment =
            Attachment::new(sandbox.id().clone(), ifname).with_netns(sandbox.path());
        (attachment.args, attachment.capability_args) = first.take().unwrap_or_default();
        attachments.push((network, attachment));
    }
    let mut attached = Vec::new();
    let outcome = attach_all(runtime, &attachments, &mut attached)
        .and_then(|()| in_sandbox(&sandbox, &attached, arguments, interruption, context.format));
    let exit = outcome.unwrap_or_else(|failure| report(&failure));
    // From here on signals change nothing: the removal has deadlines.
    let removed = detach_all(runtime, &attachments, attached.len());
    match removed.and_then(|()| sandbox.remove()) {
        Ok(()) => Ok(exit),
        Err(failure) => Err(failure),
    }
}

/// Attaches to one network after another; `attached` holds those done.
fn attach_all(
    runtime: &Runtime,
    attachments: &[(&Network, Attachment)],
    attached: &mut Vec<Attached>,
) -> Result<(), Failure> {
    for (network, attachment) in attachments {
        attached.push(runtime.add(network, attachment, Existing::Refuse)?);
    }
    Ok(())
}

/// Detaches the first `count`, last first; goes on after a failure.
fn detach_all(
    runtime: &Runtime,
    attachments: &[(&Network, Attachment)],
    count: usize,
) -> Result<(), Failure> {
    let mut failures = Vec::new();
    for (network, attachment) in attachments.iter().take(count).rev() {
        if let Err(error) = runtime.del(*network, attachment, Source::Recorded) {
            failures.push(error);
        }
    }
    if failures.is_empty() { Ok(()) } else { Err(Failure::Several(failures)) }
}

/// Runs the command to its end.
fn in_sandbox(
    sandbox: &Sandbox,
    attached: &[Attached],
    arguments: &RunArguments,
    interruption: &Interruption,
    format: Format,
) -> Result<Exit, Failure> {
    let dns = attached.iter().map(|attached| &attached.result.dns).find(|dns| !dns.is_empty());
    let resolver = dns.map(|dns| sandbox.write_resolver(&resolver::lines(dns))).transpose()?;
    // Before the look at the flag: a signal goes to one or the other.
    let signals = Signals::watch()?;
    if let Some(exit) = interruption.exit() {
        return Ok(exit);
    }
    match child::start(sandbox, resolver.as_deref(), &arguments.command)? {
        Started::Running(child) => signals.wait_for(child),
        Started::Not(exit, failure) => {
            output::report(&failure, format);
            Ok(exit)
        }
    }
}
