//! JSON-RPC 2.0, as ACP and MCP speak it: messages, the notes of our recorder, and what waits until its run begins.

mod sniff;

use serde_json::value::RawValue;
use steno_model::EntryType;
use steno_model::json::{Extra, JsonString};

use crate::emit::{Emit, PendingRecord, push};
use crate::run::Run;
use crate::shapes::words;
use crate::wire::{Raw, RawField as _, object, parse, wire};

pub(crate) use self::sniff::{rpc_surface, rpc_version};

/// How many notes wait at most; with the next one the run begins without having been announced.
const WAITING_LEN_MAX: usize = 1024;

/// The notes of our recorder: how a connection began, messages that it could not write, how the server ended.
pub(crate) const BEGAN: &str = "steno/began";
pub(crate) const MISSING: &str = "steno/missing";
pub(crate) const ENDED: &str = "steno/ended";

wire! {
    /// A message: a request, a notice or an answer.
    pub(crate) struct RpcMessage { id: "id", method: "method", params: "params", result: "result", error: "error", }
}

wire! {
    struct RpcError { message: "message", }
}

wire! {
    /// How the server's process ended.
    pub(crate) struct ServerEnd { exit_code: "exit_code", signal: "signal", }
}

impl ServerEnd<'_> {
    /// Reads the note; `None` if it does not say how the server ended.
    pub(crate) fn read(params: Raw<'_>) -> Option<Extra> {
        let end = params.and_then(object::<ServerEnd<'_>>)?;
        if end.exit_code.number().is_none() && end.signal.number().is_none() {
            return None;
        }
        let mut extra = Extra::default();
        push(&mut extra, "exit_code", end.exit_code.json());
        push(&mut extra, "signal", end.signal.json());
        Some(extra)
    }
}

/// What a message is, by the fields that it has.
pub(crate) enum RpcKind<'a> {
    Request {
        method: std::borrow::Cow<'a, str>,
        id: &'a RawValue,
    },
    Notice {
        method: std::borrow::Cow<'a, str>,
    },
    Answer {
        id: &'a RawValue,
    },
    /// Nothing that the protocol knows.
    Other,
}

impl<'a> RpcMessage<'a> {
    pub(crate) fn kind(&self) -> RpcKind<'a> {
        let id = self.id.filter(|id| id.get() != "null");
        match (self.method.text(), id) {
            (Some(method), Some(id)) => RpcKind::Request { method, id },
            (Some(method), None) => RpcKind::Notice { method },
            (None, Some(id)) if self.result.is_some() || self.error.is_some() => RpcKind::Answer { id },
            (None, _) => RpcKind::Other,
        }
    }

    /// Returns the error of an answer that failed.
    pub(crate) fn failure(&self) -> Option<JsonString> {
        let error = self.error.filter(|error| error.get() != "null")?;
        let message = object::<RpcError<'_>>(error).and_then(|error| error.message.string());
        message.filter(|message| !message.is_empty()).or_else(|| words(Some(error)))
    }

    /// Returns the content of a message: its parameters, its result or its error.
    pub(crate) fn content(&self) -> Raw<'a> {
        self.params.or(self.result).or(self.error)
    }
}

/// Returns the content of a message as the detail of its entry; all of it if it has none.
pub(crate) fn content_of(text: &str) -> &str {
    let message = parse::<RpcMessage<'_>>(text).unwrap_or_default();
    message.content().map_or(text, RawValue::get)
}

/// A record that is neither said nor called.
pub(crate) enum Note {
    /// Something that cannot be read, and why.
    Unreadable(String),
    /// A fact with this name; the content of the message is its result.
    Fact(String),
    /// A message of an unknown kind, by the name that it is counted under.
    Unknown(String),
    /// A request of this method that failed.
    Failed { method: String, error: JsonString },
}

impl Note {
    /// Writes the event and the entry.
    pub(crate) fn write(&self, run: &Run, emit: &mut Emit<'_>) {
        let text = emit.text();
        match self {
            Self::Unreadable(why) => {
                emit.unknown(run, "unreadable", Some(why));
                emit.entry(run, EntryType::Unknown, None);
            }
            Self::Fact(name) => {
                let message = parse::<RpcMessage<'_>>(text).unwrap_or_default();
                emit.system(run, name, message.content().json());
                emit.entry_with(run, EntryType::SystemEvent, Some(name), content_of(text));
            }
            Self::Unknown(name) => {
                emit.unknown(run, name, None);
                emit.entry_with(run, EntryType::Unknown, None, content_of(text));
            }
            Self::Failed { method, error } => {
                emit.error(run, method, &error.to_text());
                emit.entry_with(run, EntryType::Error, None, content_of(text));
            }
        }
    }
}

/// Notes from before the first run, in order.
#[derive(Default)]
pub(crate) struct EarlyNotes(Vec<(PendingRecord, Note)>);

impl EarlyNotes {
    /// Keeps a note; false when no more may wait after it.
    #[must_use]
    pub(crate) fn keep(&mut self, note: Note, emit: &Emit<'_>) -> bool {
        self.0.push((emit.hold(), note));
        self.0.len() < WAITING_LEN_MAX
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Writes the notes where they are in the source, after the beginning of the run. Nothing may have been written before.
    pub(crate) fn write(
        &mut self,
        run: &mut Run,
        begin: impl Fn(&mut Run, &mut Emit<'_>),
        emit: &mut Emit<'_>,
    ) {
        for (held, note) in std::mem::take(&mut self.0) {
            emit.release(&held, |emit| {
                begin(run, emit);
                note.write(run, emit);
            });
        }
        begin(run, emit);
    }
}
