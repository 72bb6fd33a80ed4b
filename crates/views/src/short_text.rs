//! Short texts for JSON values: the important fields of an agent's record, without ids.
//!
//! The results are foreign text on one line. The caller has to cut and escape them.

use serde_json::value::RawValue;
use steno_model::json::{JsonString, RawJson};

use crate::text_format::{count_in_digits, thousands};
use steno_session::PayloadFields;
use steno_session::usage::{Counts, Tokens};

/// Fields that are shown, the most important first.
const KEY_FIELDS: [&str; 28] = [
    "message",
    "content",
    "text",
    "summary",
    "hookName",
    "hook_event_name",
    "command",
    "hookInfos",
    "tool_name",
    "name",
    "status",
    "mode",
    "permissionMode",
    "permission_mode",
    "model",
    "date",
    "filename",
    "addedNames",
    "addedTypes",
    "prUrl",
    "url",
    "title",
    "threadName",
    "stdin",
    "reason",
    "description",
    "explanation",
    "plan",
];
/// How many of them are shown.
const KEY_FIELDS_MAX: usize = 2;
/// Fields that every record of an agent has, or that only its agent can use.
const NOISE: [&str; 14] = [
    "type",
    "subtype",
    "uuid",
    "parentUuid",
    "logicalParentUuid",
    "timestamp",
    "version",
    "userType",
    "entrypoint",
    "gitBranch",
    "slug",
    "cwd",
    "isSidechain",
    "isMeta",
];
/// How many items of a list are read.
const ITEMS_MAX: usize = 8;

/// Returns a value as a short text on one line; empty if it has nothing to show.
///
/// Of an object it shows the important fields, without ids and fields that every record has.
///
/// ```
/// use steno_model::json::RawJson;
/// use steno_views::short_text::gist;
/// let hook = RawJson::parse(r#"{"uuid":"8a","hookName":"Stop","command":"make lint"}"#)?;
/// assert_eq!(gist(&hook), "Stop make lint");
/// # Ok::<(), steno_model::Error>(())
/// ```
#[must_use]
pub fn gist(value: &RawJson) -> String {
    of_value(value.as_str(), Depth::Outer)
}

/// Returns a placeholder for a block with a label and no text, like `[image, 148 bytes]`; `field` reads its fields.
#[must_use]
pub fn placeholder(field: &dyn Fn(&str) -> Option<RawJson>) -> Option<String> {
    let text = |name: &str| field(name).and_then(|value| value.read::<String>().ok());
    let label = text("label").filter(|label| !label.is_empty())?;
    // Agents have several names for an image.
    let kind = if label.to_ascii_lowercase().ends_with("image") { "image".to_owned() } else { label };
    let mut parts = vec![kind];
    parts.extend(["media_type", "path", "url"].into_iter().filter_map(text));
    let size = field("size_bytes").and_then(|size| size.as_str().parse().ok());
    parts.extend(size.map(|size: u64| count_in_digits(size, "byte")));
    Some(format!("[{}]", parts.join(", ")))
}

/// Returns the text of a provider's block in a tool output, or its type and name in brackets.
pub(crate) fn block(block: &RawValue) -> Option<String> {
    let fields = PayloadFields::parse(block.get());
    let text = |name: &str| fields.string(name).map(|text| text.to_text().into_owned());
    let kind = text("type")?;
    if let Some(words) = text("text") {
        return Some(words);
    }
    let source = fields.object("source");
    let media =
        text("mimeType").or_else(|| source.string("media_type").map(|text| text.to_text().into_owned()));
    let data = fields.string("data").or_else(|| source.string("data"));
    let name = text("tool_name").or_else(|| text("name")).map(|name| format!(" {name}")).unwrap_or_default();
    // Four letters of base64 are three bytes.
    let size = data.map(|data| count_in_digits(data.as_raw().len() as u64 / 4 * 3, "byte"));
    let parts: Vec<String> = [format!("{kind}{name}")].into_iter().chain(media).chain(size).collect();
    Some(format!("[{}]", parts.join(", ")))
}

/// Returns the reason of a failure: the message, if the agent gives JSON.
#[must_use]
pub fn reason(error: &JsonString) -> String {
    let text = error.to_text();
    let fields = PayloadFields::parse(&text);
    let message = fields.object("error").string("message").or_else(|| fields.string("message"));
    message
        .filter(|message| !message.is_empty())
        .map_or_else(|| text.clone().into_owned(), |value| value.to_string())
}

