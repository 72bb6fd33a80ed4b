//! A session for tasks: its turns, and facts about its working directory.
//!
//! It is built from two streams: the records of a spine, which have the facts around the session, and the events that
//! an adapter makes from them, which have the conversation and the calls.

use steno_model::json::RawJson;
use steno_model::{
    EventType, ExchangeEvent, RunId, Seq, SpineRecord, SpineType, ThreadId, Timestamp, Word,
    without_credentials,
};

use super::turn::{ModelTimes, Notes, TakenBack, Turn, turns_of};
use steno_model::SpineSource;
use steno_session::{Content, PayloadFields};

/// The known facts of a session.
#[derive(Debug)]
pub struct Session {
    /// The thread.
    pub thread: ThreadId,
    /// The source of its spine.
    pub source: Option<SpineSource>,
    /// The agent's version, as the session reports it.
    pub version: Option<String>,
    /// The working directory.
    pub cwd: Option<String>,
    /// The thread that started this one. Its prompts are then text of another model.
    pub parent: Option<String>,
    /// The thread whose history this one continues.
    pub base: Option<String>,
    /// The repository.
    pub repository: Repository,
    /// The turns, in order.
    pub turns: Vec<Turn>,
    /// The number of the last record.
    pub last_seq: u64,
    /// The records of compactions.
    pub compactions: Vec<u64>,
    /// The records that report that earlier turns were taken back, without naming them.
    pub reverts: Vec<u64>,
    /// The records that report that others are missing or unreadable.
    pub gaps: Vec<u64>,
    /// The run that has the turns.
    pub(super) run: Option<RunId>,
    /// All events, each with the number of the record that it was made from.
    pub(super) events: Vec<(u64, ExchangeEvent)>,
}

/// A repository, as records describe it.
#[derive(Debug, Default)]
pub struct Repository {
    /// Its top directory.
    pub root: Option<String>,
    /// True if the root is only the session's directory.
    pub root_is_cwd: bool,
    /// The commit at the beginning of the session.
    pub commit: Option<String>,
    /// The commits at each continuation of the session, with the numbers of their records.
    pub commits: Vec<(u64, String)>,
    /// Its remote address.
    pub url: Option<String>,
    /// The snapshots of the working tree.
    pub diffs: Vec<Diff>,
}

/// The difference between a working tree and a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diff {
    /// The number of the record.
    pub seq: u64,
    /// The commit.
    pub base: String,
    /// The artifact.
    pub path: String,
    /// Its SHA-256.
    pub sha256: String,
    /// The time of the snapshot in milliseconds since 1970, if recorded: the agent does not wait for it.
    pub looked_at: Option<i64>,
}

impl Diff {
    /// Returns true if the working tree equals the commit.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.sha256 == EMPTY_SHA256
    }
}

/// The SHA-256 of no bytes.
const EMPTY_SHA256: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

/// Builds a session.
pub struct SessionBuilder {
    session: Session,
    notes: Notes,
    /// The session of the run that has turns.
    events: Option<(RunId, steno_session::SessionBuilder)>,
    /// The number of turns that have begun.
    begun: usize,
    /// The turn to which the user wants to return.
    revert_to: Option<String>,
}

impl SessionBuilder {
    /// Begins a thread.
    #[must_use]
    pub fn new(thread: ThreadId) -> Self {
        let session = Session {
            thread,
            source: None,
            version: None,
            cwd: None,
            parent: None,
            base: None,
            repository: Repository::default(),
            turns: Vec::new(),
            last_seq: 0,
            compactions: Vec::new(),
            reverts: Vec::new(),
            gaps: Vec::new(),
            run: None,
            events: Vec::new(),
        };
        Self { session, notes: Notes::default(), events: None, begun: 0, revert_to: None }
    }

