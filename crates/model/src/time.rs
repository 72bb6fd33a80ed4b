//! Times in records: RFC 3339 text, unchanged.

use std::fmt;
use std::ops::Range;

use jiff::SignedDuration;
use jiff::civil::DateTime;
use jiff::tz::Offset;

use crate::Error;
use crate::json::JsonString;

/// The time of a record, as its text.
///
/// When read, it may be any string: seq is the only order, and an invalid time must not hide an event. When written, it
/// is RFC 3339 in UTC.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Timestamp(JsonString);

impl Timestamp {
    /// Parses RFC 3339 for writing. A UTC time keeps its spelling; another offset is converted to UTC.
    ///
    /// # Errors
    /// [`Error::WrongField`] for anything else, and for an instant outside the years 0 to 9999 in UTC.
    pub fn parse(text: &str) -> Result<Self, Error> {
        Ok(Self(in_utc(text)?.map_or_else(|| text.into(), JsonString::from)))
    }

    /// Formats an instant with milliseconds.
    #[must_use]
    pub fn from_instant(instant: jiff::Timestamp) -> Self {
        Self(format!("{instant:.3}").into())
    }

    /// Makes a time from milliseconds since 1970; `None` when it is out of range.
    #[must_use]
    pub fn from_unix_ms(unix_ms: i64) -> Option<Self> {
        jiff::Timestamp::from_millisecond(unix_ms).ok().map(Self::from_instant)
    }

    /// Formats seconds since 1970, rounded to milliseconds; `None` when it is out of range.
    #[must_use]
    pub fn from_unix_seconds(seconds: f64) -> Option<Self> {
        let duration = SignedDuration::try_from_secs_f64(seconds).ok()?;
        // A fraction like 0.1 is slightly below its decimal value.
        let millis = i64::try_from((duration.as_nanos() + 500_000).div_euclid(1_000_000)).ok()?;
        Self::from_unix_ms(millis)
    }

    /// Keeps any text of a record.
    #[must_use]
    pub fn from_record(text: JsonString) -> Self {
        Self(text)
    }

    /// Returns the time for writing: unchanged when it is UTC, else converted to UTC.
    pub(crate) fn into_written(self) -> Result<Self, Error> {
        let changed = in_utc(&self.0.to_text())?;
        Ok(changed.map_or(self, |text| Self(text.into())))
    }

    /// Tells whether a text is valid for writing: RFC 3339 in UTC.
    #[must_use]
    pub fn is_utc(text: &str) -> bool {
        matches!(in_utc(text), Ok(None))
    }

    /// Returns the instant, if the text is valid. The last day of the year 9999 has none: `jiff` leaves it out, so that
    /// every instant has a date in every time zone.
    #[must_use]
    pub fn instant(&self) -> Option<jiff::Timestamp> {
        let text = self.0.to_text();
        let layout = Rfc3339Parts::of(&text)?;
        match layout.date_time() {
            Some(utc) if text.ends_with('Z') => Offset::UTC.to_timestamp(utc).ok(),
            _ => text.parse().ok(),
        }
    }

    /// Returns the milliseconds since 1970; `None` if the text is not a time.
    #[must_use]
    pub fn unix_ms(&self) -> Option<i64> {
        self.instant().map(jiff::Timestamp::as_millisecond)
    }

    /// Returns the text as JSON.
    #[must_use]
    pub fn as_json(&self) -> &JsonString {
        &self.0
    }
}

impl serde::Serialize for Timestamp {
    fn serialize<S: serde::Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(out)
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, out)
    }
}

