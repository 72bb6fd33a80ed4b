//! The runs that an argument names, with those below them: of the store, of a transcript file, of agents' own files.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::path::Path;
use std::rc::Rc;

use steno_journal::Reader;
use steno_library::{Files, IdIndex, Library, Named, Origin, Tally, Want};
use steno_model::{ExchangeEvent, RunId};
use steno_session::{Content, Session, SessionBuilder};
use steno_views::tree::{Joined, RunTree, join, join_all};
use steno_views::{Lines, visible};

use super::provider_events;
use crate::failure::Failure;
use crate::runs::{self, Found};
use crate::settings::Settings;

/// Runs, how they belong together, and each as a session.
pub struct Related {
    pub joined: Joined,
    pub sessions: BTreeMap<RunId, Session>,
    /// What the ids in it mean, with those of the store that it is from.
    pub ids: IdIndex<RunId>,
    /// Whether they are from agents' files, so that a run that is not among them was simply not read.
    pub is_of_agents: bool,
    tally: Tally,
}

impl Related {
    /// Reads what an argument names.
    pub fn read(text: &str, settings: &Settings) -> Result<Self, Failure> {
        let library = runs::open_library(settings)?;
        match runs::resolve(text, Want::Session, &library, settings)? {
            Named::Session(session) | Named::Run(session) => {
                let sessions = library.family(session, Content::Whole)?;
                for run in library.runs_of(session)? {
                    runs::warn_of_broken_seals(library.store()?, run);
                }
                Self::of_sessions(session, sessions, &library)
            }
            Named::Path(path) => match Files::unless_transcript(&path)? {
                Some(files) => Self::of_agents(files, text),
                None => Self::of_transcript(&path, &library, settings),
            },
        }
    }

    /// Fails when not everything could be read: what was shown is good, and not all.
    pub fn check(&self) -> Result<(), Failure> {
        Ok(self.tally.check()?)
    }

    fn of_agents(files: Files, text: &str) -> Result<Self, Failure> {
        let mut kept = Kept::default();
        let tally = provider_events::read(files, |origin, event| {
            kept.push(origin, &event);
            ControlFlow::Continue(())
        })?;
        let building = kept.finish();
        if building.is_empty() && !tally.is_enough {
            tally.check_known(text)?;
            return Err(Failure::nothing(format!("no events in `{text}`")));
        }
        let sessions: BTreeMap<RunId, Session> =
            building.into_iter().map(|(run, built)| (run, built.builder.finish())).collect();
        let trees: BTreeMap<RunId, RunTree> =
            sessions.iter().map(|(run, session)| (*run, RunTree::of(session))).collect();
        let ids = IdIndex::new(trees.keys().map(|run| (run.to_string(), *run)));
        Ok(Self { joined: join_all(trees), sessions, ids, is_of_agents: true, tally })
    }

    /// Reads a transcript file, with the sessions of the store that stand below it.
    fn of_transcript(path: &Path, library: &Library, settings: &Settings) -> Result<Self, Failure> {
        let mut reader = runs::open_reader(&Found::File(path.to_owned()), settings)?;
        let first = reader.read_next()?;
        let first = first.ok_or_else(|| Failure::nothing(format!("`{}` has no events", path.display())))?;
        let run = first.event.run_id;
        let mut building = Building::begin(run);
        building.push(&first.event);
        let session = building.read(&mut reader)?;
        Self::of_sessions(run, library.below(run, session, Content::Whole)?, library)
    }

    fn of_sessions(
        root: RunId,
        sessions: BTreeMap<RunId, Session>,
        library: &Library,
    ) -> Result<Self, Failure> {
        let trees = sessions.iter().map(|(id, session)| (*id, RunTree::of(session))).collect();
        let of_store = library.relations()?.ids().map(|(id, _)| id);
        let ids: BTreeSet<RunId> = of_store.chain(sessions.keys().copied()).collect();
        let ids = IdIndex::new(ids.into_iter().map(|run| (run.to_string(), run)));
        let joined = join(root, trees);
        Ok(Self { joined, sessions, ids, is_of_agents: false, tally: Tally::default() })
    }
}

/// The runs of agents' files, each from one file: of copies the one with most events is kept.
#[derive(Default)]
struct Kept {
    runs: BTreeMap<RunId, (Building, Rc<Path>)>,
    /// What the file holds that is being read.
    reading: BTreeMap<RunId, Building>,
    /// That file, and its number.
    file: Option<(u64, Rc<Path>)>,
    /// How many copies of runs were left out.
    left_out: u64,
}

impl Kept {
    fn push(&mut self, origin: &Origin, event: &ExchangeEvent) {
        if self.file.as_ref().is_none_or(|(number, _)| *number != origin.number) {
            self.end_file();
            self.file = Some((origin.number, origin.path.as_path().into()));
        }
        let run = event.run_id;
        self.reading.entry(run).or_insert_with(|| Building::begin(run)).push(event);
    }

    /// Keeps what a file holds, unless another one has as much of it.
    fn end_file(&mut self) {
        let Some((_, path)) = &self.file else { return };
        for (run, built) in std::mem::take(&mut self.reading) {
            let path = Rc::clone(path);
            let Some((before, _)) = self.runs.get(&run) else {
                self.runs.insert(run, (built, path));
                continue;
            };
            let left = if built.events > before.events {
                self.runs.insert(run, (built, path)).map(|(_, path)| path)
            } else {
                Some(path)
            };
            self.left_out += 1;
            let left = left.map(|path| path.display().to_string()).unwrap_or_default();
            tracing::debug!("left out run {run} in `{}`", visible(&left, Lines::Escape));
        }
    }

    fn finish(mut self) -> BTreeMap<RunId, Building> {
        self.end_file();
        if self.left_out > 0 {
            tracing::warn!(
                "{} left out: of files with the same run the one with most events is shown; `-v` names the others",
                if self.left_out == 1 { "1 copy".to_owned() } else { format!("{} copies", self.left_out) }
            );
        }
        self.runs.into_iter().map(|(run, (built, _))| (run, built)).collect()
    }
}

/// A run that is being read.
struct Building {
    builder: SessionBuilder,
    events: u64,
}

impl Building {
    fn begin(run: RunId) -> Self {
        Self { builder: SessionBuilder::new(run, Content::Whole), events: 0 }
    }

    fn push(&mut self, event: &ExchangeEvent) {
        self.builder.push(event);
        self.events += 1;
    }

    fn read(mut self, reader: &mut Reader) -> Result<Session, Failure> {
        while let Some(recorded) = reader.read_next()? {
            self.push(&recorded.event);
        }
        Ok(self.builder.finish())
    }
}
