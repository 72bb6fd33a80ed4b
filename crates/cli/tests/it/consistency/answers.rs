//! The answers of each view about a session, as numbers.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::kit::{RunningSteno, Steno, json};
use crate::serve;

/// Counts of a session. A view that does not show something leaves it at `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionCounts {
    pub calls: u64,
    pub results: u64,
    pub denied: u64,
    pub approvals: u64,
}

impl SessionCounts {
    pub fn add(&mut self, other: &Self) {
        self.calls += other.calls;
        self.results += other.results;
        self.denied += other.denied;
        self.approvals += other.approvals;
    }
}

/// Usage: responses, and tokens of the prompt that were not cached, read from the cache, written to it, and output of
/// the model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UsageAnswer {
    pub responses: u64,
    pub input: u64,
    pub cache_read: u64,
    pub cache_write: u64,
    pub output: u64,
    /// Whether the counts are exact, not a lower bound.
    pub is_exact: bool,
}

impl UsageAnswer {
    /// No usage, which is exact.
    pub fn none() -> Self {
        Self { is_exact: true, ..Self::default() }
    }

    pub fn add(&mut self, other: &Self) {
        self.responses += other.responses;
        self.input += other.input;
        self.cache_read += other.cache_read;
        self.cache_write += other.cache_write;
        self.output += other.output;
        self.is_exact &= other.is_exact;
    }

    /// Reads a row of `steno usage`.
    pub fn of_row(row: &Value) -> Self {
        Self {
            responses: number(&row["responses"]),
            input: number(&row["input_tokens"]),
            cache_read: number(&row["cache_read_tokens"]),
            cache_write: number(&row["cache_write_tokens"]),
            output: number(&row["output_tokens"]),
            is_exact: row["exact"] == true,
        }
    }

    /// Reads a row of `steno ls`, which does not say how many responses it sums.
    pub fn of_list(row: &Value) -> Self {
        let tokens = &row["tokens"];
        Self {
            responses: 0,
            input: number(&tokens["input"]),
            cache_read: number(&tokens["cache_read"]),
            cache_write: number(&tokens["cache_write"]),
            output: number(&tokens["output"]),
            is_exact: tokens.is_null() || tokens["exact"] == true,
        }
    }

    /// Reads the sum of a trajectory.
    fn of_metrics(metrics: &Value) -> Self {
        let extra = &metrics["extra"];
        Self {
            responses: number(&extra["responses"]),
            input: number(&extra["input_tokens"]),
            cache_read: number(&metrics["total_cached_tokens"]),
            cache_write: number(&extra["cache_write_tokens"]),
            output: number(&metrics["total_completion_tokens"]),
            is_exact: extra["exact"] == true,
        }
    }
}

/// The answer of `show`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShowAnswer {
    pub all: SessionCounts,
    pub in_turns: SessionCounts,
    /// Changes of files in turns.
    pub changes: u64,
    pub statuses: Vec<String>,
    pub responses: u64,
    pub usage: Option<UsageAnswer>,
    pub runs: u64,
    pub events: u64,
    pub state: String,
}

/// The answer of `tree`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TreeAnswer {
    pub all: SessionCounts,
    pub states: Vec<String>,
    pub events: u64,
    pub started_at: Value,
    pub state: String,
    pub session_state: String,
}

/// The answer of a trajectory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrajectoryAnswer {
    pub all: SessionCounts,
    pub usage: Option<UsageAnswer>,
}

/// The answers of all views about a session and those below it, by session.
#[derive(Debug, Default)]
pub struct Answers {
    pub shown: BTreeMap<String, ShowAnswer>,
    pub trees: BTreeMap<String, TreeAnswer>,
    pub trajectories: BTreeMap<String, TrajectoryAnswer>,
    /// The number of responses that `export atif` reports.
    pub exported_responses: u64,
    /// Whether a child session is missing.
    pub has_missing: bool,
}

pub fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or(0)
}

pub fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

pub fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

/// Counts the content of a conversation.
pub fn count_shown(conversation: &Value) -> ShowAnswer {
    let mut shown = ShowAnswer::default();
    let in_turns = list(&conversation["turns"]).iter().flat_map(|turn| list(&turn["items"]));
    let places = in_turns
        .map(|item| (true, item))
        .chain(list(&conversation["outside"]).iter().map(|item| (false, item)));
    let mut changes = 0;
    for (is_in_turn, item) in places {
        let mut found =
            SessionCounts { approvals: u64::from(item["item"] == "approval"), ..SessionCounts::default() };
        let mut class = &Value::Null;
        for block in list(&item["blocks"]) {
            if block["type"] == "tool_use" && block.get("is_dangling").is_some() {
                class = &block["class"];
                found.calls += 1;
                found.results += u64::from(block["is_dangling"] == false);
                found.approvals += list(&block["approvals"]).len() as u64;
                found.denied += u64::from(block["is_dangling"] == true && is_denied(&block["approvals"]));
            } else if block["type"] == "tool_result" && block.get("is_amended").is_some() {
                found.denied += u64::from(block["outcome"] == "denied");
                let is_change = *class == "file_change" && block["outcome"] == "ok";
                changes += u64::from(is_change);
                shown.changes += u64::from(is_in_turn && is_change);
            }
        }
        shown.all.add(&found);
        if is_in_turn {
            shown.in_turns.add(&found);
        }
    }
    let id = &conversation["run_id"];
    assert_eq!(number(&conversation["calls"]), shown.all.calls, "{id}");
    assert_eq!(number(&conversation["file_changes"]), changes, "{id}");
    shown.statuses = list(&conversation["turns"]).iter().map(|turn| text(&turn["status"])).collect();
    shown.responses = number(&conversation["responses"]);
    shown.usage = Some(&conversation["usage"]).filter(|usage| !usage.is_null()).map(UsageAnswer::of_row);
    shown.runs = list(&conversation["runs"]).len() as u64;
    shown.events = list(&conversation["runs"]).iter().map(|run| number(&run["events"])).sum();
    shown.state = text(&conversation["state"]);
    shown
}

