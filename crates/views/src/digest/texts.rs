//! The texts of a session that a search looks at, and how they are read from an event.

use std::borrow::Cow;

use serde_json::value::RawValue;
use steno_model::json::{JsonString, RawJson, text_of};
use steno_model::{EventType, ExchangeEvent};
use steno_session::{Block, CallNumber, EventPosition, PayloadFields, Session, Speaker};

use super::beside_calls::{COMMAND, ERROR, RETRY, each_other_error, entries_beside_calls};
use crate::conversation::{BlockText, block_text, tool_output};

/// What a text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TextKind {
    /// What the user said.
    Prompt,
    /// What the model said.
    Answer,
    /// What the model thought.
    Thought,
    /// The arguments of a call, or a command that the user ran.
    Command,
    /// What a call returned.
    Output,
}

impl TextKind {
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 5] = [Self::Prompt, Self::Answer, Self::Thought, Self::Command, Self::Output];

    /// Returns its name, as it is typed in a query.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Prompt => "prompt",
            Self::Answer => "answer",
            Self::Thought => "thought",
            Self::Command => "command",
            Self::Output => "output",
        }
    }

    /// Returns the kind with a name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// A text of a session, by the event that it stands in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TextUnit {
    /// The event.
    pub at: EventPosition,
    /// Which block of a message it is; 0 for calls and results.
    pub block: u32,
    /// What it is.
    pub kind: TextKind,
    /// The call that it belongs to.
    pub call: Option<CallNumber>,
}

/// Calls `take` with every text of a session, each once. Outputs are named without their text. What is copied from another
/// session is left out: it is found there.
pub fn each_text(session: &Session, mut take: impl FnMut(TextUnit, Option<String>)) {
    for message in session.messages.iter().filter(|message| message.copied_from.is_none()) {
        let speaker = match message.speaker {
            Speaker::System => continue,
            Speaker::User => TextKind::Prompt,
            Speaker::Model => TextKind::Answer,
        };
        for (number, block) in message.blocks.iter().enumerate() {
            let Block::Recorded(block) = block else { continue };
            if let Some((kind, text)) = read_block(block, speaker) {
                let block = u32::try_from(number).unwrap_or(u32::MAX);
                take(TextUnit { at: message.at, block, kind, call: None }, Some(text));
            }
        }
    }
    for (number, call) in session.calls.iter().enumerate() {
        let of_call = |at, kind| TextUnit { at, block: 0, kind, call: Some(CallNumber(number)) };
        let response = call.response.map(|response| &session.responses[response.0]);
        if response.is_some_and(|response| response.copied_from.is_some()) {
            continue;
        }
        let arguments = call.input.as_ref().and_then(arguments_text);
        if let Some((called, arguments)) = call.called.zip(arguments) {
            take(of_call(called, TextKind::Command), Some(arguments));
        }
        if let Some(at) = call.result.as_ref().and_then(|result| result.at) {
            take(of_call(at, TextKind::Output), None);
        }
    }
    for (place, entry) in entries_beside_calls(session).into_iter().enumerate() {
        if entry.is_copied {
            continue;
        }
        let call = Some(CallNumber(session.calls.len() + place));
        let of_entry = |at, kind| TextUnit { at, block: 0, kind, call };
        let words = entry.words.and_then(|at| Some((at, command_words(session, at)?)));
        if let Some((at, words)) = words {
            take(of_entry(at, TextKind::Command), Some(words));
        }
        if let Some(at) = entry.output {
            take(of_entry(at, TextKind::Output), None);
        }
    }
    each_other_error(session, |unit| take(unit, None));
}

/// The fields of the result of a plain command with what it printed. Of a long output, beginning and end are apart.
const PRINTED: [&str; 4] = ["stdout", "stdout_end", "stderr", "stderr_end"];

/// Returns the words of the command that a run began with, one per line.
fn command_words(session: &Session, at: EventPosition) -> Option<String> {
    let run = session.runs.get(at.run.0)?;
    wrap_words(&PayloadFields::parse(run.head.as_ref()?.as_str()))
}

fn wrap_words(start: &PayloadFields<'_>) -> Option<String> {
    start.object("wrap").json("command").as_ref().and_then(arguments_text)
}

/// Returns what a plain command printed to standard error; `None` for other events, and if it is nothing.
#[must_use]
pub fn error_output(event: &ExchangeEvent) -> Option<String> {
    let fields = PayloadFields::of(event);
    let is_command = event.event_type.known() == Some(EventType::StepCompleted)
        && fields.text("kind").is_some_and(|kind| kind == COMMAND);
    is_command.then(|| printed(&fields, &PRINTED[2..])).flatten()
}

/// Returns some of what a command printed.
fn printed(fields: &PayloadFields<'_>, names: &[&str]) -> Option<String> {
    let result = fields.object("result");
    let texts = names.iter().filter_map(|name| output_text(&result.json(name)?, None));
    let texts: Vec<String> = texts.collect();
    (!texts.is_empty()).then(|| texts.join("\n"))
}

/// Returns the text of a step that has ended: what a command printed, or why something failed outside of calls.
fn step_text(fields: &PayloadFields<'_>) -> Option<String> {
    match &*fields.text("kind")? {
        COMMAND => printed(fields, &PRINTED),
        ERROR | RETRY | "turn" => {
            fields.error().map(|error| without_escape_sequences(error.to_text().into_owned()))
        }
        _ => None,
    }
}

