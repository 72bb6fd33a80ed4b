//! Everything that belongs to sessions to forget: copies of their files at any path, files that agents keep elsewhere,
//! and pieces of shared files.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::{Path, PathBuf};

use steno_capture::packing::Unpacker;
use steno_model::{Provider, Word};
use steno_vault::{Manifest, NameHash, Reason, Role, SourceId, Vault};

use super::{ForgetError, connection_of};
use crate::sources::{
    SessionIdentity, SharedFileFormat, SharedFilePiece, all_session_hashes, claude_slugs, is_in_project,
    is_project, plan_hash, plan_slug, session_hashes,
};

/// How many bytes of a file are read to find its session.
const HEAD_BYTES_MAX: usize = 256 * 1024;

/// The files of sessions.
#[derive(Clone, Debug, Default)]
pub struct SessionFiles {
    /// The files in the vault.
    pub manifests: Vec<Manifest>,
    /// The hashes of the sessions' names.
    pub names: Vec<NameHash>,
}

/// Finds all files in the vault that belong to the same sessions as the given files. Connections may have several
/// sessions: of them only the given ones belong, and by themselves.
///
/// # Errors
/// An error of the vault.
pub fn belongings(
    vault: &Vault,
    all: &[Manifest],
    seeds: &[Manifest],
    connections: &BTreeSet<SourceId>,
) -> Result<SessionFiles, ForgetError> {
    let mut names = BTreeSet::new();
    let mut slugs = BTreeSet::new();
    let is_of_one = |manifest: &&Manifest| {
        SharedFileFormat::of(&manifest.info).is_none() && !connections.contains(&manifest.id)
    };
    for seed in seeds.iter().filter(is_of_one) {
        names.extend(session_hashes(&seed.info, &head_of_transcript(vault, seed)?));
        slugs.extend(slugs_in_vault(vault, seed)?);
    }
    let has_history = seeds.iter().any(|seed| seed.info.known_provider().is_some_and(has_command_history));
    let chosen: BTreeSet<SourceId> = seeds.iter().map(|seed| seed.id).collect();
    let mut files = SessionFiles::default();
    for manifest in all {
        let is_its = chosen.contains(&manifest.id)
            || plan_slug(&manifest.info).is_some_and(|slug| slugs.contains(&slug))
            || has_history && is_command_history(manifest)
            || is_of_one(&manifest)
                && names_in_vault(vault, manifest)?.iter().any(|name| names.contains(name));
        if is_its {
            files.manifests.push(manifest.clone());
        }
    }
    names.extend(slugs.iter().map(|slug| plan_hash(slug)));
    files.names = names.into_iter().collect();
    Ok(files)
}

/// Returns the slugs of a session's plans, which the agent keeps outside of the session's directory.
fn slugs_in_vault(vault: &Vault, manifest: &Manifest) -> Result<BTreeSet<String>, ForgetError> {
    match manifest.info.known_provider() {
        Some(Provider::Claude) => Ok(claude_slugs(&head_of_transcript(vault, manifest)?)),
        Some(Provider::Codex | Provider::Gemini | Provider::Copilot | Provider::OpenCode) | None => {
            Ok(BTreeSet::new())
        }
    }
}

/// Tells whether earlier versions recorded an agent's command history. A single session cannot be removed from it.
fn has_command_history(provider: Provider) -> bool {
    match provider {
        Provider::Copilot => true,
        Provider::Claude | Provider::Codex | Provider::Gemini | Provider::OpenCode => false,
    }
}

fn is_command_history(manifest: &Manifest) -> bool {
    let names = manifest.info.path.0.iter().map(|name| name.to_string_lossy().into_owned());
    manifest.info.known_provider().is_some_and(has_command_history)
        && names.into_iter().any(|name| name.starts_with("command-history-state"))
}

/// Returns the hashes of the sessions that a file of one session belongs to.
fn names_in_vault(vault: &Vault, manifest: &Manifest) -> Result<Vec<NameHash>, ForgetError> {
    Ok(all_session_hashes(&manifest.info, &head_of_transcript(vault, manifest)?))
}

fn head_of_transcript(vault: &Vault, manifest: &Manifest) -> Result<Vec<u8>, ForgetError> {
    if manifest.info.role == Role::Transcript { head_in_vault(vault, manifest) } else { Ok(Vec::new()) }
}

/// Reads the beginning of a file's last generation, unpacked. A damaged file gives what can be read.
fn head_in_vault(vault: &Vault, manifest: &Manifest) -> Result<Vec<u8>, ForgetError> {
    let (mut head, mut unpacker) = (Vec::new(), Unpacker::default());
    let Some(last) = manifest.generation_last() else { return Ok(head) };
    let read = vault.read(manifest, last, 0, |_, bytes| {
        let is_good = unpacker.unpack(bytes, &mut |plain| head.extend_from_slice(plain)).is_ok();
        is_good && head.len() < HEAD_BYTES_MAX
    });
    match read {
        Err(error) if !error.is_damage() => Err(error.into()),
        Ok(()) | Err(_) => Ok(head),
    }
}

