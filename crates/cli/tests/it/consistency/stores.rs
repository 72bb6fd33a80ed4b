//! Stores in memory: imports and views without a process for each question.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;
use steno_disk::StorePath;
use steno_exports::atif::{Family, NoMedia, NoRecords, Run};
use steno_journal::{Journal, Options, Store};
use steno_library::{Library, Target, UsageColumn, UsageFilter, UsageQuery, UsageTable};
use steno_model::RunId;
use steno_recorder::sources::{
    ImportOutcome, ImportProgress, SourceError, SourceFile, SourceLocations, SourceRecorder,
    SourceRecorderOptions,
};
use steno_server::receipts::{ReadOptions, ReceiptSession};
use steno_session::Content;
use steno_session::usage::UsageBuilder;
use steno_testkit::sim_disk::SimDisk;
use steno_views::conversation::Conversation;
use steno_views::cost::Prices;
use steno_views::receipt::to_json;
use steno_views::tree::{RunTree, export_all, join};

use super::answers::text;
use crate::kit::json;

/// Panics if a file cannot be imported.
struct PanicOnFailure;

impl ImportProgress for PanicOnFailure {
    fn bytes(&mut self, _path: &Path, _count: u64) {}

    fn done(&mut self, _file: &SourceFile, _outcome: ImportOutcome) {}

    fn failed(&mut self, file: &SourceFile, error: &SourceError) {
        panic!("{}: {error:?}", file.path().display());
    }
}

/// A store in memory.
pub struct MemoryStore(SimDisk);

impl MemoryStore {
    pub fn new() -> Self {
        Self(SimDisk::new(1))
    }

    pub fn import(&self, path: &Path) {
        let journal = Journal::new(Store::create(Arc::new(self.0.clone())).unwrap(), Options::default());
        let mut archive = SourceRecorder::open(journal, SourceRecorderOptions::default()).unwrap();
        let places =
            SourceLocations { given: vec![path.canonicalize().unwrap()], ..SourceLocations::default() };
        archive.import(&places.list().files, &mut PanicOnFailure);
        archive.settle().unwrap();
    }

    /// Returns an independent copy.
    pub fn fork(&self) -> Self {
        let to = SimDisk::new(1);
        for (path, bytes) in self.0.snapshot() {
            to.tamper(&StorePath::new(path), &bytes);
        }
        Self(to)
    }

    pub fn library(&self) -> Library {
        Library::new(Some(Store::open(Arc::new(self.0.clone())).unwrap()))
    }

    /// Returns the ids of the sessions that are not below another.
    pub fn sessions(&self) -> Vec<RunId> {
        self.library().sessions().unwrap().iter().map(|look| look.session.id).collect()
    }

    /// Returns all conversations, by session, without places.
    pub fn conversations(&self) -> BTreeMap<String, Value> {
        let library = self.library();
        let mut all = BTreeMap::new();
        for id in self.sessions() {
            let mut families = library.open(&Target::Session(id), Content::Whole).unwrap();
            for session in families.next().unwrap().unwrap().sessions.values() {
                let mut conversation = serde_json::to_value(Conversation::of(session)).unwrap();
                without_places(&mut conversation);
                all.insert(text(&conversation["run_id"]), conversation);
            }
        }
        all
    }

    /// Returns the answers of every view about every session, without places.
    pub fn everything(&self) -> BTreeMap<String, Value> {
        let library = self.library();
        let mut all: BTreeMap<String, Value> =
            self.conversations().into_iter().map(|(id, value)| (format!("show {id}"), value)).collect();
        for id in self.sessions() {
            let mut families = library.open(&Target::Session(id), Content::Whole).unwrap();
            let family = families.next().unwrap().unwrap();
            let trees = family.sessions.iter().map(|(id, session)| (*id, RunTree::of(session))).collect();
            let trees = serde_json::to_value(export_all(&join(id, trees))).unwrap();
            all.insert(format!("tree {id}"), trees);
            for session in family.sessions.keys() {
                all.insert(format!("receipts {session}"), receipts(&library, *session));
            }
            let runs =
                family.sessions.into_iter().map(|(id, session)| (id, Run::of(session, &mut NoRecords)));
            let trajectory = Family::new(runs.collect()).trajectory(id, &mut NoMedia);
            all.insert(format!("atif {id}"), trajectory.map_or(Value::Null, |made| json(&made.json)));
        }
        let mut usage = UsageBuilder::new();
        library.usage(&mut usage, &|| true).unwrap();
        let query = UsageQuery {
            by: vec![UsageColumn::Session, UsageColumn::Day, UsageColumn::Model],
            only: UsageFilter::default(),
            since_ms: None,
            until_ms: None,
            zone: jiff::tz::TimeZone::UTC,
        };
        let table = UsageTable::of(&usage.count(), &query, &Prices::default());
        let rows = table.rows.iter().map(|row| json(row.json().as_str())).collect();
        all.insert("usage".to_owned(), Value::Array(rows));
        all.values_mut().for_each(without_places);
        all
    }
}

/// Returns the receipts of all turns of a session.
fn receipts(library: &Library, session: RunId) -> Value {
    let read =
        || ReceiptSession::of_store(library.store().unwrap(), session, ReadOptions::default()).unwrap();
    let turns: Vec<String> = read().records.turns.iter().map(|turn| turn.id.clone()).collect();
    let receipts = turns.iter().map(|turn| json(&to_json(&read().receipt(turn).unwrap())));
    Value::Array(receipts.collect())
}

/// Removes everything that depends on the run of a fact: run ids, event numbers, and values derived from them.
pub fn without_places(value: &mut Value) {
    const PLACES: [&str; 18] = [
        "run",
        "runs",
        "seq",
        "seq_call",
        "seq_result",
        "session_run_id",
        "seq_started",
        "seq_completed",
        "seq_last",
        "run_started",
        "run_completed",
        "run_last",
        "first_seq",
        "last_seq",
        "event_count",
        "reason",
        "below",
        "source_event_lineage",
    ];
    match value {
        Value::Object(fields) => {
            fields.retain(|name, _| !PLACES.contains(&name.as_str()));
            // The id of a receipt's item contains its event; a step of a trajectory names run and event.
            for (name, inner) in fields.iter_mut() {
                if let ("extra", Value::Object(extra)) = (name.as_str(), &mut *inner) {
                    extra.remove("run_id");
                }
                if let ("items", Value::Array(items)) = (name.as_str(), &mut *inner) {
                    let records = items.iter_mut().filter_map(Value::as_object_mut);
                    records
                        .filter(|item| item.contains_key("sha256"))
                        .for_each(|item| drop(item.remove("id")));
                }
            }
            fields.values_mut().for_each(without_places);
        }
        Value::Array(items) => items.iter_mut().for_each(without_places),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Groups files of the same sessions.
pub fn by_session(files: Vec<PathBuf>) -> Vec<Vec<PathBuf>> {
    let mut groups: Vec<(Vec<RunId>, Vec<PathBuf>)> = Vec::new();
    for file in files {
        let store = MemoryStore::new();
        store.import(&file);
        let library = store.library();
        let heads = library.heads().unwrap().iter();
        let sessions: Vec<RunId> =
            heads.flat_map(|head| [Some(head.run), head.parent, head.session]).flatten().collect();
        match groups.iter_mut().find(|(known, _)| sessions.iter().any(|id| known.contains(id))) {
            Some((known, group)) => {
                known.extend(sessions);
                group.push(file);
            }
            None => groups.push((sessions, vec![file])),
        }
    }
    groups.into_iter().map(|(_, files)| files).collect()
}