/// Reads a text from its event; `None` if the event does not have it.
#[must_use]
pub fn unit_text(event: &ExchangeEvent, block: u32, kind: TextKind) -> Option<String> {
    let fields = PayloadFields::of(event);
    match event.event_type.known()? {
        EventType::MessageUser | EventType::MessageAssistant => {
            let is_user = event.event_type.known() == Some(EventType::MessageUser);
            let speaker = if is_user { TextKind::Prompt } else { TextKind::Answer };
            let blocks = fields.items("blocks");
            let block = RawJson::from_raw(blocks.get(usize::try_from(block).ok()?)?);
            read_block(&block, speaker).filter(|(found, _)| *found == kind).map(|(_, text)| text)
        }
        EventType::ToolCall => arguments_text(&fields.json("input")?),
        EventType::ToolResult => output_text(&fields.json("output")?, fields.error().as_ref()),
        EventType::RunStarted if kind == TextKind::Command => wrap_words(&fields),
        EventType::StepCompleted => step_text(&fields),
        EventType::RunStarted
        | EventType::RunCompleted
        | EventType::StepStarted
        | EventType::CallWorkflowStarted
        | EventType::CallWorkflowCompleted => None,
    }
}

/// Returns the tool of a call or result; `None` for other events.
#[must_use]
pub fn tool_name(event: &ExchangeEvent) -> Option<String> {
    let is_call = matches!(event.event_type.known(), Some(EventType::ToolCall | EventType::ToolResult));
    let name = is_call.then(|| PayloadFields::of(event).text("name").map(Cow::into_owned)).flatten();
    name.filter(|name| !name.is_empty())
}

/// Returns the text of a block and what it is; `None` for blocks without text.
fn read_block(block: &RawJson, speaker: TextKind) -> Option<(TextKind, String)> {
    let (kind, text) = match block_text(block) {
        BlockText::Words(text) | BlockText::Chunk(text) => (speaker, text),
        BlockText::Thought(text) => (TextKind::Thought, text?),
        BlockText::Command(text) => (TextKind::Command, text),
        BlockText::Output(text) => (TextKind::Output, text),
        BlockText::Other(_) => return None,
    };
    (!text.is_empty()).then_some((kind, text))
}

/// Returns the arguments of a call as text: its strings and numbers, in order, one per line.
#[must_use]
pub fn arguments_text(input: &RawJson) -> Option<String> {
    let mut lines = String::new();
    let mut rest = input.as_str();
    while let Some(start) = rest.find(|next: char| next == '"' || next == '-' || next.is_ascii_digit()) {
        rest = &rest[start..];
        let (token, after) = rest.split_at(token_len(rest));
        rest = after;
        // A string before a colon is a name.
        if rest.trim_ascii_start().starts_with(':') {
            continue;
        }
        if !lines.is_empty() {
            lines.push('\n');
        }
        match serde_json::from_str::<&RawValue>(token).ok().and_then(text_of) {
            Some(text) => lines.push_str(&text),
            None => lines.push_str(token),
        }
    }
    (!lines.is_empty()).then_some(lines)
}

/// Returns the length of the string or number that a text begins with.
fn token_len(text: &str) -> usize {
    if !text.starts_with('"') {
        let is_number = |next: char| next.is_ascii_digit() || matches!(next, '+' | '-' | '.' | 'e' | 'E');
        return text.find(|next: char| !is_number(next)).unwrap_or(text.len());
    }
    let bytes = text.as_bytes();
    let mut place = 1;
    while let Some(byte) = bytes.get(place) {
        match byte {
            b'"' => return place + 1,
            b'\\' => place += 2,
            _ => place += 1,
        }
    }
    text.len()
}

/// Returns the output of a call as text, as `show` prints it. Without an output it is the error.
#[must_use]
pub fn output_text(output: &RawJson, error: Option<&JsonString>) -> Option<String> {
    let text = tool_output(output).filter(|text| !text.is_empty());
    let text = text.or_else(|| error.map(|error| error.to_text().into_owned()))?;
    Some(without_escape_sequences(text))
}

/// Removes the sequences with which programs set colours and move the cursor, so that they do not join words.
fn without_escape_sequences(text: String) -> String {
    const ESCAPE: char = '\u{1b}';
    if !text.contains(ESCAPE) {
        return text;
    }
    let mut plain = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while let Some(place) = rest.find(ESCAPE) {
        plain.push_str(&rest[..place]);
        rest = after_sequence(&rest[place + 1..]);
    }
    plain.push_str(rest);
    plain
}

/// Returns what follows a sequence, which begins after its escape character.
fn after_sequence(text: &str) -> &str {
    const BELL: char = '\u{7}';
    match text.as_bytes().first() {
        // Parameters, then one letter.
        Some(b'[') => {
            let end = text[1..].find(|next: char| ('@'..='~').contains(&next) || next < ' ');
            end.map_or("", |end| &text[end + 2..])
        }
        // A text that ends with a bell or another escape.
        Some(b']') => {
            let end = text.find([BELL, '\u{1b}']);
            end.map_or("", |end| text[end..].strip_prefix(BELL).unwrap_or(&text[end..]))
        }
        Some(b'\\') => &text[1..],
        Some(_) | None => text,
    }
}
