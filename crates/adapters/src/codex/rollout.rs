//! Rollout files, from the bare response items of 0.20 to the paginated history of 0.166.

use std::borrow::Cow;

use serde_json::value::RawValue;
use steno_model::json::{Extra, JsonString, ObjectWriter, RawJson};
use steno_model::{ContentBlock, EntryType, Fidelity, RunId, Timestamp};
use uuid::Uuid;

use super::deltas::is_delta;
use super::events::{event_msg, settings};
use super::items::text_of_part;
use super::notes::{Note, WaitingNotes};
use super::responses::response_item;
use super::session::{Session, thread_run};
use super::usage::{Start, Totals};
use super::wire::{
    CompactionRecord, HistoryBase, Line, RawLine, RetainedItem, SessionMeta, SourceField, TokenUsageRecord,
    TurnContext,
};
use super::{ADAPTER, ENTRY_ADAPTER, PROVIDER};
use crate::adapter::{LeftoverRecord, Mapper, Record, RecordOutcome, Source};
use crate::emit::{AdapterInfo, Emit, push, string};
use crate::run::{Run, derived_run_id};
use crate::shapes::is_text;
use crate::wire::{NoObject, RawField as _, object, parse};

static ABOUT: AdapterInfo = AdapterInfo {
    provider: PROVIDER,
    entry_adapter: ENTRY_ADAPTER,
    adapter: ADAPTER,
    channel: "disk",
    carries: &["prompts", "calls", "results", "thinking", "usage", "compaction", "subagents"],
    detail_name: "rollout_line",
};

/// Records without information about the work: parts of the model's context, which messages repeat.
pub(super) const BOOKKEEPING: [&str; 2] = ["inter_agent_communication_metadata", "world_state"];

/// Records that are facts of the session; their type is the fact's name.
pub(super) const FACTS: [&str; 4] =
    ["dynamic_tools_updated", "inter_agent_communication", "realtime_item", "security_risk_score"];

/// If turns have no ids, records up to this long after the creation of a fork count as copies.
const COPYING_MS_MAX: i64 = 1000;

/// A copy of another thread's records, with which old versions began a fork.
struct CopiedHistory {
    from: RunId,
    /// The creation time of the fork, in milliseconds since 1970.
    since_ms: Option<i64>,
    /// The first ordinal of the thread itself, if the file has it.
    until_ordinal: Option<i64>,
    has_turn_ids: bool,
}

/// A rollout while it is read.
pub(super) struct Rollout {
    source_id: String,
    file_name: Option<String>,
    thread: Option<String>,
    session: Option<Session>,
    copying: Option<CopiedHistory>,
    system_prompt: Option<JsonString>,
    instructions: Option<JsonString>,
    waiting: WaitingNotes,
}

impl Rollout {
    pub(super) fn new(source: &Source) -> Self {
        Self {
            source_id: source.id.to_text().into_owned(),
            file_name: source.file_name.clone(),
            thread: None,
            session: None,
            copying: None,
            system_prompt: None,
            instructions: None,
            waiting: WaitingNotes::default(),
        }
    }

    fn record(&mut self, line: &Line<'_>, text: &str, emit: &mut Emit<'_>) -> RecordOutcome {
        let kind = line.kind.text().unwrap_or_default();
        let is_header = line.kind.is_none() && (line.instructions.is_some() || line.git.is_some());
        let is_meta = kind == "session_meta" || is_header;
        if !is_meta && (BOOKKEEPING.contains(&&*kind) || line.record_type.is_some()) {
            return RecordOutcome::Bookkeeping;
        }
        if let Some(session) = &mut self.session {
            session.begin_record(output_of(line).as_deref(), emit);
        }
        let is_first = self.session.is_none();
        let read = if is_meta { self.session_meta(text, emit) } else { self.of_session(line, text, emit) };
        if let Some(session) = &mut self.session {
            session.end_record(&read);
            if is_first {
                // The run began with this record.
                session.overtake();
            }
        }
        read
    }

