//! `steno tree`: shows the steps of a run and its child runs.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::ControlFlow;

use anstyle::{AnsiColor, Style};
use steno_journal::{Error as JournalError, Reader, Store, run_ends};
use steno_model::RunId;
use steno_views::tree::{Joined, RunTree, Tone, TreeBuilder, export_all, join, join_all, toned_text};

use super::provider_events;
use crate::args::TreeArgs;
use crate::failure::{Exit, Failure, Outcome};
use crate::output::Output;
use crate::provider_files::Files;
use crate::runs::{self, Found};
use crate::settings::Settings;

pub fn run(args: &TreeArgs, settings: &Settings, output: &mut Output) -> Outcome {
    let found = runs::find(&args.run, settings)?;
    let joined = match &found {
        Found::File(path) => match Files::unless_transcript(path)? {
            Some(files) => return show_foreign(files, args, output),
            None => join_recorded(&found, settings)?,
        },
        Found::Run(_) => join_recorded(&found, settings)?,
    };
    show(&joined, args, output)?;
    Ok(Exit::Done)
}

fn show(joined: &Joined, args: &TreeArgs, output: &mut Output) -> Result<(), Failure> {
    if args.json {
        for tree in export_all(joined) {
            let json = serde_json::to_string(&tree).map_err(|error| Failure::could_not(error.to_string()))?;
            output.json_line(&json);
        }
    } else {
        output.line(toned_text(joined, &paint).trim_end());
    }
    Ok(())
}

/// Shows what agents' own files become, folded run by run.
fn show_foreign(files: Files, args: &TreeArgs, output: &mut Output) -> Outcome {
    let mut builders = BTreeMap::<RunId, TreeBuilder>::new();
    let tally = provider_events::read(files, |_, recorded| {
        let run = recorded.event.run_id;
        builders.entry(run).or_insert_with(|| TreeBuilder::new(run)).push(&recorded.event);
        ControlFlow::Continue(())
    })?;
    if !builders.is_empty() {
        let trees = builders.into_iter().map(|(run, builder)| (run, builder.finish()));
        show(&join_all(trees.collect()), args, output)?;
    }
    tally.check_known(&args.run)?;
    Ok(Exit::Done)
}

/// Folds a transcript, and joins the runs of the store that are below it.
fn join_recorded(found: &Found, settings: &Settings) -> Result<Joined, Failure> {
    let store = runs::open_store(settings)?;
    let mut reader = runs::open_reader(found, settings)?;
    let (root, tree) = match found {
        Found::Run(run) => (*run, fold(&mut reader, *run)?),
        Found::File(path) => {
            let first = reader.read_next()?;
            let first =
                first.ok_or_else(|| Failure::nothing(format!("`{}` has no events", path.display())))?;
            let mut builder = TreeBuilder::new(first.event.run_id);
            builder.push(&first.event);
            (first.event.run_id, fold_on(builder, &mut reader)?)
        }
    };
    Ok(join(root, load_below(root, tree, store.as_ref())?))
}

/// Colours a part of a line; the output takes the colours away where they are not wanted.
fn paint(tone: Tone, words: &str) -> String {
    let style = match tone {
        Tone::Frame => Style::new().dimmed(),
        Tone::Completed => AnsiColor::Green.on_default(),
        Tone::Failed => AnsiColor::Red.on_default().bold(),
        Tone::Open => AnsiColor::Cyan.on_default(),
        Tone::Odd => AnsiColor::Yellow.on_default(),
    };
    format!("{style}{words}{style:#}")
}

fn fold(reader: &mut Reader, run: RunId) -> Result<RunTree, Failure> {
    fold_on(TreeBuilder::new(run), reader)
}

fn fold_on(mut builder: TreeBuilder, reader: &mut Reader) -> Result<RunTree, Failure> {
    while let Some(recorded) = reader.read_next()? {
        builder.push(&recorded.event);
    }
    Ok(builder.finish())
}

/// Loads every run below the root: those that parents link, and those that name their parent themselves.
fn load_below(
    root: RunId,
    tree: RunTree,
    store: Option<&Store>,
) -> Result<BTreeMap<RunId, RunTree>, Failure> {
    let mut trees = BTreeMap::from([(root, tree)]);
    let Some(store) = store else { return Ok(trees) };
    let by_parent = children_by_parent(store)?;
    let mut seen = BTreeSet::from([root]);
    let mut waiting = VecDeque::from([root]);
    while let Some(run) = waiting.pop_front() {
        let linked = trees.get(&run).into_iter().flat_map(|tree| tree.links.iter().map(|link| link.run_id));
        let claimed = by_parent.get(&run).into_iter().flatten().copied();
        let below: Vec<_> = linked.chain(claimed).filter(|child| seen.insert(*child)).collect();
        for child in below {
            match Reader::open(store, child) {
                Ok(reader) => {
                    trees.insert(child, fold(&mut reader.until_now()?, child)?);
                    waiting.push_back(child);
                }
                // Linked and not here: the join says that it is missing.
                Err(JournalError::NoSuchRun { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
    Ok(trees)
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
