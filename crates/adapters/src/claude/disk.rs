//! Session files: `<session>.jsonl`, and a subagent's file of any era. Finds the agent of each line and passes it on.

use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};

use serde_json::value::RawValue;
use steno_model::json::{Extra, JsonString, RawJson};
use steno_model::{EntryType, Lane, RunId};

use super::agents::{Agent, SubagentStart};
use super::content::text_of;
use super::messages::{self, MessageContext};
use super::progress::{self, Progress};
use super::shapes::is_odd_line;
use super::wire::{AgentInput, Line};
use super::{CARRIES_WITHOUT_APPROVALS, CHANNEL, PROVIDER, UNTYPED, facts, user};
use crate::adapter::{Mapper, Record, RecordOutcome, Source};
use crate::emit::{AdapterInfo, Emit, push};
use crate::pending::{PendingKind, PendingRecords};
use crate::repeats::{RecentRecords, hash_of};
use crate::run::{Run, derived_run_id, run_id_of};
use crate::wire::{NoObject, RawField as _, object, parse};

static ABOUT: AdapterInfo = CHANNEL;

/// The first version seen whose files record how each call was accepted. In older files it is unknown whether approval
/// was requested.
const TELLS_APPROVALS: [u32; 3] = [2, 1, 325];
static WITHOUT_APPROVALS: AdapterInfo = AdapterInfo { carries: CARRIES_WITHOUT_APPROVALS, ..CHANNEL };

/// Records without information about the work: Claude Code's internal notes, copies of other records, and progress that
/// a result follows (except a subagent's). `docs/adapters/claude.md` gives the reason for each.
pub(super) const BOOKKEEPING: [&str; 17] = [
    "agent-color",
    "agent-setting",
    "api-request",
    "api-request-blob",
    "api-request-shape",
    "atis-latch",
    "attribution-snapshot",
    "bridge-session",
    "content-replacement",
    "file-history-delta",
    "file-history-snapshot",
    "last-prompt",
    "marble-origami-commit",
    "marble-origami-snapshot",
    "progress",
    "tools-used",
    "worktree-state",
];

/// Records that are facts of the session; their type is the fact's name.
const FACTS: [&str; 8] = [
    "agent-name",
    "mode",
    "permission-mode",
    "pr-link",
    "queue-operation",
    "speculation-accept",
    "tag",
    "task-summary",
];

/// A session file while it is read.
pub(super) struct Disk {
    source: JsonString,
    /// The session id in the file name, for a main agent's file.
    named: Option<RunId>,
    /// The agent id in the file name, for a subagent's file.
    named_agent: Option<String>,
    /// The file's own agent first, once it is known; then subagents whose lines are in the same file, as before 2.0;
    /// then the same subagent in other sessions, as in some files of 2.0.
    agents: Vec<Agent>,
    /// Which of the agents a line belongs to, by its uuid; only lines of such subagents are kept.
    lineage: HashMap<String, usize>,
    /// The calls of the file's own agent that ask for subagents, by the hashes of their prompts.
    calls_by_prompt: HashMap<u64, VecDeque<String>>,
    /// The index of the file's subagent in each session.
    by_session: HashMap<String, usize>,
    /// The ids of lines: a repeated line adds nothing.
    recent: RecentRecords,
    progress: Progress,
    waiting: PendingRecords,
    /// Whether records are written at once: when session and time are known. The first records often have neither.
    is_writing: bool,
    /// The session of a file that had to be opened before it named one.
    named_late: Option<String>,
    is_unnamed: bool,
}

impl Disk {
    pub(super) fn new(source: &Source) -> Self {
        let stem = source.file_name.as_deref().and_then(|name| name.split('.').next());
        Self {
            source: source.id.clone(),
            named: stem.and_then(|stem| RunId::parse(stem).ok()),
            named_agent: stem.and_then(|stem| stem.strip_prefix("agent-")).map(str::to_owned),
            agents: Vec::new(),
            lineage: HashMap::new(),
            calls_by_prompt: HashMap::new(),
            by_session: HashMap::new(),
            recent: RecentRecords::default(),
            progress: Progress::default(),
            waiting: PendingRecords::default(),
            is_writing: false,
            named_late: None,
            is_unnamed: false,
        }
    }

