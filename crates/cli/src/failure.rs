//! Errors of commands: a message for people, a hint, an exit code.

use std::io;
use std::path::Path;

use steno_adapters::NoSession;
use steno_disk::NotRegular;
use steno_journal::{Error as JournalError, RunFile, Store};
use steno_library::{Error as LibraryError, FileError, TargetKind};
use steno_model::with_causes;
use steno_spine::BundleError;

use crate::id_lines::candidate_lines;

/// Exit codes, the same for every command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Done.
    Done,
    /// The command ran, and found nothing.
    NothingFound,
    /// A check failed, or what was named is not there.
    CheckFailed,
    /// Wrong use.
    Usage,
    /// The command failed: disk, permission, a bug.
    Failed,
    /// Another process is writing.
    Held,
    /// Ended by a signal, after everything accepted was recorded.
    Signal(u8),
    /// The exit code of the child process that the command started.
    Child(u8),
}

impl Exit {
    /// Returns the number that the process ends with.
    pub fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::NothingFound | Self::CheckFailed => 1,
            Self::Usage => 2,
            Self::Failed => 3,
            Self::Held => 4,
            Self::Signal(number) => 128 + number,
            Self::Child(code) => code,
        }
    }
}

/// An error that ends a command.
#[derive(Debug)]
pub struct Failure {
    pub exit: Exit,
    pub message: String,
    /// Lines after the message. They are safe to print, and may have colours.
    pub list: Vec<String>,
    pub hint: Option<String>,
}

/// The result of a command.
pub type Outcome = Result<Exit, Failure>;

impl Failure {
    pub fn usage(message: impl Into<String>) -> Self {
        Self { exit: Exit::Usage, message: message.into(), list: Vec::new(), hint: None }
    }

    pub fn nothing(message: impl Into<String>) -> Self {
        Self { exit: Exit::CheckFailed, message: message.into(), list: Vec::new(), hint: None }
    }

    /// A list without entries, which is no error.
    pub fn empty(message: impl Into<String>) -> Self {
        Self { exit: Exit::NothingFound, message: message.into(), list: Vec::new(), hint: None }
    }

    pub fn could_not(message: impl Into<String>) -> Self {
        Self { exit: Exit::Failed, message: message.into(), list: Vec::new(), hint: None }
    }

    /// Fails while recording into a store is paused.
    pub fn unless_paused(store: &Store) -> Result<(), Self> {
        Ok(store.begin_recording(jiff::Timestamp::now()).map(|_| ())?)
    }

    pub fn with_hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }
}

impl From<JournalError> for Failure {
    fn from(error: JournalError) -> Self {
        let exit = exit_of(&error);
        let message = held_run_message(&error).unwrap_or_else(|| with_causes(&error));
        Self { exit, message, list: Vec::new(), hint: hint_for(&error).map(str::to_owned) }
    }
}

impl From<steno_vault::Error> for Failure {
    fn from(error: steno_vault::Error) -> Self {
        let exit = match &error {
            steno_vault::Error::Locked { .. } | steno_vault::Error::Busy { .. } => Exit::Held,
            steno_vault::Error::NoSuchSource { .. }
            | steno_vault::Error::Forgotten { .. }
            | steno_vault::Error::NoSuchBytes { .. }
            | steno_vault::Error::MissingChunk { .. }
            | steno_vault::Error::DamagedChunk { .. }
            | steno_vault::Error::Damaged { .. } => Exit::CheckFailed,
            steno_vault::Error::NoRoom { .. }
            | steno_vault::Error::NotSynced { .. }
            | steno_vault::Error::Poisoned { .. }
            | steno_vault::Error::Vanished { .. }
            | steno_vault::Error::TooNew { .. }
            | steno_vault::Error::NotRegular { .. }
            | steno_vault::Error::Io { .. } => Exit::Failed,
        };
        Self { exit, message: with_causes(&error), list: Vec::new(), hint: None }
    }
}

