//! Content blocks: the parts of a message, in order.

use serde_json::value::RawValue;

use super::words::{BlockType, Fidelity};
use crate::Error;
use crate::json::{Extra, Fields, JsonString, ObjectWriter, RawJson};
use crate::word::Word;

/// One block of a message. It has only the fields of its type; unknown fields are in `extra`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContentBlock {
    /// Where it was observed; `None` only in a record that leaves it out.
    pub fidelity: Option<Word<Fidelity>>,
    /// Its content.
    pub content: BlockContent,
    /// Unknown fields.
    pub extra: Extra,
}

/// The content of a block, by type.
///
/// Every field is optional, because writers in other languages leave empty ones out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BlockContent {
    /// `text`
    Text(Option<JsonString>),
    /// `thinking`
    Thinking(Option<JsonString>),
    /// `tool_use`
    ToolUse {
        /// The tool's name in the provider's spelling.
        tool_name: Option<JsonString>,
        /// Pairs the block with its result.
        tool_id: Option<JsonString>,
        /// The arguments, unchanged.
        tool_input: Option<RawJson>,
    },
    /// `tool_result`
    ToolResult {
        /// Pairs the block with its call.
        tool_id: Option<JsonString>,
        /// The output: a string, an object, or null.
        tool_content: Option<RawJson>,
    },
    /// `command`
    Command(Option<JsonString>),
    /// `stream`; written as `chunk`, read from `text` too (R48).
    Stream(Option<JsonString>),
    /// An unknown type; its fields are in `extra`.
    Unknown(JsonString),
}

impl ContentBlock {
    /// Makes a block without extra fields.
    #[must_use]
    pub fn new(fidelity: Fidelity, content: BlockContent) -> Self {
        Self { fidelity: Some(Word::Known(fidelity)), content, extra: Extra::default() }
    }

    /// Makes a text block.
    #[must_use]
    pub fn text(fidelity: Fidelity, text: impl Into<JsonString>) -> Self {
        Self::new(fidelity, BlockContent::Text(Some(text.into())))
    }

    /// Returns the block's type, or the text of an unknown one.
    #[must_use]
    pub fn block_type(&self) -> Word<BlockType> {
        Word::Known(match &self.content {
            BlockContent::Text(_) => BlockType::Text,
            BlockContent::Thinking(_) => BlockType::Thinking,
            BlockContent::ToolUse { .. } => BlockType::ToolUse,
            BlockContent::ToolResult { .. } => BlockType::ToolResult,
            BlockContent::Command(_) => BlockType::Command,
            BlockContent::Stream(_) => BlockType::Stream,
            BlockContent::Unknown(text) => return Word::Unknown(text.clone()),
        })
    }

    /// Reads one block.
    pub(super) fn read(raw: &RawValue) -> Result<Self, Error> {
        let mut fields = Fields::parse(raw.get())?;
        let word = fields.take_string("type")?.ok_or(Error::MissingField { field: "type" })?;
        let fidelity = fields.take_string("fidelity")?.map(Word::read);
        let content = match Word::read(word) {
            Word::Known(known) => Self::read_content(known, &mut fields)?,
            Word::Unknown(text) => BlockContent::Unknown(text),
        };
        Ok(Self { fidelity, content, extra: fields.into_extra() })
    }

    /// Reads one block that a writer wants to emit; there the field `chunk` must be used (R48).
    pub(super) fn read_to_write(raw: &RawValue) -> Result<Self, Error> {
        let block = Self::read(raw)?;
        if matches!(block.content, BlockContent::Stream(_)) && !Fields::parse(raw.get())?.has("chunk") {
            return Err(Error::MissingField { field: "chunk" });
        }
        Ok(block)
    }

    fn read_content(block_type: BlockType, fields: &mut Fields<'_>) -> Result<BlockContent, Error> {
        Ok(match block_type {
            BlockType::Text => BlockContent::Text(fields.take_string("text")?),
            BlockType::Thinking => BlockContent::Thinking(fields.take_string("thinking")?),
            BlockType::ToolUse => BlockContent::ToolUse {
                tool_name: fields.take_string("tool_name")?,
                tool_id: fields.take_string("tool_id")?,
                tool_input: fields.take_json("tool_input")?,
            },
            BlockType::ToolResult => BlockContent::ToolResult {
                tool_id: fields.take_string("tool_id")?,
                tool_content: fields.take_json("tool_content")?,
            },
            BlockType::Command => BlockContent::Command(fields.take_string("command")?),
            BlockType::Stream => BlockContent::Stream(match fields.take_string("chunk")? {
                Some(chunk) => Some(chunk),
                None => fields.take_string("text")?,
            }),
        })
    }

