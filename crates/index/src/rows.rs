//! The rows of the index, as its callers see them.

use rusqlite::types::FromSql;
use steno_model::{RunId, Seq, Timestamp};
use steno_session::Outcome;
use steno_session::usage::{Dollars, ModelUsage, TokenUsage, Tokens};
use steno_views::digest::{CallDigest, DigestState, SessionDigest, SumsBelow, TextKind};

use crate::terms::Terms;
use crate::{SessionUsageParts, used_by_model};

/// How a file looked when it was read: an unchanged file has the same mark. The mark of a run covers its transcript and
/// its seals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunMark {
    /// The inode; of a run, that of its transcript.
    pub inode: u64,
    /// The length; of a run, that of both files together.
    pub size: u64,
    /// When the inode last changed, in nanoseconds since 1970; of a run, the later of both.
    pub changed: i64,
}

/// A run, and how far it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunRow {
    /// The run.
    pub run: RunId,
    /// The run that started it.
    pub parent: Option<RunId>,
    /// The session that it names, if that has another id.
    pub shows: Option<RunId>,
    /// The session that has its ids, if it names none.
    pub shows_by_ids: Option<RunId>,
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
    /// What lists show of it.
    pub digest: SessionDigest,
    /// The root of the repository that the agent worked in, else its directory.
    pub project: Option<String>,
    /// Its top-level session.
    pub root: RunId,
    /// What its usage is made of, if that depends on the sessions below it.
    pub usage_parts: Option<SessionUsageParts>,
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
    /// The run and event that contain it.
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
    /// What lists show of it. Calls, failures, denials and usage include the sessions below it.
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
    pub(crate) fn add_below(&mut self, other: &RowBelow) {
        self.children += 1;
        self.below.runs += other.below.runs;
        self.below.events += other.below.events;
        self.below.bytes += other.below.bytes;
        self.digest.add_below(&other.sums);
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

/// The columns of a session, in the order in which [`session_row`] reads them.
pub(crate) const SESSION_COLUMNS: &str = "session, root, parent, forked_from, provider, name, kind, version, \
     models, title, own_title, directory, project, branch, started_at, started_ms, last_at, last_ms, state, prompts, \
     responses, calls, failures, denials, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, \
     cache_write_1h_tokens, reasoning_tokens, exact, used_by_model, agent_cost, runs, events, bytes";

/// The columns that a session adds to its top-level session, in the order in which [`row_below`] reads them.
pub(crate) const BELOW_COLUMNS: &str = "root, last_at, last_ms, responses, calls, failures, denials, input_tokens, \
     output_tokens, cache_read_tokens, cache_write_tokens, cache_write_1h_tokens, reasoning_tokens, exact, \
     used_by_model, runs, events, bytes";

/// Returns tokens as values of the columns; null if there are none.
pub(crate) fn numbers_of(tokens: Option<Tokens>) -> [Option<i64>; 6] {
    tokens.map_or([None; 6], |tokens| counts_of(tokens).map(|count| Some(count.cast_signed())))
}

/// Returns tokens in the order of the columns.
pub(crate) fn counts_of(tokens: Tokens) -> [u64; 6] {
    let Tokens { input, output, cache_read, cache_write, cache_write_1h, reasoning } = tokens;
    [input, output, cache_read, cache_write, cache_write_1h, reasoning]
}

/// Reads tokens in the order of the columns.
pub(crate) fn read_numbers<E>(mut next: impl FnMut() -> Result<u64, E>) -> Result<Tokens, E> {
    Ok(Tokens {
        input: next()?,
        output: next()?,
        cache_read: next()?,
        cache_write: next()?,
        cache_write_1h: next()?,
        reasoning: next()?,
    })
}

/// The columns of a row from left to right. Looking up each column by its name would take most of the time of a list.
struct Columns<'a> {
    row: &'a rusqlite::Row<'a>,
    next: usize,
}

