//! Tests of trees. They compare an outline, with a line for each step and inner steps indented.

mod fold;
mod highlights;
mod joins;
mod random;
mod replay;
mod text;

use std::collections::BTreeMap;

use steno_session::{Content, SessionBuilder};

use super::{Counts, Forest, RunTree, State, Step, join};
use crate::testing::{events, run_id};

/// Folds a run given in the notation of [`crate::testing`].
fn fold<S: AsRef<str>>(run: u32, lines: &[S]) -> RunTree {
    let mut builder = SessionBuilder::new(run_id(run), Content::Whole);
    for event in &events(run, lines) {
        builder.push(event);
    }
    RunTree::of(&builder.finish())
}

/// Joins runs given in the notation of [`crate::testing`], below the first.
fn join_runs<S: AsRef<str>>(runs: &[(u32, &[S])]) -> Forest {
    let trees: BTreeMap<_, _> = runs.iter().map(|(run, lines)| (run_id(*run), fold(*run, lines))).collect();
    join(run_id(runs[0].0), trees)
}

/// Returns a line for each step of a run: `path:name #iteration @loop ^attempt seqs counts state`.
fn outline(tree: &RunTree) -> Vec<String> {
    let mut lines = Vec::new();
    let mut stack: Vec<_> = tree.roots.iter().rev().map(|&id| (0, id)).collect();
    while let Some((depth, id)) = stack.pop() {
        let step = tree.step(id).unwrap();
        lines.push(format!("{}{}", "  ".repeat(depth), outline_step(step)));
        stack.extend(step.facts.children.iter().rev().map(|&id| (depth + 1, id)));
    }
    lines
}

fn outline_step(step: &Step) -> String {
    let mut words = vec![match &step.facts.name {
        Some(name) => format!("{}:{name}", step.facts.path),
        None => step.facts.path.to_string(),
    }];
    if step.facts.iteration > 0 {
        words.push(format!("#{}", step.facts.iteration));
    }
    words.extend(step.facts.loop_indices.as_ref().map(|indices| format!("@{indices:?}")));
    words.extend(step.facts.attempt.map(|attempt| format!("^{attempt}")));
    let seq = |event: Option<crate::EventRef>| event.map(|event| event.seq.to_string()).unwrap_or_default();
    words.push(format!("{}..{}", seq(step.started), seq(step.completed)));
    words.push(outline_counts(step.counts));
    words.push(match (step.facts.state, &step.facts.error) {
        (State::Open, None) => "open".into(),
        (State::Completed, None) => String::new(),
        (State::Failed, Some(error)) => format!("failed: {error}"),
        (State::Open | State::Completed, Some(_)) | (State::Failed, None) => "contradiction".into(),
    });
    words.retain(|word| !word.is_empty());
    words.join(" ")
}

fn outline_counts(counts: Counts) -> String {
    let Counts { messages, calls, results, failed, denied } = counts;
    let bad = if failed + denied > 0 { format!("{failed}f{denied}d") } else { String::new() };
    if counts == Counts::default() { String::new() } else { format!("{messages}m{calls}c{results}r{bad}") }
}
