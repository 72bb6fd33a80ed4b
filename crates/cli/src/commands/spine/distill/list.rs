//! The output of `steno spine distill` about windows: tasks, plans and refusals.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Value, json};
use steno_exports::harbor::{Check, Concern, Plan, Rank, Refusal, Session, Span, TaskFile, Turn, Wish};
use steno_views::{Lines, count, cut, padding, visible};

use super::recorded::TaskSession;
use crate::args::SpineDistillArgs;
use crate::output::{Output, size};

/// The maximum length of a turn's text.
const WORDS_LEN: usize = 48;

/// Shows every turn of a session, and the task that it would become.
pub fn show(recorded: &TaskSession, wish: &Wish, as_json: bool, output: &mut Output) {
    let session = &recorded.session;
    if !as_json {
        output.line(&format!("{}  {}", session.thread, count(session.turns.len() as u64, "turn")));
    }
    let mut hints = BTreeSet::new();
    for turn in &session.turns {
        let plan = Plan::make(session, Span::Turns(turn.number, turn.number), wish.clone());
        if as_json {
            output.json_line(&turn_json(session, turn, &plan).to_string());
        } else {
            output.line(&visible(&turn_line(turn, &plan), Lines::Escape));
        }
        hints.extend(plan.err().and_then(|refusal| refusal.hint));
    }
    for hint in hints.iter().filter(|_| !as_json) {
        output.line(&format!("hint: {hint}"));
    }
}

fn turn_line(turn: &Turn, plan: &Result<Plan<'_>, Refusal>) -> String {
    let words = turn.words.first().and_then(|words| words.lines().next()).unwrap_or_default();
    let words = cut(words, WORDS_LEN);
    let verdict = match plan {
        Ok(plan) => format!("a task, checked by {}, {}", check_words(&plan.check), solution_words(plan)),
        Err(refusal) => format!("no task: {}", refusal.why),
    };
    format!("{:>4}  {words}{}  {verdict}", turn.number, padding(&words, WORDS_LEN))
}

fn turn_json(session: &Session, turn: &Turn, plan: &Result<Plan<'_>, Refusal>) -> Value {
    let mut object = json!({
        "thread_id": session.thread.as_str(),
        "turn": turn.number,
        "turn_id": turn.id,
        "seqs": [turn.seqs.0, turn.seqs.1],
        "words": turn.words,
        "calls": turn.calls.len(),
        "task": plan.is_ok(),
    });
    match plan {
        Ok(plan) => {
            object["check"] = json!(check_kind(&plan.check));
            object["command"] = json!(command(&plan.check));
            object["solution"] = json!(plan.solution.is_ok());
            object["no_solution"] = json!(plan.solution.as_ref().err());
            object["doubts"] = json!(plan.start.doubts);
        }
        Err(refusal) => {
            object["refused"] = json!(refusal.why);
            object["concern"] = json!(refusal.concern.map(Concern::as_str));
            object["hint"] = json!(refusal.hint);
        }
    }
    object
}

/// Reports a task that was written.
pub fn made(plan: &Plan<'_>, path: &Path, files: &[TaskFile], as_json: bool, output: &mut Output) {
    let (first, last) = (&plan.turns[0], &plan.turns[plan.turns.len() - 1]);
    let bytes: usize = files.iter().map(|file| file.bytes.len()).sum();
    if as_json {
        let object = json!({
            "output": path.to_string_lossy(),
            "name": plan.name(),
            "thread_id": plan.session.thread.as_str(),
            "turns": [first.number, last.number],
            "seqs": [first.seqs.0, last.seqs.1],
            "check": check_kind(&plan.check),
            "command": command(&plan.check),
            "doubts": plan.start.doubts,
            "no_solution": plan.solution.as_ref().err(),
            "solution": plan.solution.is_ok(),
            "trajectory": files.iter().any(|file| file.path == "trajectory.json"),
            "labels": plan.labels.iter().map(|(label, _)| label.as_str()).collect::<Vec<_>>(),
            "files": files.len(),
            "bytes": bytes,
        });
        return output.json_line(&object.to_string());
    }
    let solution = solution_words(plan);
    let line = format!(
        "distilled  {}  checked by {}, {solution}, {} ({}) in `{}`",
        plan.name(),
        check_words(&plan.check),
        count(files.len() as u64, "file"),
        size(bytes as u64),
        path.display()
    );
    output.line(&visible(&line, Lines::Escape));
}

/// Reports why a window was refused.
pub fn refused(
    session: &Session,
    span: Span,
    refusal: &Refusal,
    args: &SpineDistillArgs,
    output: &mut Output,
) {
    let window = match span {
        Span::Turns(first, last) if first == last => format!("turn {first}"),
        Span::Turns(first, u32::MAX) => format!("turns {first} to the last"),
        Span::Turns(first, last) => format!("turns {first} to {last}"),
        Span::Seqs(first, last) => format!("records {first} to {last}"),
    };
    if args.json {
        let object = json!({
            "thread_id": session.thread.as_str(),
            "window": window,
            "refused": refusal.why,
            "concern": refusal.concern.map(Concern::as_str),
        });
        return output.json_line(&object.to_string());
    }
    // If there is only one window, the error of the command says it.
    if args.each_turn || args.bundles.len() + args.turns.len() + args.seqs.len() > 2 {
        // Most reasons name the turn themselves.
        let window = if refusal.why.starts_with("turn ") { String::new() } else { format!(" {window}") };
        let line = format!("refused    {}{window}: {}", session.thread, refusal.why);
        output.line(&visible(&line, Lines::Escape));
    }
}

fn solution_words(plan: &Plan<'_>) -> &'static str {
    if plan.solution.is_ok() { "with a solution" } else { "without a solution" }
}

fn check_kind(check: &Check) -> &'static str {
    match check {
        Check::Command(chosen) => chosen.rank.as_str(),
        Check::Patches(_) => "patches",
        Check::Diff(_) => "diff",
    }
}

fn command(check: &Check) -> Option<&str> {
    match check {
        Check::Command(chosen) => Some(&chosen.script),
        Check::Patches(_) | Check::Diff(_) => None,
    }
}

fn check_words(check: &Check) -> String {
    match check {
        Check::Command(chosen) => {
            let kind = match chosen.rank {
                Rank::TestRunner => "the tests",
                Rank::Build => "the build",
                Rank::Linter => "the linter",
                Rank::Other => "the command",
            };
            format!("{kind} `{}`", cut(&chosen.script, WORDS_LEN))
        }
        Check::Patches(_) => "looking for the recorded changes".to_owned(),
        Check::Diff(_) => "comparing the working tree".to_owned(),
    }
}
