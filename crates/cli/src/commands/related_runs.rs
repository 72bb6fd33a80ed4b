//! The runs that an argument names, with those below them: of the store, of a transcript file, of agents' own files.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::ControlFlow;
use std::path::Path;

use steno_journal::{Error as JournalError, Reader, Store, run_ends};
use steno_model::{ExchangeEvent, RunId};
use steno_views::tree::{Joined, RunTree, TreeBuilder, join, join_all};

use super::provider_events;
use crate::failure::Failure;
use crate::provider_files::{Files, Tally};
use crate::runs::{self, Found};
use crate::settings::Settings;

/// What is folded of each run besides its tree.
pub trait RunFold {
    fn begin(run: RunId) -> Self;
    fn push(&mut self, event: &ExchangeEvent);
}

/// Nothing: the tree is all that is wanted.
impl RunFold for () {
    fn begin(_run: RunId) {}

    fn push(&mut self, _event: &ExchangeEvent) {}
}

/// Runs, how they belong together, and what was folded of each.
pub struct Related<F> {
    pub joined: Joined,
    pub folds: BTreeMap<RunId, F>,
    tally: Tally,
}

impl<F: RunFold> Related<F> {
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
        let mut building = BTreeMap::<RunId, Building<F>>::new();
        let tally = provider_events::read(files, |_, event| {
            let run = event.run_id;
            building.entry(run).or_insert_with(|| Building::begin(run)).push(&event);
            ControlFlow::Continue(())
        })?;
        if building.is_empty() && !tally.is_enough {
            tally.check_known(text)?;
            return Err(Failure::nothing(format!("no events in `{text}`")));
        }
        let (mut trees, mut folds) = (BTreeMap::new(), BTreeMap::new());
        for (run, built) in building {
            trees.insert(run, built.tree.finish());
            folds.insert(run, built.fold);
        }
        Ok(Self { joined: join_all(trees), folds, tally })
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
    fn below(root: RunId, built: (RunTree, F), settings: &Settings) -> Result<Self, Failure> {
        let (mut trees, mut folds) = (BTreeMap::from([(root, built.0)]), BTreeMap::from([(root, built.1)]));
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
                            let (tree, fold) = Building::begin(child).read(&mut reader.until_now()?)?;
                            trees.insert(child, tree);
                            folds.insert(child, fold);
                            waiting.push_back(child);
                        }
                        // Linked and not here: the join says that it is missing.
                        Err(JournalError::NoSuchRun { .. }) => {}
                        Err(error) => return Err(error.into()),
                    }
                }
            }
        }
        Ok(Self { joined: join(root, trees), folds, tally: Tally::default() })
    }
}

/// A run that is being read.
struct Building<F> {
    tree: TreeBuilder,
    fold: F,
}

impl<F: RunFold> Building<F> {
    fn begin(run: RunId) -> Self {
        Self { tree: TreeBuilder::new(run), fold: F::begin(run) }
    }

    fn push(&mut self, event: &ExchangeEvent) {
        self.tree.push(event);
        self.fold.push(event);
    }

    fn read(mut self, reader: &mut Reader) -> Result<(RunTree, F), Failure> {
        while let Some(recorded) = reader.read_next()? {
            self.push(&recorded.event);
        }
        Ok((self.tree.finish(), self.fold))
    }
}

fn children_by_parent(store: &Store) -> Result<BTreeMap<RunId, Vec<RunId>>, Failure> {
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
