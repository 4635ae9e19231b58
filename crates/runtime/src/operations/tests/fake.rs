//! A node whose plugins are closures, and the log of what they were asked.

use std::collections::BTreeSet;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use podwire_spec::id::{ContainerId, IfName, NetworkName, PluginType};
use podwire_spec::json::Object;
use podwire_spec::request::CapabilityArguments;

use crate::exec::{CallError, Executor, Exit, FoundInstead, PluginCall, PluginOutput, Searched};
use crate::{Attachment, CallInfo, Deadlines, Network, Notice, Observer, Runtime};

/// One call as a plugin saw it.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    pub(super) plugin: String,
    pub(super) environment: Vec<(String, String)>,
    pub(super) request: String,
}

impl Seen {
    pub(super) fn variable(&self, name: &str) -> &str {
        let found = self.environment.iter().find(|(key, _)| key == name);
        found.map_or("(not set)", |(_, value)| value)
    }

    pub(super) fn command(&self) -> &str {
        self.variable("CNI_COMMAND")
    }

    /// A key of the request, as JSON.
    pub(super) fn key(&self, key: &str) -> Option<String> {
        Object::parse(&self.request).unwrap().raw_exact(key).map(str::to_owned)
    }
}

/// What a plugin does: success with this output, or a failure.
pub(super) type Answer = Result<String, (i32, String)>;
type Behaviour = dyn Fn(&Seen) -> Answer + Send + Sync;

#[derive(Clone)]
struct FakeExecutor {
    log: Arc<Mutex<Vec<Seen>>>,
    missing: Arc<Mutex<BTreeSet<String>>>,
    behaviour: Arc<Mutex<Arc<Behaviour>>>,
}

impl Executor for FakeExecutor {
    fn find(&self, plugin: &PluginType, directories: &[PathBuf]) -> Result<PathBuf, Vec<Searched>> {
        if self.missing.lock().unwrap().contains(plugin.as_str()) {
            let place = |directory: &PathBuf| Searched {
                directory: directory.clone(),
                found: FoundInstead::Nothing,
            };
            return Err(directories.iter().map(place).collect());
        }
        Ok(Path::new("/fake").join(plugin.as_str()))
    }

    fn run(&self, call: &PluginCall<'_>) -> Result<PluginOutput, CallError> {
        let environment = call
            .environment
            .iter()
            .map(|(key, value)| ((*key).to_owned(), value.to_str().unwrap().to_owned()))
            .collect();
        let seen = Seen {
            plugin: call.program.file_name().unwrap().to_str().unwrap().to_owned(),
            environment,
            request: String::from_utf8(call.request.to_vec()).unwrap(),
        };
        self.log.lock().unwrap().push(seen.clone());
        let behaviour = Arc::clone(&self.behaviour.lock().unwrap());
        let (exit, stdout) = match behaviour(&seen) {
            Ok(stdout) => (0, stdout),
            Err((exit, stdout)) => (exit, stdout),
        };
        Ok(PluginOutput {
            exit: Exit::Code(exit),
            stdout: stdout.into_bytes(),
            stderr: format!("{} was asked\n", seen.plugin).into_bytes(),
        })
    }
}

#[derive(Clone, Default)]
struct Ear(Arc<Mutex<Vec<Notice>>>);

impl Observer for Ear {
    fn on_stderr(&self, call: &CallInfo<'_>, line: &str) {
        assert_eq!(line, format!("{} was asked", call.plugin));
    }

    fn on_notice(&self, notice: &Notice) {
        self.0.lock().unwrap().push(notice.clone());
    }
}

/// A private node.
pub(super) struct Node {
    pub(super) directory: tempfile::TempDir,
    pub(super) runtime: Runtime,
    executor: FakeExecutor,
    ear: Ear,
}

