//! Draws turns, what was said, system steps, approvals and subagents, in their order.

use steno_model::RunId;
use steno_model::json::{Fields, JsonString};

use super::calls::CallView;
use super::outputs::output_lines;
use super::segments::{Line, Segment};
use super::speech::{SpeechStyle, markdown_lines};
use super::units::{Unit, UnitContent};
use super::wrap::Wrap;
use super::{Detail, GUTTER_COLUMNS, INDENT_COLUMNS, Screen, ScreenTone, one, spaces};
use crate::State;
use crate::conversation::{Approval, ChildRun, Fact, Item, Turn, tool_output};
use crate::nodes::markdown;
use crate::short_text::{gist, reason};
use crate::text_format::{GROUPED_STEPS_MIN, count, cut, duration, is_minor, summarize_steps, thousands};

/// How many characters of a name are shown.
const NAME_CHARS_MAX: usize = 80;
/// How many characters of a reason are shown.
const REASON_CHARS_MAX: usize = 160;
/// How many lines of a prompt and of a thought are shown if they are folded.
const PROMPT_LINES_MAX: usize = 40;
const THOUGHT_LINES_MAX: usize = 6;

/// What was drawn last, which decides about blank lines and labels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DrawnKind {
    Heading,
    Prompt,
    Answer,
    Thought,
    Call,
    Step,
}

