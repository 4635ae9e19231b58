//! Starting the command in the namespace.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use podwire_netlink::route::RouteSocket;
use podwire_netlink::route::link_change::ChangeLink;
use podwire_spec::error::Error;
use podwire_sys::netns::NetNs;
use podwire_sys::process::{BeyondSizeLimit, beyond_size_limit};
use rustix::io::FdFlags;

use super::mounts;
use super::sandbox::Sandbox;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output;

/// What became of the start.
#[derive(Debug)]
pub(super) enum Started {
    /// It runs.
    Running(Child),
    /// The command itself is at fault: exit 126 or 127.
    Not(Exit, Failure),
}

/// Starts the command. It inherits everything from us but the two namespaces.
pub(super) fn start(
    sandbox: &Sandbox,
    resolver: Option<&Path>,
    command: &[OsString],
) -> Result<Started, Failure> {
    let namespace =
        NetNs::open(sandbox.path()).map_err(|error| Error::namespace(error.to_string()))?;
    // A child has the namespaces of the thread that starts it; this thread
    // ends with that.
    std::thread::scope(|scope| {
        let work = || namespace.run(|| start_here(sandbox, resolver, command));
        let thread = scope.spawn(work);
        let outcome = thread.join().map_err(|_| Error::internal("the starting thread failed"))?;
        outcome.map_err(|error| Error::namespace(format!("entering the namespace: {error}")))?
    })
}

fn start_here(
    sandbox: &Sandbox,
    resolver: Option<&Path>,
    command: &[OsString],
) -> Result<Started, Failure> {
    loopback_up()?;
    for doubt in mounts::arrange(resolver)? {
        output::warn(&format!("{doubt}; the command sees that of the host"));
    }
    // As long as the command runs the sandbox counts as in use, also when we
    // were killed.
    let lock = sandbox.lock().as_fd();
    rustix::io::fcntl_setfd(lock, FdFlags::empty())
        .map_err(|error| Error::internal(format!("handing on the lock: {error}")))?;
    let Some((program, arguments)) = command.split_first() else {
        return Err(Failure::Usage(Error::environment("no command is given")));
    };
    // The command gets the signal as the kernel has it, not as we do.
    beyond_size_limit(BeyondSizeLimit::Kills);
    let spawned = Command::new(program).args(arguments).spawn();
    beyond_size_limit(BeyondSizeLimit::IsAnError);
    Ok(match spawned {
        Ok(child) => Started::Running(child),
        Err(source) => {
            let code = if source.kind() == ErrorKind::NotFound { 127 } else { 126 };
            let path = PathBuf::from(program);
            Started::Not(Exit::Code(code), Failure::System { action: "executing", path, source })
        }
    })
}

/// A command that talks to itself expects 127.0.0.1 to answer.
fn loopback_up() -> Result<(), Error> {
    let up = || {
        let mut socket = RouteSocket::open()?;
        match socket.link_by_name("lo")? {
            Some(link) => socket.apply(&ChangeLink::new(link.device()).up()),
            None => Ok(()),
        }
    };
    up().map_err(|error| Error::internal(format!("setting lo up: {error}")))
}
