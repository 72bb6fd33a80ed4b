//! Notes: records that are neither messages nor calls. They wait until their run begins.

use serde_json::value::RawValue;
use steno_model::EntryType;
use steno_model::json::JsonString;

use super::app_notices::entry_of;
use super::wire::Message;
use crate::emit::{Emit, PendingRecord};
use crate::run::Run;
use crate::wire::{Raw, RawField as _, parse};

/// The maximum number of waiting notes; the next one begins the run without an announcement.
const WAITING_LEN_MAX: usize = 1024;

/// A record that is neither a message nor a call.
pub(super) enum Note {
    /// An unreadable part, with the reason.
    Unreadable(String),
    /// A message of a connection that is a fact, with its method. The parameters are its content.
    Fact(String),
    /// An unknown record, with the name under which it is counted.
    Unknown(String),
    /// A request of this method that failed.
    Failed { method: String, error: JsonString },
}

impl Note {
    /// Writes the event and the entry.
    pub(super) fn write(&self, run: &Run, params: Raw<'_>, emit: &mut Emit<'_>) {
        self.write_event(run, params, emit);
        self.write_entry(run, params, emit);
    }

    fn write_event(&self, run: &Run, params: Raw<'_>, emit: &mut Emit<'_>) {
        match self {
            Self::Unreadable(why) => emit.unknown(run, "unreadable", Some(why)),
            Self::Fact(name) => emit.system(run, name, params.json()),
            Self::Unknown(name) => emit.unknown(run, name, None),
            Self::Failed { method, error } => emit.error(run, method, &error.to_text()),
        }
    }

    fn write_entry(&self, run: &Run, params: Raw<'_>, emit: &mut Emit<'_>) {
        match self {
            Self::Unreadable(_) => emit.entry(run, EntryType::Unknown, None),
            Self::Unknown(_) => emit.entry_with(run, EntryType::Unknown, None, params_of(emit.text())),
            Self::Fact(name) => {
                let (entry_type, subtype) = entry_of(name);
                emit.entry_with(run, entry_type, subtype, params.map_or("null", RawValue::get));
            }
            Self::Failed { .. } => emit.entry(run, EntryType::Error, None),
        }
    }
}

/// Returns the detail of a message's entry: its parameters, or the whole message if it has none.
pub(super) fn params_of(text: &str) -> &str {
    let params = parse::<Message<'_>>(text).ok().and_then(|message| message.params);
    params.map_or(text, RawValue::get)
}

/// A waiting note.
pub(super) struct Waiter {
    record: PendingRecord,
    /// Its thread; none means the first thread that appears.
    pub(super) thread: Option<String>,
    note: Note,
}

impl Waiter {
    /// Writes the note at its position in the source, after the start of the run if that is not written yet. Allowed
    /// only while no later event is written.
    pub(super) fn write_at_its_place(
        &self,
        run: &mut Run,
        begin: impl FnOnce(&mut Run, &mut Emit<'_>),
        emit: &mut Emit<'_>,
    ) {
        emit.release(&self.record, |emit| {
            begin(run, emit);
            self.note.write(run, self.params(), emit);
        });
    }

    /// Writes the note with the current record, so that positions rise; its entry has its own record.
    pub(super) fn write_late(&self, run: &Run, emit: &mut Emit<'_>) {
        self.note.write_event(run, self.params(), emit);
        emit.release(&self.record, |emit| self.note.write_entry(run, self.params(), emit));
    }

    fn params(&self) -> Raw<'_> {
        parse::<Message<'_>>(self.record.text()).ok().and_then(|message| message.params)
    }
}

/// The waiting notes, in order.
#[derive(Default)]
pub(super) struct WaitingNotes(Vec<Waiter>);

impl WaitingNotes {
    /// Keeps a note; false if the limit is reached.
    #[must_use]
    pub(super) fn keep(&mut self, thread: Option<&str>, note: Note, emit: &Emit<'_>) -> bool {
        self.0.push(Waiter { record: emit.hold(), thread: thread.map(str::to_owned), note });
        self.0.len() < WAITING_LEN_MAX
    }

    /// Removes and returns the notes that fit.
    pub(super) fn take(&mut self, fits: impl Fn(&Waiter) -> bool) -> Vec<Waiter> {
        let (taken, left) = std::mem::take(&mut self.0).into_iter().partition(fits);
        self.0 = left;
        taken
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the first thread that a note waits for. Notes without a thread also go to it; if there are only such
    /// notes, the name is empty.
    pub(super) fn next_thread(&self) -> Option<String> {
        let named = self.0.iter().find_map(|waiter| waiter.thread.clone());
        named.or_else(|| self.0.first().map(|_| String::new()))
    }
}
