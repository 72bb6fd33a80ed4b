//! Searches the texts of a store: words of the conversation by the index, everything else by reading.

mod clues;
mod json;
mod matcher;
mod scan;
mod snippet;

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use steno_index::{Index, Query, RunToRead, SessionFilter, SessionRow, TextPlace};
use steno_model::{ExchangeEvent, RunId, Seq, Timestamp};
use steno_views::digest::{TextKind, tool_name};

pub use self::json::{plural, shortest_id};
pub use self::matcher::PatternError;
use self::matcher::{TextMatch, TextMatcher};
pub(crate) use self::scan::read_event;
use self::scan::{Family, FamilyHits, Scan};
pub use self::snippet::Snippet;
use crate::{Error, Library};

/// A text that matches a query.
#[derive(Clone, Debug)]
pub struct SearchHit {
    /// The session that it is in; a subagent has its own.
    pub session: RunId,
    /// The run that has it.
    pub run: RunId,
    /// The number of its event there.
    pub seq: Seq,
    /// What it is.
    pub kind: TextKind,
    /// The tool, if it is of a call or its result.
    pub tool: Option<String>,
    /// The part of the text with the match.
    pub snippet: Snippet,
    /// How often the query occurs in the text.
    pub matches: u64,
}

/// The matches in a top-level session and the sessions below it.
#[derive(Clone, Debug)]
pub struct SessionHits {
    /// The session.
    pub row: SessionRow,
    /// The matches: those of the conversation first, the best before others; then outputs in the order of their runs.
    pub hits: Vec<SearchHit>,
    /// How many other texts match.
    pub more: u64,
}

/// How many sessions and hits a search returns with their texts. The others are only counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SearchLimits {
    /// How many sessions.
    pub sessions: usize,
    /// How many hits of each.
    pub hits: usize,
}

/// The result of a search.
#[derive(Clone, Debug, Default)]
pub struct SearchReport {
    /// How many sessions were searched.
    pub sessions_searched: u64,
    /// How many texts were searched, by kind.
    pub texts_searched: BTreeMap<TextKind, u64>,
    /// How many sessions have a match.
    pub sessions_found: u64,
    /// How many texts match.
    pub hits: u64,
    /// How many texts had to be read and could not be. `steno verify` says why.
    pub unread: u64,
    /// How many runs are damaged. What follows the damage was not searched.
    pub runs_damaged: u64,
}

impl Library {
    /// Searches all sessions that pass a filter, and passes each session with a match to `found` as soon as it is known.
    /// The search ends early when that returns false. Sessions beyond the limits are passed without hits.
    ///
    /// # Errors
    /// A regular expression that cannot be read, or an error of the index or the system.
    pub fn search_each(
        &self,
        query: &Query,
        filter: &SessionFilter,
        limits: SearchLimits,
        found: impl FnMut(SessionHits) -> bool,
    ) -> Result<SearchReport, Error> {
        self.prepare_search(query, filter)?.run(limits, found)
    }

    /// Plans what a search has to read, and sets the ids that [`Library::index`] returns.
    ///
    /// # Errors
    /// A regular expression that cannot be read, or an error of the index or the system.
    pub fn prepare_search<'a>(
        &'a self,
        query: &'a Query,
        filter: &'a SessionFilter,
    ) -> Result<PreparedSearch<'a>, Error> {
        let matcher = TextMatcher::of(query)?;
        let (index, (version, plan, ids)) = self.indexed_with(|index, known| {
            let plan = Plan::of(index, query, filter)?;
            Ok((index.data_version()?, plan, self.ids_of(known.relations())))
        })?;
        if let Ok(ids) = ids {
            self.index.get_or_init(|| ids);
        }
        Ok(PreparedSearch { library: self, query, filter, matcher, index, plan, version })
    }

    /// Counts the damaged runs of the wanted top-level sessions.
    fn damaged_runs(&self, is_wanted: impl Fn(RunId) -> bool) -> Result<u64, Error> {
        let known = self.known_files()?;
        let mut damaged = known.runs.iter().filter(|run| run.damage.is_some()).peekable();
        if damaged.peek().is_none() {
            return Ok(0);
        }
        let relations = self.relations()?;
        Ok(damaged.filter(|run| is_wanted(relations.root(run.run))).count() as u64)
    }
}

/// A search that knows what it has to read.
pub struct PreparedSearch<'a> {
    library: &'a Library,
    query: &'a Query,
    filter: &'a SessionFilter,
    matcher: TextMatcher<'a>,
    index: &'a Index,
    plan: Plan,
    /// The version of the index that the plan was made from.
    version: i64,
}

