//! Files of one family: grouped by their first events, and read together. Copies, checkpoints and other channels of a
//! session are merged, as in a store.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use steno_adapters::{Sink, Surface};
use steno_model::json::JsonString;
use steno_model::{Draft, EventType, ExchangeEvent, RunId};
use steno_session::{Content, RunEvents, Session, SessionBuilder};
use uuid::Uuid;

use super::{AgentFile, FileError, Files, Numbering, Tally, read_events};
use crate::read_session::fold;
use crate::{Relations, RunHead};

/// The files of one family.
pub(crate) struct FileGroup {
    /// The top-level session; `None` for an unknown file.
    root: Option<RunId>,
    files: Files,
    /// The relations of the runs of all files.
    relations: Arc<Relations>,
}

/// A run of one file.
struct FileRun {
    /// The file's name without a compression suffix.
    name: OsString,
    run: RunEvents,
}

impl FileGroup {
    /// Splits files into families by their first events. A file with runs of several families is in several groups.
    pub(crate) fn split(files: Files) -> Vec<Self> {
        let heads: HashMap<PathBuf, Vec<RunHead>> =
            files.paths().iter().map(|path| (path.clone(), heads_of(path))).collect();
        let all: Vec<RunHead> = heads.values().flatten().cloned().collect();
        let relations = Arc::new(Relations::of(&all));
        let roots_of = |path: &Path| {
            let runs = heads.get(path).into_iter().flatten();
            let mut roots: Vec<RunId> = runs.map(|head| relations.root(head.run)).collect();
            roots.sort_unstable();
            roots.dedup();
            roots
        };
        let groups = files.groups(roots_of).into_iter();
        groups.map(|(root, files)| Self { root, files, relations: Arc::clone(&relations) }).collect()
    }

    /// Reads the sessions of the family.
    pub(crate) fn read(
        self,
        content: Content,
        is_abandoned: fn() -> bool,
    ) -> Result<(BTreeMap<RunId, Session>, Tally), FileError> {
        let Self { root, mut files, relations } = self;
        let is_of_another = |run| relations.knows(run) && Some(relations.root(run)) != root;
        if let [path] = files.paths() {
            let again = Files::find(std::slice::from_ref(path));
            let mut folding = RunFold::default();
            let tally = read_events(files, is_abandoned, |_, event| {
                if !is_of_another(event.run_id) {
                    folding.push(&event, content);
                }
                ControlFlow::Continue(())
            })?;
            if let Some(sessions) = folding.finish() {
                return Ok((sessions, tally));
            }
            files = again;
        }
        let mut reading = GroupReader::default();
        let tally = read_events(files, is_abandoned, |origin, event| {
            if !is_of_another(event.run_id) {
                reading.push(origin.number, &origin.path, event);
            }
            ControlFlow::Continue(())
        })?;
        Ok((reading.finish(content), tally))
    }
}

/// Folds the runs of one file without keeping their events.
#[derive(Default)]
struct RunFold {
    runs: BTreeMap<RunId, SessionBuilder>,
    heads: Vec<RunHead>,
}

impl RunFold {
    fn push(&mut self, event: &ExchangeEvent, content: Content) {
        let builder = self.runs.entry(event.run_id).or_insert_with(|| {
            self.heads.push(RunHead::of(event));
            SessionBuilder::new(event.run_id, content)
        });
        builder.push(event);
    }

    /// Returns the sessions; `None` if one of them has several runs, which have to be merged.
    fn finish(self) -> Option<BTreeMap<RunId, Session>> {
        let relations = Relations::of(&self.heads);
        let mut sessions = BTreeMap::new();
        for (run, builder) in self.runs {
            let id = relations.owner(run);
            let mut session = Session { id, ..builder.finish() };
            session.rename_children(|run| relations.owner(run));
            if sessions.insert(id, session).is_some() {
                return None;
            }
        }
        Some(sessions)
    }
}

/// Collects the runs of several files.
#[derive(Default)]
struct GroupReader {
    runs: Vec<FileRun>,
    /// The indices of the runs of the current file.
    places: HashMap<RunId, usize>,
    /// The file in which each run was seen first.
    first_files: HashMap<RunId, u64>,
    file: u64,
}

