//! Tells the conversations of a recording apart.

use std::collections::{HashMap, HashSet};

use steno_model::RunId;
use steno_model::json::JsonString;

use super::client::{Caller, Client, ClientSession};
use super::history::SentPart;
use super::requests::Api;
use super::thread::Thread;
use crate::run::{Run, derived_run_id};

/// How many conversations without a name are compared with a request.
const COMPARED_MAX: usize = 256;

/// The conversations of a recording.
pub(super) struct Threads {
    source: String,
    all: Vec<Thread>,
    /// Conversations by the session that the client names.
    by_session: HashMap<(ClientSession, bool), Vec<usize>>,
    /// Conversations without a name, by their first part.
    by_start: HashMap<u64, Vec<usize>>,
    /// Conversations by the ids of their answers.
    by_response: HashMap<String, usize>,
    /// The ids of all runs.
    ids: HashSet<RunId>,
}

/// What a request shows about its conversation.
pub(super) struct RequestMarks<'a> {
    pub(super) api: Api,
    /// The number of its exchange.
    pub(super) number: i64,
    pub(super) caller: &'a Caller,
    pub(super) sent: &'a [SentPart],
    pub(super) has_tools: bool,
    pub(super) previous: Option<&'a str>,
    pub(super) version: Option<JsonString>,
}

impl Threads {
    pub(super) fn new(source: &str) -> Self {
        Self {
            source: source.to_owned(),
            all: Vec::new(),
            by_session: HashMap::new(),
            by_start: HashMap::new(),
            by_response: HashMap::new(),
            ids: HashSet::new(),
        }
    }

    pub(super) fn get(&self, place: usize) -> Option<&Thread> {
        self.all.get(place)
    }

    pub(super) fn get_mut(&mut self, place: usize) -> Option<&mut Thread> {
        self.all.get_mut(place)
    }

    /// Notes that an answer belongs to a conversation.
    pub(super) fn answered(&mut self, response: &str, place: usize) {
        self.by_response.insert(response.to_owned(), place);
    }

    /// Finds the conversation of a request, or begins one.
    pub(super) fn of_request(&mut self, marks: &RequestMarks<'_>) -> usize {
        let previous = marks.previous.and_then(|response| self.by_response.get(response).copied());
        let found = previous.or_else(|| match &marks.caller.session {
            Some(session) => self.of_session(session, marks),
            None => self.of_history(marks),
        });
        found.unwrap_or_else(|| self.begin(marks))
    }

    fn of_session(&self, session: &ClientSession, marks: &RequestMarks<'_>) -> Option<usize> {
        let is_side = is_side(marks);
        let found = self.by_session.get(&(session.clone(), is_side))?;
        if !is_side {
            return found.last().copied();
        }
        // Requests outside the session's conversation are told apart by their content.
        let fits = |place: &&usize| self.all[**place].history.fit(marks.sent).has_models;
        found.iter().rev().find(fits).copied()
    }

    fn of_history(&self, marks: &RequestMarks<'_>) -> Option<usize> {
        let found = self.by_start.get(&start_of(marks.sent)?)?;
        let compared = found.iter().rev().take(COMPARED_MAX);
        let fitting = compared.filter_map(|place| {
            let thread = &self.all[*place];
            let fit = thread.history.fit(marks.sent);
            let is_retry = fit.is_again && thread.failure.is_some();
            (fit.has_models || is_retry).then_some((fit.common, *place))
        });
        fitting.max().map(|(_, place)| place)
    }

    fn begin(&mut self, marks: &RequestMarks<'_>) -> usize {
        let place = self.all.len();
        let caller = marks.caller;
        let is_side = is_side(marks);
        let mut run = match (&caller.session, &caller.parent) {
            (None, None) => Run::main(self.run_id(&[&marks.number.to_string()])),
            (None, Some(parent)) => {
                let name = format!("subagent-{}", marks.number);
                let id = self.run_id(&[&marks.number.to_string()]);
                Run::subagent(id, self.run_of(parent), &name).of_session(&parent.session)
            }
            (Some(session), _) if is_side => {
                let name = format!("side-{}", marks.number);
                let id = self.run_id(&[&session.session, &name]);
                Run::subagent(id, self.run_of(session), &name).of_session(&session.session)
            }
            (Some(session), Some(parent)) => {
                let name = session.agent.as_ref().unwrap_or(&session.session);
                Run::subagent(self.run_of(session), self.run_of(parent), name).of_session(&session.session)
            }
            (Some(session), None) => Run::main(self.run_of(session)).of_session(&session.session),
        };
        // A damaged recording may have an exchange twice.
        while !self.ids.insert(run.id) {
            run.id = self.run_id(&[&run.id.to_string()]);
        }
        if let Some(session) = caller.session.as_ref().filter(|_| !is_side) {
            run.mirrors = Some(caller.client.session_run(session));
        }
        let about = caller.client.about(marks.api).unwrap_or_else(|| marks.api.about());
        let mut thread = Thread::new(run, about, caller.client);
        (thread.is_side, thread.version) = (is_side, marks.version.clone());
        self.all.push(thread);
        let found = match &caller.session {
            Some(session) => self.by_session.entry((session.clone(), is_side)).or_default(),
            None => self.by_start.entry(start_of(marks.sent).unwrap_or_default()).or_default(),
        };
        found.push(place);
        place
    }

    /// Returns the run of a session on this channel. The session's own file owns its id.
    fn run_of(&self, session: &ClientSession) -> RunId {
        self.run_id(&[&session.session, session.agent.as_deref().unwrap_or_default()])
    }

    fn run_id(&self, key: &[&str]) -> RunId {
        let key: Vec<&str> = ["http", &self.source].into_iter().chain(key.iter().copied()).collect();
        derived_run_id(&key)
    }

    /// Begins the conversation of an answer whose request is not there.
    pub(super) fn of_answer(&mut self, api: Api, number: i64) -> usize {
        let caller = Caller { client: Client::Other, session: None, parent: None, turn: None };
        let marks = RequestMarks {
            api,
            number,
            caller: &caller,
            sent: &[],
            has_tools: false,
            previous: None,
            version: None,
        };
        self.begin(&marks)
    }
}

/// Tells whether a request of a named session is not part of its conversation: Claude Code asks for titles without tools.
fn is_side(marks: &RequestMarks<'_>) -> bool {
    marks.caller.client == Client::ClaudeCode && !marks.has_tools
}

/// Returns the first part that is compared.
fn start_of(sent: &[SentPart]) -> Option<u64> {
    sent.iter().find_map(|part| part.hash)
}
