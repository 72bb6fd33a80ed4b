//! The turns of a session: what the user said in each, what was called, and how it ended.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::rc::Rc;

use steno_model::EventType;
use steno_model::json::RawJson;

use super::command::Command;
use super::patch::Patch;
use steno_session::PayloadFields;

/// A turn.
#[derive(Clone, Debug)]
pub struct Turn {
    /// Its number, from 1.
    pub number: u32,
    /// The agent's id of it.
    pub id: Option<String>,
    /// Whether nobody but us has counted it.
    pub is_inferred: bool,
    /// The numbers of its first and last record.
    pub seqs: (u64, u64),
    /// How it ended.
    pub end: TurnEnd,
    /// What the user said, in order.
    pub words: Vec<String>,
    /// How many pictures and files the user gave, which words do not carry.
    pub media: u64,
    /// How often the user was asked something.
    pub questions: u64,
    /// How many subagents worked.
    pub subagents: u64,
    /// Whether the history was replaced in it.
    pub is_compacted: bool,
    /// Whether the user took it back later.
    pub is_taken_back: bool,
    /// What was called, in order.
    pub calls: Vec<Call>,
    /// What was in force.
    pub(super) settings: Option<RawJson>,
}

/// How a turn ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TurnEnd {
    /// As it should.
    Done,
    /// It failed or was interrupted, with what is said of it.
    Failed(String),
    /// Nothing says that it has ended.
    Open,
}

/// A call of a tool.
#[derive(Clone, Debug)]
pub struct Call {
    /// Its id.
    pub id: String,
    /// The number of its first record.
    pub seq: u64,
    /// When it can have begun at the earliest, in milliseconds since 1970, where that is recorded.
    pub may_begin_at: Option<i64>,
    /// The tool.
    pub name: String,
    /// What kind of tool: `command`, `file_change`, `agent`, ….
    pub class: String,
    /// The command, if it is one.
    pub command: Option<Command>,
    /// What came of it.
    pub result: Option<CallResult>,
    /// What somebody said who was asked.
    pub approval: Option<Approval>,
    /// What was found out about it: windows ask for the same calls again and again.
    pub(super) known: Known,
}

/// What was found out about a call.
#[derive(Clone, Debug, Default)]
pub(super) struct Known {
    /// Whether it may have changed files in a way that is not recorded.
    pub(super) may_change: OnceCell<bool>,
    /// What it changed, with the root that this is below.
    pub(super) patch: OnceCell<(String, Result<Rc<Patch>, String>)>,
}

/// What came of a call.
#[derive(Clone, Debug, Default)]
pub struct CallResult {
    /// The number of the record that says so.
    pub seq: u64,
    /// `ok`, `failed`, `denied`, `unknown`, ….
    pub outcome: String,
    /// The exit code, where the source has it as one.
    pub exit_code: Option<i64>,
    /// What was changed in files.
    pub changes: Option<RawJson>,
}

/// What became of a question whether something may be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Approval {
    /// Nobody has answered.
    Open,
    /// It may.
    Allowed,
    /// It may not.
    Denied,
}

/// Where and when something was seen.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    pub(super) seq: u64,
    pub(super) time: Option<i64>,
}

/// Folds events into turns.
#[derive(Debug, Default)]
pub(super) struct Turns {
    all: Vec<Turn>,
    /// The turn and place of each call.
    calls: HashMap<String, (usize, usize)>,
    /// The calls that questions are about.
    questions: HashMap<String, String>,
    is_inferred: bool,
    /// Whether the last turn is going on.
    is_open: bool,
    /// What the turn that is going on has shown of when calls may begin: its own beginning, and then what the model said.
    heard: Vec<Seen>,
}

impl Turns {
    /// Says that the model was heard. Whatever it calls behind that was not called before.
    pub(super) fn model_is_heard(&mut self, at: Seen) {
        self.heard.push(at);
    }

    /// Says that ids are our own.
    pub(super) fn ids_are_inferred(&mut self) {
        self.is_inferred = true;
        if let Some(turn) = self.all.last_mut() {
            turn.is_inferred = true;
        }
    }

