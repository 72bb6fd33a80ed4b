//! The turns of a session: prompts, calls, and ends.

use std::cell::OnceCell;
use std::rc::Rc;

use steno_model::json::RawJson;
use steno_session::{
    Block, Call as SessionCall, ItemKind, Message, PayloadFields, Session, State, TurnId, TurnStatus,
};

use super::command::Command;
use super::patch::Patch;

/// A turn.
#[derive(Clone, Debug)]
pub struct Turn {
    /// Its number, from 1.
    pub number: u32,
    /// The agent's id.
    pub id: Option<String>,
    /// True if the source does not name the turn, and we counted it.
    pub is_inferred: bool,
    /// The numbers of its first and last record.
    pub seqs: (u64, u64),
    /// Its end.
    pub end: TurnEnd,
    /// The texts of the user, in order.
    pub words: Vec<String>,
    /// The number of pictures and files from the user, which are not in the texts.
    pub media: u64,
    /// The number of questions to the user.
    pub questions: u64,
    /// The number of subagents.
    pub subagents: u64,
    /// True if the history was compacted in it.
    pub is_compacted: bool,
    /// True if the user took it back later.
    pub is_taken_back: bool,
    /// The calls, in order.
    pub calls: Vec<Call>,
    /// The settings of the turn.
    pub(super) settings: Option<RawJson>,
}

/// The end of a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TurnEnd {
    /// The turn completed.
    Done,
    /// The turn failed or was interrupted, with a description.
    Failed(String),
    /// The end is not recorded.
    Open,
}

/// A call of a tool.
#[derive(Clone, Debug)]
pub struct Call {
    /// Its id.
    pub id: String,
    /// The number of its first record.
    pub seq: u64,
    /// The earliest time at which it can have begun, in milliseconds since 1970, if recorded.
    pub may_begin_at: Option<i64>,
    /// The tool.
    pub name: String,
    /// The class of the tool: `command`, `file_change`, `agent` and so on.
    pub class: String,
    /// The command, if it is one.
    pub command: Option<Command>,
    /// The result.
    pub result: Option<CallResult>,
    /// The answer to its request for approval.
    pub approval: Option<Approval>,
    /// Computed facts, kept because many windows need those of the same calls.
    pub(super) known: CallFacts,
}

/// Facts that were computed about a call.
#[derive(Clone, Debug, Default)]
pub(super) struct CallFacts {
    /// True if it may have changed files without a record of it.
    pub(super) may_change: OnceCell<bool>,
    /// Its changes, with the root of their paths.
    pub(super) patch: OnceCell<(String, Result<Rc<Patch>, String>)>,
}

/// The result of a call.
#[derive(Clone, Debug, Default)]
pub struct CallResult {
    /// The number of its record.
    pub seq: u64,
    /// `ok`, `failed`, `denied`, `unknown` and so on.
    pub outcome: String,
    /// The exit code, if the source has a field for it.
    pub exit_code: Option<i64>,
    /// The changes of files.
    pub changes: Option<RawJson>,
}

/// The answer to a request for approval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Approval {
    /// There is no answer.
    Open,
    /// It is allowed.
    Allowed,
    /// It is denied.
    Denied,
}

/// The times at which the model sent something.
#[derive(Clone, Copy, Debug)]
pub(super) struct ModelTimes {
    pub(super) seq: u64,
    pub(super) time: Option<i64>,
}

/// Facts about turns from the records around the events.
#[derive(Debug, Default)]
pub(super) struct Notes {
    /// The times at which the model sent something. A call after such a record was not made before it.
    pub(super) model_times: Vec<ModelTimes>,
    /// The number of turns that had begun when a record said that ids are our own.
    pub(super) inferred_from: Option<usize>,
    /// The turns that were taken back, in order.
    pub(super) taken_back: Vec<TakenBack>,
}

/// Turns that the user took back, with the number of turns that had begun.
#[derive(Debug)]
pub(super) enum TakenBack {
    /// The last turns with text of the user.
    Last { begun: usize, count: u64 },
    /// A turn and all after it.
    From { begun: usize, id: String },
}

/// Returns the turns of a session whose events have the numbers of their records.
pub(super) fn turns_of(session: &Session, notes: &Notes, last_seq: u64) -> Vec<Turn> {
    let numbers = 0..session.turns.len();
    let begins: Vec<u64> = session.turns.iter().map(|turn| turn.at.seq.get()).collect();
    let mut turns: Vec<Turn> = numbers.map(|number| turn_of(session, TurnId(number))).collect();
    for (place, turn) in turns.iter_mut().enumerate() {
        // Records between two turns, like late notices, belong to the previous turn.
        let next = begins.get(place + 1).copied().unwrap_or(last_seq + 1);
        turn.seqs.1 = turn.seqs.1.min(next.saturating_sub(1)).max(turn.seqs.0);
        turn.is_inferred |= notes.inferred_from.is_some_and(|begun| place + 1 >= begun);
        let began = ModelTimes { seq: turn.seqs.0, time: unix_ms(&session.turns[place]) };
        let is_in = |times: &&ModelTimes| times.seq >= turn.seqs.0 && times.seq < next;
        let model_times: Vec<ModelTimes> =
            [began].into_iter().chain(notes.model_times.iter().filter(is_in).copied()).collect();
        for call in &mut turn.calls {
            // Codex reports the beginning of a command after a while or at its end, which is too late.
            call.may_begin_at =
                model_times.iter().rfind(|times| times.seq < call.seq).and_then(|times| times.time);
        }
    }
    for taken in &notes.taken_back {
        take_back(&mut turns, taken);
    }
    turns
}

