//! Reads the state of a Git repository: its identity, and how the working tree differs from a commit.
//!
//! Nothing is changed and no prompt appears: no lock is taken, no hook, pager, credential helper or external diff is
//! run, and nothing is fetched, because the settings of a repository can name a program for each of these.

mod commit;

use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;

use steno_model::without_credentials;

pub use commit::{CommittedFile, CommittedKind, PatchDirection, apply, begin, committed};

/// How long one call of git may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// The maximum length of a diff. A longer one is dropped, because half of it could not be applied.
const DIFF_BYTES_MAX: usize = 16 * 1024 * 1024;
/// How many untracked files are read.
const UNTRACKED_MAX: usize = 1000;
/// How many remote branches are read.
const BRANCHES_MAX: usize = 64;
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
    /// The nearest ancestor on a remote branch; without one, the checked-out commit.
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
    let root = PathBuf::from(line(&git(dir, &["rev-parse", "--show-toplevel"])?)?);
    let commit = line(&git(&root, &["rev-parse", "--verify", "HEAD"])?)?;
    let branch = git(&root, &["symbolic-ref", "--quiet", "--short", "HEAD"]).and_then(|text| line(&text));
    let url = git(&root, &["config", "--get", "remote.origin.url"]).and_then(|text| line(&text));
    let base = nearest(&root, &commit).unwrap_or_else(|| commit.clone());
    let diff = patch(&root, &base).map(|patch| GitDiff { base, patch });
    Some(GitState { root, commit, branch, url: url.map(|url| without_credentials(&url)), diff })
}

/// Finds the nearest ancestor on a remote branch.
fn nearest(root: &Path, commit: &str) -> Option<String> {
    let refs =
        git(root, &["for-each-ref", "--format=%(objectname)", "--sort=-committerdate", "refs/remotes"])?;
    let refs = String::from_utf8(refs).ok()?;
    let mut tips: Vec<&str> = refs.lines().collect();
    tips.dedup();
    let distance = |tip: &&str| {
        let base = line(&git(root, &["merge-base", commit, tip])?)?;
        let count = line(&git(root, &["rev-list", "--count", &format!("{base}..{commit}")])?)?;
        Some((count.parse::<u64>().ok()?, base))
    };
    tips.iter().take(BRANCHES_MAX).filter_map(distance).min().map(|(_, base)| base)
}

/// Returns how the working tree differs from a commit.
fn patch(root: &Path, base: &str) -> Option<Vec<u8>> {
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
    let untracked = git(root, &["ls-files", "--others", "--exclude-standard", "-z"])?;
    let names: Vec<&[u8]> = untracked.split(|byte| *byte == 0).filter(|name| !name.is_empty()).collect();
    if names.len() > UNTRACKED_MAX {
        return None;
    }
    for name in names {
        let name = std::str::from_utf8(name).ok()?;
        let new: Vec<&str> = AS_IS.into_iter().chain(["--no-index", "--", "/dev/null", name]).collect();
        patch.extend(git(root, &new)?);
    }
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
    // With `--no-index`, 1 means that the files differ; otherwise it is a failure.
    let is_fine = |code: Option<i32>| code == Some(0) || code == Some(1) && args.contains(&"--no-index");
    run(&mut command).ok().filter(|(code, _)| is_fine(*code)).map(|(_, output)| output)
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
