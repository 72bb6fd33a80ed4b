//! Errors of records: one variant per kind of problem.

use std::borrow::Cow;

/// Why a line, a value or an id was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The text is not JSON.
    #[error("not JSON: {reason}")]
    NotJson {
        /// The parser's message, with the column.
        reason: String,
    },
    /// The bytes are not UTF-8.
    #[error("not UTF-8 at byte {offset}")]
    NotUtf8 {
        /// The offset of the first bad byte.
        offset: usize,
    },
    /// The line is empty.
    #[error("empty line")]
    Empty,
    /// The line is longer than [`crate::limits::LINE_BYTES_MAX`].
    #[error("line of {bytes} bytes is longer than {} bytes", crate::limits::LINE_BYTES_MAX)]
    TooLong {
        /// How many bytes it has, with its newline, or had when reading stopped.
        bytes: u64,
    },
    /// A value nests deeper than [`crate::limits::DEPTH_MAX`].
    #[error("nested {depth} levels deep, more than {} below the envelope", crate::limits::DEPTH_MAX)]
    TooDeep {
        /// How deep it nests below the envelope.
        depth: usize,
    },
    /// JSON, but not an object.
    #[error("not a JSON object")]
    NotAnObject,
    /// A required field is missing.
    #[error("field `{field}` is missing")]
    MissingField {
        /// Its name.
        field: &'static str,
    },
    /// A field has a value of the wrong kind.
    #[error("field `{field}` is not {wanted}")]
    WrongField {
        /// Its name.
        field: &'static str,
        /// What it has to be.
        wanted: &'static str,
    },
    /// A field occurs twice, and readers would disagree on which one counts.
    #[error("field `{field}` occurs twice")]
    DuplicateField {
        /// Its name.
        field: Cow<'static, str>,
    },
    /// A field that the sender must not set.
    #[error("field `{field}` must not be set by the sender: {reason}")]
    ForbiddenField {
        /// Its name.
        field: &'static str,
        /// Why.
        reason: &'static str,
    },
    /// The event belongs to another run.
    #[error("event of run {found} sent to run {wanted}")]
    OtherRun {
        /// The run that is open.
        wanted: crate::RunId,
        /// The run that the event names.
        found: crate::RunId,
    },
    /// An event type outside the ten.
    #[error("unknown event type {found}")]
    UnknownEventType {
        /// Its text, as JSON.
        found: crate::json::JsonString,
    },
    /// A block type outside the six.
    #[error("unknown block type {found}")]
    UnknownBlockType {
        /// Its text, as JSON.
        found: crate::json::JsonString,
    },
    /// A word outside one of the other closed vocabularies.
    #[error("unknown {vocabulary} {found}")]
    UnknownWord {
        /// Which vocabulary.
        vocabulary: &'static str,
        /// The word, as JSON.
        found: crate::json::JsonString,
    },
    /// A payload whose shape does not match the event's type.
    #[error("payload of `{event_type}` is not {wanted}")]
    WrongPayload {
        /// The event's type.
        event_type: crate::EventType,
        /// What it has to be.
        wanted: &'static str,
    },
    /// A text that is not a valid id.
    #[error("`{found}` is not {wanted}")]
    BadId {
        /// The text, shortened if it is long.
        found: String,
        /// What it has to be.
        wanted: &'static str,
    },
}

impl Error {
    /// Tells whether the cause is an unknown word of a vocabulary, and not an unreadable line (R52).
    #[must_use]
    pub fn is_unknown_type(&self) -> bool {
        matches!(
            self,
            Self::UnknownEventType { .. } | Self::UnknownBlockType { .. } | Self::UnknownWord { .. }
        )
    }

    pub(crate) fn not_json(source: &serde_json::Error) -> Self {
        let reason = source.to_string();
        // A record is one line: "line 1" would look like the line number of the file.
        let place = format!(" at line 1 column {}", source.column());
        let reason = match reason.strip_suffix(&place) {
            Some(words) => format!("{words} at column {}", source.column()),
            None => reason,
        };
        Self::NotJson { reason }
    }

    pub(crate) fn bad_id(text: &str, wanted: &'static str) -> Self {
        const SHOWN_CHARS_MAX: usize = 64;
        let mut found: String = text.chars().take(SHOWN_CHARS_MAX).collect();
        if found.len() < text.len() {
            found.push('…');
        }
        Self::BadId { found, wanted }
    }
}
