//! A person at a terminal of a node: the `podwire` command with the usual
//! directories, our plugins and fake ones.
#![allow(dead_code)] // Each test program uses its part.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]
#![allow(unreachable_pub)]

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use podwire_testkit::fake::Fake;
use podwire_testkit::{Output, World};
use serde_json::{Value, json};

/// Where networks are configured.
pub const CONFIGURATION: &str = "/etc/cni/net.d";

/// A node with a command line.
pub struct Terminal {
    pub world: World,
    /// Fake plugins, looked for before ours.
    pub fakes: PathBuf,
    program: PathBuf,
}

impl Terminal {
    /// A fresh node with our plugins and no networks.
    #[track_caller]
    pub fn new() -> Self {
        let world = World::new();
        let own = std::env::current_exe().unwrap();
        let program = own.parent().unwrap().with_file_name("podwire");
        assert!(
            program.is_file(),
            "{} is not built; run: cargo build -p podwire",
            program.display()
        );
        let fakes = world.path("fakes");
        std::fs::create_dir(&fakes).unwrap();
        Self { world, fakes, program }
    }

    /// Writes a network's configuration and returns its file.
    #[track_caller]
    pub fn network(&self, config: &Value) -> PathBuf {
        let name = config["name"].as_str().unwrap();
        self.configure(&format!("{name}.conflist"), format!("{config:#}\n"))
    }

    /// Writes a file of the configuration directory.
    #[track_caller]
    #[allow(clippy::unused_self)] // The directory is the world's own.
    pub fn configure(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = Path::new(CONFIGURATION).join(name);
        std::fs::write(&path, content).unwrap();
        path
    }

    /// A network `pods`: a bridge with addresses of 10.1.0.0/24.
    #[track_caller]
    pub fn pods(&self) {
        self.network(&json!({
            "cniVersion": "1.1.0",
            "name": "pods",
            "plugins": [{
                "type": "bridge",
                "bridge": "br0",
                "isGateway": true,
                "ipam": {"type": "host-local", "subnet": "10.1.0.0/24"},
                "dns": {"nameservers": ["10.1.0.1"], "search": ["pods.example"]},
            }],
        }));
    }

    /// A network of fake plugins, in this order.
    #[track_caller]
    pub fn fakes(&self, name: &str, plugins: &[(&str, Fake)]) {
        for (_, fake) in plugins {
            fake.write(&self.fakes);
        }
        let plugins: Vec<_> = plugins.iter().map(|(name, _)| json!({"type": name})).collect();
        self.network(&json!({"cniVersion": "1.1.0", "name": name, "plugins": plugins}));
    }

    /// The value of `CNI_PATH`.
    pub fn plugin_path(&self) -> String {
        format!("{}:{}", self.fakes.display(), self.world.plugin_directory().display())
    }

    /// Runs `podwire` with these arguments, separated by blanks.
    #[track_caller]
    pub fn run(&self, line: &str) -> Output {
        self.run_with(&[], &line.split(' ').collect::<Vec<_>>())
    }

    /// Runs `podwire` with these arguments and variables.
    #[track_caller]
    pub fn run_with(&self, variables: &[&str], arguments: &[&str]) -> Output {
        let path = format!("CNI_PATH={}", self.plugin_path());
        let start = ["env", path.as_str()];
        let program = [self.program.to_str().unwrap()];
        self.world.try_exec(&[&start, variables, &program, arguments].concat())
    }

    /// Runs `podwire` and wants exit code and standard output to be these.
    #[track_caller]
    pub fn expect(&self, line: &str, code: i32, stdout: &str) -> Output {
        let output = self.run(line);
        assert_eq!((output.code, output.stdout.as_str()), (code, stdout), "{output:#?}");
        output
    }

    /// Starts `podwire` and doesn't wait for it.
    #[track_caller]
    pub fn start(&self, arguments: &[&str]) -> Child {
        Command::new(&self.program)
            .args(arguments)
            .env("CNI_PATH", self.plugin_path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }

    /// Sends a signal to a process.
    #[track_caller]
    pub fn signal(&self, name: &str, child: &Child) {
        self.world.exec(&["kill", &format!("-{name}"), &child.id().to_string()]);
    }

    /// The states of the attachments, as `podwire list` has them.
    #[track_caller]
    pub fn states(&self) -> Vec<String> {
        let list = self.run("list --output json").success().json();
        let attachments = list["attachments"].as_array().unwrap();
        attachments.iter().map(|entry| entry["state"].as_str().unwrap().to_owned()).collect()
    }
}

/// What a process that was started wrote, and its exit code.
#[track_caller]
pub fn finish(child: Child) -> (Option<i32>, String, String) {
    let output = child.wait_with_output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}
