//! temporary
mod entry;
mod error;
mod event;
mod ids;
pub mod json;
pub mod limits;
mod spine;
mod time;
mod usage;
mod word;

pub use entry::{EntryParts, EntrySource, EntryType, LogRecord, TranscriptEntry, TranscriptSummary};
pub use error::Error;
pub use event::{
    BlockContent, BlockType, ContentBlock, Draft, EncodedDraft, Envelope, EventType, ExchangeEvent, Fidelity,
    MessagePayload, Payload, Role, StepPayload, ToolPayload, Unknowns,
};
pub use ids::{CallId, Epoch, RunId, Seq, ThreadId};
pub use spine::{SPINE_SCHEMA_VERSION, SpineDraft, SpineRecord, SpineType};
pub use time::Timestamp;
pub use usage::Usage;
pub use word::{Vocabulary, Word};
