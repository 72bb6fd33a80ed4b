//! The agent's own record of a thread, in the archive or where it lay: found by the thread's id, read as the agent wrote it.

use std::collections::BTreeSet;
use std::io::{self, Read as _, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use data_encoding::HEXLOWER;
use sha2::{Digest as _, Sha256};
use steno_adapters::Surface;
use steno_adapters::codex::spine::RolloutFold;
use steno_capture::packing::UnpackReader;
use steno_disk::{Links, open_regular};
use steno_library::{AgentFile, Library};
use steno_model::{Packing, RunId, ThreadId};
use steno_recorder::evidence::{EvidenceError, read_unpacked};
use steno_recorder::sources::SessionIdentity;
use steno_spine::RolloutFile;
use steno_vault::{Manifest, Role, Vault};

use crate::failure::{Failure, cannot};

/// A rollout: the agent's own record of a thread.
pub struct Rollout {
    place: RolloutPlace,
    pub about: RolloutFile,
}

/// Where the bytes of a rollout are.
enum RolloutPlace {
    Archive { manifest: Box<Manifest>, generation: u32 },
    File(PathBuf),
}

/// Finds all files of a thread in the archive, in the order of their names.
pub fn find(library: &Library, thread: &ThreadId) -> Result<Vec<Rollout>, Failure> {
    find_all(library, |manifest| is_rollout_of(library, manifest, thread))
}

/// Takes the file at a path if it is a rollout of the thread.
pub fn at_path(path: &str, vault: &Vault, thread: &ThreadId) -> Result<Option<Rollout>, Failure> {
    let path = PathBuf::from(path);
    // A spine may come from anybody, and name any file.
    let Ok(opened) = AgentFile::open(&path) else { return Ok(None) };
    let is_its = opened.surface() == Some(Surface::CodexRollout)
        && SessionIdentity::of_file(&path).session.as_deref() == Some(thread.as_str());
    if !is_its {
        return Ok(None);
    }
    let about = about(&path);
    let mut rollout = Rollout { place: RolloutPlace::File(path), about };
    rollout.weigh(vault)?;
    Ok(Some(rollout))
}

/// Returns the directory that a thread was started in, as the archive has it.
pub fn dir_of(library: &Library, thread: &ThreadId) -> Result<Option<String>, Failure> {
    for manifest in library.manifests()? {
        if is_rollout_of(library, manifest, thread)? {
            // Of a file that somebody named by its path, its events say it.
            let head = first_run(manifest).map(|run| library.head(run)).transpose()?.flatten();
            return Ok(manifest.info.project.clone().or_else(|| head?.project));
        }
    }
    Ok(None)
}

/// Returns every thread that the archive has a session file of.
pub fn threads(library: &Library) -> Result<BTreeSet<ThreadId>, Failure> {
    // All of them at once, as nearly all are asked for.
    library.heads()?;
    let threads = library.manifests()?.iter().map(|manifest| rollout_thread(library, manifest));
    threads.filter_map(Result::transpose).collect()
}

/// Tells whether a file of the archive is a rollout of a thread.
fn is_rollout_of(library: &Library, manifest: &Manifest, thread: &ThreadId) -> Result<bool, Failure> {
    // Most are not, and their names say so.
    let is_other = name_in_home(manifest).is_some_and(|name| name != thread.as_str());
    Ok(!is_other && rollout_thread(library, manifest)?.as_ref() == Some(thread))
}

/// Returns the thread that a file of the archive is a rollout of: the one that its name in a home says, else the one that
/// its events say. A stream of a thread is no rollout of it.
fn rollout_thread(library: &Library, manifest: &Manifest) -> Result<Option<ThreadId>, Failure> {
    if !is_codex_transcript(manifest) {
        return Ok(None);
    }
    let run = first_run(manifest);
    let head = run.map(|run| library.head(run)).transpose()?.flatten();
    // Of what is damaged or has no events yet, nothing is known but its name.
    if head.as_ref().and_then(|head| head.channel.as_deref()).is_some_and(|channel| channel != "disk") {
        return Ok(None);
    }
    let by_events = || Some(head.and_then(|head| head.session).or(run)?.to_string());
    let session = name_in_home(manifest).map(ToOwned::to_owned).or_else(by_events);
    Ok(session.and_then(|session| ThreadId::parse(&session).ok()))
}

fn is_codex_transcript(manifest: &Manifest) -> bool {
    manifest.info.provider.as_deref() == Some("codex") && manifest.info.role == Role::Transcript
}

/// Returns the thread that the name of a file in an agent's home says.
fn name_in_home(manifest: &Manifest) -> Option<&str> {
    manifest.info.session.as_deref()?.rsplit('/').next()
}

fn first_run(manifest: &Manifest) -> Option<RunId> {
    RunId::parse(manifest.adapted.as_ref()?.runs.first()?).ok()
}

/// Finds a file that a thread goes on in, by the id of its own that it has in its name.
pub fn find_further(library: &Library, id: &ThreadId) -> Result<Option<Rollout>, Failure> {
    let end = format!("_{id}.jsonl");
    let mut found = find_all(library, |manifest| {
        let name = manifest.info.path.0.file_name().unwrap_or_default().to_string_lossy();
        Ok(is_codex_transcript(manifest) && name.trim_end_matches(".zst").ends_with(&end))
    })?;
    Ok(found.pop())
}

fn find_all(
    library: &Library,
    is_meant: impl Fn(&Manifest) -> Result<bool, Failure>,
) -> Result<Vec<Rollout>, Failure> {
    let mut manifests: Vec<&Manifest> = Vec::new();
    for manifest in library.manifests()? {
        if is_meant(manifest)? {
            manifests.push(manifest);
        }
    }
    manifests.sort_by(|one, other| {
        let name = |manifest: &Manifest| manifest.info.path.0.file_name().map(ToOwned::to_owned);
        (name(one), &one.info.path.0).cmp(&(name(other), &other.info.path.0))
    });
    let mut found: Vec<Rollout> = Vec::new();
    for manifest in manifests {
        let path = &manifest.info.path.0;
        let generation = manifest.generation_last().unwrap_or_default();
        let place = RolloutPlace::Archive { manifest: Box::new(manifest.clone()), generation };
        let mut rollout = Rollout { place, about: about(path) };
        rollout.weigh(library.vault()?)?;
        match found.iter().find(|other| other.about.file == rollout.about.file) {
            Some(other) if other.about.sha256 == rollout.about.sha256 => {}
            Some(_) => {
                tracing::warn!("`{}` is left out: another file of the thread has its name", path.display());
            }
            None => found.push(rollout),
        }
    }
    Ok(found)
}

/// Says what a file is in a bundle; its length and hash are not known yet.
fn about(path: &Path) -> RolloutFile {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let plain =
        |letter: char| if letter.is_ascii_alphanumeric() || "._-".contains(letter) { letter } else { '_' };
    let name: String = name.strip_suffix(".zst").unwrap_or(&name).chars().map(plain).collect();
    let file = format!("rollout/{name}");
    let path = path.display().to_string();
    RolloutFile { file, path, thread_id: None, bytes: 0, sha256: String::new() }
}

/// A thread that another goes on from, and its files as far as the archive has them.
pub struct Base {
    pub thread: String,
    pub rollouts: Vec<Rollout>,
}

/// Finds the threads that a thread goes on from, the nearest first: a fork may go on from a fork. `first` is the one that the
/// thread names itself.
pub fn bases(library: &Library, thread: &ThreadId, first: Option<String>) -> Result<Vec<Base>, Failure> {
    const FORKS_MAX: usize = 16;
    let mut found: Vec<Base> = Vec::new();
    let mut next = first;
    while let Some(base) = next.take().filter(|base| base != thread.as_str() && found.len() < FORKS_MAX) {
        if found.iter().any(|known| known.thread == base) {
            break;
        }
        let mut rollouts = match ThreadId::parse(&base) {
            Ok(base) => find(library, &base)?,
            Err(_) => Vec::new(),
        };
        for rollout in &mut rollouts {
            rollout.about.thread_id = Some(base.clone());
        }
        next = base_of(library.vault()?, &rollouts, &base)?;
        found.push(Base { thread: base, rollouts });
    }
    Ok(found)
}

/// Returns the thread that the files of a thread go on from, if that is another.
pub fn base_of(vault: &Vault, rollouts: &[Rollout], thread: &str) -> Result<Option<String>, Failure> {
    for rollout in rollouts {
        let mut fold = RolloutFold::new();
        fold.line(0, &rollout.first_line(vault)?);
        // A thread that went back to an earlier state goes on from itself.
        if let Some(base) = fold.base().filter(|base| base.thread != thread) {
            return Ok(Some(base.thread.clone()));
        }
    }
    Ok(None)
}

impl Rollout {
    /// Reads all of it once, to know its length and hash before any of it is written.
    fn weigh(&mut self, vault: &Vault) -> Result<(), Failure> {
        let (mut hash, mut bytes) = (Sha256::new(), 0);
        self.read(vault, |piece| {
            hash.update(piece);
            bytes += piece.len() as u64;
            Ok(ControlFlow::Continue(()))
        })?;
        self.about.bytes = bytes;
        self.about.sha256 = HEXLOWER.encode(&hash.finalize());
        Ok(())
    }

    /// Reads its first line, which says what it is.
    fn first_line(&self, vault: &Vault) -> Result<Vec<u8>, Failure> {
        const BYTES_MAX: usize = 16 * 1024 * 1024;
        let mut line = Vec::new();
        self.read(vault, |piece| {
            let end = piece.iter().position(|byte| *byte == b'\n');
            line.extend_from_slice(&piece[..end.unwrap_or(piece.len())]);
            let is_done = end.is_some() || line.len() > BYTES_MAX;
            Ok(if is_done { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        })?;
        Ok(line)
    }

    /// Writes as much of it as was weighed: a session may go on meanwhile. Returns how it is packed.
    pub fn write_to(&self, vault: &Vault, into: &mut dyn Write) -> Result<Option<Packing>, Failure> {
        let mut left = self.about.bytes;
        self.read(vault, |piece| {
            let fits = usize::try_from(left).unwrap_or(usize::MAX).min(piece.len());
            left -= fits as u64;
            into.write_all(&piece[..fits])?;
            Ok(ControlFlow::Continue(()))
        })
    }

    /// Hands over its bytes as the agent wrote them; returns how they are packed.
    fn read(
        &self,
        vault: &Vault,
        mut each: impl FnMut(&[u8]) -> io::Result<ControlFlow<()>>,
    ) -> Result<Option<Packing>, Failure> {
        let (manifest, generation) = match &self.place {
            RolloutPlace::Archive { manifest, generation } => (manifest, *generation),
            RolloutPlace::File(path) => return read_file(path, each),
        };
        let mut outcome = Ok(());
        let read = read_unpacked(vault, manifest, generation, &mut |_, piece| match each(piece) {
            Ok(flow) => flow,
            Err(error) => {
                outcome = Err(error);
                ControlFlow::Break(())
            }
        });
        let copied = |error| Failure::could_not(format!("cannot copy `{}`: {error}", self.about.path));
        outcome.map_err(copied)?;
        read.map_err(|error| match error {
            EvidenceError::Vault(error) => error.into(),
            EvidenceError::Packing(error) => copied(error),
        })
    }
}

/// Hands over the bytes of a file as its agent wrote them; returns how they are packed.
fn read_file(
    path: &Path,
    mut each: impl FnMut(&[u8]) -> io::Result<ControlFlow<()>>,
) -> Result<Option<Packing>, Failure> {
    const PIECE_BYTES: usize = 256 * 1024;
    let failed = |error: io::Error| cannot("copy", path, &error);
    let mut bytes = UnpackReader::new(open_regular(path, Links::Followed).map_err(failed)?);
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        let read = bytes.read(&mut piece).map_err(failed)?;
        if read == 0 || each(&piece[..read]).map_err(failed)?.is_break() {
            return Ok(bytes.packing());
        }
    }
}