/// Returns a usage report as a short text; `None` if it has no tokens.
#[must_use]
pub fn usage(report: &RawJson, scope: Option<&str>) -> Option<String> {
    let by_model = Tokens::read_by_model(report.as_str());
    let all = if by_model.is_empty() {
        vec![Counts::read(report.as_str())?.tokens]
    } else {
        by_model.into_iter().map(|(_, of)| of).collect()
    };
    let sum = |of: fn(&Tokens) -> u64| all.iter().map(of).fold(0, u64::saturating_add);
    let (input, cached, output) = (sum(|of| of.input), sum(|of| of.cache_read), sum(|of| of.output));
    let scope = scope.map(|scope| format!(" of the {scope}")).unwrap_or_default();
    (input + cached + output > 0).then(|| {
        let [input, cached, output] = [input, cached, output].map(thousands);
        format!("usage{scope}: {input} in, {cached} cached, {output} out")
    })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Depth {
    Outer,
    Inner,
}

fn of_value(json: &str, depth: Depth) -> String {
    match json.as_bytes().first() {
        Some(b'"') => serde_json::from_str::<&RawValue>(json)
            .ok()
            .and_then(JsonString::from_raw)
            .map_or_else(String::new, |text| of_text(&text.to_text())),
        Some(b'{') => of_object(json, depth),
        Some(b'[') => of_list(json, depth),
        _ if json == "null" => String::new(),
        _ => json.to_owned(),
    }
}

fn of_list(json: &str, depth: Depth) -> String {
    let items: Vec<&RawValue> = serde_json::from_str(json).unwrap_or_default();
    // Deeper lists do not fit on a line, and would recurse.
    let is_shallow = |item: &&&RawValue| depth == Depth::Outer || !item.get().starts_with('[');
    let shallow = items.iter().take(ITEMS_MAX).filter(is_shallow);
    let words = shallow.map(|item| of_value(item.get(), Depth::Inner));
    let mut words: Vec<String> = words.filter(|words| !words.is_empty()).collect();
    if items.len() > ITEMS_MAX {
        words.push("…".to_owned());
    }
    words.join(if depth == Depth::Outer { "; " } else { ", " })
}

fn of_object(json: &str, depth: Depth) -> String {
    let fields = PayloadFields::parse(json);
    let telling = KEY_FIELDS.iter().filter_map(|name| fields.json(name));
    let telling = telling.map(|value| match (depth, value.as_str().as_bytes().first()) {
        // Two levels are enough for a line.
        (Depth::Inner, Some(b'{' | b'[')) => String::new(),
        _ => of_value(value.as_str(), Depth::Inner),
    });
    let telling: Vec<String> = telling.filter(|words| !words.is_empty()).take(KEY_FIELDS_MAX).collect();
    if !telling.is_empty() || depth == Depth::Inner {
        return telling.join(" ");
    }
    let rest = fields.names().into_iter().filter(|name| !is_noise(name));
    let rest = rest.filter_map(|name| Some((fields.json(&name)?, name)));
    let rest = rest.filter(|(value, _)| !matches!(value.as_str(), "null" | "{}" | "[]" | "\"\""));
    rest.map(|(value, name)| format!("{name}={}", plain(&value))).collect::<Vec<_>>().join(" ")
}

fn plain(value: &RawJson) -> String {
    let words = of_value(value.as_str(), Depth::Inner);
    if words.is_empty() { value.to_string() } else { words }
}

fn is_noise(name: &str) -> bool {
    let is_id = name == "id" || ["Id", "ID", "_id", "Uuid"].iter().any(|end| name.ends_with(end));
    is_id || NOISE.contains(&name)
}

/// Returns a text on one line. Texts that agents wrap in tags lose them: `<command-name>/clear</command-name>`.
fn of_text(text: &str) -> String {
    if let Some(name) = between(text, "<command-name>", "</command-name>") {
        let args = between(text, "<command-args>", "</command-args>").unwrap_or_default();
        return on_one_line(&format!("{name} {args}"));
    }
    if text.trim_start().starts_with('<') { on_one_line(&without_tags(text)) } else { on_one_line(text) }
}

fn between<'a>(text: &'a str, start: &str, end: &str) -> Option<&'a str> {
    text.split_once(start)?.1.split_once(end).map(|(inside, _)| inside)
}

