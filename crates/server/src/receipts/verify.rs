//! Checks a receipt: all of it is made anew from the record, and the first difference is named.

use steno_journal::{Reader, Store};
use steno_model::json::Fields;
use steno_model::receipt::{Integrities, Integrity, LineageRun, MissingRange, Receipt, SCHEMA_ID};
use steno_model::{ExchangeEvent, RunId};
use steno_views::count;
use steno_views::receipt::{check_lines, first_difference, to_json};

use super::superseded::choices;
use super::{Directory, Error, ReadSession, Wanted, WantedRun};

/// How a turn stands that has not ended.
const OPEN: [&str; 2] = ["queued", "in_progress"];

/// What a receipt is checked against.
pub enum Against<'a> {
    /// The store that has the run.
    Store(&'a Store),
    /// Transcript files alone.
    Transcripts(Vec<Reader>),
    /// The lines that the receipt is made of, and nothing else.
    Lines(&'a [u8]),
    /// A directory of records.
    Directory(&'a Directory),
}

/// What a check has proven, and what it has not: sentences for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proven {
    /// What holds.
    pub holds: Vec<String>,
    /// What nobody can know from this.
    pub open: Vec<String>,
    /// Whether the receipt is the last word on its turn: the turn has ended.
    pub is_final: bool,
}

/// Checks a receipt. One that does not follow from the runs in a store may follow from their transcripts of before they were
/// derived anew.
///
/// # Errors
/// The first thing that does not hold.
pub fn verify(text: &str, against: Against<'_>) -> Result<Proven, Error> {
    let said = Said::read(text)?;
    let wanted = said.wanted()?;
    let Against::Store(store) = against else { return verify_once(text, &said, against, wanted) };
    let checked = verify_once(text, &said, against, wanted.clone());
    if !checked.as_ref().is_err_and(Error::is_of_record) {
        return checked;
    }
    for way in choices(store, &wanted)? {
        let wanted = Wanted { runs: Some(way), ..wanted.clone() };
        if let Ok(proven) = verify_once(text, &said, Against::Store(store), wanted) {
            return Ok(proven);
        }
    }
    checked
}

fn verify_once(text: &str, said: &Said, against: Against<'_>, wanted: Wanted) -> Result<Proven, Error> {
    let (thread, turn) = (said.thread.as_str(), said.turn.as_str());
    let mut proven = Proven { holds: Vec::new(), open: Vec::new(), is_final: true };
    let without_integrity = match &against {
        Against::Store(_) | Against::Transcripts(_) | Against::Lines(_) => {
            "that the record was not changed along with the receipt: export it with `--integrity`, and keep the root"
        }
        Against::Directory(_) => "that the records were not changed along with the receipt",
    };
    let found = match against {
        Against::Store(store) => {
            // Threads of other systems are called as they like, and none of them is in a store.
            let run = RunId::parse(thread).map_err(|_| said.no_such_turn())?;
            let older = older_words(wanted.runs.as_deref().unwrap_or_default());
            let read = ReadSession::of_store(store, run, wanted)?;
            let runs = match read.records.session.runs.len() {
                1 => "run".to_owned(),
                several => format!("{several} runs"),
            };
            proven.holds.push(format!("every field follows from the {runs} in the store"));
            proven.holds.extend(older);
            read.receipt(turn)?
        }
        Against::Transcripts(readers) => {
            let files = if readers.len() == 1 { "the transcript file" } else { "the transcript files" };
            let read = ReadSession::of_readers(readers, wanted)?;
            proven.holds.push(format!("every field follows from {files}"));
            proven.open.push("whether events were refused or dropped: that is noted beside a run".to_owned());
            read.with_missing(said.noted()).receipt(turn)?
        }
        Against::Lines(lines) => {
            proven
                .open
                .push("how many lines the run had, and whether events were refused or dropped".to_owned());
            proven.open.push("that no other line of the run belongs to the turn".to_owned());
            proven.holds.push("every field follows from the lines that were shown".to_owned());
            of_lines(said, lines, wanted)?
        }
        Against::Directory(directory) => {
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
        proven.open.push(format!("how the turn ended: it is `{status}` here, and this receipt is not final"));
    }
    say_what_is_proven(said.integrity.as_ref(), without_integrity, &mut proven);
    Ok(proven)
}

/// Says which runs were read from a transcript of before they were derived anew.
fn older_words(runs: &[WantedRun]) -> Vec<String> {
    let words = |run: &WantedRun| {
        let name = run.superseded.as_ref()?.file_name();
        Some(format!("run {} is read from `{name}`, the transcript from before it was derived again", run.id))
    };
    runs.iter().filter_map(words).collect()
}

/// Builds a receipt of nothing but its lines.
fn of_lines(said: &Said, lines: &[u8], wanted: Wanted) -> Result<Receipt, Error> {
    let integrity = said.integrity.as_ref().ok_or(Error::NoIntegrity)?;
    let lines: Vec<&[u8]> = lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).collect();
    check_lines(integrity.all(), &lines)?;
    let events = lines.iter().map(|line| ExchangeEvent::parse(line)).collect::<Result<Vec<_>, _>>();
    let mut events = events.map_err(|error| Error::NoReceipt(error.to_string()))?;
    events.sort_by_key(|event| event.seq);
    let wanted = Wanted { has_integrity: false, ..wanted };
    let read = ReadSession::of_events(events, wanted)?.with_missing(said.noted());
    let used: Vec<(String, Vec<u64>)> =
        read.lines_needed(&said.turn)?.into_iter().map(|(run, seqs)| (run.to_string(), seqs)).collect();
    let seqs = |tree: &Integrity| tree.lines.iter().map(|line| line.seq).collect::<Vec<u64>>();
    let named = integrity.all().iter().map(|tree| (tree.run_id.clone(), seqs(tree)));
    // A run that no line is from is not among those that were shown.
    let is_used = |(_, seqs): &(String, Vec<u64>)| !seqs.is_empty();
    // Where a part is not enough, all lines are named.
    let is_all = |tree: &Integrity| seqs(tree).into_iter().eq(1..=tree.tree_size);
    let is_whole = integrity.all().len() > 1 && integrity.all().iter().all(is_all);
    if !is_whole && !used.into_iter().filter(is_used).eq(named.filter(is_used)) {
        return Err(Error::NoReceipt("its `integrity` names other lines than it is made of".to_owned()));
    }
    let mut receipt = read.receipt(&said.turn)?;
    receipt.integrity = Some(integrity.clone());
    // How long the runs were is in no line; but it is the size of their trees.
    for (run, tree) in receipt.source_event_lineage.runs.iter_mut().flatten().zip(integrity.all()) {
        run.tree_size = tree.tree_size;
    }
    Ok(receipt)
}

/// What a receipt says that has to be known before it can be made anew.
struct Said {
    thread: String,
    turn: String,
    integrity: Option<Integrities>,
    missing: Option<Vec<MissingRange>>,
    runs: Option<Vec<LineageRun>>,
}

impl Said {
    fn read(text: &str) -> Result<Self, Error> {
        let bad = |why: String| Error::NoReceipt(why);
        if text.trim().is_empty() {
            return Err(bad("there is nothing in it".to_owned()));
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
            thread: word(inside("thread", "id")).ok_or_else(|| bad("it names no thread".to_owned()))?,
            turn: word(inside("turn", "id")).ok_or_else(|| bad("it names no turn".to_owned()))?,
            integrity: integrity.map_err(|error| bad(format!("its `integrity` cannot be read: {error}")))?,
            missing: missing.and_then(|json| serde_json::from_str(&json).ok()),
            runs: runs.map_err(|error| bad(format!("its `runs` cannot be read: {error}")))?,
        })
    }

    fn no_such_turn(&self) -> Error {
        Error::NoSuchTurn { thread: self.thread.clone(), turn: self.turn.clone(), turns: Vec::new() }
    }

    /// Returns what has to be read to make it anew: the runs that it names, as long as they were.
    fn wanted(&self) -> Result<Wanted, Error> {
        let bad = |error: steno_model::Error| Error::NoReceipt(error.to_string());
        let run = |run: &str, lines: u64| -> Result<WantedRun, Error> {
            Ok(WantedRun::new(RunId::parse(run).map_err(bad)?, lines))
        };
        let runs = match (&self.runs, &self.integrity) {
            (Some(runs), _) => {
                let named = runs.iter().map(|named| {
                    let adapter = named.adapter.clone();
                    Ok(WantedRun { adapter, ..run(&named.run_id, named.tree_size)? })
                });
                Some(named.collect::<Result<_, Error>>()?)
            }
            (None, Some(trees)) => {
                let trees = trees.all().iter().map(|tree| run(&tree.run_id, tree.tree_size));
                Some(trees.collect::<Result<_, _>>()?)
            }
            // An older receipt is made of the run that it names, as long as that is now.
            (None, None) => {
                RunId::parse(&self.thread).ok().map(|thread| vec![WantedRun::new(thread, u64::MAX)])
            }
        };
        Ok(Wanted {
            has_integrity: self.integrity.is_some(),
            runs,
            is_unnamed: self.runs.is_none(),
            turn: None,
        })
    }

    /// Returns what is missing by notes alone, of which neither a transcript nor its lines know.
    fn noted(&self) -> Vec<MissingRange> {
        let is_noted = |range: &&MissingRange| match range {
            MissingRange::Noted { count, what, .. } => {
                *count > 0 && ["refused", "dropped"].contains(&what.as_str())
            }
            MissingRange::Gap { .. } => false,
        };
        self.missing.iter().flatten().filter(is_noted).cloned().collect()
    }
}

fn say_what_is_proven(integrity: Option<&Integrities>, without_integrity: &str, proven: &mut Proven) {
    match integrity {
        Some(integrity) => {
            for tree in integrity.all() {
                let lines = count(tree.lines.len() as u64, "line");
                proven.holds.push(format!("it is made of {lines} in the tree with root {}", tree.root));
            }
            proven.open.push(
                "that the run has not been changed before the receipt was made: compare the root with one kept elsewhere"
                    .to_owned(),
            );
        }
        None => proven.open.push(without_integrity.to_owned()),
    }
    proven.open.push("that what the agent has recorded of itself is true".to_owned());
}
