//! The whole protocol of a plugin, without a process.

use std::ffi::OsString;
use std::sync::atomic::{AtomicUsize, Ordering};

use podwire_spec::error::Error;
use podwire_spec::json::Object;
use podwire_spec::operation::Operation;
use podwire_spec::result::CniResult;
use podwire_spec::version::SpecVersion;

use super::{Output, STDIN_LIMIT, dispatch};
use crate::attachment::Attachment;
use crate::environment::Environment;
use crate::plugin::{Description, Plugin, Role};
use crate::request::Request;
use crate::undo::Undo;

static UNDONE: AtomicUsize = AtomicUsize::new(0);

/// Succeeds unless the configuration's `fault` says otherwise.
struct Fake(Role, &'static [SpecVersion]);

impl Plugin for Fake {
    fn description(&self) -> Description {
        Description { versions: self.1, ..Description::new("fake", self.0) }
    }

    fn add<'a>(
        &'a self,
        request: &'a Request<'a>,
        _: &'a Attachment,
        undo: &mut Undo<'a>,
    ) -> Result<CniResult, Error> {
        undo.push("the fake", || {
            UNDONE.fetch_add(1, Ordering::SeqCst);
            Ok(())
        });
        match request.object().string("fault")?.as_deref() {
            Some("error") => Err(Error::try_again("later")),
            Some("panic") => panic!("a bug"),
            _ => Ok(CniResult::default()),
        }
    }

    fn del(&self, _: &Request<'_>, _: &Attachment) -> Result<(), Error> {
        Ok(())
    }

    fn check(&self, request: &Request<'_>, _: &Attachment) -> Result<(), Error> {
        request.require_prev_result().map(drop)
    }

    fn gc(
        &self,
        _: &Request<'_>,
        valid: &podwire_spec::request::ValidAttachments,
    ) -> Result<(), Error> {
        Err(Error::internal(format!("asked with {} valid", valid.as_slice().len())))
    }
}

static FAKE: Fake = Fake(Role::Ipam, &SpecVersion::ALL);
static INTERFACE: Fake = Fake(Role::Interface, &SpecVersion::ALL);
static OLD: Fake = Fake(Role::Ipam, &[SpecVersion::V0_3_1, SpecVersion::V0_4_0]);

fn run(plugin: &'static dyn Plugin, variables: &[(&str, &str)], stdin: &str) -> Output {
    let lookup = |name: &str| {
        let found = variables.iter().find(|(key, _)| *key == name);
        found.map(|(_, value)| OsString::from(value))
    };
    dispatch(plugin, &[], Environment::read(lookup), &mut stdin.as_bytes())
}

/// All variables of an attachment, with those given in their place.
fn call(command: Operation, changes: &[(&str, &str)], stdin: &str) -> Output {
    let mut variables = vec![
        ("CNI_COMMAND", command.as_str()),
        ("CNI_CONTAINERID", "c1"),
        ("CNI_NETNS", "/nowhere/netns"),
        ("CNI_IFNAME", "eth0"),
        ("CNI_PATH", "/opt/cni/bin"),
    ];
    variables.retain(|(name, _)| changes.iter().all(|(changed, _)| changed != name));
    variables.extend(changes);
    run(&FAKE, &variables, stdin)
}

fn error_of(output: &Output) -> (u32, String) {
    assert_eq!(output.code, 1, "{output:?}");
    let error = Error::parse(&output.stdout).unwrap();
    (error.code.number(), error.msg)
}

const GOOD: &str = r#"{"cniVersion":"1.1.0","name":"n"}"#;

#[test]
fn missing_variables_are_reported_together() {
    let only = |command| error_of(&run(&FAKE, &[("CNI_COMMAND", command)], GOOD));
    assert_eq!(
        only("ADD"),
        (4, "required env variables [CNI_CONTAINERID,CNI_NETNS,CNI_IFNAME] missing".into())
    );
    assert_eq!(
        only("DEL"),
        (4, "required env variables [CNI_CONTAINERID,CNI_IFNAME] missing".into())
    );
}

#[test]
fn a_bad_value_is_reported_before_a_missing_one() {
    let output = run(
        &FAKE,
        &[("CNI_COMMAND", "ADD"), ("CNI_CONTAINERID", "c1"), ("CNI_IFNAME", "a/b")],
        GOOD,
    );
    let (code, text) = error_of(&output);
    assert_eq!(code, 4);
    assert!(text.contains("interface name contains / or : or whitespace"), "{text}");
}

#[test]
fn run_by_hand_it_says_what_it_is() {
    let output = run(&FAKE, &[], "");
    assert_eq!((output.code, output.stdout.as_str()), (0, ""));
    assert!(output.stderr.starts_with("CNI fake plugin v1.9.1\n"), "{}", output.stderr);
    assert!(output.stderr.ends_with(
        "CNI protocol versions supported: 0.1.0, 0.2.0, 0.3.0, 0.3.1, 0.4.0, 1.0.0, 1.1.0\n"
    ));
}

#[test]
fn an_unknown_command_is_reported_after_the_configuration() {
    let foo = [("CNI_COMMAND", "FOO")];
    assert_eq!(error_of(&run(&FAKE, &foo, "")).0, 6);
    assert_eq!(error_of(&run(&FAKE, &foo, GOOD)), (4, "unknown CNI_COMMAND: FOO".into()));
    assert_eq!(error_of(&run(&FAKE, &[("CNI_COMMAND", "add")], GOOD)).0, 4);
}

