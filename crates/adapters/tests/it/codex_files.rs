//! Codex's sample files, and what its adapters make of them, as JSON to look into.

use std::path::{Path, PathBuf};

use serde_json::Value;
use serde_json::value::RawValue;
use steno_adapters::{Adapter, Completeness, Source, codex};
use steno_model::{Frame, Lane, Seq, Timestamp};
use steno_testkit::places;

/// A piece of a source: which way it went, and its bytes.
pub(crate) type Piece = (Lane, Vec<u8>);

/// What an adapter made of a file.
pub(crate) struct Made {
    /// The events, in order, as the lines of their runs.
    pub(crate) events: Vec<Value>,
    pub(crate) completeness: Completeness,
}

/// Lists the files below a directory whose name ends so, sorted.
pub(crate) fn files_below(directory: &Path, suffix: &str) -> Vec<PathBuf> {
    let files = places::files_below(directory).into_iter().filter(|path| path.ends_with(suffix));
    files.map(|path| directory.join(path)).collect()
}

/// Lists every sample of Codex, of all surfaces.
pub(crate) fn all_samples(shared: &Path) -> Vec<PathBuf> {
    let mut found = files_below(&shared.join("versions/codex"), "json");
    found.extend(files_below(&shared.join("versions/codex"), "jsonl"));
    found.extend(files_below(&shared.join("recordings/codex"), ".jsonl"));
    for suffix in ["duplex.jsonl", "stream.ndjson"] {
        found.extend(files_below(&shared.join("captures/codex"), suffix));
    }
    for home in files_below(&shared.join("captures/codex"), ".jsonl") {
        if file_name(&home).starts_with("rollout-") {
            found.push(home);
        }
    }
    found
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap().to_string_lossy().into_owned()
}

fn is_duplex(path: &Path) -> bool {
    file_name(path).starts_with("duplex") || file_name(path).starts_with("app-server")
}

/// Returns the adapter for a file, by its name.
pub(crate) fn adapter_for(path: &Path) -> Adapter {
    let name = file_name(path);
    let source = Source { id: "s1".into(), file_name: Some(name.clone()) };
    match () {
        () if is_duplex(path) => codex::app_server(source),
        () if name.contains("rollout") => codex::rollout(source),
        () => codex::exec(source),
    }
}

/// Reads a file as its source would have come: a connection message by message, anything else whole.
pub(crate) fn pieces_of(path: &Path) -> Vec<Piece> {
    let text = places::read(path);
    if !is_duplex(path) {
        return vec![(Lane::FromAgent, text.into_bytes())];
    }
    text.lines()
        .map(|line| {
            let fields: std::collections::BTreeMap<String, &RawValue> = serde_json::from_str(line).unwrap();
            let is_clients = fields["dir"].get().starts_with("\"c");
            let lane = if is_clients { Lane::ToAgent } else { Lane::FromAgent };
            (lane, format!("{}\n", fields["msg"].get()).into_bytes())
        })
        .collect()
}

/// Feeds pieces, each cut into chunks of so many bytes.
pub(crate) fn feed(mut adapter: Adapter, pieces: &[Piece], chunk: usize) -> Made {
    let (mut drafts, mut offset) = (Vec::new(), 0);
    for (lane, bytes) in pieces {
        for bytes in bytes.chunks(chunk) {
            let frame = Frame { lane: *lane, generation: 0, offset, captured: None, bytes };
            adapter.feed(frame, &mut drafts);
            offset += bytes.len() as u64;
        }
    }
    adapter.finish(&mut drafts);
    let now = || Timestamp::parse("2026-01-01T00:00:00Z").unwrap();
    let event = |(run, draft): (_, steno_model::Draft)| {
        let mut line = Vec::new();
        draft.encode(run, now).write_line(Seq::FIRST, &mut line);
        serde_json::from_slice(&line).unwrap()
    };
    Made { events: drafts.into_iter().map(event).collect(), completeness: adapter.completeness().clone() }
}

