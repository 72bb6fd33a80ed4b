//! The same question gets the same answer from every view: for all real sessions, from the store and from agents'
//! files, and in any order of import.

mod answers;
mod opening;
mod orders;
mod requests;
mod stores;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use serde_json::Value;
use steno_testkit::{needs, places, shared_dir, skip};

use self::answers::{Answers, Server, SessionCounts, ShowAnswer, UsageAnswer, ask, number, text};
use crate::kit::Steno;

/// Sessions that begin with unmarked copies of another session's responses: sums over sessions count these in the
/// earliest session.
const COPIED: [&str; 1] = ["6248d83c"];

/// The maximum number of receipts of a session that are compared byte for byte.
const RECEIPTS_MAX: usize = 40;

/// The number of stores that are checked at the same time.
const THREADS: usize = 4;

/// Runs `work` for each item in parallel; returns the results in order.
fn each_of<T: Sync, R: Send>(things: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = Mutex::new(0..things.len());
    let done = Mutex::new(BTreeMap::new());
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                loop {
                    let Some(at) = next.lock().unwrap().next() else { return };
                    let result = work(&things[at]);
                    done.lock().unwrap().insert(at, result);
                }
            });
        }
    });
    done.into_inner().unwrap().into_values().collect()
}

/// A store, its list, and the differences between its views.
struct Check<'a> {
    steno: &'a Steno,
    server: Server,
    usage: BTreeMap<String, Value>,
    runs: Vec<Value>,
    sessions: u64,
    context: String,
    wrong: Vec<String>,
}