    /// Says that the last turns in which the user spoke were taken back.
    pub(super) fn take_back(&mut self, count: u64) {
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        let is_spoken = |turn: &&mut Turn| !turn.words.is_empty() && !turn.is_taken_back;
        self.all.iter_mut().rev().filter(is_spoken).take(count).for_each(|turn| turn.is_taken_back = true);
    }

    /// Says that a turn and all behind it were taken back.
    pub(super) fn take_back_from(&mut self, id: &str) {
        let from = self.all.iter().position(|turn| turn.id.as_deref() == Some(id));
        let from = from.unwrap_or(self.all.len());
        self.all[from..].iter_mut().for_each(|turn| turn.is_taken_back = true);
    }

    /// Returns the turn that is going on.
    fn current(&mut self) -> Option<&mut Turn> {
        if self.is_open { self.all.last_mut() } else { None }
    }

    pub(super) fn event(&mut self, event_type: EventType, fields: &PayloadFields<'_>, at: Seen) {
        let seq = at.seq;
        let kind = fields.text("kind").unwrap_or_default();
        match (event_type, &*kind) {
            (EventType::StepStarted, "turn") => self.begin(fields, at),
            (EventType::StepCompleted, "turn") => self.end(fields, seq),
            (EventType::StepStarted | EventType::StepCompleted, "approval") => self.approval(fields),
            (EventType::StepStarted, "user_input") => {
                if let Some(turn) = self.current() {
                    turn.questions += 1;
                }
            }
            (EventType::StepStarted | EventType::StepCompleted, "compaction") => {
                if let Some(turn) = self.current() {
                    turn.is_compacted = true;
                }
            }
            (EventType::StepStarted | EventType::StepCompleted, "amend") => self.amend(fields, seq),
            (EventType::CallWorkflowStarted, _) => {
                if let Some(turn) = self.current() {
                    turn.subagents += 1;
                }
            }
            (EventType::MessageUser, _) => self.user(fields),
            (EventType::ToolCall, _) => self.call(fields, at),
            (EventType::ToolResult, _) => self.result(fields, seq),
            (
                EventType::RunStarted
                | EventType::RunCompleted
                | EventType::StepStarted
                | EventType::StepCompleted
                | EventType::CallWorkflowCompleted
                | EventType::MessageAssistant,
                _,
            ) => {}
        }
        if let Some(turn) = self.current() {
            turn.seqs.1 = turn.seqs.1.max(seq);
        }
    }

    fn begin(&mut self, fields: &PayloadFields<'_>, at: Seen) {
        let seq = at.seq;
        self.heard = vec![at];
        let number = u32::try_from(self.all.len() + 1).unwrap_or(u32::MAX);
        let id = fields.text("turn_id").map(std::borrow::Cow::into_owned);
        let is_inferred = self.is_inferred || id.is_none();
        self.all.push(Turn {
            number,
            id,
            is_inferred,
            seqs: (seq, seq),
            end: TurnEnd::Open,
            words: Vec::new(),
            media: 0,
            questions: 0,
            subagents: 0,
            is_compacted: false,
            is_taken_back: false,
            calls: Vec::new(),
            settings: fields.json("settings"),
        });
        self.is_open = true;
    }

    fn end(&mut self, fields: &PayloadFields<'_>, seq: u64) {
        let error = fields.error().map(|error| error.to_text().into_owned());
        if let Some(turn) = self.current() {
            turn.end = error.map_or(TurnEnd::Done, TurnEnd::Failed);
            turn.seqs.1 = turn.seqs.1.max(seq);
        }
        self.is_open = false;
    }

    fn user(&mut self, fields: &PayloadFields<'_>) {
        let blocks = fields.items("blocks");
        let Some(turn) = self.current() else { return };
        for block in blocks {
            let block = PayloadFields::parse(block.get());
            let label = block.text("label");
            if label.as_deref() == Some("system_prompt") {
                continue;
            }
            let is_text = block.text("type").is_some_and(|kind| kind == "text") && label.is_none();
            match block.text("text").filter(|_| is_text) {
                Some(text) => turn.words.push(text.into_owned()),
                None => turn.media += 1,
            }
        }
    }

