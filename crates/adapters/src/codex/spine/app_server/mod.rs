//! Makes spines of a connection to `codex app-server`, one for each thread. `docs/adapters/codex-spine.md` has the
//! mapping. Every message of either side is one record. A message that names no thread of the server is recorded with the
//! first thread.

mod bridges;
mod message;
mod missing;
mod session;
mod settings;
mod withholding;

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use steno_model::json::{JsonString, RawJson};
use steno_model::{Lane, Position, SpineSource, SpineType, ThreadId, Timestamp};

use self::bridges::{Bridges, Link};
use self::message::{Kind, Message};
pub use self::missing::{Missing, WhyMissing};
use self::settings::Settings;
pub use self::withholding::{MessageFacts, Withholding};
use super::SpineMade;
use super::payload;
use super::turns::Turn;
use crate::codex::wire::ClientInfo;
use crate::wire::{RawField as _, object};

/// How many messages, and how many bytes, wait for the first thread.
const WAITING_MAX: usize = 1000;
const WAITING_BYTES_MAX: usize = 1024 * 1024;

/// A message as it was captured.
#[derive(Clone, Copy, Debug)]
pub struct Captured<'a> {
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

/// A line in the record of a connection. A record that is made later still names the line it was made from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinePlace {
    /// Where it begins.
    pub offset: u64,
    /// Its length in bytes, without the newline.
    pub length: u64,
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
pub struct Compacted {
    /// The thread.
    pub thread: ThreadId,
    /// The turn that compacted.
    pub turn: String,
    /// The path of the session file, if the connection named it.
    pub path: Option<String>,
}

/// Folds the messages of a connection, in the order of their tickets, with secrets [withheld](Withholding).
#[derive(Debug)]
pub struct ConnectionFold {
    /// The thread for messages when there is no other.
    fallback: ThreadId,
    root: Option<ThreadId>,
    originator: Option<RawJson>,
    threads: HashMap<ThreadId, Thread>,
    /// Threads that the server named. A client may name threads that do not exist.
    confirmed: HashSet<ThreadId>,
    /// Method and thread of the requests without an answer, by direction and id.
    requests: HashMap<(Lane, String), (String, Option<ThreadId>)>,
    bridges: Bridges,
    waiting: Vec<SpineMade>,
    waiting_bytes: usize,
    /// The threads whose spines have records, in the order in which they began.
    written: HashSet<ThreadId>,
    written_in_order: Vec<ThreadId>,
    compacted: Vec<Compacted>,
    around: Vec<Around>,
    made: Vec<(ThreadId, SpineMade)>,
    at: Option<At>,
}

#[derive(Debug, Default)]
struct Thread {
    settings: Settings,
    path: Option<String>,
    cwd: Option<String>,
    has_begun: bool,
}

#[derive(Clone, Debug)]
struct At {
    time: Timestamp,
    place: LinePlace,
    parts: u32,
}

impl ConnectionFold {
    /// Creates a fold for a connection. A message that belongs to no thread, and that cannot wait for the first one, goes to
    /// `fallback`.
    #[must_use]
    pub fn new(fallback: ThreadId) -> Self {
        Self {
            fallback,
            root: None,
            originator: None,
            threads: HashMap::new(),
            confirmed: HashSet::new(),
            requests: HashMap::new(),
            bridges: Bridges::default(),
            waiting: Vec::new(),
            waiting_bytes: 0,
            written: HashSet::new(),
            written_in_order: Vec::new(),
            compacted: Vec::new(),
            around: Vec::new(),
            made: Vec::new(),
            at: None,
        }
    }

    /// Takes a message. Returns the records made from it, each with its thread.
    pub fn message(&mut self, captured: Captured<'_>) -> Vec<(ThreadId, SpineMade)> {
        let Captured { lane, ticket, time, place, line } = captured;
        self.begin_at(time, place);
        let text = std::str::from_utf8(line).ok();
        if let Some(message) = text.and_then(|text| Message::read(lane, text)) {
            self.read(&message, ticket);
        } else {
            let record = rpc(lane, "", &payload::unreadable(line), Kind::Notification, ticket);
            self.keep(None, lane, record);
        }
        std::mem::take(&mut self.made)
    }

