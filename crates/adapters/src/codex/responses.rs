//! Response items of rollouts: the conversation as the model sees it, with every message, thought and call.

use std::borrow::Cow;

use serde_json::value::RawValue;
use steno_model::json::{Extra, JsonString, RawJson};
use steno_model::{ContentBlock, EntryType, Fidelity};

use super::agents::{ended, is_spawn, strings};
use super::items::{paragraphs, thought};
use super::patch_commands::is_patch;
use super::prompt;
use super::rejections::{failure_in, rejection_in};
use super::session::{Session, plain_answer, thinking_block};
use super::shapes::are_texts;
use super::twins::{Side, Words};
use super::wire::{AgentAnswer, AgentNotice, OutputText, Part, Payload};
use crate::adapter::RecordOutcome;
use crate::emit::{Answer, CallReport, Emit, Outcome, push, string};
use crate::run::Class;
use crate::shapes::{is_list, is_text};
use crate::wire::{Raw, RawField as _, objects, parse};

/// Writes the events of a response item.
pub(super) fn response_item(session: &mut Session, item: &Payload<'_>, emit: &mut Emit<'_>) -> RecordOutcome {
    let kind = item.kind.text().unwrap_or_default();
    let mut is_odd = false;
    match &*kind {
        "message" => return message(session, item, emit),
        "reasoning" => is_odd = reasoning(session, item, emit),
        "function_call" | "custom_tool_call" | "local_shell_call" | "tool_search_call" => {
            let is_its = call(session, item, &kind, emit);
            is_odd = !(is_its && is_text(item.name) && is_text(item.call_id));
        }
        "function_call_output"
        | "custom_tool_call_output"
        | "local_shell_call_output"
        | "tool_search_output" => {
            is_odd = !is_text(item.call_id) || !output(session, item, emit);
        }
        "web_search_call" => web_search(session, item, emit),
        "image_generation_call" => {
            is_odd = !is_text(item.revised_prompt);
            image(session, item, emit);
        }
        "agent_message" => is_odd = mail(session, item, emit),
        // Items that Codex did not know, and its own snapshot of the working tree.
        "other" | "ghost_snapshot" => return RecordOutcome::Bookkeeping,
        "compaction" | "compaction_summary" | "context_compaction" => {
            session.fact("compaction_item", None, emit);
        }
        _ => is_odd = true,
    }
    if is_odd { session.unknown(&format!("response_item.{kind}"), emit) } else { RecordOutcome::Understood }
}

/// Writes a thought; returns true if a value in it is of an unexpected kind.
fn reasoning(session: &mut Session, item: &Payload<'_>, emit: &mut Emit<'_>) -> bool {
    let block = thinking_block(thought(item.content, item.summary));
    for text in paragraphs(item.content).iter().chain(&paragraphs(item.summary)) {
        session.twins.say(Words::Thought, &text.to_text());
    }
    session.say(vec![block], own_id(item), EntryType::Thinking, emit);
    !(are_texts(item.content) && are_texts(item.summary))
}

fn own_id(item: &Payload<'_>) -> Extra {
    let mut extra = Extra::default();
    push(&mut extra, "id", item.id.json());
    push(&mut extra, "phase", item.phase.json());
    extra
}

fn message(session: &mut Session, item: &Payload<'_>, emit: &mut Emit<'_>) -> RecordOutcome {
    let role = item.role.text().unwrap_or_default();
    let report = match (&*role, item.content) {
        (_, None) => MessageReport::Odd,
        ("assistant", Some(content)) => assistant(session, item, content, emit),
        ("user", Some(content)) => user(session, item, content, emit),
        (_, Some(content)) => of_another(session, &role, (item, content), emit),
    };
    match report {
        MessageReport::Odd => session.unknown("response_item.message", emit),
        MessageReport::All if !is_text(item.role) => session.unknown("response_item.message", emit),
        MessageReport::Nothing => RecordOutcome::Bookkeeping,
        MessageReport::All => RecordOutcome::Understood,
    }
}

/// How much of a message was written.
enum MessageReport {
    All,
    /// The message was empty.
    Nothing,
    /// A value of an unexpected kind was skipped.
    Odd,
}

