//! From variables and standard input to one document on standard output:
//! the whole protocol, with everything outside injected, so that all of it is
//! tested without a process.

use std::io::Read;
use std::panic::{AssertUnwindSafe, catch_unwind};

use podwire_spec::error::{Error, ErrorCode};
use podwire_spec::id::{AttachmentKey, ContainerId, IfName};
use podwire_spec::operation::Operation;
use podwire_spec::request::PluginRequest;
use podwire_spec::version::SpecVersion;
use podwire_spec::version_info;
use podwire_sys::netns::NetNs;

use crate::attachment::Attachment;
use crate::environment::Environment;
use crate::plugin::{Description, Plugin, Registry};
use crate::request::Request;
use crate::sandbox::Sandbox;
use crate::undo::Undo;

/// Standard input longer than this is refused: 8 MiB, far above any real
/// configuration, far below what would hurt a node.
pub const STDIN_LIMIT: u64 = 8 << 20;

/// What one call prints and how it ends.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Output {
    /// For standard output, written once.
    pub stdout: String,
    /// For standard error.
    pub stderr: String,
    /// The exit code: 0 or 1.
    pub code: u8,
}

/// Runs one call of a plugin.
pub fn dispatch(
    plugin: &'static dyn Plugin,
    registry: &'static Registry,
    environment: Result<Environment, Error>,
    stdin: &mut dyn Read,
) -> Output {
    let description = plugin.description();
    let environment = match environment {
        Ok(environment) => environment,
        Err(error) => return failure(&error, SpecVersion::LATEST),
    };
    if environment.command.is_empty() {
        return about(&description);
    }
    let mut version = SpecVersion::LATEST;
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        call(plugin, registry, &environment, stdin, &mut version)
    }))
    .unwrap_or_else(|_| Err(Error::internal("a bug in Podwire: the call panicked")));
    match outcome {
        Ok(stdout) => Output { stdout, ..Output::default() },
        Err(error) => failure(&error, version),
    }
}

fn failure(error: &Error, version: SpecVersion) -> Output {
    Output { stdout: error.to_json(Some(version)), stderr: String::new(), code: 1 }
}

/// What a plugin prints when a person runs it without variables.
fn about(description: &Description) -> Output {
    let versions: Vec<_> = description.versions.iter().map(|version| version.as_str()).collect();
    let stderr = format!(
        "CNI {} plugin v{}\nPodwire {}\nCNI protocol versions supported: {}\n",
        description.name,
        description.version,
        env!("CARGO_PKG_VERSION"),
        versions.join(", ")
    );
    Output { stderr, ..Output::default() }
}

fn call(
    plugin: &'static dyn Plugin,
    registry: &'static Registry,
    environment: &Environment,
    stdin: &mut dyn Read,
    version_of_errors: &mut SpecVersion,
) -> Result<String, Error> {
    let description = plugin.description();
    environment.validate()?;
    let operation = Operation::parse(&environment.command);
    if operation == Some(Operation::Version) {
        return Ok(version_info(&description, stdin));
    }
    let input = read(stdin)?;
    let config = PluginRequest::parse(&input)?;
    let operation = operation.ok_or_else(|| environment.unknown_command())?;
    let version = gate(&description, operation, &config)?;
    *version_of_errors = version;
    let request = Request { config: &config, version, environment, registry, delegated: false };
    match operation {
        Operation::Add => {
            let attachment = attachment(&description, operation, &request)?;
            let mut undo = Undo::new();
            let outcome = catch_unwind(AssertUnwindSafe(|| {
                plugin
                    .add(&request, &attachment, &mut undo)
                    .and_then(|result| result.to_json(version))
            }))
            .unwrap_or_else(|_| Err(Error::internal("a bug in Podwire: ADD panicked")));
            match &outcome {
                Ok(_) => undo.forget(),
                Err(_) => undo.unwind(),
            }
            outcome
        }
        Operation::Del => {
            plugin.del(&request, &attachment(&description, operation, &request)?)?;
            Ok(String::new())
        }
        Operation::Check => {
            plugin.check(&request, &attachment(&description, operation, &request)?)?;
            Ok(String::new())
        }
        Operation::Status => plugin.status(&request).map(|()| String::new()),
        Operation::Gc => match &config.valid_attachments {
            None => {
                log::warn!(
                    "GC without cni.dev/valid-attachments: nothing is freed, since an absent \
                     list doesn't say that nothing is alive"
                );
                Ok(String::new())
            }
            Some(valid) => plugin.gc(&request, valid).map(|()| String::new()),
        },
        Operation::Version => Ok(version_info(&description, stdin)),
    }
}