    /// Notes that messages are missing directly before a line, or that this line reports a gap. Any of the threads may have
    /// lost some of them, so the spines of all threads get a record of it.
    pub fn missing(
        &mut self,
        missing: &Missing,
        time: &Timestamp,
        place: LinePlace,
    ) -> Vec<(ThreadId, SpineMade)> {
        self.begin_at(time, place);
        if self.written.is_empty() {
            self.keep(None, Lane::FromAgent, missing.event());
        }
        for thread in self.written_in_order.clone() {
            self.make(&thread, SpineType::Event, missing.event());
        }
        std::mem::take(&mut self.made)
    }

    /// Moves to a line of the record. Records made from it before count as its parts.
    fn begin_at(&mut self, time: &Timestamp, place: LinePlace) {
        let here = self.at.as_ref().filter(|at| at.place == place);
        let parts = here.map_or(0, |at| at.parts);
        self.at = Some(At { time: time.clone(), place, parts });
    }

    /// Returns the compactions since the last call.
    pub fn compacted(&mut self) -> Vec<Compacted> {
        std::mem::take(&mut self.compacted)
    }

    /// Returns the events since the last call after which repositories or files should be looked at.
    pub fn around(&mut self) -> Vec<Around> {
        std::mem::take(&mut self.around)
    }

    /// Ends the connection. Returns the records that were waiting, and the number of answers for threads whose parent was
    /// never named.
    pub fn finish(&mut self) -> (Vec<(ThreadId, SpineMade)>, usize) {
        if self.root.is_none() {
            self.begin(self.fallback.clone());
        }
        (std::mem::take(&mut self.made), self.bridges.left())
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
        self.keep(thread.as_ref(), message.lane, record);
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
        if self.root.is_none() {
            self.begin(thread.clone());
        }
        self.bridges.add_root(thread.as_str());
        let fields = message.reply.thread.unwrap_or_default();
        let known = self.threads.entry(thread.clone()).or_default();
        known.settings.take(message);
        known.path = fields.path.text().map(Cow::into_owned);
        known.cwd = fields.cwd.text().map(Cow::into_owned);
        let meta = session::loaded(thread, &fields, self.originator.as_ref());
        let payload = payload::session_meta(meta.as_str(), SpineSource::AppServer.into());
        self.make(thread, SpineType::SessionMeta, payload);
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
        self.make(thread, SpineType::TurnContext, payload::turn_context(&turn, &context));
    }

