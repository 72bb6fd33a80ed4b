//! Copilot's sample files, and what its adapters make of them.

use std::path::{Path, PathBuf};

use steno_adapters::{Adapter, copilot};
use steno_model::Lane;
use steno_testkit::places;

use crate::adapter_output::{Made, feed};
use crate::codex_files::files_below;
use crate::reading::{Piece, is_named, output, source_of};

/// Lists every sample of Copilot, of both surfaces.
pub(crate) fn all_samples(shared: &Path) -> Vec<PathBuf> {
    let mut found = files_below(&shared.join("versions/copilot"), ".ndjson");
    found.extend(files_below(&shared.join("versions/copilot"), ".jsonl"));
    for suffix in ["events.jsonl", "stream.ndjson"] {
        found.extend(files_below(&shared.join("captures/copilot"), suffix));
    }
    found
}

/// Returns the adapter that a file's name asks for.
pub(crate) fn adapter_for(path: &Path) -> Adapter {
    let is_stream = is_named(&path.to_string_lossy(), "ndjson");
    if is_stream { copilot::stream(source_of(path)) } else { copilot::events(source_of(path)) }
}

/// Returns the adapter that a file's name asks for, and the file's bytes.
pub(crate) fn copilot_pieces(name: &str, bytes: &[u8]) -> (Adapter, Vec<Piece>) {
    (adapter_for(Path::new(name)), vec![output(bytes)])
}

/// Reads a whole file.
pub(crate) fn made_of(path: &Path) -> Made {
    feed(adapter_for(path), &[(Lane::FromAgent, places::read_bytes(path))], usize::MAX)
}
