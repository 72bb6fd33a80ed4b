//! Verifies a receipt: builds it again from the record, and reports the first difference.

use steno_journal::{Reader, Store};
use steno_model::json::Fields;
use steno_model::receipt::{Integrities, Integrity, LineageRun, MissingRange, Receipt, SCHEMA_ID};
use steno_model::{ExchangeEvent, RunId};
use steno_views::count_in_digits;
use steno_views::receipt::{check_lines, first_difference, to_json};

use super::superseded::choices;
use super::{Directory, Error, ReadOptions, ReceiptSession, RunSelection};

/// The statuses of a turn that has not ended.
const OPEN: [&str; 2] = ["queued", "in_progress"];

/// What a receipt is checked against.
pub enum Reference<'a> {
    /// The store that has the run.
    Store(&'a Store),
    /// Transcript files alone.
    Transcripts(Vec<Reader>),
    /// The lines that the receipt is made of, and nothing else.
    Lines(&'a [u8]),
    /// A directory of records.
    Directory(&'a Directory),
}

/// What was proven and what was not, as sentences for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifyReport {
    /// What was proven.
    pub holds: Vec<String>,
    /// What was not proven.
    pub open: Vec<String>,
    /// Whether the turn has ended, so that the receipt is final.
    pub is_final: bool,
}

/// Verifies a receipt. If it does not match the runs in a store, their transcripts from before they were re-derived are tried.
///
/// # Errors
/// The first difference.
pub fn verify(text: &str, against: Reference<'_>) -> Result<VerifyReport, Error> {
    let claims = ReceiptClaims::read(text)?;
    let wanted = claims.wanted()?;
    let Reference::Store(store) = against else { return verify_once(text, &claims, against, wanted) };
    let checked = verify_once(text, &claims, against, wanted.clone());
    if !checked.as_ref().is_err_and(Error::is_of_record) {
        return checked;
    }
    for way in choices(store, &wanted)? {
        let wanted = ReadOptions { runs: Some(way), ..wanted.clone() };
        if let Ok(proven) = verify_once(text, &claims, Reference::Store(store), wanted) {
            return Ok(proven);
        }
    }
    checked
}

fn verify_once(
    text: &str,
    claims: &ReceiptClaims,
    against: Reference<'_>,
    wanted: ReadOptions,
) -> Result<VerifyReport, Error> {
    let (thread, turn) = (claims.thread.as_str(), claims.turn.as_str());
    let mut proven = VerifyReport { holds: Vec::new(), open: Vec::new(), is_final: true };
    let without_integrity = match &against {
        Reference::Store(_) | Reference::Transcripts(_) | Reference::Lines(_) => {
            "that the record was not changed along with the receipt: export the receipt with `--integrity`, and keep its `root` elsewhere"
        }
        Reference::Directory(_) => "that the records were not changed along with the receipt",
    };
    let found = match against {
        Reference::Store(store) => {
            // Threads of other systems may have any name, and none of them is in a store.
            let run = RunId::parse(thread).map_err(|_| claims.no_such_turn())?;
            let older = older_words(wanted.runs.as_deref().unwrap_or_default());
            let read = ReceiptSession::of_store(store, run, wanted)?;
            let runs = match read.records.session.runs.len() {
                1 => "run".to_owned(),
                several => format!("{several} runs"),
            };
            proven.holds.push(format!("every field follows from the {runs} in the store"));
            proven.holds.extend(older);
            read.receipt(turn)?
        }
        Reference::Transcripts(readers) => {
            let files = if readers.len() == 1 { "the transcript file" } else { "the transcript files" };
            let read = ReceiptSession::of_readers(readers, wanted)?;
            proven.holds.push(format!("every field follows from {files}"));
            proven
                .open
                .push("whether events were refused or dropped: only the notes of a run say that".to_owned());
            read.with_missing(claims.noted_ranges()).receipt(turn)?
        }
        Reference::Lines(lines) => {
            proven
                .open
                .push("how many lines the run had, and whether events were refused or dropped".to_owned());
            proven.open.push("that no other line of the run belongs to the turn".to_owned());
            proven.holds.push("every field follows from the given lines".to_owned());
            of_lines(claims, lines, wanted)?
        }
        Reference::Directory(directory) => {
            proven.holds.push("every field follows from the records in the directory".to_owned());
            directory.receipt(thread, turn)?
        }
    };
    let status = found.turn.status.clone();
    let found = to_json(&found);
    let difference = first_difference(text, &found).map_err(|error| Error::NoReceipt(error.to_string()))?;
    if let Some(difference) = difference {
        return Err(Error::Differs(difference));
    }
    if found != text {
        return Err(Error::OtherBytes);
    }
    if OPEN.contains(&status.as_str()) {
        proven.is_final = false;
        proven.open.push(format!("how the turn ended: it is `{status}`, so this receipt is not final"));
    }
    report_integrity(claims.integrity.as_ref(), without_integrity, &mut proven);
    Ok(proven)
}

/// Returns which runs were read from a transcript from before they were re-derived.
fn older_words(runs: &[RunSelection]) -> Vec<String> {
    let words = |run: &RunSelection| {
        let name = run.superseded.as_ref()?.file_name();
        Some(format!("run {} is read from `{name}`, its transcript from before it was derived again", run.id))
    };
    runs.iter().filter_map(words).collect()
}

/// Builds a receipt from its lines alone.
fn of_lines(claims: &ReceiptClaims, lines: &[u8], wanted: ReadOptions) -> Result<Receipt, Error> {
    let integrity = claims.integrity.as_ref().ok_or(Error::NoIntegrity)?;
    let lines: Vec<&[u8]> = lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).collect();
    check_lines(integrity.all(), &lines)?;
    let events = lines.iter().map(|line| ExchangeEvent::parse(line)).collect::<Result<Vec<_>, _>>();
    let mut events = events.map_err(|error| Error::NoReceipt(error.to_string()))?;
    events.sort_by_key(|event| event.seq);
    let wanted = ReadOptions { has_integrity: false, ..wanted };
    let read = ReceiptSession::of_events(events, wanted)?.with_missing(claims.noted_ranges());
    let used: Vec<(String, Vec<u64>)> =
        read.lines_needed(&claims.turn)?.into_iter().map(|(run, seqs)| (run.to_string(), seqs)).collect();
    let seqs = |tree: &Integrity| tree.lines.iter().map(|line| line.seq).collect::<Vec<u64>>();
    let named = integrity.all().iter().map(|tree| (tree.run_id.clone(), seqs(tree)));
    // A run without lines is not among the given ones.
    let is_used = |(_, seqs): &(String, Vec<u64>)| !seqs.is_empty();
    // Where a part of the lines is not enough, `integrity` names all of them.
    let is_all = |tree: &Integrity| seqs(tree).into_iter().eq(1..=tree.tree_size);
    let is_whole = integrity.all().len() > 1 && integrity.all().iter().all(is_all);
    if !is_whole && !used.into_iter().filter(is_used).eq(named.filter(is_used)) {
        return Err(Error::NoReceipt(
            "its `integrity` does not match the lines that it is made from".to_owned(),
        ));
    }
    let mut receipt = read.receipt(&claims.turn)?;
    receipt.integrity = Some(integrity.clone());
    // No line says how long the runs were, but the sizes of their trees do.
    for (run, tree) in receipt.source_event_lineage.runs.iter_mut().flatten().zip(integrity.all()) {
        run.tree_size = tree.tree_size;
    }
    Ok(receipt)
}

