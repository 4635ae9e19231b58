//! `podwire migrate`.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use podwire_migrate::{
    PluginFile, Remains, RolledBack, Source, Step, Survey, Uses, Wishes, migrate, remains,
    rollback, survey, uses,
};
use podwire_spec::error::Error;
use podwire_spec::json::Writer;
use signal_hook::iterator::Signals;

use crate::arguments::{CommonArguments, Format, MigrateArguments};
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{self, Table};
use crate::signals::ENDING;

/// The program's name, and where the packages put it.
const PROGRAM: &str = "podwire-cni";
const PACKAGED: &str = "/usr/lib/podwire/cni/podwire-cni";

/// Looks, exchanges or goes back.
pub(super) fn run(common: CommonArguments, arguments: &MigrateArguments) -> Result<Exit, Failure> {
    if arguments.stay {
        return stay();
    }
    let context = Context::new(common);
    let [directory] = context.runtime.plugin_directories() else {
        let error = Error::environment("one plugin directory at a time can be changed");
        return Err(Failure::Usage(error.with_details("name it with --plugin-dir DIR")));
    };
    if arguments.rollback {
        return go_back(&context, directory);
    }
    let source = Source::open(&program(arguments.from.as_deref())?)?;
    let wishes = Wishes { except: arguments.except.iter().cloned().collect() };
    if arguments.check {
        let found = survey(directory, &source, &wishes)?;
        let (uses, left) = (uses(&context.runtime)?, remains()?);
        output::print(&match context.format {
            Format::Text => check_as_text(&source, &found, &uses, &left),
            Format::Json => check_as_json(&source, &found, &uses, &left),
        })?;
        return Ok(if found.refusals().next().is_some() { Exit::No } else { Exit::Done });
    }
    let done = migrate(directory, &source, &wishes)?.survey;
    output::print(&match context.format {
        Format::Text if done.is_settled() => {
            format!("{}: Podwire {} already", done.directory.display(), source.version)
        }
        Format::Text => {
            let count = |step: &Step| done.files.iter().filter(|file| file.step == *step).count();
            format!(
                "{}: Podwire {}: {} replaced, {} added, {} renewed\nback again with: podwire \
                 migrate --rollback --plugin-dir {}",
                done.directory.display(),
                source.version,
                count(&Step::Replace),
                count(&Step::Add),
                count(&Step::Renew),
                done.directory.display()
            )
        }
        Format::Json => {
            let mut writer = Writer::pretty();
            writer.begin_object();
            write_files(&mut writer, &source, &done);
            writer.end_object();
            writer.finish()
        }
    })?;
    Ok(Exit::Done)
}

/// Waits until a signal asks for the end.
fn stay() -> Result<Exit, Failure> {
    let signals = Signals::new(ENDING);
    let mut signals =
        signals.map_err(|error| Error::internal(format!("signals can't be watched: {error}")))?;
    signals.forever().next();
    Ok(Exit::Done)
}

/// The program that was named, or the one that came with this one.
fn program(named: Option<&Path>) -> Result<PathBuf, Failure> {
    if let Some(path) = named {
        return Ok(path.to_owned());
    }
    let beside = std::env::current_exe().ok().map(|own| own.with_file_name(PROGRAM));
    let candidates: Vec<_> = beside.into_iter().chain([PathBuf::from(PACKAGED)]).collect();
    candidates.iter().find(|candidate| candidate.is_file()).cloned().ok_or_else(|| {
        let places: Vec<_> = candidates.iter().map(|path| path.display().to_string()).collect();
        let error = Error::environment(format!("there is no {PROGRAM} at {}", places.join(" or ")));
        Failure::Usage(error.with_details("name it with --from FILE"))
    })
}

fn go_back(context: &Context, directory: &Path) -> Result<Exit, Failure> {
    let done = rollback(directory, context.runtime.store())?;
    output::print(&match context.format {
        Format::Text => back_as_text(directory, &done),
        Format::Json => back_as_json(&done),
    })?;
    Ok(if done.is_finished() { Exit::Done } else { Exit::No })
}

fn back_as_text(directory: &Path, done: &RolledBack) -> String {
    let mut text = String::new();
    let mut list = |what: &str, names: &[String]| {
        if !names.is_empty() {
            // Writing to a String can't fail.
            let _ = writeln!(text, "{what}: {}", names.join(" "));
        }
    };
    list("back", &done.restored);
    list("removed", &done.removed);
    list("Podwire's, as before", &done.as_before);
    list("still deleting what they made", &done.forwarding);
    list("kept, attachments need them", &done.needed);
    for (plugin, count) in done.remains.counts() {
        let _ = writeln!(text, "{plugin}: {}", attachments(count));
    }
    if !done.running.is_empty() {
        let ids: Vec<_> = done.running.iter().map(ToString::to_string).collect();
        let _ = writeln!(text, "still running: {}", ids.join(" "));
    }
    if done.is_finished() {
        let left =
            if done.as_before.is_empty() { "nothing of Podwire is left" } else { "as it was" };
        let _ = writeln!(text, "{}: {left}", directory.display());
    } else {
        let _ = writeln!(
            text,
            "everything new is made by the originals; run this again when those attachments are gone"
        );
    }
    text
}

