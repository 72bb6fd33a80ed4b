//! Shows a joined tree as lines of text.
//!
//! Foreign text passes through [`visible`] and is cut to fit a line; the JSON form has it complete.

use std::collections::BTreeMap;

use steno_model::RunId;
use steno_model::json::JsonString;

use super::walk::{Node, Visit, Walk};
use super::{Child, Counts, Forest, JoinKind, RunTree, Step, StepPath};
use crate::digest::DigestState;
use crate::short_text::reason;
use crate::text_format::{
    GROUPED_STEPS_MIN, columns_of, count, cut, is_minor, room, summarize_steps, thousands,
};
use crate::visible::{Lines, visible};
use crate::{ParentReport, State};

/// How many levels are drawn with lines; deeper ones show their depth as a number.
///
/// Drawn lines grow with the depth: a tree of a hundred thousand levels would need gigabytes.
const LEVELS_DRAWN_MAX: usize = 64;
/// How many characters of a name, a kind or a path are shown.
const NAME_CHARS_MAX: usize = 80;
/// How many characters of a reason, or of grouped steps, are shown if no width is given.
const LINE_CHARS_MAX: usize = 200;
/// About how much of a line comes before the reason of a failure.
const BEFORE_REASON_CHARS: usize = 40;
/// The least number of characters of a run id; more if ids of the tree have a common prefix.
const RUN_ID_CHARS_MIN: usize = 8;

/// The meaning of a part of a line, to choose its colour. The text is complete without colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TreeTone {
    /// Drawn lines, ids, kinds.
    Frame,
    /// An end, and no error.
    Completed,
    /// A failure and its reason, or a missing run.
    Failed,
    /// No end so far.
    Open,
    /// Unexpected facts: a call without a result, an unknown type, a run that its parent does not link or that is its own
    /// ancestor.
    Odd,
}

/// Returns the tree as lines of text, one for every run and every step.
///
/// The result contains no control character but the line feeds between the lines.
///
/// ```text
/// run 550e8400… review  completed  12 events
/// ├─ turn-0001 · turn  3 messages, 2 calls
/// │  └─ loop.body · command  iteration 2  failed: exit 1
/// └─ general-purpose · subagent  open
///    └─ child run 1b2c3d4e… explore  open  5 events  2 messages
/// ```
#[must_use]
pub fn text(joined: &Forest) -> String {
    styled_text(joined, &TreeStyle::plain(&|_, words| words.to_owned()))
}

/// How a tree is printed.
#[derive(Clone, Copy)]
pub struct TreeStyle<'a> {
    /// Gives a part of a line its colour.
    pub paint: &'a dyn Fn(TreeTone, &str) -> String,
    /// The width to which lines are cut; `None` for a default that suits files.
    pub width: Option<usize>,
    /// Whether consecutive system steps are all shown.
    pub has_every_step: bool,
    /// The text for a run that is named and not among the runs.
    pub absent: &'a str,
}

impl<'a> TreeStyle<'a> {
    /// Returns the style of [`text()`], with colours.
    #[must_use]
    pub fn plain(paint: &'a dyn Fn(TreeTone, &str) -> String) -> Self {
        Self { paint, width: None, has_every_step: false, absent: "missing" }
    }
}

/// Returns the same lines as [`text()`], in a style.
#[must_use]
pub fn styled_text(joined: &Forest, style: &TreeStyle<'_>) -> String {
    let lines = LineWriter { joined, id_chars: run_id_chars(joined), style, reported: joined.reported() };
    let mut out = Outline { lines, text: String::new(), is_last: Vec::new() };
    // System steps that may be grouped with the next ones.
    let mut quiet: Vec<Visit<'_>> = Vec::new();
    for visit in Walk::new(joined).without_folded() {
        let is_more = quiet.last().is_none_or(|last| last.depth == visit.depth);
        let is_minor = is_quiet_step(visit.node) && !style.has_every_step;
        if !(is_minor && is_more) {
            out.together(&std::mem::take(&mut quiet));
        }
        if is_minor {
            quiet.push(visit);
        } else {
            let line = out.lines.line(visit.node);
            out.add(&visit, &line);
        }
    }
    out.together(&quiet);
    out.text
}

