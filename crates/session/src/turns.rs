//! The turns of a session: their events, usage and ends.
//!
//! Ends are not guessed. A turn ends with a record of its end, with an interrupt, or when the next prompt begins another
//! one. In the last case its end time is that of its last fact, and open calls or errors decide its status. An open turn is
//! completed when the model's last response was final.

use std::borrow::Cow;

use steno_model::Timestamp;
use steno_model::json::JsonString;

use crate::builder::{IncomingEvent, response_key};
use crate::calls::Content;
use crate::path_tree::PathTree;
use crate::session::{Call, EndedBy, EventPosition, RunNumber, SessionRun, StepId, Turn, TurnId, TurnStatus};
use crate::turn_usage::{TurnUsage, cost, cost_in_one_run};

/// What an agent writes for a turn that was stopped.
const INTERRUPTED: [&str; 2] = ["interrupted", "aborted"];
/// Stop reasons of a final response.
const LAST_STOPS: [&str; 12] = [
    "end_turn",
    "stop_sequence",
    "max_tokens",
    "refusal",
    // Of OpenAI's APIs.
    "stop",
    "length",
    "content_filter",
    "completed",
    "max_output_tokens",
    // Of Gemini's.
    "STOP",
    "MAX_TOKENS",
    // Of the SDK that OpenCode uses.
    "content-filter",
];
/// The model name of responses that the agent made up.
const SYNTHETIC: &str = "<synthetic>";

/// All turns so far.
#[derive(Default)]
pub(crate) struct Turns {
    all: Vec<TurnFold>,
    /// The current or last turn at a path.
    at: PathTree<TurnId>,
}

struct TurnFold {
    turn: Turn,
    path: JsonString,
    /// The time of its last message, call, result, approval, compaction or error.
    last: Option<Timestamp>,
    /// The error that is its last fact.
    last_error: Option<JsonString>,
    is_ended: bool,
    /// Whether the time of its end is inferred.
    end_is_inferred: bool,
    /// The model's last response.
    latest_field: Option<LastResponse>,
    /// Its usage in each run.
    usage: Vec<(RunNumber, TurnUsage)>,
}

/// The last response of a turn. Records with the same id belong to it; a record without an id is a separate response.
#[derive(Default)]
struct LastResponse {
    response: Option<String>,
    stop_reason: Option<JsonString>,
    model: Option<JsonString>,
    /// Whether it has more than thoughts: a record of thoughts already has the stop reason of the whole response.
    has_words: bool,
}

impl Turns {
    /// Finds the turn whose step is at the path of an event.
    pub(crate) fn at_path(&self, incoming: &IncomingEvent<'_>) -> Option<TurnId> {
        self.at.get(&incoming.event.path.to_text()).copied()
    }

    /// Finds the turn of a path: the current or last turn at the path or at the nearest path above it.
    pub(crate) fn around(&self, path: &str) -> Option<TurnId> {
        self.at.around(path).map(|(turn, _)| *turn)
    }

    /// Returns the step of a turn.
    pub(crate) fn step_of(&self, turn: TurnId) -> StepId {
        self.all[turn.0].turn.step
    }

    pub(crate) fn begin(&mut self, step: StepId, incoming: &IncomingEvent<'_>, order: usize) -> TurnId {
        let IncomingEvent { event, fields, at, .. } = incoming;
        let path = event.path.to_text().into_owned();
        let id = TurnId(self.all.len());
        let is_used = self.at.insert(&path, id).is_some();
        let turn = Turn {
            step,
            // A reused path gets the number of the first event.
            name: if is_used { format!("{path}@{}", event.seq) } else { path },
            order,
            turn_id: fields.string("turn_id"),
            at: *at,
            started_at: Some(event.timestamp.clone()),
            ended_at: None,
            status: TurnStatus::InProgress,
            ended_by: None,
            error: None,
            settings: fields.json("settings"),
            model: None,
            order_end: None,
            usage: None,
            events: Vec::new(),
            runs: vec![at.run],
            ended_in: Vec::new(),
            left_out: Vec::new(),
            others: Vec::new(),
        };
        self.all.push(TurnFold {
            turn,
            path: event.path.clone(),
            last: None,
            last_error: None,
            is_ended: false,
            end_is_inferred: false,
            latest_field: None,
            usage: Vec::new(),
        });
        id
    }

