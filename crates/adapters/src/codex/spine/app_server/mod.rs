//! Makes spines of a connection to `codex app-server`, one for each thread. `docs/adapters/codex-spine.md` has the
//! mapping. Every message of either side is one record. A message that names no thread of the server is recorded with the
//! first thread.

mod bridges;
mod message;
mod missing;
mod records;
mod secret_filter;
mod session;
mod settings;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use steno_model::json::RawJson;
use steno_model::{Lane, SpineSource, SpineType, ThreadId, Timestamp};

use self::bridges::{Bridges, Link};
use self::message::{Kind, Message, record_id, rpc};
pub use self::missing::{Missing, WhyMissing};
pub use self::records::LinePlace;
use self::records::SpineRecords;
pub use self::secret_filter::{MessageFacts, SecretFilter};
use self::settings::Settings;
use super::SpineMade;
use super::payload;
use super::turns::Turn;
use crate::codex::wire::ClientInfo;
use crate::wire::{RawField as _, object};

/// A message as it was captured.
#[derive(Clone, Copy, Debug)]
pub struct CapturedMessage<'a> {
    /// Which way it went.
    pub lane: Lane,
    /// Its number over both directions, taken when it was read. A message has a higher number than the one it answers.
    pub ticket: u64,
    /// When it was read.
    pub time: &'a Timestamp,
    /// Its line in the record of the connection.
    pub place: LinePlace,
    /// The message, without its newline.
    pub line: &'a [u8],
}

/// An event of a thread after which its repository or its files should be looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Around {
    /// The first turn begins.
    Begins {
        /// The thread.
        thread: ThreadId,
        /// The working directory.
        cwd: String,
    },
    /// A later turn begins, or a turn has ended.
    Stands {
        /// The thread.
        thread: ThreadId,
        /// Where it works.
        cwd: String,
    },
    /// A command has ended.
    Ran {
        /// The thread.
        thread: ThreadId,
        /// Its session file.
        path: String,
    },
}

/// A compaction. The connection does not say what it changed: that has to be read from the session file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompactionNotice {
    /// The thread.
    pub thread: ThreadId,
    /// The turn that compacted.
    pub turn: String,
    /// The path of the session file, if the connection named it.
    pub path: Option<String>,
}

/// Folds the messages of a connection, in the order of their tickets, with secrets [withheld](SecretFilter).
#[derive(Debug)]
pub struct ConnectionFold {
    originator: Option<RawJson>,
    threads: HashMap<ThreadId, Thread>,
    /// Threads that the server named. A client may name threads that do not exist.
    confirmed: HashSet<ThreadId>,
    /// Method and thread of the requests without an answer, by direction and id.
    requests: HashMap<(Lane, String), (String, Option<ThreadId>)>,
    bridges: Bridges,
    compacted: Vec<CompactionNotice>,
    around: Vec<Around>,
    records: SpineRecords,
}

#[derive(Debug, Default)]
struct Thread {
    settings: Settings,
    path: Option<String>,
    cwd: Option<String>,
    has_begun: bool,
}

impl ConnectionFold {
    /// Creates a fold for a connection. A message that belongs to no thread, and that cannot wait for the first one, goes to
    /// `fallback`.
    #[must_use]
    pub fn new(fallback: ThreadId) -> Self {
        Self {
            originator: None,
            threads: HashMap::new(),
            confirmed: HashSet::new(),
            requests: HashMap::new(),
            bridges: Bridges::default(),
            compacted: Vec::new(),
            around: Vec::new(),
            records: SpineRecords::new(fallback),
        }
    }

    /// Takes a message. Returns the records made from it, each with its thread.
    pub fn message(&mut self, captured: CapturedMessage<'_>) -> Vec<(ThreadId, SpineMade)> {
        let CapturedMessage { lane, ticket, time, place, line } = captured;
        self.records.begin_at(time, place);
        let text = std::str::from_utf8(line).ok();
        if let Some(message) = text.and_then(|text| Message::read(lane, text)) {
            self.read(&message, ticket);
        } else {
            let record = rpc(lane, "", &payload::unreadable(line), Kind::Notification, ticket);
            self.records.keep(None, lane, record);
        }
        self.records.take()
    }