/// The lines so far.
struct Outline<'a> {
    lines: LineWriter<'a>,
    text: String,
    /// For each node on the path to the last line, whether it is the last child.
    is_last: Vec<bool>,
}

impl Outline<'_> {
    fn add(&mut self, visit: &Visit<'_>, line: &str) {
        self.is_last.truncate(visit.depth);
        self.is_last.push(visit.is_last);
        let indent = indent(&self.is_last);
        if !indent.is_empty() {
            self.text.push_str(&(self.lines.style.paint)(TreeTone::Frame, &indent));
        }
        self.text.push_str(line);
        self.text.push('\n');
    }

    /// Adds consecutive system steps, as one line if there are many.
    fn together(&mut self, steps: &[Visit<'_>]) {
        let Some(last) = steps.last().filter(|_| steps.len() >= GROUPED_STEPS_MIN) else {
            for step in steps {
                let line = self.lines.line(step.node);
                self.add(step, &line);
            }
            return;
        };
        let names = steps.iter().map(|visit| match visit.node {
            Node::Step { step, .. } => label(step),
            Node::Run { .. } | Node::Absent { .. } => String::new(),
        });
        let used = last.depth * columns_of("└─ ");
        let line = summarize_steps(names, room(self.lines.style.width, used, LINE_CHARS_MAX));
        let line = (self.lines.style.paint)(TreeTone::Frame, &line);
        self.add(last, &line);
    }
}

/// Tells whether a node is a minor system step.
fn is_quiet_step(node: Node<'_>) -> bool {
    let Node::Step { step, .. } = node else { return false };
    step.facts.kind.as_ref().is_some_and(|kind| kind.is("system"))
        && step.facts.name.as_ref().is_some_and(is_minor)
        && step.facts.state == State::Completed
        && step.facts.children.is_empty()
        && step.facts.child_run_id.is_none()
        && step.counts == Counts::default()
}

/// Draws the lines before a node; `is_last` says for each node on the path to it whether it is the last child.
fn indent(is_last: &[bool]) -> String {
    let depth = is_last.len() - 1;
    let [_, outer @ .., last] = is_last else { return String::new() };
    let branch = if *last { "└─ " } else { "├─ " };
    if depth > LEVELS_DRAWN_MAX {
        return format!("[{depth}] {branch}");
    }
    let bars = outer.iter().map(|&last| if last { "   " } else { "│  " });
    bars.chain([branch]).collect()
}

/// Returns how many characters distinguish the runs of the tree.
///
/// Ids of some agents begin with the time, so that those of one minute have a common prefix.
fn run_id_chars(joined: &Forest) -> usize {
    let ids: Vec<String> = joined.runs().map(|run| run.run_id.to_string()).collect();
    let alike = |pair: &[String]| pair[0].bytes().zip(pair[1].bytes()).take_while(|(a, b)| a == b).count();
    ids.windows(2).map(|pair| alike(pair) + 1).fold(RUN_ID_CHARS_MIN, usize::max)
}

/// Writes a line: parts separated by two spaces, each in its tone.
struct LineWriter<'a> {
    joined: &'a Forest,
    id_chars: usize,
    style: &'a TreeStyle<'a>,
    reported: BTreeMap<RunId, ParentReport>,
}

