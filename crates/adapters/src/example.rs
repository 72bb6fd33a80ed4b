//! A complete adapter of an agent that does not exist, for `docs/adapters/writing.md`. It is compiled for tests only.
//!
//! The agent prints a line for each thing that happens. A real adapter is a folder: `mod.rs` with the descriptions and
//! constructors, `wire.rs` with the types, and a file for each part of the mapping.

use steno_model::json::{Extra, RawJson};
use steno_model::{BlockContent, ContentBlock, EntryType, Fidelity};

use crate::adapter::{Adapter, Mapper, Record, RecordOutcome, Source};
use crate::emit::{AdapterInfo, Answer, CallReport, Emit, EndedBy, Outcome, TurnEnd, push, string};
use crate::pending::{PendingKind, PendingRecords};
use crate::run::{Class, Run, derived_run_id, run_id_of};
use crate::wire::{NoObject, RawField as _, WireObject as _, parse, wire};

const PROVIDER: &str = "example";

/// Records without information about the work. The agent's page explains each, and a test compares this list.
const BOOKKEEPING: [&str; 2] = ["heartbeat", "window"];

static STREAM: AdapterInfo = AdapterInfo {
    provider: PROVIDER,
    entry_adapter: "example_cli",
    adapter: "example/1",
    channel: "stream",
    carries: &["prompts", "calls", "results", "usage"],
    detail_name: "stream_event",
};

wire! {
    /// A line of the output; `as` names the kind of value that the agent writes there.
    struct ExampleLine {
        kind: "kind" as Text,
        session: "session" as Text,
        time: "time" as Text,
        message: "message" as Text,
        text: "text" as Text,
        stop_reason: "stop_reason" as Text,
        usage: "usage" as Object,
        call: "call" as Text,
        tool: "tool" as Text,
        input: "input",
        output: "output",
        status: "status" as Text,
        exit_code: "exit_code",
    }
}

/// Reads what the agent prints. The session's own file would be the session's main run.
fn stream(source: Source) -> Adapter {
    let mapper = ExampleStream {
        source: source.id.to_text().into_owned(),
        run: None,
        waiting: PendingRecords::default(),
    };
    Adapter::new(source, Box::new(mapper))
}

/// The output while it is read.
struct ExampleStream {
    source: String,
    run: Option<Run>,
    /// Records that came before the session's name.
    waiting: PendingRecords,
}

impl ExampleStream {
    /// Opens the run, and reads what has waited for it.
    fn open(&mut self, session: Option<&str>, emit: &mut Emit<'_>) {
        let mut run = Run::main(derived_run_id(&[PROVIDER, "stream", &self.source]));
        if let Some(session) = session {
            run.mirrors = Some(run_id_of(PROVIDER, session));
            run = run.of_session(session);
        }
        self.run = Some(run);
        for waiter in self.waiting.take() {
            emit.release(&waiter.record, |emit| match waiter.what {
                PendingKind::Unreadable(why) => self.unreadable(&why, emit),
                PendingKind::Record(_) => {
                    let line: ExampleLine<'_> = parse(waiter.record.text()).unwrap_or_default();
                    let outcome = self.line(&line, emit);
                    emit.read_late(outcome);
                }
            });
        }
    }

    fn line(&mut self, line: &ExampleLine<'_>, emit: &mut Emit<'_>) -> RecordOutcome {
        let Some(run) = &mut self.run else { return RecordOutcome::Waiting };
        let kind = line.kind.text().unwrap_or_default();
        if BOOKKEEPING.contains(&&*kind) {
            return RecordOutcome::Bookkeeping;
        }
        // The first record that gives an event also gives `run.started`.
        emit.begin(run, None, Extra::default());
        let is_read = match &*kind {
            "start" => {
                emit.entry(run, EntryType::SystemEvent, Some("session_start"));
                true
            }
            "prompt" => prompt(run, line, emit),
            "say" => say(run, line, emit),
            "call" => call(run, line, emit),
            "result" => result(run, line, emit),
            "done" => {
                emit.end_turn(run, TurnEnd::plain(EndedBy::Record));
                emit.entry(run, EntryType::SystemEvent, Some("turn_end"));
                true
            }
            _ => false,
        };
        // A record with a field of another kind is read as far as possible, and reported.
        if is_read && !line.is_odd() {
            return RecordOutcome::Understood;
        }
        let name = if kind.is_empty() { "untyped" } else { &*kind };
        emit.unknown(run, name, None);
        emit.entry(run, EntryType::Unknown, None);
        RecordOutcome::Unknown(name.to_owned())
    }
}

