//! One attachment as it stands on disk: the `cniCacheV1` object of libcni,
//! with the same keys in the same order, so that either runtime reads what
//! the other wrote.

use std::borrow::Cow;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use podwire_spec::error::Error;
use podwire_spec::id::{AttachmentKey, ContainerId, IfName, NetworkName};
use podwire_spec::json::{Kind, Object, Writer, compact};
use podwire_spec::request::CapabilityArguments;
use podwire_spec::result::{CniResult, VersionedResult};
use podwire_spec::version::SpecVersion;

/// The value of `kind` in the records of libcni since 0.8.0.
const KIND: &str = "cniCacheV1";

/// How far an attachment has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// ADD finished; the result is there.
    Attached,
    /// ADD began and its end is unknown: it runs, or the runtime died in it.
    Adding,
    /// A deletion began and did not finish: a DEL that failed or was killed,
    /// or the one after a failed ADD.
    DeletePending,
}

impl State {
    /// The word under which it is stored and shown.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Attached => "attached",
            Self::Adding => "adding",
            Self::DeletePending => "delete pending",
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// What is known of one attachment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// What names it.
    pub key: AttachmentKey,
    /// How far it has come.
    pub state: State,
    /// The network's configuration at ADD; `None` in records of libcni
    /// before 0.8.0.
    pub config: Option<Vec<u8>>,
    /// The path of the namespace; empty when it wasn't recorded.
    pub netns: String,
    /// `CNI_ARGS`, in order.
    pub args: Vec<(String, String)>,
    /// The capability arguments.
    pub capability_args: CapabilityArguments,
    /// The final result, the text of a JSON object; empty if there is none.
    pub result: String,
}

/// What the text of a record file turned out to be.
#[derive(Debug)]
pub(super) enum Parsed {
    /// A record that names its attachment.
    Record(Box<Record>),
    /// A result and nothing else, as libcni before 0.8.0 stored it.
    BareResult,
}

impl Record {
    /// The recorded result in the newest shape; `None` if there is none.
    ///
    /// # Errors
    /// If it can't be understood.
    pub fn cni_result(&self) -> Option<Result<CniResult, Error>> {
        if self.result.is_empty() {
            return None;
        }
        let result = VersionedResult::parse(&self.result, SpecVersion::V0_1_0);
        Some(result.and_then(VersionedResult::into_newest))
    }

    /// The path of the namespace; empty when nothing tells it. libcni before 1.2
    /// recorded none (containerd 1.6, Podman 4): there it is the sandbox of the
    /// interface in the result, which plugins set to `CNI_NETNS` (specification,
    /// section 5).
    pub fn namespace_path(&self) -> Cow<'_, str> {
        if !self.netns.is_empty() {
            return Cow::Borrowed(&self.netns);
        }
        let Some(Ok(result)) = self.cni_result() else { return Cow::Borrowed("") };
        let name = self.key.ifname.as_str();
        let mut inside = result.interfaces.into_iter().filter(|interface| interface.name == name);
        let sandbox = inside.find_map(|interface| interface.sandbox);
        // The id of a virtual machine may be there instead.
        Cow::Owned(sandbox.filter(|path| path.starts_with('/')).unwrap_or_default())
    }

    /// The record as one line of JSON. An unfinished one carries its state
    /// under `podwire`, which libcni ignores (and never sees).
    pub fn to_json(&self) -> String {
        let mut writer = Writer::compact();
        writer.begin_object();
        writer.key("kind").string(KIND);
        writer.key("containerId").string(self.key.container_id.as_str());
        match &self.config {
            Some(config) => writer.key("config").string(&STANDARD.encode(config)),
            None => writer.key("config").raw("null"),
        }
        writer.key("ifName").string(self.key.ifname.as_str());
        writer.key("networkName").string(self.key.network.as_str());
        if !self.netns.is_empty() {
            writer.key("netns").string(&self.netns);
        }
        if !self.args.is_empty() {
            writer.key("cniArgs").begin_array();
            for (key, value) in &self.args {
                writer.begin_array();
                writer.string(key);
                writer.string(value);
                writer.end_array();
            }
            writer.end_array();
        }
        if !self.capability_args.is_empty() {
            writer.key("capabilityArgs").raw(&self.capability_args.to_json());
        }
        if !self.result.is_empty() {
            writer.key("result").raw(&compact(&self.result));
        }
        if self.state != State::Attached {
            writer.key("podwire").begin_object();
            writer.key("state").string(self.state.as_str());
            writer.end_object();
        }
        writer.end_object();
        writer.finish()
    }

    /// Reads what [`Record::to_json`] or libcni wrote.
    pub(super) fn parse(text: &str) -> Result<Parsed, Error> {
        let object = Object::parse(text)?;
        let kind = match object.get("kind") {
            Some(kind) if kind.kind() == Kind::String => kind.string()?,
            _ => return Ok(Parsed::BareResult),
        };
        if kind != KIND {
            return Err(Error::decode(format!("kind is {kind:?}, only {KIND:?} is known")));
        }
        let name = |key: &str| {
            object.string(key)?.ok_or_else(|| Error::decode(format!("the key {key:?} is missing")))
        };
        let key = AttachmentKey {
            container_id: ContainerId::parse(&name("containerId")?)?,
            ifname: IfName::parse(&name("ifName")?)?,
            network: NetworkName::parse(&name("networkName")?)?,
        };
        let config = object
            .string("config")?
            .map(|text| {
                STANDARD
                    .decode(text.as_bytes())
                    .map_err(|error| Error::decode(format!("config is not base64: {error}")))
            })
            .transpose()?;
        let mut args = Vec::new();
        for pair in object.array("cniArgs")? {
            let [key, value] = pair.array()?.try_into().map_err(|_| {
                Error::decode(format!("{}: expected a pair of strings", pair.path()))
            })?;
            args.push((key.string()?.into_owned(), value.string()?.into_owned()));
        }
        let capability_args = object.object("capabilityArgs")?;
        let result = object.object("result")?;
        Ok(Parsed::Record(Box::new(Self {
            key,
            state: read_state(&object)?,
            config,
            netns: object.string("netns")?.unwrap_or_default().into_owned(),
            args,
            capability_args: capability_args
                .as_ref()
                .map(CapabilityArguments::from_object)
                .unwrap_or_default(),
            result: result.map(|result| result.text().to_owned()).unwrap_or_default(),
        })))
    }

    /// What a bare result file at the path of `key` says of it.
    pub(super) fn from_bare_result(key: AttachmentKey, result: &str) -> Self {
        Self {
            key,
            state: State::Attached,
            config: None,
            netns: String::new(),
            args: Vec::new(),
            capability_args: CapabilityArguments::default(),
            result: result.trim().to_owned(),
        }
    }
}

