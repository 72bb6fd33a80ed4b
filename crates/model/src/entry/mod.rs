//! Transcript entries: the log vocabulary that all adapters share (000).

mod record;
mod summary;

pub use record::{LogRecord, reconstruct_transcript};
pub use summary::TranscriptSummary;

use crate::json::{Extra, Fields, JsonString, ObjectWriter, RawJson};
use crate::word::{Word, vocabulary};
use crate::{Error, Timestamp};

vocabulary! {
    /// The type of an entry. There are nine; anything else is [`EntryType::Unknown`] (R3).
    EntryType, "entry type" {
        /// A prompt.
        UserMessage = "user_message",
        /// A response's text.
        AssistantMessage = "assistant_message",
        /// The model asks for a tool.
        ToolUse = "tool_use",
        /// The tool returns.
        ToolResult = "tool_result",
        /// Reasoning.
        Thinking = "thinking",
        /// Compaction, lifecycle, notices.
        SystemEvent = "system_event",
        /// A usage report.
        TokenUsage = "token_usage",
        /// Something failed.
        Error = "error",
        /// An unknown record.
        Unknown = "unknown",
    }
}

/// Where an entry comes from (R4).
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum EntrySource {
    /// `main`
    Main,
    /// `subagent:{id}`
    Subagent(JsonString),
    /// A text of another form, as a newer writer may use; kept unchanged.
    Other(JsonString),
}

impl EntrySource {
    /// Names a subagent's stream.
    #[must_use]
    pub fn subagent(id: &str) -> Self {
        Self::Subagent(format!("subagent:{id}").into())
    }

    fn read(text: JsonString) -> Self {
        let decoded = text.to_text();
        match decoded.strip_prefix("subagent:") {
            _ if decoded == "main" => Self::Main,
            Some(id) if !id.is_empty() => Self::Subagent(text),
            Some(_) | None => Self::Other(text),
        }
    }

    /// Returns the source as a JSON string.
    #[must_use]
    pub fn to_json(&self) -> JsonString {
        match self {
            Self::Main => "main".into(),
            Self::Subagent(text) | Self::Other(text) => text.clone(),
        }
    }
}

/// One entry. It cannot be changed after it is made (R28):
///
/// ```compile_fail,E0616
/// fn rename(entry: &mut steno_model::TranscriptEntry) {
///     entry.prompt_name = "another".into();
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TranscriptEntry {
    prompt_name: JsonString,
    adapter: JsonString,
    entry_type: Word<EntryType>,
    sequence_number: u64,
    source: EntrySource,
    timestamp: Timestamp,
    session_id: Option<JsonString>,
    detail: Option<RawJson>,
    raw: Option<JsonString>,
    extra: Extra,
}

/// The fields of an entry.
#[derive(Clone, Debug)]
pub struct EntryParts {
    /// The prompt being evaluated.
    pub prompt_name: JsonString,
    /// The adapter's registered name.
    pub adapter: JsonString,
    /// Its type.
    pub entry_type: EntryType,
    /// Its number within (`prompt_name`, `source`), without gaps (R5).
    pub sequence_number: u64,
    /// Where it comes from.
    pub source: EntrySource,
    /// When it was captured.
    pub timestamp: Timestamp,
    /// The session, if there is one.
    pub session_id: Option<JsonString>,
    /// More details from the adapter; opaque to others.
    pub detail: Option<RawJson>,
    /// The source line.
    pub raw: Option<JsonString>,
}

impl TranscriptEntry {
    /// Makes an entry.
    #[must_use]
    pub fn from_parts(parts: EntryParts) -> Self {
        Self {
            prompt_name: parts.prompt_name,
            adapter: parts.adapter,
            entry_type: Word::Known(parts.entry_type),
            sequence_number: parts.sequence_number,
            source: parts.source,
            timestamp: parts.timestamp,
            session_id: parts.session_id,
            detail: parts.detail,
            raw: parts.raw,
            extra: Extra::default(),
        }
    }

    /// Reads an entry from the JSON object that a log record carries as its context.
    ///
    /// # Errors
    /// When the object lacks a required key, or a key has a value of the wrong kind.
    pub fn parse(context: &RawJson) -> Result<Self, Error> {
        let mut fields = Fields::parse(context.as_str())?;
        let mut string = |field| fields.take_string(field)?.ok_or(Error::MissingField { field });
        let (prompt_name, adapter) = (string("prompt_name")?, string("adapter")?);
        let (entry_type, source) = (string("entry_type")?, string("source")?);
        let timestamp = string("timestamp")?;
        let number =
            fields.take("sequence_number")?.ok_or(Error::MissingField { field: "sequence_number" })?;
        Ok(Self {
            prompt_name,
            adapter,
            entry_type: Word::read(entry_type),
            sequence_number: number
                .get()
                .parse()
                .map_err(|_| Error::WrongField { field: "sequence_number", wanted: "a whole number" })?,
            source: EntrySource::read(source),
            timestamp: Timestamp::from_record(timestamp),
            session_id: fields.take_nullable_string("session_id")?,
            detail: fields.take_json("detail")?,
            raw: fields.take_nullable_string("raw")?,
            extra: fields.into_extra(),
        })
    }

    /// Returns the entry as the JSON object of its context.
    #[must_use]
    pub fn to_json(&self) -> RawJson {
        let mut out = String::new();
        let mut object = ObjectWriter::begin(&mut out);
        object.string("prompt_name", &self.prompt_name);
        object.string("adapter", &self.adapter);
        object.string("entry_type", &self.entry_type.to_json());
        object.number("sequence_number", self.sequence_number);
        object.string("source", &self.source.to_json());
        object.string("timestamp", self.timestamp.as_json());
        object.optional("session_id", self.session_id.as_ref(), ObjectWriter::string);
        object.optional("detail", self.detail.as_ref(), ObjectWriter::json);
        object.optional("raw", self.raw.as_ref(), ObjectWriter::string);
        object.finish(&self.extra);
        RawJson::trusted(out)
    }

    /// Returns the type; one outside the nine counts as [`EntryType::Unknown`] and keeps its text.
    #[must_use]
    pub fn entry_type(&self) -> EntryType {
        self.entry_type.known().unwrap_or(EntryType::Unknown)
    }

    /// Refuses a type outside the nine.
    ///
    /// # Errors
    /// [`Error::UnknownWord`], for which [`Error::is_unknown_type`] holds.
    pub fn check_strict(&self) -> Result<(), Error> {
        self.entry_type.check().map(|_| ())
    }

    /// Returns the prompt's name.
    #[must_use]
    pub fn prompt_name(&self) -> &JsonString {
        &self.prompt_name
    }

    /// Returns the adapter's name.
    #[must_use]
    pub fn adapter(&self) -> &JsonString {
        &self.adapter
    }

    /// Returns the number within (`prompt_name`, `source`).
    #[must_use]
    pub fn sequence_number(&self) -> u64 {
        self.sequence_number
    }

    /// Returns where the entry comes from.
    #[must_use]
    pub fn source(&self) -> &EntrySource {
        &self.source
    }

    /// Returns the time of capture.
    #[must_use]
    pub fn timestamp(&self) -> &Timestamp {
        &self.timestamp
    }

    /// Returns the session.
    #[must_use]
    pub fn session_id(&self) -> Option<&JsonString> {
        self.session_id.as_ref()
    }

    /// Returns the adapter's own detail.
    #[must_use]
    pub fn detail(&self) -> Option<&RawJson> {
        self.detail.as_ref()
    }

    /// Returns the source line.
    #[must_use]
    pub fn raw(&self) -> Option<&JsonString> {
        self.raw.as_ref()
    }
}
