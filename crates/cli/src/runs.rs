//! Opens the store that the settings name, and resolves RUN arguments.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use steno_disk::{RealDisk, StorePath, open_host_file};
use steno_journal::{Reader, Store};
use steno_library::{
    AgentFile, Error as LibraryError, Library, Target, TargetKind, check_transcript, surface_name,
    warn_about_broken_seals,
};
use steno_model::RunId;

use crate::failure::{Exit, Failure, cannot};
use crate::index_progress;
use crate::settings::Settings;

/// A resolved RUN argument.
pub enum RunOrFile {
    Run(RunId),
    File(PathBuf),
}

/// Opens the store for reading; `None` if it does not exist.
pub fn open_store(settings: &Settings) -> Result<Option<Store>, Failure> {
    let disk =
        RealDisk::open(&settings.store.value).map_err(|error| no_store(settings, &error.to_string()))?;
    let store = disk.map(|disk| Store::open(Arc::new(disk))).transpose();
    store.map_err(|error| about_store(settings, error))
}

/// Opens the store for reading, or fails if it does not exist.
pub fn need_store(settings: &Settings) -> Result<Store, Failure> {
    open_store(settings)?.ok_or_else(|| not_there(settings))
}

fn not_there(settings: &Settings) -> Failure {
    Failure::nothing(format!(
        "there is no store at `{}` ({})",
        settings.store.value.display(),
        settings.store.origin
    ))
    .with_hint(format!("`steno up{}` creates one", settings.store_flags()))
}

/// Opens the store for writing, and creates it if needed.
pub fn make_store(settings: &Settings) -> Result<Store, Failure> {
    let disk =
        RealDisk::create(&settings.store.value).map_err(|error| no_store(settings, &error.to_string()))?;
    Store::create(Arc::new(disk)).map_err(|error| about_store(settings, error))
}

/// Opens the library of the store; it is empty if there is no store. While it makes an index, progress is shown.
pub fn open_library(settings: &Settings) -> Result<Library, Failure> {
    Ok(index_progress::shown(Library::new(open_store(settings)?)))
}

/// Opens the library of the store like [`open_library`], or fails if there is no store.
pub fn need_library(settings: &Settings) -> Result<Library, Failure> {
    Ok(index_progress::shown(Library::new(Some(need_store(settings)?))))
}

fn no_store(settings: &Settings, why: &str) -> Failure {
    let message = format!("cannot open the store `{}`: {why}", settings.store.value.display());
    Failure::could_not(message).with_hint("set another directory with `--store DIR` or STENO_HOME")
}

/// Adds the path of the store to an error about it.
fn about_store(settings: &Settings, error: steno_journal::Error) -> Failure {
    let failure = Failure::from(error);
    let message = format!("cannot use the store `{}`: {}", settings.store.value.display(), failure.message);
    Failure { message, ..failure }
}

/// Resolves an argument.
pub fn resolve(
    text: &str,
    want: TargetKind,
    library: &Library,
    settings: &Settings,
) -> Result<Target, Failure> {
    library.resolve(text, want).map_err(|error| unresolved(error, settings))
}

/// Returns the failure for an argument that names nothing.
pub fn unresolved(error: LibraryError, settings: &Settings) -> Failure {
    let is_there = !matches!(error, LibraryError::NoStore);
    if is_there { error.into() } else { not_there(settings) }
}

/// Resolves a RUN argument: a run of the store, or a path.
pub fn find(text: &str, settings: &Settings) -> Result<RunOrFile, Failure> {
    Ok(match resolve(text, TargetKind::Run, &open_library(settings)?, settings)? {
        Target::Run(run) | Target::Session(run) => RunOrFile::Run(run),
        Target::Path(path) => RunOrFile::File(path),
    })
}

/// Resolves a RUN argument to a run or a transcript file; fails for agents' files and directories.
pub fn find_recorded(text: &str, settings: &Settings) -> Result<RunOrFile, Failure> {
    let target = find(text, settings)?;
    if let RunOrFile::File(path) = &target {
        check_kind(path)?;
    }
    Ok(target)
}

/// Fails for agents' files and directories.
fn check_kind(path: &Path) -> Result<(), Failure> {
    if let Err(failure) = AgentFile::open(path).map_err(Failure::from)
        && failure.exit == Exit::CheckFailed
    {
        return Err(failure);
    }
    let Some((what, hint)) = no_transcript(path) else { return Ok(()) };
    let message = format!("`{}` is {what}, not a transcript", path.display());
    Err(Failure { hint, ..Failure::usage(message) })
}

/// Describes a path that is not a transcript, with a hint; `None` for transcripts, even damaged ones.
fn no_transcript(path: &Path) -> Option<(&'static str, Option<String>)> {
    let hint = format!("`steno events {}` shows it", path.display());
    if path.is_dir() {
        return Some((
            "a directory",
            Some("`steno events`, `tree` and `show` read an agent's directory".to_owned()),
        ));
    }
    // A file that cannot be opened fails where it is needed.
    let opened = AgentFile::open(path).ok()?;
    Some((surface_name(opened.sniffed()?.surface), opened.surface().map(|_| hint)))
}

/// Resolves a RUN argument that must be a run of the store.
pub fn find_run(text: &str, settings: &Settings) -> Result<RunId, Failure> {
    match find(text, settings) {
        Ok(RunOrFile::Run(run)) => Ok(run),
        Ok(RunOrFile::File(path)) => Err(no_run(&path)),
        // A text that looks like a path cannot be a run.
        Err(failure) if failure.exit == Exit::Failed && text.contains(['/', '.']) => {
            Err(LibraryError::InvalidName { text: text.to_owned(), want: TargetKind::Run }.into())
        }
        Err(failure) => Err(failure),
    }
}

/// Returns the failure for a path where a run of the store is needed.
pub fn no_run(path: &Path) -> Failure {
    let name = path.display();
    if let Some((what, hint)) = no_transcript(path) {
        let message = format!("`{name}` is {what}; this command needs a run of the store");
        return Failure { hint, ..Failure::usage(message) };
    }
    let message = format!("`{name}` is a file; this command needs a run of the store");
    Failure::usage(message).with_hint("`steno events`, `tree`, `show` and `verify` also read files")
}

/// Opens a run or file for reading, up to its current end.
pub fn open_reader(target: &RunOrFile, settings: &Settings) -> Result<Reader, Failure> {
    match target {
        RunOrFile::Run(run) => {
            let store = need_store(settings)?;
            let reader = Reader::open(&store, *run)?.until_now()?;
            warn_about_broken_seals(&store, *run);
            Ok(reader)
        }
        RunOrFile::File(path) => open_file(path),
    }
}

/// Opens a transcript file for reading; fails if it is another kind of file or has no events.
pub fn open_transcript(path: &Path) -> Result<Reader, Failure> {
    check_kind(path)?;
    check_transcript(path)?;
    // Damage is reported by the reader.
    if open_file(path)?.read_next().is_ok_and(|first| first.is_none()) {
        return Err(Failure::nothing(format!("`{}` has no events", path.display())));
    }
    open_file(path)
}

fn open_file(path: &Path) -> Result<Reader, Failure> {
    let file = open_host_file(path).map_err(|error| cannot("open", path, &error))?;
    Ok(Reader::of_file(file, StorePath::outside(path), None).until_now()?)
}