/// Writes a message of Codex or its host to the model.
fn of_another(
    session: &mut Session,
    role: &str,
    (item, content): (&Payload<'_>, &RawValue),
    emit: &mut Emit<'_>,
) -> MessageReport {
    let message = prompt::user_message(content, &kinds_of(item));
    let is_empty = message.blocks.is_empty() && message.notices.is_empty();
    if !message.blocks.is_empty() {
        let name = if role.is_empty() { "message" } else { role };
        session.fact(name, Some(string(&message.text)), emit);
    }
    notices(session, message.notices, emit);
    match (message.is_odd, is_empty) {
        (true, _) => MessageReport::Odd,
        (false, true) => MessageReport::Nothing,
        (false, false) => MessageReport::All,
    }
}

fn kinds_of(item: &Payload<'_>) -> Vec<String> {
    strings(item.passthrough.and_then(|passthrough| passthrough.kinds))
}

fn assistant(
    session: &mut Session,
    item: &Payload<'_>,
    content: &RawValue,
    emit: &mut Emit<'_>,
) -> MessageReport {
    let block = |part: Part<'_>| match (part.text.string(), part.refusal.string()) {
        (Some(text), _) => Some((text, None)),
        (None, Some(refusal)) => Some((refusal, Some(string("refusal")))),
        (None, None) => None,
    };
    let parts = match Some(content).string() {
        Some(text) => Some(vec![Some((text, None))]),
        None => objects::<Part<'_>>(content)
            .map(|parts| parts.into_iter().map(|(_, part)| part.and_then(block)).collect()),
    };
    let is_odd = parts.as_ref().is_none_or(|parts| parts.contains(&None));
    let parts: Vec<(JsonString, Option<RawJson>)> = parts.unwrap_or_default().into_iter().flatten().collect();
    if parts.is_empty() {
        return if is_odd { MessageReport::Odd } else { MessageReport::Nothing };
    }
    let text: String = parts.iter().map(|(text, _)| text.to_text()).collect();
    session.twins.say(Words::Text, &text);
    let blocks = parts.into_iter().map(|(text, label)| {
        let mut block = ContentBlock::text(Fidelity::AgentEmitted, text);
        push(&mut block.extra, "label", label);
        block
    });
    session.say(blocks.collect(), own_id(item), EntryType::AssistantMessage, emit);
    if is_odd { MessageReport::Odd } else { MessageReport::All }
}

fn user(session: &mut Session, item: &Payload<'_>, content: &RawValue, emit: &mut Emit<'_>) -> MessageReport {
    let mut message = prompt::user_message(content, &kinds_of(item));
    let (is_odd, is_told) = (message.is_odd, !message.notices.is_empty() || !message.blocks.is_empty());
    notices(session, std::mem::take(&mut message.notices), emit);
    if !message.blocks.is_empty() {
        session.prompt(Side::Model, item.id.json(), message, emit);
    }
    match (is_odd, is_told) {
        (true, _) => MessageReport::Odd,
        (false, true) => MessageReport::All,
        (false, false) => MessageReport::Nothing,
    }
}

fn notices(session: &mut Session, notices: Vec<(String, JsonString)>, emit: &mut Emit<'_>) {
    for (name, text) in notices {
        if name.ends_with("subagent_notification") {
            subagent_notice(session, &text.to_text(), emit);
        }
        session.fact(&name, Some(text.to_json()), emit);
    }
}

