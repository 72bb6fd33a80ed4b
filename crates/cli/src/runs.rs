//! Finds what a RUN argument means: a UUID, the beginning of one, a session that a run shows, or a transcript file. Opens
//! it, and says what can be seen at once to be wrong with it.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use steno_disk::{RealDisk, StorePath, open_host_file};
use steno_journal::{Error as JournalError, Reader, RunFile, Seal, Store, read_seals};
use steno_model::RunId;
use steno_views::{Lines, visible, with_causes};

use crate::archiving::sessions;
use crate::failure::{Exit, Failure};
use crate::provider_files::{Opened, cannot, check_ours, what_is};
use crate::settings::Settings;

/// What a RUN argument means.
pub enum Found {
    Run(RunId),
    File(PathBuf),
}

/// Opens the store to read; one that is not there is empty.
pub fn open_store(settings: &Settings) -> Result<Option<Store>, Failure> {
    let disk =
        RealDisk::open(&settings.store.value).map_err(|error| no_store(settings, &error.to_string()))?;
    let store = disk.map(|disk| Store::open(Arc::new(disk))).transpose();
    store.map_err(|error| about_store(settings, error))
}

/// Opens the store to read, or says that there is none.
pub fn need_store(settings: &Settings) -> Result<Store, Failure> {
    open_store(settings)?.ok_or_else(|| {
        Failure::nothing(format!(
            "there is no store at `{}` ({})",
            settings.store.value.display(),
            settings.store.origin
        ))
        .with_hint("`steno up` makes one, `steno record` too")
    })
}

/// Opens the store to write, and makes it when it is not there.
pub fn make_store(settings: &Settings) -> Result<Store, Failure> {
    let disk =
        RealDisk::create(&settings.store.value).map_err(|error| no_store(settings, &error.to_string()))?;
    Store::create(Arc::new(disk)).map_err(|error| about_store(settings, error))
}

fn no_store(settings: &Settings, why: &str) -> Failure {
    let message = format!("cannot open the store `{}`: {why}", settings.store.value.display());
    Failure::could_not(message).with_hint("name another directory with `--store DIR` or STENO_HOME")
}

/// Adds to an error of the store as a whole which store it is.
fn about_store(settings: &Settings, error: steno_journal::Error) -> Failure {
    let failure = Failure::from(error);
    let message = format!("cannot use the store `{}`: {}", settings.store.value.display(), failure.message);
    Failure { message, ..failure }
}

/// Reads a whole UUID, with or without its hyphens.
pub fn parse_id(text: &str) -> Result<RunId, steno_model::Error> {
    const DIGITS: usize = 32;
    if text.len() != DIGITS || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return RunId::parse(text);
    }
    let mut hyphenated = text.to_owned();
    for place in [20, 16, 12, 8] {
        hyphenated.insert(place, '-');
    }
    RunId::parse(&hyphenated)
}

/// Reads a RUN argument.
pub fn find(text: &str, settings: &Settings) -> Result<Found, Failure> {
    if let Ok(run) = parse_id(text) {
        let is_there = open_store(settings)?.map_or(Ok(true), |store| store.has(run))?;
        let shown = if is_there { None } else { find_shown(text, settings)? };
        return Ok(Found::Run(shown.unwrap_or(run)));
    }
    let path = Path::new(text);
    if path.is_file() || path.is_dir() {
        return Ok(Found::File(path.to_owned()));
    }
    check_path(text)?;
    if begun_by(text, settings)?.is_empty()
        && let Some(run) = find_shown(text, settings)?
    {
        return Ok(Found::Run(run));
    }
    let wanted = "a UUID, four or more of its first digits, or a transcript file";
    find_by_prefix(text, settings, wanted).map(Found::Run)
}

