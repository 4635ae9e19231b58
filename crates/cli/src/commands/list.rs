//! `podwire list`.

use std::fmt::Write as _;
use std::time::Duration;

use podwire_keeper::{Census, Entry};
use podwire_runtime::load::Directory;
use podwire_spec::json::Writer;

use crate::arguments::{CommonArguments, Format, ListArguments};
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{self, Table};

/// Lists attachments, or networks.
pub(super) fn run(common: CommonArguments, arguments: &ListArguments) -> Result<Exit, Failure> {
    let context = Context::new(common);
    if arguments.networks {
        let directory = context.runtime.networks()?;
        output::print(&match context.format {
            Format::Text => networks_as_text(&directory),
            Format::Json => networks_as_json(&directory),
        })?;
        // On standard error, and no failure: the good ones can be used (B023).
        for problem in &directory.problems {
            output::warn(&problem.to_string());
        }
        return Ok(Exit::Done);
    }
    let mut census = Census::take(context.runtime.store())?;
    if let Some(network) = &arguments.network {
        census.attachments.retain(|entry| entry.key().network == *network);
    }
    output::print(&match context.format {
        Format::Text => as_text(&census),
        Format::Json => as_json(&census),
    })?;
    Ok(Exit::Done)
}

fn as_text(census: &Census) -> String {
    let mut table = Table::new(["NETWORK", "CONTAINER", "INTERFACE", "ADDRESSES", "AGE", "STATE"]);
    for entry in &census.attachments {
        let key = entry.key();
        let addresses = addresses(entry);
        table.row([
            key.network.to_string(),
            key.container_id.to_string(),
            key.ifname.to_string(),
            if addresses.is_empty() { "-".to_owned() } else { addresses.join(",") },
            entry.age.map_or_else(|| "-".to_owned(), short),
            entry.condition().as_str().to_owned(),
        ]);
    }
    let mut text = table.render();
    for file in &census.unreadable {
        // Writing to a String can't fail.
        let _ = writeln!(text, "unreadable: {}: {}", file.path.display(), file.reason);
    }
    for path in &census.set_aside {
        let _ = writeln!(text, "set aside: {}", path.display());
    }
    text
}

fn as_json(census: &Census) -> String {
    let mut writer = Writer::pretty();
    writer.begin_object();
    writer.key("attachments").begin_array();
    for entry in &census.attachments {
        let key = entry.key();
        writer.begin_object();
        writer.key("network").string(key.network.as_str());
        writer.key("containerId").string(key.container_id.as_str());
        writer.key("ifName").string(key.ifname.as_str());
        writer.key("netns").string(&entry.stored.record.namespace_path());
        writer.strings("addresses", &addresses(entry));
        if let Some(age) = entry.age {
            writer.key("ageSeconds").integer(age.as_secs());
        }
        writer.key("state").string(entry.condition().as_str());
        writer.key("record").string(&entry.stored.path.to_string_lossy());
        writer.end_object();
    }
    writer.end_array();
    writer.key("unreadable").begin_array();
    for file in &census.unreadable {
        writer.begin_object();
        writer.key("file").string(&file.path.to_string_lossy());
        writer.key("reason").string(&file.reason);
        writer.end_object();
    }
    writer.end_array();
    let set_aside: Vec<_> =
        census.set_aside.iter().map(|path| path.to_string_lossy().into_owned()).collect();
    writer.strings("setAside", &set_aside);
    writer.end_object();
    writer.finish()
}

fn networks_as_text(directory: &Directory) -> String {
    let mut table = Table::new(["NETWORK", "VERSION", "PLUGINS", "FILE"]);
    for network in &directory.networks {
        table.row([
            network.name().to_string(),
            network.list().version.to_string(),
            plugins(network).join(","),
            network.path().map(|path| path.display().to_string()).unwrap_or_default(),
        ]);
    }
    table.render()
}