/// Returns the same instant as text in UTC; `None` when the text is already UTC.
fn in_utc(text: &str) -> Result<Option<String>, Error> {
    let wrong = |wanted| Error::WrongField { field: "timestamp", wanted };
    let no_time = || wrong("an RFC 3339 time like 2026-06-08T08:14:42.123Z");
    let layout = Rfc3339Parts::of(text).ok_or_else(no_time)?;
    // A civil date and time, not an instant: the instants of `jiff` end a day before the year 9999 does.
    let local = layout.date_time().or_else(|| layout.local.parse().ok()).ok_or_else(no_time)?;
    if layout.offset_minutes == 0 {
        return Ok(None);
    }
    let utc = local.checked_sub(SignedDuration::from_mins(layout.offset_minutes)).ok();
    let utc = utc.filter(|utc| utc.year() >= 0);
    let utc = utc.ok_or_else(|| wrong("a time that in UTC lies in the years 0000 to 9999"))?;
    Ok(Some(format!("{utc}Z")))
}

/// A text with the layout of RFC 3339. Whether the numbers are a valid date is checked later.
///
/// Calendar libraries accept more than RFC 3339 allows (`20260608T08Z`, annotations in brackets); other readers do not.
struct Rfc3339Parts<'a> {
    /// Date and time of day.
    local: &'a str,
    /// The offset from UTC.
    offset_minutes: i64,
}

impl<'a> Rfc3339Parts<'a> {
    fn of(text: &'a str) -> Option<Self> {
        const PATTERN: &[u8] = b"0000-00-00T00:00:00";
        let bytes = text.as_bytes();
        if bytes.len() <= PATTERN.len() || !bytes.iter().zip(PATTERN).all(fits) {
            return None;
        }
        let mut end = PATTERN.len();
        if bytes[end] == b'.' {
            let digits = bytes[end + 1..].iter().take_while(|byte| byte.is_ascii_digit()).count();
            if digits == 0 {
                return None;
            }
            end += 1 + digits;
        }
        Some(Self { local: &text[..end], offset_minutes: offset_minutes(&bytes[end..])? })
    }

    /// Returns date and time of day, if both are valid. Leap seconds and very long fractions are left to `jiff`, whose
    /// parser takes ten times as long, because it knows many more layouts.
    fn date_time(&self) -> Option<DateTime> {
        const FRACTION_AT: usize = 20;
        const NANOSECOND_DIGITS: usize = 9;
        let bytes = self.local.as_bytes();
        let number = |range: Range<usize>| {
            bytes
                .get(range)?
                .iter()
                .try_fold(0_i16, |number, digit| Some(number * 10 + i16::from(digit.checked_sub(b'0')?)))
        };
        let short = |range: Range<usize>| i8::try_from(number(range)?).ok();
        let fraction = bytes.get(FRACTION_AT..).unwrap_or_default();
        if fraction.len() > NANOSECOND_DIGITS {
            return None;
        }
        let digits = fraction.iter().copied().chain(std::iter::repeat(b'0')).take(NANOSECOND_DIGITS);
        let nanosecond = digits.fold(0_i32, |number, digit| number * 10 + i32::from(digit - b'0'));
        let (hour, minute, second) = (short(11..13)?, short(14..16)?, short(17..19)?);
        DateTime::new(number(0..4)?, short(5..7)?, short(8..10)?, hour, minute, second, nanosecond).ok()
    }
}

fn offset_minutes(text: &[u8]) -> Option<i64> {
    let ([sign @ (b'+' | b'-'), offset @ ..], 6) = (text, text.len()) else {
        return matches!(text, b"Z" | b"z").then_some(0);
    };
    if !offset.iter().zip(b"00:00").all(fits) {
        return None;
    }
    let number = |tens: u8, ones: u8| i64::from(tens - b'0') * 10 + i64::from(ones - b'0');
    let (hours, minutes) = (number(offset[0], offset[1]), number(offset[3], offset[4]));
    let ahead = (hours < 24 && minutes < 60).then_some(hours * 60 + minutes)?;
    Some(if *sign == b'-' { -ahead } else { ahead })
}