impl LineWriter<'_> {
    fn line(&self, node: Node<'_>) -> String {
        match node {
            Node::Run { run, below } => self.run(run, below),
            Node::Step { run: _, id: _, step } => self.step(step),
            Node::Absent { run_id, join, below } => {
                let mut line = self.run_id(run_id, below);
                let (tone, why) = match join {
                    JoinKind::Missing | JoinKind::Linked | JoinKind::Unlinked => {
                        (TreeTone::Failed, self.style.absent)
                    }
                    JoinKind::Cycle => (TreeTone::Odd, "cycle: this run is one of its own ancestors"),
                    JoinKind::Elsewhere => (TreeTone::Frame, "shown elsewhere"),
                };
                self.add(&mut line, tone, why);
                line
            }
        }
    }

    fn run_id(&self, run_id: RunId, below: Option<Child>) -> String {
        let word = if below.is_some() { "child run" } else { "run" };
        (self.style.paint)(TreeTone::Frame, &format!("{word} {}", self.short(run_id)))
    }

    fn short(&self, run_id: RunId) -> String {
        let id = run_id.to_string();
        match id.get(..self.id_chars) {
            Some(short) if short.len() < id.len() => format!("{short}…"),
            Some(_) | None => id,
        }
    }

    fn run(&self, run: &RunTree, below: Option<Child>) -> String {
        let mut line = match run.parent_run_id.filter(|_| below.is_none()) {
            // Its parent is not in the tree, so its whole id is shown.
            Some(parent) => (self.style.paint)(
                TreeTone::Frame,
                &format!("child run {} of {parent}", self.short(run.run_id)),
            ),
            None => self.run_id(run.run_id, below),
        };
        if let Some(name) = run.name.as_ref().filter(|name| !name.is_empty()) {
            line.push(' ');
            line.push_str(&shown(name, NAME_CHARS_MAX));
        }
        if let Some(from) = run.forked_from {
            self.add(&mut line, TreeTone::Frame, &format!("fork of {from}"));
        }
        let (tone, words) = self.end_of(run);
        self.add(&mut line, tone, &words);
        add_plain(&mut line, &count(run.events, "event"));
        if let Some(counts) = counts(run.counts) {
            // Events in steps are counted there.
            let place = if run.steps.is_empty() { "" } else { " outside steps" };
            add_plain(&mut line, &format!("{counts}{place}"));
        }
        let odd = [
            (run.dangling.len() as u64, "call", "without result"),
            (run.unknown_types.values().sum(), "event", "of unknown type"),
            (run.unknown_blocks.values().sum(), "block", "of unknown type"),
        ];
        for (number, noun, what) in odd {
            if number > 0 {
                self.add(&mut line, TreeTone::Odd, &format!("{} {what}", count(number, noun)));
            }
        }
        if below.is_some_and(|child| child.join == JoinKind::Unlinked) {
            self.add(&mut line, TreeTone::Odd, "unlinked");
        }
        line
    }

    /// Returns how a run ended: as its parent reports it, else as its last turn did, because most agents never end a session.
    fn end_of(&self, run: &RunTree) -> (TreeTone, String) {
        let word = " (reported by parent)";
        match self.reported.get(&run.run_id).map(|by| (by.state, by.error.as_ref())) {
            Some((State::Completed, _)) => (TreeTone::Completed, format!("completed{word}")),
            Some((State::Failed, error)) => (TreeTone::Failed, format!("{}{word}", self.failed(error))),
            Some((State::Open, _)) | None => match run.session_state {
                DigestState::Failed => (TreeTone::Failed, self.failed(run.error.as_ref())),
                state @ (DigestState::Done
                | DigestState::Waiting
                | DigestState::Interrupted
                | DigestState::Open) => (tone_of(state), state.name().to_owned()),
            },
        }
    }

    fn step(&self, step: &Step) -> String {
        let is_amendment = step.facts.kind.as_ref().is_some_and(|kind| kind.is("amend"));
        let mut line = label(step);
        if is_amendment {
            // Its call is in another session, or was not recorded.
            line = format!("late result of call {line}");
        } else if let Some(kind) = step.facts.kind.as_ref().filter(|kind| !kind.is_empty()) {
            line.push(' ');
            line.push_str(&(self.style.paint)(
                TreeTone::Frame,
                &format!("· {}", shown(kind, NAME_CHARS_MAX)),
            ));
        }
        if let Some(iteration) = iteration(step) {
            add_plain(&mut line, &iteration);
        }
        if let Some(attempt) = step.facts.attempt {
            add_plain(&mut line, &format!("attempt {attempt}"));
        }
        if let Some(counts) = counts(step.counts) {
            add_plain(&mut line, &counts);
        }
        if let Some(decision) = &step.facts.decision {
            let tone = if decision.is("denied") { TreeTone::Failed } else { TreeTone::Frame };
            self.add(&mut line, tone, &shown(decision, NAME_CHARS_MAX));
        }
        match step.facts.state {
            // The line of its run says how that ended.
            State::Open if self.has_ended_run(step) => {}
            State::Open => self.add(&mut line, TreeTone::Open, "open"),
            State::Completed => {}
            State::Failed if step.is_interrupted => self.add(&mut line, TreeTone::Failed, "interrupted"),
            State::Failed => self.add(&mut line, TreeTone::Failed, &self.failed(step.facts.error.as_ref())),
        }
        line
    }

    /// Tells whether a step started a run whose end is known: the record may have no end of the step itself.
    fn has_ended_run(&self, step: &Step) -> bool {
        let Some(child) = step.facts.child_run_id else { return false };
        let is_reported = self.reported.get(&child).is_some_and(|by| by.state != State::Open);
        is_reported
            || self.joined.run(child).is_some_and(|run| match run.session_state {
                DigestState::Done | DigestState::Interrupted | DigestState::Failed => true,
                DigestState::Waiting | DigestState::Open => false,
            })
    }

    fn failed(&self, error: Option<&JsonString>) -> String {
        match error {
            Some(error) => {
                let chars_max = room(self.style.width, BEFORE_REASON_CHARS, LINE_CHARS_MAX);
                format!("failed: {}", visible(&cut(&reason(error), chars_max), Lines::Escape))
            }
            None => "failed".to_owned(),
        }
    }

    fn add(&self, line: &mut String, tone: TreeTone, words: &str) {
        add_plain(line, &(self.style.paint)(tone, words));
    }
}

