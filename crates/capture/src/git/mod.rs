//! Reads the state of a Git repository: its identity, and how the working tree differs from a commit.
//!
//! Nothing is changed and no prompt appears: no lock is taken, no hook, pager, credential helper or external diff is
//! run, and nothing is fetched, because the settings of a repository can name a program for each of these.

mod binary_patch;
mod commit;
mod new_file;
mod snapshot;

use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;

use steno_model::without_credentials;

use self::binary_patch::ObjectFormat;
use self::new_file::new_files_patch;

pub use commit::{CommittedFile, CommittedKind, PatchDirection, apply, begin, committed};
pub use snapshot::Snapshot;

/// How long one call of git may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// The maximum length of a diff. A longer one is dropped, because half of it could not be applied.
const DIFF_BYTES_MAX: usize = 16 * 1024 * 1024;
/// How many commits the checked-out one may be ahead of all remote branches.
const AHEAD_MAX: usize = 10_000;
/// How many untracked files are read.
const UNTRACKED_MAX: usize = 1000;
/// How many bytes untracked binary files may have together: to compress them takes time.
const BINARY_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Variables that would make git use another repository (`git rev-parse --local-env-vars`).
const ELSEWHERE: [&str; 11] = [
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_CONFIG_COUNT",
    "GIT_CONFIG_PARAMETERS",
    "GIT_DIR",
    "GIT_GRAFT_FILE",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_REPLACE_REF_BASE",
    "GIT_SHALLOW_FILE",
    "GIT_WORK_TREE",
];

/// The state of a repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GitState {
    /// Its top directory.
    pub root: PathBuf,
    /// The checked-out commit.
    pub commit: String,
    /// The branch, if one is checked out.
    pub branch: Option<String>,
    /// The URL of its origin, without user names and passwords.
    pub url: Option<String>,
    /// How the working tree differs from a commit.
    pub diff: Option<GitDiff>,
}

/// How a working tree differs from a commit, untracked files included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GitDiff {
    /// The newest ancestor on a remote branch; without one, the checked-out commit.
    pub base: String,
    /// The diff, for `git apply`.
    pub patch: Vec<u8>,
}

/// Tells whether a directory is in a repository, or is one.
#[must_use]
pub fn is_repository(dir: &Path) -> bool {
    git(dir, &["rev-parse", "--git-dir"]).is_some()
}

/// Reads the state of the repository of a directory; `None` without a repository or git.
#[must_use]
pub fn look(dir: &Path) -> Option<GitState> {
    let (root, status) = status(dir)?;
    let url = git(&root, &["config", "--get", "remote.origin.url"]).and_then(|text| line(&text));
    let diff = diff(&root, &status);
    let url = url.map(|url| without_credentials(&url));
    Some(GitState { root, commit: status.commit, branch: status.branch, url, diff })
}

/// Reads how the working tree of a directory differs from a commit. Calls git three times.
#[must_use]
pub fn look_at_working_tree(dir: &Path) -> Option<GitDiff> {
    let (root, status) = status(dir)?;
    diff(&root, &status)
}

/// What `git status` says.
struct Status {
    commit: String,
    branch: Option<String>,
    /// The paths of untracked files, from the top directory.
    untracked: Vec<Vec<u8>>,
}

/// Returns the top directory of a repository and its status.
fn status(dir: &Path) -> Option<(PathBuf, Status)> {
    const STATUS: [&str; 8] = [
        "status",
        "--porcelain=v2",
        "--branch",
        "-z",
        "--untracked-files=all",
        "--no-renames",
        "--ignore-submodules=all",
        "--no-ahead-behind",
    ];
    let dir = dir.canonicalize().ok()?;
    let root = dir.ancestors().find(|dir| dir.join(".git").exists())?.to_owned();
    let output = git(&root, &STATUS)?;
    let (mut commit, mut branch, mut untracked) = (None, None, Vec::new());
    for field in output.split(|byte| *byte == 0) {
        let text = |prefix: &[u8]| field.strip_prefix(prefix).and_then(|rest| str::from_utf8(rest).ok());
        if let Some(name) = field.strip_prefix(b"? ") {
            untracked.push(name.to_vec());
        } else if let Some(text) = text(b"# branch.oid ") {
            // `(initial)` before the first commit.
            commit = Some(text).filter(|text| !text.starts_with('(')).map(str::to_owned);
        } else if let Some(text) = text(b"# branch.head ") {
            branch = Some(text).filter(|text| *text != "(detached)").map(str::to_owned);
        }
    }
    Some((root, Status { commit: commit?, branch, untracked }))
}

fn diff(root: &Path, status: &Status) -> Option<GitDiff> {
    let base = nearest(root).unwrap_or_else(|| status.commit.clone());
    patch(root, &base, &status.untracked).map(|patch| GitDiff { base, patch })
}