impl From<LibraryError> for Failure {
    fn from(error: LibraryError) -> Self {
        let message = error.to_string();
        match error {
            LibraryError::Journal(error) => error.into(),
            LibraryError::Vault(error) => error.into(),
            LibraryError::File(error) => error.into(),
            LibraryError::Index(error) => Self::could_not(with_causes(&error)),
            LibraryError::Pattern(_) => Self::usage(message).with_hint("`--exact` finds a text as it is"),
            LibraryError::NoStore => Self::nothing(message).with_hint("`steno up` creates one"),
            LibraryError::InvalidName { want, .. } => {
                let wanted = "a UUID, four or more of its first or last characters (0-9, a-f), `last`";
                let wanted = match want {
                    TargetKind::Session | TargetKind::Run => format!("{wanted}, or a path"),
                    TargetKind::Thread => wanted.to_owned(),
                };
                Self::usage(format!("{message}: expected {wanted}")).with_hint(list_hint(want))
            }
            LibraryError::NotFound { want, .. } => Self::nothing(message).with_hint(list_hint(want)),
            LibraryError::LastOutOfRange { .. } => {
                Self::nothing(message).with_hint(list_hint(TargetKind::Session))
            }
            LibraryError::WithoutEvents { session } => Self::nothing(message).with_hint(format!(
                "`steno restore {session} --list` lists its files; without `--list` it restores them"
            )),
            LibraryError::Ambiguous { candidates, .. } => {
                let list = candidate_lines(&candidates);
                let hint = "use more characters; the last four characters of an id are usually unique";
                Self { list, ..Self::usage(message).with_hint(hint) }
            }
            LibraryError::NoFile { path, link, source } => {
                let link = link.map(|to| format!(", a link to `{}`", to.display())).unwrap_or_default();
                Self::could_not(format!("cannot read `{}`{link}: {source}", path.display()))
                    .with_hint(list_hint(TargetKind::Session))
            }
            LibraryError::NotRegular { .. } => Self::could_not(message),
        }
    }
}

impl From<BundleError> for Failure {
    fn from(error: BundleError) -> Self {
        let message = error.to_string();
        match error {
            BundleError::Name { .. } => {
                Self::usage(message).with_hint("name a file that ends in `.tar.zst`, or a directory")
            }
            BundleError::NoName => Self::usage(message),
            BundleError::Exists { path } => already_exists(&path),
            BundleError::InvalidSpine { thread } => {
                Self::nothing(message).with_hint(format!("`steno spine validate {thread}` says why"))
            }
            BundleError::OpenSegment { thread } => {
                Self::nothing(message).with_hint(format!("`steno spine validate {thread} --repair` seals it"))
            }
            BundleError::NoSegment { .. } => {
                Self::nothing(message).with_hint("it is being written; try again when recording has stopped")
            }
            BundleError::WrittenInvalid => {
                Self::could_not(message).with_hint("`steno spine validate` checks the spine itself")
            }
            BundleError::Io { action, path, source } => cannot(action, &path, &source),
            BundleError::Journal(error) => error.into(),
        }
    }
}

impl From<FileError> for Failure {
    fn from(error: FileError) -> Self {
        let message = error.to_string();
        match error {
            FileError::Io { .. } | FileError::NotRegular { .. } | FileError::Unread { .. } => {
                Self::could_not(message)
            }
            FileError::NotReadYet { .. } | FileError::Unknown { .. } | FileError::Empty { .. } => Self::nothing(message),
            FileError::Gzip { .. } => {
                Self::nothing(message).with_hint("unpack it first; only zstd is read directly")
            }
            FileError::Utf16 { .. } => Self::nothing(message).with_hint("convert it to UTF-8 first"),
            FileError::NoSession { what, .. } => Self::nothing(message).with_hint(match what {
                NoSession::Archive => {
                    "`steno spine validate` and `steno spine distill` read bundles; for other commands, unpack it and use the session file in `rollout`"
                }
                NoSession::Spine => "`steno spine validate` and `steno spine distill` read the directory that contains it",
            }),
        }
    }
}

/// Returns the failure to do something with a path.
pub fn cannot(what: &str, path: &Path, error: &io::Error) -> Failure {
    Failure::could_not(match NotRegular::inside(error) {
        Some(_) => format!("`{}` is not a regular file", path.display()),
        None => format!("cannot {what} `{}`: {error}", path.display()),
    })
}

