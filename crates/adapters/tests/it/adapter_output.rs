//! Reads hand-written lines through an adapter, and shows the events as JSON or as an outline.

use serde_json::Value;
use steno_adapters::{Adapter, Completeness};
use steno_model::{Frame, Lane, Seq, Timestamp};

/// A piece of a source: its direction and bytes.
pub(crate) type Piece = (Lane, Vec<u8>);

/// The output of an adapter for a source.
pub(crate) struct Made {
    /// The events in order, as JSON.
    pub(crate) events: Vec<Value>,
    pub(crate) completeness: Completeness,
}

/// Feeds pieces, each cut into chunks of at most `chunk` bytes.
pub(crate) fn feed(mut adapter: Adapter, pieces: &[Piece], chunk: usize) -> Made {
    let (mut drafts, mut offset) = (Vec::new(), 0);
    for (lane, bytes) in pieces {
        for bytes in bytes.chunks(chunk) {
            let frame = Frame { lane: *lane, generation: 0, offset, unpacked: None, captured: None, bytes };
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

/// Makes a piece of each line; `>` marks lines that are sent to the agent.
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

/// Shows each event as a line: path, content, and outcome.
pub(crate) fn outline(made: &Made) -> Vec<String> {
    made.events.iter().map(outline_of).collect()
}

/// Shows each event as a line with the number of its run; runs are numbered in the order of their first event.
pub(crate) fn outline_of_runs(made: &Made) -> Vec<String> {
    let mut runs: Vec<&Value> = Vec::new();
    let mut lines = Vec::new();
    for event in &made.events {
        let run = &event["run_id"];
        if !runs.contains(&run) {
            runs.push(run);
        }
        let number = runs.iter().position(|known| *known == run).unwrap();
        lines.push(format!("{number} {}", outline_of(event)));
    }
    lines
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