impl Columns<'_> {
    fn read<T: FromSql>(&mut self) -> rusqlite::Result<T> {
        self.next += 1;
        self.row.get(self.next - 1)
    }

    fn text(&mut self) -> rusqlite::Result<Option<&str>> {
        self.next += 1;
        Ok(self.row.get_ref(self.next - 1)?.as_str_or_null()?)
    }

    fn id(&mut self) -> rusqlite::Result<Option<RunId>> {
        Ok(self.text()?.and_then(|text| RunId::parse(text).ok()))
    }

    /// Reads a time, and skips the column with its milliseconds.
    fn time(&mut self) -> rusqlite::Result<Option<Timestamp>> {
        let time = self.text()?.and_then(|text| Timestamp::parse(text).ok());
        self.next += 1;
        Ok(time)
    }

    fn count(&mut self) -> rusqlite::Result<u64> {
        Ok(self.read::<Option<i64>>()?.unwrap_or(0).cast_unsigned())
    }

    /// Reads the tokens of some responses, as a sum and by model.
    fn usage(&mut self, responses: u64) -> rusqlite::Result<(Option<TokenUsage>, Vec<ModelUsage>)> {
        let tokens = read_numbers(|| self.count())?;
        let is_exact: Option<bool> = self.read()?;
        let by_model = used_by_model::from_text(self.text()?.unwrap_or_default());
        let usage = is_exact.map(|is_exact| TokenUsage { responses, tokens, is_lower_bound: !is_exact });
        Ok((usage, by_model))
    }

    fn sizes(&mut self) -> rusqlite::Result<Below> {
        Ok(Below { runs: self.count()?, events: self.count()?, bytes: self.count()? })
    }
}

/// Reads a session from a row with [`SESSION_COLUMNS`].
pub(crate) fn session_row(row: &rusqlite::Row<'_>) -> rusqlite::Result<SessionRow> {
    let mut columns = Columns { row, next: 0 };
    let needed = |id: Option<RunId>| id.ok_or(rusqlite::Error::InvalidQuery);
    let (id, root) = (needed(columns.id()?)?, needed(columns.id()?)?);
    let (parent, forked_from) = (columns.id()?, columns.id()?);
    let (provider, name, kind, version) =
        (columns.read()?, columns.read()?, columns.read()?, columns.read()?);
    let models = columns.text()?.unwrap_or_default();
    let models = models.split('\n').filter(|model| !model.is_empty()).map(str::to_owned).collect();
    let (title, is_own_title) = (columns.read()?, columns.read()?);
    let (directory, project, branch) = (columns.read()?, columns.read()?, columns.read()?);
    let (started_at, last_at) = (columns.time()?, columns.time()?);
    let state = columns.text()?.and_then(DigestState::parse).unwrap_or(DigestState::Open);
    let (prompts, responses) = (columns.count()?, columns.count()?);
    let (calls, failures, denials) = (columns.count()?, columns.count()?, columns.count()?);
    let (usage, used_by_model) = columns.usage(responses)?;
    let agent_cost = columns.text()?.and_then(Dollars::parse);
    let Below { runs, events, bytes } = columns.sizes()?;
    let digest = SessionDigest {
        id,
        parent,
        forked_from,
        provider,
        name,
        own_name: None,
        kind,
        version,
        models,
        title,
        is_own_title,
        directory,
        branch,
        started_at,
        last_at,
        state,
        prompts,
        responses,
        calls,
        failures,
        denials,
        usage,
        used_by_model,
        agent_cost,
        runs,
    };
    Ok(SessionRow { digest, project, root, children: 0, events, bytes, below: Below::default() })
}

/// What a session adds to its top-level session.
pub(crate) struct RowBelow {
    pub(crate) root: RunId,
    sums: SumsBelow,
    below: Below,
}

/// Reads a session from a row with [`BELOW_COLUMNS`].
pub(crate) fn row_below(row: &rusqlite::Row<'_>) -> rusqlite::Result<RowBelow> {
    let mut columns = Columns { row, next: 0 };
    let root = columns.id()?.ok_or(rusqlite::Error::InvalidQuery)?;
    let last_at = columns.time()?;
    let responses = columns.count()?;
    let (calls, failures, denials) = (columns.count()?, columns.count()?, columns.count()?);
    let (usage, used_by_model) = columns.usage(responses)?;
    let sums = SumsBelow { calls, failures, denials, usage, used_by_model, last_at };
    Ok(RowBelow { root, sums, below: columns.sizes()? })
}