    /// Notes that messages are missing directly before a line, or that this line reports a gap. Any of the threads may have
    /// lost some of them, so the spines of all threads get a record of it.
    pub fn missing(
        &mut self,
        missing: &Missing,
        time: &Timestamp,
        place: LinePlace,
    ) -> Vec<(ThreadId, SpineMade)> {
        self.records.begin_at(time, place);
        self.records.make_everywhere(&missing.event());
        self.records.take()
    }

    /// Returns the compactions since the last call.
    pub fn compacted(&mut self) -> Vec<CompactionNotice> {
        std::mem::take(&mut self.compacted)
    }

    /// Returns the events since the last call after which repositories or files should be looked at.
    pub fn around(&mut self) -> Vec<Around> {
        std::mem::take(&mut self.around)
    }

    /// Ends the connection. Returns the records that were waiting, and the number of answers for threads whose parent was
    /// never named.
    pub fn finish(&mut self) -> (Vec<(ThreadId, SpineMade)>, usize) {
        (self.records.finish(), self.bridges.left())
    }

    fn read(&mut self, message: &Message<'_>, ticket: u64) {
        let answered = self.answered(message);
        let method = answered.as_ref().map_or(&*message.method, |(method, _)| method).to_owned();
        let named = message.thread().and_then(|id| ThreadId::parse(&id).ok());
        if method == "initialize" && message.kind == Kind::Request {
            let client: Option<ClientInfo<'_>> = message.params.client_info.and_then(object);
            self.originator = client.and_then(|client| client.name).map(RawJson::from_raw);
        }
        let is_answer = message.lane == Lane::FromAgent && message.kind == Kind::Response;
        let is_loaded =
            is_answer && ["thread/start", "thread/resume", "thread/fork"].contains(&method.as_str());
        if let Some(thread) = named.as_ref().filter(|_| is_loaded || message.is_of_server()) {
            self.confirmed.insert(thread.clone());
        }
        self.note(named.as_ref(), message);
        let candidates = [named, answered.and_then(|(_, thread)| thread)];
        let thread = candidates.into_iter().flatten().find(|thread| self.confirmed.contains(thread));
        if let Some(thread) = thread.as_ref().filter(|_| is_loaded) {
            self.loaded(thread, message);
        } else if let Some(thread) = thread.as_ref().filter(|_| is_answer && method == "thread/revert") {
            self.moved(thread, message);
        }
        let id = record_id(message);
        let body = RawJson::parse(message.text).unwrap_or_else(|_| RawJson::null());
        let record = rpc(message.lane, &id, &body, message.kind, ticket);
        self.records.keep(thread.as_ref(), message.lane, record);
        if let Some(thread) = thread {
            self.follow(&thread, message);
        }
    }

    /// Returns the request that a message answers.
    fn answered(&mut self, message: &Message<'_>) -> Option<(String, Option<ThreadId>)> {
        match message.kind {
            Kind::Response | Kind::Error => {
                self.requests.remove(&(other(message.lane), message.id?.to_owned()))
            }
            Kind::Request | Kind::Notification => None,
        }
    }

    /// Stores what later messages refer to.
    fn note(&mut self, thread: Option<&ThreadId>, message: &Message<'_>) {
        if let (Kind::Request, Some(id)) = (message.kind, message.id) {
            let request = (message.method.clone().into_owned(), thread.cloned());
            self.requests.insert((message.lane, id.to_owned()), request);
            if message.lane == Lane::FromAgent {
                self.bridges.ask(message);
            }
        }
        let says_settings = ["turn/start", "thread/settings/updated"].contains(&&*message.method);
        if let Some(thread) = thread.filter(|_| says_settings) {
            self.threads.entry(thread.clone()).or_default().settings.take(message);
        }
    }

    /// Takes the answer to a thread that the client started, resumed or forked.
    fn loaded(&mut self, thread: &ThreadId, message: &Message<'_>) {
        self.records.begin(thread);
        self.bridges.add_root(thread.as_str());
        let fields = message.reply.thread.unwrap_or_default();
        let known = self.threads.entry(thread.clone()).or_default();
        known.settings.take(message);
        known.path = fields.path.text().map(Cow::into_owned);
        known.cwd = fields.cwd.text().map(Cow::into_owned);
        let meta = session::loaded(thread, &fields, self.originator.as_ref());
        let payload = payload::session_meta(meta.as_str(), SpineSource::AppServer.into());
        self.records.make(thread, SpineType::SessionMeta, payload);
    }