fn without_tags(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('<') {
        out.push_str(before);
        let is_name =
            |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-' | '/' | ' ');
        rest = match after.split_once('>') {
            Some((tag, after)) if !tag.is_empty() && !tag.starts_with(' ') && tag.chars().all(is_name) => {
                out.push(' ');
                after
            }
            Some(_) | None => {
                out.push('<');
                after
            }
        };
    }
    out.push_str(rest);
    out
}

fn on_one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(text: &str) -> RawJson {
        RawJson::parse(text).unwrap()
    }

    #[track_caller]
    fn check(value: &str, want: &str) {
        assert_eq!(gist(&json(value)), want, "{value}");
    }

    #[test]
    fn gist_keeps_key_fields_without_ids() {
        check(
            r#"{"parentUuid":"8","type":"system","subtype":"local_command","content":"<command-name>/model</command-name>\n  <command-message>model</command-message>\n <command-args>opus</command-args>"}"#,
            "/model opus",
        );
        check(
            r#"{"type":"hook_success","hookName":"Stop","toolUseID":"9","content":"","command":"make lint"}"#,
            "Stop make lint",
        );
        check(r#"{"type":"mode","mode":"normal","sessionId":"s"}"#, "normal");
        check(r#"{"uuid":"8","hookCount":1,"hookInfos":[{"command":"go run"}]}"#, "go run");
        check(r#"{"uuid":"8","durationMs":38110,"cwd":"/x","empty":{},"sessionId":"s"}"#, "durationMs=38110");
        check(r#"{"threadId":"t","name":"tiny","status":"starting","error":null}"#, "tiny starting");
        check(r#"{"addedNames":["a","b"],"addedLines":["c"]}"#, "a, b");
        check(r#"{"subtype":"interrupt"}"#, "");
        check(
            r#"{"patch":{"status":"completed","end":1},"input":{"a":1}}"#,
            r#"patch=completed input={"a":1}"#,
        );
        check(r#"[{"text":"one","completed":true},{"text":"two"}]"#, "one; two");
        check(
            r#""<environment_context>\n  <cwd>/home</cwd>\n  <shell>bash</shell>\n</environment_context>""#,
            "/home bash",
        );
        check(r#""<a < b> is no tag""#, "<a < b> is no tag");
        check("null", "");
        check("7", "7");
        check(r#"[["a"],[["b"]],"c"]"#, "a; c");
    }

    #[track_caller]
    fn check_placeholder(block: &str, want: Option<&str>) {
        let fields = PayloadFields::parse(block);
        assert_eq!(placeholder(&|name| fields.json(name)).as_deref(), want, "{block}");
    }

    #[test]
    fn placeholder_shows_the_label() {
        check_placeholder(r#"{"label":"image","size_bytes":148}"#, Some("[image, 148 bytes]"));
        check_placeholder(r#"{"label":"input_image","media_type":"image/png"}"#, Some("[image, image/png]"));
        check_placeholder(r#"{"label":"localImage","path":"/dot.png"}"#, Some("[image, /dot.png]"));
        check_placeholder(r#"{"label":"document"}"#, Some("[document]"));
        check_placeholder(r#"{"size_bytes":1}"#, None);
    }

    #[test]
    fn reason_reads_the_message_in_json() {
        for (error, want) in [
            (r#"{"error": {"message": "no such model", "code": "bad"}}"#, "no such model"),
            (r#"{"message":"late"}"#, "late"),
            (r#"{"error":{"message":""}}"#, r#"{"error":{"message":""}}"#),
            ("529 overloaded", "529 overloaded"),
        ] {
            assert_eq!(reason(&error.into()), want);
        }
    }

    #[test]
    fn usage_is_shown_in_a_few_words() {
        let codex = json(r#"{"input_tokens":10,"cached_input_tokens":4,"output_tokens":3}"#);
        assert_eq!(usage(&codex, Some("turn")).as_deref(), Some("usage of the turn: 6 in, 4 cached, 3 out"));
        let by_model =
            json(r#"{"a":{"inputTokens":1,"outputTokens":2},"b":{"inputTokens":1,"outputTokens":2}}"#);
        assert_eq!(usage(&by_model, None).as_deref(), Some("usage: 2 in, 0 cached, 4 out"));
        assert_eq!(usage(&json("{}"), None), None);
        assert_eq!(usage(&json("7"), None), None);
    }
}
