//! Shows a conversation as lines of text.
//!
//! What people and models say is whole; what goes to tools and comes back is cut to fit, and the JSON form has it whole.
//! Foreign text passes through [`visible`] and is indented or stands after a mark, so that no line of it looks like ours.

use steno_model::Seq;
use steno_model::json::{JsonString, RawJson};

use super::content::{Shown, output, shown};
use super::{Approval, Block, ChildRun, Conversation, Fact, Item, Message, Said, ToolResult, ToolUse, Turn};
use crate::State;
use crate::visible::{Lines, visible};
use crate::words::{cut, number};

/// How many characters of a name or a path are shown.
const NAME_CHARS_MAX: usize = 80;
/// How many characters of a line to or from a tool are shown.
const LINE_CHARS_MAX: usize = 160;
/// How many lines of what a tool gave are shown.
const OUTPUT_LINES_MAX: usize = 6;

/// What a part of a line tells, for whoever gives it a colour. Without colours nothing is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// What holds the rest together: drawn lines, ids, times, steps beside the conversation.
    Frame,
    /// Who speaks, if it is the user.
    User,
    /// Who speaks, if it is the model.
    Model,
    /// What the model thought.
    Thought,
    /// The name of a tool that is called.
    Call,
    /// A failure and its reason.
    Failed,
    /// No end so far.
    Open,
    /// What one would not expect: a call without a result, an unknown type.
    Odd,
}

/// Returns a conversation as lines of text.
///
/// The result contains no control character but line feeds, and tabs that were said.
///
/// ```text
/// run 550e8400-e29b-41d4-a716-446655440000  fix-the-build  open
///
/// ── turn-0001  2026-06-08T08:14:42Z  open
///
/// user
///   The build fails.
///
/// assistant  claude-opus-4-8
/// ┊ Tests first.
///   I run the tests.
/// ▸ Bash {"command":"cargo test"}
/// │ failed: Exit code 101
/// ```
#[must_use]
pub fn text(conversation: &Conversation) -> String {
    toned_text(conversation, &|_, words| words.to_owned())
}

/// Returns the same lines as [`text()`], the parts that have a tone as `paint` returns them.
#[must_use]
pub fn toned_text(conversation: &Conversation, paint: &dyn Fn(Tone, &str) -> String) -> String {
    let mut writer = Writer { out: String::new(), paint, is_beside: false };
    writer.head(conversation);
    for said in &conversation.system_prompts {
        writer.system(said);
    }
    // What is in no turn stands before the first turn that began after it.
    let mut outside = conversation.outside.iter().peekable();
    for turn in &conversation.turns {
        while let Some(item) = outside.next_if(|item| seq_of(item) < turn.seq) {
            writer.item(item);
        }
        writer.turn(turn);
    }
    for item in outside {
        writer.item(item);
    }
    writer.out
}

fn seq_of(item: &Item) -> Seq {
    match item {
        Item::Prompt(said) => said.seq,
        Item::Message(message) => message.seq,
        Item::Call(call) => call.seq,
        Item::Approval(approval) => approval.seq,
        Item::Child(child) => child.seq,
        Item::Compaction(fact) | Item::Fact(fact) => fact.seq,
    }
}

/// Puts lines together: parts with two spaces between them, each in its tone.
struct Writer<'a> {
    out: String,
    paint: &'a dyn Fn(Tone, &str) -> String,
    /// Whether the last line stood beside the conversation; such lines stand close.
    is_beside: bool,
}

