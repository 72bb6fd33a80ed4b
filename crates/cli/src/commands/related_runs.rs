//! The runs that an argument names, with those below them: of the store, of a transcript file, of agents' own files.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::ControlFlow;
use std::path::Path;
use std::rc::Rc;

use steno_journal::{Error as JournalError, Reader, Store, run_ends};
use steno_model::{ExchangeEvent, RunId};
use steno_session::{Content, Session, SessionBuilder};
use steno_views::tree::{Joined, RunTree, join, join_all};
use steno_views::{Lines, visible};

use super::provider_events::{self, Origin};
use crate::failure::Failure;
use crate::provider_files::{Files, Tally};
use crate::runs::{self, Found};
use crate::settings::Settings;

/// Runs, how they belong together, and each as a session.
pub struct Related {
    pub joined: Joined,
    pub sessions: BTreeMap<RunId, Session>,
    /// Whether they are from agents' files, so that a run that is not among them was simply not read.
    pub is_of_agents: bool,
    tally: Tally,
}

impl Related {
    /// Reads what an argument names.
    pub fn read(text: &str, settings: &Settings) -> Result<Self, Failure> {
        match runs::find(text, settings)? {
            Found::Run(run) => {
                let mut reader = runs::open_reader(&Found::Run(run), settings)?;
                Self::below(run, Building::begin(run).read(&mut reader)?, settings)
            }
            Found::File(path) => match Files::unless_transcript(&path)? {
                Some(files) => Self::of_agents(files, text),
                None => Self::of_transcript(&path, settings),
            },
        }
    }

    /// Fails when not everything could be read: what was shown is good, and not all.
    pub fn check(&self) -> Result<(), Failure> {
        self.tally.check()
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
        let trees = sessions.iter().map(|(run, session)| (*run, RunTree::of(session))).collect();
        Ok(Self { joined: join_all(trees), sessions, is_of_agents: true, tally })
    }

    fn of_transcript(path: &Path, settings: &Settings) -> Result<Self, Failure> {
        let mut reader = runs::open_reader(&Found::File(path.to_owned()), settings)?;
        let first = reader.read_next()?;
        let first = first.ok_or_else(|| Failure::nothing(format!("`{}` has no events", path.display())))?;
        let mut building = Building::begin(first.event.run_id);
        building.push(&first.event);
        Self::below(first.event.run_id, building.read(&mut reader)?, settings)
    }

    /// Reads every run of the store below the root: those that parents link, and those that name their parent
    /// themselves.
    fn below(root: RunId, session: Session, settings: &Settings) -> Result<Self, Failure> {
        let mut trees = BTreeMap::from([(root, RunTree::of(&session))]);
        let mut sessions = BTreeMap::from([(root, session)]);
        if let Some(store) = runs::open_store(settings)? {
            let by_parent = children_by_parent(&store)?;
            let mut seen = BTreeSet::from([root]);
            let mut waiting = VecDeque::from([root]);
            while let Some(run) = waiting.pop_front() {
                let links = trees.get(&run).into_iter().flat_map(|tree: &RunTree| &tree.links);
                let claimed = by_parent.get(&run).into_iter().flatten().copied();
                let below = links.map(|link| link.run_id).chain(claimed);
                for child in below.filter(|child| seen.insert(*child)).collect::<Vec<_>>() {
                    match Reader::open(&store, child) {
                        Ok(reader) => {
                            let session = Building::begin(child).read(&mut reader.until_now()?)?;
                            trees.insert(child, RunTree::of(&session));
                            sessions.insert(child, session);
                            waiting.push_back(child);
                        }
                        // Linked and not here: the join says that it is missing.
                        Err(JournalError::NoSuchRun { .. }) => {}
                        Err(error) => return Err(error.into()),
                    }
                }
            }
        }
        Ok(Self { joined: join(root, trees), sessions, is_of_agents: false, tally: Tally::default() })
    }
}

/// The runs of agents' files, each from one file: of copies the one with most events is kept.
struct Kept {
    runs: BTreeMap<RunId, (Building, Rc<Path>)>,
    /// What the file holds that is being read.
    reading: BTreeMap<RunId, Building>,
    /// That file, and its number.
    file: Option<(u64, Rc<Path>)>,
    /// How many copies of runs were left out.
    left_out: u64,
}

impl Default for Kept {
    fn default() -> Self {
        Self { runs: BTreeMap::new(), reading: BTreeMap::new(), file: None, left_out: 0 }
    }
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

/// Returns the runs that name each run as their parent.
pub fn children_by_parent(store: &Store) -> Result<BTreeMap<RunId, Vec<RunId>>, Failure> {
    let mut children = BTreeMap::<RunId, Vec<RunId>>::new();
    for run in store.runs()? {
        let parent = match run_ends(store, run) {
            Ok(ends) => ends.events.and_then(|(first, _)| first.parent_run_id),
            // A damaged run is nobody's child here; `verify` names it.
            Err(JournalError::Damaged { .. } | JournalError::NotRegular { .. }) => None,
            Err(error) => return Err(error.into()),
        };
        if let Some(parent) = parent {
            children.entry(parent).or_default().push(run);
        }
    }
    Ok(children)
}