impl Check<'_> {
    /// Notes a difference between two answers.
    fn same<T: PartialEq + std::fmt::Debug>(&mut self, what: &str, one: &T, other: &T) {
        if one != other {
            self.wrong.push(format!("{}: {what}: {one:?}, {other:?}", self.context));
        }
    }

    /// Compares the lists of the command with those of the API, byte for byte.
    fn lists(&mut self) {
        let mut rows: Vec<String> =
            self.steno.run(&["ls", "--runs", "--json"]).out.lines().map(str::to_owned).collect();
        rows.sort_by_key(|row| text(&crate::kit::json(row)["run_id"]));
        let want = format!("{{\"runs\":[{}],\"next\":null}}", rows.join(","));
        let found = self.server.get("/v1/runs?limit=1000");
        self.same("ls --runs and /v1/runs", &want, &found);
        let rows: Vec<String> = self.steno.run(&["ls", "--json"]).out.lines().map(str::to_owned).collect();
        let want = format!("{{\"sessions\":[{}],\"next\":null}}", rows.join(","));
        self.same("ls and /v1/sessions", &want, &self.server.get("/v1/sessions?limit=1000"));
        // A word, and a regular expression.
        for (query, escaped) in [("the", "the"), ("/[a-z]+ [0-9]/", "/%5Ba-z%5D%2B%20%5B0-9%5D/")] {
            let said = self.steno.run(&["search", query, "--json", "--limit", "1000", "--hits", "1000"]);
            let mut objects: Vec<&str> = said.out.lines().collect();
            let found = self.server.get(&format!("/v1/search?q={escaped}&limit=1000&hits=1000"));
            // Without a match, the command prints nothing.
            let Some(searched) = objects.pop() else {
                self.same("search and /v1/search", &true, &found.starts_with("{\"hits\":[],"));
                continue;
            };
            let want = format!("{{\"hits\":[{}],\"searched\":{searched}}}", objects.join(","));
            self.same("search and /v1/search", &want, &found);
        }
        for by in ["session", "day,model"] {
            let said = self.steno.run(&["usage", "--by", by, "--json"]);
            let want = format!("{{\"rows\":[{}],\"total\":", said.out.lines().collect::<Vec<_>>().join(","));
            let found = self.server.get(&format!("/v1/usage?by={by}"));
            // The command prints no total as JSON.
            let found = found.get(..want.len()).unwrap_or(&found);
            self.same("usage and /v1/usage", &want.as_str(), &found);
        }
    }

    /// Compares the answers of `show`, `tree` and `export atif` about each session of a family.
    fn views(&mut self, answers: &Answers) {
        let ids = |keys: Vec<&String>| keys.into_iter().cloned().collect::<BTreeSet<_>>();
        self.same(
            "sessions of show and tree",
            &ids(answers.shown.keys().collect()),
            &ids(answers.trees.keys().collect()),
        );
        for (id, shown) in &answers.shown {
            self.sessions += 1;
            let tree = answers.trees.get(id).cloned().unwrap_or_default();
            self.same(&format!("{id}: show and tree"), &shown.all, &tree.all);
            let state = |status: &String| match status.as_str() {
                "in_progress" => "open".to_owned(),
                "interrupted" => "failed".to_owned(),
                other => other.to_owned(),
            };
            let states: Vec<String> = shown.statuses.iter().map(state).collect();
            self.same(&format!("{id}: turns of show and tree"), &states, &tree.states);
            self.same(&format!("{id}: events of show and tree"), &shown.events, &tree.events);
            self.same(&format!("{id}: state of show and tree"), &shown.state, &tree.state);
            // A session without steps has no trajectory.
            let Some(trajectory) = answers.trajectories.get(id) else {
                self.same(&format!("{id}: no trajectory"), &shown.all, &SessionCounts::default());
                continue;
            };
            self.same(&format!("{id}: show and atif"), &shown.all, &trajectory.all);
            // The totals of an agent include its subagents, so a session with subagents does not know whether its own
            // usage is exact.
            let is_alone = answers.shown.len() == 1;
            let known = |usage: &UsageAnswer| UsageAnswer { is_exact: usage.is_exact || !is_alone, ..*usage };
            let (one, other) = (shown.usage.as_ref().map(known), trajectory.usage.as_ref().map(known));
            self.same(&format!("{id}: usage of show and atif"), &one, &other);
        }
        let responses: u64 = answers.shown.values().map(|shown| shown.responses).sum();
        self.same("responses of show and atif", &responses, &answers.exported_responses);
    }

    /// Compares a row of `ls` with the views of its session.
    fn row(&mut self, row: &Value, answers: &Answers) {
        let id = text(&row["run_id"]);
        let own = answers.shown.get(&id).cloned().unwrap_or_default();
        let below = answers.shown.iter().filter(|(other, _)| **other != id).map(|(_, shown)| shown);
        let (runs_below, events_below) =
            below.fold((0, 0), |(runs, events), shown| (runs + shown.runs, events + shown.events));
        let found = [&row["runs"], &row["events"], &row["runs_below"], &row["events_below"]].map(number);
        self.same(
            "runs and events of ls and show",
            &found,
            &[own.runs, own.events, runs_below, events_below],
        );
        let state = match (own.statuses.last().map(String::as_str), own.state.as_str()) {
            (_, "failed") | (Some("failed"), _) => "failed",
            (Some("completed"), _) | (None, "completed") => "done",
            (Some("interrupted"), _) => "interrupted",
            _ => "open",
        };
        // A turn without an end may wait for an approval.
        let listed = text(&row["state"]);
        self.same("state of ls and show", &listed.replace("waiting", "open").as_str(), &state);
        let tree = answers.trees.get(&id).cloned().unwrap_or_default();
        self.same("state of ls and tree", &listed, &tree.session_state);
        self.same("start of ls and tree", &row["started_at"], &tree.started_at);
        let is_one_session = answers.shown.len() == 1 && own.runs == self.runs.len() as u64;
        if is_one_session {
            let last = self.runs.iter().map(|run| text(&run["last_at"])).max().unwrap_or_default();
            self.same("last time of ls and ls --runs", &text(&row["last_at"]), &last);
        }
        let mut used = UsageAnswer::none();
        answers
            .trajectories
            .values()
            .filter_map(|made| made.usage.as_ref())
            .for_each(|usage| used.add(usage));
        let counted = self.usage.get(&id).cloned();
        let mut told = counted.as_ref().map_or_else(UsageAnswer::none, UsageAnswer::of_row);
        let is_copied = COPIED.iter().any(|copied| id.starts_with(copied));
        let listed = UsageAnswer::of_list(row);
        if !is_copied {
            self.same("usage and ls", &UsageAnswer { responses: 0, ..told }, &listed);
            let (cost, is_exact) = counted
                .as_ref()
                .map_or((&Value::Null, &Value::Bool(false)), |of| (&of["cost_usd"], &of["cost_exact"]));
            self.same("cost of usage and ls", &[cost, is_exact], &[&row["cost_usd"], &row["cost_exact"]]);
        }
        let mut shown = UsageAnswer::none();
        answers.shown.values().filter_map(|shown| shown.usage.as_ref()).for_each(|usage| shown.add(usage));
        self.same("usage of ls and show", &listed, &UsageAnswer { responses: 0, ..shown });
        if answers.has_missing {
            // The agent's total includes missing subagents; only `usage` uses it.
            (told.is_exact, used.is_exact) = (false, false);
        }
        if !is_copied {
            self.same("usage and atif", &told, &used);
        }
    }

    /// Compares the receipts of a session's turns with `show`, and with those of the API byte for byte.
    fn receipts(&mut self, id: &str, shown: &ShowAnswer) {
        let listed = self.steno.run(&["receipt", "ls", "--thread", id, "--json"]).out;
        let thread = self.server.get(&format!("/v1/threads/{id}"));
        let turns = thread.split_once(",\"turns\":").map(|(_, turns)| turns.to_owned()).unwrap_or_default();
        let want = format!("[{}]}}", listed.lines().collect::<Vec<_>>().join(","));
        self.same(&format!("{id}: turns of receipt ls and the API"), &want, &turns);
        let (mut counts, mut changes, mut statuses) = (SessionCounts::default(), 0, Vec::new());
        let (mut has_approvals, mut written) = (false, 0);
        let turns: Vec<String> = listed.lines().map(|turn| text(&crate::kit::json(turn)["id"])).collect();
        for (number_of, turn) in turns.iter().enumerate() {
            let served = self.server.get(&format!("/v1/threads/{id}/turns/{turn}/receipt"));
            // Not every receipt of a very long session, because each reads all of it.
            if number_of % turns.len().div_ceil(RECEIPTS_MAX) == 0 {
                let args = ["receipt", "export", "--thread", id, "--turn", turn, "--format", "json"];
                let said = self.steno.run(&args);
                let what = format!("{id}: receipt of {turn} and the API");
                self.same(&what, &said.out.trim_end(), &served.trim_end());
            }
            let receipt = crate::kit::json(&served);
            let effects = &receipt["side_effect_boundary"];
            counts.calls += number(&receipt["tool_lineage"]["tool_call_count"]);
            counts.results += number(&receipt["tool_lineage"]["tool_result_count"]);
            counts.denied += number(&effects["approval_denied_count"]);
            counts.approvals += number(&effects["approval_required_count"]);
            has_approvals |= !effects["approval_required_count"].is_null();
            changes += number(&effects["file_change_count"]);
            let usage = &receipt["usage_evidence"]["usage"];
            written += written_tokens(usage);
            statuses.push(text(&receipt["turn"]["status"]));
        }
        // If only denials are visible, a receipt has no approvals.
        let approvals = if has_approvals { shown.in_turns.approvals } else { counts.approvals };
        let want = SessionCounts { approvals, ..shown.in_turns.clone() };
        self.same(&format!("{id}: receipts and show"), &counts, &want);
        // Totals of an agent for the whole session belong to no turn.
        let used = shown.usage.filter(|usage| written > 0 || usage.is_exact).map_or(0, |usage| usage.output);
        let below = SUBAGENT_TOKENS.iter().find(|(file, _)| self.context.contains(file));
        let written = written + below.map_or(0, |(_, tokens)| *tokens);
        self.same(&format!("{id}: tokens of receipts and show"), &written, &used);
        self.same(&format!("{id}: changes of receipts and show"), &changes, &shown.changes);
        self.same(&format!("{id}: turns of receipts and show"), &statuses, &shown.statuses);
    }
}

