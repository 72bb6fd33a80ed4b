//! Compares the texts of sessions with a query, on several threads.
//!
//! Words of the conversation come from the index, and their lines are read. For everything else whole transcripts are
//! read, and only lines with a clue are decoded. Only the thread of the caller uses the index; it answers the other
//! threads.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

use steno_disk::{DiskFile, read_full};
use steno_index::{EventPlace, RunToRead, TextPlace};
use steno_journal::{RunFile, Store};
use steno_model::{ExchangeEvent, RunId};
use steno_views::digest::unit_text;

use super::matcher::TextMatcher;
use super::{SearchHit, SearchLimits, hit};

const THREADS_MAX: usize = 8;
/// How much of a transcript is read at once: it should stay in a processor's cache.
const READ_BYTES: usize = 512 * 1024;

/// What to read of a top-level session and the sessions below it.
pub(super) struct Family {
    pub(super) root: RunId,
    /// The texts that the index found, the best first.
    pub(super) places: Vec<TextPlace>,
    /// The runs to read from beginning to end.
    pub(super) runs: Vec<RunToRead>,
}

/// The matches of a family.
#[derive(Default)]
pub(super) struct FamilyHits {
    pub(super) hits: Vec<SearchHit>,
    /// How many other texts match.
    pub(super) more: u64,
    /// How many texts could not be read.
    pub(super) unread: u64,
}

/// A message from a thread to the one that uses the index.
enum Message {
    /// It needs the texts of a run.
    Ask(RunToRead, SyncSender<Vec<TextPlace>>),
    /// It is done with a family.
    Done(usize, FamilyHits),
}

pub(super) struct Scan<'a> {
    store: &'a Store,
    matcher: &'a TextMatcher<'a>,
    limits: SearchLimits,
    /// How many sessions with a match are known.
    sessions: AtomicUsize,
}

impl<'a> Scan<'a> {
    pub(super) fn new(store: &'a Store, matcher: &'a TextMatcher<'a>, limits: SearchLimits) -> Self {
        Self { store, matcher, limits, sessions: AtomicUsize::new(0) }
    }

    /// Counts a session with a match. Families are passed on in order: once there are enough, all that are still being
    /// read come after them.
    pub(super) fn count_session(&self) {
        self.sessions.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns how many hits of the family that is being read are wanted.
    fn hits_wanted(&self) -> usize {
        let is_enough = self.sessions.load(Ordering::Relaxed) >= self.limits.sessions;
        if is_enough { 0 } else { self.limits.hits }
    }

    /// Reads all families, and passes the matches of each to `found`, in order, as soon as those before it are known.
    ///
    /// `texts_of` returns the texts of a run in the order of their lines.
    ///
    /// # Errors
    /// The first error of `texts_of` or `found`, which ends the search.
    pub(super) fn run<E>(
        &self,
        families: Vec<Family>,
        texts_of: impl Fn(&RunToRead) -> Result<Vec<TextPlace>, E>,
        mut found: impl FnMut(RunId, FamilyHits) -> Result<(), E>,
    ) -> Result<(), E> {
        let roots: Vec<RunId> = families.iter().map(|family| family.root).collect();
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let threads = threads.min(THREADS_MAX).min(families.len());
        let jobs = Mutex::new(families.into_iter().enumerate());
        std::thread::scope(|scope| {
            let (sender, receiver) = channel();
            for _ in 0..threads {
                let (sender, jobs) = (sender.clone(), &jobs);
                scope.spawn(move || self.work(jobs, &sender));
            }
            drop(sender);
            serve(&receiver, &roots, texts_of, &mut found)
        })
    }

    fn work(&self, jobs: &Mutex<impl Iterator<Item = (usize, Family)>>, sender: &Sender<Message>) {
        let mut worker = Worker { scan: self, sender, buffer: Vec::new() };
        loop {
            let next = jobs.lock().unwrap_or_else(PoisonError::into_inner).next();
            let Some((number, family)) = next else { return };
            let hits = worker.family(&family);
            // The receiver is gone after an error.
            if sender.send(Message::Done(number, hits)).is_err() {
                return;
            }
        }
    }
}

/// Answers the threads, and passes on what they found.
fn serve<E>(
    receiver: &Receiver<Message>,
    roots: &[RunId],
    texts_of: impl Fn(&RunToRead) -> Result<Vec<TextPlace>, E>,
    found: &mut impl FnMut(RunId, FamilyHits) -> Result<(), E>,
) -> Result<(), E> {
    let mut waiting = BTreeMap::new();
    let mut next = 0;
    for message in receiver {
        match message {
            // A thread that has ended does not need the answer.
            Message::Ask(run, reply) => drop(reply.send(texts_of(&run)?)),
            Message::Done(number, hits) => {
                waiting.insert(number, hits);
            }
        }
        while let Some(hits) = waiting.remove(&next) {
            found(roots[next], hits)?;
            next += 1;
        }
    }
    Ok(())
}

/// A thread of a search.
struct Worker<'a> {
    scan: &'a Scan<'a>,
    sender: &'a Sender<Message>,
    buffer: Vec<u8>,
}