impl GroupReader {
    fn push(&mut self, file: u64, path: &Path, mut event: ExchangeEvent) {
        if file != self.file {
            self.end_file();
            self.file = file;
        }
        let original = event.run_id;
        let is_copy = *self.first_files.entry(original).or_insert(file) != file;
        if is_copy {
            // As in a store, a second file with the run is a separate run that names the session.
            let id = Uuid::new_v5(&original.uuid(), path.as_os_str().as_encoded_bytes());
            event.run_id = RunId::from_uuid(id);
            if event.event_type.known() == Some(EventType::RunStarted)
                && event.extra.get("session_run_id").is_none()
            {
                event.extra.push("session_run_id", JsonString::from(original.to_string().as_str()).to_json());
            }
        }
        let place = *self.places.entry(event.run_id).or_insert_with(|| {
            let name = plain_name(path);
            self.runs.push(FileRun { name, run: RunEvents { id: event.run_id, events: Vec::new() } });
            self.runs.len() - 1
        });
        self.runs[place].run.events.push(event);
    }

    /// Removes runs that equal a run of an earlier file with the same name.
    fn end_file(&mut self) {
        let begun = self.places.drain().map(|(_, place)| place).min().unwrap_or(self.runs.len());
        let new = self.runs.split_off(begun);
        let is_repeat = |new: &FileRun| {
            self.runs.iter().any(|known| known.name == new.name && says_the_same(&known.run, &new.run))
        };
        let new: Vec<FileRun> = new.into_iter().filter(|new| !is_repeat(new)).collect();
        self.runs.extend(new);
    }

    fn finish(mut self, content: Content) -> BTreeMap<RunId, Session> {
        self.end_file();
        let heads: Vec<RunHead> =
            self.runs.iter().filter_map(|file| file.run.events.first()).map(RunHead::of).collect();
        let relations = Relations::of(&heads);
        let mut sessions = BTreeMap::<RunId, Vec<RunEvents>>::new();
        for FileRun { run, .. } in self.runs {
            sessions.entry(relations.owner(run.id)).or_default().push(run);
        }
        let folded = |(id, runs)| {
            let mut session = fold(id, runs, content);
            session.rename_children(|run| relations.owner(run));
            (id, session)
        };
        sessions.into_iter().map(folded).collect()
    }
}

fn says_the_same(one: &RunEvents, other: &RunEvents) -> bool {
    let is_same = |(one, other): (&ExchangeEvent, &ExchangeEvent)| {
        one.payload == other.payload && one.timestamp == other.timestamp && one.event_type == other.event_type
    };
    one.events.len() == other.events.len() && one.events.iter().zip(&other.events).all(is_same)
}

fn plain_name(path: &Path) -> OsString {
    let is_packed = path.extension().is_some_and(|ending| ending == "zst");
    let name = if is_packed { path.file_stem() } else { path.file_name() };
    name.unwrap_or_default().to_owned()
}

/// Returns the heads of a file's runs. Only a connection has runs of several families, so the first run of any other file is
/// enough.
fn heads_of(path: &Path) -> Vec<RunHead> {
    let Ok(file) = AgentFile::open(path) else { return Vec::new() };
    let is_connection = file.surface().is_some_and(Surface::is_connection);
    let mut heads = HeadSink::default();
    // Errors are reported when the file is read.
    file.read(&mut heads, |heads| !is_connection && !heads.by_run.is_empty()).ok();
    heads.by_run.into_values().collect()
}

/// Collects the head of each run.
#[derive(Default)]
struct HeadSink {
    by_run: BTreeMap<RunId, RunHead>,
    numbering: Numbering,
}

impl Sink for HeadSink {
    fn draft(&mut self, run: RunId, draft: Draft) {
        if !self.by_run.contains_key(&run) {
            self.by_run.insert(run, RunHead::of(&self.numbering.event(run, draft)));
        }
    }

    fn wants(&self, event_type: EventType) -> bool {
        event_type == EventType::RunStarted
    }

    fn wants_whole(&self) -> bool {
        false
    }
}