impl Writer<'_> {
    fn head(&mut self, shown: &Conversation) {
        let word = if shown.parent_run_id.is_some() { "child run" } else { "run" };
        let mut parts = vec![(Tone::Frame, format!("{word} {}", shown.run_id))];
        if let Some(parent) = shown.parent_run_id {
            parts.push((Tone::Frame, format!("of {parent}")));
        }
        parts.extend(shown.name.as_ref().map(|name| (Tone::Frame, name_of(name))));
        parts.push(end(shown.state, shown.error.as_ref()));
        let odd = [
            (shown.dangling_calls.len() as u64, "call", "without result"),
            (shown.unknown_records.values().sum(), "record", "of unknown type"),
            (shown.unknown_types.values().sum(), "event", "of unknown type"),
            (shown.unknown_blocks.values().sum(), "block", "of unknown type"),
        ];
        let odd = odd.into_iter().filter(|(count, _, _)| *count > 0);
        parts.extend(odd.map(|(count, noun, what)| (Tone::Odd, format!("{} {what}", number(count, noun)))));
        self.line(&parts);
    }

    fn turn(&mut self, turn: &Turn) {
        let mut parts = vec![(Tone::Frame, format!("── {}", name_of(&turn.path)))];
        let began = turn.started_at.as_ref().map(ToString::to_string);
        parts.extend(began.map(|time| (Tone::Frame, visible(&time, Lines::Escape).into_owned())));
        if turn.state != State::Completed {
            parts.push(end(turn.state, turn.error.as_ref()));
        }
        self.blank();
        self.line(&parts);
        for item in &turn.items {
            self.item(item);
        }
    }

    fn item(&mut self, item: &Item) {
        match item {
            Item::Prompt(said) => self.prompt(said),
            Item::Message(message) => self.message(message),
            Item::Call(call) => {
                self.blank();
                self.blocks(&call.blocks);
            }
            Item::Approval(asked) => self.beside(&[(Tone::Frame, format!("· {}", approval(asked)))]),
            Item::Child(child) => self.beside(&[(Tone::Frame, format!("· {}", child_run(child)))]),
            Item::Compaction(fact) => {
                self.blank();
                self.line(&[(Tone::Frame, "── what was said so far was replaced by a summary".to_owned())]);
                self.output(Tone::Frame, &fact.result.as_ref().and_then(output).unwrap_or_default());
            }
            Item::Fact(fact) => self.fact(fact),
        }
    }

    fn system(&mut self, said: &Said) {
        self.blank();
        self.line(&[(Tone::Frame, "system".to_owned())]);
        for block in &said.blocks {
            if let Block::Recorded(block) = block
                && let Shown::Words(words) = shown(block)
            {
                self.output(Tone::Frame, &words);
            }
        }
    }

    fn prompt(&mut self, said: &Said) {
        let copied = said.copied_from.map(|run| (Tone::Frame, format!("copied from run {run}")));
        self.blank();
        self.line(&std::iter::once((Tone::User, "user".to_owned())).chain(copied).collect::<Vec<_>>());
        self.blocks(&said.blocks);
    }

    fn message(&mut self, message: &Message) {
        let mut parts = vec![(Tone::Model, "assistant".to_owned())];
        parts.extend(message.model.as_ref().map(|model| (Tone::Frame, name_of(model))));
        parts.extend(message.copied_from.map(|run| (Tone::Frame, format!("copied from run {run}"))));
        self.blank();
        self.line(&parts);
        self.blocks(&message.blocks);
    }

    fn blocks(&mut self, blocks: &[Block]) {
        let mut chunks = String::new();
        for block in blocks {
            let recorded = match block {
                Block::Recorded(recorded) => Some(shown(recorded)),
                Block::ToolUse(_) | Block::ToolResult(_) => None,
            };
            if let Some(Shown::Chunk(chunk)) = &recorded {
                chunks.push_str(chunk);
                continue;
            }
            self.words(&std::mem::take(&mut chunks));
            match (block, recorded) {
                (Block::ToolUse(call), _) => self.call(call),
                (Block::ToolResult(result), _) => self.result(result),
                (Block::Recorded(_), Some(recorded)) => self.recorded(&recorded),
                (Block::Recorded(_), None) => {}
            }
        }
        self.words(&chunks);
    }

    fn recorded(&mut self, block: &Shown) {
        match block {
            Shown::Words(words) | Shown::Chunk(words) => self.words(words),
            Shown::Thought(Some(thought)) => self.thought(thought),
            Shown::Thought(None) => self.thought("(a thought that is not in the record)"),
            Shown::Command(command) => self.words(&format!("$ {command}")),
            Shown::Output(text) => self.output(Tone::Frame, text),
            Shown::Other(kind) => self.line(&[(Tone::Odd, format!("? {}", fit(kind, NAME_CHARS_MAX)))]),
        }
    }

    fn call(&mut self, call: &ToolUse) {
        let name = call.tool_name.as_ref().map_or_else(|| "a tool".to_owned(), name_of);
        let input = call.tool_input.as_ref().filter(|input| !input.is_null()).map(RawJson::as_str);
        let input = input.map(|input| format!(" {}", fit(input, LINE_CHARS_MAX))).unwrap_or_default();
        let line = format!("{} {}{input}", (self.paint)(Tone::Frame, "▸"), (self.paint)(Tone::Call, &name));
        self.push(&line);
        for asked in &call.approvals {
            self.output(Tone::Frame, &approval(asked));
        }
        for child in &call.child_runs {
            self.output(Tone::Frame, &child_run(child));
        }
        if call.is_dangling {
            self.barred(Tone::Odd, "no result");
        }
    }

    fn result(&mut self, result: &ToolResult) {
        let said = result.tool_content.as_ref().and_then(output).unwrap_or_default();
        let error = result.error.as_ref().map(|error| error.to_text().into_owned());
        let word = result.outcome.as_ref().filter(|outcome| !outcome.is("ok") && !outcome.is("unknown"));
        let word = word.map(name_of).or_else(|| error.as_ref().map(|_| "failed".to_owned()));
        let Some(word) = word else { return self.output(Tone::Frame, &said) };
        // Agents give the output of a failed call as the reason why it failed.
        match error.filter(|error| error.trim() != said.trim()) {
            Some(error) => {
                self.output(Tone::Failed, &format!("{word}: {error}"));
                self.output(Tone::Frame, &said);
            }
            None if said.is_empty() => self.barred(Tone::Failed, &word),
            None => self.output(Tone::Failed, &format!("{word}: {said}")),
        }
    }

    fn fact(&mut self, fact: &Fact) {
        let words = [&fact.kind, &fact.name].into_iter().flatten().map(name_of);
        let mut parts = vec![(Tone::Frame, format!("· {}", words.collect::<Vec<_>>().join(" ")))];
        if fact.state == State::Failed {
            parts.push(end(fact.state, fact.error.as_ref()));
        }
        let result = fact.result.as_ref().filter(|result| !result.is_null() && result.as_str() != "{}");
        parts.extend(result.map(|result| (Tone::Frame, fit(result.as_str(), NAME_CHARS_MAX))));
        self.beside(&parts);
    }

    /// Writes a line beside the conversation; several of them stand together.
    fn beside(&mut self, parts: &[(Tone, String)]) {
        if !self.is_beside {
            self.blank();
        }
        self.line(parts);
        self.is_beside = true;
    }

    /// Writes what was said, whole.
    fn words(&mut self, words: &str) {
        for line in visible(words.trim_end(), Lines::Keep).lines() {
            self.push(&format!("  {line}"));
        }
    }

    /// Writes what was thought, whole.
    fn thought(&mut self, thought: &str) {
        for line in visible(thought.trim_end(), Lines::Keep).lines() {
            self.marked("┊", Tone::Thought, line);
        }
    }

    /// Writes the first lines of what a tool gave, and how many there are more.
    fn output(&mut self, tone: Tone, text: &str) {
        let lines = text.trim_end().trim_start_matches('\n').lines();
        for line in lines.clone().take(OUTPUT_LINES_MAX) {
            self.barred(tone, &visible(&cut(line, LINE_CHARS_MAX), Lines::Keep));
        }
        let more = lines.skip(OUTPUT_LINES_MAX).count() as u64;
        if more > 0 {
            self.barred(Tone::Frame, &format!("… {}", number(more, "more line")));
        }
    }

    fn barred(&mut self, tone: Tone, words: &str) {
        self.marked("│", tone, words);
    }

    /// Writes a line of foreign text after a mark of ours.
    fn marked(&mut self, mark: &str, tone: Tone, words: &str) {
        let words = if words.is_empty() { String::new() } else { (self.paint)(tone, words) };
        self.push(&format!("{} {words}", (self.paint)(Tone::Frame, mark)));
    }

    fn line(&mut self, parts: &[(Tone, String)]) {
        let parts: Vec<String> = parts.iter().map(|(tone, words)| (self.paint)(*tone, words)).collect();
        self.push(&parts.join("  "));
    }

    fn blank(&mut self) {
        self.push("");
    }

    fn push(&mut self, line: &str) {
        self.is_beside = false;
        self.out.push_str(line.trim_end());
        self.out.push('\n');
    }
}

