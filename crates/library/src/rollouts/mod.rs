//! Rollouts, the agent's own records of threads: found in the store by their thread.

mod rollout;

use std::collections::BTreeSet;

use steno_model::{RunId, ThreadId};
use steno_spine::{LeftOut, recorded_base, recorded_rollout_path};
use steno_vault::Manifest;

pub use self::rollout::Rollout;
pub(crate) use self::rollout::bundle_name;
use crate::{Error, Library, is_thread_file};

/// A thread that another thread continues, and its rollouts in the store.
pub struct BaseThread {
    /// The thread.
    pub thread: String,
    /// Its rollouts.
    pub rollouts: Vec<Rollout>,
}

/// The rollouts of a thread, and of the threads that it continues.
pub struct ThreadRollouts {
    /// Its own.
    pub own: Vec<Rollout>,
    /// The path of the first, also if there is none.
    pub path: Option<String>,
    /// The threads that it continues, the nearest first.
    pub bases: Vec<BaseThread>,
}

impl ThreadRollouts {
    /// Returns the rollouts for a bundle, with or without those of other threads, and what the bundle lacks.
    #[must_use]
    pub fn select(self, with_bases: bool) -> (Vec<Rollout>, Vec<LeftOut>) {
        let (mut rollouts, mut left_out) = (self.own, Vec::new());
        for BaseThread { thread, rollouts: in_base } in self.bases {
            let continues = format!("the session continues thread {thread}");
            if in_base.is_empty() {
                let reason = format!("{continues}, which is not archived");
                left_out.push(LeftOut { file: format!("rollout/{thread}.jsonl"), reason });
            }
            for rollout in in_base {
                if with_bases {
                    rollouts.push(rollout);
                } else {
                    let reason = format!("{continues}; `--with-base` puts it in");
                    left_out.push(LeftOut { file: rollout.file(), reason });
                }
            }
        }
        (rollouts, left_out)
    }
}

impl Library {
    /// Finds the rollouts of a thread that has a spine, in the store or else at the path that the spine names, and
    /// those of the threads that it continues.
    ///
    /// # Errors
    /// An error of the vault.
    pub fn thread_rollouts(&self, thread: &ThreadId) -> Result<ThreadRollouts, Error> {
        let store = self.store()?;
        let mut own = self.rollouts(thread)?;
        let mut path = own.first().map(|first| first.path().display().to_string());
        if own.is_empty() {
            path = recorded_rollout_path(store, thread)?;
            let outside = path.as_deref().map(|path| Rollout::at_path(path, thread));
            own.extend(outside.transpose()?.flatten());
        }
        let first = match base_of(&own, thread.as_str())? {
            None if own.is_empty() => recorded_base(store, thread)?,
            base => base,
        };
        let bases = self.rollout_bases(thread, first)?;
        Ok(ThreadRollouts { own, path, bases })
    }

    /// Finds the rollouts of a thread in the store, in the order of their names.
    ///
    /// # Errors
    /// An error of the vault.
    pub fn rollouts(&self, thread: &ThreadId) -> Result<Vec<Rollout>, Error> {
        find_all(self, |manifest| is_rollout_of(self, manifest, thread))
    }

    /// Returns every thread that the store has a rollout of.
    ///
    /// # Errors
    /// An error of the vault.
    pub fn rollout_threads(&self) -> Result<BTreeSet<ThreadId>, Error> {
        // Reads all of them at once, since nearly all are needed.
        self.heads()?;
        let threads = self.manifests()?.iter().map(|manifest| rollout_thread(self, manifest));
        threads.filter_map(Result::transpose).collect()
    }

    /// Returns the directory that a thread was started in, if the store has it.
    ///
    /// # Errors
    /// An error of the vault.
    pub fn rollout_dir(&self, thread: &ThreadId) -> Result<Option<String>, Error> {
        for manifest in self.manifests()? {
            if is_rollout_of(self, manifest, thread)? {
                // If a user named the file by its path, only its events have the directory.
                let head = first_run(manifest).map(|run| self.head(run)).transpose()?.flatten();
                return Ok(manifest.info.project.clone().or_else(|| head?.project));
            }
        }
        Ok(None)
    }

