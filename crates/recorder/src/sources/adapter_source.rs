//! What an adapter is told about a source besides its bytes.

use std::path::Path;

use steno_adapters::Source;
use steno_capture::discovery::{gemini_project_of, gemini_root, gemini_root_file};
use steno_vault::{Role, SourceId, SourceInfo, Vault};

/// The length of a directory's name that is read from the vault at most.
const ROOT_BYTES_MAX: usize = 64 * 1024;

/// Returns what an adapter is told about a source.
pub(crate) fn adapter_source(vault: &Vault, id: SourceId, info: &SourceInfo) -> Source {
    Source { working_dir: working_dir(vault, info), ..Source::of_file(&id.to_string(), &info.path.0) }
}

/// Finds the directory that the agent of a session worked in, if the session's own file does not have it. What the vault
/// has comes first: the agent may have changed or deleted its file, and a run that is derived again stays the same.
fn working_dir(vault: &Vault, info: &SourceInfo) -> Option<String> {
    if info.role != Role::Transcript {
        return None;
    }
    let root_file = gemini_root_file(&info.path.0)?;
    archived_root(vault, &root_file).or_else(|| gemini_project_of(&info.path.0))
}

/// Reads the directory in the vault's copy of a `.project_root`.
fn archived_root(vault: &Vault, root_file: &Path) -> Option<String> {
    let manifest = vault.manifest(SourceId::derive(root_file, 0)).ok()??;
    let mut text = Vec::new();
    let read = vault.read(&manifest, manifest.generation_last()?, 0, |_, bytes| {
        text.extend_from_slice(bytes);
        text.len() < ROOT_BYTES_MAX
    });
    read.ok().and_then(|()| gemini_root(&text))
}
