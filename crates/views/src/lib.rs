//! Views: sessions as trees, conversations, receipts and lines of a list.
//!
//! A view is built from a session, or from events with `push` and `finish`. Views do not write anything. The modules:
//!
//! - [`tree`]: [`tree::RunTree`] is the step tree of one session, [`tree::join()`] joins several into one
//!   tree and [`tree::join_all()`] into as many as it takes, [`tree::text()`] and [`tree::export()`] show it as lines and as JSON.
//! - [`summary`]: [`summary::summary_of_ends()`], one run in a list of runs.
//! - [`conversation`]: [`conversation::Conversation`] is a session as a conversation, each call with its result.
//! - [`records`]: [`records::SessionRecords`] is a session as thread, turn and item records.
//! - [`receipt`]: [`receipt::build()`] makes the receipt of one turn from its records, [`receipt::to_json()`] and
//!   [`receipt::text()`] show it.
//! - [`screen`]: [`screen::Screen`] draws conversations as lines of a terminal.
//! - [`cost`]: [`cost::Cost`] is what usage costs by [`cost::Prices`].
//! - [`digest`]: [`digest::SessionDigest`] is what lists and the index say of a session, [`digest::each_text()`] names the texts
//!   that a search looks at.
//! - [`channels`]: [`channels::channel_rows()`] lists the facts of a session with the runs that they come from.
//! - [`nodes`]: Markdown, diffs and output with colours, parsed for all that draw them.
//! - [`short_text`]: what a value says, in a few words for one line.
//! - [`State`] and [`ParentReport`]: how a run or a step ended.
//! - [`visible()`]: makes foreign text harmless for a terminal. [`columns_of()`], [`padding()`] and [`cut()`] fit text to
//!   columns, [`count()`] gives a number its noun, [`shell_word()`] quotes a word of a command.
//!
//! ```
//! use std::collections::BTreeMap;
//! use steno_model::{ExchangeEvent, RunId};
//! use steno_session::{Content, SessionBuilder};
//! use steno_views::tree::{RunTree, join, text};
//!
//! let transcript = br#"{"seq":1,"run_id":"550e8400-e29b-41d4-a716-446655440000","type":"run.started","path":"","iteration":0,"timestamp":"2026-06-08T08:14:42Z","payload":{"name":"review","kind":"workflow"}}
//! {"seq":2,"run_id":"550e8400-e29b-41d4-a716-446655440000","type":"step.started","path":"test","iteration":0,"timestamp":"2026-06-08T08:14:43Z","payload":{"name":"test","kind":"command"}}"#;
//! let run = RunId::parse("550e8400-e29b-41d4-a716-446655440000")?;
//! let mut builder = SessionBuilder::new(run, Content::Whole);
//! for line in transcript.split(|&byte| byte == b'\n') {
//!     builder.push(&ExchangeEvent::parse(line)?);
//! }
//! let tree = RunTree::of(&builder.finish());
//! let joined = join(run, BTreeMap::from([(run, tree)]));
//! assert_eq!(text(&joined), "run 550e8400… review  open  2 events\n└─ test · command  open\n");
//! # Ok::<(), steno_model::Error>(())
//! ```
//!
//! # Promises
//! - Pure: no file, network, clock, thread or environment. The same events give the same bytes on any machine.
//! - No event makes a view fail or panic; what it does not know is counted or kept.
//! - Nothing is inferred: a missing end is open, an absent field is null, a child run that cannot be found is marked
//!   as missing.
//! - Views work in one pass and without recursion.

pub mod channels;
pub mod conversation;
pub mod cost;
pub mod digest;
mod event_ref;
pub mod nodes;
pub mod receipt;
pub mod records;
pub mod screen;
mod shell_word;
pub mod short_text;
pub mod summary;
#[cfg(test)]
mod testing;
mod text_format;
pub mod tree;
mod visible;

pub use event_ref::EventRef;
pub use shell_word::shell_word;
pub use steno_session::{ParentReport, State, session_run_id};
pub use text_format::{Rounding, columns_of, count, count_in_digits, cut, padding, short_number, thousands};
pub use visible::{Lines, visible};

/// Returns what is known of the end of a turn in the words for runs and steps.
fn state_of(status: steno_session::TurnStatus) -> State {
    match status {
        steno_session::TurnStatus::InProgress => State::Open,
        steno_session::TurnStatus::Completed => State::Completed,
        steno_session::TurnStatus::Interrupted | steno_session::TurnStatus::Failed => State::Failed,
    }
}
