//! Draws calls: one line each, then what changed, what was printed, or why it failed.

use super::call_words::{CallWords, call_words, todos};
use super::diffs::{counts, diff_lines, kind_word};
use super::outputs::{fold, output_lines};
use super::segments::{Line, Segment, columns};
use super::steps::{approval_words, child_words};
use super::units::CallParts;
use super::wrap::{Wrap, wrap};
use super::{
    Detail, GUTTER_COLUMNS, INDENT_COLUMNS, Screen, ScreenTone, TEXT_COLUMNS_MAX, hash_of, one, spaces,
};
use crate::conversation::{Approval, ChildRun, ToolResult, ToolUse, tool_output};
use crate::nodes::{FileDiff, call_diffs};
use crate::text_format::{count, duration, thousands};
use steno_session::call_output;

/// How many rows of the terminal one long line takes before it is cut.
const ROWS_MAX: usize = 4;
/// The columns at the end of the line of a call, for how long it took.
const DURATION_COLUMNS: usize = 8;
/// How many lines of a command are shown with the call.
const COMMAND_LINES_MAX: usize = 6;

/// How a call ended, for its mark and its words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum CallEnd {
    Ok,
    Failed,
    Denied,
    Interrupted,
    Open,
    Unknown,
}

impl CallEnd {
    fn of(call: &ToolUse, result: Option<&ToolResult>) -> Self {
        let Some(result) = result else {
            let is_denied = |decision: &steno_model::json::JsonString| decision.is("denied");
            let is_denied = call.approvals.iter().any(|asked| asked.decision.as_ref().is_some_and(is_denied));
            return if is_denied { Self::Denied } else { Self::Open };
        };
        let is = |word: &str| result.outcome.as_ref().is_some_and(|outcome| outcome.is(word));
        match () {
            () if is("denied") => Self::Denied,
            () if is("interrupted") => Self::Interrupted,
            () if is("failed") => Self::Failed,
            () if is("ok") => Self::Ok,
            () if result.outcome.is_none() && result.error.is_some() => Self::Failed,
            () => Self::Unknown,
        }
    }
}

/// Tells whether a call only looks at something, without decoding what it gave.
fn is_quiet(call: &ToolUse, result: Option<&ToolResult>) -> bool {
    let is_other = call.class.as_ref().is_none_or(|class| class.is("other"));
    let is_ok = matches!(CallEnd::of(call, result), CallEnd::Ok | CallEnd::Unknown);
    let is_list = || call.tool_input.as_ref().is_some_and(|input| todos(input).is_some());
    is_other && is_ok && call.approvals.is_empty() && call.child_runs.is_empty() && !is_list()
}

/// What is shown of a call, for comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CallFace {
    pub(super) has_input: bool,
    pub(super) has_diff: bool,
    /// A hash of how it ended, and what it gave.
    pub(super) end: u64,
}

/// What is known of a call before it is drawn.
pub(super) struct CallView<'a> {
    call: &'a ToolUse,
    result: Option<&'a ToolResult>,
    diffs: Vec<FileDiff>,
    end: CallEnd,
    exit_code: Option<i64>,
    output: String,
    error: Option<String>,
}

impl<'a> CallView<'a> {
    pub(super) fn of(call: &'a ToolUse, result: Option<&'a ToolResult>) -> Self {
        let is_change = call.class.as_ref().is_some_and(|class| class.is("file_change"));
        let input = call.tool_input.as_ref().filter(|_| is_change);
        let text =
            result.and_then(|result| result.tool_content.as_ref()).and_then(tool_output).unwrap_or_default();
        let output = call_output(&text).text;
        let exit_code = result.and_then(|result| result.exit_code.as_ref()?.read::<i64>().ok());
        let error =
            result.and_then(|result| result.error.as_ref()).map(|error| call_output(&error.to_text()).text);
        let patch = result.and_then(|result| result.patch.as_ref());
        let diffs = input.map(|input| call_diffs(input, patch)).unwrap_or_default();
        Self { call, result, diffs, end: CallEnd::of(call, result), exit_code, output, error }
    }

    /// Returns a call that only looks at something, and can share a line with others; `None` for any other.
    pub(super) fn of_quiet(call: &'a ToolUse, result: Option<&'a ToolResult>) -> Option<Self> {
        is_quiet(call, result).then(|| Self::of(call, result))
    }

    pub(super) fn is_failed(&self) -> bool {
        self.end == CallEnd::Failed
    }