/// Tells whether a byte matches a byte of a pattern, in which `0` is any digit.
fn fits((&byte, &wanted): (&u8, &u8)) -> bool {
    match wanted {
        b'0' => byte.is_ascii_digit(),
        b'T' => byte == b'T' || byte == b't',
        _ => byte == wanted,
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
    fn unix_milliseconds_become_a_time() {
        let time = Timestamp::from_unix_ms(1_794_727_401_173).map(|time| time.to_string());
        assert_eq!(time.as_deref(), Some("2026-11-15T07:23:21.173Z"));
        assert_eq!(Timestamp::from_unix_ms(i64::MAX), None);
    }

    #[test]
    fn unix_seconds_are_rounded_to_milliseconds() {
        for (seconds, want) in [
            (1_767_323_046.1, "2026-01-02T03:04:06.100Z"),
            (1_767_323_046.999_9, "2026-01-02T03:04:07.000Z"),
            (-0.001, "1969-12-31T23:59:59.999Z"),
        ] {
            let time = Timestamp::from_unix_seconds(seconds).map(|time| time.to_string());
            assert_eq!(time.as_deref(), Some(want), "{seconds}");
        }
        assert_eq!(Timestamp::from_unix_seconds(f64::NAN), None);
    }

    #[test]
    fn other_offsets_become_utc() {
        check("2026-06-08T10:14:42.5+02:00", Some("2026-06-08T08:14:42.5Z"));
        check("2026-06-08t00:14:42-08:30", Some("2026-06-08T08:44:42Z"));
        check("2026-06-08T08:14:42+23:59", Some("2026-06-07T08:15:42Z"));
    }

    #[test]
    fn years_0_to_9999_are_accepted() {
        for text in ["0000-01-01T00:00:00Z", "9999-12-30T22:00:01Z", "9999-12-31T23:59:59.999999999Z"] {
            check(text, Some(text));
        }
        check("9999-12-31T23:59:59+00:01", Some("9999-12-31T23:58:59Z"));
        for text in ["9999-12-31T23:59:59-00:01", "0000-01-01T00:00:00+00:01"] {
            let error = Timestamp::parse(text).unwrap_err().to_string();
            assert!(error.contains("the years 0000 to 9999"), "{text}: {error}");
        }
    }

    #[test]
    fn only_rfc3339_times_are_written() {
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
            "2026-06-08T08:14:42+24:00",
            "2026-06-08T08:14:42+00:60",
            "2026-06-08T08:14:42+0é00",
        ] {
            check(text, None);
        }
    }

    #[test]
    fn invalid_time_of_a_record_is_kept_without_an_instant() {
        let strange = Timestamp::from_record("yesterday".into());
        assert_eq!((strange.instant(), strange.to_string()), (None, "yesterday".into()));
    }

    #[test]
    fn instants_are_those_of_jiff() {
        for date in
            ["2026-06-08", "0000-01-01", "9999-12-30", "9999-12-31", "2024-02-29", "2023-02-29", "2026-00-10"]
        {
            for time in ["00:00:00", "23:59:59", "23:59:60", "24:00:00", "12:60:00", "21:07:09"] {
                for rest in ["Z", ".5Z", ".123456789Z", ".1234567891Z", "z", "+00:00", "-00:00", "+02:00"] {
                    let text = format!("{date}T{time}{rest}");
                    let want = text.parse::<jiff::Timestamp>().ok();
                    assert_eq!(Timestamp::from_record(text.as_str().into()).instant(), want, "{text}");
                    // A fraction has at most nine digits. Another offset may leave the years that can be written.
                    let is_civil = format!("{date}T{time}").parse::<DateTime>().is_ok() && rest.len() < 12;
                    assert!(rest == "+02:00" || Timestamp::parse(&text).is_ok() == is_civil, "{text}");
                }
            }
        }
    }

    #[test]
    fn instant_is_written_with_milliseconds() {
        let instant = jiff::Timestamp::from_millisecond(1_780_906_482_120).unwrap();
        let time = Timestamp::from_instant(instant);
        assert_eq!(time.to_string(), "2026-06-08T08:14:42.120Z");
        assert_eq!(time.instant(), Some(instant));
    }
}
