//! The content of blocks and tool outputs, as text for people.

use serde_json::value::RawValue;
use steno_model::json::RawJson;

use crate::short_text::{self, placeholder};
use steno_session::PayloadFields;

/// A block as it is shown.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum BlockText {
    /// What was said.
    Words(String),
    /// A part of what was said, to be put together with the next one.
    Chunk(String),
    /// A thought; `None` if the provider does not show it.
    Thought(Option<String>),
    /// A command that the user has run.
    Command(String),
    /// What a tool gave, without its call.
    Output(String),
    /// Anything else, by its type.
    Other(String),
}

/// Reads a block as it was recorded.
pub(crate) fn block_text(block: &RawJson) -> BlockText {
    let fields = PayloadFields::parse(block.as_str());
    let text = |name: &str| fields.string(name).map(|text| text.to_text().into_owned());
    let kind = text("type").unwrap_or_default();
    match &*kind {
        "text" => {
            let words = text("text").unwrap_or_default();
            // A picture, for example, has no text.
            let mark = || placeholder(&|name| fields.json(name));
            BlockText::Words(if words.is_empty() { mark().unwrap_or_default() } else { words })
        }
        "stream" => BlockText::Chunk(text("chunk").or_else(|| text("text")).unwrap_or_default()),
        "thinking" => BlockText::Thought(text("thinking").filter(|thought| !thought.is_empty())),
        "command" => BlockText::Command(text("command").unwrap_or_default()),
        "tool_result" => BlockText::Output(
            fields.json("tool_content").and_then(|content| tool_output(&content)).unwrap_or_default(),
        ),
        _ => BlockText::Other(kind),
    }
}

/// Returns a tool's output as text: a string as it is, text blocks joined, anything else as JSON.
pub(crate) fn tool_output(content: &RawJson) -> Option<String> {
    if content.is_null() {
        return None;
    }
    if let Ok(text) = content.read::<String>() {
        return Some(text);
    }
    // MCP servers answer with an object around the blocks.
    let inside = PayloadFields::parse(content.as_str()).json("content");
    let blocks = |content: &RawJson| {
        let blocks = content.read::<Vec<&RawValue>>().ok().filter(|blocks| !blocks.is_empty())?;
        let texts = blocks.into_iter().map(short_text::block).collect::<Option<Vec<_>>>()?;
        Some(texts.join("\n"))
    };
    Some(blocks(content).or_else(|| blocks(&inside?)).unwrap_or_else(|| content.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_output(content: &str, want: Option<&str>) {
        assert_eq!(tool_output(&RawJson::parse(content).unwrap()).as_deref(), want, "{content}");
    }

    #[test]
    fn output_is_text_where_possible() {
        check_output("null", None);
        check_output(r#""a\nb""#, Some("a\nb"));
        check_output(r#"[{"type":"text","text":"a"},{"type":"image"}]"#, Some("a\n[image]"));
        check_output(
            r#"[{"type":"image","source":{"media_type":"image/png","data":"AAAAAAAA"}}]"#,
            Some("[image, image/png, 6 bytes]"),
        );
        check_output(
            r#"[{"type":"tool_reference","tool_name":"add"},{"type":"tool_reference","tool_name":"echo"}]"#,
            Some("[tool_reference add]\n[tool_reference echo]"),
        );
        check_output(r#"{"content":[{"type":"text","text":"5"}],"isError":false}"#, Some("5"));
        check_output(r#"{"content":"a"}"#, Some(r#"{"content":"a"}"#));
        check_output(r#"{"stdout":"a"}"#, Some(r#"{"stdout":"a"}"#));
        check_output("[1,2]", Some("[1,2]"));
        check_output("[]", Some("[]"));
    }

    #[track_caller]
    fn check_block(block: &str, want: &BlockText) {
        assert_eq!(block_text(&RawJson::parse(block).unwrap()), *want, "{block}");
    }

    #[test]
    fn blocks_are_shown_by_their_type() {
        check_block(r#"{"type":"text","text":"a"}"#, &BlockText::Words("a".into()));
        check_block(
            r#"{"type":"text","text":"","label":"image","size_bytes":9}"#,
            &BlockText::Words("[image, 9 bytes]".into()),
        );
        check_block(r#"{"type":"stream","chunk":"a"}"#, &BlockText::Chunk("a".into()));
        check_block(r#"{"type":"stream","text":"a"}"#, &BlockText::Chunk("a".into()));
        check_block(r#"{"type":"thinking","thinking":"a"}"#, &BlockText::Thought(Some("a".into())));
        check_block(r#"{"type":"thinking","thinking":""}"#, &BlockText::Thought(None));
        check_block(r#"{"type":"command","command":"ls"}"#, &BlockText::Command("ls".into()));
        check_block(r#"{"type":"tool_result","tool_content":"a"}"#, &BlockText::Output("a".into()));
        check_block(r#"{"type":"hologram"}"#, &BlockText::Other("hologram".into()));
        check_block("[]", &BlockText::Other(String::new()));
    }
}