fn tone_of(state: DigestState) -> TreeTone {
    match state {
        DigestState::Done => TreeTone::Completed,
        DigestState::Interrupted | DigestState::Failed => TreeTone::Failed,
        DigestState::Waiting | DigestState::Open => TreeTone::Open,
    }
}

fn add_plain(line: &mut String, words: &str) {
    line.push_str("  ");
    line.push_str(words);
}

fn iteration(step: &Step) -> Option<String> {
    match &step.facts.loop_indices {
        Some(indices) if indices.is_empty() => None,
        Some(indices) => {
            let indices: Vec<String> = indices.iter().map(u64::to_string).collect();
            Some(format!("iteration {}", cut(&indices.join("."), NAME_CHARS_MAX)))
        }
        None if step.facts.iteration > 0 => Some(format!("iteration {}", step.facts.iteration)),
        None => None,
    }
}

/// Returns the label of a step: its path if it owns the path, else its name; for an approval the tool it is about.
fn label(step: &Step) -> String {
    if let Some(tool) = &step.tool_name {
        return shown(tool, NAME_CHARS_MAX);
    }
    let path = step.facts.path.to_text();
    let is_place =
        |name: &JsonString| StepPath::parse(&path).names().last().is_some_and(|last| name.is(last));
    match &step.facts.name {
        Some(name) if !name.is_empty() && !is_place(name) => shown(name, NAME_CHARS_MAX),
        Some(_) | None if path.is_empty() => "step without name".into(),
        Some(_) | None => shown(&step.facts.path, NAME_CHARS_MAX),
    }
}

/// Returns the counts of messages, calls and results as text; `None` if all are zero.
fn counts(counts: Counts) -> Option<String> {
    let Counts { messages, calls, results, failed, denied } = counts;
    let mut parts = Vec::new();
    if messages > 0 {
        parts.push(count(messages, "message"));
    }
    let bad = [(failed, "failed"), (denied, "denied")].into_iter().filter(|(count, _)| *count > 0);
    let bad: Vec<String> = bad.map(|(count, word)| format!("{} {word}", thousands(count))).collect();
    let bad = if bad.is_empty() { String::new() } else { format!(" ({})", bad.join(", ")) };
    if calls > 0 || !bad.is_empty() {
        parts.push(format!("{}{bad}", count(calls, "call")));
    }
    // Results are shown only if their number differs from that of calls.
    if results != calls {
        parts.push(count(results, "result"));
    }
    (!parts.is_empty()).then(|| parts.join(", "))
}

fn shown(text: &JsonString, chars_max: usize) -> String {
    visible(&cut(&text.to_text(), chars_max), Lines::Escape).into_owned()
}
