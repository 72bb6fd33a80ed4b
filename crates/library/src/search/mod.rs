//! Searches the texts of a store: words of the conversation by the index, everything else by reading.

mod matcher;
mod scan;
mod snippet;

use std::collections::{BTreeMap, HashMap};

use steno_index::{Query, SessionFilter, SessionRow, TextPlace};
use steno_model::{RunId, Seq};
use steno_views::digest::TextKind;

pub use self::matcher::PatternError;
use self::matcher::TextMatcher;
pub(crate) use self::scan::read_event;
use self::scan::{Scan, read_text};
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
    /// The matches: those of the conversation first, the best before others; then outputs in their order.
    pub hits: Vec<SearchHit>,
}

/// The result of a search.
#[derive(Clone, Debug, Default)]
pub struct SearchReport {
    /// The sessions with a match, the best first.
    pub sessions: Vec<SessionHits>,
    /// How many sessions were searched.
    pub sessions_searched: u64,
    /// How many texts were searched, by kind.
    pub texts_searched: BTreeMap<TextKind, u64>,
    /// How many texts could not be read. `steno verify` says why.
    pub unread: u64,
}

impl Library {
    /// Searches all sessions that pass a filter.
    ///
    /// # Errors
    /// If a regular expression cannot be read, and what the index or the system says.
    pub fn search(&self, query: &Query, filter: &SessionFilter) -> Result<SearchReport, Error> {
        let index = self.indexed()?;
        let matcher = TextMatcher::of(query)?;
        let rows = index.sessions(filter)?;
        let mut report = SearchReport { sessions_searched: rows.len() as u64, ..SearchReport::default() };
        let rows: HashMap<RunId, SessionRow> = rows.into_iter().map(|row| (row.digest.id, row)).collect();
        for kind in TextKind::ALL.into_iter().filter(|kind| query.wants(*kind)) {
            let counts = index.text_counts(kind)?.into_iter();
            let searched = counts.filter(|(root, _)| rows.contains_key(root)).map(|(_, count)| count).sum();
            report.texts_searched.insert(kind, searched);
        }
        let is_wanted = |place: &TextPlace| rows.contains_key(&place.root);
        let mut found = Vec::new();
        let is_read_whole = query.needs_text() || query.words.is_empty();
        if !is_read_whole {
            for place in index.texts_with_words(query)?.into_iter().filter(is_wanted) {
                match read_text(self.store()?, &place) {
                    Some(text) => {
                        found.extend(matcher.find(&text).map(|matched| hit(&place, &matched.as_match())));
                    }
                    None => report.unread += 1,
                }
            }
        }
        if is_read_whole || query.wants(TextKind::Output) {
            let places = index.texts_to_read(query, !is_read_whole)?;
            let scan = Scan { store: self.store()?, matcher: &matcher };
            let (hits, unread) = scan.run(places.into_iter().filter(is_wanted).collect());
            found.extend(hits);
            report.unread += unread;
        }
        report.sessions = grouped(found, rows);
        Ok(report)
    }
}

/// Groups matches by session, in the order of the first match of each.
fn grouped(found: Vec<(RunId, SearchHit)>, mut rows: HashMap<RunId, SessionRow>) -> Vec<SessionHits> {
    let (mut sessions, mut places) = (Vec::<SessionHits>::new(), HashMap::new());
    for (root, hit) in found {
        let place = *places.entry(root).or_insert(sessions.len());
        if place == sessions.len() {
            let Some(row) = rows.remove(&root) else { continue };
            sessions.push(SessionHits { row, hits: Vec::new() });
        }
        sessions[place].hits.push(hit);
    }
    sessions
}

/// Makes the hit of a text, with its top-level session.
fn hit(place: &TextPlace, found: &matcher::TextMatch<'_>) -> (RunId, SearchHit) {
    let hit = SearchHit {
        session: place.session,
        run: place.run,
        seq: place.seq,
        kind: place.kind,
        snippet: Snippet::around(found.text, &found.ranges),
        matches: found.ranges.len() as u64,
    };
    (place.root, hit)
}
