//! A request as the plugin sees it.

use std::borrow::Cow;

use super::attachments::ValidAttachments;
use crate::error::Error;
use crate::id::NetworkName;
use crate::json::Object;
use crate::result::{CniResult, Dns, VersionedResult};
use crate::version::{SpecVersion, VersionNumbers};

/// What a plugin was given on its standard input, the common keys decoded.
///
/// Its own keys a plugin takes from [`PluginRequest::object`].
#[derive(Debug, Clone)]
pub struct PluginRequest<'a> {
    /// The network.
    pub name: NetworkName,
    /// `cniVersion` as written, empty when absent.
    pub cni_version: Cow<'a, str>,
    /// `type`, the plugin's own name in the configuration; empty when absent.
    pub plugin_type: Cow<'a, str>,
    /// `prevResult` as written, whatever it is: a DEL must get by without one that
    /// makes sense. See [`PluginRequest::previous_result`].
    pub prev_result: Option<&'a str>,
    /// Values of the runtime for the capabilities the plugin declared.
    pub runtime_config: Option<Object<'a>>,
    /// `args`: further values of the runtime, all optional.
    pub args: Option<Object<'a>>,
    /// `dns` of the configuration.
    pub dns: Dns,
    /// `ipam`, the configuration of the plugin that gives addresses.
    pub ipam: Option<Object<'a>>,
    /// `ipam.type`, the executable of that plugin; empty when absent.
    pub ipam_type: Cow<'a, str>,
    /// The attachments that must stay (GC); `None` when the request doesn't
    /// say, and nothing may be freed.
    pub valid_attachments: Option<ValidAttachments>,
    object: Object<'a>,
}

impl<'a> PluginRequest<'a> {
    /// Reads a request.
    ///
    /// # Errors
    /// Code 6 if it is not JSON or a common key has another type, code 7 if the
    /// network has no name or one that is not valid.
    pub fn parse(text: &'a str) -> Result<Self, Error> {
        const READING: &str = "reading the network configuration";
        let object = Object::parse(text).map_err(|error| error.context(READING))?;
        let name = object.string("name").map_err(|error| error.context(READING))?;
        let name = NetworkName::parse(&name.unwrap_or_default())?;
        Self::decode(object, name).map_err(|error| error.context(READING))
    }

    fn decode(object: Object<'a>, name: NetworkName) -> Result<Self, Error> {
        let ipam = object.object("ipam")?;
        let ipam_type = match &ipam {
            Some(ipam) => ipam.string("type")?.unwrap_or_default(),
            None => Cow::Borrowed(""),
        };
        Ok(Self {
            name,
            cni_version: object.string("cniVersion")?.unwrap_or_default(),
            plugin_type: object.string("type")?.unwrap_or_default(),
            prev_result: object.get("prevResult").map(|result| result.text()),
            runtime_config: object.object("runtimeConfig")?,
            args: object.object("args")?,
            dns: Dns::from_config(&object)?,
            ipam,
            ipam_type,
            valid_attachments: ValidAttachments::from_request(&object)?,
            object,
        })
    }

