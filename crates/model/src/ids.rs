//! Newtypes of ids and counters: a bare `u64` or `String` does not cross a module.

use std::fmt;
use std::num::NonZeroU64;
use std::str::FromStr;

use uuid::Uuid;

use crate::Error;
use crate::json::JsonString;

/// The UUID of a run, used everywhere for it, also as its file name.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RunId(Uuid);

impl RunId {
    /// The length of its text.
    pub const LEN: usize = 36;

    /// Writes its text into `buffer` and returns it.
    pub fn hyphenated(self, buffer: &mut [u8; Self::LEN]) -> &str {
        self.0.as_hyphenated().encode_lower(buffer)
    }

    /// Parses a UUID in its hyphenated form only, because the text becomes part of a file name.
    ///
    /// # Errors
    /// [`Error::BadId`] for anything else, including `../x` and braces.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let wanted = "a UUID like 550e8400-e29b-41d4-a716-446655440000";
        if text.len() != Self::LEN {
            return Err(Error::bad_id(text, wanted));
        }
        Uuid::try_parse(text).map(Self).map_err(|_| Error::bad_id(text, wanted))
    }

    /// Wraps a UUID.
    #[must_use]
    pub fn from_uuid(uuid: Uuid) -> Self {
        Self(uuid)
    }

    /// Returns the UUID.
    #[must_use]
    pub fn uuid(self) -> Uuid {
        self.0
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self.0.as_hyphenated(), out)
    }
}

impl fmt::Debug for RunId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "RunId({self})")
    }
}

impl FromStr for RunId {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        Self::parse(text)
    }
}

impl serde::Serialize for RunId {
    fn serialize<S: serde::Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        out.collect_str(self)
    }
}

/// The number of a record in its file: 1 for the first, then without gaps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Seq(NonZeroU64);

impl Seq {
    /// The number of a file's first record.
    pub const FIRST: Self = Self(NonZeroU64::MIN);

    /// Returns the number as a `Seq`, unless it is 0.
    #[must_use]
    pub fn new(number: u64) -> Option<Self> {
        NonZeroU64::new(number).map(Self)
    }

    /// Returns the number.
    #[must_use]
    pub fn get(self) -> u64 {
        self.0.get()
    }

    /// Returns the next number.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }

    /// Returns the number after `last`; the first one when there is none.
    #[must_use]
    pub fn after(last: Option<Self>) -> Self {
        last.map_or(Self::FIRST, Self::next)
    }
}

impl fmt::Display for Seq {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, out)
    }
}

impl serde::Serialize for Seq {
    fn serialize<S: serde::Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        out.serialize_u64(self.get())
    }
}

/// Identifies one opening of a run's file.
///
/// After a power cut a seq that was only `written` can be used again, so a live stream identifies an event by (run,
/// epoch, seq).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Epoch(pub u64);

impl fmt::Display for Epoch {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, out)
    }
}

/// Pairs a tool's call with its result: the provider's own text, opaque.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CallId(pub JsonString);

impl From<&str> for CallId {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}

impl fmt::Display for CallId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, out)
    }
}

/// The id of a thread of the trace spine. It names a directory, so few characters are allowed.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ThreadId(Box<str>);

impl ThreadId {
    /// The maximum length.
    pub const LEN_MAX: usize = 128;

    /// Parses letters, digits, `-` and `_`; the first must be a letter or digit.
    ///
    /// # Errors
    /// [`Error::BadId`] for anything else.
    pub fn parse(text: &str) -> Result<Self, Error> {
        Self::check(text).map(|()| Self(text.into()))
    }

    /// Tells whether a text is a valid id.
    pub(crate) fn check(text: &str) -> Result<(), Error> {
        let plain = |byte: u8| byte.is_ascii_alphanumeric();
        let first_plain = text.bytes().next().is_some_and(plain);
        if first_plain
            && text.len() <= Self::LEN_MAX
            && text.bytes().all(|byte| plain(byte) || byte == b'-' || byte == b'_')
        {
            return Ok(());
        }
        Err(Error::bad_id(text, "a thread id of letters, digits, `-` and `_`"))
    }

    /// Returns the text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ThreadId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUN: &str = "550e8400-e29b-41d4-a716-446655440000";

    #[test]
    fn run_id_must_be_a_hyphenated_uuid() {
        assert_eq!(RunId::parse(RUN).unwrap().to_string(), RUN);
        assert_eq!(RunId::parse(&RUN.to_uppercase()).unwrap().to_string(), RUN);
        for bad in [
            "",
            "../x",
            "%2e%2e",
            "550e8400e29b41d4a716446655440000",
            "{550e8400-e29b-41d4-a716-446655440000}",
            "550e8400-e29b-41d4-a716-44665544000\0",
            "550e8400-e29b-41d4-a716-44665544000/",
            &"a".repeat(300),
        ] {
            assert!(matches!(RunId::parse(bad), Err(Error::BadId { .. })), "{bad:?}");
        }
    }

    #[test]
    fn long_invalid_id_is_cut_in_the_error() {
        let Err(Error::BadId { found, .. }) = RunId::parse(&"é".repeat(300)) else { panic!("taken") };
        assert_eq!(found.chars().count(), 65);
    }

    #[test]
    fn seq_begins_at_one_and_saturates() {
        assert_eq!(Seq::new(0), None);
        assert_eq!(Seq::after(None), Seq::FIRST);
        assert_eq!(Seq::after(Seq::new(6)), Seq::new(7).unwrap());
        assert_eq!(Seq::new(u64::MAX).unwrap().next().get(), u64::MAX);
    }

    #[test]
    fn thread_ids_are_safe_directory_names() {
        for good in ["thread_123", RUN, "a", &"x".repeat(ThreadId::LEN_MAX)] {
            assert_eq!(ThreadId::parse(good).unwrap().as_str(), good);
        }
        for bad in ["", ".", "..", "-a", "a/b", "a.b", "a\0", "é", &"x".repeat(ThreadId::LEN_MAX + 1)] {
            assert!(ThreadId::parse(bad).is_err(), "{bad:?}");
        }
    }
}