    /// Takes the next record of the spine.
    pub fn record(&mut self, record: &SpineRecord) {
        self.session.last_seq = record.seq.get();
        let Word::Known(record_type) = record.record_type else { return };
        let fields = PayloadFields::parse(record.payload.as_str());
        match record_type {
            SpineType::SessionMeta => self.meta(&fields, record.seq.get()),
            SpineType::ArtifactRef => self.artifact(&fields, record.seq.get()),
            SpineType::CompactionBoundary => self.session.compactions.push(record.seq.get()),
            SpineType::Event => {
                let msg = fields.object("msg");
                if is_of_model(&msg) {
                    let (seq, time) = (record.seq.get(), unix_ms(&record.timestamp));
                    self.notes.model_times.push(ModelTimes { seq, time });
                }
                self.session_message(&msg, record.seq.get());
            }
            SpineType::Submission => {
                let op = fields.object("op");
                if op.text("method").is_some_and(|method| method == "thread/revert") {
                    let turn = op.object("params").text("beforeTurnId");
                    self.revert_to = turn.map(std::borrow::Cow::into_owned);
                }
            }
            SpineType::TurnContext | SpineType::Bridge => {}
        }
        if fields.is_true("turn_id_inferred") {
            self.notes.inferred_from.get_or_insert(self.begun);
        }
    }

    /// Takes a message of the agent about the session.
    fn session_message(&mut self, msg: &PayloadFields<'_>, seq: u64) {
        match msg.text("type").or_else(|| msg.text("method")).as_deref() {
            Some("missing" | "unreadable") => self.session.gaps.push(seq),
            Some("thread_rolled_back") => {
                let turns = msg.json_text("num_turns").and_then(|text| text.parse().ok());
                let (begun, count) = (self.begun, turns.unwrap_or(u64::MAX));
                self.notes.taken_back.push(TakenBack::Last { begun, count });
            }
            Some("thread/reverted") => match self.revert_to.take() {
                Some(id) => self.notes.taken_back.push(TakenBack::From { begun: self.begun, id }),
                None => self.session.reverts.push(seq),
            },
            _ => {}
        }
    }

    fn meta(&mut self, fields: &PayloadFields<'_>, seq: u64) {
        let session = &mut self.session;
        let kind = fields.object("spine_source").text("kind");
        session.source = kind.and_then(|name| SpineSource::named(&name)).or(session.source);
        let text = |name: &str| fields.text(name).map(std::borrow::Cow::into_owned);
        session.version = session.version.take().or_else(|| text("cli_version"));
        session.cwd = session.cwd.take().or_else(|| text("cwd").map(|cwd| plain_path(&cwd)));
        let spawned = fields.object("source").object("subagent").object("thread_spawn");
        let parent =
            text("parent_thread_id").or_else(|| Some(spawned.text("parent_thread_id")?.into_owned()));
        session.parent = session.parent.take().or(parent);
        let base = fields.object("history_base").text("thread_id").map(std::borrow::Cow::into_owned);
        // A session that continues itself in another file has returned to an earlier state.
        if base.as_deref() == Some(session.thread.as_str()) {
            session.reverts.push(seq);
        } else {
            session.base = session.base.take().or(base);
        }
        let commit = fields.object("git").text("commit_hash").map(std::borrow::Cow::into_owned);
        session.repository.commits.extend(commit.map(|commit| (seq, commit)));
    }

    fn artifact(&mut self, fields: &PayloadFields<'_>, seq: u64) {
        let repository = &mut self.session.repository;
        let text =
            |name: &str| fields.text(name).map(std::borrow::Cow::into_owned).filter(|text| !text.is_empty());
        match fields.text("kind").as_deref() {
            Some("git_info") if repository.commit.is_none() => {
                let git = fields.object("git");
                let inside = |name: &str| git.text(name).map(std::borrow::Cow::into_owned);
                repository.root = text("repo_root").map(|root| plain_path(&root));
                repository.root_is_cwd = fields.is_true("repo_root_is_cwd");
                repository.commit = inside("commit_hash");
                repository.url = inside("repository_url");
            }
            Some("git_diff") => {
                let diff = text("base_sha").zip(text("artifact_path")).zip(text("sha256"));
                if let Some(((base, path), sha256)) = diff {
                    let looked_at =
                        fields.text("looked_at").and_then(|time| unix_ms(&Timestamp::parse(&time).ok()?));
                    repository.diffs.push(Diff { seq, base, path, sha256, looked_at });
                }
            }
            _ => {}
        }
    }

