//! Runs a task on this machine: its check must fail before the solution and pass after it. This runs recorded commands
//! with the rights of the user.

use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};
use steno_capture::git::Snapshot;
use steno_disk::discard;
use steno_exports::harbor::{Plan, Refusal, TRIAL, TaskFile, TrialStep};

use super::{output, repository};
use crate::failure::{Failure, cannot};

/// The time limit of a script, as in Harbor.
const PATIENCE: Duration = Duration::from_mins(10);
/// The interval at which the end of a script is checked.
const LOOK: Duration = Duration::from_millis(20);

/// Tries a task in a temporary directory.
pub fn run(
    plan: &Plan<'_>,
    files: &[TaskFile],
    snapshot: &Snapshot,
    path: &Path,
) -> Result<Result<(), Refusal>, Failure> {
    if let Err(why) = &plan.solution {
        return Ok(Err(Refusal::new(format!("the task cannot be tried without a solution: {why}"))));
    }
    let (task, dir) = (output::sibling(path, "trial")?, output::sibling(path, "place")?);
    let tried = output::write(&task, files).and_then(|()| tried(snapshot, files, &task, &dir));
    discard(&task);
    discard(&dir);
    tried
}

fn tried(
    snapshot: &Snapshot,
    files: &[TaskFile],
    task: &Path,
    dir: &Path,
) -> Result<Result<(), Refusal>, Failure> {
    let failed = |error: io::Error| cannot("try the task in", dir, &error);
    if let Err(refusal) = repository::begin(snapshot, files, dir).map_err(failed)? {
        return Ok(Err(refusal));
    }
    for TrialStep { script, succeeds: wanted, otherwise } in TRIAL {
        match succeeds(&task.join(script), dir).map_err(failed)? {
            Some(outcome) if outcome == wanted => {}
            Some(_) => return Ok(Err(Refusal::new(format!("the trial failed: {otherwise}")))),
            None => return Ok(Err(Refusal::new(format!("the trial failed: `{script}` did not finish")))),
        }
    }
    Ok(Ok(()))
}

/// Runs a script in a directory. Returns whether it succeeds, `None` if it exceeds the time limit.
fn succeeds(script: &Path, dir: &Path) -> io::Result<Option<bool>> {
    let mut command = Command::new(script);
    command.current_dir(dir).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.process_group(0).spawn()?;
    let begun = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            end_group(&child);
            return Ok(Some(status.success()));
        }
        if begun.elapsed() > PATIENCE {
            end_group(&child);
            child.wait()?;
            return Ok(None);
        }
        sleep(LOOK);
    }
}

/// Kills all processes that a script has left.
fn end_group(child: &Child) {
    let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    // There may be none.
    group.and_then(|group| kill_process_group(group, Signal::KILL).ok());
}