    pub(super) fn write(&self, out: &mut String) {
        let mut object = ObjectWriter::begin(out);
        object.vocabulary("type", &self.block_type());
        object.optional("fidelity", self.fidelity.as_ref(), ObjectWriter::vocabulary);
        let string = ObjectWriter::string;
        match &self.content {
            BlockContent::Text(text) => object.optional("text", text.as_ref(), string),
            BlockContent::Thinking(text) => object.optional("thinking", text.as_ref(), string),
            BlockContent::ToolUse { tool_name, tool_id, tool_input } => {
                object.optional("tool_name", tool_name.as_ref(), string);
                object.optional("tool_id", tool_id.as_ref(), string);
                object.optional("tool_input", tool_input.as_ref(), ObjectWriter::json);
            }
            BlockContent::ToolResult { tool_id, tool_content } => {
                object.optional("tool_id", tool_id.as_ref(), string);
                object.optional("tool_content", tool_content.as_ref(), ObjectWriter::json);
            }
            BlockContent::Command(text) => object.optional("command", text.as_ref(), string),
            BlockContent::Stream(chunk) => object.optional("chunk", chunk.as_ref(), string),
            BlockContent::Unknown(_) => {}
        }
        object.finish(&self.extra);
    }

    /// Tells whether reading the written block gives the same block: no known field is among the extra ones.
    pub(super) fn reads_back(&self) -> bool {
        const FIELDS: [&str; 10] = [
            "type",
            "fidelity",
            "text",
            "thinking",
            "tool_name",
            "tool_id",
            "tool_input",
            "tool_content",
            "command",
            "chunk",
        ];
        self.extra.has_none_of(&FIELDS)
    }

    /// Returns the block's type if it is not one of the six.
    pub(super) fn unknown_type(&self) -> Option<&JsonString> {
        match &self.content {
            BlockContent::Unknown(found) => Some(found),
            BlockContent::Text(_)
            | BlockContent::Thinking(_)
            | BlockContent::ToolUse { .. }
            | BlockContent::ToolResult { .. }
            | BlockContent::Command(_)
            | BlockContent::Stream(_) => None,
        }
    }

    /// Returns an error for each unknown word, as a strict reader would.
    pub(super) fn unknown_words(&self) -> impl Iterator<Item = Error> {
        let block_type = self.unknown_type().map(|found| Error::UnknownBlockType { found: found.clone() });
        let fidelity = self.fidelity.as_ref().and_then(|word| word.check().err());
        block_type.into_iter().chain(fidelity)
    }

    /// Checks that a writer may emit the block: its type, its fidelity, and its main field.
    pub(super) fn check(&self) -> Result<(), Error> {
        let missing = |field| Err(Error::MissingField { field });
        check_fidelity(self.fidelity.as_ref())?;
        match &self.content {
            BlockContent::Unknown(found) => Err(Error::UnknownBlockType { found: found.clone() }),
            BlockContent::Text(None) => missing("text"),
            BlockContent::Thinking(None) => missing("thinking"),
            BlockContent::ToolUse { tool_name: None, .. } => missing("tool_name"),
            BlockContent::ToolUse { tool_id: None, .. } | BlockContent::ToolResult { tool_id: None, .. } => {
                missing("tool_id")
            }
            BlockContent::ToolUse { tool_input: None, .. } => missing("tool_input"),
            BlockContent::ToolResult { tool_content: None, .. } => missing("tool_content"),
            BlockContent::Command(None) => missing("command"),
            BlockContent::Stream(None) => missing("chunk"),
            BlockContent::Text(Some(_))
            | BlockContent::Thinking(Some(_))
            | BlockContent::ToolUse { .. }
            | BlockContent::ToolResult { .. }
            | BlockContent::Command(Some(_))
            | BlockContent::Stream(Some(_)) => Ok(()),
        }
    }
}

/// Checks that the fidelity is one of the two.
pub(super) fn check_fidelity(fidelity: Option<&Word<Fidelity>>) -> Result<(), Error> {
    fidelity.ok_or(Error::MissingField { field: "fidelity" })?.check().map(|_| ())
}