/// Counts the content of a tree, for each session in it.
pub fn count_tree(tree: &Value, counts: &mut BTreeMap<String, TreeAnswer>) {
    let mut waiting = vec![(tree, String::new())];
    while let Some((node, mut session)) = waiting.pop() {
        if node["node"] == "run" {
            session = text(&node["run_id"]);
            let own = counts.entry(session.clone()).or_default();
            own.events = number(&node["events"]);
            own.started_at = node["started_at"].clone();
            own.state = text(&node["state"]);
            own.session_state = text(&node["session_state"]);
        }
        let own = counts.entry(session.clone()).or_default();
        own.all.calls += number(&node["calls"]);
        own.all.results += number(&node["results"]);
        own.all.denied += number(&node["denied"]);
        let is_step = |kind: &str| node["node"] == "step" && node["kind"] == kind;
        own.all.approvals += u64::from(is_step("approval"));
        if is_step("turn") {
            own.states.push(text(&node["state"]));
        }
        // In reverse, because the last one is read first.
        waiting.extend(list(&node["children"]).iter().rev().map(|child| (child, session.clone())));
    }
}

/// Tells whether one of a call's approvals was denied. Some agents report nothing else of such a call.
fn is_denied(approvals: &Value) -> bool {
    let decision = |approval: &Value| [&approval["decision"], &approval["answer"]["decision"]].map(text);
    list(approvals).iter().any(|approval| decision(approval).contains(&"denied".to_owned()))
}

/// Counts the content of a trajectory, for each session in it.
pub fn count_trajectory(trajectory: &Value, counts: &mut BTreeMap<String, TrajectoryAnswer>) {
    let mut waiting = vec![trajectory];
    while let Some(of) = waiting.pop() {
        let own = counts.entry(text(&of["trajectory_id"])).or_default();
        for step in list(&of["steps"]) {
            own.all.calls += list(&step["tool_calls"]).len() as u64;
            for result in list(&step["observation"]["results"]) {
                let extra = &result["extra"];
                let is_result = result.get("source_call_id").is_some() && extra["result_available"] != false;
                own.all.results += u64::from(is_result);
                let has_none = extra["result_available"] == false;
                let is_refused = has_none && is_denied(&extra["approvals"]);
                own.all.denied += u64::from(is_refused || extra["outcome"] == "denied");
                own.all.approvals += list(&extra["approvals"]).len() as u64;
            }
            own.all.approvals += u64::from(step["extra"]["kind"] == "approval");
        }
        let metrics = &of["final_metrics"];
        own.usage = metrics.get("total_completion_tokens").map(|_| UsageAnswer::of_metrics(metrics));
        if let Some(usage) = own.usage {
            let prompt = usage.input + usage.cache_read + usage.cache_write;
            assert_eq!(number(&metrics["total_prompt_tokens"]), prompt, "{metrics}");
        }
        waiting.extend(list(&of["subagent_trajectories"]));
    }
}

/// Asks `show`, `tree` and `export atif` for a session or a path.
pub fn ask(steno: &Steno, name: &str) -> Answers {
    let mut answers = Answers::default();
    for conversation in steno.run(&["show", name, "--json"]).json() {
        answers.shown.insert(text(&conversation["run_id"]), count_shown(&conversation));
    }
    for tree in steno.run(&["tree", name, "--json"]).json() {
        answers.has_missing |= tree.to_string().contains(r#""join":"missing""#);
        count_tree(&tree, &mut answers.trees);
    }
    let dir = tempfile::tempdir().unwrap();
    let said = steno.run(&["export", "atif", name, "-o", &dir.path().join("t").to_string_lossy(), "--json"]);
    for row in said.json().iter().filter(|row| row.get("file").is_some()) {
        answers.exported_responses += number(&row["responses"]);
        let trajectory = std::fs::read_to_string(text(&row["file"])).unwrap();
        count_trajectory(&json(&trajectory), &mut answers.trajectories);
    }
    answers
}

/// A server of a store.
pub struct Server {
    live: RunningSteno,
    file: PathBuf,
}

impl Server {
    pub fn start(steno: &Steno) -> Self {
        let mut live = steno.start(&["serve", "--port", "0", "--json"]);
        let told = json(&live.line());
        let file = Path::new(told["token_file"].as_str().unwrap()).to_owned();
        Self { live, file }
    }

    /// Returns the body of the answer.
    #[track_caller]
    pub fn get(&self, path: &str) -> String {
        let answer = serve::ask(&self.file, path);
        assert!(answer.starts_with("HTTP/1.1 200"), "{path}: {answer}");
        answer.split_once("\r\n\r\n").unwrap().1.to_owned()
    }

    pub fn stop(self) {
        self.live.signal("TERM");
        assert_eq!(self.live.ended().code, 0);
    }
}