    /// Takes the next event, which was made from the record with this number.
    pub fn event(&mut self, event: ExchangeEvent, seq: u64) {
        self.take(&event, seq);
        self.session.events.push((seq, event));
    }

    fn take(&mut self, event: &ExchangeEvent, seq: u64) {
        let Word::Known(event_type) = event.event_type else { return };
        let fields = PayloadFields::of(event);
        let is_turn =
            event_type == EventType::StepStarted && fields.text("kind").is_some_and(|kind| kind == "turn");
        if self.events.is_none() && is_turn {
            let builder = steno_session::SessionBuilder::new(event.run_id, Content::Whole);
            self.events = Some((event.run_id, builder));
        }
        let Some((run, builder)) = &mut self.events else { return };
        if *run == event.run_id {
            self.begun += usize::from(is_turn);
            // A fact of an event refers to the record that it was made from.
            let seq = Seq::new(seq).unwrap_or(event.seq);
            builder.push(&ExchangeEvent { seq, ..event.clone() });
        }
    }

    /// Returns the session.
    #[must_use]
    pub fn finish(self) -> Session {
        let mut session = self.session;
        if let Some((run, builder)) = self.events {
            session.turns = turns_of(&builder.finish(), &self.notes, session.last_seq);
            session.run = Some(run);
        }
        session
    }
}

impl Session {
    /// Returns the policies of a turn for approval and sandbox.
    #[must_use]
    pub(super) fn policy(turn: &Turn) -> Vec<(&'static str, String)> {
        let settings = turn.settings.as_ref().map_or("null", RawJson::as_str);
        let fields = PayloadFields::parse(settings);
        let plain = |name: &str| fields.text(name).map(std::borrow::Cow::into_owned);
        let field = |name: &'static str| {
            let value = plain(name).or_else(|| fields.json_text(name).map(str::to_owned))?;
            (value != "null").then_some((name, value))
        };
        ["approval_policy", "sandbox_policy"].into_iter().filter_map(field).collect()
    }
}

/// Returns true if a message of a connection is a thought or text of the model.
fn is_of_model(msg: &PayloadFields<'_>) -> bool {
    let is_item =
        msg.text("method").is_some_and(|method| matches!(&*method, "item/started" | "item/completed"));
    is_item
        && msg
            .object("params")
            .object("item")
            .text("type")
            .is_some_and(|kind| matches!(&*kind, "agentMessage" | "reasoning"))
}

fn unix_ms(time: &Timestamp) -> Option<i64> {
    Some(time.instant()?.as_millisecond())
}

impl Repository {
    /// Returns its address without user name and password, since a task is passed on.
    #[must_use]
    pub fn public_url(&self) -> Option<String> {
        self.url.as_deref().map(without_credentials)
    }
}

/// Returns the path of a file URL.
pub(super) fn plain_path(text: &str) -> String {
    let path = text.strip_prefix("file://").filter(|rest| rest.starts_with('/'));
    path.map_or_else(|| text.to_owned(), percent_decoded)
}

fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let code = after.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
        let code = code.and_then(|hex| u8::from_str_radix(hex, 16).ok()).filter(|_| *first == b'%');
        bytes.push(code.unwrap_or(*first));
        rest = if code.is_some() { &after[2..] } else { after };
    }
    String::from_utf8(bytes).unwrap_or_else(|_| text.to_owned())
}