fn back_as_json(done: &RolledBack) -> String {
    let mut writer = Writer::pretty();
    writer.begin_object();
    writer.key("finished").boolean(done.is_finished());
    writer.strings("restored", &done.restored);
    writer.strings("removed", &done.removed);
    writer.strings("asBefore", &done.as_before);
    writer.strings("forwarding", &done.forwarding);
    writer.strings("needed", &done.needed);
    write_remains(&mut writer, &done.remains);
    writer.key("running").begin_array();
    for id in &done.running {
        writer.integer(*id);
    }
    writer.end_array();
    writer.end_object();
    writer.finish()
}

fn attachments(count: usize) -> String {
    if count == 1 { "1 attachment".to_owned() } else { format!("{count} attachments") }
}

fn check_as_text(source: &Source, found: &Survey, uses: &Uses, left: &Remains) -> String {
    let mut table = Table::new(["PLUGIN", "NOW", "KEPT ASIDE", "WHAT HAPPENS"]);
    for file in &found.files {
        let kept = file.original.as_ref().map_or("-".to_owned(), ToString::to_string);
        table.row([file.name.clone(), now(file), kept, happens(file)]);
    }
    let mut text = format!("{}, by Podwire {}:\n", found.directory.display(), source.version);
    text.push_str(&table.render());
    let mut line = |what: &str, said: String| {
        // Writing to a String can't fail.
        let _ = writeln!(text, "{what}: {}", output::harmless(&said));
    };
    if !found.others.is_empty() {
        line("left alone", found.others.join(" "));
    }
    for (network, plugins) in &uses.networks {
        let count = uses.attachments.get(network).copied().unwrap_or_default();
        line(
            &format!("network {network}"),
            format!("{}, {}", plugins.join(" "), attachments(count)),
        );
    }
    for (network, count) in &uses.attachments {
        if !uses.networks.iter().any(|(name, _)| name == network) {
            line(
                &format!("network {network}"),
                format!("not configured any more, {}", attachments(*count)),
            );
        }
    }
    for problem in &uses.invalid {
        line("doesn't load", problem.clone());
    }
    if uses.unreadable > 0 {
        line("records that can't be understood", uses.unreadable.to_string());
    }
    if !uses.legacy.is_empty() {
        line(
            "legacy xtables in use",
            format!(
                "{}; removed with iptables-legacy, which must stay installed",
                uses.legacy.join(", ")
            ),
        );
    }
    for difference in &uses.differences {
        line("differs", difference.clone());
    }
    for (plugin, count) in left.counts() {
        line(&format!("made by Podwire's {plugin}"), attachments(count));
    }
    let refused: Vec<_> = found.refusals().map(|file| file.name.as_str()).collect();
    if !refused.is_empty() {
        line("REFUSED, nothing would be done, because of", refused.join(" "));
    }
    text
}

fn now(file: &PluginFile) -> String {
    if file.forwards { "rolled back, still deleting".to_owned() } else { file.program.to_string() }
}

fn happens(file: &PluginFile) -> String {
    match &file.step {
        Step::Replace => "kept aside and replaced".to_owned(),
        Step::Add => "added".to_owned(),
        Step::Renew => "renewed".to_owned(),
        Step::Nothing => "nothing, it is this one".to_owned(),
        Step::Leave { reason } => format!("left: {reason}"),
        Step::Refuse { .. } => "REFUSED: it can't be told what it is".to_owned(),
    }
}

fn check_as_json(source: &Source, found: &Survey, uses: &Uses, left: &Remains) -> String {
    let mut writer = Writer::pretty();
    writer.begin_object();
    write_files(&mut writer, source, found);
    writer.strings("leftAlone", &found.others);
    writer.key("networks").begin_array();
    for (network, plugins) in &uses.networks {
        writer.begin_object();
        writer.key("name").string(network);
        writer.strings("plugins", plugins);
        writer.end_object();
    }
    writer.end_array();
    writer.key("attachments").begin_object();
    for (network, count) in &uses.attachments {
        writer.key(network).integer(i128::try_from(*count).unwrap_or_default());
    }
    writer.end_object();
    writer.strings("invalid", &uses.invalid);
    writer.key("unreadableRecords").integer(i128::try_from(uses.unreadable).unwrap_or_default());
    let legacy: Vec<_> = uses.legacy.iter().map(|name| (*name).to_owned()).collect();
    writer.strings("legacyTables", &legacy);
    let differences: Vec<_> = uses.differences.iter().cloned().collect();
    writer.strings("differences", &differences);
    write_remains(&mut writer, left);
    writer.key("refused").boolean(found.refusals().next().is_some());
    writer.end_object();
    writer.finish()
}

fn write_files(writer: &mut Writer, source: &Source, found: &Survey) {
    writer.key("directory").string(&found.directory.to_string_lossy());
    writer.key("podwire").string(&source.version);
    writer.key("files").begin_array();
    for file in &found.files {
        writer.begin_object();
        writer.key("name").string(&file.name);
        writer.key("is").string(if file.forwards { "forwarding" } else { file.program.as_str() });
        writer.key("says").string(&now(file));
        if let Some(original) = &file.original {
            writer.key("keptAside").string(&original.to_string());
        }
        writer.key("step").string(file.step.as_str());
        if let Some(reason) = file.step.reason() {
            writer.key("reason").string(reason);
        }
        writer.end_object();
    }
    writer.end_array();
}

fn write_remains(writer: &mut Writer, left: &Remains) {
    writer.key("made").begin_object();
    for (plugin, count) in left.counts() {
        writer.key(plugin).integer(i128::try_from(count).unwrap_or_default());
    }
    writer.end_object();
}
