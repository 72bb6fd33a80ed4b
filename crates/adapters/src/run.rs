//! The state of a run while its source is read: its id, its current turn, its open calls.

use std::collections::BTreeMap;

use steno_model::json::{JsonString, RawJson};
use steno_model::{EntrySource, Fidelity, RunId};
use uuid::Uuid;

use crate::repeats::QuickMap;

/// The namespace for ids of runs without a UUID. It must never change, because ids are derived from it.
const RUNS: Uuid = Uuid::from_u128(0x5e0a_7b1c_94d2_4f0e_a1b6_6c0d_57e2_90f3);

/// Returns the id of a run whose provider gives it none: the same for the same key, everywhere.
pub(crate) fn derived_run_id(key: &[&str]) -> RunId {
    // A zero byte between the parts, which contain none, keeps different keys different.
    RunId::from_uuid(Uuid::new_v5(&RUNS, key.join("\0").as_bytes()))
}

/// Returns the run that a provider's own id names: itself if it is a UUID, else one derived from it.
pub(crate) fn run_id_of(provider: &str, id: &str) -> RunId {
    RunId::parse(id).unwrap_or_else(|_| derived_run_id(&[provider, id]))
}

/// One run of a source.
pub(crate) struct Run {
    pub(crate) id: RunId,
    pub(crate) parent: Option<RunId>,
    pub(crate) source: EntrySource,
    /// The provider's id for the session.
    pub(crate) session: Option<String>,
    /// The run of the session's own file, if this run is the same session on another channel.
    pub(crate) mirrors: Option<RunId>,
    /// Who saw its calls.
    pub(crate) fidelity: Fidelity,
    pub(crate) is_started: bool,
    pub(crate) turns: Turns,
    pub(crate) calls: Calls,
}

impl Run {
    /// Makes a session's main run.
    pub(crate) fn main(id: RunId) -> Self {
        Self {
            id,
            parent: None,
            source: EntrySource::Main,
            session: None,
            mirrors: None,
            fidelity: Fidelity::AgentEmitted,
            is_started: false,
            turns: Turns::default(),
            calls: Calls::default(),
        }
    }

    /// Makes the run of a subagent.
    pub(crate) fn subagent(id: RunId, parent: RunId, name: &str) -> Self {
        Self { parent: Some(parent), source: EntrySource::subagent(name), ..Self::main(id) }
    }

    /// Sets the provider's id for the session.
    pub(crate) fn of_session(self, session: &str) -> Self {
        Self { session: Some(session.to_owned()), ..self }
    }
}

/// The turns of a run. The first is `turn-0001`; before it everything happens at run level.
#[derive(Default)]
pub(crate) struct Turns {
    count: u32,
    is_open: bool,
    /// The name of the last one, which is the path of most events.
    path: Option<JsonString>,
}

impl Turns {
    /// Begins the next turn and returns its name.
    pub(crate) fn begin(&mut self) -> String {
        self.count += 1;
        self.is_open = true;
        let name = self.name();
        self.path = Some(JsonString::from(&*name));
        name
    }

    /// Ends the turn that is open; returns its name, or `None` when none is.
    pub(crate) fn end(&mut self) -> Option<String> {
        std::mem::take(&mut self.is_open).then(|| self.name())
    }

    /// Reopens the last turn, which continues after its end.
    pub(crate) fn reopen(&mut self) {
        self.is_open = self.count > 0;
    }

    /// Tells whether a turn is open.
    pub(crate) fn is_open(&self) -> bool {
        self.is_open
    }

    fn name(&self) -> String {
        format!("turn-{:04}", self.count)
    }

    /// Returns the path of what happens now: the turn that is open, or was last; the run before the first.
    pub(crate) fn path(&self) -> JsonString {
        self.path.clone().unwrap_or_else(|| "".into())
    }

    /// Returns the path of a step inside the turn.
    pub(crate) fn path_of(&self, step: &str) -> JsonString {
        if self.count == 0 { step.into() } else { format!("{}.{step}", self.name()).into() }
    }
}

/// What a call does, judged by the provider's tool name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    Command,
    FileChange,
    Mcp,
    Agent,
    Other,
}