    /// Returns the approvals that are shown: those of denied calls always.
    pub(super) fn approvals(&self, detail: Detail) -> &'a [Approval] {
        let is_shown = detail >= Detail::Changes || self.end == CallEnd::Denied;
        if is_shown { &self.call.approvals } else { &[] }
    }

    /// Returns what is shown of the call beside its approvals and subagents. How long it took and the numbers of changed lines
    /// are left out: one channel only has them more exactly than another.
    pub(super) fn face(&self) -> CallFace {
        let end = if self.end == CallEnd::Unknown && self.diffs.is_empty() { CallEnd::Ok } else { self.end };
        let is_agent = self.call.class.as_ref().is_some_and(|class| class.is("agent"));
        let says_nothing = end == CallEnd::Ok && (!self.diffs.is_empty() || is_agent);
        let is_hidden = says_nothing || is_quiet(self.call, self.result);
        let output = if is_hidden { "" } else { self.output.trim() };
        let code = self.exit_code.filter(|code| *code != 0);
        CallFace {
            has_input: self.call.tool_input.as_ref().is_some_and(|input| !input.is_null()),
            has_diff: !self.diffs.is_empty() && self.end != CallEnd::Denied,
            end: hash_of(&(end, code, output, self.error.as_deref().map(str::trim))),
        }
    }

    /// Returns the words of a quiet call: the tool, what it is called for, and how many lines a search found.
    pub(super) fn quiet_words(&self, directory: Option<&str>) -> Line {
        const SEARCHES: [&str; 6] = ["grep", "glob", "search_file_content", "list_directory", "find", "ls"];
        let (name, target) = match call_words(self.call, &self.diffs, directory) {
            CallWords::Command(command) => ("$".to_owned(), command),
            CallWords::Tool { name, target } => (name, target),
        };
        let is_search = SEARCHES.contains(&&*name.to_lowercase());
        let found = self.output.lines().filter(|line| !line.trim().is_empty()).count();
        let found = if is_search { format!(" ({})", thousands(found as u64)) } else { String::new() };
        let target = if target.is_empty() { String::new() } else { format!(" {target}") };
        vec![
            Segment::new(ScreenTone::Call, &name),
            Segment::new(ScreenTone::Plain, &target),
            Segment::new(ScreenTone::Frame, &found),
        ]
    }
}

/// How many lines of a call are shown; `None` for all.
struct CallLimits {
    failed: Option<usize>,
    command: Option<usize>,
    other: Option<usize>,
    diff: Option<usize>,
}

impl CallLimits {
    fn of(detail: Detail, is_folded: bool) -> Self {
        let [failed, command, other, diff] = match detail {
            Detail::Answers => [Some(0); 4],
            Detail::Calls => [Some(4), Some(0), Some(0), Some(0)],
            Detail::Changes => [Some(12), Some(6), Some(3), Some(24)],
            Detail::Outputs => [Some(60), Some(40), Some(20), None],
            Detail::Everything => [None; 4],
        };
        let whole = |limit: Option<usize>| if is_folded { limit } else { limit.filter(|limit| *limit == 0) };
        Self { failed: whole(failed), command: whole(command), other: whole(other), diff: whole(diff) }
    }
}

