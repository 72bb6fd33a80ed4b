//! What lists show beside the calls of a session: commands of `steno run`, and errors outside of calls.

use std::collections::HashSet;

use steno_model::Timestamp;
use steno_session::{EventPosition, Fact, Outcome, PayloadFields, Session, State, Turn, TurnId, TurnStatus};

use super::{CallDigest, TextKind, TextUnit};

/// The kind of the step that a plain command is.
pub(super) const COMMAND: &str = "command";
/// The kind of the step that an error is, and the class of its entry.
pub(super) const ERROR: &str = "error";
/// The kind of the step that an attempt is which failed and was repeated.
pub(super) const RETRY: &str = "retry";

/// A command of `steno run`, or an error outside of calls.
#[derive(Clone, Debug, PartialEq)]
pub struct ListEntry {
    /// Its first event.
    pub at: EventPosition,
    /// When it began.
    pub time: Option<Timestamp>,
    /// How it ended.
    pub outcome: Outcome,
    /// The rest. The class is `command` or `error`.
    pub digest: CallDigest,
    /// The event with the words of the command.
    pub words: Option<EventPosition>,
    /// The event with what the command printed, or with the text of the error.
    pub output: Option<EventPosition>,
    /// Whether it was copied from another session, which has its texts.
    pub is_copied: bool,
}

/// Returns the commands of `steno run` and the errors of a session. A turn that failed is one only if no error in it is
/// recorded: otherwise it failed because of that error.
#[must_use]
pub fn entries_beside_calls(session: &Session) -> Vec<ListEntry> {
    let commands = session.facts.iter().filter(|fact| is_kind(fact, COMMAND));
    let errors = session.facts.iter().filter(|fact| is_error(fact));
    let with_errors: HashSet<TurnId> =
        session.facts.iter().filter(|fact| is_error(fact)).filter_map(|fact| fact.turn).collect();
    let turns = failed_turns(session).filter(|(turn, _)| !with_errors.contains(turn));
    commands
        .filter_map(|fact| command(session, fact))
        .chain(errors.map(|fact| error(fact.at, Some(&fact.time), fact.copied_from.is_some())))
        .chain(turns.filter_map(|(number, turn)| {
            let step = &session.steps[turn.step.0];
            Some(error(step.completed?, step.ended_at.as_ref(), is_copied(session, number)))
        }))
        .collect()
}

/// Calls `take` with the texts of errors that have no entry: of attempts that were repeated, and of turns that failed with
/// another text than the errors in them.
pub(super) fn each_other_error(session: &Session, mut take: impl FnMut(TextUnit)) {
    let unit = |at| TextUnit { at, block: 0, kind: TextKind::Output, call: None };
    let is_instant = |fact: &&Fact| !fact.is_begun && fact.error.is_some();
    let own = session.facts.iter().filter(|fact| fact.copied_from.is_none());
    for fact in own.filter(is_instant).filter(|fact| is_kind(fact, RETRY)) {
        take(unit(fact.at));
    }
    for (number, turn) in failed_turns(session) {
        let step = &session.steps[turn.step.0];
        let errors = || session.facts.iter().filter(|fact| is_error(fact) && fact.turn == Some(number));
        let is_new = errors().next().is_some() && errors().all(|fact| fact.error != step.error);
        if let Some(at) = step.completed.filter(|_| is_new && !is_copied(session, number)) {
            take(unit(at));
        }
    }
}

fn is_kind(fact: &Fact, kind: &str) -> bool {
    fact.kind.as_ref().is_some_and(|own| own.is(kind))
}

fn is_error(fact: &Fact) -> bool {
    is_kind(fact, ERROR) && fact.error.is_some() && !fact.is_begun
}

/// Returns the turns whose own record says that they failed.
fn failed_turns(session: &Session) -> impl Iterator<Item = (TurnId, &Turn)> {
    let turns = session.turns.iter().enumerate().map(|(number, turn)| (TurnId(number), turn));
    turns.filter(|(_, turn)| turn.status == TurnStatus::Failed && session.steps[turn.step.0].error.is_some())
}

/// Tells whether a turn was copied from another session.
fn is_copied(session: &Session, turn: TurnId) -> bool {
    session.messages.iter().any(|message| message.turn == Some(turn) && message.copied_from.is_some())
}

fn error(at: EventPosition, time: Option<&Timestamp>, is_copied: bool) -> ListEntry {
    let digest = CallDigest {
        id: None,
        tool: String::new(),
        class: Some(ERROR.to_owned()),
        exit_code: None,
        duration_ms: None,
        paths: Vec::new(),
    };
    let (words, output) = (None, Some(at));
    ListEntry { at, time: time.cloned(), outcome: Outcome::Failed, digest, words, output, is_copied }
}

/// Reads a command from its step and the start of its run; `None` if it has no step.
fn command(session: &Session, fact: &Fact) -> Option<ListEntry> {
    let step = session.steps.iter().find(|step| step.started.or(step.completed) == Some(fact.at))?;
    let run = session.runs.get(fact.at.run.0)?;
    let words = run.beginnings.first().map(|(seq, _)| EventPosition { run: fact.at.run, seq: *seq });
    let result = fact.result.as_ref().map(|result| PayloadFields::parse(result.as_str()));
    let exit_code = result.and_then(|result| result.json_text("exit_code")?.parse().ok());
    let instant = |time: &Option<Timestamp>| Some(time.as_ref()?.instant()?.as_millisecond());
    let took = instant(&step.started_at).zip(instant(&step.ended_at)).map(|(began, ended)| ended - began);
    let digest = CallDigest {
        id: None,
        tool: fact.name.as_ref().map(|name| name.to_text().into_owned()).unwrap_or_default(),
        class: Some(COMMAND.to_owned()),
        exit_code,
        duration_ms: took,
        paths: Vec::new(),
    };
    let outcome = match fact.state {
        State::Open => Outcome::Open,
        State::Completed => Outcome::Ok,
        State::Failed => Outcome::Failed,
    };
    let is_copied = fact.copied_from.is_some();
    let (time, output) = (Some(fact.time.clone()), step.completed);
    Some(ListEntry { at: fact.at, time, outcome, digest, words, output, is_copied })
}