#[test]
fn version_never_needs_a_configuration() {
    for (stdin, version) in
        [("", "1.1.0"), ("junk", "1.1.0"), (r#"{"cniVersion":"0.4.0"}"#, "0.4.0")]
    {
        let output = run(&FAKE, &[("CNI_COMMAND", "VERSION")], stdin);
        assert_eq!(output.code, 0);
        let answer = Object::parse(&output.stdout).unwrap().string("cniVersion").unwrap();
        assert_eq!(answer.as_deref(), Some(version), "{stdin}");
    }
}

#[test]
fn versions_are_gated_as_the_reference_gates_them() {
    let ask = |command, version: &str| {
        let config = format!(r#"{{"cniVersion":"{version}","name":"n"}}"#);
        error_of(&call(command, &[], &config))
    };
    assert_eq!(ask(Operation::Add, "2.0.0"), (1, "incompatible CNI versions".into()));
    assert_eq!(ask(Operation::Check, "2.0.0"), (1, "plugin version does not allow CHECK".into()));
    assert_eq!(ask(Operation::Check, "0.3.1"), (1, "config version does not allow CHECK".into()));
    assert_eq!(ask(Operation::Gc, "1.0.0"), (1, "config version does not allow GC".into()));
    assert_eq!(ask(Operation::Status, "1.0.0"), (1, "config version does not allow STATUS".into()));
    assert_eq!(ask(Operation::Check, "abc").0, 6);
    let output = run(&OLD, &[("CNI_COMMAND", "STATUS")], GOOD);
    assert_eq!(error_of(&output), (1, "plugin version does not allow STATUS".into()));
}

#[test]
fn names_are_checked_for_every_verb() {
    for command in [Operation::Add, Operation::Del, Operation::Status, Operation::Gc] {
        assert_eq!(error_of(&call(command, &[], r#"{"cniVersion":"1.1.0"}"#)).0, 7);
        let config = r#"{"cniVersion":"1.1.0","name":"../x"}"#;
        let (code, text) = error_of(&call(command, &[], config));
        assert_eq!(code, 7);
        assert!(text.contains("invalid characters"), "{text}");
    }
    assert_eq!(call(Operation::Add, &[], r#"{"CNIVersion":"1.0.0","NAME":"a"}"#).code, 0);
}

#[test]
fn a_huge_or_binary_configuration_is_refused() {
    let huge = " ".repeat(usize::try_from(STDIN_LIMIT).unwrap() + 1);
    assert_eq!(error_of(&call(Operation::Add, &[], &huge)).0, 6);
    let mut binary: &[u8] = &[0xff, 0xfe];
    let environment = Environment { command: "STATUS".into(), ..Environment::default() };
    let output = dispatch(&FAKE, &[], Ok(environment), &mut binary);
    assert_eq!(error_of(&output).0, 6);
}

#[test]
fn a_failed_add_is_undone_also_after_a_panic() {
    for (fault, code) in [("error", 11), ("panic", 999)] {
        let before = UNDONE.load(Ordering::SeqCst);
        let config = format!(r#"{{"cniVersion":"1.1.0","name":"n","fault":"{fault}"}}"#);
        assert_eq!(error_of(&call(Operation::Add, &[], &config)).0, code);
        assert_eq!(UNDONE.load(Ordering::SeqCst), before + 1);
    }
}

#[test]
fn a_namespace_that_is_none_is_code_8_where_one_is_needed() {
    let variables = |path| {
        [
            ("CNI_COMMAND", "ADD"),
            ("CNI_CONTAINERID", "c1"),
            ("CNI_NETNS", path),
            ("CNI_IFNAME", "eth0"),
        ]
    };
    for (path, words) in [("/nowhere/x", "does not exist"), ("/etc/hostname", "is not a network")] {
        let (code, text) = error_of(&run(&INTERFACE, &variables(path), GOOD));
        assert_eq!(code, 8);
        assert!(text.contains(path) && text.contains(words), "{text}");
    }
}

#[test]
fn our_own_namespace_is_refused_before_any_work() {
    let own = [("CNI_NETNS", "/proc/self/ns/net")];
    for command in [Operation::Add, Operation::Del] {
        let (code, text) = error_of(&call(command, &own, GOOD));
        assert_eq!(
            (code, text.as_str()),
            (8, "plugin's netns and netns from CNI_NETNS should not be the same")
        );
        for value in ["1", "true", "TRUE"] {
            let meant = [own[0], ("CNI_NETNS_OVERRIDE", value)];
            assert_eq!(call(command, &meant, GOOD).code, 0);
        }
    }
}

#[test]
fn gc_tells_an_absent_list_from_an_empty_one() {
    assert_eq!(call(Operation::Gc, &[], GOOD).code, 0);
    for (list, count) in [("null", 0), ("[]", 0), (r#"[{"containerID":"a","ifname":"b"}]"#, 1)] {
        for key in ["cni.dev/valid-attachments", "cni.dev/attachments"] {
            let config = format!(r#"{{"cniVersion":"1.1.0","name":"n","{key}":{list}}}"#);
            let (_, text) = error_of(&call(Operation::Gc, &[], &config));
            assert_eq!(text, format!("asked with {count} valid"));
        }
    }
}