    /// Takes a record of a session; without a header the session begins here.
    fn of_session(&mut self, line: &Line<'_>, text: &str, emit: &mut Emit<'_>) -> RecordOutcome {
        let kind = line.kind.text().unwrap_or_default();
        if self.session.is_none() {
            self.open(&SessionMeta::default(), emit);
            self.session_start(emit);
        }
        self.judge_copy(line, emit);
        let Some(session) = self.session.as_mut() else { return RecordOutcome::Bookkeeping };
        match &*kind {
            "response_item" => response_item(session, &line.payload.unwrap_or_default(), emit),
            "event_msg" => event_msg(session, &line.payload.unwrap_or_default(), emit),
            "" => session.unknown("record", emit),
            _ => rare(session, &kind, text, emit),
        }
    }

    fn session_meta(&mut self, text: &str, emit: &mut Emit<'_>) -> RecordOutcome {
        // Up to 0.3x the header was the line itself.
        let payload = parse::<RawLine<'_>>(text).ok().and_then(|line| line.payload);
        let meta: SessionMeta<'_> = parse(payload.map_or(text, RawValue::get)).unwrap_or_default();
        if self.session.is_none() {
            self.open(&meta, emit);
            self.session_start(emit);
            self.prompts_of(&meta, emit);
        } else {
            self.session_again(&meta, emit);
        }
        match &mut self.session {
            Some(session) if !is_readable(&meta) => session.unknown("session_meta", emit),
            Some(_) | None => RecordOutcome::Understood,
        }
    }

    /// Takes a header that is not the file's first.
    fn session_again(&mut self, meta: &SessionMeta<'_>, emit: &mut Emit<'_>) {
        let Some(session) = self.session.as_mut() else { return };
        let id = meta.id.text();
        if id.as_deref() == self.thread.as_deref() || id.is_none() {
            self.copying = None;
            session.fact("resume", None, emit);
            self.prompts_of(meta, emit);
        } else if let Some(from) = id {
            // The first header belongs to the file. Another header comes with a copy of its records, including totals
            // from zero.
            if !session.totals.is_known() {
                session.totals = Totals::new(Start::Zero);
            }
            let from_run = thread_run(&from);
            self.copying = Some(CopiedHistory {
                from: from_run,
                since_ms: self.thread.as_deref().and_then(made_ms),
                until_ordinal: None,
                has_turn_ids: false,
            });
            emit.set_copied_from(Some(from_run));
            let header = RawJson::object(|object| object.string("id", &(&*from).into()));
            session.fact("session_meta", Some(header), emit);
            self.prompts_of(meta, emit);
        }
    }

