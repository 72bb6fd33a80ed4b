//! Shows a conversation as lines of text.
//!
//! Messages are complete. Tool inputs and outputs are cut to fit; the JSON form has them complete. Foreign text passes
//! through [`visible`] and is indented or follows a mark, so that none of its lines looks like ours.

use steno_model::RunId;
use steno_model::json::RawJson;

use super::content::{BlockText, block_text, tool_output};
use super::step_lines::{approval, child_run, end, fit, name_of};
use super::{Block, Conversation, Item, Message, Prompt, ToolResult, ToolUse, Turn};
use crate::text_format::{columns_of, count, cut, room};
use crate::visible::{Lines, visible};
use crate::{ParentReport, State};

/// How many characters of a name or a path are shown.
pub(super) const NAME_CHARS_MAX: usize = 80;
/// How many characters of a tool's input or output line are shown if no width is given.
pub(super) const LINE_CHARS_MAX: usize = 160;
/// How many lines of a tool's output are shown.
const OUTPUT_LINES_MAX: usize = 6;

/// The meaning of a part of a line, to choose its colour. The text is complete without colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConversationTone {
    /// Drawn lines, ids, times, system steps.
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
    /// Unexpected facts: a call without a result, an unknown type.
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
    styled_text(conversation, &ConversationStyle::plain(&|_, words| words.to_owned()))
}

/// Returns a number of branches in words.
#[must_use]
pub fn count_of_branches(branches: u64) -> String {
    if branches == 1 { "1 branch".to_owned() } else { format!("{branches} branches") }
}

/// How a conversation is printed.
#[derive(Clone)]
pub struct ConversationStyle<'a> {
    /// Gives a part of a line its colour.
    pub paint: &'a dyn Fn(ConversationTone, &str) -> String,
    /// The width to which lines are cut; `None` for a default that suits files.
    pub width: Option<usize>,
    /// Whether consecutive system steps are all shown.
    pub has_every_step: bool,
    /// What the run's parent reports of its end.
    pub reported: Option<ParentReport>,
}

impl<'a> ConversationStyle<'a> {
    /// Returns the style of [`text()`], with colours.
    #[must_use]
    pub fn plain(paint: &'a dyn Fn(ConversationTone, &str) -> String) -> Self {
        Self { paint, width: None, has_every_step: false, reported: None }
    }
}

/// Returns the same lines as [`text()`], in a style.
#[must_use]
pub fn styled_text(conversation: &Conversation, style: &ConversationStyle<'_>) -> String {
    let mut writer = Writer { out: String::new(), style, is_beside: false, copied_from: None };
    writer.head(conversation);
    for prompt in &conversation.system_prompts {
        writer.system(prompt);
    }
    // Items outside of turns come before the first turn that began after them.
    let mut shown = 0;
    for turn in &conversation.turns {
        let before = turn.outside_before.clamp(shown, conversation.outside.len());
        writer.items(&conversation.outside[shown..before]);
        writer.turn(turn);
        shown = before;
    }
    writer.items(&conversation.outside[shown..]);
    writer.out
}

/// Writes lines: parts separated by two spaces, each in its tone.
pub(super) struct Writer<'a> {
    out: String,
    pub(super) style: &'a ConversationStyle<'a>,
    /// Whether the last line was a system line; these are not separated by blank lines.
    is_beside: bool,
    /// The run that the whole turn is copied from, as its heading says.
    copied_from: Option<RunId>,
}