    /// Sets the file's session from the first line that names one; false if none has.
    fn open(&mut self, line: &Line<'_>) -> bool {
        let session = line.session_id.text();
        if let Some(main) = self.agents.first_mut() {
            if let Some(session) = session.filter(|_| self.is_unnamed && self.named_late.is_none()) {
                main.run.session = Some(session.clone().into_owned());
                self.named_late = Some(session.into_owned());
            }
            return true;
        }
        let Some(session) = session else { return false };
        let agent = self.subagent_of(line);
        self.agents.push(match agent {
            Some(agent) => subagent(&session, &agent),
            None => main_agent(self.named.unwrap_or_else(|| run_id_of(PROVIDER, &session)), &session),
        });
        self.by_session.insert(session.into_owned(), 0);
        true
    }

    /// Returns the subagent whose file begins with a line, if it is a subagent's.
    fn subagent_of(&self, line: &Line<'_>) -> Option<String> {
        // Records that are not messages do not name their side; then an agent id means a subagent.
        let is_main_line = line.is_sidechain.json().is_some() && !line.is_sidechain.is_true();
        let is_main = self.named.is_some() || (is_main_line && self.named_agent.is_none());
        let agent = line.agent_id.text().map(Cow::into_owned).or_else(|| self.named_agent.clone());
        agent.filter(|_| !is_main)
    }

    /// Opens a file that names no session.
    fn open_unnamed(&mut self) {
        let source = self.source.to_text();
        let id = self.named.unwrap_or_else(|| derived_run_id(&[PROVIDER, "disk", &source]));
        let session = id.to_string();
        self.agents.push(main_agent(id, &session));
        self.is_unnamed = true;
    }

    /// Writes the records that waited for session and time, and from now on each record at once.
    fn release(&mut self, version: &Line<'_>, emit: &mut Emit<'_>) {
        self.is_writing = true;
        if self.agents.is_empty() {
            self.open_unnamed();
        }
        for waiter in self.waiting.take_from_first_time() {
            emit.release(&waiter.record, |emit| match &waiter.what {
                PendingKind::Unreadable(why) => self.unreadable_now(why, version, emit),
                PendingKind::Record(_) => {
                    let mut line: Line<'_> = parse(waiter.record.text()).unwrap_or_default();
                    line.version = line.version.or(version.version);
                    line.cwd = line.cwd.or(version.cwd);
                    line.git_branch = line.git_branch.or(version.git_branch);
                    self.begin_fork(&mut line, version, emit);
                    let read = self.line(&line, emit);
                    emit.read_late(read);
                }
            });
        }
    }