    /// Finds the thread of the file by its first record, or else by its name.
    fn open(&mut self, meta: &SessionMeta<'_>, emit: &mut Emit<'_>) {
        let named = self.file_name.as_deref().map(ids_of).unwrap_or_default();
        let thread = meta.id.text().map(Cow::into_owned).or(named.thread);
        let parent = parent_of(meta);
        let id = match (&named.rollout, &thread) {
            // After a revert a thread continues in a second file, which needs its own run id.
            (Some(rollout), _) => thread_run(rollout),
            (None, Some(thread)) => thread_run(thread),
            (None, None) => derived_run_id(&[PROVIDER, "rollout", &self.source_id]),
        };
        let mut run = match &parent {
            Some(parent) => Run::subagent(id, thread_run(parent), thread.as_deref().unwrap_or_default()),
            None => Run::main(id),
        };
        // Without a session id, a subagent belongs to the session of its parent thread.
        let session = meta.session_id.text().map(Cow::into_owned).or_else(|| parent.clone());
        run.session = session.or_else(|| thread.clone());
        let forked_from = forked_from(meta);
        let start = if forked_from.is_some() { Start::Unknown } else { Start::Zero };
        if named.rollout.is_some() {
            run.mirrors = thread.as_deref().map(thread_run);
        }
        let begin = |run: &mut Run, emit: &mut Emit<'_>| {
            emit.begin(run, meta.cli_version.string().as_ref(), run_fields(meta, forked_from.clone()));
        };
        for waiter in self.waiting.take(|_| true) {
            waiter.write_at_its_place(&mut run, begin, emit);
        }
        begin(&mut run, emit);
        if let (Some(parent), Some(until)) = (parent, meta.history_start_ordinal.number()) {
            let (from, since_ms) = (thread_run(&parent), thread.as_deref().and_then(made_ms));
            self.copying =
                Some(CopiedHistory { from, since_ms, until_ordinal: Some(until), has_turn_ids: false });
        }
        let session = self.session.insert(Session::new(run, start));
        session.thread.clone_from(&thread);
        self.thread = thread;
    }

    fn session_start(&self, emit: &mut Emit<'_>) {
        if let Some(session) = &self.session {
            emit.entry(&session.run, EntryType::SystemEvent, Some("session_start"));
        }
    }

    /// Writes the system prompt and the instructions when they change.
    fn prompts_of(&mut self, meta: &SessionMeta<'_>, emit: &mut Emit<'_>) {
        let Some(session) = self.session.as_mut() else { return };
        let prompt = meta.base_instructions.and_then(text_of_part);
        if let Some(text) = prompt.filter(|text| self.system_prompt.as_ref() != Some(text)) {
            self.system_prompt = Some(text.clone());
            let mut block = ContentBlock::text(Fidelity::AgentEmitted, text);
            block.extra.push("label", string("system_prompt"));
            emit.user(&session.run, vec![block], Extra::default());
            emit.entry(&session.run, EntryType::UserMessage, None);
        }
        let instructions = meta.instructions.string();
        if let Some(text) = instructions.filter(|text| self.instructions.as_ref() != Some(text)) {
            session.fact("instructions", Some(text.to_json()), emit);
            self.instructions = Some(text);
        }
    }

    /// Marks copied records, and finds the end of the copy: the first turn that is younger than the thread.
    fn judge_copy(&mut self, line: &Line<'_>, emit: &mut Emit<'_>) {
        if let Some(session) = &mut self.session {
            session.copied_from = None;
        }
        let Some(copying) = &mut self.copying else { return };
        let turn = line.payload.and_then(|payload| payload.turn_id.text());
        let turn_ms = turn.as_deref().and_then(made_ms);
        copying.has_turn_ids |= turn_ms.is_some();
        let is_over = match (copying.until_ordinal, line.ordinal.number()) {
            (Some(until), Some(ordinal)) => ordinal >= until,
            _ => match (turn_ms, copying.since_ms) {
                (Some(turn), Some(since)) => turn >= since,
                (None, Some(since)) if !copying.has_turn_ids => {
                    let written =
                        line.timestamp.string().map(Timestamp::from_record).and_then(|time| time.instant());
                    written.is_some_and(|time| time.as_millisecond() > since + COPYING_MS_MAX)
                }
                _ => false,
            },
        };
        let from = (!is_over).then_some(copying.from);
        if is_over {
            self.copying = None;
        }
        emit.set_copied_from(from);
        if let Some(session) = &mut self.session {
            session.copied_from = from;
        }
    }
}