    fn call(&mut self, fields: &PayloadFields<'_>, seen: Seen) {
        let text = |name: &str| fields.text(name).map(std::borrow::Cow::into_owned).unwrap_or_default();
        let (id, name, class) = (text("call_id"), text("name"), text("class"));
        if self.calls.contains_key(&id) {
            return;
        }
        let Some(at) = self.all.len().checked_sub(1).filter(|_| self.is_open) else { return };
        let command = fields.json_text("input").filter(|_| class == "command").and_then(Command::of_input);
        let turn = &mut self.all[at];
        if name == "request_user_input" {
            turn.questions += 1;
        }
        self.calls.insert(id.clone(), (at, turn.calls.len()));
        let seq = seen.seq;
        // Codex tells that a command has begun when it has run for a while, or has ended: that is too late.
        let may_begin_at = self.heard.iter().rfind(|heard| heard.seq < seq).and_then(|heard| heard.time);
        turn.calls.push(Call {
            id,
            seq,
            may_begin_at,
            name,
            class,
            command,
            result: None,
            approval: None,
            known: Known::default(),
        });
    }

    fn found(&mut self, id: &str) -> Option<&mut Call> {
        let (turn, call) = *self.calls.get(id)?;
        self.all.get_mut(turn)?.calls.get_mut(call)
    }

    fn result(&mut self, fields: &PayloadFields<'_>, seq: u64) {
        let result = read_result(fields, seq);
        if let Some(call) = fields.text("call_id").and_then(|id| self.found(&id))
            && call.result.is_none()
        {
            call.result = Some(result);
        }
    }

    /// What is told later of a call that had a result already, or had none.
    fn amend(&mut self, fields: &PayloadFields<'_>, seq: u64) {
        let Some(call) = fields.text("tool_call_id").and_then(|id| self.found(&id)) else { return };
        let more = read_result(&fields.object("result"), seq);
        let result = call.result.get_or_insert_default();
        result.seq = result.seq.max(seq);
        result.exit_code = more.exit_code.or(result.exit_code);
        result.changes = more.changes.or(result.changes.take());
        if !more.outcome.is_empty() {
            result.outcome = more.outcome;
        }
    }

    fn approval(&mut self, fields: &PayloadFields<'_>) {
        let request = fields.text("name").unwrap_or_default().into_owned();
        let said = fields.object("result").text("decision");
        let asked = fields.text("tool_call_id").map(std::borrow::Cow::into_owned);
        let call = asked.or_else(|| self.questions.get(&request).cloned());
        let Some(id) = call else { return };
        self.questions.insert(request, id.clone());
        let Some(call) = self.found(&id) else { return };
        call.approval = Some(match said.as_deref() {
            None => Approval::Open,
            Some("denied") => Approval::Denied,
            // That somebody answered is known, and what the call came to says what.
            Some(_) => Approval::Allowed,
        });
    }

    pub(super) fn finish(mut self, last_seq: u64) -> Vec<Turn> {
        // What stands between two turns, like a late notice, belongs to the one before.
        let begins: Vec<u64> = self.all.iter().skip(1).map(|turn| turn.seqs.0).collect();
        for (turn, next) in self.all.iter_mut().zip(begins.into_iter().chain([last_seq + 1])) {
            turn.seqs.1 = turn.seqs.1.min(next.saturating_sub(1)).max(turn.seqs.0);
        }
        self.all
    }
}

fn read_result(fields: &PayloadFields<'_>, seq: u64) -> CallResult {
    CallResult {
        seq,
        outcome: fields.text("outcome").map(std::borrow::Cow::into_owned).unwrap_or_default(),
        exit_code: fields.json_text("exit_code").and_then(|text| text.parse().ok()),
        changes: fields.json("changes").filter(|changes| !changes.is_null()),
    }
}