    /// Begins the run with a record that waited. The run is a fork if the first line that did not wait is a copy; the
    /// record itself is not a copy.
    fn begin_fork<'a>(&mut self, line: &mut Line<'a>, version: &Line<'a>, emit: &mut Emit<'_>) {
        let kind = line.kind.text().unwrap_or(UNTYPED.into());
        if is_bookkeeping(&kind, line) || version.forked_from.is_none() {
            return;
        }
        let own = line.forked_from;
        line.forked_from = own.or(version.forked_from);
        begin(&mut self.agents[0].run, line, emit);
        line.forked_from = own;
    }

    fn unreadable_now(&mut self, why: &str, line: &Line<'_>, emit: &mut Emit<'_>) {
        let run = &mut self.agents[0].run;
        begin(run, line, emit);
        emit.unknown(run, "unreadable", Some(why));
        emit.entry(run, EntryType::Unknown, None);
    }

    /// Returns the index of the agent that a line belongs to.
    fn agent_of(&mut self, line: &Line<'_>, emit: &mut Emit<'_>) -> usize {
        if self.agents[0].run.parent.is_some() {
            return self.agent_in_session(line);
        }
        if !line.is_sidechain.is_true() {
            return 0;
        }
        let Some(uuid) = line.uuid.text() else { return 0 };
        let parent = line.parent_uuid.text().and_then(|parent| self.lineage.get(&*parent).copied());
        let known = self.lineage.get(&*uuid).copied();
        let place = known.or(parent).unwrap_or_else(|| self.begin_inline(line, &uuid, emit));
        self.lineage.insert(uuid.into_owned(), place);
        place
    }

    /// Returns the index of a subagent's run in the line's session: it may have been called from several.
    fn agent_in_session(&mut self, line: &Line<'_>) -> usize {
        let (Some(session), Some(agent)) = (line.session_id.text(), line.agent_id.text()) else { return 0 };
        if let Some(place) = self.by_session.get(&*session) {
            return *place;
        }
        self.agents.push(subagent(&session, &agent));
        self.by_session.insert(session.into_owned(), self.agents.len() - 1);
        self.agents.len() - 1
    }

    /// Begins a subagent at the first of its lines, and ties it to the call that has the same prompt.
    fn begin_inline(&mut self, line: &Line<'_>, uuid: &str, emit: &mut Emit<'_>) -> usize {
        let main = &mut self.agents[0];
        begin(&mut main.run, line, emit);
        let id = line.agent_id.text().unwrap_or(uuid.into());
        let child = main.child_id(&id);
        let prompt = line.message.and_then(|message| message.content).map(text_of);
        let calls = prompt.and_then(|prompt| self.calls_by_prompt.get_mut(&hash_of(&*prompt)));
        let is_open = |id: &String| {
            main.run.calls.get(id).is_some_and(|call| call.child.is_none() && !call.is_answered)
        };
        // Each call is checked once, because a closed call does not open again.
        let call = calls.and_then(|calls| std::iter::from_fn(|| calls.pop_front()).find(is_open));
        if let Some(call) = call {
            let started = SubagentStart {
                call: &call,
                child,
                agent: None,
                agent_type: None,
                matched_by: Some("prompt"),
            };
            main.start_child(started, emit);
        }
        let session = main.run.session.clone().unwrap_or_default();
        let run = Run::subagent(child, main.run.id, &id).of_session(&session);
        let key = main.children_key.clone();
        self.agents.push(Agent::new(run, key));
        self.agents.len() - 1
    }

    fn line(&mut self, line: &Line<'_>, emit: &mut Emit<'_>) -> RecordOutcome {
        let kind = line.kind.text().unwrap_or(UNTYPED.into());
        if progress::is_of_agent(line) {
            return self.agent_progress(line, emit);
        }
        if is_bookkeeping(&kind, line) {
            self.move_prompt(line, emit);
            return RecordOutcome::Bookkeeping;
        }
        let place = self.agent_of(line, emit);
        let agent = &mut self.agents[place];
        // A run that begins with a copied line is not a copy.
        begin(&mut agent.run, line, emit);
        belong(agent, line, self.named_late.as_deref(), emit);
        let calls_before = self.agents[0].run.calls.len();
        let read = write_line(&mut self.agents, place, line, emit);
        self.keep_prompts(calls_before);
        read
    }

    /// Writes a subagent's record that is inside the progress of its call.
    fn agent_progress(&mut self, line: &Line<'_>, emit: &mut Emit<'_>) -> RecordOutcome {
        let is_subagents_file = self.agents[0].run.parent.is_some();
        let caller = if is_subagents_file { self.agent_in_session(line) } else { 0 };
        let agent = &mut self.agents[caller];
        begin(&mut agent.run, line, emit);
        belong(agent, line, self.named_late.as_deref(), emit);
        self.progress.record(&mut self.agents, caller, emit)
    }

    /// Remembers the prompts of subagent calls from a given index on: before 2.0 only the prompt ties a subagent to its
    /// call.
    fn keep_prompts(&mut self, calls_before: usize) {
        let Run { calls, parent: None, .. } = &self.agents[0].run else { return };
        for id in calls.open_after(calls_before) {
            let input = calls.get(id).and_then(|call| call.input.as_ref());
            if let Some(prompt) = input.and_then(prompt_of) {
                self.calls_by_prompt.entry(prompt).or_default().push_back(id.clone());
            }
        }
    }

    /// Notes a prompt that is queued or dequeued.
    fn move_prompt(&mut self, line: &Line<'_>, emit: &mut Emit<'_>) {
        let agent = &mut self.agents[0];
        match line.content.filter(|_| line.operation.is("enqueue")) {
            Some(content) => {
                if let Some(text) = agent.queue.enqueue(text_of(content)) {
                    begin(&mut agent.run, line, emit);
                    facts::prompt_let_go(&agent.run, &text, emit);
                }
            }
            None if line.operation.is("dequeue") => agent.queue.dequeue(),
            None => {}
        }
    }
}

