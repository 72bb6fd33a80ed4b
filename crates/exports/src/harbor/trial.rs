//! The steps of a trial of a task, and their consequences. Commands carry them out.

use super::files::{TaskFile, TaskInputs};
use super::plan::{Check, Plan, Solution};
use super::session::Diff;
use super::window::Refusal;

/// A patch that a trial applies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PatchStep {
    /// It is applied.
    Apply(Vec<u8>),
    /// It is reverted.
    Revert(Vec<u8>),
}

/// A script that a trial of a task runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrialStep {
    /// Its path in the task.
    pub script: &'static str,
    /// True if it must succeed.
    pub succeeds: bool,
    /// What is wrong with the task if the result differs.
    pub otherwise: &'static str,
}

/// The scripts that a trial runs, in order.
pub const TRIAL: [TrialStep; 3] = [
    TrialStep {
        script: "tests/test.sh",
        succeeds: false,
        otherwise: "its check succeeds before the solution is applied",
    },
    TrialStep { script: "solution/solve.sh", succeeds: true, otherwise: "its solution cannot be applied" },
    TrialStep {
        script: "tests/test.sh",
        succeeds: true,
        otherwise: "its check fails after the solution is applied",
    },
];

/// Returns the files of a task with patches that lead from the commit to its start, in the order of application.
pub fn start_files(files: &[TaskFile]) -> impl Iterator<Item = &TaskFile> {
    let is_diff = |file: &&TaskFile| file.path == "environment/start.patch";
    let is_patch = |file: &&TaskFile| file.path.starts_with("environment/before/");
    files.iter().filter(is_diff).chain(files.iter().filter(is_patch))
}

impl Plan<'_> {
    /// Returns the patches that lead from the commit to the start of the task, in order.
    #[must_use]
    pub fn start_patches(&self, inputs: &TaskInputs<'_>) -> Vec<Vec<u8>> {
        let diff = self.start.diff.as_ref().map(|diff| inputs.bytes(diff)).unwrap_or_default();
        let patches = self.start.patches.iter().map(|patch| patch.text.clone().into_bytes());
        std::iter::once(diff).chain(patches).collect()
    }

    /// Returns the changes that the check looks for; none if it is a command.
    #[must_use]
    pub fn checked_changes(&self, inputs: &TaskInputs<'_>) -> Vec<Vec<u8>> {
        match &self.check {
            Check::Command(_) => Vec::new(),
            Check::Patches(patches) => patches.iter().map(|patch| patch.text.clone().into_bytes()).collect(),
            Check::Diff(diff) => vec![inputs.bytes(diff)],
        }
    }

    /// Returns the steps from the beginning of the window to its end.
    #[must_use]
    pub fn solution_steps(&self, inputs: &TaskInputs<'_>) -> Vec<PatchStep> {
        let patches = match (&self.solution, &self.check) {
            (Ok(Solution::Patches(patches)), _) | (_, Check::Patches(patches)) => patches,
            (Ok(Solution::Diff(diff)), _) => {
                let start = self.start.diff.as_ref().map(|diff| inputs.bytes(diff)).unwrap_or_default();
                return vec![PatchStep::Revert(start), PatchStep::Apply(inputs.bytes(diff))];
            }
            (Err(_), Check::Command(_) | Check::Diff(_)) => &self.patches,
        };
        patches.iter().map(|patch| PatchStep::Apply(patch.text.clone().into_bytes())).collect()
    }

    /// Records that the steps of the solution do not apply; then there is no solution.
    ///
    /// # Errors
    /// The refusal, if the check looks for these changes.
    pub fn drop_solution(&mut self, why: &str) -> Result<(), Refusal> {
        let why = format!("the recorded changes do not fit what it begins with: {why}");
        if matches!(self.check, Check::Patches(_)) {
            return Err(Refusal::new(why));
        }
        if self.solution.is_ok() {
            self.solution = Err(why);
        }
        Ok(())
    }
}

impl TaskInputs<'_> {
    fn bytes(&self, diff: &Diff) -> Vec<u8> {
        (self.artifact)(diff).unwrap_or_default()
    }
}