/// Reads a whole file.
pub(crate) fn made_of(path: &Path) -> Made {
    feed(adapter_for(path), &pieces_of(path), usize::MAX)
}

/// Makes pieces of lines; one that begins with `>` was sent to the agent.
pub(crate) fn pieces_of_lines(lines: &[&str]) -> Vec<Piece> {
    let piece = |line: &&str| match line.strip_prefix('>') {
        Some(sent) => (Lane::ToAgent, format!("{sent}\n").into_bytes()),
        None => (Lane::FromAgent, format!("{line}\n").into_bytes()),
    };
    lines.iter().map(piece).collect()
}

/// Reads lines through an adapter.
pub(crate) fn made_of_lines(adapter: Adapter, lines: &[&str]) -> Made {
    feed(adapter, &pieces_of_lines(lines), usize::MAX)
}

impl Made {
    /// Returns the payloads of events of a type.
    pub(crate) fn payloads(&self, event_type: &str) -> Vec<&Value> {
        self.events
            .iter()
            .filter(|event| event["type"] == event_type)
            .map(|event| &event["payload"])
            .collect()
    }

    /// Returns the blocks of the model's messages that are of a type.
    pub(crate) fn said(&self, block_type: &str) -> Vec<&Value> {
        let messages = self.payloads("message.assistant").into_iter();
        messages
            .flat_map(|message| message["blocks"].as_array().unwrap())
            .filter(|block| block["type"] == block_type)
            .collect()
    }

    /// Returns the payloads of steps of a kind, begun (`step.started`) or ended (`step.completed`).
    pub(crate) fn steps(&self, event_type: &str, kind: &str) -> Vec<&Value> {
        self.payloads(event_type).into_iter().filter(|step| step["kind"] == kind).collect()
    }
}

/// Shows events one a line, with what a rule is about: where, what, and how it ended.
pub(crate) fn outline(made: &Made) -> Vec<String> {
    made.events.iter().map(outline_of).collect()
}

fn outline_of(event: &Value) -> String {
    let payload = &event["payload"];
    let field = |name: &str| payload[name].as_str().unwrap_or_default().to_owned();
    let what = match event["type"].as_str().unwrap() {
        "run.started" => "run".to_owned(),
        "message.user" | "message.assistant" => message_outline(payload),
        "tool.call" => format!("call {} {} {}", field("call_id"), field("name"), payload["input"]),
        "tool.result" => format!("result {} {} {}", field("call_id"), field("outcome"), payload["output"]),
        "step.call_workflow.started" => format!("child {} begins", field("name")),
        "step.call_workflow.completed" => format!("child {} ends {}", field("name"), payload["result"]),
        "step.started" => format!("{} {} begins", field("kind"), field("name")),
        _ => {
            let end = payload["error"].as_str().map_or_else(|| payload["result"].to_string(), str::to_owned);
            format!("{} {} {end}", field("kind"), field("name"))
        }
    };
    let copied = if event["copied_from"].is_null() { "" } else { " (copied)" };
    format!("{}: {what}{copied}", event["path"].as_str().unwrap())
}

fn message_outline(payload: &Value) -> String {
    let role = payload["role"].as_str().unwrap();
    let blocks = payload["blocks"].as_array().unwrap().iter().map(|block| {
        let text = ["text", "thinking", "tool_name"].iter().find_map(|name| block[*name].as_str());
        let label = block["label"].as_str().or(block["redacted"].as_bool().map(|_| "redacted"));
        let label = label.map(|label| format!("[{label}]")).unwrap_or_default();
        format!("{}{label} {}", block["type"].as_str().unwrap(), text.unwrap_or_default())
    });
    let blocks = blocks.collect::<Vec<_>>().join(", ");
    if payload["usage"].is_null() {
        format!("{role} {blocks}")
    } else {
        let bound = if payload["lower_bound"].is_null() { "" } else { " at least" };
        format!("{role} used{bound} {} {}", payload["usage"], payload["usage_scope"].as_str().unwrap())
    }
}