/// Takes a prompt: the turn begins, then the message follows. A turn that is open ends with `ended_by` `prompt`.
fn prompt(run: &mut Run, line: &ExampleLine<'_>, emit: &mut Emit<'_>) -> bool {
    let Some(text) = line.text.string() else { return false };
    emit.begin_turn(run, None, None);
    emit.user(run, vec![ContentBlock::text(Fidelity::AgentEmitted, text)], Extra::default());
    emit.entry(run, EntryType::UserMessage, None);
    true
}

/// Takes what the model said, with its usage as the agent counts it.
fn say(run: &mut Run, line: &ExampleLine<'_>, emit: &mut Emit<'_>) -> bool {
    let Some(text) = line.text.string() else { return false };
    let mut extra = Extra::default();
    push(&mut extra, "response", line.message.json());
    push(&mut extra, "stop_reason", line.stop_reason.json());
    if let Some(usage) = line.usage.json() {
        extra.push("usage", usage);
        extra.push("usage_scope", string("response"));
        extra.push("final", RawJson::from(true));
    }
    let has_usage = line.usage.json().is_some();
    emit.assistant(run, vec![ContentBlock::text(Fidelity::AgentEmitted, text)], extra);
    emit.entry(run, EntryType::AssistantMessage, None);
    if has_usage {
        emit.entry(run, EntryType::TokenUsage, None);
    }
    true
}

/// Takes a call: a `tool_use` block in a message of its response, and `tool.call`.
fn call(run: &mut Run, line: &ExampleLine<'_>, emit: &mut Emit<'_>) -> bool {
    let Some((id, name)) = line.call.string().zip(line.tool.string()) else { return false };
    if run.calls.get(&id.to_text()).is_some() {
        // One call for each id: a copy adds nothing.
        return true;
    }
    let class = match &*name.to_text() {
        "shell" => Class::Command,
        "write_file" => Class::FileChange,
        _ => Class::Other,
    };
    let input = line.input.json().unwrap_or_else(RawJson::null);
    let block = BlockContent::ToolUse {
        tool_name: Some(name.clone()),
        tool_id: Some(id.clone()),
        tool_input: Some(input.clone()),
    };
    let mut extra = Extra::default();
    push(&mut extra, "response", line.message.json());
    emit.assistant(run, vec![ContentBlock::new(Fidelity::AgentEmitted, block)], extra);
    emit.call(run, &id, CallReport::new(name, class, input));
    emit.entry(run, EntryType::ToolUse, None);
    true
}

/// Takes the result of a call. If the call was not seen, `emit` writes it first, marked `input_available: false`.
fn result(run: &mut Run, line: &ExampleLine<'_>, emit: &mut Emit<'_>) -> bool {
    let Some(id) = line.call.string() else { return false };
    if run.calls.get(&id.to_text()).is_some_and(|call| call.is_answered) {
        // One result for each call.
        return false;
    }
    let outcome = match line.status.text().as_deref() {
        Some("ok") => Outcome::Ok,
        Some("error") => Outcome::Failed,
        Some("refused") => Outcome::Denied,
        Some(_) | None => Outcome::Unknown,
    };
    let mut answer = Answer::new(line.output.json().unwrap_or_else(RawJson::null), outcome);
    answer.exit_code = line.exit_code.number();
    emit.result(run, &id, "", answer);
    emit.entry(run, EntryType::ToolResult, None);
    true
}

impl Mapper for ExampleStream {
    fn about(&self) -> &'static AdapterInfo {
        &STREAM
    }

    fn record(&mut self, record: Record<'_>, emit: &mut Emit<'_>) -> Result<RecordOutcome, NoObject> {
        let line: ExampleLine<'_> = parse(record.text)?;
        emit.set_time_or_captured(line.time.string());
        if self.run.is_none() {
            let Some(session) = line.session.text() else {
                if !self.waiting.keep(PendingKind::Record(record.lane), emit) {
                    self.open(None, emit);
                }
                return Ok(RecordOutcome::Waiting);
            };
            self.open(Some(&session), emit);
        }
        Ok(self.line(&line, emit))
    }

    fn unreadable(&mut self, why: &str, emit: &mut Emit<'_>) {
        if let Some(run) = &mut self.run {
            emit.begin(run, None, Extra::default());
            emit.unknown(run, "unreadable", Some(why));
            emit.entry(run, EntryType::Unknown, None);
        } else if !self.waiting.keep(PendingKind::Unreadable(why.into()), emit) {
            self.open(None, emit);
        }
    }

    fn run(&self) -> Option<&Run> {
        self.run.as_ref()
    }

    fn finish(&mut self, emit: &mut Emit<'_>) {
        if self.run.is_none() && !self.waiting.is_empty() {
            self.open(None, emit);
        }
    }
}

