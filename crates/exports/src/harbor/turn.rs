//! The turns of a session: what the user said in each, what was called, and how it ended.

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
    pub(super) known: CallFacts,
}

/// What was found out about a call.
#[derive(Clone, Debug, Default)]
pub(super) struct CallFacts {
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

/// When the model sent something.
#[derive(Clone, Copy, Debug)]
pub(super) struct ModelTimes {
    pub(super) seq: u64,
    pub(super) time: Option<i64>,
}

/// What records around the events say of turns.
#[derive(Debug, Default)]
pub(super) struct Notes {
    /// When the model sent something. A call after such a record was not made before it.
    pub(super) model_times: Vec<ModelTimes>,
    /// How many turns had begun when it was said that ids are our own.
    pub(super) inferred_from: Option<usize>,
    /// What was taken back, in order.
    pub(super) taken_back: Vec<TakenBack>,
}

/// Turns that the user took back, and how many had begun by then.
#[derive(Debug)]
pub(super) enum TakenBack {
    /// The last ones in which the user spoke.
    Last { begun: usize, count: u64 },
    /// One and all behind it.
    From { begun: usize, id: String },
}

/// Returns the turns of a session whose events have the numbers of their records.
pub(super) fn turns_of(session: &Session, notes: &Notes, last_seq: u64) -> Vec<Turn> {
    let numbers = 0..session.turns.len();
    let begins: Vec<u64> = session.turns.iter().map(|turn| turn.at.seq.get()).collect();
    let mut turns: Vec<Turn> = numbers.map(|number| turn_of(session, TurnId(number))).collect();
    for (place, turn) in turns.iter_mut().enumerate() {
        // What stands between two turns, like a late notice, belongs to the one before.
        let next = begins.get(place + 1).copied().unwrap_or(last_seq + 1);
        turn.seqs.1 = turn.seqs.1.min(next.saturating_sub(1)).max(turn.seqs.0);
        turn.is_inferred |= notes.inferred_from.is_some_and(|begun| place + 1 >= begun);
        let began = ModelTimes { seq: turn.seqs.0, time: unix_ms(&session.turns[place]) };
        let is_in = |times: &&ModelTimes| times.seq >= turn.seqs.0 && times.seq < next;
        let model_times: Vec<ModelTimes> =
            [began].into_iter().chain(notes.model_times.iter().filter(is_in).copied()).collect();
        for call in &mut turn.calls {
            // Codex tells that a command has begun when it has run for a while, or has ended: that is too late.
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
            // That somebody answered is known, and what the call came to says what.
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
