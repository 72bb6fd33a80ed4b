//! A session as windows are cut from it: its turns, and what is known of where it worked.
//!
//! Two streams make it: the records of a spine, which have what lies around the session, and the events that an adapter
//! makes of them, which have what was said and done.

use steno_model::json::RawJson;
use steno_model::{
    EventType, ExchangeEvent, RunId, Seq, SpineRecord, SpineType, ThreadId, Timestamp, Word,
    without_credentials,
};

use super::turn::{ModelTimes, Notes, TakenBack, Turn, turns_of};
use steno_model::SpineSource;
use steno_session::{Content, PayloadFields};

/// What is known of a session.
#[derive(Debug)]
pub struct Session {
    /// The thread.
    pub thread: ThreadId,
    /// What its spine was made from.
    pub source: Option<SpineSource>,
    /// The agent's version, as the session says.
    pub version: Option<String>,
    /// Where the session worked.
    pub cwd: Option<String>,
    /// The thread that began this one; then its prompts are another model's words.
    pub parent: Option<String>,
    /// The thread whose history this one goes on with.
    pub base: Option<String>,
    /// The repository.
    pub repository: Repository,
    /// The turns, in order.
    pub turns: Vec<Turn>,
    /// The number of the last record.
    pub last_seq: u64,
    /// The records that say that the history was replaced.
    pub compactions: Vec<u64>,
    /// The records that say that turns before them were taken back, and not which.
    pub reverts: Vec<u64>,
    /// The records that say that others are missing, or could not be read.
    pub gaps: Vec<u64>,
    /// The run that has the turns.
    pub(super) run: Option<RunId>,
    /// All events, each with the number of the record that it was made of.
    pub(super) events: Vec<(u64, ExchangeEvent)>,
}

/// A repository, as records tell of it.
#[derive(Debug, Default)]
pub struct Repository {
    /// Its top directory.
    pub root: Option<String>,
    /// Whether the root is only where the session worked.
    pub root_is_cwd: bool,
    /// What was checked out when the session began.
    pub commit: Option<String>,
    /// What was checked out when the session was gone on with, by the numbers of the records that say so.
    pub commits: Vec<(u64, String)>,
    /// Where it comes from.
    pub url: Option<String>,
    /// How the working tree differed from a commit, each time somebody looked.
    pub diffs: Vec<Diff>,
}

/// How a working tree differed from a commit.
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
    /// When it was looked at, in milliseconds since 1970, where that is recorded: the agent goes on meanwhile.
    pub looked_at: Option<i64>,
}

impl Diff {
    /// Tells whether nothing differed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.sha256 == EMPTY_SHA256
    }
}

/// The SHA-256 of nothing.
const EMPTY_SHA256: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

/// Puts a session together.
pub struct SessionBuilder {
    session: Session,
    notes: Notes,
    /// The session of the run that has turns.
    events: Option<(RunId, steno_session::SessionBuilder)>,
    /// How many turns have begun.
    begun: usize,
    /// The turn that somebody wants to go back to.
    revert_to: Option<String>,
}

impl SessionBuilder {
    /// Begins with a thread.
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

    /// Takes a message of the agent about the session itself.
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
        // A session that goes on from itself, in another file, has been taken back to an earlier place.
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

    /// Takes the next event that was made of the record with a number.
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
            // What is said of an event names the record that it was made of.
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
    /// Returns what a turn was allowed to do, as it says: policies of approval and of the sandbox.
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

/// Tells whether a message of a connection is what the model thinks or says.
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
    /// Returns where it comes from, without a name and a password: a task is handed on.
    #[must_use]
    pub fn public_url(&self) -> Option<String> {
        self.url.as_deref().map(without_credentials)
    }
}

/// Takes a path out of an address of a file.
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