fn read(stdin: &mut dyn Read) -> Result<String, Error> {
    let mut bytes = Vec::new();
    stdin
        .take(STDIN_LIMIT + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| Error::io(format!("error reading from stdin: {error}")))?;
    if bytes.len() as u64 > STDIN_LIMIT {
        return Err(Error::decode(format!(
            "the configuration on standard input is longer than {STDIN_LIMIT} bytes"
        )));
    }
    String::from_utf8(bytes).map_err(|error| {
        Error::decode(format!("the configuration on standard input is not UTF-8: {error}"))
    })
}

/// The version gates of the specification, in the reference's order: what the
/// operation needs first, then whether this plugin serves the very version.
fn gate(
    description: &Description,
    operation: Operation,
    config: &PluginRequest<'_>,
) -> Result<SpecVersion, Error> {
    let given = config.version_numbers()?;
    if operation.since() >= SpecVersion::V0_4_0 {
        let refuse = |whose: &str| {
            Err(Error::incompatible_version(format!("{whose} version does not allow {operation}")))
        };
        if given < operation.since().numbers() {
            return refuse("config");
        }
        if !description.versions.iter().any(|version| given <= version.numbers()) {
            return refuse("plugin");
        }
    }
    config.spec_version(description.versions)
}

/// The attachment of the request, with the guard against acting on our own
/// namespace BEFORE any work: a runtime that passes `/proc/PID/ns/net` of a
/// dead process may name it by accident (containernetworking/plugins#714).
fn attachment(
    description: &Description,
    operation: Operation,
    request: &Request<'_>,
) -> Result<Attachment, Error> {
    let environment = request.environment;
    let key = AttachmentKey {
        network: request.config.name.clone(),
        container_id: ContainerId::parse(&environment.container_id)?,
        ifname: IfName::parse(&environment.ifname)?,
    };
    let sandbox = Sandbox::open(&environment.netns)?;
    if operation != Operation::Check && !environment.overrides_netns() {
        refuse_own_namespace(&sandbox)?;
    }
    let needs_namespace = description.role != crate::plugin::Role::Ipam;
    if needs_namespace && matches!(operation, Operation::Add | Operation::Check) {
        sandbox.require()?;
    }
    Ok(Attachment::new(key, sandbox))
}

fn refuse_own_namespace(sandbox: &Sandbox) -> Result<(), Error> {
    let Sandbox::Present { netns, path } = sandbox else { return Ok(()) };
    let own = NetNs::current().map_err(|error| {
        Error::new(ErrorCode::InvalidNamespace, format!("get plugin's netns failed: {error}"))
    })?;
    let same = netns.is_same(&own).map_err(|error| {
        Error::new(ErrorCode::InvalidNamespace, format!("get plugin's netns failed: {error}"))
    })?;
    if !same {
        return Ok(());
    }
    Err(Error::new(
        ErrorCode::InvalidNamespace,
        "plugin's netns and netns from CNI_NETNS should not be the same",
    )
    .with_details(format!(
        "{} is the host's namespace; set CNI_NETNS_OVERRIDE=1 if that is meant",
        path.display()
    )))
}

/// The VERSION answer: in the caller's version when we serve it. Standard
/// input that is absent or garbage is no error here.
fn version_info(description: &Description, stdin: &mut dyn Read) -> String {
    let asked = read(stdin).unwrap_or_default();
    version_info::reply(&asked, description.versions)
}

#[cfg(test)]
#[path = "dispatch_tests.rs"]
mod tests;
