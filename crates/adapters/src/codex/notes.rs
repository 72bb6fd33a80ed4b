//! What is told beside the work, and where it waits until the run that it belongs to has begun.

use serde_json::value::RawValue;
use steno_model::EntryType;
use steno_model::json::JsonString;

use super::app_notices::entry_of;
use super::wire::Message;
use crate::emit::{Emit, PendingRecord};
use crate::run::Run;
use crate::wire::{Raw, RawField as _, parse};

/// How many notes wait at most; with the next one the run begins without having been announced.
const WAITING_LEN_MAX: usize = 1024;

/// What is told of a record that is neither said nor called.
pub(super) enum Note {
    /// Something that cannot be read, and why.
    Unreadable(String),
    /// A message of a connection that is a fact, by its method; the parameters are what it says.
    Fact(String),
    /// A record that nobody knows, by the name that it is counted under.
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

/// Returns what a message says that is the detail of its entry: its parameters, or all of it if it has none.
pub(super) fn params_of(text: &str) -> &str {
    let params = parse::<Message<'_>>(text).ok().and_then(|message| message.params);
    params.map_or(text, RawValue::get)
}

/// A note that waits.
pub(super) struct Waiter {
    held: PendingRecord,
    /// The thread that it is for; none for the first that there will be.
    pub(super) thread: Option<String>,
    note: Note,
}

impl Waiter {
    /// Writes the note where it stands in the source, after the run's beginning if that is still to come; only right
    /// while nothing was written of what follows it.
    pub(super) fn write_at_its_place(
        &self,
        run: &mut Run,
        begin: impl FnOnce(&mut Run, &mut Emit<'_>),
        emit: &mut Emit<'_>,
    ) {
        emit.release(&self.held, |emit| {
            begin(run, emit);
            self.note.write(run, self.params(), emit);
        });
    }

    /// Writes the note with the record that is being read, so that positions rise; its entry has its own record.
    pub(super) fn write_late(&self, run: &Run, emit: &mut Emit<'_>) {
        self.note.write_event(run, self.params(), emit);
        emit.release(&self.held, |emit| self.note.write_entry(run, self.params(), emit));
    }

    fn params(&self) -> Raw<'_> {
        parse::<Message<'_>>(self.held.text()).ok().and_then(|message| message.params)
    }
}

/// What waits, in order.
#[derive(Default)]
pub(super) struct WaitingNotes(Vec<Waiter>);

impl WaitingNotes {
    /// Keeps a note; false when no more may wait after it.
    #[must_use]
    pub(super) fn keep(&mut self, thread: Option<&str>, note: Note, emit: &Emit<'_>) -> bool {
        self.0.push(Waiter { held: emit.hold(), thread: thread.map(str::to_owned), note });
        self.0.len() < WAITING_LEN_MAX
    }

    /// Hands over what waits and fits.
    pub(super) fn take(&mut self, fits: impl Fn(&Waiter) -> bool) -> Vec<Waiter> {
        let (taken, left) = std::mem::take(&mut self.0).into_iter().partition(fits);
        self.0 = left;
        taken
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the first thread that something waits for. What waits for none goes to it too, so that it comes last
    /// and without a name.
    pub(super) fn next_thread(&self) -> Option<String> {
        let named = self.0.iter().find_map(|waiter| waiter.thread.clone());
        named.or_else(|| self.0.first().map(|_| String::new()))
    }
}