impl PreparedSearch<'_> {
    /// Searches as [`Library::search_each`] does.
    ///
    /// # Errors
    /// An error of the index or the system.
    pub fn run(
        self,
        limits: SearchLimits,
        mut found: impl FnMut(SessionHits) -> bool,
    ) -> Result<SearchReport, Error> {
        let Self { library, query, filter, matcher, index, plan, version } = self;
        let _snapshot = index.snapshot()?;
        // What is read from here on must match the plan.
        let is_as_planned = index.data_version()? == version;
        let plan = if is_as_planned { plan } else { Plan::of(index, query, filter)? };
        let Plan { mut rows, families, texts } = plan;
        let mut report = SearchReport {
            sessions_searched: rows.len() as u64,
            texts_searched: texts,
            runs_damaged: library.damaged_runs(|root| filter.is_empty() || rows.contains_key(&root))?,
            ..SearchReport::default()
        };
        let is_outputs = !is_read_whole(query);
        let texts_of = |run: &RunToRead| index.texts_of_run(query, run, is_outputs).map_err(Stop::Error);
        let scan = Scan::new(library.store()?, &matcher, limits);
        let scanned = scan.run(families, texts_of, |root, FamilyHits { hits, more, unread }| {
            report.unread += unread;
            let count = hits.len() as u64 + more;
            let Some(row) = rows.remove(&root).filter(|_| count > 0) else { return Ok(()) };
            report.sessions_found += 1;
            report.hits += count;
            scan.count_session();
            if found(SessionHits { row, hits, more }) { Ok(()) } else { Err(Stop::Enough) }
        });
        match scanned {
            Ok(()) | Err(Stop::Enough) => Ok(report),
            Err(Stop::Error(error)) => Err(error.into()),
        }
    }
}

/// What a search has to do, according to the index.
struct Plan {
    /// The sessions to search, by id.
    rows: HashMap<RunId, SessionRow>,
    families: Vec<Family>,
    /// How many texts there are, by kind.
    texts: BTreeMap<TextKind, u64>,
}

impl Plan {
    fn of(index: &Index, query: &Query, filter: &SessionFilter) -> Result<Self, steno_index::Error> {
        let rows = index.sessions(filter)?;
        let rows: HashMap<RunId, SessionRow> = rows.into_iter().map(|row| (row.digest.id, row)).collect();
        let mut texts: BTreeMap<TextKind, u64> =
            TextKind::ALL.into_iter().filter(|kind| query.wants(*kind)).map(|kind| (kind, 0)).collect();
        for (root, kind, count) in index.text_counts()? {
            if let Some(sum) = texts.get_mut(&kind).filter(|_| rows.contains_key(&root)) {
                *sum += count;
            }
        }
        Ok(Self { families: families(index, query, &rows)?, rows, texts })
    }
}

/// Tells whether all texts have to be read, because the index does not have what the query asks for.
fn is_read_whole(query: &Query) -> bool {
    query.needs_text() || query.words.is_empty()
}

/// Why a search ends early.
enum Stop {
    /// The caller has enough.
    Enough,
    /// The index cannot be read.
    Error(steno_index::Error),
}

/// Returns what to read of each session: first those with words of the query, the best before others; then the others, the
/// latest first.
fn families(
    index: &Index,
    query: &Query,
    wanted: &HashMap<RunId, SessionRow>,
) -> Result<Vec<Family>, steno_index::Error> {
    let is_read_whole = is_read_whole(query);
    let (mut families, mut numbers) = (Vec::<Family>::new(), HashMap::new());
    let mut family_of = |families: &mut Vec<Family>, root: RunId| {
        *numbers.entry(root).or_insert_with(|| {
            families.push(Family { root, places: Vec::new(), runs: Vec::new() });
            families.len() - 1
        })
    };
    if !is_read_whole {
        for place in index.texts_with_words(query)? {
            if wanted.contains_key(&place.root) {
                let number = family_of(&mut families, place.root);
                families[number].places.push(place);
            }
        }
    }
    let ranked = families.len();
    if is_read_whole || query.wants(TextKind::Output) {
        for run in index.runs_to_read()? {
            if wanted.contains_key(&run.root) {
                let number = family_of(&mut families, run.root);
                families[number].runs.push(run);
            }
        }
    }
    families[ranked..].sort_by_cached_key(|family| {
        let digest = &wanted[&family.root].digest;
        (Reverse(digest.last_at.as_ref().and_then(Timestamp::instant)), family.root)
    });
    Ok(families)
}

/// Makes the hit of a text of an event.
fn hit(place: &TextPlace, event: &ExchangeEvent, found: &TextMatch<'_>) -> SearchHit {
    SearchHit {
        session: place.session,
        run: place.run,
        seq: place.seq,
        kind: place.kind,
        tool: tool_name(event),
        snippet: Snippet::around(&found.text, &found.ranges),
        matches: found.ranges.len() as u64,
    }
}