    /// Finds a rollout in which a thread continues, by the second id in the name of the file.
    ///
    /// # Errors
    /// An error of the vault.
    pub fn further_rollout(&self, id: &ThreadId) -> Result<Option<Rollout>, Error> {
        let end = format!("_{id}.jsonl");
        let mut rollouts = find_all(self, |manifest| {
            let name = manifest.info.path.0.file_name().unwrap_or_default().to_string_lossy();
            Ok(is_thread_file(&manifest.info) && name.trim_end_matches(".zst").ends_with(&end))
        })?;
        Ok(rollouts.pop())
    }

    /// Finds the threads that a thread continues, the nearest first: a fork may continue a fork. `first` is the one that
    /// the thread itself names.
    fn rollout_bases(&self, thread: &ThreadId, first: Option<String>) -> Result<Vec<BaseThread>, Error> {
        const FORKS_MAX: usize = 16;
        let mut bases: Vec<BaseThread> = Vec::new();
        let mut next = first;
        while let Some(base) = next.take().filter(|base| base != thread.as_str() && bases.len() < FORKS_MAX) {
            if bases.iter().any(|known| known.thread == base) {
                break;
            }
            let mut rollouts = match ThreadId::parse(&base) {
                Ok(base) => self.rollouts(&base)?,
                Err(_) => Vec::new(),
            };
            for rollout in &mut rollouts {
                rollout.set_thread(&base);
            }
            next = base_of(&rollouts, &base)?;
            bases.push(BaseThread { thread: base, rollouts });
        }
        Ok(bases)
    }
}

/// Tells whether an archived file is a rollout of a thread.
fn is_rollout_of(library: &Library, manifest: &Manifest, thread: &ThreadId) -> Result<bool, Error> {
    // Most are not, and their names say so.
    let is_other = name_in_home(manifest).is_some_and(|name| name != thread.as_str());
    Ok(!is_other && rollout_thread(library, manifest)?.as_ref() == Some(thread))
}

/// Returns the thread of which an archived file is a rollout: the one in its name if it is in a home, else the one in
/// its events. A stream of a thread is not a rollout.
fn rollout_thread(library: &Library, manifest: &Manifest) -> Result<Option<ThreadId>, Error> {
    if !is_thread_file(&manifest.info) {
        return Ok(None);
    }
    let run = first_run(manifest);
    let head = run.map(|run| library.head(run)).transpose()?.flatten();
    // Of a file that is damaged or has no events yet, only the name is known.
    if head.as_ref().and_then(|head| head.channel.as_deref()).is_some_and(|channel| channel != "disk") {
        return Ok(None);
    }
    let by_events = || Some(head.and_then(|head| head.session).or(run)?.to_string());
    let session = name_in_home(manifest).map(ToOwned::to_owned).or_else(by_events);
    Ok(session.and_then(|session| ThreadId::parse(&session).ok()))
}

/// Returns the thread in the name of a file in an agent's home.
fn name_in_home(manifest: &Manifest) -> Option<&str> {
    manifest.info.session.as_deref()?.rsplit('/').next()
}

fn first_run(manifest: &Manifest) -> Option<RunId> {
    RunId::parse(manifest.adapted.as_ref()?.runs.first()?).ok()
}

fn find_all(
    library: &Library,
    is_meant: impl Fn(&Manifest) -> Result<bool, Error>,
) -> Result<Vec<Rollout>, Error> {
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
    let mut rollouts: Vec<Rollout> = Vec::new();
    for manifest in manifests {
        let rollout = Rollout::in_vault(library.vault()?, manifest);
        match rollouts.iter().find(|other| other.name() == rollout.name()) {
            Some(other) if other.about()?.sha256 == rollout.about()?.sha256 => {}
            Some(_) => {
                let path = rollout.path().display();
                tracing::warn!("`{path}` is left out: another file of the thread has its name");
            }
            None => rollouts.push(rollout),
        }
    }
    Ok(rollouts)
}

/// Returns the thread that the files of a thread continue, if it is another one.
fn base_of(rollouts: &[Rollout], thread: &str) -> Result<Option<String>, Error> {
    for rollout in rollouts {
        let fold = rollout.beginning()?;
        // A thread that returned to an earlier state continues itself.
        if let Some(base) = fold.base().filter(|base| base.thread != thread) {
            return Ok(Some(base.thread.clone()));
        }
    }
    Ok(None)
}
