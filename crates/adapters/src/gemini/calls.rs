//! Calls of the model: in a message's list of calls, in its content, and in function responses.

use std::borrow::Cow;

use serde_json::value::RawValue;
use steno_model::json::{JsonString, ObjectWriter, RawJson};
use steno_model::{BlockContent, ContentBlock, EntryType, Fidelity, StepPayload, Timestamp};

use super::PROVIDER;
use super::results::{CallEnd, CallResponse, end_of};
use super::session::{ResponseOf, Session};
use super::usage::{Scope, push_usage};
use super::wire::{AgentArgs, AgentDisplay, EditDisplay, FunctionResponse, ToolCall};
use crate::emit::{Answer, CallReport, Emit, Outcome, SubagentEvent};
use crate::repeats::{QuickMap, QuickSet, amendment, hash_of};
use crate::run::{Class, run_id_of};
use crate::shapes::decoded_words;
use crate::wire::{Raw, RawField as _, WireObject as _, object};

/// How many digits a time in milliseconds since 1970 has, from 2001 to 2286.
const UNIX_MS_DIGITS: usize = 13;
/// How many digits a counter in an id has at most. A random number has about 13.
const COUNTER_DIGITS_MAX: usize = 6;

/// The calls of a session, by Gemini's id. An id may be used again: it is made of a time and a number.
#[derive(Default)]
pub(super) struct KnownCalls {
    uses: QuickMap<String, Vec<KnownCall>>,
    /// The calls whose subagents have ended, by their ids in events.
    ended: QuickSet<String>,
}

/// One use of a call's id.
struct KnownCall {
    /// The id in events: Gemini's own, or with a number after it if that was used before.
    id: JsonString,
    /// The hash of the message that has it, if one does.
    message: Option<u64>,
    /// The hash of name and input, if they are known.
    call: Option<u64>,
    /// The hashes of its outputs.
    outputs: Vec<u64>,
    outcome: Option<Outcome>,
}

/// What is new about a call.
enum CallNews {
    /// It is a new call.
    New,
    /// Its input was not known.
    Input,
    /// Nothing.
    Nothing,
}

impl KnownCalls {
    /// Tells whether there is a call with the id.
    pub(super) fn has(&self, id: &str) -> bool {
        self.uses.contains_key(id)
    }

    /// Takes a call of a message; returns its index among the uses of its id.
    fn take(&mut self, message: &str, call: &CallRecord<'_>) -> (usize, CallNews) {
        let (message, hash) = (hash_of(message), call.hash());
        if !self.uses.contains_key(&call.id) {
            self.uses.insert(call.id.clone(), Vec::new());
        }
        let Some(uses) = self.uses.get_mut(&call.id) else { return (0, CallNews::Nothing) };
        let is_same = |known: &KnownCall| {
            known.message == Some(message) || known.call == Some(hash) || known.call.is_none()
        };
        if let Some(index) = uses.iter().position(is_same) {
            let known = &mut uses[index];
            let is_repeated = known.call == Some(hash) || (known.call.is_some() && call.is_copy);
            let news = if is_repeated { CallNews::Nothing } else { CallNews::Input };
            if is_repeated {
                return (index, news);
            }
            (known.message, known.call) = (known.message.or(Some(message)), Some(hash));
            return (index, news);
        }
        (add(uses, &call.id, Some(message), Some(hash)), CallNews::New)
    }

    /// Finds the use of an id that a result belongs to: the first without one, otherwise the last.
    fn of_result(&self, id: &str) -> Option<usize> {
        let uses = self.uses.get(id)?;
        uses.iter().position(|known| known.outcome.is_none()).or(uses.len().checked_sub(1))
    }

    /// Notes that the subagent of a call has ended; false if it had before.
    fn end_child(&mut self, call: &str) -> bool {
        self.ended.insert(call.to_owned())
    }

    fn get(&mut self, id: &str, index: usize) -> Option<&mut KnownCall> {
        self.uses.get_mut(id)?.get_mut(index)
    }
}

