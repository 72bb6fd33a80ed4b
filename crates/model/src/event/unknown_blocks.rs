//! Finds blocks of unknown types without reading the content of the others.
//!
//! A check of a whole store does this for every line, so a message with known blocks must be cheap.

use serde::Deserialize;

use super::block::ContentBlock;
use super::payload::Payload;
use super::words::BlockType;
use crate::json::JsonString;
use crate::word::Vocabulary as _;

/// Returns the type of each block in a payload that is not one of the six, in order.
pub(super) fn unknown_block_types(payload: &str) -> Vec<JsonString> {
    if has_no_unknown_blocks(payload) {
        return Vec::new();
    }
    let Ok(payload) = Payload::read_shape(payload) else { return Vec::new() };
    payload.blocks().iter().filter_map(ContentBlock::unknown_type).cloned().collect()
}

#[derive(Deserialize)]
struct MessageHead<'a> {
    #[serde(borrow, default)]
    blocks: Vec<BlockHead<'a>>,
}

#[derive(Deserialize)]
struct BlockHead<'a> {
    #[serde(rename = "type")]
    block_type: &'a str,
}

/// A quick test that there is none; if it fails, the payload is parsed.
fn has_no_unknown_blocks(payload: &str) -> bool {
    let heads = if payload.starts_with('[') {
        serde_json::from_str(payload)
    } else if payload.contains("\"blocks\"") || payload.contains("\\u") {
        // The second test, because a name may be spelled with escapes.
        serde_json::from_str(payload).map(|MessageHead { blocks }| blocks)
    } else {
        return true;
    };
    heads.is_ok_and(|heads: Vec<BlockHead<'_>>| {
        heads.iter().all(|head| BlockType::find(head.block_type).is_some())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(payload: &str, want: &[&str]) {
        let found: Vec<String> = unknown_block_types(payload).iter().map(ToString::to_string).collect();
        assert_eq!(found, want, "{payload}");
    }

    #[test]
    fn blocks_of_unknown_types_are_found_in_order() {
        check(
            r#"{"role":"user","blocks":[{"type":"b"},{"type":"text"},{"type":"a"},{"type":"b"}]}"#,
            &["b", "a", "b"],
        );
        check(r#"[{"type":"hologram"}]"#, &["hologram"]);
        check(r#"{"role":"user","bl\u006fcks":[{"t\u0079pe":"holo\u0067ram"}]}"#, &["hologram"]);
    }

    #[test]
    fn known_blocks_and_other_payloads_have_none() {
        for payload in [
            "null",
            "7",
            "[]",
            r#"[{"type":"text"}]"#,
            r#"[{"type":"t\u0065xt"}]"#,
            r#"{"name":"n","kind":"k","result":[{"type":"hologram"}]}"#,
            r#"{"role":"user","blocks":[{"type":"stream","chunk":"\ud800"},{"type":"text","text":"\u0000"}]}"#,
        ] {
            check(payload, &[]);
        }
    }

    #[test]
    fn payloads_that_only_look_like_blocks_have_none() {
        for payload in [
            // No `role`, so no message; `blocks` twice; a block without a type; a field of another kind.
            r#"{"name":"n","kind":"k","blocks":[{"type":"hologram"}]}"#,
            r#"{"role":"user","blocks":[{"type":"hologram"}],"blocks":[]}"#,
            r#"{"role":"user","blocks":[{"type":"hologram"},{}]}"#,
            r#"{"role":"user","blocks":[{"type":"hologram"},{"type":"text","text":7}]}"#,
            r#"[{"type":"hologram"},7]"#,
        ] {
            check(payload, &[]);
        }
    }
}