impl Worker<'_> {
    fn family(&mut self, family: &Family) -> FamilyHits {
        let mut found = Finding { hits: FamilyHits::default(), wanted: self.scan.hits_wanted() };
        self.places(&family.places, &mut found);
        for run in &family.runs {
            self.run(run, &mut found);
        }
        found.hits
    }

    /// Reads texts that the index found.
    fn places(&mut self, places: &[TextPlace], found: &mut Finding) {
        let mut files = BTreeMap::new();
        for (number, place) in places.iter().enumerate() {
            if found.is_enough() {
                // The index and the matcher agree, so texts that are not shown need not be read.
                found.hits.more += (places.len() - number) as u64;
                return;
            }
            let file = files.entry(place.run).or_insert_with(|| open(self.scan.store, place.run));
            let is_read = file.as_ref().is_some_and(|file| read_line(&**file, place, &mut self.buffer));
            let line: &[u8] = if is_read { &self.buffer } else { &[] };
            self.scan.line(line, std::slice::from_ref(place), found);
        }
    }

    /// Reads a run from beginning to end.
    fn run(&mut self, run: &RunToRead, found: &mut Finding) {
        let ask = || {
            let (reply, answer) = sync_channel(1);
            let is_asked = self.sender.send(Message::Ask(*run, reply)).is_ok();
            is_asked.then(|| answer.recv().ok()).flatten().unwrap_or_default()
        };
        let mut places: Option<Vec<TextPlace>> = None;
        // Without a clue every line is decoded, so lines without texts are left out first.
        if !self.scan.matcher.has_clue() && places.insert(ask()).is_empty() {
            return;
        }
        let scan = self.scan;
        let file = open(scan.store, run.run);
        let read = file.map_or(0, |file| {
            each_block(&*file, run.bytes, &mut self.buffer, |offset, lines| {
                scan.matcher.each_line(lines, |start, line| {
                    let places = places.get_or_insert_with(ask);
                    scan.line(line, texts_at(places, offset + start as u64), found);
                });
            })
        });
        if read < run.bytes {
            let places = places.get_or_insert_with(ask);
            let is_unread = |place: &&TextPlace| place.offset + place.length > read;
            found.hits.unread += places.iter().filter(is_unread).count() as u64;
        }
    }
}

/// What a thread has found in a family, and how many hits are wanted.
struct Finding {
    hits: FamilyHits,
    wanted: usize,
}

impl Finding {
    fn is_enough(&self) -> bool {
        self.hits.hits.len() >= self.wanted
    }
}

impl Scan<'_> {
    /// Compares the texts of a line.
    fn line(&self, line: &[u8], places: &[TextPlace], found: &mut Finding) {
        let Some(first) = places.first() else { return };
        let is_known = line.len() as u64 == first.length && crc32fast::hash(line) == first.crc;
        let Some(event) = is_known.then(|| ExchangeEvent::parse(line).ok()).flatten() else {
            found.hits.unread += places.len() as u64;
            return;
        };
        for place in places {
            let text = unit_text(&event, place.block, place.kind).unwrap_or_default();
            if found.is_enough() {
                found.hits.more += u64::from(self.matcher.is_match(&text));
            } else {
                found.hits.hits.extend(self.matcher.find(&text).map(|matched| hit(place, &event, &matched)));
            }
        }
    }
}

/// Returns the texts whose line begins here.
fn texts_at(places: &[TextPlace], offset: u64) -> &[TextPlace] {
    let first = places.partition_point(|place| place.offset < offset);
    let rest = &places[first..];
    &rest[..rest.partition_point(|place| place.offset == offset)]
}

/// Reads a file up to an end in blocks of whole lines, and passes each with its offset. Returns how far it could be read.
fn each_block(file: &dyn DiskFile, end: u64, buffer: &mut Vec<u8>, mut found: impl FnMut(u64, &[u8])) -> u64 {
    // Where the buffer begins in the file, and how many of its bytes begin a line that was not complete before.
    let (mut offset, mut kept) = (0_u64, 0_usize);
    loop {
        let left = usize::try_from(end - offset - kept as u64).unwrap_or(usize::MAX);
        if left == 0 {
            return offset;
        }
        let wanted = left.min(READ_BYTES);
        buffer.resize(kept + wanted, 0);
        let read = read_full(file, &mut buffer[kept..], offset + kept as u64).unwrap_or(0);
        let filled = kept + read;
        let lines = memchr::memrchr(b'\n', &buffer[..filled]).map_or(0, |place| place + 1);
        found(offset, &buffer[..lines]);
        offset += lines as u64;
        if read < wanted {
            return offset;
        }
        buffer.copy_within(lines..filled, 0);
        kept = filled - lines;
    }
}

/// Reads one event; `None` if its line differs from the one that was indexed.
pub(crate) fn read_event(store: &Store, place: &EventPlace) -> Option<ExchangeEvent> {
    let length = usize::try_from(place.length).ok()?;
    let mut line = vec![0; length];
    let read = read_full(&*open(store, place.run)?, &mut line, place.offset).ok()?;
    if read != length || crc32fast::hash(&line) != place.crc {
        return None;
    }
    ExchangeEvent::parse(&line).ok()
}

fn open(store: &Store, run: RunId) -> Option<Arc<dyn DiskFile>> {
    store.disk().open_read(&RunFile::Transcript(run).path()).ok().flatten()
}

fn read_line(file: &dyn DiskFile, place: &TextPlace, line: &mut Vec<u8>) -> bool {
    let Ok(length) = usize::try_from(place.length) else { return false };
    line.resize(length, 0);
    read_full(file, line, place.offset).is_ok_and(|read| read == length)
}