impl Screen<'_> {
    /// Draws units in order.
    pub(super) fn units(&mut self, units: &[Unit<'_>]) {
        let mut last = self.state.last;
        let mut hidden = HiddenCalls::default();
        let mut at = 0;
        while at < units.len() && !self.is_closed() {
            let quiet = self.quiet_calls_at(&units[at..]);
            if !quiet.is_empty() {
                at += quiet.len();
                hidden.add(&quiet);
                if self.style.detail > Detail::Answers {
                    self.separate(last, DrawnKind::Call);
                    self.quiet_calls(&quiet);
                    last = DrawnKind::Call;
                }
                continue;
            }
            let steps = quiet_steps(&units[at..]);
            if steps.len() >= GROUPED_STEPS_MIN
                && !self.style.has_every_step
                && self.style.detail < Detail::Everything
            {
                at += steps.len();
                if self.style.detail == Detail::Outputs {
                    let line = summarize_steps(
                        steps.into_iter().map(|name| short(&name.to_text(), NAME_CHARS_MAX)),
                        usize::MAX,
                    );
                    self.separate(last, DrawnKind::Step);
                    self.step_line(&one(ScreenTone::Frame, &line));
                    last = DrawnKind::Step;
                }
                continue;
            }
            last = self.unit(&units[at], last, &mut hidden);
            at += 1;
        }
        self.state.last = last;
    }

    fn quiet_calls_at<'u>(&self, units: &[Unit<'u>]) -> Vec<CallView<'u>> {
        if self.style.detail >= Detail::Outputs {
            return Vec::new();
        }
        let call = |unit: &Unit<'u>| {
            let UnitContent::Call { call, result } = unit.content else { return None };
            CallView::of_quiet(call, result).filter(|view| !self.is_focus(view))
        };
        units.iter().map_while(call).collect()
    }

    fn unit(&mut self, unit: &Unit<'_>, last: DrawnKind, hidden: &mut HiddenCalls) -> DrawnKind {
        let detail = self.style.detail;
        match &unit.content {
            UnitContent::Turn(turn) => {
                *hidden = HiddenCalls::default();
                return if self.turn(turn) { DrawnKind::Heading } else { last };
            }
            UnitContent::SystemPrompt(text) if detail == Detail::Everything => {
                self.separate(last, DrawnKind::Step);
                self.step_line(&one(ScreenTone::Frame, "system prompt"));
                self.body(output_lines(text, ScreenTone::Frame), None);
                return DrawnKind::Step;
            }
            UnitContent::Prompt(text) => {
                self.separate(last, DrawnKind::Prompt);
                self.prompt(text, last != DrawnKind::Prompt);
                return DrawnKind::Prompt;
            }
            UnitContent::Answer { text, is_last } if *is_last || detail > Detail::Answers => {
                self.separate(last, DrawnKind::Answer);
                self.hidden(hidden);
                self.answer(text);
                return DrawnKind::Answer;
            }
            UnitContent::Thought(text) if detail >= Detail::Changes => {
                self.separate(last, DrawnKind::Thought);
                self.thought(text.as_deref().unwrap_or("(thought not recorded)"));
                return DrawnKind::Thought;
            }
            UnitContent::Call { call, result } => {
                let view = CallView::of(call, *result);
                if detail == Detail::Answers && !self.is_focus(&view) {
                    hidden.add(std::slice::from_ref(&view));
                    return last;
                }
                self.separate(last, DrawnKind::Call);
                self.call(&view);
                return DrawnKind::Call;
            }
            UnitContent::CallAgain { call, result, parts } if detail > Detail::Answers => {
                self.separate(last, DrawnKind::Call);
                self.call_again(&CallView::of(call, *result), parts);
                return DrawnKind::Call;
            }
            UnitContent::SystemPrompt(_)
            | UnitContent::Answer { .. }
            | UnitContent::Thought(_)
            | UnitContent::CallAgain { .. } => {}
            UnitContent::Command(_)
            | UnitContent::Output(_)
            | UnitContent::Unknown(_)
            | UnitContent::TurnEnd(_)
            | UnitContent::Approval(_)
            | UnitContent::Child(_)
            | UnitContent::Compaction(_)
            | UnitContent::Step(_) => {
                if self.step(&unit.content, last) {
                    return DrawnKind::Step;
                }
            }
        }
        last
    }

    /// Draws a step; returns false if it is not shown at this detail.
    fn step(&mut self, content: &UnitContent<'_>, last: DrawnKind) -> bool {
        if self.style.detail == Detail::Answers && !self.style.has_every_step {
            return false;
        }
        match content {
            UnitContent::Command(command) => {
                self.separate(last, DrawnKind::Step);
                let label = [Segment::new(ScreenTone::User, " you │ $ ")];
                self.put(
                    [&label, &[spaces(INDENT_COLUMNS + 2)]],
                    &one(ScreenTone::Call, command),
                    Wrap::Output,
                );
            }
            UnitContent::Output(text) => {
                let limit = if self.style.detail >= Detail::Outputs { None } else { Some(PROMPT_LINES_MAX) };
                self.body(output_lines(text, ScreenTone::Frame), limit.filter(|_| self.style.is_folded));
            }
            UnitContent::Unknown(kind) => {
                self.separate(last, DrawnKind::Step);
                self.step_line(&one(ScreenTone::Odd, &format!("? {}", cut(kind, NAME_CHARS_MAX))));
            }
            UnitContent::TurnEnd(turn) => {
                self.separate(last, DrawnKind::Step);
                let end = turn_end(turn).map(|(tone, words)| one(tone, &words));
                self.step_line(&end.unwrap_or_default());
            }
            UnitContent::Approval(asked) => {
                let (tone, words) = approval_words(asked);
                self.separate(last, DrawnKind::Step);
                self.step_line(&one(tone, &words));
            }
            UnitContent::Child(child) => {
                self.separate(last, DrawnKind::Step);
                self.child(child);
            }
            UnitContent::Compaction(fact) => self.compaction(fact),
            UnitContent::Step(fact) => {
                if !is_shown(content, self.style.detail) && !self.style.has_every_step {
                    return false;
                }
                self.separate(last, DrawnKind::Step);
                self.fact(fact);
            }
            UnitContent::Turn(_)
            | UnitContent::SystemPrompt(_)
            | UnitContent::Prompt(_)
            | UnitContent::Answer { .. }
            | UnitContent::Thought(_)
            | UnitContent::Call { .. }
            | UnitContent::CallAgain { .. } => return false,
        }
        true
    }

    /// Writes the blank line between two things that are not of one kind.
    fn separate(&mut self, last: DrawnKind, next: DrawnKind) {
        let is_together = match next {
            DrawnKind::Prompt => matches!(last, DrawnKind::Heading | DrawnKind::Prompt),
            DrawnKind::Answer => last == DrawnKind::Heading,
            DrawnKind::Thought => matches!(last, DrawnKind::Heading | DrawnKind::Thought),
            DrawnKind::Call | DrawnKind::Step => last != DrawnKind::Prompt,
            DrawnKind::Heading => false,
        };
        if !is_together {
            self.blank();
        }
    }

    /// Draws the heading of a turn; returns false if it is not shown at this detail.
    fn turn(&mut self, turn: &Turn) -> bool {
        let end = turn_end(turn);
        if (self.style.detail == Detail::Answers || self.depth > 0) && end.is_none() {
            self.blank();
            return true;
        }
        let mut parts = vec![(ScreenTone::Frame, cut(&turn.path.to_text(), NAME_CHARS_MAX))];
        parts.extend(turn.started_at.as_ref().map(|time| (ScreenTone::Frame, (self.style.time)(time))));
        let took = crate::text_format::milliseconds_between(turn.started_at.as_ref(), turn.ended_at.as_ref());
        parts.extend(took.and_then(duration).map(|took| (ScreenTone::Frame, took)));
        parts.extend(end);
        parts.extend(copied_from(turn).map(|run| (ScreenTone::Frame, format!("copied from run {run}"))));
        self.blank();
        let mark = one(ScreenTone::Frame, "── ");
        self.put([&mark, &[spaces(3)]], &joined(parts), Wrap::Words);
        true
    }

    fn prompt(&mut self, text: &str, has_label: bool) {
        let word = if self.depth == 0 { " you" } else { "task" };
        let label = if has_label { format!("{word} │ ") } else { "     │ ".to_owned() };
        let (mut first, rest) = (one(ScreenTone::User, &label), one(ScreenTone::User, "     │ "));
        let lines: Vec<Line> = text.trim().lines().map(|line| one(ScreenTone::Plain, line)).collect();
        let is_folded = self.style.is_folded && self.style.detail < Detail::Outputs;
        for line in super::outputs::fold(lines, is_folded.then_some(PROMPT_LINES_MAX)) {
            self.put([&first, &rest], &line, Wrap::Words);
            first.clone_from(&rest);
        }
    }

    fn answer(&mut self, text: &str) {
        let (mut first, rest) = (one(ScreenTone::Model, "  ai │ "), one(ScreenTone::Model, "     │ "));
        let style = SpeechStyle { columns: self.text_columns(), has_marks: self.style.has_marks };
        for line in markdown_lines(&markdown(text), style) {
            self.put_line(&first, &line);
            first.clone_from(&rest);
        }
    }

    fn thought(&mut self, text: &str) {
        let bar = [spaces(GUTTER_COLUMNS), Segment::new(ScreenTone::Frame, "┊ ")];
        let lines: Vec<Line> = text.trim().lines().map(|line| one(ScreenTone::Thought, line)).collect();
        let is_folded = self.style.is_folded && self.style.detail < Detail::Outputs;
        for line in super::outputs::fold(lines, is_folded.then_some(THOUGHT_LINES_MAX)) {
            self.put([&bar, &bar], &line, Wrap::Words);
        }
    }

    /// Says how many calls are not shown before a final answer.
    fn hidden(&mut self, hidden: &mut HiddenCalls) {
        let HiddenCalls { calls, failed } = std::mem::take(hidden);
        if calls == 0 || self.style.detail > Detail::Answers {
            return;
        }
        let mut parts = vec![(ScreenTone::Frame, count(calls, "call"))];
        if failed > 0 {
            parts.push((ScreenTone::Failed, format!("{} failed", thousands(failed))));
        }
        let mark = [spaces(GUTTER_COLUMNS), Segment::new(ScreenTone::Frame, "▸ ")];
        self.put([&mark, &mark], &joined(parts), Wrap::Words);
    }

    fn compaction(&mut self, fact: &Fact) {
        self.blank();
        let words = "the conversation so far was replaced by a summary";
        self.put([&one(ScreenTone::Frame, "── "), &[spaces(3)]], &one(ScreenTone::Frame, words), Wrap::Words);
        let text = fact.result.as_ref().and_then(tool_output).unwrap_or_default();
        let limit = match self.style.detail {
            Detail::Answers | Detail::Calls | Detail::Changes => Some(THOUGHT_LINES_MAX),
            Detail::Outputs | Detail::Everything => None,
        };
        self.body(output_lines(&text, ScreenTone::Frame), limit.filter(|_| self.style.is_folded));
    }

    fn fact(&mut self, fact: &Fact) {
        let words =
            [&fact.kind, &fact.name].into_iter().flatten().map(|word| short(&word.to_text(), NAME_CHARS_MAX));
        let mut parts = vec![(ScreenTone::Frame, words.collect::<Vec<_>>().join(" "))];
        let printed = printed_by(fact);
        if fact.state == State::Failed {
            parts.push(end_words(fact.state, fact.error.as_ref()));
        } else if printed.is_empty() {
            let summary = fact.result.as_ref().map(gist).filter(|summary| !summary.is_empty());
            let summary = summary.map(|summary| {
                if self.style.detail == Detail::Everything {
                    summary
                } else {
                    cut(&summary, REASON_CHARS_MAX)
                }
            });
            parts.extend(summary.map(|summary| (ScreenTone::Frame, summary)));
        }
        self.step_line(&joined(parts));
        for text in printed {
            self.body(output_lines(&text, ScreenTone::Frame), None);
        }
    }

    fn step_line(&mut self, line: &[Segment]) {
        let mark = [spaces(GUTTER_COLUMNS), Segment::new(ScreenTone::Frame, "· ")];
        self.put([&mark, &[spaces(INDENT_COLUMNS)]], line, Wrap::Words);
    }
}