impl Mapper for Disk {
    fn about(&self) -> &'static AdapterInfo {
        &ABOUT
    }

    fn record(&mut self, record: Record<'_>, emit: &mut Emit<'_>) -> Result<RecordOutcome, NoObject> {
        let line: Line<'_> = parse(record.text)?;
        emit.set_time(line.timestamp.string());
        if emit.is_known(line.uuid.text().as_deref()) {
            return Ok(RecordOutcome::Understood);
        }
        if line.uuid.text().is_some_and(|id| self.recent.was_there(hash_of(&(&*id, record.text)))) {
            return Ok(RecordOutcome::Bookkeeping);
        }
        let is_open = self.open(&line);
        // What waits begins the run, with the directory of the first line that has one. The queue of prompts has none.
        let is_queue = !self.waiting.is_empty() && line.kind.is("queue-operation") && line.cwd.is_none();
        if self.is_writing || (is_open && emit.has_time() && !is_queue) {
            self.release(&line, emit);
            return Ok(self.line(&line, emit));
        }
        let is_bookkeeping = line.kind.text().is_some_and(|kind| BOOKKEEPING.contains(&&*kind));
        if is_bookkeeping && !progress::is_of_agent(&line) {
            return Ok(RecordOutcome::Bookkeeping);
        }
        if !self.waiting.keep(PendingKind::Record(Lane::FromAgent), emit) {
            self.release(&line, emit);
        }
        Ok(RecordOutcome::Waiting)
    }

    fn unreadable(&mut self, why: &str, emit: &mut Emit<'_>) {
        if self.is_writing {
            self.unreadable_now(why, &Line::default(), emit);
        } else if !self.waiting.keep(PendingKind::Unreadable(why.into()), emit) {
            self.release(&Line::default(), emit);
        }
    }

    fn run(&self) -> Option<&Run> {
        self.agents.first().map(|agent| &agent.run)
    }

    fn finish(&mut self, emit: &mut Emit<'_>) {
        if !self.is_writing && !self.waiting.is_empty() {
            self.release(&Line::default(), emit);
        }
    }
}

fn main_agent(id: RunId, session: &str) -> Agent {
    Agent::new(Run::main(id).of_session(session), children_key(session))
}

fn subagent(session: &str, agent: &str) -> Agent {
    let id = derived_run_id(&[PROVIDER, session, agent]);
    let run = Run::subagent(id, run_id_of(PROVIDER, session), agent).of_session(session);
    Agent::new(run, children_key(session))
}

fn children_key(session: &str) -> Vec<String> {
    vec![PROVIDER.to_owned(), session.to_owned()]
}

/// A dequeued prompt has its own record; only a removed prompt leaves no other trace.
fn is_bookkeeping(kind: &str, line: &Line<'_>) -> bool {
    let is_moved = || ["enqueue", "dequeue"].iter().any(|operation| line.operation.is(operation));
    BOOKKEEPING.contains(&kind) || (kind == "queue-operation" && is_moved())
}

/// Begins a run with the first of its lines.
pub(super) fn begin(run: &mut Run, line: &Line<'_>, emit: &mut Emit<'_>) {
    if run.is_started {
        return;
    }
    let mut extra = Extra::default();
    push(&mut extra, "cwd", line.cwd.json());
    push(&mut extra, "git", facts::git_of(line));
    let fork_of = line.forked_from.and_then(|from| from.session_id.text());
    let fork_of = fork_of.map(|from| run_id_of(PROVIDER, &from)).filter(|from| *from != run.id);
    let fork_of = fork_of.map(|from| RawJson::object(|object| object.run_id("run_id", &from)));
    push(&mut extra, "forked_from", fork_of);
    let version = line.version.string();
    let is_told = version.as_ref().is_some_and(|version| tells_approvals(&version.to_text()));
    if !is_told && emit.channel() == ABOUT.channel {
        emit.set_about(&WITHOUT_APPROVALS);
    }
    emit.begin(run, version.as_ref(), extra);
}