fn approval(asked: &Approval) -> String {
    let Some(decision) = &asked.decision else {
        return if asked.state == State::Open { "asked, no answer" } else { "asked, answered" }.to_owned();
    };
    let by = asked.by.as_ref().map(|by| format!(" by {}", name_of(by))).unwrap_or_default();
    let scope = asked.scope.as_ref().map(|scope| format!(" ({})", name_of(scope))).unwrap_or_default();
    format!("{}{by}{scope}", name_of(decision))
}

fn child_run(child: &ChildRun) -> String {
    let id = child.run_id.to_string();
    // Some agents call their threads by nothing but the id.
    let name = child.name.as_ref().filter(|name| !name.is(&id));
    let name = name.map(|name| format!("  {}", name_of(name))).unwrap_or_default();
    format!("child run {id}{name}  {}", end(child.state, child.error.as_ref()).1)
}

fn end(state: State, error: Option<&JsonString>) -> (Tone, String) {
    match (state, error) {
        (State::Open, _) => (Tone::Open, "open".to_owned()),
        (State::Completed, _) => (Tone::Frame, "completed".to_owned()),
        (State::Failed, Some(error)) => {
            (Tone::Failed, format!("failed: {}", fit(&error.to_text(), LINE_CHARS_MAX)))
        }
        (State::Failed, None) => (Tone::Failed, "failed".to_owned()),
    }
}

fn name_of(name: &JsonString) -> String {
    fit(&name.to_text(), NAME_CHARS_MAX)
}

/// Returns the beginning of a text, harmless and on one line.
fn fit(text: &str, chars_max: usize) -> String {
    visible(&cut(text, chars_max), Lines::Escape).into_owned()
}