/// Tells whether something is shown at a detail.
pub(super) fn is_shown(content: &UnitContent<'_>, detail: Detail) -> bool {
    match content {
        UnitContent::SystemPrompt(_) => detail == Detail::Everything,
        UnitContent::Thought(_) => detail >= Detail::Changes,
        UnitContent::Step(fact) => {
            detail > Detail::Answers && (quiet_name(fact).is_none() || detail >= Detail::Outputs)
        }
        UnitContent::CallAgain { .. }
        | UnitContent::TurnEnd(_)
        | UnitContent::Command(_)
        | UnitContent::Output(_)
        | UnitContent::Unknown(_)
        | UnitContent::Approval(_)
        | UnitContent::Child(_)
        | UnitContent::Compaction(_) => detail > Detail::Answers,
        UnitContent::Turn(_)
        | UnitContent::Prompt(_)
        | UnitContent::Answer { .. }
        | UnitContent::Call { .. } => true,
    }
}

/// Returns how a turn ended, unless it just ended.
fn turn_end(turn: &Turn) -> Option<(ScreenTone, String)> {
    match turn.status {
        "completed" => None,
        "interrupted" => Some((ScreenTone::Failed, turn.status.to_owned())),
        _ => Some(end_words(turn.state, turn.error.as_ref())),
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

/// The calls of a turn that are not shown.
#[derive(Default)]
struct HiddenCalls {
    calls: u64,
    failed: u64,
}

impl HiddenCalls {
    fn add(&mut self, calls: &[CallView<'_>]) {
        self.calls += calls.len() as u64;
        self.failed += calls.iter().filter(|call| call.is_failed()).count() as u64;
    }
}

/// Returns the names of the minor system steps that come first.
fn quiet_steps<'u>(units: &[Unit<'u>]) -> Vec<&'u JsonString> {
    let name = |unit: &Unit<'u>| {
        let UnitContent::Step(fact) = unit.content else { return None };
        quiet_name(fact)
    };
    units.iter().map_while(name).collect()
}