fn add(uses: &mut Vec<KnownCall>, id: &str, message: Option<u64>, call: Option<u64>) -> usize {
    let index = uses.len();
    let name = if index == 0 { id.into() } else { format!("{id}#{}", index + 1).as_str().into() };
    uses.push(KnownCall { id: name, message, call, outputs: Vec::new(), outcome: None });
    index
}

/// A call as a record has it, with its end if it has one.
pub(super) struct CallRecord<'a> {
    /// Gemini's id.
    pub(super) id: String,
    name: JsonString,
    class: Class,
    args: Raw<'a>,
    end: Option<CallEnd<'a>>,
    /// When it ended.
    time: Option<JsonString>,
    /// Whether it is a copy in the content of its message.
    is_copy: bool,
    agent: Option<AgentRecord<'a>>,
}

/// The subagent of a call.
struct AgentRecord<'a> {
    id: JsonString,
    name: JsonString,
    display: AgentDisplay<'a>,
}

impl<'a> CallRecord<'a> {
    /// Reads an element of a message's list of calls; `None` if it has no name.
    pub(super) fn read(call: &ToolCall<'a>, message: &str, number: usize) -> Option<Self> {
        let name = call.name.string()?;
        let id = decoded_words(call.id).map_or_else(|| format!("{message}:{number}"), Cow::into_owned);
        let response = CallResponse::read(call.result, &id);
        let class = class_of(&name.to_text(), call);
        let agent = call.agent_id.string().filter(|id| !id.is_empty()).map(|id| {
            let display: AgentDisplay<'a> = call.result_display.and_then(object).unwrap_or_default();
            let args: AgentArgs<'_> = call.args.and_then(object).unwrap_or_default();
            let agent = args.agent_name.string().or_else(|| display.agent_name.string());
            AgentRecord { id, name: agent.unwrap_or_else(|| name.clone()), display }
        });
        let edit = call.result_display.filter(|_| class == Class::FileChange);
        let edit = edit.and_then(object::<EditDisplay<'a>>).unwrap_or_default();
        Some(Self {
            id,
            name,
            class,
            args: call.args,
            end: end_of(call.status, response).map(|end| end.with_patch(edit.diff)),
            time: call.timestamp.string(),
            is_copy: false,
            agent,
        })
    }

    /// Makes a call from the name and input in the content of a message.
    pub(super) fn of_content(id: String, name: JsonString, args: Raw<'a>) -> Self {
        let class = class_of(&name.to_text(), &ToolCall::default());
        Self { id, name, class, args, end: None, time: None, is_copy: true, agent: None }
    }

    /// Returns the hash of name and input.
    fn hash(&self) -> u64 {
        hash_of(&(self.name.as_raw(), self.args.map_or("null", RawValue::get)))
    }

    /// Returns the call for its event.
    fn report(&self) -> CallReport {
        let input = self.args.json().unwrap_or_else(RawJson::null);
        CallReport::new(self.name.clone(), self.class, input)
    }
}

/// Judges by its name what a call does.
pub(super) fn class_of(name: &str, call: &ToolCall<'_>) -> Class {
    let is_agents = call.agent_id.text().is_some_and(|id| !id.is_empty());
    let is_server = call.display_name.text().is_some_and(|name| name.ends_with(" MCP Server)"));
    match name {
        _ if is_agents => Class::Agent,
        "run_shell_command" | "shell" => Class::Command,
        "write_file" | "replace" | "edit" | "smart_edit" => Class::FileChange,
        "invoke_agent" | "delegate_to_agent" => Class::Agent,
        _ if is_server || name.starts_with("mcp_") => Class::Mcp,
        _ => Class::Other,
    }
}

/// Returns how many of a message's calls its first response made. Gemini CLI up to 0.30 adds the calls of later responses
/// to the message: those that were made after earlier ones had ended.
fn first_round(calls: &[CallRecord<'_>]) -> usize {
    let ended = |call: &CallRecord<'_>| Timestamp::from_record(call.time.clone()?).instant();
    let made = |call: &CallRecord<'_>| time_made(&call.id)?.instant();
    let mut first_end = None;
    for (at, [call, next]) in calls.array_windows().enumerate() {
        first_end = [first_end, ended(call)].into_iter().flatten().min();
        if first_end.is_some_and(|end| made(next).is_some_and(|made| end < made)) {
            return at + 1;
        }
    }
    calls.len()
}

/// Returns the time at which a call was made, which ids have: `read_file-1780906482000-637e8f9a31ff4` up to 0.25, then
/// `read_file_1780906482000_0`. In `read_file-1780906482000-3` (an editor's session) it is the time at which the call was
/// carried out, and where the name stands twice (from 0.41 on), each message has its own calls.
fn time_made(id: &str) -> Option<Timestamp> {
    let (name, time, is_counted) = if let Some((rest, number)) = id.rsplit_once('-') {
        (rest, rest.rsplit_once('-')?.1, is_counter(number))
    } else {
        let (rest, _) = id.rsplit_once('_')?;
        (rest, rest.rsplit_once('_')?.1, false)
    };
    let is_time = time.len() == UNIX_MS_DIGITS && !is_counted && !name.contains("__");
    Timestamp::from_unix_ms(time.parse().ok().filter(|_| is_time)?)
}

/// Tells whether the end of an id is a counter, and not a random number in hexadecimal digits.
fn is_counter(number: &str) -> bool {
    number.len() <= COUNTER_DIGITS_MAX && number.bytes().all(|digit| digit.is_ascii_digit())
}

/// Makes the block of a response that asks for a call.
pub(super) fn use_block(id: &JsonString, call: &CallReport) -> ContentBlock {
    let content = BlockContent::ToolUse {
        tool_name: Some(call.name.clone()),
        tool_id: Some(id.clone()),
        tool_input: Some(call.input.clone()),
    };
    ContentBlock::new(Fidelity::AgentEmitted, content)
}

impl Session {
    /// Writes what is new about the calls of a message, response by response.
    pub(super) fn take_calls(
        &mut self,
        message: ResponseOf<'_>,
        mut calls: Vec<CallRecord<'_>>,
        emit: &mut Emit<'_>,
    ) {
        let mut response = message;
        while !calls.is_empty() {
            let later = calls.split_off(first_round(&calls));
            self.take_round(response, calls, emit);
            calls = later;
            response.round += 1;
        }
    }

    /// Writes what is new about the calls of one response.
    fn take_round(&mut self, response: ResponseOf<'_>, calls: Vec<CallRecord<'_>>, emit: &mut Emit<'_>) {
        let (mut made, mut ends) = (Vec::new(), Vec::new());
        for call in calls {
            let (index, news) = self.calls.take(response.id, &call);
            let Some(name) = self.calls.get(&call.id, index).map(|known| known.id.clone()) else { continue };
            match news {
                CallNews::New => made.push((name.clone(), call.report())),
                CallNews::Input => self.amend_input(&name, &call.report(), emit),
                CallNews::Nothing => {}
            }
            let CallRecord { id, end, time, agent, .. } = call;
            ends.push((id, index, name, end, time, agent));
        }
        self.write_calls(response, made, emit);
        for (id, index, name, end, time, agent) in ends {
            emit.set_time(time);
            if let Some(agent) = &agent {
                self.begin_child(&name, agent, emit);
            }
            if let Some(end) = end {
                let outcome = end.outcome;
                self.end_call(&id, index, end, emit);
                if let Some(agent) = &agent {
                    self.end_child(&name, agent, outcome, emit);
                }
            }
        }
    }

    fn write_calls(
        &mut self,
        response: ResponseOf<'_>,
        made: Vec<(JsonString, CallReport)>,
        emit: &mut Emit<'_>,
    ) {
        if made.is_empty() {
            return;
        }
        let blocks = made.iter().map(|(id, report)| use_block(id, report)).collect();
        let mut extra = response.fields();
        if response.round > 0 {
            // The message has the usage of its first response alone.
            push_usage(&mut extra, RawJson::object(|_| {}), Scope::Response);
            extra.push("lower_bound", RawJson::from(true));
        }
        emit.assistant(&self.run, blocks, extra);
        for (id, report) in made {
            emit.entry(&self.run, EntryType::ToolUse, None);
            emit.call(&mut self.run, &id, report);
        }
    }

    /// Writes the input of a call that was first recorded without one, or with another.
    fn amend_input(&mut self, id: &JsonString, report: &CallReport, emit: &mut Emit<'_>) {
        let Some(path) = self.run.calls.get(&id.to_text()).map(|call| call.path.clone()) else { return };
        let result = RawJson::object(|object| {
            object.string("name", &report.name);
            object.json("input", &report.input);
        });
        emit.step_completed(&self.run, &path, amendment(id, result));
        emit.entry(&self.run, EntryType::ToolUse, None);
    }

    /// Writes the end of a call, once. A later outcome that differs amends it. A later output that differs becomes a fact,
    /// because Gemini CLI masks old outputs.
    fn end_call(&mut self, id: &str, index: usize, end: CallEnd<'_>, emit: &mut Emit<'_>) {
        let Some(known) = self.calls.get(id, index) else { return };
        let is_new = !known.outputs.contains(&end.hash);
        if is_new {
            known.outputs.push(end.hash);
        }
        let (name, outcome) = (known.id.clone(), end.outcome);
        let before = known.outcome.replace(outcome);
        match before {
            None => emit.result(&mut self.run, &name, "", end.into_answer()),
            Some(before) if before != outcome && outcome != Outcome::Unknown => {
                self.amend_result(&name, end.into_answer(), emit);
            }
            Some(_) if is_new => self.replaced_output(&name, end.output(), emit),
            Some(_) => return,
        }
        emit.entry(&self.run, EntryType::ToolResult, None);
    }

    fn amend_result(&mut self, id: &JsonString, answer: Answer, emit: &mut Emit<'_>) {
        let Some(path) = self.run.calls.get(&id.to_text()).map(|call| call.path.clone()) else { return };
        let result = RawJson::object(|object| {
            object.json("output", &answer.output);
            object.word("outcome", answer.outcome.as_str());
            object.optional("error", answer.error.as_ref(), ObjectWriter::string);
            for (name, value) in answer.extra.into_pairs() {
                object.json(&name.to_text(), &value);
            }
        });
        emit.step_completed(&self.run, &path, amendment(id, result));
    }

    fn replaced_output(&mut self, id: &JsonString, output: RawJson, emit: &mut Emit<'_>) {
        let Some(path) = self.run.calls.get(&id.to_text()).map(|call| call.path.clone()) else { return };
        let mut payload = StepPayload::new("output_replaced", "system");
        payload.extra.push("tool_call_id", id.to_json());
        payload.result = Some(output);
        emit.step_completed(&self.run, &path, payload);
    }

    /// Takes a function response on the user's side: a copy of a result, or the only record of a call that was refused.
    pub(super) fn take_response(&mut self, response: &FunctionResponse<'_>, emit: &mut Emit<'_>) {
        let Some(id) = decoded_words(response.id).or_else(|| decoded_words(response.name)) else { return };
        let Some(mut end) = end_of(None, Some(CallResponse::of_value(response.response))) else { return };
        let index = match self.calls.of_result(&id) {
            Some(index) => index,
            None => self.call_unseen(&id, response, emit),
        };
        let Some(known) = self.calls.get(&id, index) else { return };
        let Some(outcome) = known.outcome else { return self.end_call(&id, index, end, emit) };
        // The list of calls has the status, and this only the output.
        end.outcome = outcome;
        self.end_call(&id, index, end, emit);
    }

    fn call_unseen(&mut self, id: &str, response: &FunctionResponse<'_>, emit: &mut Emit<'_>) -> usize {
        let name = response.name.string().unwrap_or_else(|| "".into());
        let class = class_of(&name.to_text(), &ToolCall::default());
        let mut report = CallReport::new(name, class, RawJson::null());
        report.extra.push("input_available", RawJson::from(false));
        let index = add(self.calls.uses.entry(id.to_owned()).or_default(), id, None, None);
        if let Some(name) = self.calls.get(id, index).map(|known| known.id.clone()) {
            emit.call(&mut self.run, &name, report);
        }
        index
    }

    fn begin_child(&mut self, call: &JsonString, agent: &AgentRecord<'_>, emit: &mut Emit<'_>) {
        if self.run.calls.child(&call.to_text()).is_some() {
            return;
        }
        let child = run_id_of(PROVIDER, &agent.id.to_text());
        emit.subagent(&self.run, SubagentEvent::Started, child, agent_step(call, agent));
        self.run.calls.link(&call.to_text(), child);
    }

    /// Writes that the subagent of a call has ended, with the call's first result.
    fn end_child(
        &mut self,
        call: &JsonString,
        agent: &AgentRecord<'_>,
        outcome: Outcome,
        emit: &mut Emit<'_>,
    ) {
        let key = call.to_text().into_owned();
        let Some(child) = self.run.calls.child(&key).filter(|_| self.calls.end_child(&key)) else { return };
        let mut payload = agent_step(call, agent);
        let status = agent.display.state.string();
        let reason = agent.display.terminate_reason.json();
        payload.error = (outcome != Outcome::Ok).then(|| outcome.as_str().into());
        payload.result = (status.is_some() || reason.is_some()).then(|| {
            RawJson::object(|object| {
                object.optional("status", status.as_ref(), ObjectWriter::string);
                object.optional("terminate_reason", reason.as_ref(), ObjectWriter::json);
            })
        });
        emit.subagent(&self.run, SubagentEvent::Completed, child, payload);
    }
}

fn agent_step(call: &JsonString, agent: &AgentRecord<'_>) -> StepPayload {
    let mut payload = StepPayload::new(agent.name.clone(), "subagent");
    payload.extra.push("tool_call_id", call.to_json());
    payload.extra.push("agent_id", agent.id.to_json());
    payload
}

/// Reads the calls in a message's list; the second value tells whether something in it is of an unknown kind.
pub(super) fn calls_of<'a>(
    list: Option<&[Option<ToolCall<'a>>]>,
    message: &str,
) -> (Vec<CallRecord<'a>>, bool) {
    let list = list.unwrap_or_default();
    let mut is_odd = false;
    let mut calls = Vec::with_capacity(list.len());
    for (number, call) in list.iter().enumerate() {
        is_odd |= call.is_none_or(|call| call.is_odd());
        let read = call.and_then(|call| CallRecord::read(&call, message, number));
        is_odd |= read.is_none();
        calls.extend(read);
    }
    (calls, is_odd)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(id: &str, ended: Option<&str>) -> CallRecord<'static> {
        let mut call = CallRecord::of_content(id.to_owned(), "read_file".into(), None);
        call.time = ended.map(Into::into);
        call
    }

    #[track_caller]
    fn check(calls: &[(&str, Option<&str>)], want: usize) {
        let calls: Vec<_> = calls.iter().map(|(id, ended)| call(id, *ended)).collect();
        assert_eq!(first_round(&calls), want);
    }

    #[test]
    fn a_call_after_the_end_of_another_is_of_a_later_response() {
        // 1780906482000 is 2026-06-08T08:14:42Z.
        let (first, end) = ("a-1780906482000-0f3a91c", Some("2026-06-08T08:14:43.000Z"));
        check(&[(first, end)], 1);
        check(&[(first, end), ("b-1780906482001-0f3a91c", end)], 2);
        check(&[(first, end), ("b-1780906482001-0f3a91c", end), ("c-1780906483001-0f3a91c", end)], 2);
        check(&[(first, end), ("b-1780906483000-0f3a91c", end)], 2);
        check(&[(first, None), ("b-1780906483001-0f3a91c", end)], 2);
        check(&[(first, end), ("b_c_1780906499001_0", end)], 1);
        for unlike in [
            "b",
            "b-1",
            "b_1_0",
            "b__b_1780906499001_0",
            "b-1780906499001-2",
            "b-178090649900x-1",
            "b-17809064990011-1",
        ] {
            check(&[(first, end), (unlike, end)], 2);
        }
    }
}
