//! The items of the Responses of `OpenAI`, in requests and in answers.

use std::borrow::Cow;

use serde_json::value::RawValue;
use steno_model::json::{JsonString, RawJson};

use super::content::{CallEnd, Content, Input, Output, Part, Role, Text};
use crate::wire::{Raw, RawField as _, list, object, wire};

wire! {
    struct Item {
        kind: "type",
        id: "id",
        role: "role",
        content: "content",
        phase: "phase",
        summary: "summary",
        call_id: "call_id",
        name: "name",
        namespace: "namespace",
        arguments: "arguments",
        input: "input",
        action: "action",
        operation: "operation",
        code: "code",
        queries: "queries",
        output: "output",
        outputs: "outputs",
        results: "results",
        result: "result",
        tools: "tools",
        error: "error",
        status: "status",
        server_label: "server_label",
    }
}

wire! {
    struct ContentPart { kind: "type", text: "text", refusal: "refusal", }
}

/// Calls that the API runs itself: one item has the call and its result.
const RUN_BY_API: [&str; 6] = [
    "code_interpreter_call",
    "file_search_call",
    "image_generation_call",
    "mcp_call",
    "mcp_list_tools",
    "web_search_call",
];
/// Items that are neither words nor calls.
const FACTS: [&str; 9] = [
    "additional_tools",
    "compaction",
    "compaction_summary",
    "compaction_trigger",
    "context_compaction",
    "item_reference",
    "mcp_approval_request",
    "mcp_approval_response",
    "agent_message",
];

/// Reads an item.
pub(super) fn item_parts(raw: &RawValue) -> Vec<Part<'_>> {
    let Some(item) = object::<Item<'_>>(raw) else {
        return vec![Part::new(Role::User, Content::Unknown("item".to_owned()))];
    };
    let kind = item.kind.text().unwrap_or_default();
    match &*kind {
        "message" | "" => message(&item),
        "reasoning" => with_item(&item, Role::Model, Content::Thinking(thought(&item))),
        _ if RUN_BY_API.contains(&&*kind) => run_by_api(&item, &kind),
        _ if FACTS.contains(&&*kind) => {
            with_item(&item, Role::System, Content::Fact { name: Cow::Owned(kind.into_owned()), value: raw })
        }
        _ if kind.ends_with("_output") => with_item(&item, Role::User, output(&item, &kind)),
        _ if kind.ends_with("_call") => with_item(&item, Role::Model, call(&item, &kind)),
        _ => with_item(&item, Role::System, Content::Unknown(format!("item.{kind}"))),
    }
}

fn with_item<'a>(item: &Item<'a>, role: Role, content: Content<'a>) -> Vec<Part<'a>> {
    vec![Part { id: item.id, phase: item.phase, ..Part::new(role, content) }]
}

fn message<'a>(item: &Item<'a>) -> Vec<Part<'a>> {
    let role = match item.role.text().as_deref() {
        Some("assistant") => Role::Model,
        Some("user") => Role::User,
        Some(_) | None => Role::System,
    };
    if let Some(text) = Text::of(item.content) {
        return with_item(item, role, Content::Text { text, label: None });
    }
    let raws: Vec<&RawValue> =
        item.content.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default();
    raws.into_iter().flat_map(|raw| with_item(item, role, content_part(raw))).collect()
}

fn content_part(raw: &RawValue) -> Content<'_> {
    let part = object::<ContentPart<'_>>(raw).unwrap_or_default();
    let kind = part.kind.text().unwrap_or_default();
    match (&*kind, Text::of(part.text), Text::of(part.refusal)) {
        ("input_text" | "output_text" | "text" | "summary_text" | "reasoning_text", Some(text), _) => {
            Content::Text { text, label: None }
        }
        ("refusal", _, Some(text)) => Content::Text { text, label: Some("refusal") },
        ("input_image" | "input_file" | "input_audio" | "output_audio" | "encrypted_content", _, _) => {
            Content::Mark { kind: Cow::Owned(kind.into_owned()), bytes: raw.get().len() }
        }
        _ => Content::Unknown(format!("part.{kind}")),
    }
}