/// Fails for what can only be meant as a path, and has nothing at it that could be read.
fn check_path(text: &str) -> Result<(), Failure> {
    let path = Path::new(text);
    let Ok(about) = path.symlink_metadata() else {
        if !text.contains(['/', '.']) {
            return Ok(());
        }
        let missing = io::Error::from(io::ErrorKind::NotFound);
        let failure = cannot("read", path, &path.metadata().err().unwrap_or(missing));
        return Err(failure.with_hint("`steno ls` lists the runs of the store"));
    };
    Err(match path.metadata() {
        Err(error) if about.is_symlink() => {
            let to = path.read_link().map(|to| format!("`{}`", to.display())).unwrap_or_default();
            Failure::could_not(format!("cannot read `{text}`, a link to {to}: {error}"))
        }
        Ok(_) | Err(_) => Failure::could_not(format!("`{text}` is no regular file")),
    })
}

/// Reads a RUN argument that may be a transcript file, and not a file of an agent or a directory.
pub fn find_recorded(text: &str, settings: &Settings) -> Result<Found, Failure> {
    let found = find(text, settings)?;
    if let Found::File(path) = &found {
        check_kind(path)?;
    }
    Ok(found)
}

/// Fails for a file of an agent and for a directory.
fn check_kind(path: &Path) -> Result<(), Failure> {
    if let Err(failure) = Opened::open(path)
        && failure.exit == Exit::Found
    {
        return Err(failure);
    }
    let Some((what, hint)) = no_transcript(path) else { return Ok(()) };
    let message = format!("`{}` is {what}, and not a transcript", path.display());
    Err(Failure { hint, ..Failure::usage(message) })
}

/// Tells what a path is that is no transcript, and what to do with it; a damaged transcript is one.
fn no_transcript(path: &Path) -> Option<(&'static str, Option<String>)> {
    let hint = format!("`steno events {}` shows it", path.display());
    if path.is_dir() {
        return Some((
            "a directory",
            Some("`steno events`, `tree` and `show` take a directory of an agent".to_owned()),
        ));
    }
    // One that cannot be opened is no better known, and fails where it is needed.
    let opened = Opened::open(path).ok()?;
    Some((what_is(opened.sniffed()?.surface), opened.surface().map(|_| hint)))
}

/// Reads a RUN argument that has to be a run of the store.
pub fn find_run(text: &str, settings: &Settings) -> Result<RunId, Failure> {
    if let Ok(run) = parse_id(text) {
        return Ok(run);
    }
    if let Some((what, hint)) = no_transcript(Path::new(text)) {
        let message = format!("`{text}` is {what}, and this command takes runs of the store");
        return Err(Failure { hint, ..Failure::usage(message) });
    }
    if Path::new(text).is_file() {
        let message = format!("`{text}` is a file, and this command takes runs of the store");
        return Err(
            Failure::usage(message).with_hint("`steno events`, `tree`, `show` and `verify` take files too")
        );
    }
    find_by_prefix(text, settings, "a UUID, or four or more of its first digits")
}

/// Finds the run that shows a session, which has a name of its own: what was said on a thread over a connection.
fn find_shown(text: &str, settings: &Settings) -> Result<Option<RunId>, Failure> {
    let Some(store) = open_store(settings)? else { return Ok(None) };
    match sessions::shown(text, &store)?[..] {
        [] => Ok(None),
        [shown] => Ok(Some(shown.run)),
        [first, second, ..] => {
            let message =
                format!("`{text}` is shown by several runs, {} and {} among them", first.run, second.run);
            Err(Failure::usage(message).with_hint("give one of the runs"))
        }
    }
}

/// Tells whether a text can be the beginning of a UUID.
fn is_prefix(text: &str) -> bool {
    const PREFIX_LEN_MIN: usize = 4;
    (PREFIX_LEN_MIN..RunId::LEN).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-')
}

/// Returns the runs of the store that begin so; none if there is no store.
pub fn begun_by(text: &str, settings: &Settings) -> Result<Vec<RunId>, Failure> {
    let Some(store) = open_store(settings)?.filter(|_| is_prefix(text)) else { return Ok(Vec::new()) };
    let prefix = text.to_ascii_lowercase();
    let mut runs = store.runs()?;
    runs.retain(|run| {
        let id = run.to_string();
        id.starts_with(&prefix) || id.replace('-', "").starts_with(&prefix)
    });
    Ok(runs)
}