impl Class {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Command => "command",
            Self::FileChange => "file_change",
            Self::Mcp => "mcp",
            Self::Agent => "agent",
            Self::Other => "other",
        }
    }
}

/// A call that was made.
#[derive(Clone)]
pub(crate) struct Call {
    pub(crate) name: JsonString,
    pub(crate) class: Class,
    /// The path of the turn in which it was made.
    pub(crate) path: JsonString,
    pub(crate) is_answered: bool,
    /// Kept only where something later needs it.
    pub(crate) input: Option<RawJson>,
    /// The run that the call has begun.
    pub(crate) child: Option<RunId>,
    /// Its place among the calls.
    order: usize,
}

impl Call {
    pub(crate) fn new(name: JsonString, class: Class, path: JsonString) -> Self {
        Self { name, class, path, is_answered: false, input: None, child: None, order: 0 }
    }
}

/// The calls of a run, by id.
#[derive(Default)]
pub(crate) struct Calls {
    by_id: QuickMap<String, Call>,
    /// The ids of calls without an answer, in order.
    open: BTreeMap<usize, String>,
}

/// How many open calls are searched to find one: a hostile source may leave any number open.
const LOOKS_MAX: usize = 256;

impl Calls {
    /// Keeps a call; false when one with this id is there already.
    pub(crate) fn open(&mut self, id: &str, call: Call) -> bool {
        if self.by_id.contains_key(id) {
            return false;
        }
        let order = self.by_id.len();
        self.open.insert(order, id.to_owned());
        self.by_id.insert(id.to_owned(), Call { order, ..call });
        true
    }

    /// Returns how many calls there are.
    pub(crate) fn len(&self) -> usize {
        self.by_id.len()
    }

    /// Returns the ids of unanswered calls from a given index on.
    pub(crate) fn open_after(&self, len: usize) -> impl Iterator<Item = &String> {
        self.open.range(len..).map(|(_, id)| id)
    }

    /// Returns the id of the last call without an answer that fits.
    pub(crate) fn last_open(&self, fits: impl Fn(&Call) -> bool) -> Option<String> {
        let fitting = |id: &&String| self.by_id.get(*id).is_some_and(&fits);
        self.open.values().rev().take(LOOKS_MAX).find(fitting).cloned()
    }

    /// Sets the run that a call has begun.
    pub(crate) fn link(&mut self, id: &str, child: RunId) {
        if let Some(call) = self.by_id.get_mut(id) {
            call.child = Some(child);
        }
    }

    /// Returns the run that a call has begun.
    pub(crate) fn child(&self, id: &str) -> Option<RunId> {
        self.by_id.get(id).and_then(|call| call.child)
    }

    /// Returns a call.
    pub(crate) fn get(&self, id: &str) -> Option<&Call> {
        self.by_id.get(id)
    }

    /// Marks a call as answered; returns it unless it is unknown.
    pub(crate) fn answer(&mut self, id: &str) -> Option<&Call> {
        let call = self.by_id.get_mut(id)?;
        call.is_answered = true;
        self.open.remove(&call.order);
        Some(call)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_are_numbered_and_end_once() {
        let mut turns = Turns::default();
        assert_eq!((turns.path(), turns.path_of("approval")), ("".into(), "approval".into()));
        assert_eq!(turns.begin(), "turn-0001");
        assert_eq!(turns.path_of("approval"), "turn-0001.approval".into());
        assert_eq!(turns.end().as_deref(), Some("turn-0001"));
        assert_eq!(turns.end(), None);
        assert_eq!(turns.path(), "turn-0001".into());
        assert_eq!(turns.begin(), "turn-0002");
    }

    #[test]
    fn derived_run_id_is_stable() {
        let id = derived_run_id(&["claude", "session", "agent"]);
        assert_eq!(id.to_string(), "a154e4da-dec7-5194-a8be-555dca56c128");
        assert_ne!(id, derived_run_id(&["claude", "sessionagent"]));
    }

    #[test]
    fn uuid_of_the_provider_becomes_the_run_id() {
        let own = "550e8400-e29b-41d4-a716-446655440000";
        assert_eq!(run_id_of("claude", own).to_string(), own);
        assert_ne!(run_id_of("claude", "x"), run_id_of("codex", "x"));
    }
}
