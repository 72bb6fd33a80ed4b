//! Reads Codex's sample files with the right adapter.

use std::path::{Path, PathBuf};

use serde_json::value::RawValue;
use steno_adapters::{Adapter, Source, codex};
use steno_model::Lane;
use steno_testkit::places;

use crate::adapter_output::{Made, Piece, feed};

/// Lists the files below a directory whose names have a suffix, sorted.
pub(crate) fn files_below(directory: &Path, suffix: &str) -> Vec<PathBuf> {
    let files = places::files_below(directory).into_iter().filter(|path| path.ends_with(suffix));
    files.map(|path| directory.join(path)).collect()
}

/// Lists the samples of Codex, of all surfaces.
pub(crate) fn all_samples(shared: &Path) -> Vec<PathBuf> {
    let mut found = files_below(&shared.join("versions/codex"), "json");
    found.extend(files_below(&shared.join("versions/codex"), "jsonl"));
    found.extend(files_below(&shared.join("recordings/codex"), ".jsonl"));
    for suffix in ["duplex.jsonl", "stream.ndjson"] {
        found.extend(files_below(&shared.join("captures/codex"), suffix));
    }
    for home in files_below(&shared.join("captures/codex"), ".jsonl") {
        if file_name(&home).starts_with("rollout-") {
            found.push(home);
        }
    }
    found
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap().to_string_lossy().into_owned()
}

fn is_duplex(path: &Path) -> bool {
    file_name(path).starts_with("duplex") || file_name(path).starts_with("app-server")
}

/// Chooses the adapter for a file by its name.
pub(crate) fn adapter_for(path: &Path) -> Adapter {
    let name = file_name(path);
    let source = Source { file_name: Some(name.clone()), ..Source::named("s1") };
    match () {
        () if is_duplex(path) => codex::app_server(source),
        () if name.contains("rollout") => codex::rollout(source),
        () => codex::exec(source),
    }
}

/// Reads a file in the pieces of its source: a connection message by message, anything else whole.
pub(crate) fn pieces_of(path: &Path) -> Vec<Piece> {
    let text = places::read(path);
    if !is_duplex(path) {
        return vec![(Lane::FromAgent, text.into_bytes())];
    }
    text.lines()
        .map(|line| {
            let fields: std::collections::BTreeMap<String, &RawValue> = serde_json::from_str(line).unwrap();
            let is_clients = fields["dir"].get().starts_with("\"c");
            let lane = if is_clients { Lane::ToAgent } else { Lane::FromAgent };
            (lane, format!("{}\n", fields["msg"].get()).into_bytes())
        })
        .collect()
}

/// Reads a whole file.
pub(crate) fn made_of(path: &Path) -> Made {
    feed(adapter_for(path), &pieces_of(path), usize::MAX)
}
