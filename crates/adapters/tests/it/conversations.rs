//! Two agents run the same script: their conversations are equal, except for a list of differences (R65).
//!
//! `../shared/agents/scenarios` has the scripts. They ask for the same work if the agents' tools allow it. If they do
//! not, or if one file format lacks something, a row of the list gives the reason.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;
use steno_model::{ExchangeEvent, RunId};
use steno_session::{Content, SessionBuilder};
use steno_testkit::{needs, places, shared_dir};
use steno_views::conversation::Conversation;

use crate::reading::{Reading, claude_file, is_named, output, read, source_of};

/// A piece of the two conversations.
enum Row {
    /// Both conversations have this line.
    Same(&'static str),
    /// The conversations differ for this reason.
    Differs { claude: &'static [&'static str], codex: &'static [&'static str], why: &'static str },
}

use Row::{Differs, Same};

/// The main run of the script, message by message: its blocks, and for calls the class of the tool and the outcome.
const MAIN: [Row; 19] = [
    Same("system prompts: 1"),
    Same("prompt: text"),
    Same("message: thinking, text, command ok"),
    Differs {
        claude: &["message: thinking, other ok"],
        codex: &["message: thinking, command ok"],
        why: "Claude has a tool to read a file; Codex runs a command for it",
    },
    Same("message: text, file_change ok, command ok"),
    Same("message: file_change ok"),
    Same("message: command failed"),
    Differs {
        claude: &["message: other failed, other failed"],
        codex: &["message: file_change failed, other failed"],
        why: "what is done to a missing file differs with the tools",
    },
    Differs {
        claude: &["message: text, agent ok <completed>"],
        codex: &[],
        why: "the scripts delegate at different points; Codex's follows below",
    },
    Differs {
        claude: &["message: other ok"],
        codex: &[
            "message: command ok amended",
            "message: command unknown",
            "message: other unknown, other unknown",
        ],
        why: "only Codex has commands that go on after their call, and its script asks for two searches of tools, whose outcome it does not say",
    },
    Same("message: mcp ok, mcp ok"),
    Same("message: mcp failed, mcp ok"),
    Differs { claude: &["retry", "retry"], codex: &[], why: "rollouts carry no retries" },
    Differs {
        claude: &[],
        codex: &["message: text, agent ok <completed>"],
        why: "the scripts delegate at different points; Claude's stands above",
    },
    Differs {
        claude: &[],
        codex: &["message: agent ok", "message: agent ok"],
        why: "Codex waits for an agent and closes it with calls of their own",
    },
    Same("message: thinking, text"),
    Same("turn completed"),
    Same("calls without a result: 0"),
    Same("unknown: 0"),
];

/// The subagent's run.
const SUBAGENT: [Row; 8] = [
    Same("system prompts: 1"),
    Same("prompt: text"),
    Same("message: thinking, command ok"),
    Differs { claude: &["message: other ok"], codex: &[], why: "only Claude's script reads the file too" },
    Same("message: text"),
    Same("turn completed"),
    Same("calls without a result: 0"),
    Same("unknown: 0"),
];

#[test]
fn same_script_gives_equal_conversations_except_listed_rows() {
    let shared = needs!(shared_dir(), "../shared is absent");
    let (claude, codex) =
        (shared.join("captures/claude/2.1.325/main"), shared.join("captures/codex/0.166.0/exec_main"));
    let files = |directory: &Path, part: &str, of_subagent: bool| {
        let found: Vec<Value> = places::files_below(directory)
            .into_iter()
            .filter(|name| name.contains(part) && is_named(name, "jsonl"))
            .map(|name| conversation(&directory.join(name)))
            .filter(|shown| shown["parent_run_id"].is_null() != of_subagent)
            .collect();
        let [one] = &found[..] else { panic!("{} of {part}", found.len()) };
        one.clone()
    };
    check(&MAIN, &files(&claude, "home/projects", false), &files(&codex, "rollout-", false));
    check(&SUBAGENT, &files(&claude, "home/projects", true), &files(&codex, "rollout-", true));
}

#[test]
fn parent_conversation_links_the_subagent_run() {
    let shared = needs!(shared_dir(), "../shared is absent");
    let mut linked = 0;
    for (part, capture) in
        [("home/projects", "captures/claude/2.1.325/main"), ("rollout-", "captures/codex/0.166.0/exec_main")]
    {
        let directory = shared.join(capture);
        let names = places::files_below(&directory).into_iter();
        let all: Vec<Value> = names
            .filter(|name| name.contains(part) && is_named(name, "jsonl"))
            .map(|name| conversation(&directory.join(name)))
            .collect();
        let child = all.iter().find(|shown| !shown["parent_run_id"].is_null()).unwrap();
        let parent = all.iter().find(|shown| shown["parent_run_id"].is_null()).unwrap();
        assert_eq!(child["parent_run_id"], parent["run_id"]);
        let links = format!("{:?}", child["run_id"]);
        assert!(format!("{parent:?}").contains(&links), "{capture}");
        linked += 1;
    }
    assert_eq!(linked, 2);
}

