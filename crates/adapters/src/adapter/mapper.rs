//! What each surface implements: records in, events out.

use steno_model::Lane;

use crate::emit::{AdapterInfo, Emit};
use crate::run::Run;
use crate::wire::NoObject;

/// A record that was read.
#[derive(Clone, Copy)]
pub(crate) struct Record<'a> {
    pub(crate) lane: Lane,
    /// Whether it is a note of our recorder, not a message of either side.
    pub(crate) is_recorders: bool,
    /// Whether it is part of a document, which is rewritten whenever it changes.
    pub(crate) is_in_document: bool,
    pub(crate) text: &'a str,
}

/// What a mapper made of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RecordOutcome {
    /// It became events, or is a copy of what did.
    Understood,
    /// It is on the adapter's list of records without information about the work.
    Bookkeeping,
    /// It has a type that the adapter does not know.
    Unknown(String),
    /// It waits for its run to be known; its outcome follows then.
    Waiting,
}

/// What a record without an entry is.
pub(crate) enum LeftoverRecord<'a> {
    /// An unknown entry of a run, with this part of the record as its detail.
    Unknown { run: &'a Run, detail: &'a str },
    /// A delta of an item, which is part of the item's entry.
    Delta,
    /// Its run is not known yet.
    Waiting,
}

/// Maps the records of a surface to events. It holds the state of the session.
pub(crate) trait Mapper: Send {
    /// The description of its runs.
    fn about(&self) -> &'static AdapterInfo;

    /// Makes events from a record.
    ///
    /// # Errors
    /// [`NoObject`] if the text is not a JSON object; then nothing changes.
    fn record(&mut self, record: Record<'_>, emit: &mut Emit<'_>) -> Result<RecordOutcome, NoObject>;

    /// Notes a record that cannot be read.
    fn unreadable(&mut self, why: &str, emit: &mut Emit<'_>);

    /// Returns the run that facts of the source itself belong to, if it is known yet.
    fn run(&self) -> Option<&Run>;

    /// Classifies a record that the mapper has made no entry of.
    fn rest<'a>(&'a self, text: &'a str) -> LeftoverRecord<'a> {
        self.run().map_or(LeftoverRecord::Waiting, |run| LeftoverRecord::Unknown { run, detail: text })
    }

    /// Writes what waited for the source's session, now that it will not be named any more.
    fn finish(&mut self, emit: &mut Emit<'_>);
}