/// Reads the notice about the end of a subagent that its parent gets.
fn subagent_notice(session: &mut Session, text: &str, emit: &mut Emit<'_>) {
    let inside = text.find('{').zip(text.rfind('}')).and_then(|(start, end)| text.get(start..=end));
    let Some(notice) = inside.and_then(|inside| parse::<AgentNotice<'_>>(inside).ok()) else { return };
    let thread = notice.agent_id.text().or_else(|| notice.agent_path.text());
    let end = notice.status.and_then(super::agents::end_of);
    if let Some((thread, end)) = thread.zip(end) {
        session.end_children(vec![(thread.into_owned(), end)], emit);
    }
}

/// Writes a message of one agent to another; returns true if a value in it is of an unexpected kind.
fn mail(session: &mut Session, item: &Payload<'_>, emit: &mut Emit<'_>) -> bool {
    let parts = item.content.and_then(objects::<Part<'_>>);
    let is_known = |part: &Option<Part<'_>>| {
        part.is_some_and(|part| part.text.string().is_some() || part.kind.is("encrypted_content"))
    };
    let is_odd = !parts.as_ref().is_none_or(|parts| parts.iter().all(|(_, part)| is_known(part)));
    let parts = parts.unwrap_or_default();
    let texts: Vec<_> = parts.iter().filter_map(|(_, part)| part.as_ref()?.text.text()).collect();
    let mail = RawJson::object(|object| {
        object.optional("author", item.author.string().as_ref(), steno_model::json::ObjectWriter::string);
        object.string("text", &texts.join("\n").as_str().into());
    });
    session.fact("agent_mail", Some(mail), emit);
    is_odd || !is_list(item.content) || !is_text(item.author)
}

/// Writes a call; false if a different call has its id.
fn call(session: &mut Session, item: &Payload<'_>, kind: &str, emit: &mut Emit<'_>) -> bool {
    let id = item.call_id.string().or_else(|| item.id.string());
    let id = id.unwrap_or_else(|| format!("{kind}-{}", session.next_unnamed()).as_str().into());
    session.call(&id, call_seen(item, kind), item.id.json(), emit)
}

fn call_seen(item: &Payload<'_>, kind: &str) -> CallReport {
    let own = item.name.text();
    let namespace = item.namespace.text();
    let name = match (&own, &namespace) {
        (Some(name), Some(namespace)) if namespace.starts_with("mcp__") => format!("{namespace}__{name}"),
        (Some(name), _) => name.clone().into_owned(),
        (None, _) => kind.strip_suffix("_call").unwrap_or(kind).to_owned(),
    };
    let input = item.arguments.or(item.input).or(item.action);
    let (input, is_broken) = arguments(input, kind == "function_call");
    let is_patch = class_of(&name, kind) == Class::Command && is_patch(&input);
    let class = if is_patch { Class::FileChange } else { class_of(&name, kind) };
    let mut call = CallReport::new(name.as_str().into(), class, input);
    push(&mut call.extra, "namespace", item.namespace.json());
    if is_broken {
        call.extra.push("input_parse_error", RawJson::from(true));
    }
    call
}

/// Returns the input of a call, and whether it is broken: arguments are JSON in a string, other input is kept as it is.
fn arguments(raw: Raw<'_>, is_text: bool) -> (RawJson, bool) {
    let Some(raw) = raw else { return (RawJson::null(), false) };
    match Some(raw).text().filter(|_| is_text) {
        None => (RawJson::from_raw(raw), false),
        Some(text) => match RawJson::parse(&text) {
            Ok(input) => (input, false),
            Err(_) => (RawJson::from_raw(raw), !text.is_empty()),
        },
    }
}

/// Returns what a tool does, by its name.
pub(super) fn class_of(name: &str, kind: &str) -> Class {
    match name {
        _ if kind == "local_shell_call" => Class::Command,
        "exec_command" | "write_stdin" | "shell" | "shell_command" | "container.exec" => Class::Command,
        "apply_patch" => Class::FileChange,
        "spawn_agent" | "send_input" | "wait" | "wait_agent" | "close_agent" | "resume_agent"
        | "send_message" | "followup_task" | "list_agents" => Class::Agent,
        _ if name.starts_with("mcp__") => Class::Mcp,
        _ => Class::Other,
    }
}

/// Writes the output of a call; false if it has no call id, or the model got a different output before.
fn output(session: &mut Session, item: &Payload<'_>, emit: &mut Emit<'_>) -> bool {
    let Some(id) = item.call_id.string().or_else(|| item.id.string()) else { return false };
    let output = item.output.or(item.tools);
    let name = session.run.calls.get(&id.to_text()).map(|call| call.name.to_text().into_owned());
    if let Some(name) = &name {
        subagents(session, &id, name, output, emit);
    }
    // The class of a call that is not in the file is unknown; refused calls are mostly commands.
    let class = session.run.calls.get(&id.to_text()).map_or(Class::Command, |call| call.class);
    session.take_output(&id, answer(output, class, &name.unwrap_or_default()), emit)
}

/// Reads an output. Up to 0.7x the output of a command was JSON in a string, with the exit code; since then it is
/// prose, from which nothing can be concluded.
fn answer(output: Raw<'_>, class: Class, name: &str) -> Answer {
    let plain = || {
        let answer = plain_answer(output.map_or_else(|| string(""), RawJson::from_raw));
        match rejection_in(&answer.output, class) {
            error @ Some(_) => Answer { error, outcome: Outcome::Denied, ..answer },
            None => match failure_in(&answer.output, class, name) {
                error @ Some(_) => Answer { error, outcome: Outcome::Failed, ..answer },
                None => answer,
            },
        }
    };
    // An output can be large, and most need not be decoded to see that they are not JSON.
    let is_object = output.is_some_and(|raw| raw.get().starts_with("\"{"));
    let Some(text) = output.filter(|_| is_object).text() else { return plain() };
    let read = parse::<OutputText<'_>>(&text).unwrap_or_default();
    let exit_code = read.metadata.and_then(|metadata| metadata.exit_code.number());
    let (Some(inner), Some(exit_code)) = (read.output.json(), exit_code) else { return plain() };
    let outcome = if exit_code == 0 { Outcome::Ok } else { Outcome::Failed };
    let error = (exit_code != 0).then(|| JsonString::from(format!("exit code {exit_code}").as_str()));
    Answer { error, exit_code: Some(exit_code), ..Answer::new(inner, outcome) }
}

/// Reads which subagents a call created or saw end, for versions without events about it.
fn subagents(session: &mut Session, id: &JsonString, name: &str, output: Raw<'_>, emit: &mut Emit<'_>) {
    if !matches!(name, "spawn_agent" | "wait" | "wait_agent" | "close_agent") {
        return;
    }
    let Some(text) = output.text() else { return };
    let Ok(answer) = parse::<AgentAnswer<'_>>(&text) else { return };
    if let Some(thread) = answer.agent_id.text().filter(|_| is_spawn(name)) {
        session.begin_child(&thread, Some(&id.to_text()), emit);
    }
    session.end_children(ended(answer.status), emit);
}

/// Writes a search by the provider: one item is both the call and its end.
fn web_search(session: &mut Session, item: &Payload<'_>, emit: &mut Emit<'_>) {
    let named = item.id.string().or_else(|| item.call_id.string());
    let is_known = |id: &JsonString| session.run.calls.get(&id.to_text()).is_some();
    if named.as_ref().is_some_and(is_known) || (named.is_none() && session.searches > 0) {
        session.searches = session.searches.saturating_sub(1);
        return;
    }
    let id = named.unwrap_or_else(|| format!("web_search-{}", session.next_unnamed()).as_str().into());
    let input = item.action.json().unwrap_or_else(RawJson::null);
    session.call(&id, CallReport::new("web_search".into(), Class::Other, input), item.id.json(), emit);
    session.take_output(&id, ended_answer(item, RawJson::null()), emit);
}

fn image(session: &mut Session, item: &Payload<'_>, emit: &mut Emit<'_>) {
    let named = item.id.string();
    let is_known = |id: &JsonString| session.run.calls.get(&id.to_text()).is_some();
    if named.as_ref().is_some_and(is_known) {
        return;
    }
    let id = named.unwrap_or_else(|| format!("image_generation-{}", session.next_unnamed()).as_str().into());
    let prompt: Cow<'_, str> = item.revised_prompt.text().unwrap_or_default();
    let input = RawJson::object(|object| object.string("prompt", &(&*prompt).into()));
    session.call(&id, CallReport::new("image_generation".into(), Class::Other, input), item.id.json(), emit);
    session.take_output(&id, ended_answer(item, item.result.json().unwrap_or_else(RawJson::null)), emit);
}

fn ended_answer(item: &Payload<'_>, output: RawJson) -> Answer {
    let outcome = match item.status.text().as_deref() {
        None | Some("completed") => Outcome::Ok,
        Some("failed") => Outcome::Failed,
        Some(_) => Outcome::Unknown,
    };
    Answer::new(output, outcome)
}
