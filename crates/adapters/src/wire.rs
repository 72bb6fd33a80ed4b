//! Reads providers' objects in one pass: the fields that we use as raw JSON, everything else is skipped.
//!
//! Nothing in a valid JSON object makes reading fail: a field of another kind than expected is absent, of two fields
//! with one name the first counts, and strings stay tokens because a Rust `str` cannot hold every one of them.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use steno_model::json::{Fields, JsonString, RawJson, from_str, text_is, text_of};

/// An object of a provider, read field by field.
pub(crate) trait WireObject<'de>: Sized {
    /// Reads the fields as they come.
    fn read_fields<A: MapAccess<'de>>(map: A) -> Result<Self, A::Error>;

    /// Picks the fields from an object that is split already.
    fn pick_fields(fields: &Fields<'de>) -> Self;

    /// Tells whether a field, here or in an object inside, holds another kind of value than its provider writes there.
    fn is_odd(&self) -> bool;
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

/// Reads one object from `raw`; `None` if it is not an object.
pub(crate) fn object<'a, T: WireObject<'a>>(raw: &'a RawValue) -> Option<T> {
    parse(raw.get()).ok()
}

/// The error for a text that is not an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NoObject;

/// Reads a text that should be one JSON object.
pub(crate) fn parse<'a, T: WireObject<'a>>(text: &'a str) -> Result<T, NoObject> {
    match from_str::<Lenient<T>>(text) {
        Ok(Lenient::Object(read)) => Ok(read),
        Ok(Lenient::Null | Lenient::Other) => Err(NoObject),
        // A number out of range or a lone surrogate where an object was expected stops the fast path. The slow path
        // skips such values.
        Err(_) => Fields::parse(text).map(|fields| T::pick_fields(&fields)).map_err(|_| NoObject),
    }
}

/// Reads an array of objects out of `raw`, each with its raw form; `None` if it is not an array.
///
/// Elements that are not objects become `None`.
pub(crate) fn objects<'a, T: WireObject<'a>>(raw: &'a RawValue) -> Option<Vec<(&'a RawValue, Option<T>)>> {
    let raws: Vec<&RawValue> = from_str(raw.get()).ok()?;
    Some(raws.into_iter().map(|raw| (raw, object(raw))).collect())
}

/// Reads an array of objects out of `raw` in one pass; `None` if it is not an array.
///
/// Elements that are not objects become `None`.
pub(crate) fn list<'a, T: WireObject<'a>>(raw: &'a RawValue) -> Option<Vec<Option<T>>> {
    match from_str::<LenientList<T>>(raw.get()) {
        Ok(list) => list.items(),
        // A value that stops the fast path in one element must not lose the others.
        Err(_) => objects(raw).map(|items| items.into_iter().map(|(_, item)| item).collect()),
    }
}

/// A value that may be an object of this shape; other kinds of values are ignored.
pub(crate) enum Lenient<T> {
    Object(T),
    Null,
    Other,
}

impl<T> Lenient<T> {
    /// Returns the object if it is one.
    pub(crate) fn object(self) -> Option<T> {
        match self {
            Self::Object(object) => Some(object),
            Self::Null | Self::Other => None,
        }
    }
}

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
        T::read_fields(map).map(Lenient::Object)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Lenient::Other)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        Ok(Lenient::Other)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
        Ok(Lenient::Other)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
        Ok(Lenient::Other)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
        Ok(Lenient::Other)
    }

    fn visit_str<E>(self, _: &str) -> Result<Self::Value, E> {
        Ok(Lenient::Other)
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Lenient::Null)
    }
}

/// A value that may be a list of objects of this shape; other kinds of values are ignored.
pub(crate) enum LenientList<T> {
    /// Elements that are not objects are `None`.
    Items(Vec<Option<T>>),
    Null,
    Other,
}

impl<T> LenientList<T> {
    /// Returns the elements if it is a list.
    pub(crate) fn items(self) -> Option<Vec<Option<T>>> {
        match self {
            Self::Items(items) => Some(items),
            Self::Null | Self::Other => None,
        }
    }
}

impl<'de, T: WireObject<'de>> Deserialize<'de> for LenientList<T> {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        source.deserialize_any(LenientListVisitor(PhantomData))
    }
}

struct LenientListVisitor<T>(PhantomData<T>);

