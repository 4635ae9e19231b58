//! The VERSION operation: what a plugin answers and how a runtime reads it
//! (specification, section 2 "VERSION").

use crate::error::Error;
use crate::json::{Object, Writer};
use crate::version::SpecVersion;

/// What a runtime writes to a plugin it asks for its versions.
pub fn probe_request() -> String {
    let mut writer = Writer::compact();
    writer.begin_object();
    writer.key("cniVersion").string(SpecVersion::LATEST.as_str());
    writer.end_object();
    writer.finish()
}

/// What a plugin answers: the version of the request if the plugin supports
/// it, else its newest, and all it supports; one line. Whatever the request
/// holds, it is no reason to fail: an answer that needed `name` or `type`
/// broke runtimes (Podman issue 14363), and the Go plugins never read it.
pub fn reply(request: &str, supported: &[SpecVersion]) -> String {
    let asked = Object::parse(request).ok().and_then(|object| {
        let text = object.text_of("cniVersion").ok()??;
        SpecVersion::parse_known(&text).filter(|version| supported.contains(version))
    });
    let version = asked.or(supported.iter().max().copied()).unwrap_or(SpecVersion::LATEST);
    let mut writer = Writer::compact();
    writer.begin_object();
    writer.key("cniVersion").string(version.as_str());
    writer.key("supportedVersions").begin_array();
    for version in supported {
        writer.string(version.as_str());
    }
    writer.end_array();
    writer.end_object();
    let mut text = writer.finish();
    text.push('\n');
    text
}

/// What a plugin answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VersionInfo {
    /// The version of the answer.
    pub cni_version: String,
    /// The versions supported, as written; perhaps some nobody knows.
    pub supported: Vec<String>,
}

impl VersionInfo {
    /// Reads an answer.
    ///
    /// # Errors
    /// Code 6 if it isn't one.
    pub fn parse(text: &str) -> Result<Self, Error> {
        const DECODING: &str = "decoding version info";
        let read = || {
            if text.trim().is_empty() {
                return Err(Error::decode("nothing was printed")
                    .with_details("the plugin has no VERSION, or is no CNI plugin"));
            }
            let object = Object::parse(text)?;
            let missing = |key| Error::decode(format!("missing field {key}"));
            let cni_version =
                object.text_of("cniVersion")?.ok_or_else(|| missing("cniVersion"))?.into_owned();
            let mut supported = object.string_array("supportedVersions")?;
            if supported.is_empty() {
                // Plugins of 0.2.0 answered before the list was there.
                if cni_version != SpecVersion::V0_2_0.as_str() {
                    return Err(missing("supportedVersions"));
                }
                supported = vec!["0.1.0".to_owned(), "0.2.0".to_owned()];
            }
            Ok(Self { cni_version, supported })
        };
        read().map_err(|error: Error| error.context(DECODING))
    }

    /// What a refusal says: a plugin that doesn't know VERSION at all is one of
    /// 0.1.0. `None` for any other error.
    pub fn from_refusal(error: &Error) -> Option<Self> {
        (error.to_string() == "unknown CNI_COMMAND: VERSION")
            .then(|| Self { cni_version: "0.1.0".to_owned(), supported: vec!["0.1.0".to_owned()] })
    }

    /// Whether a version is among them, written exactly so.
    pub fn supports(&self, version: SpecVersion) -> bool {
        self.supported.iter().any(|supported| supported == version.as_str())
    }

    /// The supported versions that are known, newest first.
    pub fn known(&self) -> Vec<SpecVersion> {
        let mut known: Vec<_> =
            SpecVersion::ALL.into_iter().filter(|v| self.supports(*v)).collect();
        known.reverse();
        known
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_asked_for_comes_back() {
        let all = &SpecVersion::ALL;
        let list =
            r#""supportedVersions":["0.1.0","0.2.0","0.3.0","0.3.1","0.4.0","1.0.0","1.1.0"]}"#;
        for (request, version) in [
            (probe_request().as_str(), "1.1.0"),
            (r#"{"cniVersion":"0.4.0"}"#, "0.4.0"),
            (r#"{"cniVersion":"9.0.0"}"#, "1.1.0"),
            (r#"{"cniVersion":7}"#, "1.1.0"),
            ("", "1.1.0"),
            ("garbage", "1.1.0"),
        ] {
            assert_eq!(reply(request, all), format!("{{\"cniVersion\":\"{version}\",{list}\n"));
        }
        let newer = [SpecVersion::V0_4_0, SpecVersion::V1_0_0];
        assert_eq!(
            reply(r#"{"cniVersion":"0.1.0"}"#, &newer),
            "{\"cniVersion\":\"1.0.0\",\"supportedVersions\":[\"0.4.0\",\"1.0.0\"]}\n"
        );
    }

    #[test]
    fn answers_of_every_age_are_read() {
        let info = VersionInfo::parse(&reply("", &SpecVersion::ALL)).unwrap();
        assert_eq!(info.known().first(), Some(&SpecVersion::V1_1_0));
        let info = VersionInfo::parse(r#"{"cniVersion":"0.2.0"}"#).unwrap();
        assert_eq!(info.known(), [SpecVersion::V0_2_0, SpecVersion::V0_1_0]);
        let info =
            VersionInfo::parse(r#"{"cniVersion":"1.0.0","supportedVersions":["1.0.0","7"]}"#);
        assert!(info.unwrap().supports(SpecVersion::V1_0_0));
        let refusal = |text| VersionInfo::parse(text).unwrap_err().msg;
        assert_eq!(refusal("{}"), "decoding version info: missing field cniVersion");
        assert_eq!(
            refusal(r#"{"cniVersion":"1.0.0","supportedVersions":[]}"#),
            "decoding version info: missing field supportedVersions"
        );
        assert_eq!(refusal("\n"), "decoding version info: nothing was printed");
        assert!(refusal("x").starts_with("decoding version info: line 1"));
    }

    #[test]
    fn a_plugin_that_does_not_know_version_is_of_the_oldest() {
        let error = Error::environment("unknown CNI_COMMAND: VERSION");
        let info = VersionInfo::from_refusal(&error).unwrap();
        assert_eq!(info.known(), [SpecVersion::V0_1_0]);
        assert_eq!(VersionInfo::from_refusal(&error.with_details("x")), None);
    }
}
