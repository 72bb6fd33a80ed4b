//! The state of an adapter: the current record, records of earlier generations, and pending records.

use std::sync::Arc;

use steno_model::json::{JsonString, RawJson};
use steno_model::{Packing, RunId, Timestamp};

use super::earlier_records::EarlierRecords;
use super::ledger::Ledger;
use crate::adapter::RecordOutcome;

/// The record that is being read.
#[derive(Clone, Copy)]
pub(crate) struct CurrentRecord<'a> {
    pub(crate) source: &'a JsonString,
    pub(crate) generation: u32,
    pub(crate) offset: u64,
    pub(crate) length: u64,
    pub(crate) unpacked: Option<Packing>,
    /// The record as JSON.
    pub(crate) text: &'a str,
    pub(crate) is_repaired: bool,
    /// Why the text cannot be read as a record, if it cannot.
    pub(crate) unreadable: Option<&'static str>,
}

impl<'a> CurrentRecord<'a> {
    /// Returns a position without a record, at the end of what was read.
    pub(crate) fn end_of(source: &'a JsonString, generation: u32, offset: u64) -> Self {
        Self {
            source,
            generation,
            offset,
            length: 0,
            unpacked: None,
            text: "null",
            is_repaired: false,
            unreadable: None,
        }
    }
}

/// What an adapter remembers between records, for any provider.
pub(crate) struct Memory {
    /// The last time of a record, or of capture on channels that use it.
    pub(crate) clock: Option<Timestamp>,
    /// When the bytes that are being read were captured, if they were captured live.
    pub(crate) captured: Option<Timestamp>,
    /// The outcomes of records that waited for their run.
    pub(crate) late: Vec<RecordOutcome>,
    /// The earlier records, unless the source is read only once.
    pub(crate) seen: Option<EarlierRecords>,
    /// The records that have no entry yet.
    pub(crate) ledger: Ledger,
    /// The command that printed the records, until its run has begun.
    pub(crate) wrapped: Option<WrappedCommand>,
    /// The run of that command, also after its beginning.
    pub(crate) wrap: Option<RunId>,
}

/// A command that we started: its first main run has the id that the command was given.
pub(crate) struct WrappedCommand {
    pub(crate) run: RunId,
    /// What is known about it.
    pub(crate) fields: RawJson,
}

impl Memory {
    /// Returns the time of what is written now.
    pub(super) fn time(&self) -> Option<&Timestamp> {
        self.clock.as_ref().or(self.captured.as_ref())
    }
}

impl Default for Memory {
    fn default() -> Self {
        Self {
            clock: None,
            captured: None,
            late: Vec::new(),
            seen: Some(EarlierRecords::default()),
            ledger: Ledger::default(),
            wrapped: None,
            wrap: None,
        }
    }
}

/// A record that is kept until it is known which run it belongs to.
pub(crate) struct PendingRecord {
    pub(super) generation: u32,
    pub(super) offset: u64,
    pub(super) length: u64,
    /// How many events the record had when it was kept.
    pub(super) part: u32,
    pub(super) unpacked: Option<Packing>,
    pub(super) text: Arc<str>,
    pub(super) is_repaired: bool,
    pub(super) unreadable: Option<&'static str>,
    pub(crate) clock: Option<Timestamp>,
    pub(super) captured: Option<Timestamp>,
    pub(super) is_inferred: bool,
}

impl PendingRecord {
    /// Returns the record as JSON.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }
}