/// Files that have the agent's total for the process and no record of its subagents, with what the subagents wrote: the
/// total is the session's, and a receipt has what its turn used.
const SUBAGENT_TOKENS: [(&str, u64); 1] = [("gemini/0.61.0/json_output/stream.ndjson: ", 92 + 5)];

/// Returns what the model wrote, by the provider's names. Gemini does not count thoughts as output.
fn written_tokens(usage: &Value) -> u64 {
    let of = |name: &str| number(&usage[name]);
    match () {
        () if !usage["tool_calls"].is_null() => of("total_tokens") - of("input_tokens"),
        () => {
            let output = ["output_tokens", "outputTokens", "output", "candidates", "candidatesTokenCount"];
            output.into_iter().map(of).sum::<u64>() + of("thoughts") + of("thoughtsTokenCount")
        }
    }
}

/// Compares all views of the sessions in a path; returns their number and the differences.
fn check(path: &Path) -> (u64, Vec<String>) {
    let steno = Steno::new();
    let said = steno.run(&["import", &path.to_string_lossy()]);
    assert_eq!(said.code, 0, "{}: {}", path.display(), said.err);
    let usage = steno.run(&["usage", "--by", "session", "--json"]).json().into_iter();
    let mut check = Check {
        steno: &steno,
        server: Server::start(&steno),
        usage: usage.map(|row| (text(&row["session"]), row)).collect(),
        runs: steno.run(&["ls", "--runs", "--json"]).json(),
        sessions: 0,
        context: path.display().to_string(),
        wrong: Vec::new(),
    };
    check.lists();
    for row in steno.run(&["ls", "--json"]).json() {
        let answers = ask(&steno, &text(&row["run_id"]));
        check.context = format!("{}: {}", path.display(), text(&row["run_id"]));
        check.views(&answers);
        check.row(&row, &answers);
        for (id, shown) in &answers.shown {
            check.receipts(id, shown);
        }
    }
    let Check { server, sessions, wrong, .. } = check;
    server.stop();
    (sessions, wrong)
}

