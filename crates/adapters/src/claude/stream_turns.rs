//! The turns of a stream: begun by a prompt that was sent or by the first frame after an `init`, ended by a `result`.
//!
//! Results may come late: a background subagent that ends begins another turn before the first one's result.

use std::collections::VecDeque;

use steno_model::json::{Extra, JsonString, RawJson};
use steno_model::{EntryType, StepPayload};

use super::frames::StreamFrame;
use crate::emit::{Emit, EndedBy, push, string};
use crate::run::Run;
use crate::shapes::{are_names, is_list, words};
use crate::wire::{Raw, RawField as _};

/// Which turns of the main agent wait for their results.
#[derive(Default)]
pub(super) struct StreamTurns {
    open: VecDeque<JsonString>,
    /// Whether an `init` has come whose turn has not begun.
    is_due: bool,
    /// Whether the turn that is open was begun by a prompt whose `init` has not come.
    is_awaiting_init: bool,
    is_interrupted: bool,
    settings: Option<RawJson>,
}

impl StreamTurns {
    /// Returns how many turns wait for their results.
    pub(super) fn open_len(&self) -> usize {
        self.open.len()
    }

    /// Notes an `init`.
    pub(super) fn init(&mut self, frame: &StreamFrame<'_>) {
        let (model, mode) = (frame.model.json(), frame.permission_mode.json());
        self.settings = Some(RawJson::object(|object| {
            object.optional("model", model.as_ref(), steno_model::json::ObjectWriter::json);
            object.optional("permission_mode", mode.as_ref(), steno_model::json::ObjectWriter::json);
        }));
        self.is_due = !std::mem::take(&mut self.is_awaiting_init);
    }

    /// Notes a request to stop the turn.
    pub(super) fn interrupt(&mut self) {
        self.is_interrupted = !self.open.is_empty();
    }

    /// Begins a turn for a prompt that was sent.
    pub(super) fn begin_prompted(&mut self, run: &mut Run, turn_id: Raw<'_>, emit: &mut Emit<'_>) {
        self.begin(run, turn_id, emit);
        self.is_awaiting_init = true;
    }

    /// Begins the turn that an `init` has announced, with the first frame of its work.
    pub(super) fn begin_due(&mut self, run: &mut Run, emit: &mut Emit<'_>) {
        if self.is_due || run.turns.path().is_empty() {
            self.begin(run, None, emit);
        }
    }

    fn begin(&mut self, run: &mut Run, turn_id: Raw<'_>, emit: &mut Emit<'_>) {
        // An open turn stays open until its result.
        run.turns.end();
        emit.begin_turn(run, turn_id.string().as_ref(), self.settings.clone());
        self.open.push_back(run.turns.path());
        self.is_due = false;
    }

    /// Ends the oldest open turn with a `result`, and writes its usage.
    pub(super) fn end(&mut self, run: &mut Run, frame: &StreamFrame<'_>, emit: &mut Emit<'_>) {
        let errors = errors_of(frame);
        let error = self.error(frame, errors.clone());
        let is_command = frame.local_command.json().is_some();
        if self.open.is_empty() && self.is_due && !is_command {
            self.begin(run, None, emit);
        }
        self.is_due &= !is_command;
        let turn = self.open.pop_front();
        let path = turn.clone().unwrap_or_else(|| run.turns.path());
        usage(run, &path, ResultUsage { id: frame.uuid, usage: frame.usage, scope: "turn" }, emit);
        usage(run, &path, ResultUsage { id: frame.uuid, usage: frame.model_usage, scope: "session" }, emit);
        emit.entry(run, EntryType::TokenUsage, None);
        let (name, kind) = if turn.is_some() { (path.clone(), "turn") } else { ("result".into(), "system") };
        if self.open.is_empty() {
            run.turns.end();
        }
        let mut payload = StepPayload::new(name, kind);
        payload.result = frame.result.json();
        payload.extra = end_fields(frame);
        if turn.is_some() {
            payload.extra.push("ended_by", string(EndedBy::Record.as_str()));
        }
        if errors != error {
            push(&mut payload.extra, "errors", frame.errors.json().filter(|_| errors.is_some()));
        }
        let entry = if error.is_some() {
            (EntryType::Error, None)
        } else {
            (EntryType::SystemEvent, Some("turn_end"))
        };
        payload.error = error;
        emit.step_completed(run, &path, payload);
        emit.entry(run, entry.0, entry.1);
    }

    fn error(&mut self, frame: &StreamFrame<'_>, reported: Option<JsonString>) -> Option<JsonString> {
        let is_interrupted = std::mem::take(&mut self.is_interrupted);
        if frame.subtype.is("success") && !frame.is_error.is_true() {
            // The turn ended before it could be stopped.
            return None;
        }
        if is_interrupted {
            return Some("interrupted".into());
        }
        reported.or_else(|| frame.result.string()).or_else(|| frame.subtype.string())
    }
}

/// Returns the errors of a turn: texts on separate lines, other values as they are.
fn errors_of(frame: &StreamFrame<'_>) -> Option<JsonString> {
    let are_usual = is_list(frame.errors) && are_names(frame.errors);
    let Some(errors) = frame.errors.filter(|_| are_usual) else { return words(frame.errors) };
    let errors = serde_json::from_str::<Vec<String>>(errors.get()).ok()?;
    (!errors.is_empty()).then(|| errors.join("\n").as_str().into())
}

/// The token usage of a `result`.
#[derive(Clone, Copy)]
struct ResultUsage<'a> {
    id: Raw<'a>,
    usage: Raw<'a>,
    scope: &'static str,
}

fn usage(run: &Run, path: &JsonString, spent: ResultUsage<'_>, emit: &mut Emit<'_>) {
    let Some(usage) = spent.usage.json() else { return };
    let mut extra = Extra::default();
    push(&mut extra, "id", spent.id.json());
    extra.push("usage", usage);
    extra.push("usage_scope", string(spent.scope));
    extra.push("final", RawJson::from(true));
    emit.usage(run, path, extra);
}

fn end_fields(frame: &StreamFrame<'_>) -> Extra {
    let mut extra = Extra::default();
    let fields = [
        ("subtype", frame.subtype),
        ("stop_reason", frame.stop_reason),
        ("terminal_reason", frame.terminal_reason),
        ("num_turns", frame.num_turns),
        ("duration_ms", frame.duration_ms),
        ("cost_usd", frame.cost_usd),
        ("permission_denials", frame.permission_denials.filter(|denials| denials.get() != "[]")),
        ("local_command", frame.local_command),
        ("structured_output", frame.structured_output),
        ("api_error_status", frame.api_error_status),
    ];
    for (name, value) in fields {
        push(&mut extra, name, value.json());
    }
    extra
}
