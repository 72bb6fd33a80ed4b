//! Providers' objects, read in one pass: the fields that we use as raw JSON, everything else passed over.
//!
//! Nothing in a valid JSON object makes reading fail: a field of another kind than expected is absent, of two fields
//! with one name the first counts, and strings stay tokens because a Rust `str` cannot hold every one of them.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use steno_model::json::{Fields, JsonString, RawJson, text_is, text_of};

/// An object of a provider, read field by field.
pub(crate) trait WireObject<'de>: Sized {
    /// Reads the fields as they come.
    fn read_fields<A: MapAccess<'de>>(map: A) -> Result<Self, A::Error>;

    /// Picks the fields from an object that is split already.
    fn pick_fields(fields: &Fields<'de>) -> Self;
}

/// A raw field, absent or null included.
pub(crate) type Raw<'a> = Option<&'a RawValue>;

/// What can be asked of a raw field.
pub(crate) trait RawField<'a> {
    /// Decodes it if it is a string.
    fn text(self) -> Option<Cow<'a, str>>;
    /// Keeps it if it is a string.
    fn string(self) -> Option<JsonString>;
    /// Keeps it if it is there and not null.
    fn json(self) -> Option<RawJson>;
    /// Tells whether it is the string `text`.
    fn is(self, text: &str) -> bool;
    /// Tells whether it is `true`.
    fn is_true(&self) -> bool;
    /// Reads it if it is a whole number; `30000.0` is one.
    fn number(self) -> Option<i64>;
}

impl<'a> RawField<'a> for Raw<'a> {
    fn text(self) -> Option<Cow<'a, str>> {
        self.and_then(text_of)
    }

    fn string(self) -> Option<JsonString> {
        self.and_then(JsonString::from_raw)
    }

    fn json(self) -> Option<RawJson> {
        self.filter(|raw| raw.get() != "null").map(RawJson::from_raw)
    }

    fn is(self, text: &str) -> bool {
        self.is_some_and(|raw| text_is(raw, text))
    }

    fn is_true(&self) -> bool {
        self.is_some_and(|raw| raw.get() == "true")
    }

    fn number(self) -> Option<i64> {
        let text = self?.get();
        text.strip_suffix(".0").unwrap_or(text).parse().ok()
    }
}

/// Reads one object out of `raw`; `None` when it is none.
pub(crate) fn object<'a, T: WireObject<'a>>(raw: &'a RawValue) -> Option<T> {
    parse(raw.get()).ok()
}

/// Why a text is no object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NoObject;

/// Reads a text that should be one JSON object.
pub(crate) fn parse<'a, T: WireObject<'a>>(text: &'a str) -> Result<T, NoObject> {
    match serde_json::from_str::<Lenient<T>>(text) {
        Ok(Lenient(read)) => read.ok_or(NoObject),
        // Where an object was expected, a number beyond all bounds or a string with half a character stops the quick
        // way. The slow one looks at nothing that it need not.
        Err(_) => Fields::parse(text).map(|fields| T::pick_fields(&fields)).map_err(|_| NoObject),
    }
}

/// Reads an array of objects out of `raw`, each with its raw form; `None` when it is no array.
///
/// Elements that are no objects come out as `None`, in their place.
pub(crate) fn objects<'a, T: WireObject<'a>>(raw: &'a RawValue) -> Option<Vec<(&'a RawValue, Option<T>)>> {
    let raws: Vec<&RawValue> = serde_json::from_str(raw.get()).ok()?;
    Some(raws.into_iter().map(|raw| (raw, object(raw))).collect())
}

/// Reads an array of objects out of `raw` in one pass; `None` when it is no array.
///
/// Elements that are no objects come out as `None`, in their place.
pub(crate) fn list<'a, T: WireObject<'a>>(raw: &'a RawValue) -> Option<Vec<Option<T>>> {
    match serde_json::from_str::<Vec<Lenient<T>>>(raw.get()) {
        Ok(items) => Some(items.into_iter().map(|item| item.0).collect()),
        // What stops the quick way in one element must not cost the others.
        Err(_) => objects(raw).map(|items| items.into_iter().map(|(_, item)| item).collect()),
    }
}

/// A value that may be an object of this shape; another kind of value is passed over.
pub(crate) struct Lenient<T>(pub(crate) Option<T>);

impl<'de, T: WireObject<'de>> Deserialize<'de> for Lenient<T> {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        source.deserialize_any(LenientVisitor(PhantomData))
    }
}

struct LenientVisitor<T>(PhantomData<T>);