/// The fields of a receipt that are needed to build it again.
struct ReceiptClaims {
    thread: String,
    turn: String,
    integrity: Option<Integrities>,
    missing: Option<Vec<MissingRange>>,
    runs: Option<Vec<LineageRun>>,
}

impl ReceiptClaims {
    fn read(text: &str) -> Result<Self, Error> {
        let bad = |why: String| Error::NoReceipt(why);
        if text.trim().is_empty() {
            return Err(bad("it is empty".to_owned()));
        }
        let top = Fields::parse(text).map_err(|error| bad(error.to_string()))?;
        let get = |fields: &Fields<'_>, name: &str| {
            fields.iter().filter(|(key, _)| key.is(name)).last().map(|(_, value)| value.get().to_owned())
        };
        let inside = |name: &str, field: &str| {
            let value = get(&top, name)?;
            get(&Fields::parse(&value).ok()?, field)
        };
        let word = |json: Option<String>| json.and_then(|json| serde_json::from_str::<String>(&json).ok());
        if word(get(&top, "schema_id")).as_deref() != Some(SCHEMA_ID) {
            return Err(bad(format!("its `schema_id` is not `{SCHEMA_ID}`")));
        }
        let integrity = get(&top, "integrity").map(|json| serde_json::from_str(&json)).transpose();
        let missing = inside("source_event_lineage", "missing_event_ranges");
        let runs = inside("source_event_lineage", "runs");
        let runs = runs.map(|json| serde_json::from_str(&json)).transpose();
        Ok(Self {
            thread: word(inside("thread", "id"))
                .ok_or_else(|| bad("it does not name a thread".to_owned()))?,
            turn: word(inside("turn", "id")).ok_or_else(|| bad("it does not name a turn".to_owned()))?,
            integrity: integrity.map_err(|error| bad(format!("its `integrity` cannot be read: {error}")))?,
            missing: missing.and_then(|json| serde_json::from_str(&json).ok()),
            runs: runs.map_err(|error| bad(format!("its `runs` cannot be read: {error}")))?,
        })
    }

    fn no_such_turn(&self) -> Error {
        Error::NoSuchTurn { thread: self.thread.clone(), turn: self.turn.clone(), turns: Vec::new() }
    }

    /// Returns what has to be read to build it again: the runs that it names, at their length of then.
    fn wanted(&self) -> Result<ReadOptions, Error> {
        let bad = |error: steno_model::Error| Error::NoReceipt(error.to_string());
        let run = |run: &str, lines: u64| -> Result<RunSelection, Error> {
            Ok(RunSelection::new(RunId::parse(run).map_err(bad)?, lines))
        };
        let runs = match (&self.runs, &self.integrity) {
            (Some(runs), _) => {
                let named = runs.iter().map(|named| {
                    let adapter = named.adapter.clone();
                    Ok(RunSelection { adapter, ..run(&named.run_id, named.tree_size)? })
                });
                Some(named.collect::<Result<_, Error>>()?)
            }
            (None, Some(trees)) => {
                let trees = trees.all().iter().map(|tree| run(&tree.run_id, tree.tree_size));
                Some(trees.collect::<Result<_, _>>()?)
            }
            // An older receipt is made of the whole run that it names.
            (None, None) => {
                RunId::parse(&self.thread).ok().map(|thread| vec![RunSelection::new(thread, u64::MAX)])
            }
        };
        Ok(ReadOptions {
            has_integrity: self.integrity.is_some(),
            runs,
            is_unnamed: self.runs.is_none(),
            turn: None,
        })
    }

    /// Returns what is missing according to notes, which are not part of a transcript.
    fn noted_ranges(&self) -> Vec<MissingRange> {
        let is_noted = |range: &&MissingRange| match range {
            MissingRange::Noted { count, what, .. } => {
                *count > 0 && ["refused", "dropped"].contains(&what.as_str())
            }
            MissingRange::Gap { .. } => false,
        };
        self.missing.iter().flatten().filter(is_noted).cloned().collect()
    }
}

fn report_integrity(integrity: Option<&Integrities>, without_integrity: &str, proven: &mut VerifyReport) {
    match integrity {
        Some(integrity) => {
            for tree in integrity.all() {
                let lines = count_in_digits(tree.lines.len() as u64, "line");
                proven
                    .holds
                    .push(format!("the receipt is made from {lines} of the tree with root {}", tree.root));
            }
            proven.open.push(
                "that the run was not changed before the receipt was made: compare the root with a copy kept elsewhere"
                    .to_owned(),
            );
        }
        None => proven.open.push(without_integrity.to_owned()),
    }
    proven.open.push("that the agent's own records are true".to_owned());
}
