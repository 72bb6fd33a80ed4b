//! The vocabulary of Stenograph: the types of all records, and how they are written and read.
//!
//! This crate only converts between bytes and types. It opens no file, reads no clock or environment and starts no
//! thread; what it needs of those is an argument. The same input gives the same output on every machine. The journal
//! decides order and durability, adapters know what a provider's record means, and views show records to people.
//!
//! # The model
//! A **run** is one execution, identified by its [`RunId`]. Its record is a file of lines, and a line is an
//! [`ExchangeEvent`]: an envelope around a payload.
//!
//! The **envelope** has the position of the event: `seq`, `run_id`, the parent and child runs if there are any
//! (`parent_run_id`, `child_run_id`), `type`, the step it happened in (`path`, `iteration`), `timestamp`, `payload`.
//! [`Envelope`] borrows it from a line, for readers that only count or check.
//!
//! The **type** is one of ten ([`EventType`]): a run begins or ends, a step begins or ends, a child run begins or ends
//! as its parent sees it, a message is sent (`message.user`, `message.assistant`), a tool is called or returns.
//! Everything else that happens in a session (turns, approvals, compactions, retries, unknown facts) is a step with its
//! own kind: the list of kinds is open, the list of types is closed.
//!
//! The **payload** has one of three shapes: [`StepPayload`], [`MessagePayload`], [`ToolPayload`]. A reader recognizes
//! the shape in a fixed order: an array is a list of blocks, an object with `role` is a message, with `call_id` a tool
//! event, with `kind` a step, and anything else is [`Payload::Other`]. Because of that order, a writer must not put a
//! `role` or a `call_id` into a step: [`Draft`] refuses it.
//!
//! A message is a list of **blocks** ([`ContentBlock`]), in order. There are six block types ([`BlockType`]), and a
//! block has only the fields of its type.
//!
//! Blocks and calls have a **fidelity** ([`Fidelity`]): `router` when our own router observed them, `agent_emitted`
//! when the agent reported them. A call observed on both channels is one call; the fidelity lets a view recognize that.
//!
//! An event begins as a [`Draft`]: everything except its `seq`, checked to be valid for writing. The journal encodes it
//! before it takes its lock ([`Draft::encode`]) and adds the number under the lock ([`EncodedDraft::write_line`]).
//!
//! **Entries** ([`TranscriptEntry`]) are a second vocabulary: one log record per observation of an adapter, nine types
//! ([`EntryType`]), numbered per source, summarized by [`TranscriptSummary`], wrapped for a structured log by
//! [`LogRecord`]. An entry is immutable. The **spine** ([`SpineRecord`], [`SpineDraft`]) is the third: an envelope
//! around the raw messages of a session, for replay and evaluation. [`Usage`] is a provider's token count under the
//! provider's own names; a [`Provider`] is an agent that we know.
//!
//! # Closed when writing, open when reading
//! A vocabulary is a closed list for writers and an open one for readers. [`Draft`] is the only way to a new line. It
//! accepts no word outside the lists, no payload of another shape than its type has, and no field twice.
//! [`ExchangeEvent::parse`] accepts any word: an unknown one becomes [`Word::Unknown`] with its text unchanged, unknown
//! fields become [`json::Extra`], and writing the event again gives the same line. So a file of a newer version loses
//! nothing when an older version reads and writes it.
//!
//! [`ExchangeEvent::unknowns`] reports what was not known. [`ExchangeEvent::parse_strict`] refuses it instead, with an
//! error for which [`Error::is_unknown_type`] is true, so that a newer line can be distinguished from a broken one.
//! Unknown fields are accepted by a strict reader too.
//!
//! # Raw JSON
//! Arguments, outputs, results and everything else from others are kept as their original text ([`json::RawJson`],
//! [`json::JsonString`]). The usual JSON types all change it: a number beyond 64 bits is rounded or refused, one of two
//! equal keys is lost, keys are sorted, `\u0041` becomes `A`, and a lone surrogate, which JavaScript programs do write,
//! does not fit into a Rust `String`. A record must not alter evidence. So a value is checked to be JSON and then kept
//! as bytes. Only line breaks between tokens are replaced by spaces, because a record is one line.
//! [`json::JsonString::to_text`] decodes text for display only.
//!
//! # Example
//! ```
//! use steno_model::json::RawJson;
//! use steno_model::{CallId, Draft, EventType, ExchangeEvent, Fidelity, Payload, RunId, Seq, Timestamp, ToolPayload};
//!
//! # fn main() -> Result<(), steno_model::Error> {
//! let run = RunId::parse("550e8400-e29b-41d4-a716-446655440000")?;
//! let now = || Timestamp::parse("2026-06-08T08:14:42.123Z").expect("a time");
//!
//! // Our own code builds a draft; a line from others is parsed into one.
//! let input = RawJson::parse(r#"{"path":"main.go","limit":123456789012345678901234567890}"#)?;
//! let call = ToolPayload::call("Read", CallId::from("toolu_01"), input, Fidelity::Router);
//! let built = Draft::new(EventType::ToolCall, &Payload::Tool(call))?.at("analyze").at_time(now());
//! let sent = r#"{"type":"run.paused"}"#;
//! assert!(Draft::parse(sent.as_bytes(), run).is_err_and(|error| error.is_unknown_type()));
//!
//! // The journal gives it a number and a line.
//! let mut line = Vec::new();
//! built.encode(run, now).write_line(Seq::FIRST, &mut line);
//!
//! // A reader gets back what was written, to the last digit.
//! let event = ExchangeEvent::parse(line.trim_ascii_end())?;
//! let Payload::Tool(read) = event.payload() else { panic!("a call was written") };
//! assert!(read.input.is_some_and(|input| input.as_str().ends_with("901234567890}")));
//! assert_eq!(format!("{}\n", event.to_line()).as_bytes(), line);
//!
//! // A line from the future is read, marked, and written back as it was.
//! let newer = event.to_line().replace("tool.call", "tool.dream");
//! let event = ExchangeEvent::parse(newer.as_bytes())?;
//! assert!(event.unknowns().event_type);
//! assert_eq!(event.to_line(), newer);
//! # Ok(())
//! # }
//! ```
//!
//! # Threat model
//! The input is assumed to be hostile: a model can be made to emit anything, and tools return what the network gave
//! them. No byte of it is trusted.
//!
//! - **Depth.** A value may nest [`limits::DEPTH_MAX`] levels; brackets are counted without recursion, before any code
//!   that would recurse. Deeper lines are refused when they are sent. A deeper line that is already in a file is still
//!   read, also without recursion.
//! - **Size.** A line may have [`limits::LINE_BYTES_MAX`] bytes. [`Draft::parse`] checks that before it parses; readers
//!   of files have to limit the line before they pass it on. The work grows linearly with the length of the line, even
//!   if it consists of field names only.
//! - **Duplicate keys.** Programs disagree on which of two equal keys counts, and an attacker can use the difference.
//!   In the envelope and among the known fields of a payload or block, a duplicate is an error, in any spelling
//!   (`"\u0073eq"`). Inside foreign values duplicates are evidence and stay.
//! - **Lone surrogates, NUL, unusual escapes** are legal JSON and stay unchanged. Bytes that are not UTF-8 are refused
//!   with their offset.
//! - **Ids become file names.** A [`RunId`] is a hyphenated UUID; a [`ThreadId`] has letters, digits, `-` and `_`. The
//!   constructors refuse `../x`, NUL, percent signs and long names.
//! - **Shapes.** A step with a `role` would look like a message to every reader that goes by shape, so it is refused.
//! - **Order** is `seq` only. A `timestamp` is a claim: it may be false, equal, or run backwards, and nothing here
//!   sorts by it.
//! - **No panic.** Bad input is an [`Error`] that names the problem; the tests give arbitrary bytes to every parser.
//!
//! Two threats are handled elsewhere. Text from a record may contain terminal escapes or markup. Views and commands
//! show it safely, because removing it here would alter the record; this also applies to the text inside an [`Error`].
//! And secrets are **not** masked: prompts, arguments and outputs are kept as they were, so a record is as confidential
//! as the session. Masking is planned as a separate stage that the user has to enable.
//!
//! # Versioning
//! - A field may be added to an envelope, a payload or a block at any time. Readers that do not know it keep it. It
//!   must not change the meaning of other fields, and a payload must not get a field that marks another shape.
//! - Kinds of steps, subtypes and keys inside foreign values have no version of ours.
//! - A new word in a closed vocabulary, a renamed or removed field, or a new meaning of an old one changes the format:
//!   it needs a new schema version, the page in `docs/format`, the schema, the golden file and a fixture, together.
//! - Readers keep unknown types. They never fail on one, drop it or guess.
//! - The golden file of the canonical shape is compared byte for byte and only rewritten by hand. Samples of every
//!   version stay in `tests/fixtures`, unedited and readable.
//! - Each record of a spine has its version ([`SPINE_SCHEMA_VERSION`]), and a record of another version is refused; the
//!   version of a transcript is that of its store.
//!
//! # Promises
//! - Reading an event and writing it gives the same line, byte for byte, if the line was in canonical form; otherwise
//!   the same fields with the same values, ours first and in order.
//! - The content of a payload is never changed.
//! - What [`Draft`] accepts is valid under `docs/format/exchange-event.schema.json` once it is written, and what it
//!   refuses for its words or its shape is not.
//! - Output depends on arguments only.