fn read_state(object: &Object<'_>) -> Result<State, Error> {
    let Some(own) = object.object("podwire")? else { return Ok(State::Attached) };
    match own.string("state")?.as_deref() {
        Some("adding") => Ok(State::Adding),
        Some("delete pending") => Ok(State::DeletePending),
        other => Err(Error::decode(format!("podwire.state: {other:?} is not known"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(in crate::store) fn record() -> Record {
        Record {
            key: AttachmentKey {
                network: NetworkName::parse("neta").unwrap(),
                container_id: ContainerId::parse("c1").unwrap(),
                ifname: IfName::parse("eth0").unwrap(),
            },
            state: State::Attached,
            config: Some(b"{\"name\":\"neta\"}\n".to_vec()),
            netns: "/var/run/netns/nope".into(),
            args: vec![("IgnoreUnknown".into(), "1".into()), ("FOO".into(), "BAR".into())],
            capability_args: CapabilityArguments::parse(r#"{"mac": "00:11:22:33:44:55"}"#).unwrap(),
            result: "{\n    \"cniVersion\": \"1.1.0\"\n}".into(),
        }
    }

    fn parsed(text: &str) -> Record {
        match Record::parse(text).unwrap() {
            Parsed::Record(record) => *record,
            Parsed::BareResult => panic!("taken for a bare result"),
        }
    }

    /// The line that libcni's own writer gives for the same attachment.
    const GO_LINE: &str = concat!(
        r#"{"kind":"cniCacheV1","containerId":"c1","config":"eyJuYW1lIjoibmV0YSJ9Cg==","#,
        r#""ifName":"eth0","networkName":"neta","netns":"/var/run/netns/nope","#,
        r#""cniArgs":[["IgnoreUnknown","1"],["FOO","BAR"]],"#,
        r#""capabilityArgs":{"mac":"00:11:22:33:44:55"},"result":{"cniVersion":"1.1.0"}}"#
    );

    #[test]
    fn the_line_is_the_one_that_libcni_writes() {
        assert_eq!(record().to_json(), GO_LINE);
        let back = parsed(GO_LINE);
        assert_eq!(back.config, record().config);
        assert_eq!(back.args, record().args);
        assert!(back.cni_result().unwrap().unwrap().ips.is_empty());
        assert_eq!(back.state, State::Attached);
        assert_eq!(back.to_json(), GO_LINE);
    }

    #[test]
    fn an_unfinished_one_keeps_its_state() {
        for state in [State::Adding, State::DeletePending] {
            let mut record = record();
            record.state = state;
            record.result.clear();
            record.capability_args = CapabilityArguments::default();
            assert_eq!(parsed(&record.to_json()), record);
        }
    }

    #[test]
    fn read_liberally() {
        let text = r#"{"kind":"cniCacheV1","containerID":"c","IFNAME":"e","networkName":"n",
            "config":null,"cniArgs":null,"result":null,"future":[1]}"#;
        let record = parsed(text);
        assert_eq!((record.config, record.result.as_str()), (None, ""));
        assert!(matches!(Record::parse("{\"cniVersion\":\"0.2.0\"}").unwrap(), Parsed::BareResult));
    }

    #[test]
    fn hostile_records_are_refused_with_the_key() {
        for (text, wanted) in [
            ("", "empty"),
            ("{", "line 1"),
            (r#"{"kind":"cniCacheV9"}"#, "kind"),
            (
                r#"{"kind":"cniCacheV1","containerId":"../x","ifName":"e","networkName":"n"}"#,
                "../x",
            ),
            (r#"{"kind":"cniCacheV1","containerId":"c","ifName":"e"}"#, "networkName"),
            (
                r#"{"kind":"cniCacheV1","containerId":"c","ifName":"e","networkName":"n","config":"%"}"#,
                "base64",
            ),
            (
                r#"{"kind":"cniCacheV1","containerId":"c","ifName":"e","networkName":"n","cniArgs":[["a"]]}"#,
                "cniArgs[0]",
            ),
            (
                r#"{"kind":"cniCacheV1","containerId":"c","ifName":"e","networkName":"n","result":7}"#,
                "result",
            ),
        ] {
            let error = Record::parse(text).unwrap_err().to_string();
            assert!(error.contains(wanted), "{text}: {error}");
        }
    }
}