impl Writer<'_> {
    fn head(&mut self, shown: &Conversation) {
        let word = if shown.parent_run_id.is_some() { "child run" } else { "run" };
        let mut parts = vec![(ConversationTone::Frame, format!("{word} {}", shown.run_id))];
        if let Some(parent) = shown.parent_run_id {
            parts.push((ConversationTone::Frame, format!("of {parent}")));
        }
        parts.extend(shown.name.as_ref().map(|name| (ConversationTone::Frame, name_of(name))));
        parts.extend(shown.forked_from.map(|run| (ConversationTone::Frame, format!("fork of {run}"))));
        parts.push(match &self.style.reported {
            Some(reported) if shown.state == State::Open => {
                let (tone, words) = end(reported.state, reported.error.as_ref());
                (tone, format!("{words} (reported by parent)"))
            }
            Some(_) | None => end(shown.state, shown.error.as_ref()),
        });
        let odd = [
            (shown.dangling_calls.len() as u64, "call", "without result"),
            (shown.unknown_records.values().sum(), "record", "of unknown type"),
            (shown.unknown_types.values().sum(), "event", "of unknown type"),
            (shown.unknown_blocks.values().sum(), "block", "of unknown type"),
        ];
        let odd = odd.into_iter().filter(|(count, _, _)| *count > 0);
        parts.extend(
            odd.map(|(number, noun, what)| {
                (ConversationTone::Odd, format!("{} {what}", count(number, noun)))
            }),
        );
        parts
            .extend((shown.branches > 0).then(|| (ConversationTone::Odd, count_of_branches(shown.branches))));
        self.line(&parts);
    }

    fn turn(&mut self, turn: &Turn) {
        let mut parts = vec![(ConversationTone::Frame, format!("── {}", name_of(&turn.path)))];
        let began = turn.started_at.as_ref().map(ToString::to_string);
        parts.extend(began.map(|time| (ConversationTone::Frame, visible(&time, Lines::Escape).into_owned())));
        match turn.status {
            "completed" => {}
            "interrupted" => parts.push((ConversationTone::Failed, turn.status.to_owned())),
            _ => parts.push(end(turn.state, turn.error.as_ref())),
        }
        self.copied_from = copied_from(turn);
        parts.extend(self.copied_from.map(|run| (ConversationTone::Frame, format!("copied from run {run}"))));
        self.blank();
        self.line(&parts);
        self.items(&turn.items);
        self.copied_from = None;
    }

    pub(super) fn item(&mut self, item: &Item) {
        match item {
            Item::Prompt(prompt) => self.prompt(prompt),
            Item::Message(message) => self.message(message),
            Item::Call(call) => {
                self.blank();
                self.blocks(&call.blocks);
            }
            Item::Approval(asked) => {
                let (tone, words) = approval(asked);
                self.system_line(&[(tone, format!("· {words}"))]);
            }
            Item::Child(child) => {
                self.system_line(&[(ConversationTone::Frame, format!("· {}", child_run(child)))]);
            }
            Item::Compaction(fact) => {
                self.blank();
                self.line(&[(
                    ConversationTone::Frame,
                    "── the conversation so far was replaced by a summary".to_owned(),
                )]);
                self.output(
                    ConversationTone::Frame,
                    &fact.result.as_ref().and_then(tool_output).unwrap_or_default(),
                );
            }
            Item::Fact(fact) => self.fact(fact),
        }
    }

    fn system(&mut self, prompt: &Prompt) {
        self.blank();
        self.line(&[(ConversationTone::Frame, "system".to_owned())]);
        for block in &prompt.blocks {
            if let Block::Recorded(block) = block
                && let BlockText::Words(words) = block_text(block)
            {
                self.output(ConversationTone::Frame, &words);
            }
        }
    }

    fn prompt(&mut self, prompt: &Prompt) {
        let copied = self.copied(prompt.copied_from);
        self.blank();
        self.line(
            &std::iter::once((ConversationTone::User, "user".to_owned())).chain(copied).collect::<Vec<_>>(),
        );
        self.blocks(&prompt.blocks);
    }

    fn message(&mut self, message: &Message) {
        let mut parts = vec![(ConversationTone::Model, "assistant".to_owned())];
        parts.extend(message.model.as_ref().map(|model| (ConversationTone::Frame, name_of(model))));
        parts.extend(self.copied(message.copied_from));
        self.blank();
        self.line(&parts);
        self.blocks(&message.blocks);
    }

    /// Returns the run that something is copied from, unless the heading of the turn has it.
    fn copied(&self, from: Option<RunId>) -> Option<(ConversationTone, String)> {
        let from = from.filter(|run| self.copied_from != Some(*run))?;
        Some((ConversationTone::Frame, format!("copied from run {from}")))
    }

    fn blocks(&mut self, blocks: &[Block]) {
        let mut chunks = String::new();
        for block in blocks {
            let recorded = match block {
                Block::Recorded(recorded) => Some(block_text(recorded)),
                Block::ToolUse(_) | Block::ToolResult(_) => None,
            };
            if let Some(BlockText::Chunk(chunk)) = &recorded {
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

    fn recorded(&mut self, block: &BlockText) {
        match block {
            BlockText::Words(words) | BlockText::Chunk(words) => self.words(words),
            BlockText::Thought(Some(thought)) => self.thought(thought),
            BlockText::Thought(None) => self.thought("(thought not recorded)"),
            BlockText::Command(command) => self.words(&format!("$ {command}")),
            BlockText::Output(text) => self.output(ConversationTone::Frame, text),
            BlockText::Other(kind) => {
                self.line(&[(ConversationTone::Odd, format!("? {}", fit(kind, NAME_CHARS_MAX)))]);
            }
        }
    }

    fn call(&mut self, call: &ToolUse) {
        let name = call.tool_name.as_ref().map_or_else(|| "a tool".to_owned(), name_of);
        let input = call.tool_input.as_ref().filter(|input| !input.is_null()).map(RawJson::as_str);
        let chars_max = self.room(columns_of("▸ ") + columns_of(&name) + 1);
        let input = input.map(|input| format!(" {}", fit(input, chars_max)));
        let (mark, name) = (
            (self.style.paint)(ConversationTone::Frame, "▸"),
            (self.style.paint)(ConversationTone::Call, &name),
        );
        self.push(&format!("{mark} {name}{}", input.unwrap_or_default()));
        for asked in &call.approvals {
            let (tone, words) = approval(asked);
            self.output(tone, &words);
        }
        for child in &call.child_runs {
            self.output(ConversationTone::Frame, &child_run(child));
        }
        if call.is_dangling {
            self.barred(ConversationTone::Odd, "no result");
        }
    }

    fn result(&mut self, result: &ToolResult) {
        let text = result.tool_content.as_ref().and_then(tool_output).unwrap_or_default();
        let error = result.error.as_ref().map(|error| error.to_text().into_owned());
        let word = result.outcome.as_ref().filter(|outcome| !outcome.is("ok") && !outcome.is("unknown"));
        let word = word.map(name_of).or_else(|| error.as_ref().map(|_| "failed".to_owned()));
        let Some(word) = word else {
            self.output(ConversationTone::Frame, &text);
            if result.outcome.as_ref().is_some_and(|outcome| outcome.is("unknown")) {
                self.barred(ConversationTone::Frame, "(outcome unknown)");
            }
            return;
        };
        // Agents often repeat the output of a failed call as its error.
        match error.filter(|error| error.trim() != text.trim()) {
            Some(error) => {
                self.output(ConversationTone::Failed, &format!("{word}: {error}"));
                self.output(ConversationTone::Frame, &text);
            }
            None if text.is_empty() => self.barred(ConversationTone::Failed, &word),
            None => self.output(ConversationTone::Failed, &format!("{word}: {text}")),
        }
    }

    /// Writes a system line; consecutive ones are not separated.
    pub(super) fn system_line(&mut self, parts: &[(ConversationTone, String)]) {
        if !self.is_beside {
            self.blank();
        }
        self.line(parts);
        self.is_beside = true;
    }

    /// Returns how many characters fit after those that are used.
    pub(super) fn room(&self, used: usize) -> usize {
        room(self.style.width, used, LINE_CHARS_MAX)
    }

    /// Writes a message, complete.
    fn words(&mut self, words: &str) {
        for line in visible(words.trim_end(), Lines::Keep).lines() {
            self.push(&format!("  {line}"));
        }
    }

    /// Writes a thought, complete.
    fn thought(&mut self, thought: &str) {
        for line in visible(thought.trim_end(), Lines::Keep).lines() {
            self.marked("┊", ConversationTone::Thought, line);
        }
    }

    /// Writes the first lines of a tool's output, and the number of the others.
    pub(super) fn output(&mut self, tone: ConversationTone, text: &str) {
        let lines = text.trim_end().trim_start_matches('\n').lines();
        let chars_max = self.room(columns_of("│ "));
        for line in lines.clone().take(OUTPUT_LINES_MAX) {
            self.barred(tone, &visible(&cut(line, chars_max), Lines::Keep));
        }
        let more = lines.skip(OUTPUT_LINES_MAX).count() as u64;
        if more > 0 {
            self.barred(ConversationTone::Frame, &format!("… {}", count(more, "more line")));
        }
    }

    fn barred(&mut self, tone: ConversationTone, words: &str) {
        self.marked("│", tone, words);
    }

    /// Writes a line of foreign text after a mark of ours.
    fn marked(&mut self, mark: &str, tone: ConversationTone, words: &str) {
        let words = if words.is_empty() { String::new() } else { (self.style.paint)(tone, words) };
        self.push(&format!("{} {words}", (self.style.paint)(ConversationTone::Frame, mark)));
    }

    fn line(&mut self, parts: &[(ConversationTone, String)]) {
        let parts: Vec<String> = parts.iter().map(|(tone, words)| (self.style.paint)(*tone, words)).collect();
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

/// Returns the run that everything said in a turn is copied from.
fn copied_from(turn: &Turn) -> Option<RunId> {
    let mut runs = turn.items.iter().filter_map(|item| match item {
        Item::Prompt(prompt) => Some(prompt.copied_from),
        Item::Message(message) => Some(message.copied_from),
        Item::Call(_) | Item::Approval(_) | Item::Child(_) | Item::Compaction(_) | Item::Fact(_) => None,
    });
    let first = runs.next()??;
    runs.all(|from| from == Some(first)).then_some(first)
}
