//! Where an adapter's output goes: drafts of events and, on request, entries.

use steno_model::{Draft, EntrySource, EntryType, EventType, RunId, Timestamp};

/// Receives the output of an adapter, in order.
pub trait Sink {
    /// Takes the next event of a run.
    fn draft(&mut self, run: RunId, draft: Draft);

    /// Tells whether events of this type are wanted; others are numbered but not made.
    fn wants(&self, _event_type: EventType) -> bool {
        true
    }

    /// Tells whether events are wanted whole; else messages have no blocks, results no output, and no event its evidence.
    fn wants_whole(&self) -> bool {
        true
    }

    /// Tells whether entries are wanted; making them costs as much as the events do.
    fn wants_entries(&self) -> bool {
        false
    }

    /// Takes the next entry.
    fn entry(&mut self, _entry: AdapterEntry<'_>) {}
}

/// Drafts alone, kept in order.
impl Sink for Vec<(RunId, Draft)> {
    fn draft(&mut self, run: RunId, draft: Draft) {
        self.push((run, draft));
    }
}

/// An entry before it has a prompt's name and a number.
#[derive(Clone, Debug)]
pub struct AdapterEntry<'a> {
    /// The run that the record belongs to.
    pub run: RunId,
    /// The adapter's registered name.
    pub adapter: &'static str,
    /// Its type.
    pub entry_type: EntryType,
    /// Which of the session's agents it comes from.
    pub source: &'a EntrySource,
    /// The record's own time, or the one before it.
    pub timestamp: Option<&'a Timestamp>,
    /// When its bytes were captured, if the frame or, on a connection, the line has it.
    pub captured: Option<&'a Timestamp>,
    /// The provider's id for the session.
    pub session_id: Option<&'a str>,
    /// What the user said, if this is a prompt.
    pub text: Option<&'a str>,
    /// The provider's name for this kind of system event.
    pub subtype: Option<&'a str>,
    /// The key of the record in the entry's detail.
    pub detail_name: &'static str,
    /// The part of the record that is its detail, as JSON.
    pub detail: &'a str,
    /// The text of an item's deltas, if the record that completes it does not have it.
    pub accumulated: Option<&'a str>,
    /// The whole record, as it came.
    pub raw: &'a str,
    /// Why it cannot be read as a record, if so.
    pub unreadable: Option<&'static str>,
    /// Its generation of the source.
    pub generation: u32,
    /// The offset of its record in the generation.
    pub offset: u64,
}
