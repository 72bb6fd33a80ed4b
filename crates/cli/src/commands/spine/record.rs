//! `steno spine record`: sessions of Codex as spines, from its session files, its traces, or the archive.

use std::fs::File;
use std::io::{BufRead, BufReader, Cursor};
use std::path::Path;
use std::sync::Arc;

use serde_json::json;
use steno_capture::packing::Unpacked;
use steno_disk::{Links, open_regular};
use steno_journal::Journal;
use steno_model::ThreadId;
use steno_recorder::spines::{Bases, Beside, Error, Forgotten, Written, record_rollout, record_trace};
use steno_vault::Vault;
use steno_views::{Lines, count, visible};

use super::rollouts::{self, Rollout};
use crate::archiving;
use crate::args::SpineRecordArgs;
use crate::connections;
use crate::failure::{Exit, Failure, Outcome};
use crate::output::Output;
use crate::provider_files::cannot;
use crate::runs::{self, Found};
use crate::settings::Settings;

pub fn run(args: &SpineRecordArgs, settings: &Settings, output: &mut Output) -> Outcome {
    let journal = Journal::new(runs::make_store(settings)?, archiving::journal_options(settings));
    let forgotten = if args.again { Forgotten::Again } else { Forgotten::Stays };
    let mut failed = 0;
    for source in &args.sources {
        match record(&journal, source, forgotten, settings) {
            Ok(recorded) => tell(&recorded, args.json, output),
            Err(failure) if args.sources.len() == 1 => return Err(failure),
            Err(failure) => {
                failed += 1;
                archiving::warn(&failure.message);
            }
        }
    }
    if failed > 0 {
        return Err(Failure::could_not(format!("{} could not be recorded", count(failed, "source"))));
    }
    Ok(Exit::Done)
}

type Recorded = (Vec<ThreadId>, Written);

fn record(
    journal: &Journal,
    source: &str,
    forgotten: Forgotten,
    settings: &Settings,
) -> Result<Recorded, Failure> {
    let path = Path::new(source);
    if path.join("manifest.json").is_file() && path.join("trace.jsonl").is_file() {
        return record_trace(journal, path, forgotten).map_err(|error| no_session(error, source));
    }
    if path.is_dir() {
        let failure =
            Failure::nothing(format!("`{source}` is no trace: it has no `manifest.json` and `trace.jsonl`"));
        return Err(failure.with_hint("name a session file, a trace, or a thread of the archive"));
    }
    if path.symlink_metadata().is_ok() {
        let mut file = open(path)?;
        let mut bases = Beside(path.parent().map(Path::to_owned).into_iter().collect());
        let recorded = record_rollout(journal, path, &mut *file, &mut bases, forgotten);
        return recorded.map_err(|error| no_session(error, source));
    }
    record_archived(journal, source, forgotten, settings)
}

/// Records what the archive has of a thread.
fn record_archived(
    journal: &Journal,
    source: &str,
    forgotten: Forgotten,
    settings: &Settings,
) -> Result<Recorded, Failure> {
    let hint = "name a session file, a trace, or a thread of the archive";
    let none = || {
        Failure::nothing(format!("there is no file `{source}`, and no such thread in the archive"))
            .with_hint(hint)
    };
    // A run of Codex is called what its thread is, and the beginning of that will do.
    let named = match runs::find_recorded(source, settings) {
        Ok(Found::Run(run)) => run.to_string(),
        Ok(Found::File(_)) | Err(_) => source.to_owned(),
    };
    let thread = ThreadId::parse(&named).map_err(|_| none())?;
    let vault = Vault::open(Arc::clone(journal.store().disk()));
    let mut all: Option<Recorded> = None;
    // Where turns were taken back, the thread goes on in another file.
    for rollout in rollouts::find(&vault, &thread)? {
        let text = whole(&rollout, &vault)?;
        let path = Path::new(&rollout.about.path);
        let mut bases = InArchive { vault: &vault };
        let (threads, written) = record_rollout(journal, path, &mut text.as_slice(), &mut bases, forgotten)
            .map_err(|error| no_session(error, source))?;
        let before = all.map_or_else(Written::default, |(_, before)| before);
        all = Some((threads, before + written));
    }
    all.ok_or_else(none)
}

fn no_session(error: Error, source: &str) -> Failure {
    let hint = match error {
        Error::NoThread { .. } => Some("session files of Codex are recorded so, and its traces".to_owned()),
        Error::Forgotten { .. } => {
            Some(format!("`steno spine record --again {source}` records it all the same"))
        }
        Error::OtherSource { .. }
        | Error::Forgetting { .. }
        | Error::Source { .. }
        | Error::Spool { .. }
        | Error::Journal { .. } => None,
    };
    Failure { hint, ..connections::failure(error) }
}

fn open(path: &Path) -> Result<Box<dyn BufRead>, Failure> {
    let file: File = open_regular(path, Links::Followed).map_err(|error| cannot("open", path, &error))?;
    Ok(Box::new(BufReader::new(Unpacked::new(file))))
}

fn whole(rollout: &Rollout, vault: &Vault) -> Result<Vec<u8>, Failure> {
    let mut text = Vec::new();
    rollout.write_to(vault, &mut text)?;
    Ok(text)
}

/// Session files in the archive that others go on from.
struct InArchive<'a> {
    vault: &'a Vault,
}

impl Bases for InArchive<'_> {
    fn open(&mut self, id: &str) -> Option<Box<dyn BufRead>> {
        let id = ThreadId::parse(id).ok()?;
        let own = rollouts::find(self.vault, &id).ok()?.into_iter().next();
        let found = own.or_else(|| rollouts::find_further(self.vault, &id).ok()?)?;
        Some(Box::new(Cursor::new(whole(&found, self.vault).ok()?)))
    }
}

fn tell((threads, written): &Recorded, is_json: bool, output: &mut Output) {
    let names: Vec<&str> = threads.iter().map(ThreadId::as_str).collect();
    if is_json {
        let said = json!({
            "threads": names, "records": written.records, "known": written.known, "refused": written.refused,
        });
        return output.json_line(&said.to_string());
    }
    let new = count(written.records, "new record");
    let known = if written.known > 0 { format!(", {} known", written.known) } else { String::new() };
    output.line(&format!("recorded  {}  {new}{known}", visible(&names.join(", "), Lines::Escape)));
    if written.refused > 0 {
        archiving::warn(&format!("{} too long for a spine", count(written.refused, "record")));
    }
}
