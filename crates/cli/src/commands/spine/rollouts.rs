//! The agent's own record of a thread, as the archive has it: found by the thread's id, read as the agent wrote it.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::ops::ControlFlow;

use sha2::{Digest as _, Sha256};
use steno_journal::RolloutFile;
use steno_library::{Library, RunHead};
use steno_model::{Packing, ThreadId};
use steno_recorder::evidence::{ReadError, read_unpacked};
use steno_recorder::forgetting::{is_session_of, thread_of};
use steno_vault::{Manifest, Role, Vault};
use steno_views::spine::RolloutFold;

use crate::failure::Failure;

/// A rollout in the archive.
pub struct Rollout {
    manifest: Manifest,
    generation: u32,
    pub about: RolloutFile,
}

/// Finds all files of a thread, in the order of their names.
pub fn find(library: &Library, thread: &ThreadId) -> Result<Vec<Rollout>, Failure> {
    find_all(library, |manifest| is_session_of(manifest, thread))
}

/// Returns the directory that a thread was started in, as the archive has it.
pub fn dir_of(library: &Library, thread: &ThreadId) -> Result<Option<String>, Failure> {
    let own = library.manifests()?.iter().find(|manifest| is_session_of(manifest, thread));
    let project = own.and_then(|manifest| manifest.info.project.clone());
    // Of a file that somebody named by its path, its events say it.
    let head = || library.heads().ok()?.iter().find(|head| head.run.to_string() == thread.as_str());
    Ok(project.or_else(|| head()?.project.clone()))
}

/// Returns every thread that the archive has a session file of.
pub fn threads(library: &Library) -> Result<BTreeSet<ThreadId>, Failure> {
    let heads: BTreeMap<String, &RunHead> =
        library.heads()?.iter().map(|head| (head.run.to_string(), head)).collect();
    let is_own = |manifest: &Manifest| {
        let run = manifest.adapted.as_ref().and_then(|adapted| adapted.runs.first());
        // A stream of a thread is not its own file. What has no events yet is what its name says.
        run.and_then(|run| heads.get(run)).map_or(manifest.info.session.is_some(), |head| head.is_own_file())
    };
    Ok(library.manifests()?.iter().filter(|manifest| is_own(manifest)).filter_map(thread_of).collect())
}

/// Finds a file that a thread goes on in, by the id of its own that it has in its name.
pub fn find_further(library: &Library, id: &ThreadId) -> Result<Option<Rollout>, Failure> {
    let end = format!("_{id}.jsonl");
    let mut found = find_all(library, |manifest| {
        let name = manifest.info.path.0.file_name().unwrap_or_default().to_string_lossy();
        name.trim_end_matches(".zst").ends_with(&end)
    })?;
    Ok(found.pop())
}

fn find_all(library: &Library, is_meant: impl Fn(&Manifest) -> bool) -> Result<Vec<Rollout>, Failure> {
    let is_rollout = |manifest: &Manifest| {
        manifest.info.provider.as_deref() == Some("codex") && manifest.info.role == Role::Transcript
    };
    let mut manifests: Vec<&Manifest> =
        library.manifests()?.iter().filter(|manifest| is_rollout(manifest) && is_meant(manifest)).collect();
    manifests.sort_by(|one, other| {
        let name = |manifest: &Manifest| manifest.info.path.0.file_name().map(ToOwned::to_owned);
        (name(one), &one.info.path.0).cmp(&(name(other), &other.info.path.0))
    });
    let mut found: Vec<Rollout> = Vec::new();
    for manifest in manifests {
        let path = &manifest.info.path.0;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let file = format!("rollout/{}", name.strip_suffix(".zst").unwrap_or(&name));
        if found.iter().any(|other| other.about.file == file) {
            tracing::warn!("`{}` is left out: another file of the thread has its name", path.display());
            continue;
        }
        let generation = manifest.generation_last().unwrap_or_default();
        let path = path.display().to_string();
        let about = RolloutFile { file, path, thread_id: None, bytes: 0, sha256: String::new() };
        let mut rollout = Rollout { manifest: manifest.clone(), generation, about };
        rollout.weigh(library.vault()?)?;
        found.push(rollout);
    }
    Ok(found)
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
        self.about.sha256 =
            hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().concat();
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
        let mut outcome = Ok(());
        let read = read_unpacked(vault, &self.manifest, self.generation, &mut |_, piece| match each(piece) {
            Ok(flow) => flow,
            Err(error) => {
                outcome = Err(error);
                ControlFlow::Break(())
            }
        });
        let copied = |error| Failure::could_not(format!("cannot copy `{}`: {error}", self.about.path));
        outcome.map_err(copied)?;
        read.map_err(|error| match error {
            ReadError::Vault(error) => error.into(),
            ReadError::Packing(error) => copied(error),
        })
    }
}
