//! The session model: the events of one or more runs, folded into one [`Session`].
//!
//! A session combines the agent's own file, its copies, and the recordings of other channels. [`SessionBuilder`] folds the
//! events of one run in one pass; [`merge()`] folds those of several. Lists, conversations, trees, receipts, trajectories and
//! sums are all made from the result, so that every view gives the same answer.
//!
//! ```
//! use steno_model::{ExchangeEvent, RunId};
//! use steno_session::{Content, Outcome, SessionBuilder};
//!
//! let run = RunId::parse("550e8400-e29b-41d4-a716-446655440000")?;
//! let mut builder = SessionBuilder::new(run, Content::Whole);
//! let transcript = br#"{"seq":1,"run_id":"550e8400-e29b-41d4-a716-446655440000","type":"tool.call","path":"","iteration":0,"timestamp":"2026-06-08T08:14:42Z","payload":{"name":"Bash","call_id":"c1","input":{},"output":null,"fidelity":"agent_emitted"}}
//! {"seq":2,"run_id":"550e8400-e29b-41d4-a716-446655440000","type":"tool.result","path":"","iteration":0,"timestamp":"2026-06-08T08:14:43Z","payload":{"name":"Bash","call_id":"c1","input":null,"output":"","outcome":"denied","fidelity":"agent_emitted"}}"#;
//! for line in transcript.split(|&byte| byte == b'\n') {
//!     builder.push(&ExchangeEvent::parse(line)?);
//! }
//! let session = builder.finish();
//! assert_eq!(session.calls.len(), 1);
//! assert_eq!(session.calls[0].outcome(), Outcome::Denied);
//! # Ok::<(), steno_model::Error>(())
//! ```
//!
//! # Promises
//! - Pure: no file, network, clock, thread or environment. The same events give the same session on any machine.
//! - No event makes it fail or panic; unknown events are counted or kept.
//! - Every fact has the run and the event that it was read from.
//! - Nothing is inferred: a missing end is open, an absent field is `None`.
//! - Another run may add facts and never makes one less exact. `docs/session.md` says which run wins when two differ.

mod approvals;
mod builder;
mod call_ids;
mod call_output;
mod calls;
mod family;
mod fields;
mod grouping;
mod merge;
mod messages;
mod path_tree;
mod reports;
mod session;
mod state;
mod steps;
mod turn_usage;
mod turns;
pub mod usage;

pub use approvals::decision_is_yes;
pub use builder::SessionBuilder;
pub use call_output::{CallOutput, call_output};
pub use calls::{Content, Effect, Outcome};
pub use family::{FamilyLinks, parents_of};
pub use fields::{PayloadFields, forked_from, run_id_in, session_run_id};
pub use merge::{
    RunEvents, call_of_result, forms_of_call_id, has_provider_ids, merge, merge_borrowed, merge_by_ids,
    merged_order,
};
pub use session::*;
pub use state::{ParentReport, State};
pub use steps::StepPath;
