//! Reads JSON into raw values, several times as fast as `serde_json` alone.
//!
//! `serde_json` looks at a text byte by byte through layers that also serve readers and numbers. Records are cut into raw
//! values and little else, so here a value is only checked and cut out. Everything else is left to `serde_json`: what is
//! refused here is read by it again, which gives its result or its error.

use std::fmt;

use serde::de::value::BorrowedStrDeserializer;
use serde::de::{self, Deserialize, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::forward_to_deserialize_any;

use super::scan::{after, space_end, string_end, value_end, word_end};

/// The name by which `RawValue` asks for the text of a value. If a release of `serde_json` renames it, everything is read
/// by `serde_json`.
const RAW_VALUE: &str = "$serde_json::private::RawValue";

/// Reads a JSON text as [`serde_json::from_str`] does, but raw values, and lists and objects of them, faster.
///
/// # Errors
/// Those of `serde_json`.
pub fn from_str<'a, T: Deserialize<'a>>(text: &'a str) -> serde_json::Result<T> {
    read(text).or_else(|LeftToSerde| serde_json::from_str(text))
}

fn read<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, LeftToSerde> {
    let mut reader = Reader { text, at: 0 };
    let value = T::deserialize(&mut reader)?;
    let end = space_end(text.as_bytes(), reader.at);
    if end == text.len() { Ok(value) } else { Err(LeftToSerde) }
}

/// The text is not JSON, or has something that only `serde_json` reads.
#[derive(Debug)]
struct LeftToSerde;

impl fmt::Display for LeftToSerde {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("left to serde_json")
    }
}

impl std::error::Error for LeftToSerde {}

impl de::Error for LeftToSerde {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self
    }
}

/// Reads a text from its beginning.
struct Reader<'de> {
    text: &'de str,
    at: usize,
}

impl<'de> Reader<'de> {
    fn bytes(&self) -> &'de [u8] {
        self.text.as_bytes()
    }

    /// Skips white space and returns the byte after it.
    #[inline]
    fn next(&mut self) -> Option<u8> {
        self.at = space_end(self.bytes(), self.at);
        self.bytes().get(self.at).copied()
    }

    /// Goes on to the end of what begins here.
    fn go_to(&mut self, end: Option<usize>) -> Result<(), LeftToSerde> {
        self.at = end.ok_or(LeftToSerde)?;
        Ok(())
    }

    /// Cuts out the next value.
    fn raw(&mut self) -> Result<&'de str, LeftToSerde> {
        let start = space_end(self.bytes(), self.at);
        // Most values, and all names, are strings.
        let end = match after(self.bytes(), start, b'"') {
            Some(at) => string_end(self.bytes(), at),
            None => value_end(self.bytes(), start),
        };
        self.go_to(end)?;
        self.text.get(start..self.at).ok_or(LeftToSerde)
    }

    /// Takes a bracket, skipping white space.
    #[inline]
    fn take(&mut self, bracket: u8) -> Result<(), LeftToSerde> {
        let at = space_end(self.bytes(), self.at);
        self.go_to(after(self.bytes(), at, bracket))
    }

    fn list<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value, LeftToSerde> {
        self.take(b'[')?;
        let value = visitor.visit_seq(Items { reader: self, is_first: true })?;
        self.take(b']')?;
        Ok(value)
    }

    fn object<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value, LeftToSerde> {
        self.take(b'{')?;
        let value = visitor.visit_map(Items { reader: self, is_first: true })?;
        self.take(b'}')?;
        Ok(value)
    }

    /// Reads a string without escapes.
    fn string<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value, LeftToSerde> {
        let start = self.at + 1;
        self.go_to(string_end(self.bytes(), start))?;
        let text = self.text.get(start..self.at - 1).ok_or(LeftToSerde)?;
        if memchr::memchr(b'\\', text.as_bytes()).is_some() {
            return Err(LeftToSerde);
        }
        visitor.visit_borrowed_str(text)
    }

    fn word<T>(&mut self, word: &str, value: T) -> Result<T, LeftToSerde> {
        self.go_to(word_end(self.bytes(), self.at, word.as_bytes()))?;
        Ok(value)
    }
}

