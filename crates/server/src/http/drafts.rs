//! The schema of what may be sent to be recorded, made from the checked-in schema of events.
//!
//! Tools that generate requests from a description do not support `if` and `then`. So the description has one case for
//! each type of event and of block. Fields that a draft may leave out or set to null are not part of it.

use serde_json::{Map, Value, json};

const EVENT_SCHEMA: &str = include_str!("../../../../docs/format/exchange-event.schema.json");

/// The name of the schema of a request's body.
pub(super) const DRAFTS: &str = "Drafts";
/// The name of the schema of one event in it.
pub(super) const DRAFT: &str = "EventDraft";

/// Returns the schema of a body: one draft, or an array of them.
pub(super) fn drafts_schema() -> Value {
    let draft = json!({"$ref": format!("#/components/schemas/{DRAFT}")});
    json!({"description": "One event, or several.", "oneOf": [draft, {"type": "array", "items": draft}]})
}

/// Returns the schema of one draft.
pub(super) fn draft_schema() -> Value {
    let text = EVENT_SCHEMA.replace("#/$defs/", &format!("#/components/schemas/{DRAFT}/$defs/"));
    let event: Value = serde_json::from_str(&text).expect("the schema of events is JSON");
    let (block, mut definitions) = (&event["$defs"]["block"], object(&event["$defs"]));
    let blocks = cases(block, &array(&block["required"]), &object(&block["properties"]), &event["$defs"]);
    definitions.insert("block".into(), json!({"oneOf": blocks}));
    for unused in ["block_type", "event_type", "timestamp"] {
        definitions.remove(unused);
    }
    let path = Map::from_iter([("path".into(), event["properties"]["path"].clone())]);
    let mut events = cases(&event, &["type".into()], &path, &event["$defs"]);
    for case in &mut events {
        // A payload that may be null may be absent.
        if case["properties"]["payload"]["anyOf"].is_null()
            && let Some(required) = case["required"].as_array_mut()
        {
            required.push("payload".into());
        }
    }
    let description = "An event without its `seq`. Its `type` says which `payload` it has. `timestamp`, `iteration` and the \
        other fields of docs/format/exchange-event.schema.json may be given too; fields that are not known are kept.";
    json!({"description": description, "oneOf": events, "$defs": definitions})
}

/// Applies the conditions of a schema on `type`, for each of the words of its `type`.
fn cases(
    schema: &Value,
    required: &[Value],
    properties: &Map<String, Value>,
    definitions: &Value,
) -> Vec<Value> {
    let words = array(&referred(&schema["properties"]["type"], definitions)["enum"]);
    let rules = array(&schema["allOf"]);
    let case = |word: &Value| {
        let (mut required, mut properties) = (required.to_vec(), properties.clone());
        for rule in &rules {
            let condition = &rule["if"]["properties"]["type"];
            if condition["const"] == *word || array(&condition["enum"]).contains(word) {
                required.extend(array(&rule["then"]["required"]));
                let narrowed = object(&rule["then"]["properties"]);
                properties
                    .extend(narrowed.into_iter().map(|(name, value)| (name, merged(&value, definitions))));
            }
        }
        for field in required.iter().filter_map(Value::as_str) {
            properties.entry(field).or_insert_with(|| schema["properties"][field].clone());
        }
        properties.insert("type".into(), json!({"const": word}));
        json!({"type": "object", "required": required, "properties": properties})
    };
    words.iter().map(case).collect()
}

/// Puts what a schema adds to the one that it refers to into a copy of that one: not all tools read both.
fn merged(schema: &Value, definitions: &Value) -> Value {
    let mut whole = referred(schema, definitions).clone();
    if whole.is_null() || object(schema).len() == 1 {
        return schema.clone();
    }
    let mut required = array(&whole["required"]);
    required.extend(array(&schema["required"]));
    let mut properties = object(&whole["properties"]);
    properties.extend(object(&schema["properties"]));
    whole["required"] = required.into();
    whole["properties"] = properties.into();
    whole
}

/// Returns the definition that a schema refers to, or null.
fn referred<'a>(schema: &Value, definitions: &'a Value) -> &'a Value {
    let name = schema["$ref"].as_str().and_then(|reference| reference.rsplit('/').next());
    &definitions[name.unwrap_or_default()]
}

fn array(value: &Value) -> Vec<Value> {
    value.as_array().cloned().unwrap_or_default()
}

fn object(value: &Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap_or_default()
}
