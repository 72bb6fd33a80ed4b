//! Several runs as one tree: links from either side, missing runs, cycles, and deep trees.

use proptest::prelude::*;
use steno_model::Timestamp;
use steno_model::json::depth;
use steno_model::limits::DEPTH_MAX;

use super::super::{Child, Forest, JoinKind, RunTree, StepId, export, export_all, join, join_all, text};
use super::{fold, join_runs};
use crate::testing::{run_id, time};

type Runs<'a> = &'a [(u32, &'a [&'a str])];

fn child(run: u32, parent: u32, step: Option<usize>, join: JoinKind) -> Child {
    Child { run_id: run_id(run), parent: run_id(parent), step: step.map(StepId), join }
}

fn children(joined: &Forest) -> Vec<Child> {
    let places = joined.runs().flat_map(|run| {
        let steps = run.steps().map(|(step, _)| Some(step));
        std::iter::once(None).chain(steps).map(|step| (run.run_id, step))
    });
    places.flat_map(|(run_id, step)| joined.children(run_id, step)).copied().collect()
}

#[track_caller]
fn check(runs: Runs<'_>, want: &[Child], outside: &[u32]) {
    let joined = join_runs(runs);
    assert_eq!(children(&joined), want, "{runs:?}");
    let outside: Vec<_> = outside.iter().map(|&run| run_id(run)).collect();
    assert_eq!(joined.outside(), outside, "{runs:?}");
}

#[test]
fn child_is_below_the_step_that_links_it() {
    check(
        &[(1, &["> a", ">> a.call child=2"]), (2, &["run - parent=1"])],
        &[child(2, 1, Some(1), JoinKind::Linked)],
        &[],
    );
    check(&[(1, &[">> a child=2"]), (2, &["run"])], &[child(2, 1, Some(0), JoinKind::Linked)], &[]);
}

#[test]
fn child_without_link_is_unlinked() {
    check(&[(1, &["run"]), (2, &["run - parent=1"])], &[child(2, 1, None, JoinKind::Unlinked)], &[]);
}

#[test]
fn unlinked_children_are_sorted_by_age() {
    let child_at = |run, seq| RunTree {
        started_at: Some(Timestamp::parse(&time(seq)).unwrap()),
        ..fold(run, &["run - parent=1"])
    };
    let trees = [fold(1, &["run"]), child_at(2, 20), child_at(3, 10), child_at(4, 10)];
    let joined = join(run_id(1), trees.into_iter().map(|tree| (tree.run_id, tree)).collect());
    let order: Vec<_> = joined.children(run_id(1), None).iter().map(|child| child.run_id).collect();
    assert_eq!(order, [run_id(3), run_id(4), run_id(2)]);
}

#[test]
fn link_without_run_is_missing() {
    check(
        &[(1, &[">> a child=2", "u - child=3"])],
        &[child(3, 1, None, JoinKind::Missing), child(2, 1, Some(0), JoinKind::Missing)],
        &[],
    );
}

#[test]
fn unreachable_run_is_outside() {
    check(&[(1, &["run"]), (2, &["run - parent=9"]), (3, &["run"])], &[], &[2, 3]);
    check(&[(2, &["run - parent=1"]), (1, &["run"])], &[], &[1]);
}

#[test]
fn run_linked_twice_is_nested_once() {
    check(
        &[(1, &[">> a child=2", ">> b child=2"]), (2, &["run"])],
        &[child(2, 1, Some(0), JoinKind::Linked), child(2, 1, Some(1), JoinKind::Elsewhere)],
        &[],
    );
}

#[test]
fn run_with_two_links_goes_to_its_own_parent() {
    check(
        &[(1, &[">> a child=2", ">> b child=3"]), (2, &[">> c child=3"]), (3, &["run - parent=2"])],
        &[
            child(2, 1, Some(0), JoinKind::Linked),
            child(3, 1, Some(1), JoinKind::Elsewhere),
            child(3, 2, Some(0), JoinKind::Linked),
        ],
        &[],
    );
}

#[test]
fn run_with_unreachable_parent_stays_linked() {
    check(
        &[(1, &[">> a child=2"]), (2, &["run - parent=3"]), (3, &["run"])],
        &[child(2, 1, Some(0), JoinKind::Linked)],
        &[3],
    );
}

#[test]
fn cycles_are_cut() {
    check(&[(1, &[">> a child=1"])], &[child(1, 1, Some(0), JoinKind::Cycle)], &[]);
    check(&[(1, &["run - parent=1"])], &[child(1, 1, None, JoinKind::Cycle)], &[]);
    check(
        &[(1, &[">> a child=2"]), (2, &[">> b child=3"]), (3, &[">> c child=1"])],
        &[
            child(2, 1, Some(0), JoinKind::Linked),
            child(3, 2, Some(0), JoinKind::Linked),
            child(1, 3, Some(0), JoinKind::Cycle),
        ],
        &[],
    );
    check(
        &[(1, &["run - parent=2"]), (2, &["run - parent=1"])],
        &[child(2, 1, None, JoinKind::Unlinked), child(1, 2, None, JoinKind::Cycle)],
        &[],
    );
    check(&[(1, &["run"]), (2, &["run - parent=3"]), (3, &["run - parent=2"])], &[], &[2, 3]);
}