impl Screen<'_> {
    /// Draws calls that only look at something, on one line.
    pub(super) fn quiet_calls(&mut self, calls: &[CallView<'_>]) {
        let mut line = Line::new();
        for call in calls {
            if !line.is_empty() {
                line.push(Segment::new(ScreenTone::Frame, " · "));
            }
            line.extend(call.quiet_words(self.style.directory));
        }
        let mark = [spaces(GUTTER_COLUMNS), Segment::new(ScreenTone::Frame, "▸ ")];
        self.put([&mark, &[spaces(INDENT_COLUMNS)]], &line, Wrap::Words);
    }

    /// Tells whether a call is the one that the user asked for.
    pub(super) fn is_focus(&self, view: &CallView<'_>) -> bool {
        let Some(focus) = self.style.focus else { return false };
        let is_call = focus.run == view.call.run && view.call.seq_call == Some(focus.seq);
        let is_result =
            |result: &ToolResult| result.run == Some(focus.run) && result.seq_result == Some(focus.seq);
        is_call || view.result.is_some_and(is_result)
    }

    /// Draws a call with its result.
    pub(super) fn call(&mut self, view: &CallView<'_>) {
        let is_focus = self.is_focus(view);
        let detail = if is_focus { Detail::Everything } else { self.style.detail };
        let limits = CallLimits::of(detail, self.style.is_folded);
        self.call_line(view, detail);
        self.approvals(view.approvals(detail));
        let has_child = self.children_of(view.call);
        if detail >= Detail::Changes {
            self.todos(view);
        }
        self.diff(view, &limits);
        self.result(view, &limits, has_child && detail < Detail::Everything);
        if detail == Detail::Everything {
            self.arguments(view);
        }
    }

    /// Draws a call that was drawn again, with what is new of it.
    pub(super) fn call_again(&mut self, view: &CallView<'_>, parts: &CallParts<'_>) {
        self.call_line(view, self.style.detail);
        self.approvals(parts.approvals.iter().copied());
        let mut has_child = false;
        self.drawn.extend(&parts.drawn_children);
        for child in &parts.children {
            has_child |= self.child(child);
        }
        let limits = CallLimits::of(self.style.detail, self.style.is_folded);
        if parts.has_new_diff {
            self.diff(view, &limits);
        }
        if parts.has_new_end {
            self.result(view, &limits, has_child && self.style.detail < Detail::Everything);
        }
    }

    /// Draws what a call changed; a denied call changed nothing.
    fn diff(&mut self, view: &CallView<'_>, limits: &CallLimits) {
        if view.end != CallEnd::Denied {
            let lines = diff_lines(&view.diffs, self.style.directory);
            self.hanging_body(lines, limits.diff, 2);
        }
    }

    fn approvals<'c>(&mut self, approvals: impl IntoIterator<Item = &'c Approval>) {
        for asked in approvals {
            let (tone, words) = approval_words(asked);
            self.body(vec![one(tone, &words)], None);
        }
    }

    fn call_line(&mut self, view: &CallView<'_>, detail: Detail) {
        let (mark, tone) = match view.end {
            CallEnd::Ok | CallEnd::Unknown => ("▸ ", ScreenTone::Frame),
            CallEnd::Failed => ("✗ ", ScreenTone::Failed),
            CallEnd::Denied => ("⊘ ", ScreenTone::Failed),
            CallEnd::Interrupted => ("■ ", ScreenTone::Failed),
            CallEnd::Open => ("▸ ", ScreenTone::Odd),
        };
        let mut lines: Vec<Line> = match call_words(view.call, &view.diffs, self.style.directory) {
            CallWords::Command(command) => {
                let prompt = if view.end == CallEnd::Failed { ScreenTone::Failed } else { ScreenTone::Frame };
                let mut lines: Vec<Line> =
                    command.trim_end().lines().map(|line| one(ScreenTone::Call, line)).collect();
                if lines.is_empty() {
                    lines.push(Line::new());
                }
                lines[0].insert(0, Segment::new(prompt, "$ "));
                let limit =
                    (self.style.is_folded && detail < Detail::Everything).then_some(COMMAND_LINES_MAX);
                fold(lines, limit)
            }
            CallWords::Tool { name, target } => {
                let target = if target.is_empty() { String::new() } else { format!(" {target}") };
                vec![vec![Segment::new(ScreenTone::Call, &name), Segment::new(ScreenTone::Plain, &target)]]
            }
        };
        let first = &mut lines[0];
        // What was denied or failed changed nothing.
        if !matches!(view.end, CallEnd::Denied | CallEnd::Failed) {
            let word = view.diffs.first().filter(|_| view.diffs.len() == 1).and_then(kind_word);
            first.extend(word.map(|word| Segment::new(ScreenTone::Frame, &format!("  {word}"))));
            let changes = counts(&view.diffs);
            if !changes.is_empty() {
                first.push(Segment::new(ScreenTone::Plain, "  "));
                first.extend(changes);
            }
        }
        let mut right: Line = Line::new();
        for (tone, words) in end_words(view, self.style.is_live) {
            right.push(spaces(2));
            right.push(Segment::new(tone, &words));
        }
        let took = view.result.and_then(|result| result.duration_ms).and_then(duration);
        right.extend(took.map(|took| Segment::new(ScreenTone::Frame, &format!("{took:>DURATION_COLUMNS$}"))));
        let mark = [spaces(GUTTER_COLUMNS), Segment::new(tone, mark)];
        self.first_line(&mark, &lines[0], right);
        for line in &lines[1..] {
            let indent = [spaces(INDENT_COLUMNS + 2)];
            self.put([&indent, &[spaces(INDENT_COLUMNS + 4)]], line, Wrap::Output);
        }
    }

    /// Draws the first line of a call; how it ended and how long it took is at the right.
    fn first_line(&mut self, mark: &[Segment], line: &[Segment], mut right: Line) {
        let rest = [spaces(INDENT_COLUMNS + 2)];
        let Some(width) = self.style.width.map(|width| width.min(TEXT_COLUMNS_MAX)) else {
            // Without a width there is no column at the right.
            if let Some(took) = right.last_mut().filter(|last| last.tone == ScreenTone::Frame) {
                took.text = format!("  {}", took.text.trim_start());
            }
            let line: Line = line.iter().cloned().chain(right).collect();
            return self.put_line(mark, &line);
        };
        let room = width.saturating_sub(crate::columns_of(&self.margin) + INDENT_COLUMNS);
        let left = room.saturating_sub(columns(&right).max(DURATION_COLUMNS)).max(super::COLUMNS_MIN);
        for (number, mut part) in wrap(line, Some(left), Wrap::Words).into_iter().enumerate() {
            if number > 0 {
                self.put([&rest, &rest], &part, Wrap::Output);
                continue;
            }
            part.push(spaces(room.saturating_sub(columns(&part) + columns(&right))));
            part.append(&mut right);
            self.put_line(mark, &part);
        }
    }

    /// Draws lines below a call, folded to a limit.
    pub(super) fn body(&mut self, lines: Vec<Line>, limit: Option<usize>) {
        self.hanging_body(lines, limit, 0);
    }

    /// Draws an output below a call, folded to a limit. One that is hidden is not parsed.
    fn output(&mut self, text: &str, tone: ScreenTone, limit: Option<usize>) {
        if limit != Some(0) {
            self.body(output_lines(text, tone), limit);
        }
    }

    /// Draws lines below a call; the rest of a line that is wrapped is indented further.
    fn hanging_body(&mut self, lines: Vec<Line>, limit: Option<usize>, hang: usize) {
        if limit == Some(0) {
            return;
        }
        let (indent, rest) = ([spaces(INDENT_COLUMNS)], [spaces(INDENT_COLUMNS + hang)]);
        let rows = limit.and(self.style.width).filter(|_| self.style.is_folded);
        for line in fold(lines, limit) {
            let line = match self.style.width {
                Some(width) => {
                    short_rule(line, width.saturating_sub(INDENT_COLUMNS + crate::columns_of(&self.margin)))
                }
                None => line,
            };
            let parts = match rows {
                Some(width) => short_line(line, width * ROWS_MAX),
                None => line,
            };
            self.put([&indent, &rest], &parts, Wrap::Output);
        }
    }

    fn result(&mut self, view: &CallView<'_>, limits: &CallLimits, has_child: bool) {
        let is_command = view.call.class.as_ref().is_some_and(|class| class.is("command"));
        let is_agent = view.call.class.as_ref().is_some_and(|class| class.is("agent"));
        let is_bad = matches!(view.end, CallEnd::Failed | CallEnd::Denied | CallEnd::Interrupted);
        // Agents often repeat the output of a failed call as its error.
        let says_more = |error: &&str| {
            let code = view.exit_code.map(|code| format!("exit code {code}"));
            error.trim() != view.output.trim() && code.as_deref() != Some(error.trim())
        };
        let error = view.error.as_deref().filter(|_| is_bad).filter(says_more);
        if let Some(error) = error {
            self.output(error, ScreenTone::Failed, limits.failed);
        }
        // The diff says what a successful edit did, and the subagent what it answered.
        let is_list = view.call.tool_input.as_ref().is_some_and(|input| todos(input).is_some());
        let says_nothing =
            view.end == CallEnd::Ok && (!view.diffs.is_empty() || is_list || (is_agent && has_child));
        let tone =
            if is_bad && !is_command && error.is_none() { ScreenTone::Failed } else { ScreenTone::Frame };
        let limit = match () {
            () if is_bad => limits.failed,
            () if says_nothing && self.style.detail < Detail::Everything => Some(0),
            () if is_command => limits.command,
            () => limits.other,
        };
        self.output(&view.output, tone, limit);
    }

    /// Draws the list of tasks that a call writes.
    fn todos(&mut self, view: &CallView<'_>) {
        let list = view.call.tool_input.as_ref().and_then(todos).unwrap_or_default();
        let line = |todo: &super::call_words::Todo| {
            let tone = if todo.is_done() { ScreenTone::Frame } else { ScreenTone::Plain };
            vec![Segment::new(ScreenTone::Frame, todo.mark()), Segment::new(tone, &format!(" {}", todo.text))]
        };
        self.body(list.iter().map(line).collect(), None);
    }

    /// Draws all arguments, as they were recorded.
    fn arguments(&mut self, view: &CallView<'_>) {
        let input = view.call.tool_input.as_ref().filter(|input| !input.is_null());
        if let Some(input) = input {
            self.body(vec![one(ScreenTone::Frame, &format!("input {}", input.as_str()))], None);
        }
    }

    /// Draws the subagents of a call, or names them; returns whether one was drawn.
    fn children_of(&mut self, call: &ToolUse) -> bool {
        let mut has_drawn = false;
        for child in &call.child_runs {
            has_drawn |= self.child(child);
        }
        has_drawn
    }

    /// Draws a subagent below the line that names it; returns false if it was only named.
    pub(super) fn child(&mut self, child: &ChildRun) -> bool {
        if self.style.detail == Detail::Answers {
            return false;
        }
        let mark = [spaces(INDENT_COLUMNS), Segment::new(ScreenTone::Frame, "↳ ")];
        let mut words = child_words(child);
        let absent = self.style.absent_child;
        let is_known = self.style.children.contains_key(&child.run_id) || self.drawn.contains(&child.run_id);
        if !absent.is_empty() && !is_known {
            words.push(Segment::new(ScreenTone::Frame, &format!("  ({absent})")));
        }
        self.put([&mark, &[spaces(INDENT_COLUMNS + 2)]], &words, Wrap::Words);
        let Some(conversation) = self.style.children.get(&child.run_id) else { return false };
        let is_wanted = self.style.detail >= Detail::Changes && self.depth < super::CHILD_DEPTH_MAX;
        if !is_wanted || !self.drawn.insert(child.run_id) {
            return false;
        }
        let (margin, detail) = (self.margin.clone(), self.style.detail);
        self.margin.push_str("       ┃ ");
        self.style.detail = detail.of_child();
        self.depth += 1;
        self.state = super::ScreenState::default();
        self.conversation(conversation);
        self.depth -= 1;
        (self.margin, self.style.detail) = (margin, detail);
        self.state.is_blank = false;
        true
    }
}