impl Node {
    /// A node whose plugins succeed, ADD with a result that names its version.
    pub(super) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let executor = FakeExecutor {
            log: Arc::default(),
            missing: Arc::default(),
            behaviour: Arc::new(Mutex::new(Arc::new(succeed))),
        };
        let ear = Ear::default();
        let deadlines =
            Deadlines { lock: std::time::Duration::from_millis(50), ..Deadlines::default() };
        let runtime = Runtime::builder()
            .configuration_directory(directory.path().join("net.d"))
            .plugin_directory("/fake")
            .cache_directory(directory.path().join("cache"))
            .lock_directory(directory.path().join("locks"))
            .deadlines(deadlines)
            .executor(executor.clone())
            .observer(ear.clone())
            .build();
        Self { directory, runtime, executor, ear }
    }

    pub(super) fn behave(&self, behaviour: impl Fn(&Seen) -> Answer + Send + Sync + 'static) {
        *self.executor.behaviour.lock().unwrap() = Arc::new(behaviour);
    }

    pub(super) fn lose(&self, plugin: &str) {
        self.executor.missing.lock().unwrap().insert(plugin.to_owned());
    }

    pub(super) fn restore(&self, plugin: &str) {
        self.executor.missing.lock().unwrap().remove(plugin);
    }

    /// What was asked since the last time, as `COMMAND plugin`.
    pub(super) fn calls(&self) -> Vec<String> {
        self.seen().iter().map(|seen| format!("{} {}", seen.command(), seen.plugin)).collect()
    }

    /// What was asked since the last time.
    pub(super) fn seen(&self) -> Vec<Seen> {
        std::mem::take(&mut *self.executor.log.lock().unwrap())
    }

    pub(super) fn notices(&self) -> Vec<Notice> {
        std::mem::take(&mut *self.ear.0.lock().unwrap())
    }

    /// The files below the cache and lock directories, relative.
    pub(super) fn files(&self) -> Vec<String> {
        let root = self.directory.path();
        let paths = podwire_sys::file::walk_regular_files(root, 5, 1000).unwrap();
        paths
            .iter()
            .map(|path| path.strip_prefix(root).unwrap().to_str().unwrap().to_owned())
            .collect()
    }

    /// Puts a file into the cache directory.
    pub(super) fn plant(&self, name: &str, bytes: &[u8]) {
        let path = self.directory.path().join("cache").join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }
}

/// A network namespace with nothing but `lo`, as long as this value lives.
pub(super) struct Namespace(Child);

impl Namespace {
    pub(super) fn new() -> Self {
        let mut child = Command::new("unshare")
            .args(["--net", "sh", "-c", "echo ready; read line"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut ready = [0; 6];
        child.stdout.as_mut().unwrap().read_exact(&mut ready).unwrap();
        Self(child)
    }

    pub(super) fn path(&self) -> PathBuf {
        format!("/proc/{}/ns/net", self.0.id()).into()
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

/// The default: all is well.
#[allow(clippy::unnecessary_wraps, reason = "it is one of the answers")]
pub(super) fn succeed(seen: &Seen) -> Answer {
    Ok(match seen.command() {
        "ADD" => {
            let version = seen.key("cniVersion").unwrap();
            format!(r#"{{"cniVersion":{version},"by":"{}"}}"#, seen.plugin)
        }
        _ => String::new(),
    })
}

/// An error object.
pub(super) fn refuse(code: u32, msg: &str) -> Answer {
    Err((1, format!(r#"{{"code":{code},"msg":"{msg}"}}"#)))
}

pub(super) fn network(name: &str, version: &str, plugins: &[&str]) -> Network {
    let plugins: Vec<_> = plugins
        .iter()
        .map(|plugin| format!(r#"{{"type":"{plugin}","capabilities":{{"mac":true}}}}"#))
        .collect();
    let text = format!(
        r#"{{"cniVersion":"{version}","name":"{name}","plugins":[{}]}}"#,
        plugins.join(",")
    );
    Network::from_list_bytes(text.as_bytes()).unwrap()
}

pub(super) fn attachment(id: &str) -> Attachment {
    Attachment::new(ContainerId::parse(id).unwrap(), IfName::parse("eth0").unwrap())
        .with_netns("/run/netns/nowhere")
}

pub(super) fn full_attachment(id: &str) -> Attachment {
    let mut attachment = attachment(id);
    attachment.args = vec![("K".into(), "V".into()), ("L".into(), "W".into())];
    attachment.capability_args =
        CapabilityArguments::parse(r#"{"mac":"00:11:22:33:44:55","ips":["10.0.0.9"]}"#).unwrap();
    attachment
}

pub(super) fn name(text: &str) -> NetworkName {
    NetworkName::parse(text).unwrap()
}
