//! The files of a commit, and patches applied to such files.

use std::io::{self, Read as _};
use std::path::Path;
use std::process::Stdio;

use super::{command, git};

/// The maximum size of a commit whose files are read.
const COMMIT_BYTES_MAX: u64 = 512 * 1024 * 1024;
/// The maximum size of git's object headers.
const HEADS_BYTES_MAX: u64 = 128 * 1024 * 1024;

/// A file of a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommittedFile {
    /// Its path.
    pub path: String,
    /// What it is.
    pub kind: CommittedKind,
    /// Its content; of a link, its target.
    pub bytes: Vec<u8>,
}

/// The kind of a file in a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommittedKind {
    /// A file.
    Plain,
    /// An executable file.
    Program,
    /// A symbolic link.
    Link,
    /// Another repository; the commit has only its commit id.
    Submodule,
}

/// Reads every file of a commit, byte for byte as it is stored, ordered by path.
///
/// # Errors
/// Why it cannot be read, as text.
pub fn committed(dir: &Path, commit: &str) -> Result<Vec<CommittedFile>, String> {
    let name = format!("{commit}^{{commit}}");
    if git(dir, &["cat-file", "-e", &name]).is_none() {
        return Err(format!("`{}` has no commit {commit}", dir.display()));
    }
    let listed = git(dir, &["ls-tree", "-r", "-z", "-l", "--full-tree", &name, "--"])
        .ok_or_else(|| format!("git cannot list the files of commit {commit}, or there are too many"))?;
    let mut wanted = Vec::new();
    for line in listed.split(|byte| *byte == 0).filter(|line| !line.is_empty()) {
        let line = std::str::from_utf8(line).map_err(|_| "a path in the commit is not UTF-8".to_owned())?;
        wanted.push(listed_file(line).ok_or("git listed it in an unknown format")?);
    }
    let bytes: u64 = wanted.iter().map(|(.., bytes)| bytes).sum();
    if bytes > COMMIT_BYTES_MAX {
        return Err(format!("commit {commit} has {bytes} bytes, more than {COMMIT_BYTES_MAX}"));
    }
    let is_here = |kind: &CommittedKind| *kind != CommittedKind::Submodule;
    let here = wanted.iter().filter(|(_, kind, ..)| is_here(kind));
    let names: Vec<&str> = here.flat_map(|(_, _, object, _)| [object.as_str(), "\n"]).collect();
    let objects = objects(dir, names.concat(), bytes).ok_or("git cannot read all files of the commit")?;
    let mut rest = &objects[..];
    let mut files = Vec::with_capacity(wanted.len());
    for (path, kind, ..) in wanted {
        let bytes = if is_here(&kind) {
            take_object(&mut rest).ok_or("some files of the commit are not in the repository")?
        } else {
            Vec::new()
        };
        files.push(CommittedFile { path, kind, bytes });
    }
    files.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(files)
}

/// Reads `MODE TYPE OBJECT SIZE<tab>PATH`.
fn listed_file(line: &str) -> Option<(String, CommittedKind, String, u64)> {
    let (about, path) = line.split_once('\t')?;
    let mut words = about.split_ascii_whitespace();
    let kind = match words.next()? {
        "100755" => CommittedKind::Program,
        "120000" => CommittedKind::Link,
        "160000" => CommittedKind::Submodule,
        _ => CommittedKind::Plain,
    };
    let object = words.nth(1)?.to_owned();
    let bytes = words.next()?.parse().unwrap_or(0);
    Some((path.to_owned(), kind, object, bytes))
}

/// Reads the contents of objects from git, one after the other.
fn objects(dir: &Path, names: String, bytes: u64) -> Option<Vec<u8>> {
    let mut command = command(dir);
    command.args(["cat-file", "--batch"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().ok()?;
    let mut stdin = child.stdin.take()?;
    let asking = std::thread::spawn(move || io::Write::write_all(&mut stdin, names.as_bytes()).ok());
    let mut output = Vec::new();
    child.stdout.take()?.take(bytes + HEADS_BYTES_MAX).read_to_end(&mut output).ok()?;
    asking.join().ok()??;
    child.wait().ok()?.success().then_some(output)
}

/// Removes `OBJECT TYPE SIZE<newline>BYTES<newline>` from the front.
fn take_object(rest: &mut &[u8]) -> Option<Vec<u8>> {
    let end = rest.iter().position(|byte| *byte == b'\n')?;
    let size: usize = std::str::from_utf8(&rest[..end]).ok()?.split(' ').nth(2)?.parse().ok()?;
    let bytes = rest.get(end + 1..end + 1 + size)?.to_vec();
    *rest = rest.get(end + 2 + size..)?;
    Some(bytes)
}

/// Creates a repository with one commit of the files in a directory.
///
/// # Errors
/// git's error, as text.
pub fn begin(dir: &Path) -> Result<(), String> {
    let steps: [&[&str]; 3] = [
        &["init", "-q"],
        &["add", "-A", "--force"],
        &[
            "-c",
            "user.name=steno",
            "-c",
            "user.email=steno@localhost",
            "-c",
            "commit.gpgsign=false",
            "commit",
            "-q",
            "--allow-empty",
            "-m",
            "start",
        ],
    ];
    match steps.into_iter().find(|args| git(dir, args).is_none()) {
        Some(args) => Err(format!("`git {}` failed", args.join(" "))),
        None => Ok(()),
    }
}

/// The direction in which a patch is applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatchDirection {
    /// Applied.
    Forward,
    /// Reverted.
    Reverse,
}

/// Applies a patch to the files in a directory. An empty one changes nothing.
///
/// # Errors
/// git's error, as text.
pub fn apply(dir: &Path, patch: &[u8], way: PatchDirection) -> Result<(), String> {
    if patch.is_empty() {
        return Ok(());
    }
    let mut command = command(dir);
    command.args(["apply", "--whitespace=nowarn"]);
    if way == PatchDirection::Reverse {
        command.arg("--reverse");
    }
    // A repository above the directory must be ignored, and the bytes must change exactly as the patch says, regardless
    // of filters and line-end settings of this machine.
    command.env("GIT_DIR", "/dev/null").env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
    command.arg("-").stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let failed = |error: io::Error| format!("git: {error}");
    let mut child = command.spawn().map_err(failed)?;
    // If git stops reading early, its error output says why.
    child.stdin.take().and_then(|mut stdin| io::Write::write_all(&mut stdin, patch).ok());
    let done = child.wait_with_output().map_err(failed)?;
    let message = String::from_utf8_lossy(&done.stderr).into_owned();
    let first =
        message.lines().next().unwrap_or("git could not apply it").trim_start_matches("error: ").to_owned();
    if done.status.success() { Ok(()) } else { Err(first) }
}