fn networks_as_json(directory: &Directory) -> String {
    let mut writer = Writer::pretty();
    writer.begin_object();
    writer.key("networks").begin_array();
    for network in &directory.networks {
        writer.begin_object();
        writer.key("name").string(network.name().as_str());
        writer.key("cniVersion").string(network.list().version.as_str());
        writer.strings("plugins", &plugins(network));
        if let Some(path) = network.path() {
            writer.key("file").string(&path.to_string_lossy());
        }
        writer.end_object();
    }
    writer.end_array();
    let problems: Vec<_> = directory.problems.iter().map(ToString::to_string).collect();
    writer.strings("invalid", &problems);
    writer.end_object();
    writer.finish()
}

fn plugins(network: &podwire_runtime::Network) -> Vec<String> {
    network.list().plugins.iter().map(|plugin| plugin.plugin_type.to_string()).collect()
}

fn addresses(entry: &Entry) -> Vec<String> {
    entry.addresses().iter().map(ToString::to_string).collect()
}

/// A duration in its largest unit, as 42s, 7m, 3h, 12d.
fn short(age: Duration) -> String {
    let seconds = age.as_secs();
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m", seconds / 60),
        3600..86_400 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use podwire_runtime::live::Liveness;
    use podwire_runtime::store::{Record, State, Stored, Unreadable};
    use podwire_spec::id::{AttachmentKey, ContainerId, IfName, NetworkName};
    use podwire_spec::request::CapabilityArguments;

    use super::*;

    fn census() -> Census {
        let record = Record {
            key: AttachmentKey {
                network: NetworkName::parse("podnet").unwrap(),
                container_id: ContainerId::parse("web").unwrap(),
                ifname: IfName::parse("eth0").unwrap(),
            },
            state: State::Attached,
            config: None,
            netns: "/run/netns/web".into(),
            args: Vec::new(),
            capability_args: CapabilityArguments::default(),
            result: r#"{"cniVersion":"1.1.0","ips":[{"address":"10.1.0.2/24"},{"address":"fd00::2/64"}]}"#.into(),
        };
        let mut pending = record.clone();
        pending.state = State::Adding;
        pending.result.clear();
        let entry = |record, age| Entry {
            stored: Stored {
                record,
                path: "/var/lib/cni/results/podnet-web-eth0".into(),
                sandbox: None,
            },
            liveness: Liveness::Alive,
            age,
        };
        Census {
            attachments: vec![entry(record, Some(Duration::from_mins(121))), entry(pending, None)],
            unreadable: vec![Unreadable { path: "/r/torn".into(), reason: "empty".into() }],
            set_aside: vec!["/q/old".into()],
        }
    }

    #[test]
    fn text_has_a_row_an_attachment_and_the_files_after_it() {
        let text = anstream::adapter::strip_str(&as_text(&census())).to_string();
        assert_eq!(
            text,
            "\
NETWORK  CONTAINER  INTERFACE  ADDRESSES               AGE  STATE
podnet   web        eth0       10.1.0.2/24,fd00::2/64  2h   alive
podnet   web        eth0       -                       -    adding
unreadable: /r/torn: empty
set aside: /q/old
"
        );
    }

    #[test]
    fn json_holds_the_same() {
        let value: serde_json::Value = serde_json::from_str(&as_json(&census())).unwrap();
        assert_eq!(value["attachments"][0]["addresses"][1], "fd00::2/64");
        assert_eq!(value["attachments"][0]["ageSeconds"], 7260);
        assert_eq!(value["attachments"][1]["state"], "adding");
        assert_eq!(value["unreadable"][0]["reason"], "empty");
        assert_eq!(value["setAside"][0], "/q/old");
    }

    #[test]
    fn ages_are_short() {
        let ages = [0, 59, 60, 3599, 3600, 86_399, 86_400, 10_000_000];
        let shown: Vec<_> = ages.iter().map(|age| short(Duration::from_secs(*age))).collect();
        assert_eq!(shown, ["0s", "59s", "1m", "59m", "1h", "23h", "1d", "115d"]);
    }
}
