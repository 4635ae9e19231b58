//! Plugins that do as told: small shell scripts that write down how they were called.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// A plugin to be written. It answers VERSION, records every call, and succeeds
/// unless told otherwise.
#[derive(Debug, Clone)]
pub struct Fake {
    name: String,
    result: String,
    behaviour: String,
}

/// One call that a fake plugin recorded.
#[derive(Debug, Clone)]
pub struct Call {
    /// The file name it was started under.
    pub plugin: String,
    /// `CNI_COMMAND`.
    pub command: String,
    /// `CNI_CONTAINERID`.
    pub container_id: String,
    /// `CNI_NETNS`.
    pub netns: String,
    /// `CNI_IFNAME`.
    pub ifname: String,
    /// `CNI_ARGS`.
    pub args: String,
    /// `CNI_PATH`.
    pub path: String,
    /// The request, line ends and tabs removed.
    pub stdin: String,
}

impl Call {
    /// The request as JSON.
    #[track_caller]
    pub fn request(&self) -> Value {
        serde_json::from_str(&self.stdin).unwrap_or_else(|error| panic!("{error}: {self:#?}"))
    }
}

/// A plugin that succeeds and records its calls.
pub fn record(name: &str) -> Fake {
    Fake {
        name: name.to_owned(),
        result: "{\"cniVersion\":\"%s\"}".to_owned(),
        behaviour: String::new(),
    }
}

/// A plugin whose ADD fails with code 100.
pub fn fail_add(name: &str) -> Fake {
    record(name).fail_on("ADD", 100, "told to fail")
}

/// A plugin whose DEL fails with code 100, always.
pub fn fail_del(name: &str) -> Fake {
    record(name).fail_on("DEL", 100, "told to fail")
}

/// A plugin whose first DEL fails with code 100.
pub fn fail_del_once(name: &str) -> Fake {
    record(name).fail_once_on("DEL", 100, "told to fail once")
}

/// A plugin whose GC fails with code 100.
pub fn fail_gc(name: &str) -> Fake {
    record(name).fail_on("GC", 100, "told to fail")
}

/// A plugin that takes so many seconds for every verb but VERSION.
pub fn sleep(name: &str, seconds: u32) -> Fake {
    record(name).script(&format!("sleep {seconds}"))
}

impl Fake {
    /// What ADD prints; `%s` stands for the request's version. A `%` is written `%%`.
    #[must_use]
    #[allow(clippy::needless_pass_by_value)] // So that `json!(...)` can be written there.
    pub fn result(mut self, result: impl ToString) -> Self {
        self.result = result.to_string();
        self
    }

    /// Fails this verb with an error object.
    #[must_use]
    pub fn fail_on(self, verb: &str, code: u32, message: &str) -> Self {
        let error = error_line(code, message);
        self.script(&format!("if [ \"$CNI_COMMAND\" = {verb} ]; then {error}; exit 1; fi"))
    }

    /// Fails the first call with this verb.
    #[must_use]
    pub fn fail_once_on(self, verb: &str, code: u32, message: &str) -> Self {
        let error = error_line(code, message);
        self.script(&format!(
            "if [ \"$CNI_COMMAND\" = {verb} ] && mkdir \"$0.failed\" 2>/dev/null; then {error}; exit 1; fi"
        ))
    }

    /// Adds lines of shell that run after the call was recorded and before it is
    /// answered. `$request` and `$version` are set; `exit` ends the plugin.
    #[must_use]
    pub fn script(mut self, lines: &str) -> Self {
        self.behaviour += lines;
        self.behaviour.push('\n');
        self
    }

    /// Writes the plugin into a directory and returns its path. Its calls are in
    /// `calls.log` there; see [`calls`].
    #[track_caller]
    pub fn write(&self, directory: &Path) -> PathBuf {
        std::fs::create_dir_all(directory).unwrap();
        let path = directory.join(&self.name);
        let text = format!(
            r#"#!/bin/sh
request=$(cat | tr -d '\n\t')
version=$(printf '%s' "$request" | sed -n 's/.*"cniVersion" *: *"\([^"]*\)".*/\1/p')
tab=$(printf '\t')
line="${{0##*/}}$tab$CNI_COMMAND$tab$CNI_CONTAINERID$tab$CNI_NETNS$tab$CNI_IFNAME"
printf '%s\n' "$line$tab$CNI_ARGS$tab$CNI_PATH$tab$request" >> "${{0%/*}}/calls.log"
if [ "$CNI_COMMAND" = VERSION ]; then
    printf '{{"cniVersion":"1.1.0","supportedVersions":'
    printf '["0.1.0","0.2.0","0.3.0","0.3.1","0.4.0","1.0.0","1.1.0"]}}\n'
    exit 0
fi
{behaviour}if [ "$CNI_COMMAND" = ADD ]; then
    printf '{result}\n' "$version"
fi
"#,
            behaviour = self.behaviour,
            result = self.result.replace('\'', r"'\''"),
        );
        // Written aside first: the file must not be open for writing when it is run.
        let aside = directory.join(format!(".{}.new", self.name));
        std::fs::write(&aside, text).unwrap();
        std::fs::set_permissions(&aside, std::fs::Permissions::from_mode(0o755)).unwrap();
        std::fs::rename(&aside, &path).unwrap();
        path
    }
}

fn error_line(code: u32, message: &str) -> String {
    let error = serde_json::json!({"code": code, "msg": message}).to_string();
    let error = error.replace('\'', r"'\''");
    format!("printf '%s\\n' '{error}'")
}

/// The calls that the fake plugins of a directory recorded, VERSION included, in
/// order.
#[track_caller]
pub fn calls(directory: &Path) -> Vec<Call> {
    let text = match std::fs::read_to_string(directory.join("calls.log")) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Vec::new(),
        Err(error) => panic!("{error}"),
    };
    text.lines().map(parse).collect()
}

#[track_caller]
fn parse(line: &str) -> Call {
    let fields: Vec<&str> = line.splitn(8, '\t').collect();
    let [plugin, command, container_id, netns, ifname, args, path, stdin] =
        <[&str; 8]>::try_from(fields).unwrap_or_else(|fields| panic!("{fields:?}"));
    Call {
        plugin: plugin.to_owned(),
        command: command.to_owned(),
        container_id: container_id.to_owned(),
        netns: netns.to_owned(),
        ifname: ifname.to_owned(),
        args: args.to_owned(),
        path: path.to_owned(),
        stdin: stdin.to_owned(),
    }
}