    /// Takes a revert of turns. The thread continues in another session file.
    fn moved(&mut self, thread: &ThreadId, message: &Message<'_>) {
        let path = message.reply.thread.and_then(|thread| thread.path.text()).map(Cow::into_owned);
        if let Some(known) = self.threads.get_mut(thread).filter(|_| path.is_some()) {
            known.path = path;
        }
    }

    /// Makes the records derived from a message.
    fn follow(&mut self, thread: &ThreadId, message: &Message<'_>) {
        match (message.lane, message.kind, &*message.method) {
            (Lane::FromAgent, Kind::Notification, "turn/started") => self.turn(thread, message),
            (Lane::FromAgent, Kind::Notification, "turn/completed") => {
                let cwd = self.threads.get(thread).and_then(|known| known.cwd.clone());
                self.around.extend(cwd.map(|cwd| Around::Stands { thread: thread.clone(), cwd }));
            }
            (Lane::FromAgent, Kind::Notification, "item/started" | "item/completed") => {
                if let Some((child, link)) = self.bridges.link(message) {
                    self.child(&child, &link);
                }
                self.bridge_all();
                self.finished(thread, message);
            }
            (Lane::ToAgent, Kind::Response, _) => {
                let bridges = self.bridges.answer(message);
                self.write_bridges(bridges);
            }
            _ => {}
        }
    }

    fn turn(&mut self, thread: &ThreadId, message: &Message<'_>) {
        let Some(known) = self.threads.get_mut(thread) else { return };
        let context = known.settings.context();
        if let Some(cwd) = known.cwd.clone() {
            let thread = thread.clone();
            let has_begun = std::mem::replace(&mut known.has_begun, true);
            self.around.push(if has_begun {
                Around::Stands { thread, cwd }
            } else {
                Around::Begins { thread, cwd }
            });
        }
        let turn = Turn { id: message.turn().unwrap_or_default().into_owned(), is_inferred: false };
        // A turn inside another turn is a review. It has its own settings, which the connection does not give.
        let within = message.turn_fields().and_then(|turn| turn.root_turn_id.text());
        if within.is_some_and(|within| within != turn.id) {
            return;
        }
        self.records.make(thread, SpineType::TurnContext, payload::turn_context(&turn, &context));
    }

    fn child(&mut self, child: &str, link: &Link) {
        let Ok(thread) = ThreadId::parse(child) else { return };
        self.confirmed.insert(thread.clone());
        let meta = session::child(child, &link.parent, self.originator.as_ref());
        let payload = payload::session_meta(meta.as_str(), SpineSource::AppServer.into());
        self.records.make(&thread, SpineType::SessionMeta, payload);
    }

    fn finished(&mut self, thread: &ThreadId, message: &Message<'_>) {
        if message.method != "item/completed" {
            return;
        }
        let path = self.threads.get(thread).and_then(|known| known.path.clone());
        let kind = message.params.item.and_then(|item| item.kind.text());
        match (kind.as_deref(), path) {
            (Some("contextCompaction"), path) => self.compaction(thread, message, path),
            (Some("commandExecution"), Some(path)) => {
                self.around.push(Around::Ran { thread: thread.clone(), path });
            }
            _ => {}
        }
    }

    fn compaction(&mut self, thread: &ThreadId, message: &Message<'_>, path: Option<String>) {
        let turn = message.turn().unwrap_or_default().into_owned();
        self.compacted.push(CompactionNotice { thread: thread.clone(), turn, path });
    }

    fn bridge_all(&mut self) {
        let bridges = self.bridges.known();
        self.write_bridges(bridges);
    }

    /// Writes each bridge to the spine of the parent and to that of the child, so that each spine is complete.
    fn write_bridges(&mut self, bridges: Vec<bridges::Bridge>) {
        for bridge in bridges {
            for thread in [&bridge.parent, &bridge.child] {
                if let Ok(thread) = ThreadId::parse(thread) {
                    self.records.make(&thread, SpineType::Bridge, bridge.payload.clone());
                }
            }
        }
    }
}

/// Returns the other direction.
fn other(lane: Lane) -> Lane {
    match lane {
        Lane::FromAgent => Lane::ToAgent,
        Lane::ToAgent => Lane::FromAgent,
    }
}