fn unix_ms(turn: &steno_session::Turn) -> Option<i64> {
    Some(turn.started_at.as_ref()?.instant()?.as_millisecond())
}

fn take_back(turns: &mut [Turn], taken: &TakenBack) {
    match taken {
        TakenBack::Last { begun, count } => {
            let count = usize::try_from(*count).unwrap_or(usize::MAX);
            let begun = (*begun).min(turns.len());
            let is_spoken = |turn: &&mut Turn| !turn.words.is_empty() && !turn.is_taken_back;
            let last = turns[..begun].iter_mut().rev().filter(is_spoken).take(count);
            last.for_each(|turn| turn.is_taken_back = true);
        }
        TakenBack::From { begun, id } => {
            let begun = (*begun).min(turns.len());
            let from = turns[..begun].iter().position(|turn| turn.id.as_ref() == Some(id)).unwrap_or(begun);
            turns[from..begun].iter_mut().for_each(|turn| turn.is_taken_back = true);
        }
    }
}

fn turn_of(session: &Session, id: TurnId) -> Turn {
    let known = &session.turns[id.0];
    let turn_id = known.turn_id.as_ref().map(|id| id.to_text().into_owned());
    let error = || known.error.as_ref().map(|error| error.to_text().into_owned()).unwrap_or_default();
    let mut turn = Turn {
        number: u32::try_from(id.0 + 1).unwrap_or(u32::MAX),
        is_inferred: turn_id.is_none(),
        id: turn_id,
        seqs: (known.at.seq.get(), known.events.iter().map(|at| at.seq.get()).max().unwrap_or(0)),
        end: match known.status {
            TurnStatus::InProgress => TurnEnd::Open,
            TurnStatus::Completed => TurnEnd::Done,
            TurnStatus::Interrupted | TurnStatus::Failed => TurnEnd::Failed(error()),
        },
        words: Vec::new(),
        media: 0,
        questions: 0,
        subagents: session.children.iter().filter(|child| child.turn == Some(id)).count() as u64,
        is_compacted: false,
        is_taken_back: false,
        calls: Vec::new(),
        settings: known.settings.clone(),
    };
    for item in session.items.iter().filter(|item| item.turn == Some(id)) {
        if let ItemKind::Prompt(message) = item.kind {
            turn.say(&session.messages[message.0]);
        }
    }
    for fact in session.facts.iter().filter(|fact| fact.turn == Some(id)) {
        let is = |kind: &str| fact.kind.as_ref().is_some_and(|own| own.is(kind));
        turn.questions += u64::from(is("user_input") && fact.is_begun);
        turn.is_compacted |= is("compaction");
    }
    let mut calls: Vec<&SessionCall> =
        session.calls.iter().filter(|call| call.turn == Some(id) && call.called.is_some()).collect();
    calls.sort_by_key(|call| call.called);
    for call in calls {
        let call = call_of(session, call);
        turn.questions += u64::from(call.name == "request_user_input");
        if !turn.calls.iter().any(|known| known.id == call.id) {
            turn.calls.push(call);
        }
    }
    turn
}

impl Turn {
    fn say(&mut self, message: &Message) {
        for block in &message.blocks {
            let Block::Recorded(block) = block else { continue };
            let block = PayloadFields::parse(block.as_str());
            let is_text =
                block.text("type").is_some_and(|kind| kind == "text") && block.text("label").is_none();
            match block.text("text").filter(|_| is_text) {
                Some(text) => self.words.push(text.into_owned()),
                None => self.media += 1,
            }
        }
    }
}

fn call_of(session: &Session, call: &SessionCall) -> Call {
    let text = |text: Option<&steno_model::json::JsonString>| {
        text.map(|text| text.to_text().into_owned()).unwrap_or_default()
    };
    let class = text(call.class.as_ref());
    let input = call.input.as_ref().map(RawJson::as_str).filter(|_| class == "command");
    let result = call.result.as_ref().map(|result| {
        let seqs = [result.at, result.amended].into_iter().flatten().map(|at| at.seq.get());
        CallResult {
            seq: seqs.max().unwrap_or(0),
            outcome: text(result.outcome.as_ref()),
            exit_code: result.exit_code.as_ref().and_then(|code| code.as_str().parse().ok()),
            changes: call.latest_field("changes").filter(|changes| !changes.is_null()),
        }
    });
    let approval = call.approvals.last().map(|approval| {
        let approval = &session.approvals[approval.0];
        match &approval.decision {
            _ if approval.state == State::Open => Approval::Open,
            None => Approval::Open,
            Some(answer) if answer.is("denied") => Approval::Denied,
            // There is an answer, and the result of the call shows which.
            Some(_) => Approval::Allowed,
        }
    });
    Call {
        id: text(call.id.as_ref()),
        seq: call.called.unwrap_or(call.at).seq.get(),
        may_begin_at: None,
        name: text(call.name.as_ref()),
        class,
        command: input.and_then(Command::of_input),
        result,
        approval,
        known: CallFacts::default(),
    }
}