    /// Adds what another run says about the start of a turn.
    pub(crate) fn refine(&mut self, turn: TurnId, incoming: &IncomingEvent<'_>) {
        let (turn, fields) = (&mut self.all[turn.0].turn, &incoming.fields);
        if !turn.runs.contains(&incoming.at.run) {
            turn.runs.push(incoming.at.run);
        }
        turn.turn_id = turn.turn_id.take().or_else(|| fields.string("turn_id"));
        turn.settings = turn.settings.take().or_else(|| fields.json("settings"));
    }

    /// Ends a turn; false if it had ended before.
    pub(crate) fn end(&mut self, turn: TurnId, incoming: &IncomingEvent<'_>, order: usize) -> bool {
        let fold = &mut self.all[turn.0];
        fold.turn.ended_in.push(incoming.at.run);
        if fold.is_ended && incoming.is_repeat {
            return false;
        }
        fold.is_ended = true;
        let turn = &mut fold.turn;
        turn.order_end = Some(order);
        turn.error = incoming.fields.error();
        turn.status = match turn.error.as_ref().map(JsonString::to_text) {
            None => TurnStatus::Completed,
            Some(error) if INTERRUPTED.contains(&&*error) => TurnStatus::Interrupted,
            Some(_) => TurnStatus::Failed,
        };
        turn.ended_by = Some(match incoming.fields.text("ended_by").as_deref() {
            Some("prompt") => EndedBy::Prompt,
            Some("interrupt") => EndedBy::Interrupt,
            _ => EndedBy::Record,
        });
        turn.ended_at = Some(incoming.event.timestamp.clone());
        fold.end_is_inferred = is_inferred(incoming);
        true
    }

    /// Adds an event to a turn.
    pub(crate) fn saw(&mut self, turn: Option<TurnId>, at: EventPosition) {
        if let Some(turn) = turn {
            self.all[turn.0].turn.events.push(at);
        }
    }

    /// Adds an outside event that a turn depends on.
    pub(crate) fn other(&mut self, turn: TurnId, at: EventPosition) {
        self.all[turn.0].turn.others.push(at);
    }

    /// Adds an event of another run that no id links to the turn.
    pub(crate) fn leave_out(&mut self, turn: Option<TurnId>, at: EventPosition) {
        if let Some(turn) = turn {
            self.all[turn.0].turn.left_out.push(at);
        }
    }

    /// Updates the last response of a turn from a model's record.
    pub(crate) fn update_last_response(&mut self, incoming: &IncomingEvent<'_>) {
        let Some(turn) = incoming.turn else { return };
        let IncomingEvent { fields, blocks, .. } = incoming;
        let response = fields.json_text("response").filter(|id| *id != "null");
        let response = response.map(|id| response_key(id, incoming.at.run));
        let last = &mut self.all[turn.0].latest_field;
        let known = last.as_ref().and_then(|last| last.response.as_deref());
        let is_same = known.is_some() && known == response.as_deref();
        if !is_same && !blocks.is_empty() {
            *last = Some(LastResponse { response: response.map(Cow::into_owned), ..LastResponse::default() });
        } else if !is_same {
            return;
        }
        let Some(last) = last else { return };
        fields.renew("stop_reason", &mut last.stop_reason);
        fields.renew("model", &mut last.model);
        last.has_words |= !blocks.iter().all(|block| block.is("thinking"));
    }

    /// Records a prompt.
    pub(crate) fn prompt(&mut self, turn: Option<TurnId>, incoming: &IncomingEvent<'_>) {
        self.fact(turn, incoming);
    }

