//! Calls in requests to a model. An answer may have no ids for its calls, and the client sends its own with the
//! results. The client's own records have the same ids, with the tool's name in front if the client is Gemini CLI. Here
//! such a call gets the id of the agent's own record: the one that its result names, otherwise that of the same tool
//! and input, in order.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use steno_model::json::{JsonString, ObjectWriter, RawJson};
use steno_model::{EventType, ExchangeEvent};

use super::RunEvents;
use super::router_calls::{ID_AVAILABLE, ID_MATCHED, input_of, is_anonymous};
use crate::fields::PayloadFields;

/// The field of a result with the id that the agent has for the call.
const AGENT_ID: &str = "agent_call_id";

/// How a call is found among those of the agent's own records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Proof {
    Id,
    Look,
}

/// The ids that calls of one run get.
type NewIds = HashMap<String, (String, Proof)>;

/// A call of the agent's own records.
struct KnownCall {
    id: String,
    name: String,
    input: String,
}

/// Returns what the agent's own records may call a call that a client names in a request.
///
/// Gemini CLI puts the name of the tool before the id, and removes it in requests.
#[must_use]
pub fn forms_of_call_id(tool: &str, id: &str) -> [String; 2] {
    [id.to_owned(), format!("{tool}__{id}")]
}

/// Returns the tool and the id of the call that a result is about, as the client names the call.
#[must_use]
pub fn call_of_result(result: &ExchangeEvent) -> Option<(String, String)> {
    let fields = PayloadFields::of(result);
    let id = fields.text(AGENT_ID).or_else(|| fields.text("call_id"))?;
    Some((fields.text("name")?.into_owned(), id.into_owned()))
}

/// Gives calls of HTTP runs the ids that the agent's own records have.
pub(super) fn set_ids(runs: &mut [Cow<'_, RunEvents>]) {
    let (http, others): (Vec<usize>, Vec<usize>) = (0..runs.len()).partition(|place| is_http(&runs[*place]));
    if http.is_empty() || others.is_empty() {
        return;
    }
    let known = known_calls(others.iter().map(|place| &*runs[*place]));
    let mut taken = HashSet::new();
    // Calls with proof come first, for all runs. The others are matched by tool and input.
    let mut renamed: Vec<NewIds> =
        http.iter().map(|place| by_ids(&runs[*place], &known, &mut taken)).collect();
    for (place, ids) in http.iter().zip(&mut renamed) {
        by_look(&runs[*place], &known, &mut taken, ids);
        if !ids.is_empty() {
            rename(&mut runs[*place].to_mut().events, ids);
        }
    }
}

fn is_http(run: &RunEvents) -> bool {
    run.events.first().is_some_and(|first| {
        PayloadFields::of(first).object("source").text("channel").is_some_and(|channel| channel == "http")
    })
}

fn of_type(run: &RunEvents, wanted: EventType) -> impl Iterator<Item = &ExchangeEvent> {
    run.events.iter().filter(move |event| event.event_type.known() == Some(wanted))
}

/// Returns the calls with their own ids, each once, in order.
fn known_calls<'a>(runs: impl Iterator<Item = &'a RunEvents>) -> Vec<KnownCall> {
    let (mut known, mut seen) = (Vec::new(), HashSet::new());
    for run in runs {
        for event in of_type(run, EventType::ToolCall).filter(|event| !is_anonymous(event)) {
            let fields = PayloadFields::of(event);
            let (Some(id), Some(name)) = (fields.text("call_id"), fields.text("name")) else { continue };
            if seen.insert(id.to_string()) {
                let (id, name) = (id.into_owned(), name.into_owned());
                known.push(KnownCall { id, name, input: input_of(&fields) });
            }
        }
    }
    known
}

