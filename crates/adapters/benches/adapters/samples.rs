//! What is measured on: the synthetic history of Claude Code, and the sample sessions of other agents.

use std::fs;
use std::path::{Path, PathBuf};

use steno_testkit::places;

use crate::Outcome;

/// A source in memory.
pub(crate) struct Sample {
    pub(crate) file_name: String,
    pub(crate) bytes: Vec<u8>,
}

/// Returns where Claude Code would have put the corpus's sessions.
pub(crate) fn projects(corpus: &Path) -> PathBuf {
    corpus.join(".claude/projects")
}

/// Reads the session files of the corpus.
pub(crate) fn of_claude(corpus: &Path) -> Outcome<Vec<Sample>> {
    read_below(&projects(corpus), |_| true)
}

/// Reads the rollouts of Codex: real ones, and those of the captures.
pub(crate) fn of_codex(shared: &Path) -> Outcome<Vec<Sample>> {
    let mut samples = read_below(&shared.join("recordings/codex"), |_| true)?;
    samples.extend(read_below(&shared.join("captures/codex"), |name| name.contains("/rollout-"))?);
    Ok(samples)
}

/// Reads the session files of Copilot's captures.
pub(crate) fn of_copilot(shared: &Path) -> Outcome<Vec<Sample>> {
    read_below(&shared.join("captures/copilot"), |name| name.ends_with("/events.jsonl"))
}

/// Makes a recording of a long conversation over HTTP, in which each request has all that was said before.
pub(crate) fn of_http() -> Sample {
    const ROUNDS: usize = 100;
    let mut lines = Vec::new();
    let mut history = String::from(r#"{"role":"user","content":"Work through the list."}"#);
    let output = "a line of output with some words in it\\n".repeat(50);
    for round in 1..=ROUNDS {
        let mut add = |dir: &str, record: String| {
            let ticket = lines.len() + 1;
            lines.push(format!(r#"{{"dir":"{dir}","t":1794961000.250,"ticket":{ticket},"msg":{record}}}"#));
        };
        let body = format!(r#"{{"model":"m","system":"Be brief.","tools":[{{}}],"messages":[{history}]}}"#);
        add(
            "c2s",
            format!(
                r#"{{"http":"request","exchange":{round},"method":"POST","path":"/v1/messages","body":{body}}}"#
            ),
        );
        add("s2c", format!(r#"{{"http":"response","exchange":{round},"status":200,"headers":{{}}}}"#));
        let call = format!(
            r#"{{"type":"tool_use","id":"toolu_{round}","name":"Bash","input":{{"command":"ls {round}"}}}}"#
        );
        let usage = r#"{"input_tokens":9,"output_tokens":9}"#;
        let answer = format!(
            r#"{{"id":"msg_{round}","type":"message","role":"assistant","model":"m","content":[{call}],"stop_reason":"tool_use","usage":{usage}}}"#
        );
        add("s2c", format!(r#"{{"http":"body","exchange":{round},"body":{answer}}}"#));
        add("s2c", format!(r#"{{"http":"end","exchange":{round},"outcome":"complete"}}"#));
        let result =
            format!(r#"{{"type":"tool_result","tool_use_id":"toolu_{round}","content":"{output}"}}"#);
        history.push_str(&format!(
            r#",{{"role":"assistant","content":[{call}]}},{{"role":"user","content":[{result}]}}"#
        ));
    }
    lines.push(String::new());
    Sample { file_name: "recording.jsonl".to_owned(), bytes: lines.join("\n").into_bytes() }
}

/// Reads the chat files of Gemini CLI: real documents, and the logs of the captures.
pub(crate) fn of_gemini(shared: &Path) -> Outcome<Vec<Sample>> {
    let mut samples = read_all_below(&shared.join("recordings/gemini"), "json", |_| true)?;
    samples.extend(read_below(&shared.join("captures/gemini"), |name| name.contains("/chats/"))?);
    Ok(samples)
}

/// Reads what an agent's captures printed as JSON lines; one that printed a document is left out.
pub(crate) fn of_streams(shared: &Path, place: &str) -> Outcome<Vec<Sample>> {
    let is_lines = |name: &str| name.ends_with("/stream.ndjson") && !name.contains("json_output");
    read_all_below(&shared.join(place), "ndjson", is_lines)
}

/// Reads recorded connections: their names end so.
pub(crate) fn of_connections(shared: &Path, places: &[&str], ending: &str) -> Outcome<Vec<Sample>> {
    let mut samples = Vec::new();
    for place in places {
        let directory = shared.join(place);
        for name in places::files_below(&directory).into_iter().filter(|name| name.ends_with(ending)) {
            let bytes = fs::read(directory.join(&name))?;
            samples.push(Sample { file_name: name, bytes });
        }
    }
    Ok(samples)
}

/// Reads the files of JSON lines below a directory whose path in it is wanted.
fn read_below(directory: &Path, is_wanted: impl Fn(&str) -> bool) -> Outcome<Vec<Sample>> {
    read_all_below(directory, "jsonl", is_wanted)
}

fn read_all_below(
    directory: &Path,
    extension: &str,
    is_wanted: impl Fn(&str) -> bool,
) -> Outcome<Vec<Sample>> {
    let mut samples = Vec::new();
    for name in places::files_below(directory).iter().map(Path::new) {
        if name.extension() == Some(extension.as_ref()) && is_wanted(&name.to_string_lossy()) {
            let file_name = name.file_name().unwrap_or_default().to_string_lossy().into_owned();
            samples.push(Sample { file_name, bytes: fs::read(directory.join(name))? });
        }
    }
    Ok(samples)
}
