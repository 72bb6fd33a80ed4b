//! The repository of a task, when it is at hand: as an archive, and to try whether what was changed can be changed again.

use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, symlink};
use std::path::Path;

use steno_capture::git::{self, CommittedFile, CommittedKind};
use steno_disk::read_host_file;
use steno_exports::harbor::{Check, Diff, Plan, Refusal, Solution, TaskFile, TaskInputs};
use steno_spine::TarWriter;

use super::super::bundle_output::discard;
use crate::failure::{Failure, cannot};

/// How long a test may be that is put into a task.
const HELD_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// The files of a commit.
pub struct Snapshot {
    files: Vec<CommittedFile>,
}

impl Snapshot {
    /// Reads a commit of a repository.
    pub fn read(repository: &Path, commit: &str) -> Result<Self, Refusal> {
        let files = git::committed(repository, commit).map_err(Refusal::new)?;
        let is_odd = |part: &str| matches!(part, "" | "." | "..") || part.eq_ignore_ascii_case(".git");
        let is_odd_path = |file: &&CommittedFile| file.path.split('/').any(is_odd);
        if let Some(odd) = files.iter().find(is_odd_path) {
            return Err(Refusal::new(format!("commit {commit} has a file named `{}`", odd.path)));
        }
        let is_odd_link = |file: &&CommittedFile| {
            file.kind == CommittedKind::Link && std::str::from_utf8(&file.bytes).is_err()
        };
        if let Some(odd) = files.iter().find(is_odd_link) {
            return Err(Refusal::new(format!(
                "`{}` of commit {commit} links to a name that is not UTF-8",
                odd.path
            )));
        }
        // git itself makes no such tree: below a link it would lead out of the directory.
        let paths: BTreeSet<&str> = files.iter().map(|file| file.path.as_str()).collect();
        let is_below = |file: &&CommittedFile| {
            file.path.match_indices('/').any(|(at, _)| paths.contains(&file.path[..at]))
        };
        match files.iter().find(is_below) {
            Some(odd) => Err(Refusal::new(format!(
                "`{}` of commit {commit} is below a file, not a directory",
                odd.path
            ))),
            None => Ok(Self { files }),
        }
    }

    /// Puts the files into an archive that is always the same.
    pub fn to_tar(&self) -> io::Result<Vec<u8>> {
        let mut tar = TarWriter::new(Vec::new());
        for CommittedFile { path, kind, bytes } in &self.files {
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

    /// Returns the paths of other repositories in it, which a commit does not hold.
    pub fn submodules(&self) -> impl Iterator<Item = &str> {
        let is_one = |file: &&CommittedFile| file.kind == CommittedKind::Submodule;
        self.files.iter().filter(is_one).map(|file| file.path.as_str())
    }

    /// Tries what a plan says, in a directory that is taken away again: a solution that cannot be applied is taken out of
    /// it, and what cannot be begun with, or checks nothing, is refused.
    pub fn try_out(
        &self,
        plan: &mut Plan<'_>,
        given: &TaskInputs<'_>,
        dir: &Path,
    ) -> Result<Result<(), Refusal>, Failure> {
        let trying = Trying { snapshot: self, given, dir };
        let tried = trying.passes_at_once(plan).and_then(|passes| match passes {
            Ok(true) => {
                Ok(Err(Refusal::new("the recorded changes are already there at the start".to_owned())))
            }
            Ok(false) => trying.solved(plan),
            Err(refusal) => Ok(Err(refusal)),
        });
        discard(dir);
        tried
    }

    /// Makes the directory that a task begins with, as its Dockerfile does.
    pub fn begin(&self, files: &[TaskFile], dir: &Path) -> io::Result<Result<(), Refusal>> {
        self.write_to(dir)?;
        if let Err(why) = git::begin(dir) {
            return Ok(Err(Refusal::new(why)));
        }
        let of_start = |file: &&TaskFile| {
            let name = file.path.strip_prefix("environment/");
            name.is_some_and(|name| name == "start.patch" || name.starts_with("before/"))
        };
        let (first, later): (Vec<&TaskFile>, Vec<&TaskFile>) =
            files.iter().filter(of_start).partition(|file| file.path.ends_with("start.patch"));
        for file in first.into_iter().chain(later) {
            if let Err(why) = git::apply(dir, &file.bytes, git::PatchDirection::Forward) {
                return Ok(Err(Refusal::new(format!("`{}` does not apply to the commit: {why}", file.path))));
            }
        }
        Ok(Ok(()))
    }

    fn write_to(&self, dir: &Path) -> io::Result<()> {
        fs::create_dir(dir)?;
        // Links last, so that nothing is written through one.
        let is_link = |file: &&CommittedFile| file.kind == CommittedKind::Link;
        for file in self.files.iter().filter(|file| !is_link(file)).chain(self.files.iter().filter(is_link)) {
            let path = dir.join(&file.path);
            fs::create_dir_all(path.parent().unwrap_or(dir))?;
            match file.kind {
                CommittedKind::Submodule => fs::create_dir(&path)?,
                CommittedKind::Link => symlink(String::from_utf8_lossy(&file.bytes).as_ref(), &path)?,
                CommittedKind::Plain | CommittedKind::Program => {
                    let mode = if file.kind == CommittedKind::Program { 0o755 } else { 0o644 };
                    let opened = OpenOptions::new().write(true).create_new(true).mode(mode).open(&path);
                    opened?.write_all(&file.bytes)?;
                }
            }
        }
        Ok(())
    }
}

/// A plan that is tried out.
struct Trying<'a> {
    snapshot: &'a Snapshot,
    given: &'a TaskInputs<'a>,
    dir: &'a Path,
}

impl Trying<'_> {
    fn fetch(&self, diff: &Diff) -> Vec<u8> {
        (self.given.artifact)(diff).unwrap_or_default()
    }

