//! What an adapter is told about a source besides its bytes.

use steno_adapters::Source;
use steno_capture::discovery::{gemini_project_of, gemini_root, gemini_root_file};
use steno_vault::{Role, SourceId, SourceInfo, Vault};

/// The length of a directory's name that is read from the vault at most.
const ROOT_BYTES_MAX: usize = 64 * 1024;

/// Returns what an adapter is told about a source.
pub(crate) fn adapter_source(vault: &Vault, id: SourceId, info: &SourceInfo) -> Source {
    Source { working_dir: working_dir(vault, info), ..Source::of_file(&id.to_string(), &info.path.0) }
}

/// Finds the directory that the agent of a session worked in, if the session's own file does not have it. The agent may
/// have deleted its file with the directory, so the vault is read too.
fn working_dir(vault: &Vault, info: &SourceInfo) -> Option<String> {
    if info.role != Role::Transcript {
        return None;
    }
    gemini_project_of(&info.path.0).or_else(|| {
        let id = SourceId::derive(&gemini_root_file(&info.path.0)?, 0);
        let manifest = vault.manifest(id).ok()??;
        let mut text = Vec::new();
        let read = vault.read(&manifest, manifest.generation_last()?, 0, |_, bytes| {
            text.extend_from_slice(bytes);
            text.len() < ROOT_BYTES_MAX
        });
        read.ok().and_then(|()| gemini_root(&text))
    })
}
