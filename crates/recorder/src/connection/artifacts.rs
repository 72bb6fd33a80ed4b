//! Artifacts of a session while it runs: the state of its Git repository, and the shell's snapshot.

use std::collections::HashSet;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::value::RawValue;
use steno_capture::git::{self, GitDiff, GitState};
use steno_disk::{Links, open_regular, read_up_to};
use steno_journal::ArtifactFile;
use steno_model::json::{JsonString, ObjectWriter, RawJson};
use steno_model::{ThreadId, Timestamp};

/// The longest shell snapshot that is read.
const SNAPSHOT_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// How many lines of a session file are searched for the name of its shell.
const LINES_MAX: usize = 64;
/// How many bytes of it.
const BEGINNING_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// A file to store, with the fields of its record.
pub(super) struct Artifact {
    pub(super) content: Option<(ArtifactFile, Vec<u8>)>,
    kind: &'static str,
    fields: Vec<(&'static str, RawJson)>,
}

impl Artifact {
    /// Returns the payload of its record, with path and hash if the file was stored.
    pub(super) fn payload(&self, file: Option<(&str, &str)>) -> RawJson {
        RawJson::object(|object: &mut ObjectWriter<'_>| {
            object.word("kind", self.kind);
            for (name, value) in &self.fields {
                object.json(name, value);
            }
            if let Some((path, sha256)) = file {
                object.string("artifact_path", &JsonString::from_text(path));
                object.string("sha256", &JsonString::from_text(sha256));
            }
        })
    }
}

fn text(text: &str) -> RawJson {
    JsonString::from_text(text).to_json()
}

/// Returns the state of the repository that a thread works in, when its first turn begins.
pub(super) fn of_repository(cwd: &str) -> Vec<Artifact> {
    let Some(state) = git::look(Path::new(cwd)) else { return Vec::new() };
    let info = identity(&state);
    [Some(info), state.diff.map(difference)].into_iter().flatten().collect()
}

/// Returns the current diff of the working tree, also if it has not changed: only later is it known whether the last
/// diff was in time.
pub(super) fn of_working_tree(cwd: &str) -> Vec<Artifact> {
    git::look_at_working_tree(Path::new(cwd)).map(difference).into_iter().collect()
}

fn difference(diff: GitDiff) -> Artifact {
    // The time is needed to compare the diff with the agent's actions: the agent continues meanwhile.
    let now = Timestamp::from_instant(jiff::Timestamp::now());
    let fields = vec![("base_sha", text(&diff.base)), ("looked_at", now.as_json().to_json())];
    Artifact { content: Some((ArtifactFile::GitDiff, diff.patch)), kind: "git_diff", fields }
}

fn identity(state: &GitState) -> Artifact {
    let identity = RawJson::object(|object| {
        object.string("commit_hash", &JsonString::from_text(&state.commit));
        for (name, value) in [("branch", &state.branch), ("repository_url", &state.url)] {
            let value = value.as_ref().map(|value| JsonString::from_text(value));
            object.optional(name, value.as_ref(), ObjectWriter::string);
        }
    });
    let root = text(&state.root.to_string_lossy());
    Artifact { content: None, kind: "git_info", fields: vec![("repo_root", root), ("git", identity)] }
}

/// Finds shell snapshots, which the agent deletes when a session ends.
#[derive(Default)]
pub(super) struct Snapshots {
    paths_known: HashSet<PathBuf>,
}

impl Snapshots {
    /// Returns a new snapshot of a thread whose session file is known.
    pub(super) fn look(&mut self, thread: &ThreadId, rollout: &str) -> Option<Artifact> {
        let rollout = Path::new(rollout);
        // `<home>/sessions/<year>/<month>/<day>/<file>`
        let dir = rollout.ancestors().nth(5)?.join("shell_snapshots");
        let is_its = |path: &PathBuf| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with(&format!("{thread}.")) && name.ends_with(".sh")
        };
        let mut snapshots = std::fs::read_dir(dir).ok()?.flatten().map(|entry| entry.path()).filter(is_its);
        let path = snapshots.find(|path| !self.paths_known.contains(path))?;
        let bytes = read_up_to(open_regular(&path, Links::Refused).ok()?, SNAPSHOT_BYTES_MAX).ok()?;
        self.paths_known.insert(path);
        let shell = shell_of(rollout).unwrap_or_else(|| "unknown".to_owned());
        let content = Some((ArtifactFile::ShellSnapshot, bytes));
        Some(Artifact { content, kind: "shell_snapshot", fields: vec![("shell", text(&shell))] })
    }
}

#[derive(Deserialize)]
struct RolloutLine<'a> {
    #[serde(rename = "type")]
    kind: String,
    #[serde(borrow)]
    payload: &'a RawValue,
}

/// Reads the name of a session's shell from its file.
fn shell_of(rollout: &Path) -> Option<String> {
    let file = open_regular(rollout, Links::Refused).ok()?.take(BEGINNING_BYTES_MAX);
    let lines = BufReader::new(file).lines().take(LINES_MAX).map_while(Result::ok);
    lines.into_iter().find_map(|line| {
        let read: RolloutLine<'_> =
            serde_json::from_str(&line).ok().filter(|line: &RolloutLine<'_>| line.kind == "world_state")?;
        let state: serde_json::Value = serde_json::from_str(read.payload.get()).ok()?;
        let shell = &state["state"]["environments"]["environments"]["local"]["shell"];
        shell.as_str().map(str::to_owned)
    })
}
