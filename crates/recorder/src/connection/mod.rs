//! A connection between a client and `codex app-server`, recorded as it goes: first what was said, into a file of the store,
//! and then the spines of its threads.
//!
//! The file has both directions, a message a line, and is archived like an agent's own: the events of the connection come
//! from there. Whatever a crash leaves undone is made from the file again.

mod artifacts;
mod boundaries;
mod spool;

use std::collections::HashSet;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

use steno_capture::proxy::Said;
use steno_journal::{Journal, Level};
use steno_model::json::RawJson;
use steno_model::{Lane, Position, SpineType, ThreadId, Timestamp};
use steno_views::spine::{Around, Captured, Compacted, ConnectionFold, SpineMade, SpineSource, Withholding};
use uuid::Uuid;

use crate::spines::{Error, SourceName, SpineRecorder, Written};
use artifacts::Snapshots;
use boundaries::Boundaries;
use spool::{Line, Spool};
pub use spool::{Spooled, connections};

/// Records one connection: what was said is written down at once, and spines are made of it beside that.
pub struct ConnectionRecorder {
    spool: Spool,
    withholding: Withholding,
    tickets: u64,
    lines: Sender<(Line<'static>, u64, u64)>,
    weaving: JoinHandle<Result<Recorded, Error>>,
}

/// What became of a connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recorded {
    /// Its threads.
    pub threads: Vec<ThreadId>,
    /// How much was written of their spines.
    pub written: Written,
    /// How many messages there were.
    pub messages: u64,
    /// How many bytes were handed on and not kept.
    pub lost_bytes: u64,
    /// Why spines are not whole, if they are not. The file of the connection is.
    pub problems: Vec<String>,
    /// Whether some of it may succeed another time.
    pub is_left: bool,
}

/// Where what follows from a message stands.
struct Next {
    time: Timestamp,
    offset: u64,
    length: u64,
    part: u32,
}

impl Next {
    fn made(&mut self, record_type: SpineType, payload: RawJson) -> SpineMade {
        let position = Position { generation: 0, offset: self.offset, part: self.part };
        self.part += 1;
        SpineMade { record_type, timestamp: self.time.clone(), payload, position, length: self.length }
    }
}

/// Makes spines from what was said, live or from the file.
struct Weave {
    is_live: bool,
    snapshots: Snapshots,
    fold: ConnectionFold,
    spines: SpineRecorder,
    boundaries: Boundaries,
    /// Threads whose spines cannot be written.
    given_up: HashSet<ThreadId>,
    recorded: Recorded,
}

impl ConnectionRecorder {
    /// Begins to record a connection.
    ///
    /// # Errors
    /// What the system says of the file.
    pub fn begin(journal: &Journal) -> Result<Self, Error> {
        let spool = Spool::create(journal.store(), Uuid::new_v4())?;
        let (lines, woven) = channel::<(Line<'static>, u64, u64)>();
        let (journal, id) = (journal.clone(), spool.spooled().id);
        let thread = std::thread::Builder::new().name("steno-weave".to_owned());
        let weaving = thread.spawn(move || {
            let mut weave = Weave { is_live: true, ..Weave::new(&journal, id) };
            for (line, offset, length) in woven {
                weave.line(&line, offset, length);
            }
            weave.finish()
        });
        let weaving = weaving.map_err(|source| Error::Source { path: "a thread".into(), source })?;
        Ok(Self { spool, withholding: Withholding::default(), tickets: 0, lines, weaving })
    }

    /// Returns what is being recorded.
    #[must_use]
    pub fn spooled(&self) -> Spooled {
        self.spool.spooled()
    }

    /// Records what was said.
    ///
    /// # Errors
    /// What the system says of the file. What cannot be made of it is among the problems at the end.
    pub fn hear(&mut self, said: Said) -> Result<(), Error> {
        self.tickets += 1;
        let ticket = self.tickets;
        let line = match said {
            Said::Line { lane, time, line } => {
                let kept = self.withholding.kept(lane, &line);
                let message = kept.map_or(line, |kept| kept.as_str().as_bytes().to_vec());
                Line { lane, time, ticket, message: Ok(message.into()) }
            }
            Said::Lost { lane, bytes } => {
                let time = Timestamp::from_instant(jiff::Timestamp::now());
                Line { lane, time, ticket, message: Err(bytes) }
            }
        };
        let (offset, length) = self.spool.append(&line)?;
        // It ends only with us, or by a mistake of ours: then the file has all of it.
        self.lines.send((line, offset, length)).ok();
        Ok(())
    }

    /// Ends the recording.
    ///
    /// # Errors
    /// What the system says of the file, or the journal of the spines.
    pub fn finish(self) -> Result<Recorded, Error> {
        let synced = self.spool.finish();
        drop(self.lines);
        let woven = self.weaving.join();
        let failed = || std::io::Error::other("what makes spines of it has failed");
        let woven =
            woven.unwrap_or_else(|_| Err(Error::Source { path: "the connection".into(), source: failed() }));
        synced.and(woven)
    }
}

/// Makes what is missing of the spines of a connection that was recorded before.
///
/// # Errors
/// What the file, or the journal, says.
pub fn weave_again(journal: &Journal, spooled: &Spooled) -> Result<Recorded, Error> {
    let mut weave = Weave::new(journal, spooled.id);
    spooled.each(journal.store(), &mut |line, offset, length| weave.line(line, offset, length))?;
    weave.finish()
}

impl Weave {
    fn new(journal: &Journal, id: Uuid) -> Self {
        let source = SourceName::new(SpineSource::AppServer, &id.to_string());
        let fallback = ThreadId::parse(&id.to_string());
        let fallback = fallback.unwrap_or_else(|_| unreachable!("a UUID is a good name of a thread"));
        Self {
            is_live: false,
            snapshots: Snapshots::default(),
            fold: ConnectionFold::new(fallback),
            spines: SpineRecorder::new(journal.clone(), source, Level::Written),
            boundaries: Boundaries::default(),
            given_up: HashSet::new(),
            recorded: Recorded::default(),
        }
    }

