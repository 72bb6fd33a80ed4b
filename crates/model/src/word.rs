//! Closed vocabularies: writers use only listed words; readers may meet newer ones.

use std::fmt;

use serde_json::value::RawValue;

use crate::Error;
use crate::json::{JsonString, RawJson};

/// A closed list of words, each with one spelling.
pub trait Vocabulary: Copy + Eq + 'static {
    /// The name of the vocabulary in messages.
    const NAME: &'static str;
    /// Every word, in the order of the documents.
    const ALL: &'static [Self];

    /// Returns the word's spelling.
    fn as_str(self) -> &'static str;

    /// Finds a word by its spelling.
    #[must_use]
    fn find(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|word| word.as_str() == text)
    }
}

/// A word of a vocabulary as it was read: known, or unknown with its text unchanged (R52).
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Word<V> {
    /// A known word.
    Known(V),
    /// An unknown word, as its JSON string.
    Unknown(JsonString),
}

impl<V: Vocabulary> Word<V> {
    /// Reads a word.
    #[must_use]
    pub fn read(text: JsonString) -> Self {
        V::find(&text.to_text()).map_or(Self::Unknown(text), Self::Known)
    }

    /// Returns the word if it is known.
    #[must_use]
    pub fn known(&self) -> Option<V> {
        match self {
            Self::Known(word) => Some(*word),
            Self::Unknown(_) => None,
        }
    }

    /// Returns the word if it is known, else the error of a strict reader.
    pub(crate) fn check(&self) -> Result<V, Error> {
        match self {
            Self::Known(word) => Ok(*word),
            Self::Unknown(found) => Err(Error::UnknownWord { vocabulary: V::NAME, found: found.clone() }),
        }
    }

    /// Returns the word as a JSON string.
    #[must_use]
    pub fn to_json(&self) -> JsonString {
        match self {
            Self::Known(word) => word.as_str().into(),
            Self::Unknown(text) => text.clone(),
        }
    }
}

impl<V: Vocabulary> fmt::Display for Word<V> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Known(word) => out.write_str(word.as_str()),
            Self::Unknown(text) => fmt::Display::fmt(text, out),
        }
    }
}

impl<V: Vocabulary> serde::Serialize for Word<V> {
    fn serialize<S: serde::Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        self.to_json().serialize(out)
    }
}

impl<'de, V: Vocabulary> serde::Deserialize<'de> for Word<V> {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let raw = RawJson::deserialize(from)?;
        raw.read::<&RawValue>()
            .ok()
            .and_then(JsonString::from_raw)
            .map(Self::read)
            .ok_or_else(|| serde::de::Error::custom(format!("{} is a string", V::NAME)))
    }
}

/// Declares an enum as a vocabulary: variants, spellings, documentation.
macro_rules! vocabulary {
    ($(#[$meta:meta])* $name:ident, $called:literal { $($(#[$doc:meta])* $variant:ident = $text:literal),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $name { $($(#[$doc])* $variant),+ }

        impl $crate::Vocabulary for $name {
            const NAME: &'static str = $called;
            const ALL: &'static [Self] = &[$(Self::$variant),+];

            fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text),+ }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                out.write_str($crate::Vocabulary::as_str(*self))
            }
        }
    };
}
pub(crate) use vocabulary;