/// Returns what the line of a call says about its end.
fn end_words(view: &CallView<'_>, is_live: bool) -> Vec<(ScreenTone, String)> {
    let mut words = Vec::new();
    if let Some(code) = view.exit_code.filter(|code| *code != 0) {
        words.push((ScreenTone::Failed, format!("exit {code}")));
    }
    match view.end {
        CallEnd::Failed if words.is_empty() => words.push((ScreenTone::Failed, "failed".to_owned())),
        CallEnd::Denied => words.push((ScreenTone::Failed, "denied".to_owned())),
        CallEnd::Interrupted => words.push((ScreenTone::Failed, "interrupted".to_owned())),
        CallEnd::Open if is_live => words.push((ScreenTone::Open, "running".to_owned())),
        CallEnd::Open => words.push((ScreenTone::Odd, "no result".to_owned())),
        CallEnd::Unknown if !view.diffs.is_empty() => {
            words.push((ScreenTone::Odd, "outcome unknown".to_owned()));
        }
        CallEnd::Ok | CallEnd::Failed | CallEnd::Unknown => {}
    }
    words
}

/// Cuts a very long line.
fn short_line(line: Line, columns_max: usize) -> Line {
    let long = columns(&line);
    if long <= columns_max {
        return line;
    }
    let mut first = wrap(&line, Some(columns_max), Wrap::Letters).swap_remove(0);
    let hint = format!(" ⋯ {}, shown by -t 4", count((long - columns_max) as u64, "more column"));
    first.push(Segment::new(ScreenTone::Frame, &hint));
    first
}

/// Shortens a drawn line, such as `=====`, at the end of a line that is a little too wide.
fn short_rule(mut line: Line, columns_max: usize) -> Line {
    let over = columns(&line).saturating_sub(columns_max);
    let Some(last) = line.last_mut().filter(|_| over > 0) else { return line };
    let Some(letter) = last.text.chars().last().filter(|letter| "=-_─━*#~".contains(*letter)) else {
        return line;
    };
    let short = last.text.trim_end_matches(letter);
    let run = (last.text.len() - short.len()) / letter.len_utf8();
    // What is left is still recognised as a drawn line.
    if run >= over + 4 {
        last.text.truncate(last.text.len() - over * letter.len_utf8());
    }
    line
}
