//! JSON as its original text: raw values, raw strings, objects split into raw fields.
//!
//! `serde_json::Value` changes what it parses (big integers, duplicate keys, key order) and `String` refuses lone
//! surrogates. So foreign JSON stays text here, checked to be valid.

mod depth;
mod digits;
mod extra;
mod fields;
mod raw;
mod read;
mod scan;
mod string;
mod write;

pub(crate) use depth::check_depth;
pub use depth::depth;
pub(crate) use digits::Digits;
pub use extra::{Extra, FieldName};
pub use fields::{Fields, Key};
pub use raw::RawJson;
pub use read::from_str;
pub use string::{JsonString, text_is, text_of};
pub use write::ObjectWriter;