    /// Records a message, a call, a result, an approval or a compaction.
    pub(crate) fn fact(&mut self, turn: Option<TurnId>, incoming: &IncomingEvent<'_>) {
        let Some(turn) = turn else { return };
        let fold = &mut self.all[turn.0];
        fold.last_error = None;
        if !incoming.is_repeat && (!is_inferred(incoming) || fold.last.is_none()) {
            fold.last = Some(incoming.event.timestamp.clone());
        }
    }

    /// Records an error outside of calls.
    pub(crate) fn error(&mut self, turn: Option<TurnId>, incoming: &IncomingEvent<'_>) {
        self.fact(turn, incoming);
        if let Some(turn) = turn {
            let fold = &mut self.all[turn.0];
            fold.last_error = incoming.fields.error().or_else(|| incoming.fields.string("name"));
        }
    }

    /// Adds the usage and the model of a model's message.
    pub(crate) fn usage(&mut self, incoming: &IncomingEvent<'_>) {
        let Some(turn) = incoming.turn else { return };
        let fold = &mut self.all[turn.0];
        if fold.turn.model.is_none() && incoming.event.path == fold.path {
            fold.turn.model = incoming.fields.string("model");
        }
        let run = incoming.at.run;
        if incoming.fields.json_text("usage").is_none() {
            return;
        }
        let known = fold.usage.iter().position(|(known, _)| *known == run);
        let place = known.unwrap_or_else(|| {
            fold.usage.push((run, TurnUsage::default()));
            fold.usage.len() - 1
        });
        fold.usage[place].1.take(&incoming.fields);
    }

    /// Returns the turns.
    pub(crate) fn finish(self, calls: &[Call], runs: &[SessionRun], content: Content) -> Vec<Turn> {
        let mut waiting = vec![false; self.all.len()];
        for call in calls.iter().filter(|call| !call.is_answered) {
            if let Some(turn) = call.turn {
                waiting[turn.0] = true;
            }
        }
        let finish = |(number, fold): (usize, TurnFold)| fold.finish(waiting[number], runs, content);
        self.all.into_iter().enumerate().map(finish).collect()
    }
}

impl TurnFold {
    fn finish(self, is_waiting: bool, runs: &[SessionRun], content: Content) -> Turn {
        let is_last_word = self.latest_field.as_ref().is_some_and(LastResponse::is_last_word);
        let usage = match content {
            Content::Whole => cost(self.usage, runs),
            Content::ForReceipts => cost_in_one_run(self.usage, runs),
        };
        let mut turn = Turn { usage, ..self.turn };
        if self.end_is_inferred && self.last.is_some() {
            turn.ended_at.clone_from(&self.last);
        }
        match turn.ended_by {
            Some(EndedBy::Prompt) if turn.error.is_none() => {
                turn.ended_at = self.last.or(turn.ended_at);
                if is_waiting {
                    (turn.status, turn.error) = (TurnStatus::Interrupted, Some("interrupted".into()));
                } else if self.last_error.is_some() {
                    (turn.status, turn.error) = (TurnStatus::Failed, self.last_error);
                }
            }
            None if is_last_word && !is_waiting && self.last_error.is_none() => {
                turn.status = TurnStatus::Completed;
                turn.ended_by = Some(EndedBy::StopReason);
                turn.ended_at = self.last;
            }
            Some(EndedBy::Prompt | EndedBy::Record | EndedBy::Interrupt | EndedBy::StopReason) | None => {}
        }
        turn
    }
}

/// Tells whether the time of an event is inferred.
fn is_inferred(incoming: &IncomingEvent<'_>) -> bool {
    incoming.event.extra.get("ts_inferred").is_some_and(|flag| flag.as_str() == "true")
}

impl LastResponse {
    /// Tells whether it is a final response.
    fn is_last_word(&self) -> bool {
        let is_stop =
            self.stop_reason.as_ref().is_some_and(|reason| LAST_STOPS.contains(&&*reason.to_text()));
        let is_synthetic = self.model.as_ref().is_some_and(|model| model.is(SYNTHETIC));
        is_stop && !is_synthetic && self.has_words
    }
}
