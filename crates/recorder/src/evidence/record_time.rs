//! Checks by time whether an event can have been made from a record.

use memchr::memmem;
use steno_model::Timestamp;
use steno_model::json::{Fields, text_of};

/// The expected time of a record.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum RecordTime {
    /// The record has this time; it was not inferred.
    Own(Box<str>),
    /// The record has this time, or none.
    OwnIfAny(Box<str>),
    /// Not known.
    Unknown,
}

impl RecordTime {
    /// Tells whether a record may have this time.
    pub(super) fn fits(&self, record: &[u8]) -> bool {
        match self {
            Self::Unknown => true,
            Self::Own(time) => has_time(record, time),
            Self::OwnIfAny(time) => has_time(record, time) || time_of(record).is_none(),
        }
    }
}

/// Tells whether a record contains a time: as text, as milliseconds, or with another offset from UTC.
fn has_time(record: &[u8], time: &str) -> bool {
    if memmem::find(record, time.as_bytes()).is_some() {
        return true;
    }
    let Some(instant) = instant(time) else { return true };
    let unix_ms = instant.as_millisecond().to_string();
    memmem::find(record, unix_ms.as_bytes()).is_some() || time_of(record).is_some_and(|time| time == instant)
}

/// Returns the timestamp field of a record.
fn time_of(record: &[u8]) -> Option<jiff::Timestamp> {
    let record = String::from_utf8_lossy(record);
    let mut fields = Fields::parse(&record).ok()?;
    instant(&text_of(fields.take("timestamp").ok()??)?)
}

fn instant(time: &str) -> Option<jiff::Timestamp> {
    Timestamp::from_record(time.into()).instant()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_found_in_any_form() {
        let check = |record: &str, own, if_any| {
            let time = "2026-06-08T08:14:42.123Z";
            assert_eq!(RecordTime::Own(time.into()).fits(record.as_bytes()), own, "{record}");
            assert_eq!(RecordTime::OwnIfAny(time.into()).fits(record.as_bytes()), if_any, "{record}");
            assert!(RecordTime::Unknown.fits(record.as_bytes()));
        };
        check(r#"{"timestamp":"2026-06-08T08:14:42.123Z"}"#, true, true);
        check(r#"{"a":{"timestamp":"2026-06-08T08:14:42.123Z"}}"#, true, true);
        check(r#"{"timestamp":"2026-06-08T10:14:42.123+02:00"}"#, true, true);
        check(r#"{"emittedAtMs":1780906482123}"#, true, true);
        check(r#"{"timestamp":"2026-06-08T08:14:42.124Z"}"#, false, false);
        check(r#"{"timestamp":"noon"}"#, false, true);
        check("{}", false, true);
    }
}