impl Mapper for Rollout {
    fn about(&self) -> &'static AdapterInfo {
        &ABOUT
    }

    fn record(&mut self, record: Record<'_>, emit: &mut Emit<'_>) -> Result<RecordOutcome, NoObject> {
        let line: Line<'_> = parse(record.text)?;
        emit.set_time(line.timestamp.string());
        if emit.is_known(None) {
            return Ok(RecordOutcome::Understood);
        }
        Ok(self.record(&line, record.text, emit))
    }

    fn unreadable(&mut self, why: &str, emit: &mut Emit<'_>) {
        let note = Note::Unreadable(why.to_owned());
        if let Some(session) = &mut self.session {
            session.begin_record(None, emit);
            note.write(&session.run, None, emit);
            session.end_record(&RecordOutcome::Understood);
        } else if !self.waiting.keep(None, note, emit) {
            self.open(&SessionMeta::default(), emit);
        }
    }

    fn run(&self) -> Option<&Run> {
        self.session.as_ref().map(|session| &session.run)
    }

    fn rest<'a>(&'a self, text: &'a str) -> LeftoverRecord<'a> {
        let line: Line<'_> = parse(text).unwrap_or_default();
        if is_delta(&line.payload.unwrap_or_default()) {
            return LeftoverRecord::Delta;
        }
        self.run().map_or(LeftoverRecord::Waiting, |run| LeftoverRecord::Unknown { run, detail: text })
    }

    fn finish(&mut self, emit: &mut Emit<'_>) {
        if self.session.is_none() && !self.waiting.is_empty() {
            self.open(&SessionMeta::default(), emit);
        }
        if let Some(session) = &mut self.session {
            session.finish(emit);
        }
    }
}

/// Returns the id of the call whose output is in a line.
fn output_of<'a>(line: &Line<'a>) -> Option<Cow<'a, str>> {
    let item = line.payload.filter(|_| line.kind.is("response_item"))?;
    item.call_id.text().filter(|_| item.kind.text().is_some_and(|kind| kind.ends_with("_output")))
}

/// Reads a line of a rare kind a second time, with its own shape.
fn rare(session: &mut Session, kind: &str, text: &str, emit: &mut Emit<'_>) -> RecordOutcome {
    let Some(payload) = parse::<RawLine<'_>>(text).ok().and_then(|line| line.payload) else {
        // Up to 0.3x a line was the response item itself.
        return response_item(session, &parse(text).unwrap_or_default(), emit);
    };
    let is_read = match kind {
        "turn_context" => turn_context(session, payload, emit),
        "compacted" => compacted(session, payload, emit),
        "retained_context" => retained(session, payload, emit),
        "token_usage_record" => {
            let record: TokenUsageRecord<'_> = object(payload).unwrap_or_default();
            let exact = record.response_id.string().zip(record.usage.json());
            let is_read = exact.is_some();
            if let Some((response, usage)) = exact {
                session.use_exactly(&response, usage, emit);
            }
            is_read
        }
        _ if FACTS.contains(&kind) => {
            session.fact(kind, Some(RawJson::from_raw(payload)), emit);
            true
        }
        _ => false,
    };
    if is_read { RecordOutcome::Understood } else { session.unknown(kind, emit) }
}

/// Returns true if a header has an id and its fields have the expected kinds.
fn is_readable(meta: &SessionMeta<'_>) -> bool {
    let prompt = meta.base_instructions;
    let is_prompt = prompt.json().is_none() || prompt.and_then(text_of_part).is_some();
    meta.id.string().is_some() && is_prompt && is_text(meta.instructions) && is_text(meta.cli_version)
}

/// Takes the settings of a turn; false if there are none.
fn turn_context(session: &mut Session, payload: &RawValue, emit: &mut Emit<'_>) -> bool {
    let context: TurnContext<'_> = object(payload).unwrap_or_default();
    session.model = context.model.json().or(session.model.take());
    let turn_settings = settings(&[
        ("model", context.model),
        ("effort", context.effort),
        ("approval_policy", context.approval_policy),
        ("sandbox_policy", context.sandbox_policy),
        ("cwd", context.cwd),
    ]);
    let is_read = turn_settings.as_str() != "{}";
    session.take_settings(turn_settings, emit);
    is_read
}

/// Writes the start and the end of a compaction. The remaining history is a copy, which the evidence has. False if the
/// record has no such history.
fn compacted(session: &mut Session, payload: &RawValue, emit: &mut Emit<'_>) -> bool {
    let compacted: CompactionRecord<'_> = object(payload).unwrap_or_default();
    let summary = compacted.message.string().filter(|text| !text.is_empty());
    let mut extra = Extra::default();
    if summary.is_none() {
        // The provider made the compaction and encrypted the summary.
        extra.push("summary_encrypted", RawJson::from(true));
    }
    push(&mut extra, "window_id", compacted.window_id.json());
    push(&mut extra, "response", compacted.response_id.json());
    session.compactions += 1;
    session.compaction(summary.as_ref().map(JsonString::to_json), extra, emit);
    compacted.message.is_some() && is_text(compacted.message)
}