/// Returns the name of a minor system step. Commands of the user and refusals are not minor.
fn quiet_name(fact: &Fact) -> Option<&JsonString> {
    let is_system = fact.kind.as_ref().is_some_and(|kind| kind.is("system"));
    fact.name.as_ref().filter(|name| is_system && fact.state == State::Completed && is_minor(name))
}

/// Returns what a command printed, if the step is one that `steno run` recorded: the beginning and the end of each stream.
fn printed_by(fact: &Fact) -> Vec<String> {
    const STREAMS: [&str; 4] = ["stdout", "stdout_end", "stderr", "stderr_end"];
    let is_command = fact.kind.as_ref().is_some_and(|kind| kind.is("command"));
    let Some(result) = fact.result.as_ref().filter(|_| is_command) else { return Vec::new() };
    let Ok(mut fields) = Fields::parse(result.as_str()) else { return Vec::new() };
    let texts = STREAMS.into_iter().filter_map(|name| fields.take_string(name).ok().flatten());
    texts.map(|text| text.to_text().into_owned()).filter(|text| !text.is_empty()).collect()
}

/// Returns the answer of an approval; a denial has its own tone.
pub(super) fn approval_words(asked: &Approval) -> (ScreenTone, String) {
    let Some(decision) = &asked.decision else {
        let words = if asked.state == State::Open { "asked, no answer" } else { "asked, answered" };
        return (ScreenTone::Frame, words.to_owned());
    };
    let by = asked.by.as_ref().map(|by| format!(" by {}", short(&by.to_text(), NAME_CHARS_MAX)));
    let scope = asked.scope.as_ref().map(|scope| format!(" ({})", short(&scope.to_text(), NAME_CHARS_MAX)));
    let tone = if decision.is("denied") { ScreenTone::Failed } else { ScreenTone::Frame };
    let decision = short(&decision.to_text(), NAME_CHARS_MAX);
    (tone, format!("{decision}{}{}", by.unwrap_or_default(), scope.unwrap_or_default()))
}