#[cfg(test)]
mod tests {
    use steno_model::{Draft, Frame, RunId, Seq, Timestamp, Vocabulary as _};

    use super::*;
    use crate::Completeness;

    const LINES: &str = r#"{"kind":"window"}
{"kind":"prompt","text":"Build it."}
{"kind":"start","session":"0e000000-0000-4000-8000-000000000001","time":"2026-06-08T08:14:42.000Z"}
{"kind":"say","message":"m1","text":"I run it.","usage":{"input_tokens":3,"output_tokens":2}}
{"kind":"call","message":"m1","call":"c1","tool":"shell","input":{"cmd":"make"}}
{"kind":"call","message":"m1","call":"c1","tool":"shell","input":{"cmd":"make"}}
{"kind":"result","call":"c1","output":"boom","status":"error","exit_code":2}
{"kind":"result","call":"c2","output":"","status":"refused"}
{"kind":"heartbeat"}
{"kind":"dream"}
{"kind":"say","text":7}
not JSON
{"kind":"done"}
"#;

    /// Reads the lines in pieces of so many bytes.
    fn read(text: &str, piece_len: usize) -> (Vec<(RunId, Draft)>, Completeness) {
        let mut adapter = stream(Source::named("s1"));
        let mut drafts = Vec::new();
        for (at, piece) in text.as_bytes().chunks(piece_len).enumerate() {
            adapter.feed(Frame::of_file((at * piece_len) as u64, piece), &mut drafts);
        }
        adapter.finish(&mut drafts);
        (drafts, adapter.completeness().clone())
    }

    /// Shows an event: its type, its path, and a field of its payload that tells it from others.
    fn shown((run, draft): &(RunId, Draft)) -> String {
        let event_type = draft.event_type();
        let mut line = Vec::new();
        let now = || Timestamp::from_record("".into());
        draft.clone().encode(*run, now).write_line(Seq::FIRST, &mut line);
        let line: serde_json::Value = serde_json::from_slice(&line).unwrap();
        let payload = &line["payload"];
        let of = ["outcome", "call_id", "response", "ended_by", "name"]
            .iter()
            .find_map(|name| payload[*name].as_str());
        format!("{} {} {}", event_type.as_str(), line["path"].as_str().unwrap(), of.unwrap_or("-"))
    }

    #[test]
    fn example_records_become_events() {
        let (drafts, completeness) = read(LINES, LINES.len());
        let want = [
            "run.started  example",
            "step.started turn-0001 turn-0001",
            "message.user turn-0001 -",
            "message.assistant turn-0001 m1",
            "message.assistant turn-0001 m1",
            "tool.call turn-0001 c1",
            "tool.result turn-0001 failed",
            "tool.call turn-0001 c2",
            "tool.result turn-0001 denied",
            "step.completed turn-0001 dream",
            "step.completed turn-0001 say",
            "step.completed turn-0001 unreadable",
            "step.completed turn-0001 record",
        ];
        assert_eq!(drafts.iter().map(shown).collect::<Vec<_>>(), want);
        let unknown: Vec<_> = completeness.unknown.iter().map(|(name, count)| (&**name, *count)).collect();
        assert_eq!(unknown, [("dream", 1), ("say", 1)]);
        assert_eq!((completeness.bookkeeping, completeness.unreadable), (BOOKKEEPING.len() as u64, 1));
    }

    #[test]
    fn example_does_not_depend_on_cuts_and_needs_no_session() {
        for text in [LINES, "{\"kind\":\"prompt\",\"text\":\"Hi.\"}\n"] {
            let whole = read(text, text.len());
            assert!(whole.0.len() >= 3);
            for piece_len in 1..40 {
                assert_eq!(read(text, piece_len), whole, "{piece_len}");
            }
        }
    }
}
