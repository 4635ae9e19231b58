//! The program that is every plugin: which one, its own name says.

use std::ffi::OsStr;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use podwire_plugin::{Plugin, aside, lookup, run_with};
use podwire_plugins::PLUGINS;
use podwire_spec::Error;
use podwire_sys::arena::Arena;
use podwire_sys::identity;

/// A plugin lives for milliseconds: memory is hardly ever given back.
#[global_allocator]
static MEMORY: Arena = Arena::new();

fn main() -> ExitCode {
    let mut arguments = std::env::args_os();
    let called = arguments.next().unwrap_or_default();
    let own_name = Path::new(&called).file_name().unwrap_or_default();
    if let Some(plugin) = own_name.to_str().and_then(|name| lookup(PLUGINS, name)) {
        return match original(plugin.description().name) {
            Some(original) => become_original(&original, &called, arguments),
            None => run(plugin, arguments),
        };
    }
    let argument = arguments.next().unwrap_or_default();
    match argument.to_str().unwrap_or_default() {
        "--list-plugins" => print(&names("\n")),
        "--version" => print(&format!("podwire-cni {}\n", env!("CARGO_PKG_VERSION"))),
        "--help" | "" => print(&help()),
        name => match lookup(PLUGINS, name) {
            Some(plugin) => run(plugin, arguments),
            None => {
                let text = format!("podwire-cni holds no plugin \"{name}\"\n\n{}", help());
                let _ = std::io::stderr().write_all(text.as_bytes());
                ExitCode::from(2)
            }
        },
    }
}

/// The program of a node that was rolled back which this call belongs to.
fn original(plugin: &str) -> Option<PathBuf> {
    let executable = identity::own_executable().ok()?;
    aside::original(&executable, plugin, std::env::var_os("CNI_COMMAND").as_deref())
}

/// Replaces this process, so that nobody sees that it ever was another.
fn become_original(original: &Path, called: &OsStr, arguments: std::env::ArgsOs) -> ExitCode {
    let error = Command::new(original).arg0(called).args(arguments).exec();
    let error = Error::internal(format!("could not run {}: {error}", original.display()))
        .with_details("this node was rolled back; finish it with: podwire migrate --rollback");
    print(&error.to_json(None));
    ExitCode::FAILURE
}

/// Runs the plugin; `dhcp daemon` is the one that isn't a plugin's call.
fn run(plugin: &'static dyn Plugin, mut arguments: std::env::ArgsOs) -> ExitCode {
    if plugin.description().name == "dhcp"
        && arguments.next().is_some_and(|first| first == "daemon")
    {
        let flags = arguments.map(|flag| flag.to_string_lossy().into_owned());
        return podwire_dhcp::daemon::run(flags);
    }
    run_with(plugin, PLUGINS)
}

fn names(separator: &str) -> String {
    let mut text = String::new();
    for plugin in PLUGINS {
        text.push_str(plugin.description().name);
        text.push_str(separator);
    }
    text
}

fn help() -> String {
    format!(
        "podwire-cni holds these CNI plugins: {}\n\
         A container runtime runs it under one of these names, from a hard link or a copy:\n\
         \n\
         \x20   ln podwire-cni /opt/cni/bin/bridge\n\
         \n\
         By hand, the plugin's name may be the first argument:\n\
         \n\
         \x20   CNI_COMMAND=VERSION podwire-cni bridge\n\
         \n\
         The plugin dhcp needs its daemon, which keeps the leases:\n\
         \n\
         \x20   podwire-cni dhcp daemon --help\n\
         \n\
         Options:\n\
         \x20   --list-plugins   the names, one a line\n\
         \x20   --version        the program's version\n\
         \x20   --help           this text\n",
        names(" ")
    )
}

fn print(text: &str) -> ExitCode {
    match std::io::stdout().write_all(text.as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}
