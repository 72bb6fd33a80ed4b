//! Bodies of requests that take many lines, as other programs write them for people.

use std::path::Path;

use serde_json::Value;
use steno_adapters::{HEAD_BYTES_MAX, Source, Surface, open, sniff};
use steno_model::Lane;
use steno_testkit::{needs, places, shared_dir};

use crate::adapter_output::{Made, feed};
use crate::codex_files::files_below;

/// The words that mark calls and results in a request of any API.
const CALLS: [&str; 5] = ["tool_use", "function", "function_call", "custom_tool_call", "local_shell_call"];
const RESULTS: [&str; 3] = ["tool_result", "function_call_output", "custom_tool_call_output"];

fn made_of(name: &Path, bytes: &[u8], chunk: usize) -> Made {
    let sniffed = sniff(&bytes[..bytes.len().min(HEAD_BYTES_MAX)]);
    let sniffed = sniffed.unwrap_or_else(|| panic!("{}", name.display()));
    assert_eq!(sniffed.surface, Surface::Http, "{}", name.display());
    let adapter = open(&sniffed, Source::of_file("s1", name)).unwrap();
    feed(adapter, &[(Lane::FromAgent, bytes.to_vec())], chunk)
}

/// Counts the calls and results in a request.
fn count(value: &Value) -> (usize, usize) {
    let below = |values: &mut dyn Iterator<Item = &Value>| {
        values.map(count).fold((0, 0), |(calls, results), more| (calls + more.0, results + more.1))
    };
    match value {
        Value::Object(fields) => {
            let kind = fields.get("type").and_then(Value::as_str).unwrap_or_default();
            let has = |name: &str| fields.contains_key(name);
            // Definitions of tools have a type too.
            let is_call = has("functionCall") || (CALLS.contains(&kind) && !has("parameters"));
            let is_result = has("functionResponse") || RESULTS.contains(&kind) || value["role"] == "tool";
            let (calls, results) =
                below(&mut fields.iter().filter(|(name, _)| *name != "tools").map(|(_, value)| value));
            (calls + usize::from(is_call), results + usize::from(is_result))
        }
        Value::Array(values) => below(&mut values.iter()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => (0, 0),
    }
}

#[test]
fn bodies_over_many_lines_are_read_as_on_one_line() {
    let shared = needs!(shared_dir(), "there are no samples");
    let bodies = files_below(&shared.join("versions/http"), ".json");
    assert_eq!(bodies.len(), 4);
    for path in bodies {
        let bytes = places::read_bytes(&path);
        let body: Value = serde_json::from_slice(&bytes).unwrap();
        let made = made_of(&path, &bytes, usize::MAX);
        assert_eq!(made.completeness.unreadable, 0, "{}", path.display());
        assert!(made.completeness.unknown.is_empty(), "{}: {:?}", path.display(), made.completeness);
        let (calls, results) = count(&body);
        assert!(calls > 0 && results > 0, "{}", path.display());
        let found = |kind: &str| made.payloads(kind).len();
        assert_eq!((found("tool.call"), found("tool.result")), (calls, results), "{}", path.display());
        let prompts: Vec<String> = made.payloads("message.user").iter().map(ToString::to_string).collect();
        assert!(prompts.iter().any(|prompt| prompt.contains("SCENARIO:")), "{}", path.display());
        // Cut anywhere, with a newline at its end, and on one line.
        for chunk in [1, 7, 4096] {
            assert_eq!(made_of(&path, &bytes, chunk).events, made.events, "{}", path.display());
        }
        let longer = [&bytes[..], b"\n"].concat();
        assert_eq!(made_of(&path, &longer, usize::MAX).events, made.events, "{}", path.display());
        let line = serde_json::to_vec(&body).unwrap();
        let outline = |made: &Made| -> Vec<(Value, Value)> {
            made.events.iter().map(|event| (event["type"].clone(), event["path"].clone())).collect()
        };
        assert_eq!(outline(&made_of(&path, &line, usize::MAX)), outline(&made), "{}", path.display());
    }
}
