//! `steno export`: exports sessions as ATIF trajectories, from files and from the store, and checks such files.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use steno_testkit::{needs, shared_dir};

use crate::agents_files::{line, put, session, text};
use crate::kit::{CommandOutput, RUN, Steno, id};

/// One pixel.
const PNG: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==";
const PNG_PATH: &str = "media/c414cd0e204de974f73753c7e28d7638e7b3691bb8b1a2bab6b25bb7fed7ce77.png";

/// A session whose prompt has a picture, and which calls a subagent.
fn with_subagent() -> (String, String) {
    let picture =
        json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}});
    let prompt = json!([{"type": "text", "text": "Count these."}, picture]);
    let usage = json!({"input_tokens": 3, "cache_read_input_tokens": 100, "output_tokens": 20});
    let said = |id: &str, block: &Value| {
        json!({"type": "assistant", "message": {"id": id, "model": "claude-x", "role": "assistant",
            "content": [block], "stop_reason": "end_turn", "usage": usage}})
    };
    let call = json!({"type": "tool_use", "id": "t1", "name": "Agent", "input": {"prompt": "Count."}});
    let answer = json!([{"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "3"}, picture]}]);
    let report = json!({"agentId": "a1", "status": "completed", "content": []});
    let lines = [
        line(1, json!({"type": "user", "message": {"role": "user", "content": prompt}})),
        line(2, said("m1", &call)),
        line(
            3,
            json!({"type": "user", "message": {"role": "user", "content": answer}, "toolUseResult": report}),
        ),
    ];
    let sub = [
        line(
            11,
            json!({"agentId": "a1", "isSidechain": true, "type": "user", "message": {"role": "user", "content": "Count."}}),
        ),
        line(12, {
            let mut said = said("m2", &json!({"type": "text", "text": "3"}));
            said["agentId"] = "a1".into();
            said["isSidechain"] = true.into();
            said
        }),
    ];
    (text(&lines), text(&sub))
}

fn put_session(steno: &Steno, dir: &str) -> String {
    let (session, sub) = with_subagent();
    put(steno, &format!("{dir}/{RUN}/subagents/agent-a1.jsonl"), sub);
    put(steno, &format!("{dir}/{RUN}.jsonl"), session)
}

#[track_caller]
fn fine(said: &CommandOutput) -> &str {
    assert_eq!((said.code, &*said.err), (0, ""), "{}", said.out);
    &said.out
}

fn read(steno: &Steno, path: &str) -> Value {
    serde_json::from_slice(&std::fs::read(steno.dir.path().join(path)).unwrap()).unwrap()
}

fn names(steno: &Steno, dir: &str) -> Vec<String> {
    let listing = std::fs::read_dir(steno.dir.path().join(dir)).unwrap();
    let mut names: Vec<String> =
        listing.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn session_is_exported_with_subagents_and_images() {
    let steno = Steno::new();
    let path = put_session(&steno, "p");
    let said = steno.run(&["export", "atif", &path, "-o", "out/one.json"]);
    let want = format!(
        "{RUN}  4 steps, 1 call, 2 media files\n1 session written to out/one.json: 4 steps, 1 call, 2 media files, "
    );
    assert!(fine(&said).starts_with(&want), "{}", said.out);
    assert_eq!(names(&steno, "out"), ["media", "one.json"]);
    assert!(steno.dir.path().join("out").join(PNG_PATH).is_file());
    let got = read(&steno, "out/one.json");
    assert_eq!(got["steps"][0]["message"][1]["source"], json!({"media_type": "image/png", "path": PNG_PATH}));
    let result = &got["steps"][1]["observation"]["results"][0];
    assert_eq!(result["content"][1]["source"]["path"], PNG_PATH);
    let child = &got["subagent_trajectories"][0];
    assert_eq!(result["subagent_trajectory_ref"], json!([{"trajectory_id": child["trajectory_id"]}]));
    assert_eq!((&child["steps"][1]["message"], &child["session_id"]), (&json!("3"), &json!(RUN)));
    fine(&steno.run(&["export", "check", "out/one.json"]));
}

#[test]
fn files_and_the_store_give_the_same_bytes() {
    let steno = Steno::new();
    put_session(&steno, "p");
    fine(&steno.run(&["export", "atif", "p", "-o", "files"]));
    assert_eq!(steno.run(&["import", "p"]).code, 0);
    fine(&steno.run(&["export", "atif", "--all", "-o", "stored"]));
    fine(&steno.run(&["export", "atif", &RUN[..8], "-o", "lines.jsonl"]));
    let bytes = |path: &str| std::fs::read(steno.dir.path().join(path)).unwrap();
    let file = format!("{RUN}.json");
    assert_eq!(names(&steno, "files"), [&*file, "media"]);
    assert_eq!(names(&steno, "stored"), [&*file, "media"]);
    assert_eq!(bytes(&format!("files/{file}")), bytes(&format!("stored/{file}")));
    assert_eq!(bytes(&format!("files/{file}")), bytes("lines.jsonl"));
    assert_eq!(bytes(&format!("files/{PNG_PATH}")), bytes(&format!("stored/{PNG_PATH}")));
    // By the path of the archived file, after it is deleted.
    std::fs::remove_dir_all(steno.dir.path().join("p")).unwrap();
    fine(&steno.run(&["export", "atif", &format!("p/{RUN}.jsonl"), "-o", "gone.json"]));
    assert_eq!(bytes("gone.json"), bytes("lines.jsonl"));
    // Only its transcript, which names its evidence.
    fine(&steno.run(&["export", "atif", &format!("store/transcripts/{RUN}.jsonl"), "-o", "again.json"]));
}

#[test]
fn files_are_complete_even_if_stdout_is_closed() {
    let steno = Steno::new();
    for number in 0..40 {
        let run = RUN.replace("550e8400", &format!("{number:08}"));
        put(&steno, &format!("p/{run}.jsonl"), text(&session()).replace(RUN, &run));
    }
    fine(&steno.run(&["export", "atif", "p", "-o", "read"]));
    let script = "\"$0\" \"$@\" | true";
    let done = steno.shell(script, &["export", "atif", "p", "-o", "unread"]).output().unwrap();
    assert!(done.status.success());
    let all = |dir: &str| {
        let file = |name: String| std::fs::read(steno.dir.path().join(dir).join(name)).unwrap();
        names(&steno, dir).into_iter().map(file).collect::<Vec<_>>()
    };
    assert_eq!(all("unread"), all("read"));
}

#[test]
fn existing_files_are_overwritten_only_with_force() {
    let steno = Steno::new();
    let path = put(&steno, &format!("{RUN}.jsonl"), text(&session()));
    put(&steno, "one.json", "mine");
    let said = steno.run(&["export", "atif", &path, "-o", "one.json"]);
    let want = "error: `one.json` already exists\nhint: `--force` overwrites it\n";
    assert_eq!((said.code, &*said.err), (1, want));
    let said = steno.run(&["export", "atif", &path, "-o", "dir"]);
    assert_eq!(said.code, 0);
    let said = steno.run(&["export", "atif", &path, "-o", "dir"]);
    assert_eq!(said.code, 1);
    assert!(said.err.contains("already exists; `--force` overwrites it"), "{}", said.err);
    assert_eq!(std::fs::read_to_string(steno.dir.path().join("one.json")).unwrap(), "mine");
    fine(&steno.run(&["export", "atif", &path, "-o", "one.json", "--force"]));
    fine(&steno.run(&["export", "atif", &path, "-o", "dir", "--force"]));
    fine(&steno.run(&["export", "check", "one.json"]));
    // No incomplete file is left.
    assert_eq!(names(&steno, "dir"), [format!("{RUN}.json")]);
    assert_eq!(names(&steno, ".").iter().filter(|name| name.contains("tmp")).count(), 0);
}

#[test]
fn one_file_holds_one_trajectory() {
    let steno = Steno::new();
    let other = RUN.replace("550e", "650e");
    put(&steno, &format!("p/{RUN}.jsonl"), text(&session()));
    put(&steno, &format!("p/{other}.jsonl"), text(&session()).replace(RUN, &other).replace("m1", "m9"));
    let said = steno.run(&["export", "atif", "p", "-o", "one.json"]);
    assert_eq!(said.code, 2);
    assert!(said.err.contains("can hold only one trajectory"), "{}", said.err);
    assert!(!steno.dir.path().join("one.json").exists());
    fine(&steno.run(&["export", "atif", "p", "-o", "all.jsonl"]));
    assert_eq!(fine(&steno.run(&["export", "check", "all.jsonl"])), "all.jsonl: 2 valid trajectories\n");
    let said = steno.run(&["export", "atif", "p", "-o", "-"]);
    assert_eq!(fine(&said), std::fs::read_to_string(steno.dir.path().join("all.jsonl")).unwrap());
    let said = steno.run(&["export", "atif", "p", "-o", "dir", "--json"]);
    let told: Vec<Value> = fine(&said).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(told.len(), 3);
    assert_eq!(
        (&told[0]["run_id"], &told[0]["steps"], &told[0]["calls"]),
        (&json!(RUN), &json!(2), &json!(1))
    );
    assert_eq!((&told[2]["exported"], &told[2]["failed"]), (&json!(2), &json!(0)));
}

#[test]
fn session_without_steps_is_reported_and_others_are_exported() {
    let steno = Steno::new();
    let empty = "650e8400-e29b-41d4-a716-446655440000";
    let started = json!({"type": "run.started", "payload": {"name": "claude", "kind": "session"}});
    let said_it = json!({"type": "message.user", "payload": {"role": "user", "blocks": [{"type": "text", "fidelity": "router", "text": "Hi."}]}});
    steno.recorded(empty, std::slice::from_ref(&started));
    steno.recorded(RUN, &[started, said_it]);
    let said = steno.run(&["export", "atif", "--all", "-o", "dir"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.err.contains(&format!("run {empty} was left out: it has no steps")), "{}", said.err);
    assert!(said.out.ends_with("; 1 session without steps left out\n"), "{}", said.out);
    assert_eq!(names(&steno, "dir"), [format!("{RUN}.json")]);
    let said = steno.run(&["export", "atif", "--all", "-o", "dir", "--force", "--json"]);
    let last = said.json().pop().unwrap();
    assert_eq!((&last["exported"], &last["failed"], &last["left_out"]), (&json!(1), &json!(0), &json!(1)));
    // A named session without steps is an error.
    let said = steno.run(&["export", "atif", empty, RUN, "-o", "other"]);
    assert_eq!(said.code, 1);
    assert!(said.err.contains(&format!("run {empty} was not exported: it has no steps")), "{}", said.err);
    assert!(said.err.ends_with("error: 1 of 2 sessions not exported\n"), "{}", said.err);
    assert_eq!(names(&steno, "other"), [format!("{RUN}.json")]);
    let said = steno.run(&["export", "atif", empty, "-o", "-"]);
    assert_eq!((said.code, &*said.out), (1, ""));
}

#[test]
fn check_takes_every_trajectory_of_a_directory() {
    let steno = Steno::new();
    put_session(&steno, "in");
    fine(&steno.run(&["export", "atif", "in", "-o", "out"]));
    let said = steno.run(&["export", "check", "out"]);
    assert_eq!(fine(&said), format!("out/{RUN}.json: valid\n"));
    put(&steno, "out/a.jsonl", "{}\n");
    put(&steno, "out/notes.txt", "no trajectory");
    let said = steno.run(&["export", "check", "out"]);
    assert!(said.code == 1 && said.err.contains("1 of 2 files not valid"), "{said:?}");
    let said = steno.run(&["export", "check", "out/media"]);
    assert!(said.code == 1 && said.err.contains("has no `.json` or `.jsonl` files"), "{said:?}");
}

/// A child that only its parent names is embedded in it and nowhere else; the same holds for a child of two runs.
#[test]
fn all_exports_every_run_once() {
    let steno = Steno::new();
    let [child, other, one, two] = [1, 2, 3, 4].map(id);
    let started = json!({"type": "run.started", "payload": {"name": "claude", "kind": "session"}});
    let said_it = |words: &str| json!({"type": "message.user", "payload": {"role": "user", "blocks": [{"type": "text", "fidelity": "router", "text": words}]}});
    let link = |to: &str| json!({"type": "step.call_workflow.started", "child_run_id": to, "payload": {"name": "look", "kind": "call_workflow"}});
    let begin = |run: &str, links: &[&str]| {
        let events: Vec<Value> =
            [started.clone(), said_it(run)].into_iter().chain(links.iter().map(|to| link(to))).collect();
        steno.recorded(run, &events);
    };
    begin(&child, &[]);
    begin(RUN, &[&child]);
    begin(&other, &[&child]);
    // Two runs that name each other are roots, unless one of them is below another.
    begin(&one, &[&two]);
    begin(&two, &[&one]);
    fine(&steno.run(&["export", "atif", "--all", "-o", "dir"]));
    let mut said: Vec<String> = trajectories(&steno.dir.path().join("dir"))
        .iter()
        .flat_map(|trajectory| trajectory["steps"].as_array().unwrap().clone())
        .filter_map(|step| step["message"].as_str().map(str::to_owned))
        .filter(|words| words.len() == RUN.len())
        .collect();
    said.sort();
    let mut want = [RUN.to_owned(), child, other, one, two];
    want.sort();
    assert_eq!(said, want);
    for name in names(&steno, "dir") {
        fine(&steno.run(&["export", "check", &format!("dir/{name}")]));
    }
}

#[test]
fn check_finds_and_names_faults() {
    let steno = Steno::new();
    let path = put(&steno, &format!("{RUN}.jsonl"), text(&session()));
    fine(&steno.run(&["export", "atif", &path, "-o", "good.json"]));
    let good = std::fs::read_to_string(steno.dir.path().join("good.json")).unwrap();
    put(&steno, "bad.json", good.replace("\"step_id\":2", "\"step_id\":7"));
    put(&steno, "not.json", b"{\xff}");
    let said = steno.run(&["export", "check", "good.json", "bad.json", "not.json"]);
    assert_eq!(said.code, 1);
    let want = "good.json: valid\nbad.json: error steps.number: steps[1].step_id: is 7 and not 2\nbad.json: not valid, 1 error\nnot.json: error json.utf8: not UTF-8 at byte 1\nnot.json: not valid, 1 error\n";
    assert_eq!(said.out, want);
    let said = steno
        .run_with(&["export", "check", "-", "--json"], good.replace("ATIF-v1.8", "ATIF-v1.0").as_bytes());
    assert_eq!(said.code, 1);
    let told: Vec<Value> = said.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((&told[0]["rule"], &told[0]["place"]), (&json!("field.newer"), &json!("trajectory_id")));
    assert_eq!(told.last().unwrap()["valid"], false);
    assert_eq!(steno.run(&["export", "check", "gone.json"]).code, 3);
}

/// All trajectories of the files in a directory, the embedded ones too.
fn trajectories(dir: &Path) -> Vec<Value> {
    let mut waiting: Vec<Value> = std::fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_file())
        .map(|path| serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap())
        .collect();
    let mut found = Vec::new();
    while let Some(mut next) = waiting.pop() {
        if let Some(Value::Array(below)) = next.as_object_mut().unwrap().remove("subagent_trajectories") {
            waiting.extend(below);
        }
        found.push(next);
    }
    found
}

/// The content of trajectories, by the names of `expected.json`.
fn counted(trajectories: &[Value]) -> BTreeMap<&'static str, u64> {
    let mut counts = BTreeMap::new();
    let mut add = |name, number: usize| *counts.entry(name).or_insert(0) += number as u64;
    for step in trajectories.iter().flat_map(|one| one["steps"].as_array().unwrap()) {
        let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
        let results = list(&step["observation"]["results"]);
        let is_there = |result: &&Value| result["extra"].get("result_available").is_none();
        add("tool_call", list(&step["tool_calls"]).len());
        add("tool_result", results.iter().filter(is_there).count());
        add("responses", usize::from(step["llm_call_count"] == 1));
        add("message_user_prompts", usize::from(step["source"] == "user"));
    }
    counts
}

#[test]
fn captured_sessions_match_counts_made_by_hand() {
    let shared = needs!(shared_dir(), "the captures are absent");
    let expected = std::fs::read_to_string(shared.join("captures/expected.json")).unwrap();
    let expected: BTreeMap<String, Value> = serde_json::from_str(&expected).unwrap();
    let ours = expected.iter().filter(|(file, _)| file.starts_with("claude/") || file.starts_with("codex/"));
    let mut files = 0;
    for (file, expected) in ours {
        files += 1;
        let steno = Steno::new();
        let path = shared.join("captures").join(file);
        // A copy without the files next to it, which are counted separately.
        let copy = put(&steno, path.file_name().unwrap().to_str().unwrap(), std::fs::read(&path).unwrap());
        fine(&steno.run(&["export", "atif", &copy, "-o", "out"]));
        let counts = counted(&trajectories(&steno.dir.path().join("out")));
        let runs = expected["runs"].as_object().unwrap();
        for (name, found) in counts {
            let want: u64 = runs.values().map(|run| run[name].as_u64().unwrap_or(0)).sum();
            // The prototype did not separate responses on this channel; these are the ones that the model sent.
            let is_untold = name == "responses" && want == 0;
            let want = if is_untold { emitted(expected) } else { want };
            assert_eq!(found, want, "{name} of {file}");
        }
    }
    assert!(files >= 16, "{files} files were counted by hand");
}

/// Returns the number of responses that the model sent.
fn emitted(expected: &Value) -> u64 {
    expected["oracle"]
        .as_object()
        .unwrap()
        .values()
        .map(|oracle| oracle["responses"].as_u64().unwrap_or(0))
        .sum()
}

#[test]
fn every_sample_exports_valid_with_the_tokens_of_usage() {
    let shared = needs!(shared_dir(), "the captures and recordings are absent");
    let mut sessions = 0;
    for dir in ["captures/claude", "captures/codex", "recordings", "versions/claude", "versions/codex"] {
        let steno = Steno::new();
        let dir = shared.join(dir);
        let said = steno.run(&["export", "atif", dir.to_str().unwrap(), "-o", "out"]);
        assert_eq!(said.code, 0, "{}: {}", dir.display(), said.err);
        let mut files: Vec<PathBuf> = std::fs::read_dir(steno.dir.path().join("out"))
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.is_file())
            .collect();
        files.sort();
        let names = files.iter().map(|path| path.to_str().unwrap());
        let args: Vec<&str> = ["export", "check"].into_iter().chain(names).collect();
        fine(&steno.run(&args));
        sessions += files.len();
        for one in trajectories(&steno.dir.path().join("out")) {
            let metrics = |name: &str| -> u64 {
                let steps = one["steps"].as_array().unwrap().iter();
                steps.map(|step| step["metrics"][name].as_u64().unwrap_or(0)).sum()
            };
            // Exact counts are the sum of the steps, unless the channel has only the total.
            let notes = one["notes"].as_str().unwrap_or_default();
            let totals = &one["final_metrics"];
            if totals["extra"]["exact"] == true && !notes.contains("The totals are the agent's own") {
                assert_eq!(
                    totals["total_prompt_tokens"],
                    metrics("prompt_tokens"),
                    "{}",
                    one["trajectory_id"]
                );
                assert_eq!(totals["total_completion_tokens"], metrics("completion_tokens"));
                assert_eq!(totals["total_cached_tokens"], metrics("cached_tokens"));
            }
        }
    }
    assert!(sessions >= 40, "{sessions} sessions");
}
