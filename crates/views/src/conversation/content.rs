//! What blocks and tools hold, as text for people.

use serde_json::value::RawValue;
use steno_model::json::{JsonString, RawJson};

use crate::fields::PayloadFields;

/// A block as it is shown.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Shown {
    /// What was said.
    Words(String),
    /// A part of what was said, to be put together with the next one.
    Chunk(String),
    /// What was thought; `None` where the provider keeps it to itself.
    Thought(Option<String>),
    /// A command that the user has run.
    Command(String),
    /// What a tool gave, without its call.
    Output(String),
    /// Anything else, by its type.
    Other(String),
}

/// Reads a block as it was recorded.
pub(super) fn shown(block: &RawJson) -> Shown {
    let fields = PayloadFields::parse(block.as_str());
    let text = |name: &str| fields.string(name).map(|text| text.to_text().into_owned());
    let kind = text("type").unwrap_or_default();
    match &*kind {
        "text" => Shown::Words(text("text").unwrap_or_default()),
        "stream" => Shown::Chunk(text("chunk").or_else(|| text("text")).unwrap_or_default()),
        "thinking" => Shown::Thought(text("thinking").filter(|thought| !thought.is_empty())),
        "command" => Shown::Command(text("command").unwrap_or_default()),
        "tool_result" => Shown::Output(
            fields.json("tool_content").and_then(|content| output(&content)).unwrap_or_default(),
        ),
        _ => Shown::Other(kind),
    }
}

/// Returns what a tool gave as text: a string as it is, blocks of text put together, anything else as JSON.
pub(super) fn output(content: &RawJson) -> Option<String> {
    if content.is_null() {
        return None;
    }
    let blocks = || content.read::<Vec<&RawValue>>().ok().filter(|blocks| !blocks.is_empty());
    Some(match content.read::<String>() {
        Ok(text) => text,
        Err(_) => {
            match blocks().and_then(|blocks| blocks.into_iter().map(block_text).collect::<Option<Vec<_>>>()) {
                Some(texts) => texts.join("\n"),
                None => content.to_string(),
            }
        }
    })
}

/// Returns the text of a provider's own block, or in brackets what it is.
fn block_text(block: &RawValue) -> Option<String> {
    let fields = PayloadFields::parse(block.get());
    let kind = fields.string("type")?;
    let text = fields.string("text").map(|text: JsonString| text.to_text().into_owned());
    Some(text.unwrap_or_else(|| format!("[{}]", kind.to_text())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_output(content: &str, want: Option<&str>) {
        assert_eq!(output(&RawJson::parse(content).unwrap()).as_deref(), want, "{content}");
    }

    #[test]
    fn outputs_are_text_where_they_can_be() {
        check_output("null", None);
        check_output(r#""a\nb""#, Some("a\nb"));
        check_output(r#"[{"type":"text","text":"a"},{"type":"image","data":"…"}]"#, Some("a\n[image]"));
        check_output(r#"{"stdout":"a"}"#, Some(r#"{"stdout":"a"}"#));
        check_output("[1,2]", Some("[1,2]"));
        check_output("[]", Some("[]"));
    }

    #[track_caller]
    fn check_block(block: &str, want: &Shown) {
        assert_eq!(shown(&RawJson::parse(block).unwrap()), *want, "{block}");
    }

    #[test]
    fn blocks_are_shown_by_their_type() {
        check_block(r#"{"type":"text","text":"a"}"#, &Shown::Words("a".into()));
        check_block(r#"{"type":"stream","chunk":"a"}"#, &Shown::Chunk("a".into()));
        check_block(r#"{"type":"stream","text":"a"}"#, &Shown::Chunk("a".into()));
        check_block(r#"{"type":"thinking","thinking":"a"}"#, &Shown::Thought(Some("a".into())));
        check_block(r#"{"type":"thinking","thinking":""}"#, &Shown::Thought(None));
        check_block(r#"{"type":"command","command":"ls"}"#, &Shown::Command("ls".into()));
        check_block(r#"{"type":"tool_result","tool_content":"a"}"#, &Shown::Output("a".into()));
        check_block(r#"{"type":"hologram"}"#, &Shown::Other("hologram".into()));
        check_block("[]", &Shown::Other(String::new()));
    }
}
