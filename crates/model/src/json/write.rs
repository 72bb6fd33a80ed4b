//! Builds a JSON object field by field, with raw values unchanged.

use std::fmt::Write as _;

use super::{Digits, Extra, JsonString, RawJson};
use crate::{RunId, Vocabulary, Word};

/// What comes before the first name of an object.
const FIRST: &str = "{\"";

/// What comes before any other name.
const FURTHER: &str = ",\"";

/// Writes one JSON object to the end of a string.
///
/// The names must not need escapes.
pub struct ObjectWriter<'a> {
    out: &'a mut String,
    /// What comes before the next name.
    next: &'static str,
}

impl<'a> ObjectWriter<'a> {
    /// Begins an object at the end of `out`.
    pub fn begin(out: &'a mut String) -> Self {
        Self { out, next: FIRST }
    }

    /// Continues an object whose first fields are already written.
    pub fn resume(out: &'a mut String) -> Self {
        Self { out, next: FURTHER }
    }

    #[inline]
    fn key(&mut self, name: &str) {
        debug_assert!(
            name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_' || byte.is_ascii_digit()),
            "{name}"
        );
        self.out.push_str(self.next);
        self.out.push_str(name);
        self.out.push_str("\":");
        self.next = FURTHER;
    }

    /// Writes a value that is already JSON.
    #[inline]
    pub fn json(&mut self, name: &str, value: &RawJson) {
        self.raw(name, value.as_str());
    }

    /// Writes a string that is already a token.
    #[inline]
    pub fn string(&mut self, name: &str, value: &JsonString) {
        self.raw(name, value.as_raw());
    }

    /// Writes text of our own that needs no escape: an id, a word of a vocabulary, a time.
    pub fn word<T: std::fmt::Display + ?Sized>(&mut self, name: &str, word: &T) {
        self.key(name);
        write!(self.out, "\"{word}\"").expect("a String takes every write");
    }

    /// Writes a run's id.
    pub fn run_id(&mut self, name: &str, run: &RunId) {
        self.plain(name, run.hyphenated(&mut [0; RunId::LEN]));
    }

    /// Writes a word of a vocabulary, or the text of an unknown one.
    pub fn vocabulary<V: Vocabulary>(&mut self, name: &str, word: &Word<V>) {
        match word {
            Word::Known(known) => self.plain(name, known.as_str()),
            Word::Unknown(text) => self.string(name, text),
        }
    }

    /// Writes text that needs no escape.
    #[inline]
    fn plain(&mut self, name: &str, text: &str) {
        self.key(name);
        self.out.push('"');
        self.out.push_str(text);
        self.out.push('"');
    }

    /// Writes a number.
    #[inline]
    pub fn number(&mut self, name: &str, number: u64) {
        self.raw(name, Digits::of(number).as_str());
    }

    /// Writes a value that `write` appends. It must append valid JSON.
    pub fn nested(&mut self, name: &str, write: impl FnOnce(&mut String)) {
        self.key(name);
        write(self.out);
    }

    /// Writes a value if there is one.
    pub fn optional<T>(&mut self, name: &str, value: Option<&T>, write: impl FnOnce(&mut Self, &str, &T)) {
        if let Some(value) = value {
            write(self, name, value);
        }
    }

    #[inline]
    fn raw(&mut self, name: &str, text: &str) {
        self.key(name);
        self.out.push_str(text);
    }

    /// Ends the object.
    pub fn end(self) {
        self.finish(&Extra::default());
    }

    /// Writes extra fields, then ends the object.
    pub fn finish(mut self, extra: &Extra) {
        for (key, value) in extra.iter() {
            // The token has its own quotation marks.
            self.out.push_str(&self.next[..1]);
            key.write(|piece| self.out.push_str(piece));
            self.out.push(':');
            self.out.push_str(value.as_str());
            self.next = FURTHER;
        }
        if self.next == FIRST {
            self.out.push('{');
        }
        self.out.push('}');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn object_fields_are_written_in_order() {
        let mut out = String::new();
        let mut object = ObjectWriter::begin(&mut out);
        object.number("seq", 7);
        object.word("type", "run.started");
        object.string("name", &"a\"b".into());
        object.optional("error", None::<&JsonString>, ObjectWriter::string);
        let mut extra = Extra::default();
        extra.push("é\n", RawJson::null());
        object.finish(&extra);
        assert_eq!(out, r#"{"seq":7,"type":"run.started","name":"a\"b","é\n":null}"#);
    }

    #[test]
    fn empty_object_is_written() {
        let mut out = String::new();
        ObjectWriter::begin(&mut out).finish(&Extra::default());
        assert_eq!(out, "{}");
    }
}