/// Returns a child run, with its end as reported by its parent.
pub(super) fn child_words(child: &ChildRun) -> Line {
    let id = child.run_id.to_string();
    // Some agents use the id as the name of a thread.
    let name = child.name.as_ref().filter(|name| !name.is(&id));
    let mut parts = vec![(ScreenTone::Frame, format!("child run {id}"))];
    parts.extend(name.map(|name| (ScreenTone::Call, short(&name.to_text(), NAME_CHARS_MAX))));
    parts.push(end_words(child.state, child.error.as_ref()));
    joined(parts)
}

/// Returns how something ended.
pub(super) fn end_words(state: State, error: Option<&JsonString>) -> (ScreenTone, String) {
    match (state, error) {
        (State::Open, _) => (ScreenTone::Open, "open".to_owned()),
        (State::Completed, _) => (ScreenTone::Frame, "completed".to_owned()),
        (State::Failed, Some(error)) => {
            (ScreenTone::Failed, format!("failed: {}", cut(&reason(error), REASON_CHARS_MAX)))
        }
        (State::Failed, None) => (ScreenTone::Failed, "failed".to_owned()),
    }
}

/// Joins parts with two spaces.
pub(super) fn joined(parts: Vec<(ScreenTone, String)>) -> Line {
    let mut line = Line::new();
    for (tone, text) in parts {
        if !line.is_empty() {
            line.push(spaces(2));
        }
        line.push(Segment::new(tone, &text));
    }
    line
}

fn short(text: &str, chars_max: usize) -> String {
    cut(text, chars_max)
}
