//! What can be wrong with a record: one variant per thing that happened.

use std::borrow::Cow;

/// Why a line, a value or an id was not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The text is no JSON.
    #[error("not JSON: {reason}")]
    NotJson {
        /// The parser's words, with the column.
        reason: String,
    },
    /// The bytes are no UTF-8.
    #[error("not UTF-8 at byte {offset}")]
    NotUtf8 {
        /// Where the first bad byte stands.
        offset: usize,
    },
    /// The line has nothing in it.
    #[error("empty line")]
    Empty,
    /// The line is longer than [`crate::limits::LINE_BYTES_MAX`].
    #[error("line of {bytes} bytes is longer than {} bytes", crate::limits::LINE_BYTES_MAX)]
    TooLong {
        /// How many bytes it has, its newline included, or had when reading it was given up.
        bytes: u64,
    },
    /// A value nests deeper than [`crate::limits::DEPTH_MAX`].
    #[error("nested {depth} levels deep, more than {} below the envelope", crate::limits::DEPTH_MAX)]
    TooDeep {
        /// How deep it nests, the envelope not counted.
        depth: usize,
    },
    /// JSON, but no object.
    #[error("not a JSON object")]
    NotAnObject,
    /// A field that has to be there is not.
    #[error("field `{field}` is missing")]
    MissingField {
        /// Its name.
        field: &'static str,
    },
    /// A field is there with a value of another kind.
    #[error("field `{field}` is not {wanted}")]
    WrongField {
        /// Its name.
        field: &'static str,
        /// What it has to be.
        wanted: &'static str,
    },
    /// A field occurs twice, so that readers would disagree.
    #[error("field `{field}` occurs twice")]
    DuplicateField {
        /// Its name.
        field: Cow<'static, str>,
    },
    /// A field that only somebody else may set.
    #[error("field `{field}` is not the sender's to set: {reason}")]
    ForbiddenField {
        /// Its name.
        field: &'static str,
        /// Whose it is.
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
    /// A payload whose shape does not fit the event's type.
    #[error("payload of `{event_type}` is not {wanted}")]
    WrongPayload {
        /// The event's type.
        event_type: crate::EventType,
        /// What it has to be.
        wanted: &'static str,
    },
    /// A text that is no id of its kind.
    #[error("`{found}` is not {wanted}")]
    BadId {
        /// The text, cut short when it is long.
        found: String,
        /// What it has to be.
        wanted: &'static str,
    },
}

impl Error {
    /// Tells an unknown word of a vocabulary from bytes that cannot be read at all (R52).
    #[must_use]
    pub fn is_unknown_type(&self) -> bool {
        matches!(
            self,
            Self::UnknownEventType { .. } | Self::UnknownBlockType { .. } | Self::UnknownWord { .. }
        )
    }

    pub(crate) fn not_json(source: &serde_json::Error) -> Self {
        let reason = source.to_string();
        // A record is one line: "line 1" would be read as the line of the file that it stands in.
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
