//! The repository of a task, if available: as a tar file, and for trying the recorded changes.

use std::io::{self, Write as _};
use std::path::Path;

use steno_capture::git::{self, CommittedFile, CommittedKind, PatchDirection, Snapshot};
use steno_disk::{discard, read_host_file};
use steno_exports::harbor::{PatchStep, Plan, Refusal, TaskFile, TaskInputs, start_files};
use steno_spine::TarWriter;

use crate::failure::{Failure, cannot};

/// The maximum length of a test file in a task.
const HELD_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Writes the files of a commit to a tar file. The same commit gives the same bytes.
pub fn to_tar(snapshot: &Snapshot) -> io::Result<Vec<u8>> {
    let mut tar = TarWriter::new(Vec::new());
    for CommittedFile { path, kind, bytes } in snapshot.files() {
        let size = bytes.len() as u64;
        match kind {
            CommittedKind::Plain => tar.begin(path, size)?,
            CommittedKind::Program => tar.begin_program(path, size)?,
            CommittedKind::Link => tar.link(path, &String::from_utf8_lossy(bytes))?,
            CommittedKind::Submodule => continue,
        }
        if *kind != CommittedKind::Link {
            tar.write_all(bytes)?;
        }
    }
    tar.finish()
}

/// Makes the initial directory of a task, as its Dockerfile does.
pub fn begin(snapshot: &Snapshot, files: &[TaskFile], dir: &Path) -> io::Result<Result<(), Refusal>> {
    snapshot.write_to(dir)?;
    if let Err(why) = git::begin(dir) {
        return Ok(Err(Refusal::new(why)));
    }
    for file in start_files(files) {
        if let Err(why) = git::apply(dir, &file.bytes, PatchDirection::Forward) {
            return Ok(Err(Refusal::new(format!("`{}` does not apply to the commit: {why}", file.path))));
        }
    }
    Ok(Ok(()))
}

/// Tries the patches of a plan in a temporary directory. A solution that does not apply is removed from the plan. A
/// beginning that does not apply, and a check that passes at once, are refused.
pub fn try_patches(
    snapshot: &Snapshot,
    plan: &mut Plan<'_>,
    given: &TaskInputs<'_>,
    dir: &Path,
) -> Result<Result<(), Refusal>, Failure> {
    let trial = PatchTrial { snapshot, given, dir };
    let tried = trial.passes_at_once(plan).and_then(|passes| match passes {
        Ok(true) => Ok(Err(Refusal::new("the recorded changes are already there at the start".to_owned()))),
        Ok(false) => trial.solve(plan),
        Err(refusal) => Ok(Err(refusal)),
    });
    discard(dir);
    tried
}

/// A directory in which patches are tried.
struct PatchTrial<'a> {
    snapshot: &'a Snapshot,
    given: &'a TaskInputs<'a>,
    dir: &'a Path,
}

impl PatchTrial<'_> {
    /// Makes the initial state of the task.
    fn begin(&self, plan: &Plan<'_>) -> Result<Result<(), Refusal>, Failure> {
        discard(self.dir);
        self.snapshot.write_to(self.dir).map_err(|error| cannot("write", self.dir, &error))?;
        let patches = plan.start_patches(self.given);
        let applied =
            patches.iter().try_for_each(|patch| git::apply(self.dir, patch, PatchDirection::Forward));
        Ok(applied.map_err(|why| {
            Refusal::new(format!("the changes before the window do not apply to the commit: {why}"))
        }))
    }

    /// Returns true if a check of changes would pass before the solution.
    fn passes_at_once(&self, plan: &Plan<'_>) -> Result<Result<bool, Refusal>, Failure> {
        let expected = plan.checked_changes(self.given);
        if expected.is_empty() {
            return Ok(Ok(false));
        }
        if let Err(refusal) = self.begin(plan)? {
            return Ok(Err(refusal));
        }
        let back = |patch: &Vec<u8>| git::apply(self.dir, patch, PatchDirection::Reverse).is_ok();
        Ok(Ok(expected.iter().rev().all(back)))
    }

    fn solve(&self, plan: &mut Plan<'_>) -> Result<Result<(), Refusal>, Failure> {
        if let Err(refusal) = self.begin(plan)? {
            return Ok(Err(refusal));
        }
        for step in plan.solution_steps(self.given) {
            let applied = match step {
                PatchStep::Apply(patch) => git::apply(self.dir, &patch, PatchDirection::Forward),
                PatchStep::Revert(patch) => git::apply(self.dir, &patch, PatchDirection::Reverse),
            };
            if let Err(why) = applied {
                return Ok(plan.drop_solution(&why));
            }
        }
        plan.test_files.take(|path| read_plainly(self.dir, path));
        Ok(Ok(()))
    }
}

/// Reads a file below a directory without following links.
fn read_plainly(dir: &Path, path: &str) -> Option<Vec<u8>> {
    let (dir, file) = (dir.canonicalize().ok()?, dir.join(path).canonicalize().ok()?);
    let is_there = file == dir.join(path);
    read_host_file(&file, HELD_BYTES_MAX).ok().filter(|_| is_there)
}
