//! What an adapter knows beside the record at hand: where it stands, what was read before, what waits.

use std::collections::HashSet;
use std::hash::BuildHasher as _;

use steno_model::Timestamp;
use steno_model::json::JsonString;

/// The record that is being read.
#[derive(Clone, Copy)]
pub(crate) struct At<'a> {
    pub(crate) source: &'a JsonString,
    pub(crate) generation: u32,
    pub(crate) offset: u64,
    pub(crate) length: u64,
    /// The record as JSON.
    pub(crate) text: &'a str,
    pub(crate) is_repaired: bool,
}

/// The records that were read, so that a rewritten source gives no event twice.
#[derive(Default)]
pub(crate) struct Seen {
    ids: HashSet<u64>,
    hasher: foldhash::fast::FixedState,
}

impl Seen {
    /// Keeps the bytes of the record at a place; tells whether the same ones were there already.
    pub(super) fn keep_at(&mut self, ordinal: u64, text: &str) -> bool {
        !self.ids.insert(self.hasher.hash_one((ordinal, text)))
    }

    /// Keeps an id; tells whether it was there already.
    pub(super) fn keep(&mut self, id: &str) -> bool {
        !self.ids.insert(self.hasher.hash_one(id))
    }
}

/// What an adapter remembers from record to record, whatever its provider.
#[derive(Default)]
pub(crate) struct Memory {
    /// How many records of this generation came before.
    pub(crate) ordinal: u64,
    /// The last time that a record gave, or that of capture.
    pub(crate) clock: Option<Timestamp>,
    /// When the bytes that are being read were captured, if they were captured live.
    pub(crate) captured: Option<Timestamp>,
    pub(crate) seen: Seen,
}

/// A record that is kept until it is known which run it belongs to.
pub(crate) struct Held {
    pub(super) generation: u32,
    pub(super) offset: u64,
    pub(super) length: u64,
    pub(super) text: Box<str>,
    pub(super) is_repaired: bool,
    pub(super) clock: Option<Timestamp>,
    pub(super) is_inferred: bool,
}

impl Held {
    /// Returns the record as JSON.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }
}