impl<'de> Deserializer<'de> for &mut Reader<'de> {
    type Error = LeftToSerde;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, LeftToSerde> {
        match self.next() {
            Some(b'{') => self.object(visitor),
            Some(b'[') => self.list(visitor),
            Some(b'"') => self.string(visitor),
            Some(b'n') => self.word("null", ()).and_then(|()| visitor.visit_unit()),
            Some(b't') => self.word("true", true).and_then(|flag| visitor.visit_bool(flag)),
            Some(b'f') => self.word("false", false).and_then(|flag| visitor.visit_bool(flag)),
            _ => Err(LeftToSerde),
        }
    }

    #[inline]
    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, LeftToSerde> {
        if name == RAW_VALUE { visitor.visit_map(RawText(self.raw()?)) } else { Err(LeftToSerde) }
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, LeftToSerde> {
        self.raw()?;
        visitor.visit_unit()
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, LeftToSerde> {
        match self.next() {
            Some(b'n') => self.word("null", ()).and_then(|()| visitor.visit_none()),
            _ => visitor.visit_some(self),
        }
    }

    // Of these, strings and structures are read like anything else. The others refuse what they get.
    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map struct enum identifier
    }
}

/// The elements of a list, or the fields of an object.
struct Items<'r, 'de> {
    reader: &'r mut Reader<'de>,
    is_first: bool,
}

impl Items<'_, '_> {
    /// Goes to the next one; false if the closing bracket is next.
    #[inline]
    fn advance(&mut self, closing: u8) -> Result<bool, LeftToSerde> {
        let is_first = std::mem::take(&mut self.is_first);
        match self.reader.next() {
            Some(byte) if byte == closing => return Ok(false),
            Some(b',') if !is_first => self.reader.at += 1,
            Some(_) if is_first => {}
            _ => return Err(LeftToSerde),
        }
        Ok(true)
    }
}

impl<'de> SeqAccess<'de> for Items<'_, 'de> {
    type Error = LeftToSerde;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, LeftToSerde> {
        if self.advance(b']')? { seed.deserialize(&mut *self.reader).map(Some) } else { Ok(None) }
    }
}

impl<'de> MapAccess<'de> for Items<'_, 'de> {
    type Error = LeftToSerde;

    #[inline]
    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, LeftToSerde> {
        if !self.advance(b'}')? {
            return Ok(None);
        }
        match self.reader.next() {
            Some(b'"') => seed.deserialize(&mut *self.reader).map(Some),
            _ => Err(LeftToSerde),
        }
    }

    #[inline]
    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, LeftToSerde> {
        self.reader.take(b':')?;
        seed.deserialize(&mut *self.reader)
    }
}

/// The text of a value, as `RawValue` takes it: the value of the only field of an object, whose name is its own.
struct RawText<'de>(&'de str);

