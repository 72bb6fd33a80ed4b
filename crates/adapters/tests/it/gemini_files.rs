//! Gemini's sample files, and what its adapters make of them.

use std::path::{Path, PathBuf};

use steno_adapters::{HEAD_BYTES_MAX, Source, open, sniff};
use steno_model::{Lane, Provider};
use steno_testkit::places;

use crate::adapter_output::{Made, feed};
use crate::codex_files::files_below;

/// Lists every sample of Gemini CLI, of all surfaces that an adapter reads.
pub(crate) fn all_samples(shared: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for (part, suffix) in [
        ("versions/gemini", ".json"),
        ("versions/gemini", ".jsonl"),
        ("recordings/gemini", ".json"),
        ("versions/gemini", ".ndjson"),
        ("captures/gemini", "stream.ndjson"),
    ] {
        found.extend(files_below(&shared.join(part), suffix));
    }
    found.extend(chats_below(&shared.join("captures/gemini")));
    found
}

/// Lists the chat files in a directory.
pub(crate) fn chats_below(directory: &Path) -> Vec<PathBuf> {
    let files = files_below(directory, ".jsonl").into_iter();
    files.filter(|path| path.components().any(|part| part.as_os_str() == "chats")).collect()
}

/// Reads a file through the adapter that its content asks for, cut into chunks of so many bytes.
pub(crate) fn made_in_chunks(path: &Path, chunk: usize) -> Made {
    let bytes = places::read_bytes(path);
    let sniffed =
        sniff(&bytes[..bytes.len().min(HEAD_BYTES_MAX)]).unwrap_or_else(|| panic!("{}", path.display()));
    assert_eq!(sniffed.surface.provider(), Some(Provider::Gemini), "{}", path.display());
    let adapter = open(&sniffed, Source::of_file("s1", path)).unwrap();
    feed(adapter, &[(Lane::FromAgent, bytes)], chunk)
}

/// Reads a whole file.
pub(crate) fn made_of(path: &Path) -> Made {
    made_in_chunks(path, usize::MAX)
}
