//! Spines in arguments: a thread of the store, a directory, a tar file.

use std::path::Path;
use std::rc::Rc;

use steno_adapters::Surface;
use steno_library::{AgentFile, SpineTarget, surface_name};
use steno_model::ThreadId;

use super::find_thread;
use crate::failure::{Failure, cannot};
use crate::runs;
use crate::settings::Settings;

/// Finds the spine that a text names: a directory, a tar file, or a thread of the store.
pub(super) fn find(text: &str, settings: &Settings) -> Result<SpineTarget, Failure> {
    let path = Path::new(text);
    let about = match path.metadata() {
        Ok(about) => about,
        Err(_) if ThreadId::parse(text).is_ok() => {
            let library = runs::need_library(settings)?;
            let thread = find_thread(text, &library)?;
            return Ok(SpineTarget::Thread(Rc::new(library), thread));
        }
        Err(error) => return Err(cannot("read", path, &error)),
    };
    if !about.is_dir() {
        check_no_session(path)?;
        return Ok(SpineTarget::Tar(path.to_owned()));
    }
    // A spine of the store has a lock, and all its numbers are ours.
    match of_store(path, settings) {
        Some(thread) => Ok(SpineTarget::Thread(Rc::new(runs::need_library(settings)?), thread)),
        None => Ok(SpineTarget::Directory(path.to_owned())),
    }
}

/// Fails for a file of an agent, which is not a tar file.
fn check_no_session(path: &Path) -> Result<(), Failure> {
    // The caller reads tar files, and reports files that cannot be opened.
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
        | Surface::Acp
        | Surface::Mcp
        | Surface::ClaudeDisk
        | Surface::ClaudeStream
        | Surface::GeminiChat
        | Surface::GeminiStream
        | Surface::GeminiOutput
        | Surface::CopilotEvents
        | Surface::CopilotStream
        | Surface::OpenCodeStream
        | Surface::Http
        | Surface::Wrap => failure.with_hint("only sessions of Codex become spines"),
    })
}

/// Returns the thread whose spine is at a path in the store.
fn of_store(path: &Path, settings: &Settings) -> Option<ThreadId> {
    let path = path.canonicalize().ok()?;
    let spines = settings.store.value.join("spine").canonicalize().ok()?;
    let name = path.strip_prefix(spines).ok()?.to_str()?;
    ThreadId::parse(name).ok()
}