mod address;
mod causes;
mod entry;
mod error;
mod event;
mod frame;
mod ids;
pub mod json;
pub mod limits;
mod provider;
pub mod receipt;
pub mod records;
mod spine;
mod time;
mod usage;
mod word;
pub mod wrap;

pub use address::without_credentials;
pub use causes::with_causes;
pub use entry::{
    EntryParts, EntrySource, EntryType, LogRecord, TranscriptEntry, TranscriptSummary, reconstruct_transcript,
};
pub use error::Error;
pub use event::{
    BlockContent, BlockType, ContentBlock, Draft, EncodedDraft, Envelope, EventType, ExchangeEvent, Fidelity,
    LineHead, MessagePayload, Payload, Role, StepPayload, ToolPayload, Unknowns,
};
pub use frame::{Evidence, Frame, Lane, Packing, Position};
pub use ids::{CallId, Epoch, RunId, Seq, ThreadId};
pub use provider::Provider;
pub use spine::{
    ArtifactKind, ArtifactRef, BridgeKind, CompactionKind, PayloadFlaw, SPINE_SCHEMA_VERSION, SpineDraft,
    SpineEnvelope, SpineRecord, SpineSource, SpineType,
};
pub use time::Timestamp;
pub use usage::Usage;
pub use word::{Vocabulary, Word};
