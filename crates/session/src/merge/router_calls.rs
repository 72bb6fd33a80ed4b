//! Calls that a router saw without the agent's id, as clients of MCP servers may send them. Such a call is matched with
//! a call of the agent by name, input and order, and gets its id. That is a match, not a proof.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet, VecDeque};

use serde_json::Value;
use steno_model::json::{JsonString, ObjectWriter, RawJson};
use steno_model::{EventType, ExchangeEvent, Fidelity, Vocabulary as _};

use super::RunEvents;
use crate::fields::PayloadFields;

/// The field that says that a call's id is not the agent's.
pub(super) const ID_AVAILABLE: &str = "id_available";

/// The field of a call whose id was found this way.
pub(super) const ID_MATCHED: &str = "id_matched";

/// A tool's name and the input of a call, in a form that can be compared.
type CallLook = (String, String);

/// Gives calls of routers the ids of the agent's calls that they match.
pub(super) fn set_ids(runs: &mut [Cow<'_, RunEvents>]) {
    let is_any = runs.iter().any(|run| run.events.iter().any(is_anonymous));
    let mut known = if is_any { agents_calls(runs) } else { return };
    for run in runs {
        let mut ids = HashMap::new();
        for event in run.events.iter().filter(|event| is_anonymous(event)) {
            let fields = PayloadFields::of(event);
            let id = looks_of_router(&fields).iter().find_map(|look| known.get_mut(look)?.pop_front());
            if let (Some(own), Some(id)) = (fields.text("call_id"), id) {
                ids.insert(own.into_owned(), id);
            }
        }
        if !ids.is_empty() {
            rename(&mut run.to_mut().events, &ids);
        }
    }
}

pub(super) fn is_anonymous(event: &ExchangeEvent) -> bool {
    event.event_type.known() == Some(EventType::ToolCall)
        && PayloadFields::of(event).json_text(ID_AVAILABLE) == Some("false")
}

/// Returns the ids of the agent's calls by name and input, in order. A call that a router saw with its id is left out.
fn agents_calls(runs: &[Cow<'_, RunEvents>]) -> HashMap<CallLook, VecDeque<String>> {
    let calls = || {
        let events = runs.iter().flat_map(|run| &run.events);
        events.filter(|event| event.event_type.known() == Some(EventType::ToolCall)).map(PayloadFields::of)
    };
    let is_router = |fields: &PayloadFields<'_>| {
        fields.text("fidelity").is_some_and(|fidelity| fidelity == Fidelity::Router.as_str())
    };
    let id = |fields: &PayloadFields<'_>| fields.text("call_id").map(Cow::into_owned);
    let mut taken: HashSet<String> = calls().filter(is_router).filter_map(|fields| id(&fields)).collect();
    let mut known: HashMap<CallLook, VecDeque<String>> = HashMap::new();
    for fields in calls().filter(|fields| !is_router(fields)) {
        let (Some(id), Some(name)) = (id(&fields), fields.text("name")) else { continue };
        if taken.insert(id.clone()) {
            known.entry((name.into_owned(), input_of(&fields))).or_default().push_back(id);
        }
    }
    known
}

/// Returns the names that an agent may have for a tool of a server.
fn looks_of_router(fields: &PayloadFields<'_>) -> Vec<CallLook> {
    let tool = fields.text("tool").unwrap_or_default();
    let input = input_of(fields);
    let names = match fields.text("server") {
        Some(server) => vec![
            format!("mcp__{server}__{tool}"),
            format!("mcp_{server}_{tool}"),
            format!("{server}-{tool}"),
            format!("{server}__{tool}"),
            tool.into_owned(),
        ],
        None => vec![tool.into_owned()],
    };
    names.into_iter().map(|name| (name, input.clone())).collect()
}

/// Returns the input with its keys in order; a missing input counts as an empty one.
pub(super) fn input_of(fields: &PayloadFields<'_>) -> String {
    let input = fields.json_text("input").unwrap_or("null");
    let value = serde_json::from_str::<Value>(input).unwrap_or_default();
    if value.is_null() { "{}".to_owned() } else { value.to_string() }
}

/// Gives calls and results other ids.
fn rename(events: &mut [ExchangeEvent], ids: &HashMap<String, String>) {
    for event in events {
        let fields = PayloadFields::of(event);
        let id = fields.text("call_id").and_then(|id| ids.get(&*id));
        if let Some(payload) = id.map(|id| with_id(&fields, id)) {
            event.payload = payload;
        }
    }
}

fn with_id(fields: &PayloadFields<'_>, id: &str) -> RawJson {
    RawJson::object(|object: &mut ObjectWriter<'_>| {
        for (name, value) in fields.others(&["call_id", ID_AVAILABLE]) {
            object.json(&name.to_text(), &value);
        }
        object.string("call_id", &JsonString::from_text(id));
        object.json(ID_MATCHED, &RawJson::from(true));
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::tests::{result, run, run_id, turn};
    use super::*;
    use crate::{Content, Outcome, merge};

    /// A call as an MCP server's router saw it, without the agent's id.
    fn router_call(id: &str, tool: &str, input: &Value) -> [Value; 2] {
        [
            json!(["tool.call", "", {"name": format!("mcp__s__{tool}"), "call_id": id, "input": input, "output": null,
                "fidelity": "router", "class": "mcp", "server": "s", "tool": tool, "id_available": false}]),
            json!(["tool.result", "", {"name": format!("mcp__s__{tool}"), "call_id": id, "input": null, "output": id,
                "fidelity": "router", "outcome": "ok"}]),
        ]
    }

    #[test]
    fn router_calls_without_ids_are_matched_by_name_input_and_order() {
        let agent = |id: &str, name: &str, input: Value| {
            let call = json!(["tool.call", "turn-0001", {"name": name, "call_id": id, "input": input, "output": null,
                "fidelity": "agent_emitted", "class": "mcp"}]);
            [call, result("turn-0001", id, "unknown")]
        };
        let disk = [
            vec![turn("turn-0001", "t")],
            agent("a1", "mcp_s_add", json!({"a": 1, "b": 2})).to_vec(),
            agent("a2", "mcp_s_add", json!({"a": 1, "b": 2})).to_vec(),
            agent("a3", "s-fail", json!({})).to_vec(),
        ]
        .concat();
        let seam = [
            router_call("r1", "add", &json!({"b": 2, "a": 1})),
            router_call("r2", "fail", &Value::Null),
            router_call("r3", "add", &json!({"a": 1, "b": 2})),
            router_call("r4", "add", &json!({"a": 9})),
        ]
        .concat();
        for order in [[1, 2], [2, 1]] {
            let make = |number| if number == 1 { run(1, "disk", &disk) } else { run(2, "mcp", &seam) };
            let session = merge(run_id(1), order.map(make).into(), Content::Whole);
            let calls: Vec<(String, Option<&str>, Outcome)> = session
                .calls
                .iter()
                .map(|call| {
                    let id = call.id.as_ref().unwrap().to_text().into_owned();
                    (
                        id,
                        call.result.as_ref().and_then(|result| result.output.as_ref()).map(RawJson::as_str),
                        call.outcome(),
                    )
                })
                .collect();
            let call = |id: &str, output| (id.to_owned(), Some(output), Outcome::Ok);
            // What the router saw wins, and a call that the agent does not report is a call of its own.
            let want =
                [call("a1", "\"r1\""), call("a2", "\"r3\""), call("a3", "\"r2\""), call("r4", "\"r4\"")];
            let mut found = calls;
            found.sort_by(|one, other| one.0.cmp(&other.0));
            assert_eq!(found, want);
        }
    }
}
