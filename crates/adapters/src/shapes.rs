//! The kind of value that a field holds. A value of an unexpected kind is ignored by readers, so its record is reported
//! as unknown: otherwise the value would be lost without notice.

use std::borrow::Cow;

use serde_json::value::RawValue;
use steno_model::json::{JsonString, from_str};

use crate::wire::{Raw, RawField as _};

/// A kind of value that a field may be declared to hold; null counts as an absent field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Text,
    Flag,
    List,
    Object,
}

impl Kind {
    /// Tells whether a value is of this kind, or null.
    pub(crate) fn fits(self, value: &RawValue) -> bool {
        let text = value.get();
        text == "null"
            || match self {
                Self::Text => text.starts_with('"'),
                Self::Flag => matches!(text, "true" | "false"),
                Self::List => text.starts_with('['),
                Self::Object => text.starts_with('{'),
            }
    }
}

/// Tells whether a field is not there, or null.
pub(crate) fn is_absent(raw: Raw<'_>) -> bool {
    raw.is_none_or(|raw| raw.get() == "null")
}

/// Tells whether a field is a text, if it is there.
pub(crate) fn is_text(raw: Raw<'_>) -> bool {
    raw.is_none_or(|raw| Kind::Text.fits(raw))
}

/// Tells whether a field is a whole number, if it is there.
pub(crate) fn is_number(raw: Raw<'_>) -> bool {
    is_absent(raw) || raw.number().is_some()
}

/// Tells whether a field is a list, if it is there.
pub(crate) fn is_list(raw: Raw<'_>) -> bool {
    raw.is_none_or(|raw| Kind::List.fits(raw))
}

/// Tells whether a field is an object, if it is there.
pub(crate) fn is_object(raw: Raw<'_>) -> bool {
    raw.is_none_or(|raw| Kind::Object.fits(raw))
}

/// Tells whether a field is a list of plain texts, if it is there.
pub(crate) fn are_names(raw: Raw<'_>) -> bool {
    is_absent(raw) || elements(raw).is_some_and(|parts| parts.into_iter().all(|part| is_text(Some(part))))
}

/// Returns the elements of a list.
pub(crate) fn elements(raw: Raw<'_>) -> Option<Vec<&RawValue>> {
    raw.and_then(|raw| from_str(raw.get()).ok())
}

/// Returns a text, decoded; of anything else that is there, its JSON.
pub(crate) fn decoded_words(raw: Raw<'_>) -> Option<Cow<'_, str>> {
    raw.text().or_else(|| raw.map(RawValue::get).filter(|json| *json != "null").map(Cow::Borrowed))
}

/// Returns a text; of anything else that is there, its JSON.
pub(crate) fn words(raw: Raw<'_>) -> Option<JsonString> {
    raw.string().or_else(|| raw.json().map(|raw| raw.as_str().into()))
}
