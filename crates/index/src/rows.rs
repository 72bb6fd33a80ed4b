//! The rows of the index, as its callers see them.

use steno_model::{RunId, Seq, Timestamp};
use steno_session::Outcome;
use steno_session::usage::{Dollars, TokenUsage, Tokens};
use steno_views::digest::{CallDigest, DigestState, SessionDigest, TextKind};

use crate::terms::Terms;
use crate::used_by_model;

/// How a transcript looked when it was read. An unchanged file has the same mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunMark {
    /// Its inode.
    pub inode: u64,
    /// Its length.
    pub size: u64,
    /// When its inode last changed, in nanoseconds since 1970.
    pub changed: i64,
}

/// A run, and how far it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunRow {
    /// The run.
    pub run: RunId,
    /// The run that started it.
    pub parent: Option<RunId>,
    /// The session that it shows, if that has another id.
    pub shows: Option<RunId>,
    /// The source in the vault that it was made from.
    pub source: Option<String>,
    /// The provider of the agent.
    pub provider: Option<String>,
    /// On which channel it was recorded.
    pub channel: Option<String>,
    /// The adapter that made it.
    pub adapter: Option<String>,
    /// The directory that the agent worked in.
    pub directory: Option<String>,
    /// When it began.
    pub started: Option<Timestamp>,
    /// How its file looked.
    pub mark: RunMark,
    /// How many bytes of whole lines were read.
    pub bytes: u64,
    /// The number of the last event.
    pub seq_last: u64,
    /// The checksum of the last line.
    pub crc: u32,
    /// Its state without a writer: `empty`, `completed`, `failed`, `open`, `damaged` or `unreadable`.
    pub state: String,
    /// What is wrong with it.
    pub damage: Option<String>,
}

/// A session as it is put into the index.
#[derive(Clone, Debug)]
pub struct IndexedSession {
    /// What lists say of it.
    pub digest: SessionDigest,
    /// The root of the repository that the agent worked in, else its directory.
    pub project: Option<String>,
    /// Its top-level session.
    pub root: RunId,
    /// How many events its runs have.
    pub events: u64,
    /// How long its transcripts are.
    pub bytes: u64,
    /// Its calls.
    pub calls: Vec<CallRow>,
    /// Its texts.
    pub texts: Vec<TextRow>,
}

/// A call of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallRow {
    /// The run and event that report it.
    pub at: (RunId, Seq),
    /// When.
    pub at_ms: Option<i64>,
    /// How it ended.
    pub outcome: Outcome,
    /// The rest.
    pub digest: CallDigest,
}

/// A text of a session, by its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextRow {
    /// The run and event that it stands in.
    pub at: (RunId, Seq),
    /// Which block of a message it is.
    pub block: u32,
    /// What it is.
    pub kind: TextKind,
    /// The number of the call that it belongs to.
    pub call: Option<u64>,
    /// Where its line begins.
    pub offset: u64,
    /// How long its line is.
    pub length: u64,
    /// The checksum of its line.
    pub crc: u32,
    /// Its terms; `None` for outputs, which a search reads from the transcript.
    pub terms: Option<Terms>,
}

/// A session as the index lists it.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionRow {
    /// What lists say of it. Calls, failures, denials and usage include the sessions below it.
    pub digest: SessionDigest,
    /// The root of the repository that the agent worked in, else its directory.
    pub project: Option<String>,
    /// Its top-level session.
    pub root: RunId,
    /// How many sessions are below it.
    pub children: u64,
    /// How many events its runs have.
    pub events: u64,
    /// How long its transcripts are.
    pub bytes: u64,
    /// The runs below it, with their events and bytes.
    pub below: Below,
}

/// The size of the runs below a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Below {
    /// How many runs.
    pub runs: u64,
    /// How many events they have.
    pub events: u64,
    /// How long their transcripts are.
    pub bytes: u64,
}

impl SessionRow {
    /// Adds a session that is below this one.
    pub(crate) fn add_below(&mut self, other: &Self) {
        self.children += 1;
        self.below.runs += other.digest.runs;
        self.below.events += other.events;
        self.below.bytes += other.bytes;
        self.digest.add_below(&other.digest);
    }
}

/// Returns the name of an outcome.
pub(crate) fn outcome_name(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Open => "open",
        Outcome::Ok => "ok",
        Outcome::Failed => "failed",
        Outcome::Denied => "denied",
        Outcome::Interrupted => "interrupted",
        Outcome::Unknown => "unknown",
    }
}

/// Returns the number that stands for a kind of text.
pub(crate) fn kind_number(kind: TextKind) -> i64 {
    TextKind::ALL
        .into_iter()
        .position(|known| known == kind)
        .map_or(-1, |place| i64::try_from(place).unwrap_or(-1))
}

/// Reads a session from a row of the table.
pub(crate) fn session_row(row: &rusqlite::Row<'_>) -> rusqlite::Result<SessionRow> {
    let id = |name: &str| -> rusqlite::Result<Option<RunId>> {
        Ok(row.get::<_, Option<String>>(name)?.and_then(|text| RunId::parse(&text).ok()))
    };
    let needed = |id: Option<RunId>| id.ok_or(rusqlite::Error::InvalidQuery);
    let time = |name: &str| -> rusqlite::Result<Option<Timestamp>> {
        Ok(row.get::<_, Option<String>>(name)?.and_then(|text| Timestamp::parse(&text).ok()))
    };
    let count = |name: &str| -> rusqlite::Result<u64> { Ok(row.get::<_, i64>(name)?.cast_unsigned()) };
    let models: String = row.get("models")?;
    let usage = row.get::<_, Option<bool>>("exact")?.map(|is_exact| -> rusqlite::Result<TokenUsage> {
        let tokens = Tokens {
            input: count("input_tokens")?,
            output: count("output_tokens")?,
            cache_read: count("cache_read_tokens")?,
            cache_write: count("cache_write_tokens")?,
            cache_write_1h: count("cache_write_1h_tokens")?,
            reasoning: count("reasoning_tokens")?,
        };
        Ok(TokenUsage { responses: count("responses")?, tokens, is_lower_bound: !is_exact })
    });
    let digest = SessionDigest {
        id: needed(id("session")?)?,
        parent: id("parent")?,
        forked_from: id("forked_from")?,
        provider: row.get("provider")?,
        name: row.get("name")?,
        kind: row.get("kind")?,
        version: row.get("version")?,
        models: models.split('\n').filter(|model| !model.is_empty()).map(str::to_owned).collect(),
        title: row.get("title")?,
        is_own_title: row.get("own_title")?,
        directory: row.get("directory")?,
        branch: row.get("branch")?,
        started_at: time("started_at")?,
        last_at: time("last_at")?,
        state: DigestState::parse(&row.get::<_, String>("state")?).unwrap_or(DigestState::Open),
        prompts: count("prompts")?,
        responses: count("responses")?,
        calls: count("calls")?,
        failures: count("failures")?,
        denials: count("denials")?,
        usage: usage.transpose()?,
        used_by_model: used_by_model::from_text(&row.get::<_, String>("used_by_model")?),
        agent_cost: row.get::<_, Option<String>>("agent_cost")?.and_then(|cost| Dollars::parse(&cost)),
        runs: count("runs")?,
    };
    Ok(SessionRow {
        digest,
        project: row.get("project")?,
        root: needed(id("root")?)?,
        children: 0,
        events: count("events")?,
        bytes: count("bytes")?,
        below: Below::default(),
    })
}
