//! The vocabulary of Stenograph: what a record may say, how it is spelled, and how it is read again.
//!
//! This crate turns bytes into types and types into bytes, and does nothing else. It opens no file, asks no clock,
//! reads no environment and starts no thread; what it needs of those arrives as an argument. The same input gives
//! the same output on every machine. Who may write, in which order and how safely is the journal's business; what a
//! provider's record means is an adapter's; what is shown to people is a view's.
//!
//! # The model
//! A **run** is one execution, known by its [`RunId`]. Its record is a file of lines, and a line is an
//! [`ExchangeEvent`]: an envelope around a payload.
//!
//! The **envelope** says where the event stands: `seq`, `run_id`, the runs above and below it when there are any
//! (`parent_run_id`, `child_run_id`), `type`, the step it happened in (`path`, `iteration`), `timestamp`,
//! `payload`. [`Envelope`] borrows it from a line for readers that only count or check.
//!
//! The **type** is one of ten ([`EventType`]): a run begins or ends, a step begins or ends, a child run begins or
//! ends as its parent sees it, somebody says something (`message.user`, `message.assistant`), a tool is called or
//! answers. Everything else that happens in a session (turns, approvals, compactions, retries, facts that nobody
//! knows) is a step of its own kind: kinds are an open list, types are not.
//!
//! The **payload** has one of three shapes: [`StepPayload`], [`MessagePayload`], [`ToolPayload`]. A reader finds
//! the shape by looking, and looks in a fixed order: an array is a list of blocks, an object with `role` is a
//! message, with `call_id` a tool's, with `kind` a step's, and anything else is [`Payload::Other`]. Because the
//! order decides, a writer must not put a `role` or a `call_id` into a step: [`Draft`] refuses it.
//!
//! A message is a list of **blocks** ([`ContentBlock`]), in the order in which they were said. There are six block
//! types ([`BlockType`]), and a block has the fields of its type and no others of ours.
//!
//! Blocks and calls carry their **fidelity** ([`Fidelity`]): `router` when they were seen at a seam of ours,
//! `agent_emitted` when the agent reported them. A call seen on both channels is one call; the mark lets a view
//! tell.
//!
//! An event begins as a [`Draft`]: everything but its `seq`, proven fit to be written. The journal encodes it
//! before it takes its lock ([`Draft::encode`]) and adds the number under the lock ([`EncodedDraft::write_line`]).
//!
//! **Entries** ([`TranscriptEntry`]) are the other vocabulary: one log record per thing that an adapter saw, nine
//! types ([`EntryType`]), numbered per source, summed up by [`TranscriptSummary`], wrapped for a structured log by
//! [`LogRecord`]. An entry cannot be changed once it is made. The **spine** ([`SpineRecord`], [`SpineDraft`]) is
//! the third: an envelope around the raw messages of a session, for replay and evaluation. [`Usage`] is a
//! provider's token count under the provider's own names.
//!
//! # Closed when writing, open when reading
//! A vocabulary is a closed list for whoever writes and an open one for whoever reads. [`Draft`] is the only way to
//! a new line, and takes no word outside the lists, no payload of another shape than its type has, no field twice.
//! [`ExchangeEvent::parse`] takes any word: one that is not in the list becomes [`Word::Unknown`] with its text
//! intact, unknown fields become [`json::Extra`], and writing the event again gives the same line. A file written
//! by a newer version loses nothing by passing through an older one.
//!
//! [`ExchangeEvent::unknowns`] says what was not known. [`ExchangeEvent::parse_strict`] refuses it instead, with an
//! error for which [`Error::is_unknown_type`] holds, so that "newer than me" can be told from "broken". Fields are
//! no such matter: a strict reader accepts unknown fields too.
//!
//! # Raw JSON
//! Arguments, outputs, results and all that comes from others are kept as the text they came in ([`json::RawJson`],
//! [`json::JsonString`]). The usual ways to hold JSON all change it: a number beyond 64 bits is rounded or refused,
//! of two equal keys one is lost, keys are sorted, `\u0041` becomes `A`, and a lone surrogate, which JavaScript
//! programs do write, cannot be held by a Rust `String` at all. A record that alters evidence is not a record. So a
//! value is proven to be JSON, and from then on it is bytes. Only line breaks between tokens are replaced by
//! spaces, since a line is a line. [`json::JsonString::to_text`] decodes for people, and only for them.
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
//! // Our own code builds a draft; somebody else's line is parsed into one.
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
//! Whoever writes the input is taken to be hostile: a model can be talked into emitting anything, and tools return
//! what the network gave them. Nothing here trusts a byte of it.
//!
//! - **Depth.** A value may nest [`limits::DEPTH_MAX`] levels; a million brackets are counted without recursion,
//!   before anything that would recurse. Deeper lines are refused when they are sent. A deeper line that somehow
//!   lies in a file is still read, again without recursion.
//! - **Size.** A line may have [`limits::LINE_BYTES_MAX`] bytes. [`Draft::parse`] asks before it parses; who reads
//!   files has to bound the line before it hands it over. Work grows with the length of the line, also for a line
//!   that consists of field names alone.
//! - **Duplicate keys.** Two programs disagree on which of two equal keys counts, and an attacker uses the
//!   difference. In the envelope and among the fields of a payload or block that we know, a second one is an error,
//!   however it is spelled (`"\u0073eq"`). Inside foreign values duplicates are evidence and stay.
//! - **Lone surrogates, NUL, strange escapes** are legal JSON and pass untouched. Bytes that are no UTF-8 are
//!   refused with their offset.
//! - **Ids become file names.** A [`RunId`] is a hyphenated UUID and nothing else, a [`ThreadId`] has letters,
//!   digits, `-` and `_`. `../x`, NUL, percent signs and long names do not get past the constructor.
//! - **Shapes.** A step that carries a `role` would be taken for a message by every reader that goes by shape; such
//!   a step is refused.
//! - **Order** is `seq` and only `seq`. A `timestamp` is what somebody claims: it may be false, equal, or run
//!   backwards, and nothing here sorts by it.
//! - **No panic.** Bad input is an [`Error`] that names the thing; arbitrary bytes are thrown at every parser in
//!   the tests.
//!
//! Two threats are met elsewhere. Text from a record may hold terminal escapes or markup: it is shown safely by
//! views and commands, since taking it out here would alter the record; that goes for the text inside an [`Error`]
//! too. And secrets are **not** masked: prompts, arguments and outputs are kept as they were, so a record is as
//! confidential as the session was. Masking is a stage of its own that somebody has to switch on.
//!
//! # Versioning
//! - A field may be added to an envelope, a payload or a block at any time. Readers that do not know it keep it. It
//!   must not change what the other fields mean, and a payload must not gain a field that is the mark of another
//!   shape.
//! - A kind of step, a subtype or a key inside a foreign value is not ours to version.
//! - A word in a closed vocabulary, a field that is renamed or removed, or a new meaning for an old one changes the
//!   format: it needs a new schema version, the page in `docs/format`, the schema, the golden file and a fixture,
//!   together.
//! - Readers meet an unknown type by keeping it. They never fail on one, never drop it, never guess.
//! - The golden file of the canonical shape is compared byte for byte and is rewritten by people only. Samples of
//!   every version ever written stay in `tests/fixtures`, unedited, and stay readable.
//! - The spine names its version in each record ([`SPINE_SCHEMA_VERSION`]), and a record of another version is
//!   refused; a transcript's version is that of the store it lies in.
//!
//! # Promises
//! - Reading an event and writing it gives its line again, byte for byte, if the line was in canonical form;
//!   otherwise the same fields with the same values, ours first and in order.
//! - What was put into a payload comes out of it unchanged, whoever wrote it and whatever it is.
//! - What [`Draft`] accepts satisfies `docs/format/exchange-event.schema.json` once it is written, and what it
//!   refuses for its words or its shape does not.
//! - Output depends on arguments alone.

mod address;
mod causes;
mod entry;
mod error;
mod event;
mod frame;
mod ids;
pub mod json;
pub mod limits;
pub mod receipt;
pub mod records;
mod spine;
mod time;
mod usage;
mod word;

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
pub use spine::{
    ArtifactKind, ArtifactRef, BridgeKind, CompactionKind, PayloadFlaw, SPINE_SCHEMA_VERSION, SpineDraft,
    SpineEnvelope, SpineRecord, SpineSource, SpineType,
};
pub use time::Timestamp;
pub use usage::Usage;
pub use word::{Vocabulary, Word};