#[track_caller]
fn check(rows: &[Row], claude: &Value, codex: &Value) {
    let (mut of_claude, mut of_codex) = (Vec::new(), Vec::new());
    for row in rows {
        match row {
            Same(same) => {
                of_claude.push((*same).to_owned());
                of_codex.push((*same).to_owned());
            }
            Differs { claude, codex, why } => {
                assert!(claude != codex && !why.is_empty(), "{why}");
                of_claude.extend(claude.iter().map(|&line| line.to_owned()));
                of_codex.extend(codex.iter().map(|&line| line.to_owned()));
            }
        }
    }
    assert_eq!(outline(claude), of_claude, "Claude");
    assert_eq!(outline(codex), of_codex, "Codex");
}

/// Returns the conversation of the only run of a file.
fn conversation(path: &Path) -> Value {
    let name = path.file_name().unwrap().to_string_lossy();
    let reading = if name.starts_with("rollout-") {
        read(steno_adapters::codex::rollout(source_of(path)), &[output(&places::read_bytes(path))])
    } else {
        let (adapter, pieces) = claude_file(path);
        read(adapter, &pieces)
    };
    let mut runs: BTreeMap<RunId, Value> = conversations(&reading);
    assert_eq!(runs.len(), 1, "{}", path.display());
    runs.pop_first().unwrap().1
}

/// Returns the conversation of every run of a source.
pub(crate) fn conversations(reading: &Reading) -> BTreeMap<RunId, Value> {
    let mut builders = BTreeMap::new();
    for line in &reading.lines {
        let event = ExchangeEvent::parse(line.trim_end().as_bytes()).unwrap();
        let builder =
            builders.entry(event.run_id).or_insert_with(|| SessionBuilder::new(event.run_id, Content::Whole));
        builder.push(&event);
    }
    let shown = |builder: SessionBuilder| serde_json::to_value(Conversation::of(&builder.finish())).unwrap();
    builders.into_iter().map(|(run, builder)| (run, shown(builder))).collect()
}

/// Shows the parts of a conversation, without facts about the program itself, which differ by agent.
pub(crate) fn outline(conversation: &Value) -> Vec<String> {
    let list = |name: &str| conversation[name].as_array().unwrap();
    let mut lines = vec![format!("system prompts: {}", list("system_prompts").len())];
    for item in list("outside") {
        lines.extend(item_outline(item));
    }
    for turn in list("turns") {
        lines.extend(turn["items"].as_array().unwrap().iter().filter_map(item_outline));
        lines.push(format!("turn {}", text(&turn["state"])));
    }
    lines.push(format!("calls without a result: {}", list("dangling_calls").len()));
    let unknown = ["unknown_records", "unknown_types", "unknown_blocks"];
    lines.push(format!(
        "unknown: {}",
        unknown.map(|name| conversation[name].as_object().unwrap().len()).iter().sum::<usize>()
    ));
    lines
}

fn item_outline(item: &Value) -> Option<String> {
    let kind = text(&item["item"]);
    if kind == "fact" {
        return (item["kind"] != "system").then(|| text(&item["kind"]));
    }
    let mut blocks: Vec<String> = Vec::new();
    for block in item["blocks"].as_array().into_iter().flatten() {
        match block["type"].as_str().unwrap() {
            "tool_use" => {
                let shown = |list: &str, name: &str, (open, close): (char, char)| {
                    let each = block[list].as_array().unwrap().iter();
                    let each: Vec<String> =
                        each.map(|one| format!(" {open}{}{close}", text(&one[name]))).collect();
                    each.concat()
                };
                let approvals = shown("approvals", "decision", ('[', ']'));
                let children = shown("child_runs", "state", ('<', '>'));
                blocks.push(format!("{}{approvals}{children}", text(&block["class"])));
            }
            "tool_result" => {
                let call = blocks.last_mut().unwrap();
                let (class, rest) = call.split_once(' ').unwrap_or((call, ""));
                let amended = if block["is_amended"] == true { " amended" } else { "" };
                let space = if rest.is_empty() { "" } else { " " };
                *call = format!("{class} {}{amended}{space}{rest}", text(&block["outcome"]));
            }
            other => blocks.push(other.to_owned()),
        }
    }
    Some(format!("{kind}: {}", blocks.join(", ")))
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