    fn line(&mut self, line: &Line<'_>, offset: u64, length: u64) {
        self.recorded.messages += 1;
        let message = match &line.message {
            Ok(message) => message,
            Err(bytes) => {
                self.recorded.lost_bytes += bytes;
                return;
            }
        };
        let Line { lane, time, ticket, .. } = line;
        let captured = Captured { lane: *lane, ticket: *ticket, time, offset, line: message };
        let made = self.fold.message(captured);
        let parts = made.iter().map(|(_, made)| made.position.part + 1).max().unwrap_or(0);
        self.write(made, length);
        let mut next = Next { time: time.clone(), offset, length, part: parts };
        for compacted in self.fold.compacted() {
            self.boundary(&compacted, &mut next);
        }
        for around in self.fold.around() {
            self.look_around(&around, &mut next);
        }
    }

    /// Keeps what lies around a session. It is there while the session goes on, and not when its record is made again.
    fn look_around(&mut self, around: &Around, next: &mut Next) {
        if !self.is_live {
            return;
        }
        let (thread, found) = match around {
            Around::Begins { thread, cwd } => (thread, artifacts::of_repository(cwd)),
            Around::Ran { thread, path } => (thread, self.snapshots.look(thread, path).into_iter().collect()),
        };
        for artifact in found {
            let kept = artifact.kept.as_ref().map(|(what, bytes)| self.spines.keep(thread, *what, bytes));
            match kept.transpose() {
                Ok(kept) => {
                    let kept = kept.as_ref().map(|kept| (kept.artifact_path.as_str(), kept.sha256.as_str()));
                    let made = next.made(SpineType::ArtifactRef, artifact.payload(kept));
                    self.write(vec![(thread.clone(), made)], next.length);
                }
                Err(error) => self.recorded.problems.push(steno_views::with_causes(&error)),
            }
        }
    }

    /// Writes records. A thread whose spine cannot be written takes nothing from the others.
    fn write(&mut self, made: Vec<(ThreadId, SpineMade)>, length: u64) {
        for (thread, mut made) in made {
            if self.given_up.contains(&thread) {
                continue;
            }
            made.length = length;
            if let Err(error) = self.spines.write(&thread, made) {
                // What was made from another source stays so.
                self.recorded.is_left |= !matches!(error, Error::OtherSource { .. });
                self.recorded.problems.push(steno_views::with_causes(&error));
                self.given_up.insert(thread);
            }
        }
    }

    fn boundary(&mut self, compacted: &Compacted, next: &mut Next) {
        match self.boundaries.find(compacted) {
            Some(payload) => {
                let made = next.made(SpineType::CompactionBoundary, payload);
                self.write(vec![(compacted.thread.clone(), made)], next.length);
            }
            None => self.recorded.problems.push(format!(
                "what a compaction of thread {} did is not known: its session file does not say",
                compacted.thread
            )),
        }
    }

    fn finish(mut self) -> Result<Recorded, Error> {
        let (rest, unanswered) = self.fold.finish();
        let length = rest.last().map_or(0, |(_, made)| made.length);
        self.write(rest, length);
        if unanswered > 0 {
            let many = steno_views::count(unanswered as u64, "answer");
            self.recorded.problems.push(format!("{many} for threads whose parents were never told"));
        }
        (self.recorded.threads, self.recorded.written) = self.spines.close()?;
        Ok(self.recorded)
    }
}

/// Tells which way a direction goes, in the words of the file.
fn direction(lane: Lane) -> &'static str {
    match lane {
        Lane::ToAgent => "c2s",
        Lane::FromAgent => "s2c",
    }
}