impl<'de, T: WireObject<'de>> Visitor<'de> for LenientListVisitor<T> {
    type Value = LenientList<T>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a JSON value")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        let mut all = Vec::new();
        while let Some(item) = items.next_element::<Lenient<T>>()? {
            all.push(item.object());
        }
        Ok(LenientList::Items(all))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(LenientList::Other)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        Ok(LenientList::Other)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
        Ok(LenientList::Other)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
        Ok(LenientList::Other)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
        Ok(LenientList::Other)
    }

    fn visit_str<E>(self, _: &str) -> Result<Self::Value, E> {
        Ok(LenientList::Other)
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(LenientList::Null)
    }
}

/// Declares an object of a provider: `name: "key"` is a raw field of any kind, `name: "key" as Text` one that holds a text
/// (or another [`Kind`](crate::shapes::Kind)), `name: "key" => Type` an object inside it. With `lists` before it an
/// object may have fields `name: "key" of Type`, which are lists of objects, read in the same pass.
macro_rules! wire {
    (lists $(#[$meta:meta])* $vis:vis struct $name:ident { $($fields:tt)* }) => {
        wire! { @struct $(#[$meta])* #[derive(Default)] $vis struct $name { $($fields)* } }
    };
    (@struct $(#[$meta:meta])* $vis:vis struct $name:ident {
        $($field:ident: $key:literal $(as $kind:ident)? $(of $item:ident)? $(=> $inner:ident)?,)*
    }) => {
        $(#[$meta])*
        $vis struct $name<'a> {
            $($vis $field: wire!(@type $(of $item)? $($inner)?),)*
            $vis has_odd_field: bool,
        }

        impl<'de> $crate::wire::WireObject<'de> for $name<'de> {
            fn read_fields<A: serde::de::MapAccess<'de>>(mut map: A) -> Result<Self, A::Error> {
                let mut read = Self::default();
                while let Some(key) = map.next_key::<&serde_json::value::RawValue>()? {
                    match key.get() {
                        $(concat!("\"", $key, "\"") if read.$field.is_none() => {
                            wire!(@read read, $field, map $(, as $kind)? $(, of $item)? $(, $inner)?);
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
                        $($key if read.$field.is_none() => {
                            wire!(@pick read, $field, value $(, as $kind)? $(, of $item)? $(, $inner)?);
                        })*
                        _ => {}
                    }
                }
                read
            }

            fn is_odd(&self) -> bool {
                self.has_odd_field $($(|| wire!(@inner self, $field, $inner))?)*
            }
        }
    };
    (@type) => { $crate::wire::Raw<'a> };
    (@type of $item:ident) => { Option<Vec<Option<$item<'a>>>> };
    (@type $inner:ident) => { Option<$inner<'a>> };
    (@read $read:ident, $field:ident, $map:ident) => { $read.$field = Some($map.next_value()?) };
    (@read $read:ident, $field:ident, $map:ident, as $kind:ident) => {
        wire!(@pick $read, $field, ($map.next_value()?), as $kind)
    };
    (@read $read:ident, $field:ident, $map:ident, of $item:ident) => {
        let value = $map.next_value::<$crate::wire::LenientList<$item<'de>>>()?;
        $read.has_odd_field |= matches!(value, $crate::wire::LenientList::Other);
        $read.$field = value.items();
    };
    (@read $read:ident, $field:ident, $map:ident, $inner:ident) => {
        let value = $map.next_value::<$crate::wire::Lenient<$inner<'de>>>()?;
        $read.has_odd_field |= matches!(value, $crate::wire::Lenient::Other);
        $read.$field = value.object();
    };
    (@pick $read:ident, $field:ident, $value:tt) => { $read.$field = Some($value) };
    (@pick $read:ident, $field:ident, $value:tt, as $kind:ident) => {
        let value: &serde_json::value::RawValue = $value;
        $read.has_odd_field |= !$crate::shapes::Kind::$kind.fits(value);
        $read.$field = Some(value);
    };
    (@pick $read:ident, $field:ident, $value:tt, of $item:ident) => {
        $read.$field = $crate::wire::list::<$item<'de>>($value);
        $read.has_odd_field |= $read.$field.is_none() && $value.get() != "null";
    };
    (@pick $read:ident, $field:ident, $value:tt, $inner:ident) => {
        $read.$field = $crate::wire::object::<$inner<'de>>($value);
        $read.has_odd_field |= $read.$field.is_none() && $value.get() != "null";
    };
    (@inner $self:ident, $field:ident, $inner:ident) => {
        $self.$field.is_some_and(|inner: $inner<'_>| $crate::wire::WireObject::is_odd(&inner))
    };
    ($(#[$meta:meta])* $vis:vis struct $name:ident { $($fields:tt)* }) => {
        wire! { @struct $(#[$meta])* #[derive(Clone, Copy, Default)] $vis struct $name { $($fields)* } }
    };
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
    fn fields_are_read_beside_any_other_fields() {
        check(r#"{"a":[1,{"id":3}],"id":"i","inner":{"y":1,"x":[2]}}"#, Some("\"i\""), Some("[2]"));
        check(r#"{"id":1,"id":2}"#, Some("1"), None);
        check(r#"{"id":"\ud800"}"#, Some(r#""\ud800""#), None);
        for inner in ["null", "[[1]]", "\"s\"", "1e400", "-1", "true"] {
            check(&format!(r#"{{"inner":{inner},"id":7}}"#), Some("7"), None);
        }
    }

    #[test]
    fn wrong_kind_of_value_is_odd_in_both_readers() {
        wire! {
            struct Kinds { id: "id" as Text, flag: "flag" as Flag, outer: "outer" => Outer, any: "any", }
        }
        let check = |text: &str, want| {
            let quick: Kinds<'_> = serde_json::from_str::<Lenient<_>>(text).unwrap().object().unwrap();
            let slow = Kinds::pick_fields(&Fields::parse(text).unwrap());
            assert_eq!((quick.is_odd(), slow.is_odd()), (want, want), "{text}");
            assert_eq!(quick.any.map(RawValue::get), slow.any.map(RawValue::get));
            assert_eq!((quick.id.is_some(), quick.flag.is_some()), (slow.id.is_some(), slow.flag.is_some()));
        };
        check(r#"{"id":"i","flag":false,"outer":{"inner":{}},"any":7}"#, false);
        check(r#"{"id":null,"flag":null,"outer":{"inner":null}}"#, false);
        for odd in [r#"{"id":7}"#, r#"{"flag":"true"}"#, r#"{"outer":[]}"#, r#"{"outer":{"inner":"i"}}"#] {
            check(odd, true);
        }
    }

    #[test]
    fn lists_are_read_with_their_object_by_both_readers() {
        wire! {
            lists
            struct Listing { inners: "inners" of Inner, id: "id", }
        }
        let check = |text: &str, want: Option<&[Option<&str>]>, is_odd| {
            let quick = serde_json::from_str::<Lenient<Listing<'_>>>(text).ok().and_then(Lenient::object);
            let slow = Listing::pick_fields(&Fields::parse(text).unwrap());
            for read in [Some(&slow), quick.as_ref()].into_iter().flatten() {
                let xs = |items: &Vec<Option<Inner<'_>>>| -> Vec<Option<String>> {
                    items
                        .iter()
                        .map(|item| item.map(|item| item.x.map_or("", RawValue::get).to_owned()))
                        .collect()
                };
                let got = read.inners.as_ref().map(xs);
                let want = want.map(|want| want.iter().map(|x| x.map(str::to_owned)).collect::<Vec<_>>());
                assert_eq!((got, read.is_odd(), read.id.is_some()), (want, is_odd, true), "{text}");
            }
        };
        check(
            r#"{"inners":[{"x":1},7,null,{"y":[]}],"id":1}"#,
            Some(&[Some("1"), None, None, Some("")]),
            false,
        );
        check(r#"{"inners":[{"x":1e400},1e400],"id":1}"#, Some(&[Some("1e400"), None]), false);
        check(r#"{"inners":[],"id":1}"#, Some(&[]), false);
        check(r#"{"inners":null,"id":1}"#, None, false);
        for odd in ["{}", r#"{"x":[{}]}"#, "1", "-1", "0.5", "true", "\"s\""] {
            check(&format!(r#"{{"inners":{odd},"id":1}}"#), None, true);
        }
    }

    #[test]
    fn deep_values_are_skipped_without_recursion() {
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        check(&format!(r#"{{"z":{deep},"inner":{deep},"id":1}}"#), Some("1"), None);
    }

    #[test]
    fn object_returns_none_for_other_values() {
        for text in ["1", "[]", "\"x\"", "null"] {
            let raw: &RawValue = serde_json::from_str(text).unwrap();
            assert!(object::<Outer<'_>>(raw).is_none(), "{text}");
        }
    }

    #[test]
    fn raw_values_convert_to_numbers_flags_and_text() {
        let raw = |text| Some(serde_json::from_str::<&RawValue>(text).unwrap());
        assert_eq!(raw("30000.0").number(), Some(30_000));
        assert_eq!(raw("-1").number(), Some(-1));
        assert_eq!(raw("\"1\"").number(), None);
        assert!(raw("true").is_true() && !raw("\"true\"").is_true());
        assert!(raw("\"a\\u0062\"").is("ab"));
        assert_eq!(raw("null").json(), None);
    }
}