/// Finds the files of a project, by its directory with everything below it, or by the agent's name for it.
///
/// # Errors
/// An error of the vault.
pub fn files_of_project(
    vault: &Vault,
    all: &[Manifest],
    project: &str,
) -> Result<Vec<Manifest>, ForgetError> {
    let gemini = gemini_dirs(vault, all)?;
    let mut named = BTreeSet::new();
    // Files of a project as a whole are forgotten only if no transcript of the project stays.
    let mut staying = BTreeSet::new();
    // Connections are found by their threads.
    for manifest in all.iter().filter(|manifest| connection_of(manifest).is_none()) {
        let info = &manifest.info;
        let dir = match &info.provider {
            // A command belongs to the directory in which it was started, whichever agent it is.
            _ if is_wrap(manifest) => SessionIdentity::of_head(&head_in_vault(vault, manifest)?).dir,
            Some(Word::Known(Provider::Gemini)) => {
                project_key(manifest).and_then(|key| gemini.get(&key).cloned())
            }
            Some(Word::Known(Provider::Claude)) | None => {
                SessionIdentity::of_head(&head_of_transcript(vault, manifest)?).dir
            }
            // Their manifests have the directory.
            Some(
                Word::Known(Provider::Codex | Provider::Copilot | Provider::OpenCode) | Word::Unknown(_),
            ) => None,
        };
        if is_project(project, info, dir.as_deref()) {
            named.insert(manifest.id);
        } else if info.role == Role::Transcript {
            staying.extend(project_key(manifest));
        }
    }
    let going: BTreeSet<ProjectKey> =
        all.iter().filter(|manifest| named.contains(&manifest.id)).filter_map(project_key).collect();
    let is_its = |manifest: &&Manifest| {
        let key = project_key(manifest);
        let is_of_none = manifest.info.session.is_none() && manifest.info.role == Role::Shared;
        let goes_with_all = key.as_ref().is_some_and(|key| going.contains(key) && !staying.contains(key));
        if is_of_none { goes_with_all } else { named.contains(&manifest.id) }
    };
    Ok(all.iter().filter(is_its).cloned().collect())
}

/// Tells whether a file is what `steno run` recorded.
fn is_wrap(manifest: &Manifest) -> bool {
    let path = &manifest.info.path.0;
    path.extension().is_some_and(|ending| ending == "wrap")
        && path.parent().and_then(Path::file_name).is_some_and(|dir| dir == "wraps")
}

/// The provider, home and name of a project.
type ProjectKey = (Option<Word<Provider>>, Option<PathBuf>, String);

fn project_key(manifest: &Manifest) -> Option<ProjectKey> {
    let info = &manifest.info;
    let name = info.project.clone()?;
    Some((info.provider.clone(), info.home.clone().map(|home| home.0), name))
}

/// Finds the directories of Gemini's projects in the files where the agent records them.
fn gemini_dirs(vault: &Vault, all: &[Manifest]) -> Result<BTreeMap<ProjectKey, String>, ForgetError> {
    #[derive(serde::Deserialize)]
    struct Projects {
        projects: BTreeMap<String, String>,
    }
    let mut dirs = BTreeMap::new();
    let gemini = Word::Known(Provider::Gemini);
    for manifest in all.iter().filter(|manifest| manifest.info.provider.as_ref() == Some(&gemini)) {
        let name = manifest.info.path.0.file_name().unwrap_or_default().to_string_lossy();
        match (&*name, project_key(manifest)) {
            (".project_root", Some(key)) => {
                let dir = String::from_utf8_lossy(&head_in_vault(vault, manifest)?).trim().to_owned();
                dirs.insert(key, dir);
            }
            ("projects.json", _) => {
                let home = manifest.info.home.clone().map(|home| home.0);
                let text = head_in_vault(vault, manifest)?;
                let listed = serde_json::from_slice(&text).unwrap_or(Projects { projects: BTreeMap::new() });
                for (dir, name) in listed.projects {
                    dirs.entry((Some(gemini.clone()), home.clone(), name)).or_insert(dir);
                }
            }
            _ => {}
        }
    }
    Ok(dirs)
}

/// Which pieces of shared files are forgotten.
#[derive(Clone, Debug, Default)]
pub struct PieceFilter {
    /// Pieces of these sessions.
    pub names: HashSet<NameHash>,
    /// Pieces of this project.
    pub project: Option<String>,
    /// Pieces without a session that have the directory and text of a prompt.
    pub prompts: HashSet<(String, String)>,
    /// Pieces without a session that have this directory and a time in this range, in milliseconds since 1970.
    pub spans: Vec<(String, f64, f64)>,
    /// Pieces without a session from before this time, in milliseconds since 1970.
    pub before_ms: Option<f64>,
}

