//! Times on the wire: RFC 3339 text, kept as it came.

use std::fmt;

use crate::Error;
use crate::json::JsonString;

/// The time of a record, as its text.
///
/// Read, it may be any string: seq is the only order, and a strange time must not hide an event. Written, it is
/// RFC 3339 in UTC.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Timestamp(JsonString);

impl Timestamp {
    /// Parses RFC 3339 for writing. UTC keeps its spelling; another offset is turned into the same instant in UTC.
    ///
    /// # Errors
    /// [`Error::WrongField`] for anything else.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let instant = read_instant(text)?;
        Ok(if is_utc(text) { Self(text.into()) } else { Self(instant.to_string().into()) })
    }

    /// Formats an instant with milliseconds.
    #[must_use]
    pub fn from_instant(instant: jiff::Timestamp) -> Self {
        Self(format!("{instant:.3}").into())
    }

    /// Keeps the text that stands in a record, whatever it is.
    #[must_use]
    pub fn from_record(text: JsonString) -> Self {
        Self(text)
    }

    /// Returns the time as a writer may emit it: unchanged when it is UTC, else the same instant in UTC.
    pub(crate) fn into_written(self) -> Result<Self, Error> {
        let text = self.0.to_text();
        let instant = read_instant(&text)?;
        Ok(if is_utc(&text) { self } else { Self(instant.to_string().into()) })
    }

    /// Returns the instant, when the text is one.
    #[must_use]
    pub fn instant(&self) -> Option<jiff::Timestamp> {
        read_instant(&self.0.to_text()).ok()
    }

    /// Returns the text as JSON.
    #[must_use]
    pub fn as_json(&self) -> &JsonString {
        &self.0
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, out)
    }
}

fn read_instant(text: &str) -> Result<jiff::Timestamp, Error> {
    let instant = if has_rfc3339_shape(text) { text.parse().ok() } else { None };
    instant.ok_or(Error::WrongField {
        field: "timestamp",
        wanted: "an RFC 3339 time like 2026-06-08T08:14:42.123Z",
    })
}

/// Tells whether a text of the right layout names no other offset than UTC.
fn is_utc(text: &str) -> bool {
    ["Z", "z", "+00:00", "-00:00"].iter().any(|suffix| text.ends_with(suffix))
}

/// Checks the layout; whether the numbers are a date is left to the calendar.
///
/// Calendars read more than RFC 3339 allows (`20260608T08Z`, annotations in brackets); other readers don't.
fn has_rfc3339_shape(text: &str) -> bool {
    const PATTERN: &[u8] = b"0000-00-00T00:00:00";
    let bytes = text.as_bytes();
    let fits = |(&byte, &wanted): (&u8, &u8)| match wanted {
        b'0' => byte.is_ascii_digit(),
        b'T' => byte == b'T' || byte == b't',
        _ => byte == wanted,
    };
    if bytes.len() <= PATTERN.len() || !bytes.iter().zip(PATTERN).all(fits) {
        return false;
    }
    let mut rest = &bytes[PATTERN.len()..];
    if rest[0] == b'.' {
        let digits = rest[1..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        if digits == 0 {
            return false;
        }
        rest = &rest[1 + digits..];
    }
    match rest {
        [b'Z' | b'z'] => true,
        [b'+' | b'-', offset @ ..] => offset.len() == 5 && offset.iter().zip(b"00:00").all(fits),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, want: Option<&str>) {
        let got = Timestamp::parse(text).ok().map(|time| time.to_string());
        assert_eq!(got.as_deref(), want, "{text}");
    }

    #[test]
    fn utc_keeps_its_spelling() {
        for text in ["2026-06-08T08:14:42.123Z", "2024-01-15T10:30:00.123+00:00", "2026-06-08T08:14:42Z"] {
            check(text, Some(text));
        }
        check("2026-06-08T08:14:42.123456789Z", Some("2026-06-08T08:14:42.123456789Z"));
    }

    #[test]
    fn other_offsets_become_utc() {
        check("2026-06-08T10:14:42.5+02:00", Some("2026-06-08T08:14:42.5Z"));
    }

    #[test]
    fn what_is_no_rfc3339_time_is_not_written() {
        for text in [
            "",
            "now",
            "2026-06-08",
            "2026-06-08 08:14:42Z",
            "20260608T081442Z",
            "2026-06-08T08:14:42",
            "2026-13-08T08:14:42Z",
            "2026-06-08T08:14:42.Z",
            "2026-06-08T08:14:42Z[UTC]",
            "2026-06-08T08:14:42+0200",
        ] {
            check(text, None);
        }
    }

    #[test]
    fn a_strange_time_is_kept_and_has_no_instant() {
        let strange = Timestamp::from_record("yesterday".into());
        assert_eq!((strange.instant(), strange.to_string()), (None, "yesterday".into()));
    }

    #[test]
    fn an_instant_is_written_with_milliseconds() {
        let instant = jiff::Timestamp::from_millisecond(1_780_906_482_120).unwrap();
        let time = Timestamp::from_instant(instant);
        assert_eq!(time.to_string(), "2026-06-08T08:14:42.120Z");
        assert_eq!(time.instant(), Some(instant));
    }
}