    /// The whole request, for the plugin's own keys.
    pub fn object(&self) -> &Object<'a> {
        &self.object
    }

    /// The whole request as it came, to be handed on to a delegate.
    pub fn text(&self) -> &'a str {
        self.object.text()
    }

    /// The version as numbers, known or not, for the gates of CHECK, GC and
    /// STATUS.
    ///
    /// # Errors
    /// Code 6 if it isn't a version.
    pub fn version_numbers(&self) -> Result<VersionNumbers, Error> {
        VersionNumbers::parse(&self.cni_version)
    }

    /// The version, which must be one of `supported`, written exactly so.
    ///
    /// # Errors
    /// Code 6 if it isn't a version, code 1 if it isn't supported.
    pub fn spec_version(&self, supported: &[SpecVersion]) -> Result<SpecVersion, Error> {
        self.version_numbers()?;
        SpecVersion::parse_known(&self.cni_version)
            .filter(|version| supported.contains(version))
            .ok_or_else(|| {
                let known: Vec<_> = supported.iter().map(|version| version.as_str()).collect();
                Error::incompatible_version("incompatible CNI versions").with_details(format!(
                    "config is {:?}, plugin supports {known:?}",
                    self.cni_version
                ))
            })
    }

    /// The result of the plugins before, or of the ADD that is checked or
    /// undone, in the newest shape. Without a version of its own it takes the
    /// configuration's. Of any version: the Go library refuses a result of
    /// another shape, which has made DELs fail after an upgrade (CNI issue
    /// 701).
    ///
    /// # Errors
    /// As [`VersionedResult::parse`].
    pub fn previous_result(&self) -> Result<Option<CniResult>, Error> {
        let Some(result) = self.object.get("prevResult") else { return Ok(None) };
        let version = SpecVersion::parse_known(&self.cni_version).unwrap_or(SpecVersion::LATEST);
        let result = result
            .object()
            .and_then(|object| VersionedResult::from_object(&object, version))
            .map_err(|error| error.context("could not parse prevResult"))?;
        result.into_newest().map(Some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &str) -> (u32, String) {
        let error = PluginRequest::parse(text).unwrap_err();
        (error.code.number(), error.to_string())
    }

    #[test]
    fn known_keys_are_read_in_any_case() {
        let request = PluginRequest::parse(r#"{"CNIVersion":"1.0.0","NAME":"a"}"#).unwrap();
        assert_eq!(request.name.as_str(), "a");
        assert_eq!(request.spec_version(&SpecVersion::ALL).unwrap(), SpecVersion::V1_0_0);
        assert!(request.prev_result.is_none() && request.valid_attachments.is_none());
    }

    #[test]
    fn a_full_request_is_read() {
        let text = r#"{"capabilities":{"mac":true},"cniVersion":"1.1.0","name":"neta","type":"rec2",
            "prevResult":{"ips":[{"address":"10.0.0.2/24"}]},"runtimeConfig":{"mac":"00:11:22:33:44:55"},
            "args":{"cni":{"ips":["10.0.0.2"]}},"dns":{"Nameservers":["10.0.0.10"],"Search":["x"]},
            "ipam":{"Type":"host-local","subnet":"10.0.0.0/24"},
            "cni.dev/valid-attachments":[{"containerID":"a","ifname":"eth0"}]}"#;
        let request = PluginRequest::parse(text).unwrap();
        assert_eq!(request.plugin_type, "rec2");
        assert_eq!(request.ipam_type, "host-local");
        assert_eq!(request.dns.nameservers, ["10.0.0.10"]);
        let runtime_config = request.runtime_config.as_ref().unwrap();
        assert_eq!(runtime_config.string("mac").unwrap().unwrap(), "00:11:22:33:44:55");
        assert_eq!(runtime_config.path_of("mac"), "runtimeConfig.mac");
        assert!(request.valid_attachments.as_ref().unwrap().contains("a", "eth0"));
        let previous = request.previous_result().unwrap().unwrap();
        assert_eq!(previous.ips[0].address.to_string(), "10.0.0.2/24");
        assert_eq!(request.text(), text);
    }

    #[test]
    fn refusals_carry_the_code_of_the_specification() {
        assert_eq!(refusal("").0, 6);
        assert_eq!(refusal("{").0, 6);
        assert_eq!(refusal(r#"{"cniVersion":"1.0.0"}"#), (7, "missing network name".into()));
        assert_eq!(refusal(r#"{"name":""}"#).0, 7);
        assert_eq!(refusal(r#"{"name":"../x"}"#).0, 7);
        assert_eq!(
            refusal(r#"{"name":7}"#),
            (6, "reading the network configuration: name: expected a string, found 7".into())
        );
        assert_eq!(
            refusal(r#"{"name":"a","ipam":"host-local"}"#).1,
            "reading the network configuration: ipam: expected an object, found \"host-local\""
        );
    }

    #[test]
    fn versions_are_gated_as_text_and_as_numbers() {
        let version = |text: &str| {
            let text = format!(r#"{{"name":"a","cniVersion":{text}}}"#);
            let request = PluginRequest::parse(&text).unwrap();
            request.spec_version(&SpecVersion::ALL)
        };
        assert_eq!(version("null").unwrap(), SpecVersion::V0_1_0);
        assert_eq!(version("\"\"").unwrap(), SpecVersion::V0_1_0);
        assert_eq!(version("\"abc\"").unwrap_err().code.number(), 6);
        assert_eq!(version("\"1\"").unwrap_err().code.number(), 1);
        let error = version("\"2.0.0\"").unwrap_err();
        assert_eq!((error.code.number(), error.msg.as_str()), (1, "incompatible CNI versions"));
        assert!(error.details.starts_with("config is \"2.0.0\", plugin supports [\"0.1.0\", "));
    }

    #[test]
    fn a_previous_result_that_is_no_object_is_an_error_only_where_it_is_needed() {
        let text = r#"{"name":"a","cniVersion":"1.1.0","prevResult":7}"#;
        let request = PluginRequest::parse(text).unwrap();
        assert_eq!(
            request.previous_result().unwrap_err().msg,
            "could not parse prevResult: prevResult: expected an object, found 7"
        );
    }

    #[test]
    fn b064_a_previous_result_of_another_version_is_taken() {
        let text = r#"{"name":"a","cniVersion":"1.1.0","prevResult":{"cniVersion":"0.2.0",
                       "ip4":{"ip":"10.0.0.2/24"}}}"#;
        let previous = PluginRequest::parse(text).unwrap().previous_result().unwrap().unwrap();
        assert_eq!(previous.ips.len(), 1);
        let text = r#"{"name":"a","cniVersion":"1.1.0","prevResult":{"ips":[{"address":7}]}}"#;
        let error = PluginRequest::parse(text).unwrap().previous_result().unwrap_err();
        assert_eq!(
            error.msg,
            "could not parse prevResult: prevResult.ips[0].address: expected a string, found 7"
        );
    }
}