impl PieceFilter {
    /// Returns whether a piece is forgotten, and whether its own hash has to be recorded because it names no session.
    fn judge(&self, piece: &SharedFilePiece<'_>) -> (bool, bool) {
        let name = piece.session.as_ref().map(|session| NameHash::of_session(session));
        if name.is_some_and(|name| self.names.contains(&name)) {
            return (true, false);
        }
        let of_project = self.project.as_deref().zip(piece.dir.as_deref());
        let is_of_project = of_project.is_some_and(|(project, dir)| is_in_project(project, dir));
        let is_nobodys = name.is_none();
        let dir = piece.dir.clone().unwrap_or_default();
        let is_typed = |text: &String| self.prompts.contains(&(dir.clone(), text.trim().to_owned()));
        let is_meanwhile =
            |time: f64| self.spans.iter().any(|(of, from, to)| *of == dir && (*from..=*to).contains(&time));
        let is_said = is_nobodys
            && (piece.text.as_ref().is_some_and(is_typed) || piece.time_ms.is_some_and(is_meanwhile));
        let is_old =
            is_nobodys && self.before_ms.zip(piece.time_ms).is_some_and(|(before, time)| time < before);
        let goes = is_of_project || is_said || is_old;
        (goes, goes)
    }
}

/// A shared file that loses pieces.
#[derive(Clone, Debug)]
pub struct SharedFile {
    /// The file.
    pub manifest: Manifest,
    /// How many pieces it loses, over all generations.
    pub pieces: u64,
    /// The hashes of the pieces that name no session.
    pub names: Vec<NameHash>,
}

/// Finds the shared files in the vault that lose pieces.
///
/// # Errors
/// An error of the vault.
pub fn shared_files(
    vault: &Vault,
    all: &[Manifest],
    pieces: &PieceFilter,
) -> Result<Vec<SharedFile>, ForgetError> {
    let mut files = Vec::new();
    for manifest in all {
        let Some(mixed) = SharedFileFormat::of(&manifest.info) else { continue };
        let mut file = SharedFile { manifest: manifest.clone(), pieces: 0, names: Vec::new() };
        for number in 0..manifest.generations.len() {
            let mut bytes = Vec::new();
            vault.read(manifest, u32::try_from(number).unwrap_or(u32::MAX), 0, |_, piece| {
                bytes.extend_from_slice(piece);
                true
            })?;
            take_out(mixed, bytes, pieces, &mut file);
        }
        if file.pieces > 0 {
            file.names.sort_unstable();
            file.names.dedup();
            files.push(file);
        }
    }
    Ok(files)
}

/// Removes pieces from a generation. A generation without the expected form is removed as a whole.
fn take_out(mixed: SharedFileFormat, bytes: Vec<u8>, pieces: &PieceFilter, file: &mut SharedFile) -> Vec<u8> {
    let (mut count, mut names) = (0, Vec::new());
    let mut keep = |piece: &SharedFilePiece<'_>| {
        let (goes, is_known_alone) = pieces.judge(piece);
        count += u64::from(goes);
        names.extend(is_known_alone.then(|| NameHash::of_piece(piece.raw.as_bytes())));
        !goes
    };
    let filtered = mixed.filter(&bytes, &mut keep);
    file.pieces += count;
    file.names.append(&mut names);
    match filtered {
        Some(filtered) if filtered.left_out == 0 => bytes,
        Some(filtered) => filtered.bytes,
        None => Vec::new(),
    }
}

/// Removes pieces from files of the vault. The next sweep deletes the old bytes.
///
/// # Errors
/// An error of the vault.
pub(super) fn rewrite_shared(
    vault: &std::sync::Arc<Vault>,
    files: &[SharedFile],
    pieces: &PieceFilter,
    (why, now): (Reason, &str),
) -> Result<(), ForgetError> {
    if files.is_empty() {
        return Ok(());
    }
    vault.sweep_later(now)?;
    // Before they are removed: a second attempt after an interruption would not find them.
    let names: Vec<NameHash> = files.iter().flat_map(|file| file.names.iter().copied()).collect();
    vault.leave_out(&names, why, now)?;
    for file in files {
        let Some(mixed) = SharedFileFormat::of(&file.manifest.info) else { continue };
        let info = steno_vault::SourceInfo { is_filtered: true, ..file.manifest.info.clone() };
        let mut writer = vault.write(file.manifest.id, &info, now)?;
        let mut counted = file.clone();
        writer.rewrite(|_, bytes| take_out(mixed, bytes, pieces, &mut counted))?;
    }
    Ok(())
}
