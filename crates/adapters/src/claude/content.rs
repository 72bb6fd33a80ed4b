//! The content of a user-side message: text, results, and marks for other blocks.

use serde_json::value::RawValue;
use steno_model::json::{JsonString, RawJson};
use steno_model::{ContentBlock, Fidelity};

use super::wire::Block;
use crate::emit::string;
use crate::shapes::is_absent;
use crate::wire::{Raw, RawField as _, WireObject as _, list};

/// The content of a message.
pub(super) enum Content<'a> {
    Text(&'a RawValue),
    /// Blocks; `None` for a block that is not an object.
    Blocks(Vec<Option<Block<'a>>>),
}

impl<'a> Content<'a> {
    /// Reads a message's content; `None` if it is neither text nor a list.
    pub(super) fn read(raw: &'a RawValue) -> Option<Self> {
        match raw.get().as_bytes() {
            [b'"', ..] => Some(Self::Text(raw)),
            [b'[', ..] => list(raw).map(Self::Blocks),
            _ => None,
        }
    }

    fn blocks(&self) -> &[Option<Block<'a>>] {
        match self {
            Self::Text(_) => &[],
            Self::Blocks(blocks) => blocks,
        }
    }

    /// Returns the results in it.
    pub(super) fn results(&self) -> impl ExactSizeIterator<Item = &Block<'a>> {
        let is_result = |block: &&Block<'_>| block.kind.is("tool_result");
        let results: Vec<&Block<'a>> = self.blocks().iter().flatten().filter(is_result).collect();
        results.into_iter()
    }

    /// Returns the blocks that are not results: text, and a mark for each picture or document.
    pub(super) fn other_blocks(&self) -> Vec<ContentBlock> {
        match self {
            Self::Text(raw) => {
                let text = JsonString::from_raw(raw).unwrap_or_else(|| "".into());
                vec![ContentBlock::text(Fidelity::AgentEmitted, text)]
            }
            Self::Blocks(blocks) => blocks.iter().filter_map(|block| other_block(block.as_ref())).collect(),
        }
    }

    /// Returns the name of the first block that is not what Claude Code writes on the user's side.
    pub(super) fn odd(&self) -> Option<String> {
        self.blocks().iter().find_map(|block| match block {
            None => Some("block".to_owned()),
            Some(block) => is_odd(block).then(|| format!("block.{}", block.kind.text().unwrap_or_default())),
        })
    }

    /// Returns its text: of a string, or of its text blocks together.
    pub(super) fn text(&self) -> String {
        match self {
            Self::Text(raw) => Some(*raw).text().unwrap_or_default().into_owned(),
            Self::Blocks(blocks) => blocks.iter().flatten().filter_map(|block| block.text.text()).collect(),
        }
    }
}

/// Returns the text of a message's content, or of a result's.
pub(super) fn text_of(content: &RawValue) -> String {
    Content::read(content).map(|content| content.text()).unwrap_or_default()
}

/// Tells whether content is text and nothing else, if it is there.
pub(super) fn is_all_text(raw: Raw<'_>) -> bool {
    let is_text = |block: &Option<Block<'_>>| {
        block.is_some_and(|block| block.kind.is("text") && block.text.string().is_some() && !block.is_odd())
    };
    is_absent(raw)
        || raw.and_then(Content::read).is_some_and(|content| {
            matches!(content, Content::Text(_)) || content.blocks().iter().all(is_text)
        })
}

fn is_odd(block: &Block<'_>) -> bool {
    let is_known = match block.kind.text().as_deref() {
        Some("text") => block.text.string().is_some(),
        // Results are checked separately.
        Some("tool_result") => return false,
        Some("image" | "document") => true,
        Some(_) | None => false,
    };
    !is_known || block.is_odd()
}

fn other_block(block: Option<&Block<'_>>) -> Option<ContentBlock> {
    let kind = block.and_then(|block| block.kind.text()).unwrap_or("unknown".into());
    match (&*kind, block.and_then(|block| block.text.string())) {
        ("text", Some(text)) => Some(ContentBlock::text(Fidelity::AgentEmitted, text)),
        ("tool_result", _) => None,
        _ => {
            let mut mark = ContentBlock::text(Fidelity::AgentEmitted, "");
            mark.extra.push("label", string(&kind));
            let size = block.and_then(|block| block.source).map(|source| source.get().len() as u64);
            if let Some(size) = size {
                mark.extra.push("size_bytes", RawJson::from(size));
            }
            Some(mark)
        }
    }
}