/// Returns the texts of a list of parts, or the one text.
pub(super) fn texts_in(raw: Raw<'_>) -> Vec<String> {
    if let Some(text) = raw.text() {
        return vec![text.into_owned()];
    }
    let parts = raw.and_then(list::<ContentPart<'_>>).unwrap_or_default();
    parts.into_iter().flatten().filter_map(|part| part.text.text().map(Cow::into_owned)).collect()
}

/// Returns a thought: the whole one if it is there, else its summary; empty if it is withheld.
fn thought<'a>(item: &Item<'a>) -> Text<'a> {
    let whole = texts_in(item.content);
    let texts = if whole.is_empty() { texts_in(item.summary) } else { whole };
    Text::Whole(JsonString::from_text(&texts.join("\n\n")))
}

fn call<'a>(item: &Item<'a>, kind: &str) -> Content<'a> {
    let name = match (item.name.text(), item.namespace.text()) {
        (Some(name), Some(namespace)) if namespace.starts_with("mcp__") => {
            Cow::Owned(format!("{namespace}__{name}"))
        }
        (Some(name), _) => name,
        (None, _) => Cow::Owned(kind.strip_suffix("_call").unwrap_or(kind).to_owned()),
    };
    let input = match (Text::of(item.arguments), Text::of(item.input)) {
        (Some(arguments), _) => Input::Arguments(arguments),
        (None, Some(input)) => Input::Plain(input),
        (None, None) => Input::Value(item.arguments.or(item.input).or(item.action).or(item.operation)),
    };
    Content::Call { id: id_of(item), name, input, is_renamed: false }
}

/// Calls and their results are joined by `call_id`; the item of an old shell call has its own id there.
fn id_of<'a>(item: &Item<'a>) -> Option<Text<'a>> {
    Text::of(item.call_id).or_else(|| Text::of(item.id))
}

fn output<'a>(item: &Item<'a>, kind: &str) -> Content<'a> {
    let end = match item.status.text().as_deref() {
        Some("failed") if kind == "apply_patch_call_output" => CallEnd::Failed,
        Some("completed") if kind == "apply_patch_call_output" => CallEnd::Ok,
        Some(_) | None => CallEnd::Unknown,
    };
    let output = Output::of(item.output.or(item.tools).or(item.result));
    Content::Result { id: id_of(item), name: None, output, end }
}

fn run_by_api<'a>(item: &Item<'a>, kind: &str) -> Vec<Part<'a>> {
    let own = item.name.text();
    let name = match (&own, item.server_label.text()) {
        (Some(name), Some(server)) => Cow::Owned(format!("mcp__{server}__{name}")),
        (Some(name), None) => Cow::Owned(name.clone().into_owned()),
        (None, _) => Cow::Owned(kind.strip_suffix("_call").unwrap_or(kind).to_owned()),
    };
    let input = match Text::of(item.arguments) {
        Some(arguments) => Input::Arguments(arguments),
        None => Input::Value(item.action.or(item.code).or(item.queries)),
    };
    let id = Text::of(item.id).or_else(|| Text::of(item.call_id));
    let error = item.error.filter(|error| error.get() != "null");
    let end = match item.status.text().as_deref() {
        _ if error.is_some() => CallEnd::Failed,
        Some("failed") => CallEnd::Failed,
        Some("completed") | None => CallEnd::Ok,
        Some(_) => CallEnd::Unknown,
    };
    let found = error.or(item.output).or(item.outputs).or(item.results).or(item.result).or(item.tools);
    let output = found.map_or(Output::Whole(RawJson::null()), Output::Raw);
    let call = Content::Call { id: id.clone(), name, input, is_renamed: false };
    let mut parts = with_item(item, Role::Model, call);
    parts.extend(with_item(item, Role::Model, Content::Result { id, name: None, output, end }));
    parts
}