/// Returns the directories and files that contain one or more sources of the same sessions.
fn parts(shared: &Path, place: &str) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> =
        std::fs::read_dir(shared.join(place)).unwrap().map(|entry| entry.unwrap().path()).collect();
    found.sort();
    found
}

/// The captures: directories with several channels of the same sessions.
const CAPTURES: [&str; 5] = [
    "captures/claude/2.1.197",
    "captures/claude/2.1.325",
    "captures/codex/0.166.0",
    "captures/copilot/1.0.102",
    "captures/gemini/0.61.0",
];

/// Directories with single files of agents.
const FILES: [&str; 7] = [
    "versions/claude",
    "versions/codex",
    "versions/copilot",
    "versions/gemini",
    "recordings/claude",
    "recordings/codex",
    "recordings/gemini",
];

/// Recorded connections.
const CONNECTIONS: [&str; 4] = [
    "captures/gemini/0.61.0/acp/duplex.jsonl",
    "captures/copilot/1.0.102/acp/duplex.jsonl",
    "versions/mcp/stdio_claude_client.ndjson",
    "versions/mcp/stdio_codex_client.ndjson",
];

/// Returns true for the long form of the test, which `just nightly` runs.
fn is_long() -> bool {
    std::env::var_os("STENO_TEST_LONG").is_some()
}

/// Writes the realistic sessions of the corpus below a directory. The longest one takes minutes and is for the long
/// form.
fn lifelike(shared: &Path, dir: &Path) -> bool {
    let mut python = std::process::Command::new("python3");
    let Ok(status) = python.arg(shared.join("corpus/demo.py")).arg(dir).status() else { return false };
    assert!(status.success(), "{status}");
    if !is_long() {
        let longest = "projects/-home-dev-work-shop/33333333-cccc-4ccc-8ccc-000000000001.jsonl";
        std::fs::remove_file(dir.join(longest)).unwrap();
    }
    true
}

#[track_caller]
fn check_all(paths: &[PathBuf], sessions_min: u64) {
    let (mut sessions, mut wrong) = (0, Vec::new());
    for (number, differences) in each_of(paths, |path| check(path)) {
        sessions += number;
        wrong.extend(differences);
    }
    assert!(wrong.is_empty(), "of {sessions} sessions:\n{}", wrong.join("\n"));
    assert!(sessions >= sessions_min, "{sessions}");
}

#[test]
fn every_view_gives_the_same_answer() {
    let shared = needs!(shared_dir(), "../shared is absent");
    let places = CAPTURES.iter().chain(&FILES);
    let mut all: Vec<PathBuf> = places.flat_map(|place| parts(&shared, place)).collect();
    all.push(places::workspace_root().join("crates/cli/src/demo/agents"));
    all.extend(CONNECTIONS.map(|file| shared.join(file)));
    if is_long() {
        // Each file of a capture by itself.
        let captures = CAPTURES.iter().flat_map(|place| parts(&shared, place));
        all.extend(captures.flat_map(|part| orders::sources(&part)));
    }
    check_all(&all, 94);
}

#[test]
fn every_view_gives_the_same_answer_for_generated_sessions() {
    let shared = needs!(shared_dir(), "../shared is absent");
    let dir = tempfile::tempdir().unwrap();
    if !lifelike(&shared, dir.path()) {
        skip!("python3 is absent");
    }
    check_all(&[dir.path().to_owned()], 8);
}