fn find_by_prefix(text: &str, settings: &Settings, wanted: &str) -> Result<RunId, Failure> {
    if !is_prefix(text) {
        let message = format!("`{text}` is no run: want {wanted}");
        return Err(Failure::usage(message).with_hint("`steno ls` lists the runs"));
    }
    need_store(settings)?;
    let runs = begun_by(text, settings)?;
    match runs[..] {
        [run] => Ok(run),
        [] => {
            Err(Failure::nothing(format!("no run begins with `{text}`"))
                .with_hint("`steno ls` lists the runs"))
        }
        [first, second, ..] => {
            let message = format!("`{text}` begins {} runs, {first} and {second} among them", runs.len());
            Err(Failure::usage(message).with_hint("give more of its digits"))
        }
    }
}

/// Opens what was found to read, as it is now.
pub fn open_reader(found: &Found, settings: &Settings) -> Result<Reader, Failure> {
    match found {
        Found::Run(run) => {
            let store = need_store(settings)?;
            let reader = Reader::open(&store, *run)?.until_now()?;
            warn_of_broken_seals(&store, *run);
            Ok(reader)
        }
        Found::File(path) => open_file(path),
    }
}

/// Opens a file to read that has to be a transcript with events in it; what it is else, is said.
pub fn open_transcript(path: &Path) -> Result<Reader, Failure> {
    check_kind(path)?;
    check_ours(path)?;
    // What is damaged is for its reader to find.
    if open_file(path)?.read_next().is_ok_and(|first| first.is_none()) {
        return Err(Failure::nothing(format!("`{}` has no events", path.display())));
    }
    open_file(path)
}

fn open_file(path: &Path) -> Result<Reader, Failure> {
    let file = open_host_file(path).map_err(|error| cannot("open", path, &error))?;
    Ok(Reader::of_file(file, StorePath::outside(path), None).until_now()?)
}

/// Returns the seals of a run, unless it is shorter than one of them.
///
/// That a transcript was cut shows without reading it; that it was changed does not, and is for `verify` to find.
pub fn fitting_seals(store: &Store, run: RunId) -> Result<Vec<Seal>, JournalError> {
    // Seals first: one that is made meanwhile covers no more than what will be there then.
    let seals = read_seals(&**store.disk(), run)?;
    let bytes = store.size(run)?.unwrap_or(0);
    match seals.iter().find(|seal| seal.bytes > bytes) {
        None => Ok(seals),
        Some(seal) => Err(JournalError::SealBroken {
            path: RunFile::Transcript(run).path(),
            differs: None,
            bytes: seal.bytes,
            why: "the file is shorter",
        }),
    }
}

/// Says so when a run is shorter than its seals: what is there is shown all the same.
pub fn warn_of_broken_seals(store: &Store, run: RunId) {
    if let Err(error) = fitting_seals(store, run) {
        let why = with_causes(&error);
        tracing::warn!("{}; `steno verify {run}` checks all of it", visible(&why, Lines::Escape));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uuid_needs_no_hyphens_and_no_other_ones() {
        let run = RunId::parse("550e8400-e29b-41d4-a716-446655440000").unwrap();
        for good in [
            "550e8400-e29b-41d4-a716-446655440000",
            "550E8400-E29B-41D4-A716-446655440000",
            "550e8400e29b41d4a716446655440000",
            "550E8400E29B41D4A716446655440000",
        ] {
            assert_eq!(parse_id(good), Ok(run), "{good}");
        }
        for bad in [
            "550e8400e29b41d4a71644665544000",
            "550e8400e29b41d4a7164466554400000",
            "550e8400-e29b41d4a716446655440000",
            "550e8400e29b41d4a71644665544000g",
            "{50e8400e29b41d4a71644665544000}",
            "550e8400e29b41d4a7164466554400é",
        ] {
            assert!(parse_id(bad).is_err(), "{bad}");
        }
    }
}
