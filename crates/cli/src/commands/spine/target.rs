//! Spines as arguments name them: of the store, in a directory, in an archive.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use steno_adapters::Surface;
use steno_capture::packing::UnpackReader;
use steno_disk::{Links, RealDisk, open_regular};
use steno_library::{AgentFile, surface_name};
use steno_model::ThreadId;

use super::find_thread;
use crate::failure::{Failure, cannot};
use crate::runs;
use crate::settings::Settings;

/// A spine, wherever it lies.
pub(super) enum Target {
    Thread(ThreadId),
    Directory(PathBuf),
    Archive(PathBuf),
}

impl Target {
    /// Finds what somebody means: a directory, an archive, or a thread of the store.
    pub(super) fn find(text: &str, settings: &Settings) -> Result<Self, Failure> {
        let path = Path::new(text);
        let about = match path.metadata() {
            Ok(about) => about,
            Err(_) if ThreadId::parse(text).is_ok() => {
                return Ok(Self::Thread(find_thread(text, &runs::need_library(settings)?)?));
            }
            Err(error) => return Err(cannot("read", path, &error)),
        };
        if !about.is_dir() {
            check_no_session(path)?;
            return Ok(Self::Archive(path.to_owned()));
        }
        // A spine of the store has a lock, and numbers that were all given by us.
        Ok(of_store(path, settings).map_or_else(|| Self::Directory(path.to_owned()), Self::Thread))
    }

    pub(super) fn name(&self) -> String {
        match self {
            Self::Thread(thread) => thread.to_string(),
            Self::Directory(path) | Self::Archive(path) => path.display().to_string(),
        }
    }
}

/// Fails for a file of an agent, which is no archive however it is read.
fn check_no_session(path: &Path) -> Result<(), Failure> {
    // One that cannot be opened, and an archive, is for its reader to judge.
    let Ok(opened) = AgentFile::open(path) else { return Ok(()) };
    let Some(sniffed) = opened.sniffed() else { return Ok(()) };
    let name = path.display();
    let failure = Failure::usage(format!("`{name}` is {}, not a spine", surface_name(sniffed.surface)));
    Err(match sniffed.surface {
        Surface::CodexRollout => {
            failure.with_hint(format!("`steno spine record {name}` creates one from it"))
        }
        Surface::CodexAppServer
        | Surface::CodexExec
        | Surface::ClaudeDisk
        | Surface::ClaudeStream
        | Surface::GeminiChat
        | Surface::GeminiStream
        | Surface::CopilotEvents => failure.with_hint("only sessions of Codex become spines"),
    })
}

/// Returns the thread whose spine of the store a path leads to.
fn of_store(path: &Path, settings: &Settings) -> Option<ThreadId> {
    let path = path.canonicalize().ok()?;
    let spines = settings.store.value.join("spine").canonicalize().ok()?;
    let name = path.strip_prefix(spines).ok()?.to_str()?;
    ThreadId::parse(name).ok()
}

pub(super) fn open_directory(path: &Path) -> Result<RealDisk, Failure> {
    let opened = RealDisk::open(path).and_then(|disk| disk.ok_or_else(|| io::ErrorKind::NotFound.into()));
    opened.map_err(|error| cannot("open", path, &error))
}

/// Opens an archive in a file, compressed or not.
pub(super) fn open_archive(path: &Path) -> Result<Bounded, Failure> {
    let file = open_regular(path, Links::Followed).map_err(|error| cannot("read", path, &error))?;
    Ok(Bounded::of(file))
}

/// Reads an archive, compressed or not, and stops where it unpacks to more than there can be behind it: a few bytes of a
/// bomb are as long as anybody likes.
pub(super) struct Bounded {
    bytes: UnpackReader<ValidationCounts>,
    read: Rc<Cell<u64>>,
    given: u64,
}

/// How much anything may unpack to, and how many times as much as there is of it beyond that.
const UNPACKED_BYTES_FREE: u64 = 64 * 1024 * 1024;
const UNPACKED_TIMES_MAX: u64 = 2_000;

impl Bounded {
    fn of(file: File) -> Self {
        let read = Rc::new(Cell::new(0));
        Self { bytes: UnpackReader::new(ValidationCounts { file, read: Rc::clone(&read) }), read, given: 0 }
    }
}

impl Read for Bounded {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let given = self.bytes.read(into)?;
        self.given += given as u64;
        if self.given > UNPACKED_BYTES_FREE + self.read.get().saturating_mul(UNPACKED_TIMES_MAX) {
            let words = format!("it unpacks to more than {UNPACKED_TIMES_MAX} times its size");
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, words));
        }
        Ok(given)
    }
}

struct ValidationCounts {
    file: File,
    read: Rc<Cell<u64>>,
}

impl Read for ValidationCounts {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(into)?;
        self.read.set(self.read.get() + read as u64);
        Ok(read)
    }
}