#[test]
fn missing_root_is_marked() {
    let joined = join(run_id(1), [].into());
    assert_eq!(text(&joined), "run 00000001…  missing\n");
    assert_eq!(joined.run(run_id(1)), None);
}

const LEVELS: u32 = 1000;

#[track_caller]
fn check_deep(joined: &Forest, nodes: usize) {
    let text = text(joined);
    assert_eq!(text.lines().count(), nodes);
    // Lines are drawn for 64 levels; beyond that the depth is a number.
    assert!(text.lines().nth(64).unwrap().starts_with(&format!("{}└─ ", "   ".repeat(63))));
    assert!(text.lines().nth(65).unwrap().starts_with("[65] └─ "));
    let json = serde_json::to_string(&export(joined)).unwrap();
    assert_eq!(json.matches("\"node\":").count(), nodes);
    assert!(depth(&json) <= DEPTH_MAX, "{}", depth(&json));
    serde_json::from_str::<serde_json::Value>(&json).unwrap();
}

#[test]
fn thousand_runs_nest() {
    let runs: Vec<_> = (1..=LEVELS).map(|run| (run, [format!(">> call child={}", run + 1)])).collect();
    let runs: Vec<_> = runs.iter().map(|(run, lines)| (*run, lines.as_slice())).collect();
    let joined = join_runs(&runs);
    assert!(joined.outside().is_empty());
    check_deep(&joined, 2 * LEVELS as usize + 1);
}

#[test]
fn thousand_steps_nest() {
    let lines: Vec<_> =
        (1..=LEVELS as usize).map(|level| format!("> {}", vec!["s"; level].join("."))).collect();
    check_deep(&join_runs(&[(1, &lines)]), LEVELS as usize + 1);
}

proptest! {
    #[test]
    fn every_run_is_nested_once_where_it_belongs(
        relations in prop::collection::vec((any::<prop::sample::Index>(), any::<bool>(), any::<bool>()), 0..30),
    ) {
        // Run 1 is the root; each further run has an earlier one as its parent and is named from one side or both.
        let mut runs = vec![vec!["run".to_owned()]];
        let mut want = Vec::new();
        for (number, (parent, is_linked, is_claimed)) in (2_u32..).zip(&relations) {
            let parent = parent.index(runs.len());
            let claim = if *is_claimed || !is_linked { format!(" - parent={}", parent + 1) } else { String::new() };
            let step = is_linked.then(|| {
                runs[parent].push(format!(">> call-{number} child={number}"));
                runs[parent].len() - 2
            });
            let join = if *is_linked { JoinKind::Linked } else { JoinKind::Unlinked };
            want.push(child(number, u32::try_from(parent).unwrap() + 1, step, join));
            runs.push(vec![format!("run{claim}")]);
        }
        let runs: Vec<_> = (1..).zip(runs.iter().map(Vec::as_slice)).collect();
        let mut found = children(&join_runs(&runs));
        found.sort_by_key(|child| child.run_id);
        prop_assert_eq!(found, want);
    }
}

#[track_caller]
fn check_all(runs: Runs<'_>, roots: &[u32], want: &[Child]) {
    let trees: Vec<RunTree> = runs.iter().map(|(run, lines)| fold(*run, lines)).collect();
    let joined = join_all(trees.into_iter().map(|tree| (tree.run_id, tree)).collect());
    assert_eq!(joined.roots(), roots.iter().map(|&run| run_id(run)).collect::<Vec<_>>(), "{runs:?}");
    assert_eq!(children(&joined), want, "{runs:?}");
    assert_eq!(joined.outside(), [], "{runs:?}");
    assert_eq!(export_all(&joined).len(), roots.len(), "{runs:?}");
    let at_the_left = text(&joined).lines().filter(|line| line.starts_with(['r', 'c'])).count();
    assert_eq!(at_the_left, roots.len(), "{runs:?}");
}

#[test]
fn runs_without_parent_are_roots() {
    check_all(&[], &[], &[]);
    check_all(
        &[(1, &["run"]), (2, &["run - parent=1"]), (3, &["run - parent=9"])],
        &[1, 3],
        &[child(2, 1, None, JoinKind::Unlinked)],
    );
    // A linked run that does not name its parent is below it, once.
    check_all(&[(2, &["run"]), (3, &[">> a child=2"])], &[3], &[child(2, 3, Some(0), JoinKind::Linked)]);
    check_all(
        &[(1, &[">> a child=3"]), (2, &[">> b child=3"]), (3, &["run - parent=2"])],
        &[1, 2],
        &[child(3, 1, Some(0), JoinKind::Elsewhere), child(3, 2, Some(0), JoinKind::Linked)],
    );
}

#[test]
fn cycle_starts_at_one_run() {
    check_all(
        &[(1, &["run - parent=2"]), (2, &["run - parent=1"]), (3, &["run - parent=3"])],
        &[1, 3],
        &[
            child(2, 1, None, JoinKind::Unlinked),
            child(1, 2, None, JoinKind::Cycle),
            child(3, 3, None, JoinKind::Cycle),
        ],
    );
}