impl<'de> MapAccess<'de> for RawText<'de> {
    type Error = LeftToSerde;

    #[inline]
    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, LeftToSerde> {
        seed.deserialize(BorrowedStrDeserializer::new(RAW_VALUE)).map(Some)
    }

    #[inline]
    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, LeftToSerde> {
        seed.deserialize(BorrowedStrDeserializer::new(self.0))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;
    use serde_json::value::RawValue;

    use super::*;
    use crate::json::Fields;

    /// Reads a text here and with `serde_json`: what is read here must be the same.
    fn same<'a, T: Deserialize<'a>, U: PartialEq + fmt::Debug>(text: &'a str, show: impl Fn(T) -> U) -> bool {
        let Ok(own) = read::<T>(text) else { return false };
        let theirs = serde_json::from_str::<T>(text).ok().map(&show);
        assert_eq!(Some(show(own)), theirs, "{text}");
        true
    }

    fn all_same(text: &str) -> bool {
        let pairs = |fields: Fields<'_>| -> Vec<(String, String)> {
            fields.iter().map(|(key, value)| (key.as_raw().to_owned(), value.get().to_owned())).collect()
        };
        let texts = |items: Vec<&RawValue>| items.iter().map(|raw| raw.get().to_owned()).collect::<Vec<_>>();
        same(text, pairs);
        same(text, texts);
        same(text, |map: HashMap<String, Option<bool>>| map);
        same(text, |words: Vec<String>| words);
        same(text, |de::IgnoredAny| ());
        same(text, |raw: &RawValue| raw.get().to_owned())
    }

    #[track_caller]
    fn check(text: &str, want: bool) {
        assert_eq!(all_same(text), want, "{text}");
        assert_eq!(serde_json::from_str::<&RawValue>(text).is_ok(), want, "{text}");
    }

    #[test]
    fn json_is_read() {
        for text in [
            "0",
            "-0",
            "10",
            "1.50",
            "1e400",
            "-1.5E-07",
            "1E+2",
            "true",
            " false\n",
            "null",
            r#""""#,
            r#""é""#,
            r#""\"\\\/\b\f\n\r\t\u00e9\ud800""#,
            "[]",
            " [ 1 , [ ] ]\r\n",
            "{}",
            r#"{"a":{"b":[{}]},"a":"\u0000"}"#,
            "{ \"a\" :\t1 , \"b\":\n2 }",
            "[\"x\",\"yy\"]",
            r#"{"a":true,"b":null}"#,
            "\"\u{7f}\"",
        ] {
            check(text, true);
        }
    }

    #[test]
    fn nothing_but_json_is_read() {
        for text in [
            "",
            " ",
            "-",
            "01",
            "-01",
            "1.",
            ".5",
            "1e",
            "1e+",
            "+1",
            "tru",
            "truex",
            "nul",
            "'a'",
            "\"",
            "\"a",
            "\"\\\"",
            "\"\\x\"",
            "\"\\u12g4\"",
            "\"\\u12\"",
            "\"\t\"",
            "\"\0\"",
            "\"01234567\u{1f}\"",
            "[",
            "[1",
            "[1,",
            "[1,]",
            "[,1]",
            "[1 2]",
            "]",
            "{",
            "{\"a\"",
            "{\"a\":",
            "{\"a\":1",
            "{\"a\":1,",
            "{\"a\":1,}",
            "{,}",
            "{a:1}",
            "{\"a\" 1}",
            "{1:1}",
            "{} {}",
            "1 1",
            "[1}",
            "{\"a\":1]",
            "\u{feff}{}",
            "\u{a0}1",
        ] {
            check(text, false);
        }
    }

    #[test]
    fn special_bytes_are_found_at_any_place() {
        for len in 0..100 {
            for special in ["", "\\n", "\\", "\u{1}", "\\u00e9", "\"", "é\\"] {
                for after in [0, 1, 9] {
                    let text = format!(
                        "\"{}{special}{}\"",
                        "é".repeat(len / 2) + &"x".repeat(len % 2),
                        "y".repeat(after)
                    );
                    check(&text, serde_json::from_str::<&RawValue>(&text).is_ok());
                }
            }
        }
    }

    #[test]
    fn deep_values_are_left_to_serde() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(read::<&RawValue>(&nested(64)).is_ok());
        let deep = nested(100_000);
        assert!(read::<&RawValue>(&deep).is_err());
        assert_eq!(from_str::<&RawValue>(&deep).map(RawValue::get).ok(), Some(&*deep));
    }

    #[test]
    fn errors_are_those_of_serde() {
        for text in ["{\"a\":1,}", "[1]", "\"a\tb\"", "{\"a\":1} x"] {
            let error = |result: serde_json::Result<Fields<'_>>| result.err().map(|error| error.to_string());
            assert_eq!(error(from_str(text)), error(serde_json::from_str(text)), "{text}");
        }
    }

    #[test]
    fn numbers_and_escaped_strings_are_read_by_serde() {
        assert_eq!(from_str::<Vec<i64>>("[1,-2]").ok(), Some(vec![1, -2]));
        assert_eq!(
            from_str::<Vec<String>>(r#"["a","\n"]"#).ok(),
            Some(vec!["a".to_owned(), "\n".to_owned()])
        );
    }

    proptest! {
        #[test]
        fn what_is_read_here_is_what_serde_reads(
            text in r#"([\[\]{},:"\\ \n0-9eE.+-]|true|null|"a"|\{"a":|\[1|,"b":|\\u00e9|é){0,12}"#,
        ) {
            let is_json = serde_json::from_str::<&RawValue>(&text).is_ok();
            prop_assert_eq!(all_same(&text), is_json);
        }
    }
}
