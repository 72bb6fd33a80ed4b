//! Shows a joined tree as lines of text.
//!
//! Every foreign text passes through [`visible`] and is cut to a length that fits a line; the JSON form has it whole.

use std::fmt;

use steno_model::RunId;
use steno_model::json::JsonString;

use super::walk::{Node, Walk};
use super::{Counts, Join, Joined, RunTree, State, Step, StepPath};
use crate::visible::{Lines, visible};

/// How many levels are drawn with lines; deeper ones show their depth as a number.
///
/// Drawn lines grow with the depth: a tree a hundred thousand levels deep would be gigabytes of them.
const LEVELS_DRAWN_MAX: usize = 64;
/// How many characters of a name, a kind or a path are shown.
const NAME_CHARS_MAX: usize = 80;
/// How many characters of an error are shown.
const ERROR_CHARS_MAX: usize = 200;
/// How many characters of a run's id are shown at least; more where the runs of the tree begin alike.
const RUN_ID_CHARS_MIN: usize = 8;

/// Returns the tree as lines of text, one for every run and every step.
///
/// The result contains no control character but the line feeds between the lines.
///
/// ```text
/// run 550e8400… review  completed  12 events
/// ├─ turn-0001 · turn  3 messages, 2 calls
/// │  └─ loop.body · command  iteration 2  failed: exit 1
/// └─ general-purpose · subagent  open
///    └─ child run 1b2c3d4e… explore  open  5 events
/// ```
#[must_use]
pub fn text(joined: &Joined) -> String {
    let mut out = String::new();
    let id_chars = run_id_chars(joined);
    let mut is_last: Vec<bool> = Vec::new();
    for visit in Walk::new(joined) {
        is_last.truncate(visit.depth);
        is_last.push(visit.is_last);
        out.push_str(&indent(&is_last));
        out.push_str(&Line { node: visit.node, id_chars }.to_string());
        out.push('\n');
    }
    out
}

/// Draws the lines before a node; `is_last` says of each node on the way to it whether it is its parent's last.
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

/// Returns how many characters tell the runs of the tree apart.
///
/// The ids of some agents begin with the time, so that those of one minute begin alike.
fn run_id_chars(joined: &Joined) -> usize {
    let ids: Vec<String> = joined.runs().map(|run| run.run_id.to_string()).collect();
    let alike = |pair: &[String]| pair[0].bytes().zip(pair[1].bytes()).take_while(|(a, b)| a == b).count();
    ids.windows(2).map(|pair| alike(pair) + 1).fold(RUN_ID_CHARS_MIN, usize::max)
}

struct Line<'a> {
    node: Node<'a>,
    id_chars: usize,
}

impl fmt::Display for Line<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.node {
            Node::Run { run, below } => {
                out.write_str(if below.is_some() { "child run " } else { "run " })?;
                self.write_run(out, run)?;
                match below.map(|child| child.join) {
                    Some(Join::Unlinked) => out.write_str("  unlinked"),
                    Some(Join::Linked | Join::Missing | Join::Cycle | Join::Elsewhere) | None => Ok(()),
                }
            }
            Node::Step { run: _, id: _, step } => write_step(out, step),
            Node::Absent { run_id, join, below } => {
                out.write_str(if below.is_some() { "child run " } else { "run " })?;
                self.write_run_id(out, run_id)?;
                out.write_str(match join {
                    Join::Missing | Join::Linked | Join::Unlinked => "  missing",
                    Join::Cycle => "  cycle: it is one of the runs around this place",
                    Join::Elsewhere => "  shown elsewhere",
                })
            }
        }
    }
}

impl Line<'_> {
    fn write_run_id(&self, out: &mut fmt::Formatter<'_>, run_id: RunId) -> fmt::Result {
        let id = run_id.to_string();
        match id.get(..self.id_chars) {
            Some(short) if short.len() < id.len() => write!(out, "{short}…"),
            Some(_) | None => out.write_str(&id),
        }
    }

    fn write_run(&self, out: &mut fmt::Formatter<'_>, run: &RunTree) -> fmt::Result {
        self.write_run_id(out, run.run_id)?;
        if let Some(name) = run.name.as_ref().filter(|name| !name.is_empty()) {
            write!(out, " {}", shown(name, NAME_CHARS_MAX))?;
        }
        match run.state {
            State::Open => out.write_str("  open")?,
            State::Completed => out.write_str("  completed")?,
            State::Failed => write_failed(out, run.error.as_ref())?,
        }
        write!(out, "  {}", number(run.events, "event"))?;
        if !run.dangling.is_empty() {
            write!(out, "  {} without result", number(run.dangling.len() as u64, "call"))?;
        }
        match run.unknown_types.values().sum() {
            0 => Ok(()),
            unknown => write!(out, "  {} of unknown type", number(unknown, "event")),
        }
    }
}

fn write_step(out: &mut fmt::Formatter<'_>, step: &Step) -> fmt::Result {
    out.write_str(&label(step))?;
    if let Some(kind) = step.kind.as_ref().filter(|kind| !kind.is_empty()) {
        write!(out, " · {}", shown(kind, NAME_CHARS_MAX))?;
    }
    match &step.loop_indices {
        Some(indices) if indices.len() > 1 => {
            let indices: Vec<String> = indices.iter().map(u64::to_string).collect();
            write!(out, "  iteration {}", cut(&indices.join("."), NAME_CHARS_MAX))?;
        }
        Some(indices) => indices.iter().try_for_each(|index| write!(out, "  iteration {index}"))?,
        None if step.iteration > 0 => write!(out, "  iteration {}", step.iteration)?,
        None => {}
    }
    if let Some(attempt) = step.attempt {
        write!(out, "  attempt {attempt}")?;
    }
    write_counts(out, step.counts)?;
    match step.state {
        State::Open => out.write_str("  open"),
        State::Completed => Ok(()),
        State::Failed => write_failed(out, step.error.as_ref()),
    }
}

/// Names a step: the path where it is the place itself, the name where it is a guest there.
fn label(step: &Step) -> String {
    let path = step.path.to_text();
    let is_place =
        |name: &JsonString| StepPath::parse(&path).names().last().is_some_and(|last| name.is(last));
    match &step.name {
        Some(name) if !name.is_empty() && !is_place(name) => shown(name, NAME_CHARS_MAX),
        Some(_) | None if path.is_empty() => "step without name".into(),
        Some(_) | None => shown(&step.path, NAME_CHARS_MAX),
    }
}

fn write_failed(out: &mut fmt::Formatter<'_>, error: Option<&JsonString>) -> fmt::Result {
    match error {
        Some(error) => write!(out, "  failed: {}", shown(error, ERROR_CHARS_MAX)),
        None => out.write_str("  failed"),
    }
}

fn write_counts(out: &mut fmt::Formatter<'_>, counts: Counts) -> fmt::Result {
    let Counts { messages, calls, results } = counts;
    let mut parts = Vec::new();
    if messages > 0 {
        parts.push(number(messages, "message"));
    }
    if calls > 0 {
        parts.push(number(calls, "call"));
    }
    // As many results as calls is what a reader expects anyway.
    if results != calls {
        parts.push(number(results, "result"));
    }
    if parts.is_empty() { Ok(()) } else { write!(out, "  {}", parts.join(", ")) }
}

fn number(count: u64, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

fn shown(text: &JsonString, chars_max: usize) -> String {
    visible(&cut(&text.to_text(), chars_max), Lines::Escape).into_owned()
}

fn cut(text: &str, chars_max: usize) -> String {
    match text.char_indices().nth(chars_max) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.into(),
    }
}