/// Returns the failure to write to a path where something is.
pub fn already_exists(path: &Path) -> Failure {
    Failure::nothing(format!("`{}` already exists; nothing was written", path.display()))
        .with_hint("use a name with `-o` that does not exist yet")
}

fn list_hint(want: TargetKind) -> &'static str {
    match want {
        TargetKind::Session => "`steno ls` lists the sessions",
        TargetKind::Run => "`steno ls` lists the sessions, `steno ls --runs` the runs",
        TargetKind::Thread => "`steno spine ls` lists the threads that have a spine",
    }
}

impl From<steno_model::Error> for Failure {
    fn from(error: steno_model::Error) -> Self {
        Self::usage(with_causes(&error))
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::could_not(with_causes(&error))
    }
}

/// Returns a message that names the run instead of its lock file.
fn held_run_message(error: &JournalError) -> Option<String> {
    let JournalError::Locked { path } = error else { return None };
    let Some(RunFile::Lock(run)) = RunFile::parse(path.as_str()) else { return None };
    Some(format!("run {run} is locked by another writer"))
}

/// Returns the exit code for an error of the journal.
pub fn exit_of(error: &JournalError) -> Exit {
    match error {
        JournalError::Locked { .. } => Exit::Held,
        JournalError::NoSuchRun { .. }
        | JournalError::Damaged { .. }
        | JournalError::SealBroken { .. }
        | JournalError::Paused
        | JournalError::TooLong { .. } => Exit::CheckFailed,
        JournalError::NoRoom { .. }
        | JournalError::Poisoned { .. }
        | JournalError::Vanished { .. }
        | JournalError::Changed { .. }
        | JournalError::Closed
        | JournalError::NotRegular { .. }
        | JournalError::NotAStore { .. }
        | JournalError::StoreTooNew { .. }
        | JournalError::BadFormatFile { .. }
        | JournalError::Shrunk { .. }
        | JournalError::Io { .. } => Exit::Failed,
    }
}

fn hint_for(error: &JournalError) -> Option<&'static str> {
    Some(match error {
        JournalError::Locked { .. } => "another `steno` writes to this run; `steno follow` shows its events",
        JournalError::NoSuchRun { .. } => "`steno ls` lists the runs",
        JournalError::Paused => "`steno resume` ends the pause",
        JournalError::NoRoom { .. } => "free some disk space; acknowledged events are safe",
        JournalError::Poisoned { .. } => "check the disk, then start again: opening the run recovers it",
        JournalError::Damaged { .. } | JournalError::SealBroken { .. } => {
            "nothing was changed; `steno verify` checks every run, `steno events` shows the undamaged part"
        }
        JournalError::NotAStore { .. } => "use another directory with `--store`",
        JournalError::StoreTooNew { .. } => "a newer `steno` wrote this store; use that version",
        JournalError::NotRegular { .. } => {
            "move it away; records are written only to regular files that only their owner can read"
        }
        JournalError::Changed { .. } => {
            "find out what else writes to the store; `steno verify` shows what is undamaged"
        }
        JournalError::Vanished { .. } => "find out what removes files from the store, then start again",
        JournalError::TooLong { .. }
        | JournalError::Closed
        | JournalError::BadFormatFile { .. }
        | JournalError::Shrunk { .. }
        | JournalError::Io { .. } => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_exit_has_the_documented_code() {
        let codes = [Exit::Done, Exit::CheckFailed, Exit::Usage, Exit::Failed, Exit::Held, Exit::Signal(15)]
            .map(Exit::code);
        assert_eq!(codes, [0, 1, 2, 3, 4, 143]);
    }

    #[test]
    fn failure_names_its_causes_once() {
        let source = io::Error::from_raw_os_error(28);
        let failure = Failure::from(steno_journal::Error::NoRoom {
            path: steno_disk::StorePath::transcripts(),
            source: std::sync::Arc::new(source),
        });
        assert_eq!(failure.exit, Exit::Failed);
        assert_eq!(
            failure.message,
            "cannot write `transcripts`; no part of the record was written: No space left on device (os error 28)"
        );
    }
}