    fn child(&mut self, child: &str, link: &Link) {
        let Ok(thread) = ThreadId::parse(child) else { return };
        self.confirmed.insert(thread.clone());
        let meta = session::child(child, &link.parent, self.originator.as_ref());
        let payload = payload::session_meta(meta.as_str(), SpineSource::AppServer.into());
        self.make(&thread, SpineType::SessionMeta, payload);
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
        self.compacted.push(Compacted { thread: thread.clone(), turn, path });
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
                    self.make(&thread, SpineType::Bridge, bridge.payload.clone());
                }
            }
        }
    }

    /// Sets the first thread, and makes the records of the messages that waited for it.
    fn begin(&mut self, root: ThreadId) {
        let waiting = std::mem::take(&mut self.waiting);
        if !waiting.is_empty() {
            self.wrote(&root);
        }
        self.made.extend(waiting.into_iter().map(|made| (root.clone(), made)));
        self.root = Some(root);
    }

    fn keep(&mut self, thread: Option<&ThreadId>, lane: Lane, payload: RawJson) {
        let record_type = match lane {
            Lane::ToAgent => SpineType::Submission,
            Lane::FromAgent => SpineType::Event,
        };
        if let Some(thread) = thread.cloned().or_else(|| self.root.clone()) {
            if self.root.is_none() {
                self.begin(thread.clone());
            }
            return self.make(&thread, record_type, payload);
        }
        let Some(made) = self.next(record_type, payload) else { return };
        self.waiting_bytes += made.payload.as_str().len();
        self.waiting.push(made);
        if self.waiting.len() > WAITING_MAX || self.waiting_bytes > WAITING_BYTES_MAX {
            self.begin(self.fallback.clone());
        }
    }

    fn make(&mut self, thread: &ThreadId, record_type: SpineType, payload: RawJson) {
        if let Some(made) = self.next(record_type, payload) {
            self.wrote(thread);
            self.made.push((thread.clone(), made));
        }
    }

    fn wrote(&mut self, thread: &ThreadId) {
        if !self.written.contains(thread) {
            self.written.insert(thread.clone());
            self.written_in_order.push(thread.clone());
        }
    }

    fn next(&mut self, record_type: SpineType, payload: RawJson) -> Option<SpineMade> {
        let at = self.at.as_mut()?;
        let LinePlace { offset, length } = at.place;
        let position = Position { generation: 0, offset, part: at.parts };
        at.parts += 1;
        Some(SpineMade { record_type, timestamp: at.time.clone(), payload, position, length })
    }
}

/// Returns the other direction.
fn other(lane: Lane) -> Lane {
    match lane {
        Lane::FromAgent => Lane::ToAgent,
        Lane::ToAgent => Lane::FromAgent,
    }
}

/// Returns the id of a record: its turn, or else its request, or else its method.
fn record_id(message: &Message<'_>) -> String {
    let request = message.id.map(|id| id.trim_matches('"').to_owned());
    let turn = message.turn().filter(|_| message.lane == Lane::FromAgent).map(Cow::into_owned);
    turn.or(request).unwrap_or_else(|| message.method.clone().into_owned())
}

