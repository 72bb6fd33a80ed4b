//! The same question gets the same answer from every view: over all real sessions that are at hand, and in whichever order
//! their sources were imported.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;
use steno_testkit::{needs, places, shared_dir};

use crate::kit::Steno;

/// What a view counts of one session. Each view fills in what it shows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Counts {
    calls: u64,
    results: u64,
    denied: u64,
    approvals: u64,
}

/// All that the views say of one session.
struct Answers {
    /// By session: from `show`, of everything and of turns alone, with the status of each turn and the changes of files.
    shown: BTreeMap<String, Shown>,
    trees: BTreeMap<String, Counts>,
    trajectories: BTreeMap<String, Counts>,
    /// The tokens that the model wrote, by `export atif`.
    written: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Shown {
    all: Counts,
    in_turns: Counts,
    changes: u64,
    statuses: Vec<String>,
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or(0)
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

/// Counts what a conversation has.
fn count_shown(conversation: &Value) -> Shown {
    let mut shown = Shown::default();
    let in_turns = list(&conversation["turns"]).iter().flat_map(|turn| list(&turn["items"]));
    let places = in_turns
        .map(|item| (true, item))
        .chain(list(&conversation["outside"]).iter().map(|item| (false, item)));
    for (is_in_turn, item) in places {
        let mut found = Counts { approvals: u64::from(item["item"] == "approval"), ..Counts::default() };
        let mut class = &Value::Null;
        for block in list(&item["blocks"]) {
            if block["type"] == "tool_use" && block.get("is_dangling").is_some() {
                class = &block["class"];
                found.calls += 1;
                found.results += u64::from(block["is_dangling"] == false);
                found.approvals += list(&block["approvals"]).len() as u64;
            } else if block["type"] == "tool_result" && block.get("is_amended").is_some() {
                found.denied += u64::from(block["outcome"] == "denied");
                let is_change = is_in_turn && *class == "file_change" && block["outcome"] == "ok";
                shown.changes += u64::from(is_change);
            }
        }
        shown.all.add(&found);
        if is_in_turn {
            shown.in_turns.add(&found);
        }
    }
    assert_eq!(number(&conversation["calls"]), shown.all.calls, "{}", conversation["run_id"]);
    shown.statuses = list(&conversation["turns"]).iter().map(|turn| text(&turn["status"])).collect();
    shown
}

impl Counts {
    fn add(&mut self, other: &Self) {
        self.calls += other.calls;
        self.results += other.results;
        self.denied += other.denied;
        self.approvals += other.approvals;
    }
}

/// Counts what a tree has, for each session in it.
fn count_tree(tree: &Value, counts: &mut BTreeMap<String, Counts>) {
    let mut waiting = vec![(tree, String::new())];
    while let Some((node, mut session)) = waiting.pop() {
        if node["node"] == "run" {
            session = text(&node["run_id"]);
        }
        let own = counts.entry(session.clone()).or_default();
        own.calls += number(&node["calls"]);
        own.results += number(&node["results"]);
        own.denied += number(&node["denied"]);
        own.approvals += u64::from(node["node"] == "step" && node["kind"] == "approval");
        waiting.extend(list(&node["children"]).iter().map(|child| (child, session.clone())));
    }
}

/// Counts what a trajectory has, for each session in it; returns what the model wrote.
fn count_trajectory(trajectory: &Value, counts: &mut BTreeMap<String, Counts>) -> u64 {
    let mut waiting = vec![trajectory];
    let mut written = 0;
    while let Some(of) = waiting.pop() {
        let own = counts.entry(text(&of["trajectory_id"])).or_default();
        for step in list(&of["steps"]) {
            own.calls += list(&step["tool_calls"]).len() as u64;
            for result in list(&step["observation"]["results"]) {
                let extra = &result["extra"];
                let is_result = result.get("source_call_id").is_some() && extra["result_available"] != false;
                own.results += u64::from(is_result);
                own.denied += u64::from(extra["outcome"] == "denied");
                own.approvals += list(&extra["approvals"]).len() as u64;
            }
            own.approvals += u64::from(step["extra"]["kind"] == "approval");
        }
        written += number(&of["final_metrics"]["total_completion_tokens"]);
        waiting.extend(list(&of["subagent_trajectories"]));
    }
    written
}

fn ask(steno: &Steno, session: &str) -> Answers {
    let mut answers =
        Answers { shown: BTreeMap::new(), trees: BTreeMap::new(), trajectories: BTreeMap::new(), written: 0 };
    for conversation in steno.run(&["show", session, "--json"]).json() {
        answers.shown.insert(text(&conversation["run_id"]), count_shown(&conversation));
    }
    for tree in steno.run(&["tree", session, "--json"]).json() {
        count_tree(&tree, &mut answers.trees);
    }
    let trajectory = steno.run(&["export", "atif", session, "-o", "-"]);
    for trajectory in trajectory.out.lines().map(crate::kit::json) {
        answers.written += count_trajectory(&trajectory, &mut answers.trajectories);
    }
    answers
}

/// Compares what receipts say of a session's turns.
fn check_receipts(steno: &Steno, session: &str, shown: &Shown, wrong: &mut Vec<String>) {
    let (mut counts, mut changes, mut statuses) = (Counts::default(), 0, Vec::new());
    let mut has_approvals = false;
    for turn in steno.run(&["receipt", "ls", "--thread", session, "--json"]).json() {
        let id = text(&turn["id"]);
        let said = steno.run(&["receipt", "export", "--thread", session, "--turn", &id, "--format", "json"]);
        let receipt: Value =
            serde_json::from_str(&said.out).unwrap_or_else(|_| panic!("{session} {id}: {}", said.err));
        let effects = &receipt["side_effect_boundary"];
        counts.calls += number(&receipt["tool_lineage"]["tool_call_count"]);
        counts.results += number(&receipt["tool_lineage"]["tool_result_count"]);
        counts.denied += number(&effects["approval_denied_count"]);
        counts.approvals += number(&effects["approval_required_count"]);
        has_approvals |= !effects["approval_required_count"].is_null();
        changes += number(&effects["file_change_count"]);
        statuses.push(text(&receipt["turn"]["status"]));
    }
    // Where only denials are visible a receipt does not say who was asked.
    let approvals = if has_approvals { shown.in_turns.approvals } else { counts.approvals };
    let want = Counts { approvals, ..shown.in_turns.clone() };
    let (found, want) = ((counts, changes, statuses), (want, shown.changes, shown.statuses.clone()));
    if found != want {
        wrong.push(format!("{session}: receipts {found:?}, shown {want:?}"));
    }
}

/// Compares all views of the sessions that a path has; returns how many there were.
fn check(path: &Path, wrong: &mut Vec<String>) -> u64 {
    let steno = Steno::new();
    let said = steno.run(&["import", &path.to_string_lossy()]);
    assert_eq!(said.code, 0, "{}: {}", path.display(), said.err);
    let usage: BTreeMap<String, Value> = steno
        .run(&["usage", "--by", "session", "--json"])
        .json()
        .into_iter()
        .map(|row| (text(&row["session"]), row))
        .collect();
    let mut number_of = 0;
    for listed in steno.run(&["ls", "--json"]).json() {
        let session = text(&listed["run_id"]);
        let answers = ask(&steno, &session);
        for (id, shown) in &answers.shown {
            number_of += 1;
            let views = [("tree", answers.trees.get(id)), ("atif", answers.trajectories.get(id))];
            for (view, found) in views {
                // Without a step there is no trajectory.
                let Some(found) = found else { continue };
                if *found != shown.all {
                    wrong.push(format!("{}: {id}: {view} {found:?}, shown {:?}", path.display(), shown.all));
                }
            }
            check_receipts(&steno, id, shown, wrong);
        }
        let written = usage.get(&session).map_or(0, |row| number(&row["output_tokens"]));
        let is_copied = COPIED.iter().any(|copied| session.starts_with(copied));
        // A subagent's tokens are its parent's, whose own file may not be there.
        let is_there = answers.trajectories.contains_key(&session);
        if written != answers.written && is_there && !is_copied {
            wrong.push(format!("{}: {session}: usage {written}, atif {}", path.display(), answers.written));
        }
    }
    number_of
}

/// Sessions that begin with responses of another one, which nothing marks as copied: sums over sessions count those in the
/// session that began first.
const COPIED: [&str; 1] = ["6248d83c"];

/// Returns the directories and files below a place that hold one or more sources of the same sessions.
fn parts(shared: &Path, place: &str) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> =
        std::fs::read_dir(shared.join(place)).unwrap().map(|entry| entry.unwrap().path()).collect();
    found.sort();
    found
}

#[test]
fn every_view_gives_the_same_answer() {
    let shared = needs!(shared_dir(), "../shared is absent");
    let mut wrong = Vec::new();
    let mut sessions = 0;
    for place in [
        "captures/claude/2.1.197",
        "captures/claude/2.1.325",
        "captures/codex/0.166.0",
        "versions/claude",
        "versions/codex",
        "recordings/claude",
        "recordings/codex",
    ] {
        for part in parts(&shared, place) {
            sessions += check(&part, &mut wrong);
        }
    }
    sessions += check(&places::workspace_root().join("crates/cli/src/demo/agents"), &mut wrong);
    assert!(wrong.is_empty(), "of {sessions} sessions:\n{}", wrong.join("\n"));
    assert!(sessions > 80, "{sessions}");
}

/// Returns the sources below a directory, each a file that an agent wrote or that was recorded of it.
fn sources(dir: &Path) -> Vec<PathBuf> {
    let is_source = |name: &String| {
        let file = name.rsplit('/').next().unwrap_or_default();
        let is_file = Path::new(name).extension().is_some_and(|end| end == "jsonl");
        let is_session = name.contains("/projects/") || name.contains("/sessions/");
        (is_file && is_session && name.starts_with("home/"))
            || file == "stream.ndjson"
            || file == "duplex.jsonl"
    };
    places::files_below(dir).into_iter().filter(is_source).map(|name| dir.join(name)).collect()
}

/// Takes away what depends on the order of imports: ids of runs and numbers of events.
fn without_places(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for name in ["run", "runs", "seq", "seq_call", "seq_result", "session_run_id"] {
                fields.remove(name);
            }
            fields.values_mut().for_each(without_places);
        }
        Value::Array(items) => items.iter_mut().for_each(without_places),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Returns all conversations of a store, by session, without what depends on the order of imports.
fn conversations(steno: &Steno) -> BTreeMap<String, Value> {
    let mut all = BTreeMap::new();
    for listed in steno.run(&["ls", "--json"]).json() {
        for mut conversation in steno.run(&["show", &text(&listed["run_id"]), "--json"]).json() {
            without_places(&mut conversation);
            all.insert(text(&conversation["run_id"]), conversation);
        }
    }
    all
}

/// Fails where an answer has fewer facts of a session than the one before.
fn check_no_loss(before: &BTreeMap<String, Value>, after: &BTreeMap<String, Value>, context: &str) {
    for (session, known) in before {
        let Some(now) = after.get(session) else { panic!("{context}: session {session} is gone") };
        let (known, now) = (count_shown(known), count_shown(now));
        let numbers = |shown: &Shown| {
            let Counts { calls, results, denied, approvals } = shown.all;
            [calls, results, denied, approvals, shown.changes, shown.statuses.len() as u64]
        };
        let is_less = numbers(&known).iter().zip(numbers(&now)).any(|(known, now)| now < *known);
        assert!(!is_less, "{context}: session {session} had {known:?} and has {now:?}");
    }
}

/// Returns orders of so many things: all of them up to four, else some.
fn orders(count: usize) -> Vec<Vec<usize>> {
    const ORDERS_MAX: usize = 24;
    let mut all = vec![Vec::new()];
    for next in 0..count {
        let longer = |order: &Vec<usize>| {
            let order = order.clone();
            (0..=order.len()).map(move |place| {
                let mut longer = order.clone();
                longer.insert(place, next);
                longer
            })
        };
        all = all.iter().flat_map(longer).collect();
        let step = all.len().div_ceil(ORDERS_MAX);
        all = all.into_iter().step_by(step).collect();
    }
    all
}

/// Imports sources one by one, in every order; all orders have to give the same sessions in the end, and no import may take
/// a fact away. Returns how many orders there were.
fn check_orders(sources: &[PathBuf], context: &str) -> u64 {
    let mut want = None::<BTreeMap<String, Value>>;
    let orders = orders(sources.len());
    for order in &orders {
        let steno = Steno::new();
        let mut last = BTreeMap::new();
        for source in order {
            let said = steno.run(&["import", &sources[*source].to_string_lossy()]);
            assert_eq!(said.code, 0, "{}", said.err);
            let now = conversations(&steno);
            check_no_loss(&last, &now, &format!("{context} in the order {order:?}"));
            last = now;
        }
        match &want {
            None => want = Some(last),
            Some(want) => assert!(*want == last, "{context} in the order {order:?}"),
        }
    }
    orders.len() as u64
}

#[test]
fn sources_give_the_same_session_in_whichever_order_they_come() {
    let shared = needs!(shared_dir(), "../shared is absent");
    let mut compared = 0;
    for place in ["captures/claude/2.1.325", "captures/codex/0.166.0"] {
        for part in parts(&shared, place) {
            let sources = sources(&part);
            if sources.len() > 1 {
                compared += check_orders(&sources, &part.display().to_string());
            }
        }
    }
    assert!(compared > 20, "{compared}");
}

#[test]
fn checkpoints_of_a_file_are_one_session_in_whichever_order_they_come() {
    let shared = needs!(shared_dir(), "../shared is absent");
    for part in [shared.join("captures/claude/2.1.325/main"), shared.join("captures/codex/0.166.0/exec_main")]
    {
        let file =
            sources(&part).into_iter().max_by_key(|file| std::fs::metadata(file).unwrap().len()).unwrap();
        let text = std::fs::read_to_string(&file).unwrap();
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        let dir = tempfile::tempdir().unwrap();
        let checkpoint = |(number, parts): (usize, usize)| {
            let path = dir.path().join(number.to_string()).join(file.file_name().unwrap());
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, lines[..lines.len() * parts / 4].concat()).unwrap();
            path
        };
        let checkpoints: Vec<PathBuf> = [1, 2, 3, 4].into_iter().enumerate().map(checkpoint).collect();
        check_orders(&checkpoints, &file.display().to_string());
        let steno = Steno::new();
        for checkpoint in &checkpoints {
            assert_eq!(steno.run(&["import", &checkpoint.to_string_lossy()]).code, 0);
        }
        let listed = steno.run(&["ls", "--json"]).json();
        assert_eq!((listed.len(), number(&listed[0]["runs"])), (1, 4), "{listed:?}");
    }
}