/// Takes content that compactions keep: an answer of the user to a question of the model, or a fact. False if it has no
/// kind.
fn retained(session: &mut Session, payload: &RawValue, emit: &mut Emit<'_>) -> bool {
    let retained: RetainedItem<'_> = object(payload).unwrap_or_default();
    let Some(kind) = retained.kind.string() else { return false };
    match retained.call_id.string().filter(|_| retained.kind.is("verified_answer")) {
        Some(call) => session.answered(&kind, &call, RawJson::from_raw(payload), emit),
        None => session.fact("retained_context", Some(RawJson::from_raw(payload)), emit),
    }
    true
}

fn parent_of(meta: &SessionMeta<'_>) -> Option<String> {
    let source = meta.source.and_then(object::<SourceField<'_>>).and_then(|source| source.subagent);
    let spawn = source.and_then(|source| source.spawn).and_then(|spawn| spawn.parent_thread_id);
    spawn.or(meta.parent_thread_id).text().map(Cow::into_owned)
}

/// Returns the run that a fork continues, and the ordinal at which it was forked.
fn forked_from(meta: &SessionMeta<'_>) -> Option<RawJson> {
    let base: HistoryBase<'_> = meta.history_base.and_then(object).unwrap_or_default();
    let thread = meta.forked_from_id.text().or_else(|| base.thread_id.text())?;
    let ordinal = meta.forked_from_ordinal.json().or_else(|| base.end_ordinal.json());
    Some(RawJson::object(|object| {
        object.run_id("run_id", &thread_run(&thread));
        object.optional("ordinal", ordinal.as_ref(), ObjectWriter::json);
    }))
}

fn run_fields(meta: &SessionMeta<'_>, forked_from: Option<RawJson>) -> Extra {
    let mut extra = Extra::default();
    push(&mut extra, "cwd", meta.cwd.json());
    push(&mut extra, "originator", meta.originator.json());
    push(&mut extra, "model_provider", meta.model_provider.json());
    push(&mut extra, "git", meta.git.json());
    push(&mut extra, "agent_nickname", meta.agent_nickname.json());
    push(&mut extra, "agent_role", meta.agent_role.json());
    push(&mut extra, "forked_from", forked_from);
    extra
}

/// The ids in a rollout's name: `rollout-2026-11-15T07-22-55-<thread>[_<rollout>].jsonl`.
#[derive(Default)]
struct NamedIds {
    thread: Option<String>,
    rollout: Option<String>,
}

fn ids_of(file_name: &str) -> NamedIds {
    const PREFIX: &str = "rollout-0000-00-00T00-00-00-";
    let stem = file_name.split('.').next().unwrap_or_default();
    let Some(ids) = stem.get(PREFIX.len()..).filter(|_| stem.starts_with("rollout-")) else {
        return NamedIds::default();
    };
    let uuid = |id: &str| Uuid::parse_str(id).is_ok().then(|| id.to_owned());
    match ids.split_once('_') {
        Some((thread, rollout)) => NamedIds { thread: uuid(thread), rollout: uuid(rollout) },
        None => NamedIds { thread: uuid(ids), rollout: None },
    }
}

/// Returns the creation time in an id, in milliseconds since 1970, if it is a UUID of version 7.
fn made_ms(id: &str) -> Option<i64> {
    let (seconds, nanos) =
        Uuid::parse_str(id).ok().filter(|id| id.get_version_num() == 7)?.get_timestamp()?.to_unix();
    i64::try_from(seconds).ok()?.checked_mul(1000)?.checked_add(i64::from(nanos / 1_000_000))
}
