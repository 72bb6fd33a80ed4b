//! Reads texts from their transcripts and compares them with a query, on several threads.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::PoisonError;

use steno_disk::{DiskFile, read_full};
use steno_index::{EventPlace, TextPlace};
use steno_journal::{RunFile, Store};
use steno_model::{ExchangeEvent, RunId};
use steno_views::digest::unit_text;

use super::matcher::TextMatcher;
use super::{SearchHit, hit};

const THREADS_MAX: usize = 8;

pub(super) struct Scan<'a> {
    pub(super) store: &'a Store,
    pub(super) matcher: &'a TextMatcher<'a>,
}

/// The result of reading the texts of one run.
#[derive(Default)]
struct RunHits {
    hits: Vec<(RunId, SearchHit)>,
    unread: u64,
}

impl Scan<'_> {
    /// Compares texts, in the order of their runs. Returns the matches in the same order, and how many texts could not be
    /// read.
    pub(super) fn run(&self, places: Vec<TextPlace>) -> (Vec<(RunId, SearchHit)>, u64) {
        let mut runs: Vec<Vec<TextPlace>> = Vec::new();
        for place in places {
            match runs.last_mut() {
                Some(run) if run.first().is_some_and(|first| first.run == place.run) => run.push(place),
                Some(_) | None => runs.push(vec![place]),
            }
        }
        let threads =
            std::thread::available_parallelism().map_or(1, usize::from).min(THREADS_MAX).min(runs.len());
        let jobs = Mutex::new(runs.into_iter().enumerate());
        let done = Mutex::new(BTreeMap::new());
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    loop {
                        let next = jobs.lock().unwrap_or_else(PoisonError::into_inner).next();
                        let Some((number, places)) = next else { return };
                        let found = self.run_hits(&places);
                        done.lock().unwrap_or_else(PoisonError::into_inner).insert(number, found);
                    }
                });
            }
        });
        let done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
        let (mut hits, mut unread) = (Vec::new(), 0);
        for found in done.into_values() {
            hits.extend(found.hits);
            unread += found.unread;
        }
        (hits, unread)
    }

    fn run_hits(&self, places: &[TextPlace]) -> RunHits {
        let mut found = RunHits::default();
        let Some(first) = places.first() else { return found };
        let Some(file) = open(self.store, first.run) else {
            found.unread = places.len() as u64;
            return found;
        };
        let mut line = Vec::new();
        for place in places {
            if !read_line(&*file, place, &mut line) {
                found.unread += 1;
            } else if self.matcher.may_match(&line) {
                match text_of(&line, place) {
                    Some(text) => {
                        found
                            .hits
                            .extend(self.matcher.find(&text).map(|matched| hit(place, &matched.as_match())));
                    }
                    None => found.unread += 1,
                }
            }
        }
        found
    }
}

/// Reads one text; `None` if its line is not what the index knows.
pub(super) fn read_text(store: &Store, place: &TextPlace) -> Option<String> {
    let mut line = Vec::new();
    let is_read = read_line(&*open(store, place.run)?, place, &mut line);
    if is_read { text_of(&line, place) } else { None }
}

/// Reads one event; `None` if its line is not what the index knows.
pub(crate) fn read_event(store: &Store, place: &EventPlace) -> Option<ExchangeEvent> {
    let length = usize::try_from(place.length).ok()?;
    let mut line = vec![0; length];
    let read = read_full(&*open(store, place.run)?, &mut line, place.offset).ok()?;
    if read != length || crc32fast::hash(&line) != place.crc {
        return None;
    }
    ExchangeEvent::parse(&line).ok()
}

fn open(store: &Store, run: RunId) -> Option<std::sync::Arc<dyn DiskFile>> {
    store.disk().open_read(&RunFile::Transcript(run).path()).ok().flatten()
}

fn read_line(file: &dyn DiskFile, place: &TextPlace, line: &mut Vec<u8>) -> bool {
    let Ok(length) = usize::try_from(place.length) else { return false };
    line.resize(length, 0);
    read_full(file, line, place.offset).is_ok_and(|read| read == length)
}

/// Reads the text from its line, if that is the line that the index knows.
fn text_of(line: &[u8], place: &TextPlace) -> Option<String> {
    if crc32fast::hash(line) != place.crc {
        return None;
    }
    let event = ExchangeEvent::parse(line).ok()?;
    Some(unit_text(&event, place.block, place.kind).unwrap_or_default())
}