/// Finds the newest ancestor on a remote branch. `None` if the checked-out commit is on one, if no ancestor is, or if it
/// is too far away: without a remote branch, git would list the whole history.
fn nearest(root: &Path) -> Option<String> {
    let most = format!("--max-count={}", AHEAD_MAX + 1);
    let lines = git(root, &["rev-list", &most, "--boundary", "--timestamp", "HEAD", "--not", "--remotes"])?;
    newest_boundary(str::from_utf8(&lines).ok()?, AHEAD_MAX).map(str::to_owned)
}

/// Returns the newest commit that `git rev-list --boundary --timestamp` marks with `-`; `None` if it lists more others.
fn newest_boundary(lines: &str, others_max: usize) -> Option<&str> {
    let (marked, others): (Vec<&str>, Vec<&str>) = lines.lines().partition(|line| line.contains(" -"));
    if others.len() > others_max {
        return None;
    }
    let commits = marked.iter().filter_map(|line| {
        let (time, commit) = line.split_once(" -")?;
        Some((time.parse::<u64>().ok()?, commit))
    });
    commits.max().map(|(_, commit)| commit)
}

/// Returns how the working tree differs from a commit.
fn patch(root: &Path, base: &str, untracked: &[Vec<u8>]) -> Option<Vec<u8>> {
    // Settings of whoever works there may not change what it looks like: others have to be able to apply it.
    const AS_IS: [&str; 11] = [
        "diff",
        "--binary",
        "--no-color",
        "--no-ext-diff",
        "--no-textconv",
        "--src-prefix=a/",
        "--dst-prefix=b/",
        "--submodule=short",
        "--unified=3",
        "--inter-hunk-context=0",
        "--no-relative",
    ];
    let tracked: Vec<&str> = AS_IS.into_iter().chain([base, "--"]).collect();
    let mut patch = git(root, &tracked)?;
    if untracked.len() > UNTRACKED_MAX {
        return None;
    }
    patch.extend(new_files_patch(root, untracked, ObjectFormat::of(base), BINARY_BYTES_MAX)?);
    (patch.len() <= DIFF_BYTES_MAX).then_some(patch)
}

fn line(output: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(output).ok()?.trim_end_matches('\n');
    (!text.is_empty() && !text.contains('\n')).then(|| text.to_owned())
}

/// Runs git; `None` when it fails, takes too long or prints too much.
fn git(dir: &Path, args: &[&str]) -> Option<Vec<u8>> {
    let mut command = command(dir);
    command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    run(&mut command).ok().filter(|(code, _)| *code == Some(0)).map(|(_, output)| output)
}

/// Prepares a call of git.
fn command(dir: &Path) -> Command {
    let mut command = Command::new("git");
    command.arg("--no-pager").arg("-C").arg(dir);
    for setting in
        ["core.fsmonitor=false", "core.hooksPath=/dev/null", "diff.external=", "core.quotePath=true"]
    {
        command.args(["-c", setting]);
    }
    for name in ELSEWHERE {
        command.env_remove(name);
    }
    // Missing objects are not fetched, and replacement objects are not used. An older git does not know the first of
    // these variables, but has no protocol left to fetch with.
    command.env("GIT_NO_LAZY_FETCH", "1").env("GIT_ALLOW_PROTOCOL", "").env("GIT_NO_REPLACE_OBJECTS", "1");
    command.env("GIT_OPTIONAL_LOCKS", "0").env("GIT_TERMINAL_PROMPT", "0").env("LC_ALL", "C");
    command
}

/// Runs a process to its end, or kills it after the timeout.
fn run(command: &mut Command) -> io::Result<(Option<i32>, Vec<u8>)> {
    let mut child = command.spawn()?;
    let stdout = child.stdout.take();
    let (send, receive) = channel();
    std::thread::spawn(move || {
        let mut output = Vec::new();
        let read = stdout.map(|stdout| stdout.take(DIFF_BYTES_MAX as u64 + 1).read_to_end(&mut output));
        send.send(read.unwrap_or(Ok(0)).map(|_| output)).ok();
    });
    let output = receive.recv_timeout(PATIENCE);
    if !matches!(&output, Ok(Ok(output)) if output.len() <= DIFF_BYTES_MAX) {
        child.kill().ok();
    }
    let status = child.wait()?;
    let output = output.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
    Ok((status.code(), output))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newest_boundary_is_none_beyond_the_commit_limit() {
        let lines = "9 aa\n8 bb\n3 -cc\n7 -dd\n";
        assert_eq!(newest_boundary(lines, 2), Some("dd"));
        // At the limit git marks commits too that are on no remote branch.
        assert_eq!(newest_boundary(lines, 1), None);
        assert_eq!(newest_boundary("9 aa\n", 2), None);
        assert_eq!(newest_boundary("", 2), None);
    }
}