/// Finds calls by the ids that a client has for them.
fn by_ids(run: &RunEvents, known: &[KnownCall], taken: &mut HashSet<String>) -> NewIds {
    let ids: HashSet<&str> = known.iter().map(|call| call.id.as_str()).collect();
    let agents: HashMap<String, String> = of_type(run, EventType::ToolResult)
        .filter_map(|event| {
            let own = PayloadFields::of(event).text("call_id")?.into_owned();
            call_of_result(event).map(|(_, agents)| (own, agents))
        })
        .collect();
    let mut found = NewIds::new();
    for event in of_type(run, EventType::ToolCall) {
        let fields = PayloadFields::of(event);
        let (Some(own), Some(name)) = (fields.text("call_id"), fields.text("name")) else { continue };
        let id = agents.get(&*own).map_or(&*own, String::as_str);
        if let Some(id) = forms_of_call_id(&name, id).into_iter().find(|id| ids.contains(id.as_str())) {
            taken.insert(id.clone());
            found.insert(own.into_owned(), (id, Proof::Id));
        }
    }
    found
}

/// Finds calls whose result the client has not sent, by tool and input.
fn by_look(run: &RunEvents, known: &[KnownCall], taken: &mut HashSet<String>, found: &mut NewIds) {
    let answered: HashSet<String> = of_type(run, EventType::ToolResult)
        .filter_map(|event| PayloadFields::of(event).text("call_id").map(Cow::into_owned))
        .collect();
    for event in of_type(run, EventType::ToolCall).filter(|event| is_anonymous(event)) {
        let fields = PayloadFields::of(event);
        let (Some(own), Some(name)) = (fields.text("call_id"), fields.text("name")) else { continue };
        // An answered call has an id, which another record will have too.
        if answered.contains(&*own) {
            continue;
        }
        let input = input_of(&fields);
        let is_it = |call: &&KnownCall| call.name == name && call.input == input && !taken.contains(&call.id);
        if let Some(id) = known.iter().find(is_it).map(|call| call.id.clone()) {
            taken.insert(id.clone());
            found.insert(own.into_owned(), (id, Proof::Look));
        }
    }
}

/// Changes the ids of calls in a run.
fn rename(events: &mut [ExchangeEvent], ids: &NewIds) {
    for event in events {
        let fields = PayloadFields::of(event);
        let payload = match event.event_type.known() {
            Some(EventType::ToolCall | EventType::ToolResult) => call_with_id(&fields, ids),
            Some(EventType::MessageAssistant) => message_with_ids(&fields, ids),
            Some(_) | None => None,
        };
        if let Some(payload) = payload {
            event.payload = payload;
        }
    }
}

fn call_with_id(fields: &PayloadFields<'_>, ids: &NewIds) -> Option<RawJson> {
    let (id, proof) = ids.get(&*fields.text("call_id")?)?;
    Some(RawJson::object(|object: &mut ObjectWriter<'_>| {
        for (name, value) in fields.others(&["call_id", ID_AVAILABLE]) {
            object.json(&name.to_text(), &value);
        }
        object.string("call_id", &JsonString::from_text(id));
        if *proof == Proof::Look {
            object.json(ID_MATCHED, &RawJson::from(true));
        }
    }))
}

fn message_with_ids(fields: &PayloadFields<'_>, ids: &NewIds) -> Option<RawJson> {
    let blocks = fields.items("blocks");
    let id_of = |block: &PayloadFields<'_>| ids.get(&*block.text("tool_id")?).map(|(id, _)| id.clone());
    if !blocks.iter().any(|block| id_of(&PayloadFields::parse(block.get())).is_some()) {
        return None;
    }
    let block_with_id = |raw: &&serde_json::value::RawValue| {
        let block = PayloadFields::parse(raw.get());
        let Some(id) = id_of(&block) else { return raw.get().to_owned() };
        let object = RawJson::object(|object: &mut ObjectWriter<'_>| {
            for (name, value) in block.others(&["tool_id"]) {
                object.json(&name.to_text(), &value);
            }
            object.string("tool_id", &JsonString::from_text(&id));
        });
        object.as_str().to_owned()
    };
    let blocks: Vec<String> = blocks.iter().map(block_with_id).collect();
    let blocks = RawJson::parse(&format!("[{}]", blocks.join(","))).ok()?;
    Some(RawJson::object(|object: &mut ObjectWriter<'_>| {
        for (name, value) in fields.others(&["blocks"]) {
            object.json(&name.to_text(), &value);
        }
        object.json("blocks", &blocks);
    }))
}