    /// Makes what the task begins with.
    fn begin(&self, plan: &Plan<'_>) -> Result<Result<(), Refusal>, Failure> {
        discard(self.dir);
        self.snapshot.write_to(self.dir).map_err(|error| cannot("write", self.dir, &error))?;
        let begun = plan.start.diff.as_ref().map(|diff| self.fetch(diff)).unwrap_or_default();
        let patches = plan.start.patches.iter().map(|patch| patch.text.clone().into_bytes());
        let applied = std::iter::once(begun)
            .chain(patches)
            .try_for_each(|patch| git::apply(self.dir, &patch, git::PatchDirection::Forward));
        Ok(applied.map_err(|why| {
            Refusal::new(format!("the changes before the window do not apply to the commit: {why}"))
        }))
    }

    /// Tells whether a check of changes would already pass.
    fn passes_at_once(&self, plan: &Plan<'_>) -> Result<Result<bool, Refusal>, Failure> {
        let expected: Vec<Vec<u8>> = match &plan.check {
            Check::Command(_) => return Ok(Ok(false)),
            Check::Patches(patches) => patches.iter().map(|patch| patch.text.clone().into_bytes()).collect(),
            Check::Diff(diff) => vec![self.fetch(diff)],
        };
        if let Err(refusal) = self.begin(plan)? {
            return Ok(Err(refusal));
        }
        let back = |patch: &Vec<u8>| git::apply(self.dir, patch, git::PatchDirection::Reverse).is_ok();
        Ok(Ok(expected.iter().rev().all(back)))
    }

    fn solved(&self, plan: &mut Plan<'_>) -> Result<Result<(), Refusal>, Failure> {
        if let Err(refusal) = self.begin(plan)? {
            return Ok(Err(refusal));
        }
        let patches = match (&plan.solution, &plan.check) {
            (Ok(Solution::Patches(patches)), _) | (_, Check::Patches(patches)) => patches
                .iter()
                .map(|patch| (git::PatchDirection::Forward, patch.text.clone().into_bytes()))
                .collect(),
            (Ok(Solution::Diff(diff)), _) => {
                let begun = plan.start.diff.as_ref().map(|diff| self.fetch(diff)).unwrap_or_default();
                vec![(git::PatchDirection::Reverse, begun), (git::PatchDirection::Forward, self.fetch(diff))]
            }
            (Err(_), Check::Command(_) | Check::Diff(_)) => plan
                .patches
                .iter()
                .map(|patch| (git::PatchDirection::Forward, patch.text.clone().into_bytes()))
                .collect(),
        };
        for (way, patch) in patches {
            if let Err(why) = git::apply(self.dir, &patch, way) {
                let why = format!("the recorded changes do not fit what it begins with: {why}");
                if matches!(plan.check, Check::Patches(_)) {
                    return Ok(Err(Refusal::new(why)));
                }
                if plan.solution.is_ok() {
                    plan.solution = Err(why);
                }
                return Ok(Ok(()));
            }
        }
        plan.held.take(|path| read_plainly(self.dir, path));
        Ok(Ok(()))
    }
}

/// Reads a file below a directory, unless a link leads to it.
fn read_plainly(dir: &Path, path: &str) -> Option<Vec<u8>> {
    let (dir, found) = (dir.canonicalize().ok()?, dir.join(path).canonicalize().ok()?);
    let is_there = found == dir.join(path);
    read_host_file(&found, HELD_BYTES_MAX).ok().filter(|_| is_there)
}