/// Notes the session that the line names; a copied line names another one.
fn belong(agent: &mut Agent, line: &Line<'_>, named_late: Option<&str>, emit: &mut Emit<'_>) {
    let session = line.session_id.text();
    let is_of_session =
        |session: &str| named_late == Some(session) || run_id_of(PROVIDER, session) == agent.run.id;
    let is_own = agent.run.parent.is_some() || session.as_deref().is_none_or(is_of_session);
    let copied = line.forked_from.map(|from| (from.session_id, from.uuid));
    let other = (!is_own).then_some((line.session_id, line.uuid));
    if let Some((from, uuid)) = copied.or(other) {
        let agent_id = line.agent_id.text().filter(|_| agent.run.parent.is_some());
        emit.set_copied_from(from.text().map(|from| match agent_id {
            Some(agent_id) => derived_run_id(&[PROVIDER, &from, &agent_id]),
            None => run_id_of(PROVIDER, &from),
        }));
        // A name that is not a UUID cannot be told from the run's.
        let name = from.string().filter(|name| RunId::parse(&name.to_text()).is_err());
        for (field, value) in [("copied_session", name), ("copied_id", uuid.string())] {
            if let Some(value) = value {
                emit.mark(field, value.to_json());
            }
        }
    }
    // A subagent that was called in a copied line belongs to the other session.
    let called_in = line.forked_from.and_then(|from| from.session_id.text()).or(session);
    if let Some(session) =
        called_in.filter(|session| agent.children_key.last().is_none_or(|key| *key != **session))
    {
        agent.children_key = children_key(&session);
    }
}

/// Writes the events of a line, and notes fields of unexpected kinds.
pub(super) fn write_line(
    agents: &mut [Agent],
    place: usize,
    line: &Line<'_>,
    emit: &mut Emit<'_>,
) -> RecordOutcome {
    let kind = line.kind.text().unwrap_or(UNTYPED.into());
    let read = write_kind(agents, place, &kind, line, emit);
    // For a fact the whole record is kept.
    let is_whole = kind == "system" || FACTS.contains(&&*kind) || matches!(read, RecordOutcome::Unknown(_));
    let is_odd = !is_whole && is_odd_line(line, emit);
    if is_odd { facts::unknown(&agents[place].run, &kind, emit) } else { read }
}

fn write_kind(
    agents: &mut [Agent],
    place: usize,
    kind: &str,
    line: &Line<'_>,
    emit: &mut Emit<'_>,
) -> RecordOutcome {
    let agent = &mut agents[place];
    match kind {
        "user" => return user::user(agents, place, line, emit),
        "assistant" => return assistant(agent, line, emit),
        "system" => return facts::system(agent, line, emit),
        "attachment" => return facts::attachment(agent, line, emit),
        "summary" => facts::title(&agent.run, line.summary, emit),
        "ai-title" => facts::title(&agent.run, line.ai_title, emit),
        "custom-title" => facts::title(&agent.run, line.custom_title, emit),
        "cost-state" => facts::cost(&agent.run, line, emit),
        "queue-operation" => facts::prompt_taken(agent, line, emit),
        _ if FACTS.contains(&kind) => facts::fact(&agent.run, kind, emit),
        _ => return facts::unknown(&agent.run, kind, emit),
    }
    RecordOutcome::Understood
}

fn assistant(agent: &mut Agent, line: &Line<'_>, emit: &mut Emit<'_>) -> RecordOutcome {
    let Some(message) = line.message else { return facts::unknown(&agent.run, "assistant", emit) };
    if !line.is_api_error.is_true() && !messages::is_synthetic(&message) && agent.has_end_record {
        // The model works again without a prompt, for example after a login: the turn continues and will end again.
        agent.has_end_record = false;
        agent.run.turns.reopen();
    }
    let context = MessageContext {
        uuid: line.uuid,
        request_id: line.request_id,
        is_api_error: line.is_api_error.is_true(),
        error: line.error,
        supersedes: None,
        aborted: None,
    };
    messages::assistant(agent, &message, context, emit)
}

/// Returns the hash of a subagent call's prompt.
fn prompt_of(input: &RawJson) -> Option<u64> {
    let input = input.read::<&RawValue>().ok().and_then(object::<AgentInput<'_>>);
    input.and_then(|input| input.prompt.text()).map(|prompt| hash_of(&*prompt))
}

/// Tells whether files of a version record how calls were accepted.
fn tells_approvals(version: &str) -> bool {
    let mut parts = version.split('.').map(str::parse::<u32>);
    let mut part = || parts.next().and_then(Result::ok);
    let (Some(major), Some(minor), Some(patch)) = (part(), part(), part()) else { return false };
    [major, minor, patch] >= TELLS_APPROVALS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_have_approvals_since_2_1_325() {
        for (version, want) in [
            ("2.1.325", true),
            ("2.1.400", true),
            ("2.2.0", true),
            ("2.1.324", false),
            ("2.0.999", false),
            ("1.9", false),
            ("odd", false),
        ] {
            assert_eq!(tells_approvals(version), want, "{version}");
        }
    }
}
