//! Windows of a recorded session as Harbor tasks.
//!
//! [`SessionBuilder`] builds a session, [`Plan::make`] plans a task for a window of it or refuses the window, and
//! [`Plan::files`] writes the task. `docs/harbor.md` describes the sources of each part. Nothing is guessed: what the
//! record lacks is requested, left out with a reason, or leads to a refusal.

mod choose;
mod command;
mod files;
mod patch;
mod plan;
mod programs;
mod provenance;
mod session;
mod shell;
mod tables;
mod test_files;
mod trajectory;
mod trial;
mod turn;
mod window;
mod working_directory;

pub use choose::{CheckCommand, PassedOver};
pub use command::{Command, Rank};
pub use files::{TaskFile, TaskInputs};
pub use patch::Patch;
pub use plan::{Check, Plan, Solution, Start, Wish};
pub use session::{Diff, Repository, Session, SessionBuilder};
pub use test_files::TestFiles;
pub use trial::{PatchStep, TRIAL, TrialStep, start_files};
pub use turn::{Approval, Call, CallResult, Turn, TurnEnd};
pub use window::{Concern, Refusal, Span};
pub use working_directory::WorkingDirectory;

/// The default image of a task.
const IMAGE: &str = "debian:bookworm-slim";

/// The version of the rules in `docs/harbor.md`.
const RULES: &str = "steno-distill/1";

impl Plan<'_> {
    /// Returns the name of the task, which is unique within a session.
    #[must_use]
    pub fn name(&self) -> String {
        provenance::name(self)
    }
}