/// Returns the payload of a message, with its direction, kind and ticket.
fn rpc(lane: Lane, id: &str, body: &RawJson, kind: Kind, ticket: u64) -> RawJson {
    RawJson::object(|object| {
        object.string("id", &JsonString::from_text(id));
        object.json(if lane == Lane::ToAgent { "op" } else { "msg" }, body);
        let rpc = RawJson::object(|rpc| {
            rpc.word("dir", if lane == Lane::ToAgent { "c2s" } else { "s2c" });
            rpc.word("kind", kind.name());
            rpc.number("ticket", ticket);
        });
        object.json("rpc", &rpc);
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(offset: u64) -> LinePlace {
        LinePlace { offset, length: 99 }
    }

    /// Folds messages to the agent (`>`) and from it (`<`). Returns thread, type and payload of each record.
    fn fold(fold: &mut ConnectionFold, lines: &[&str]) -> Vec<(String, SpineType, String)> {
        let time = Timestamp::parse("2026-05-01T10:00:00.000Z").unwrap();
        let mut records = Vec::new();
        for (ticket, said) in (1..).zip(lines) {
            let lane = if said.starts_with('>') { Lane::ToAgent } else { Lane::FromAgent };
            let (time, place) = (&time, place(ticket * 100));
            let captured = Captured { lane, ticket, time, place, line: &said.as_bytes()[1..] };
            records.extend(fold.message(captured));
        }
        records.extend(fold.finish().0);
        let shown = |(thread, made): (ThreadId, SpineMade)| {
            (thread.to_string(), made.record_type, made.payload.as_str().to_owned())
        };
        records.into_iter().map(shown).collect()
    }

    fn connection() -> ConnectionFold {
        ConnectionFold::new(ThreadId::parse("connection").unwrap())
    }

    const BEGIN: [&str; 4] = [
        r#">{"method":"initialize","id":1,"params":{"clientInfo":{"name":"editor"}}}"#,
        r#"<{"id":1,"result":{"userAgent":"x"}}"#,
        r#">{"method":"thread/start","id":2,"params":{}}"#,
        r#"<{"id":2,"result":{"thread":{"id":"p","cwd":"/w","path":"/r.jsonl","gitInfo":null},"model":"m","approvalPolicy":"untrusted"}}"#,
    ];

    #[test]
    fn each_message_is_one_record() {
        let more = [
            r#">{"method":"turn/start","id":3,"params":{"threadId":"p","model":"m2","n":1e400}}"#,
            r#"<{"method":"turn/started","params":{"threadId":"p","turn":{"id":"u1","rootTurnId":"u1"}}}"#,
            r#"<{"method":"turn/started","params":{"threadId":"p","turn":{"id":"u2","rootTurnId":"u1"}}}"#,
            r#"<{"method":"configWarning","params":{}}"#,
            "<no JSON",
        ];
        let lines: Vec<&str> = BEGIN.into_iter().chain(more).collect();
        let records = fold(&mut connection(), &lines);
        assert!(records.iter().all(|(thread, ..)| thread == "p"));
        let said = |record_type: SpineType| records.iter().filter(move |(_, kind, _)| *kind == record_type);
        assert_eq!((said(SpineType::Submission).count(), said(SpineType::Event).count()), (3, 6));
        let meta = &said(SpineType::SessionMeta).next().unwrap().2;
        assert!(meta.starts_with(r#"{"id":"p","cwd":"/w","rollout_path":"/r.jsonl","originator":"editor","spine_source":{"kind":"app_server","#), "{meta}");
        // The settings of a turn inside another turn are not known.
        assert_eq!(said(SpineType::TurnContext).count(), 1);
        assert_eq!(
            said(SpineType::TurnContext).next().unwrap().2,
            r#"{"turn_id":"u1","context":{"approval_policy":"untrusted","model":"m2"}}"#
        );
        let op = &said(SpineType::Submission).nth(2).unwrap().2;
        assert_eq!(
            op,
            r#"{"id":"3","op":{"method":"turn/start","id":3,"params":{"threadId":"p","model":"m2","n":1e400}},"rpc":{"dir":"c2s","kind":"request","ticket":5}}"#
        );
    }

    const CHILD: [&str; 4] = [
        r#"<{"method":"item/commandExecution/requestApproval","id":0,"params":{"threadId":"c","turnId":"cu","itemId":"cc"}}"#,
        r#">{"id":0,"result":{"decision":"accept"}}"#,
        r#"<{"method":"item/completed","params":{"threadId":"p","turnId":"pu","item":{"type":"collabAgentToolCall","id":"pc","tool":"spawnAgent","senderThreadId":"p","receiverThreadIds":["c"]}}}"#,
        r#"<{"method":"serverRequest/resolved","params":{"threadId":"c"}}"#,
    ];

    #[test]
    fn answer_by_the_parent_is_a_bridge_with_six_ids() {
        let want = r#"{"bridge_kind":"exec_approval","parent_thread_id":"p","parent_turn_id":"pu","parent_call_id":"pc","sub_agent_thread_id":"c","sub_agent_turn_id":"cu","sub_agent_call_id":"cc","decision":"accept"}"#;
        // The message that names the parent may come before or after the answer.
        for order in [[0, 1, 2, 3], [2, 0, 1, 3], [0, 2, 1, 3]] {
            let lines: Vec<&str> = BEGIN.into_iter().chain(order.map(|at| CHILD[at])).collect();
            let records = fold(&mut connection(), &lines);
            let bridges: Vec<_> =
                records.iter().filter(|(_, record_type, _)| *record_type == SpineType::Bridge).collect();
            let threads: Vec<&str> = bridges.iter().map(|(thread, ..)| thread.as_str()).collect();
            assert_eq!(threads, ["p", "c"], "{order:?}");
            assert!(bridges.iter().all(|(.., payload)| payload == want), "{bridges:?}");
        }
    }

    #[test]
    fn answer_by_the_thread_itself_is_not_a_bridge() {
        let own = CHILD[0].replace("\"c\"", "\"p\"");
        let mut folded = connection();
        let lines: Vec<&str> = BEGIN.into_iter().chain([own.as_str(), CHILD[1], CHILD[2]]).collect();
        let records = fold(&mut folded, &lines);
        assert!(records.iter().all(|(_, record_type, _)| *record_type != SpineType::Bridge));
        assert_eq!(folded.finish().1, 0, "and none is missing");
    }

    #[test]
    fn unanswered_request_is_not_a_bridge_and_user_input_is_kept_whole() {
        let ask = r#"<{"method":"item/tool/requestUserInput","id":7,"params":{"threadId":"c","turnId":"cu","itemId":"cc"}}"#;
        let answer = r#">{"id":7,"result":{"answers":{"q":{"answers":["Red"]}}}}"#;
        let lines: Vec<&str> = BEGIN.into_iter().chain([CHILD[2], ask]).collect();
        let bridges = |lines: &[&str]| {
            let records = fold(&mut connection(), lines);
            records
                .into_iter()
                .filter(|(_, record_type, _)| *record_type == SpineType::Bridge)
                .collect::<Vec<_>>()
        };
        assert_eq!(bridges(&lines), []);
        let lines: Vec<&str> = lines.into_iter().chain([answer]).collect();
        assert!(
            bridges(&lines)[0].2.ends_with(r#""user_input_response":{"answers":{"q":{"answers":["Red"]}}}}"#)
        );
    }

    /// Returns the spine of each message, in ticket order.
    fn places(lines: &[&str]) -> Vec<String> {
        let records = fold(&mut connection(), lines);
        let mut places: Vec<(u64, String)> = Vec::new();
        for (thread, _, payload) in records {
            let ticket = payload.split(r#""ticket":"#).nth(1).and_then(|rest| rest.strip_suffix("}}"));
            places.extend(ticket.map(|ticket| (ticket.parse().unwrap(), thread)));
        }
        places.sort();
        assert!(places.iter().zip(1..).all(|((ticket, _), want)| *ticket == want), "{places:?}");
        assert_eq!(places.len(), lines.len(), "each message is one record");
        places.into_iter().map(|(_, thread)| thread).collect()
    }

    #[test]
    fn thread_named_only_by_the_client_has_no_spine() {
        let more = [
            r#">{"method":"turn/start","id":3,"params":{"threadId":"typo"}}"#,
            r#"<{"error":{"code":-32600,"message":"thread not found"},"id":3}"#,
            r#">{"method":"thread/read","id":4,"params":{"threadId":"archived"}}"#,
            r#"<{"id":4,"result":{"thread":{"id":"archived","turns":[]}}}"#,
            r#">{"method":"thread/resume","id":5,"params":{"threadId":"gone"}}"#,
            r#"<{"error":{"code":-32600},"id":5}"#,
            r#">{"method":"x","params":{"threadId":"typo"}}"#,
        ];
        let lines: Vec<&str> = BEGIN.into_iter().chain(more).collect();
        assert!(places(&lines).iter().all(|thread| thread == "p"));
        // Without any thread they belong to the connection.
        assert!(
            places(&[&BEGIN[..2], &["<{}"], &more[4..]].concat()[..])
                .iter()
                .all(|thread| thread == "connection")
        );
    }

    #[test]
    fn thread_has_a_spine_once_the_server_names_it() {
        let more = [
            r#">{"method":"thread/resume","id":5,"params":{"threadId":"r"}}"#,
            // Sent before the answer.
            r#">{"method":"turn/start","id":6,"params":{"threadId":"r","model":"m9"}}"#,
            r#"<{"id":5,"result":{"thread":{"id":"r"},"model":"m"}}"#,
            r#"<{"id":6,"result":{"turn":{"id":"u"}}}"#,
            r#"<{"method":"turn/started","params":{"threadId":"k","turn":{"id":"u"}}}"#,
            r#">{"method":"turn/interrupt","id":7,"params":{"threadId":"k"}}"#,
            r#"<{"error":{"code":1},"id":7}"#,
        ];
        let lines: Vec<&str> = BEGIN.into_iter().chain(more).collect();
        assert_eq!(places(&lines)[4..], ["p", "p", "r", "r", "k", "k", "k"]);
        // Messages that waited for the first thread are in its spine, whatever thread they name.
        let lines: Vec<&str> = BEGIN[..2].iter().chain(&more[..4]).copied().collect();
        assert!(places(&lines).iter().all(|thread| thread == "r"));
        let child = r#">{"method":"turn/steer","id":8,"params":{"threadId":"c"}}"#;
        let lines: Vec<&str> = BEGIN.into_iter().chain([child, CHILD[2], child]).collect();
        assert_eq!(places(&lines)[4..], ["p", "p", "c"]);
    }

    #[test]
    fn every_spine_records_missing_messages_at_their_place() {
        let mut folded = connection();
        let time = Timestamp::parse("2026-05-01T10:00:00.000Z").unwrap();
        let missing = Missing::between(3, 4);
        // Without a thread the note waits for the first one.
        assert_eq!(folded.missing(&missing, &time, place(7)).len(), 0);
        let records = fold(&mut folded, &BEGIN.into_iter().chain([CHILD[2], CHILD[3]]).collect::<Vec<_>>());
        let is_missing = |payload: &String| payload.contains(r#""msg":{"type":"missing""#);
        assert_eq!(records.iter().filter(|(.., payload)| is_missing(payload)).count(), 1);
        let made = folded.missing(&missing, &time, place(9000));
        let threads: Vec<&str> = made.iter().map(|(thread, _)| thread.as_str()).collect();
        assert_eq!(threads, ["p", "c"]);
        let want = r#"{"id":"","msg":{"type":"missing","first_ticket":3,"last_ticket":4,"messages":2,"reason":"unknown"}}"#;
        assert!(made.iter().all(|(_, made)| made.payload.as_str() == want), "{made:?}");
        // A message at the same place has a later position.
        let line = br#"{"method":"warning","params":{"threadId":"p"}}"#;
        let captured = Captured { lane: Lane::FromAgent, ticket: 5, time: &time, place: place(9000), line };
        let next = folded.message(captured);
        assert!(next[0].1.position > made[1].1.position, "{next:?}");
    }

    #[test]
    fn compactions_are_reported_once_with_the_current_path() {
        let mut folded = connection();
        let done = r#"<{"method":"item/completed","params":{"threadId":"p","turnId":"u9","item":{"type":"contextCompaction","id":"k"}}}"#;
        fold(&mut folded, &BEGIN.into_iter().chain([done]).collect::<Vec<_>>());
        let want = Compacted {
            thread: ThreadId::parse("p").unwrap(),
            turn: "u9".to_owned(),
            path: Some("/r.jsonl".to_owned()),
        };
        assert_eq!((folded.compacted(), folded.compacted()), (vec![want.clone()], Vec::new()));
        // After a revert the thread continues in another file.
        let revert = [
            r#">{"method":"thread/revert","id":8,"params":{"threadId":"p","beforeTurnId":"u7"}}"#,
            r#"<{"id":8,"result":{"thread":{"id":"p","path":"/r_2.jsonl"}}}"#,
            done,
        ];
        fold(&mut folded, &revert);
        assert_eq!(folded.compacted(), [Compacted { path: Some("/r_2.jsonl".to_owned()), ..want }]);
    }

    #[test]
    fn connection_without_threads_keeps_its_messages() {
        let records = fold(&mut connection(), &BEGIN[..2]);
        assert_eq!(records.len(), 2);
        assert!(records.iter().all(|(thread, ..)| thread == "connection"));
    }
}