impl<'de, T: WireObject<'de>> Visitor<'de> for LenientVisitor<T> {
    type Value = Lenient<T>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a JSON value")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        T::read_fields(map).map(|read| Lenient(Some(read)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Lenient(None))
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        Ok(Lenient(None))
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
        Ok(Lenient(None))
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
        Ok(Lenient(None))
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
        Ok(Lenient(None))
    }

    fn visit_str<E>(self, _: &str) -> Result<Self::Value, E> {
        Ok(Lenient(None))
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Lenient(None))
    }
}

/// Declares an object of a provider: `name: "key"` is a raw field, `name: "key" => Type` an object inside it.
macro_rules! wire {
    ($(#[$meta:meta])* $vis:vis struct $name:ident { $($field:ident: $key:literal $(=> $inner:ident)?,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Default)]
        $vis struct $name<'a> {
            $($vis $field: wire!(@type $($inner)?),)*
        }

        impl<'de> $crate::wire::WireObject<'de> for $name<'de> {
            fn read_fields<A: serde::de::MapAccess<'de>>(mut map: A) -> Result<Self, A::Error> {
                let mut read = Self::default();
                while let Some(key) = map.next_key::<&serde_json::value::RawValue>()? {
                    match key.get() {
                        $(concat!("\"", $key, "\"") if read.$field.is_none() => {
                            wire!(@read read.$field, map $(, $inner)?);
                        })*
                        _ => { map.next_value::<serde::de::IgnoredAny>()?; }
                    }
                }
                Ok(read)
            }

            fn pick_fields(fields: &steno_model::json::Fields<'de>) -> Self {
                let mut read = Self::default();
                for (key, value) in fields.iter() {
                    match &*key.text() {
                        $($key if read.$field.is_none() => wire!(@pick read.$field, value $(, $inner)?),)*
                        _ => {}
                    }
                }
                read
            }
        }
    };
    (@type) => { $crate::wire::Raw<'a> };
    (@type $inner:ident) => { Option<$inner<'a>> };
    (@read $target:expr, $map:ident) => { $target = Some($map.next_value()?) };
    (@read $target:expr, $map:ident, $inner:ident) => {
        $target = $map.next_value::<$crate::wire::Lenient<$inner<'de>>>()?.0
    };
    (@pick $target:expr, $value:ident) => { $target = Some($value) };
    (@pick $target:expr, $value:ident, $inner:ident) => { $target = $crate::wire::object::<$inner<'de>>($value) };
}
pub(crate) use wire;

#[cfg(test)]
mod tests {
    use super::*;

    wire! {
        struct Inner { x: "x", }
    }
    wire! {
        struct Outer { id: "id", inner: "inner" => Inner, }
    }

    #[track_caller]
    fn check(text: &str, id: Option<&str>, x: Option<&str>) {
        let raw: &RawValue = serde_json::from_str(text).unwrap();
        let read: Outer<'_> = object(raw).unwrap();
        assert_eq!(read.id.map(RawValue::get), id, "{text}");
        assert_eq!(read.inner.and_then(|inner| inner.x).map(RawValue::get), x, "{text}");
    }

    #[test]
    fn fields_are_read_whatever_stands_beside_them() {
        check(r#"{"a":[1,{"id":3}],"id":"i","inner":{"y":1,"x":[2]}}"#, Some("\"i\""), Some("[2]"));
        check(r#"{"id":1,"id":2}"#, Some("1"), None);
        check(r#"{"id":"\ud800"}"#, Some(r#""\ud800""#), None);
        for inner in ["null", "[[1]]", "\"s\"", "1e400", "-1", "true"] {
            check(&format!(r#"{{"inner":{inner},"id":7}}"#), Some("7"), None);
        }
    }

    #[test]
    fn deep_values_are_passed_over_without_recursion() {
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        check(&format!(r#"{{"z":{deep},"inner":{deep},"id":1}}"#), Some("1"), None);
    }

    #[test]
    fn what_is_no_object_is_none() {
        for text in ["1", "[]", "\"x\"", "null"] {
            let raw: &RawValue = serde_json::from_str(text).unwrap();
            assert!(object::<Outer<'_>>(raw).is_none(), "{text}");
        }
    }

    #[test]
    fn raw_fields_answer_for_themselves() {
        let raw = |text| Some(serde_json::from_str::<&RawValue>(text).unwrap());
        assert_eq!(raw("30000.0").number(), Some(30_000));
        assert_eq!(raw("-1").number(), Some(-1));
        assert_eq!(raw("\"1\"").number(), None);
        assert!(raw("true").is_true() && !raw("\"true\"").is_true());
        assert!(raw("\"a\\u0062\"").is("ab"));
        assert_eq!(raw("null").json(), None);
    }
}
