//! What is measured on: the synthetic history of Claude Code, and the sample sessions of Codex.

use std::fs;
use std::path::{Path, PathBuf};

use steno_testkit::places;

use crate::Outcome;

/// A source in memory.
pub(crate) struct Sample {
    pub(crate) file_name: String,
    pub(crate) bytes: Vec<u8>,
}

/// Returns where Claude Code would have put the corpus's sessions.
pub(crate) fn projects(corpus: &Path) -> PathBuf {
    corpus.join(".claude/projects")
}

/// Reads the session files of the corpus.
pub(crate) fn of_claude(corpus: &Path) -> Outcome<Vec<Sample>> {
    read_below(&projects(corpus), |_| true)
}

/// Reads the rollouts of Codex: real ones, and those of the captures.
pub(crate) fn of_codex(shared: &Path) -> Outcome<Vec<Sample>> {
    let mut samples = read_below(&shared.join("recordings/codex"), |_| true)?;
    samples.extend(read_below(&shared.join("captures/codex"), |name| name.contains("/rollout-"))?);
    Ok(samples)
}

/// Reads the files of JSON lines below a directory whose path in it is wanted.
fn read_below(directory: &Path, is_wanted: impl Fn(&str) -> bool) -> Outcome<Vec<Sample>> {
    let mut samples = Vec::new();
    for name in places::files_below(directory).iter().map(Path::new) {
        if name.extension() == Some("jsonl".as_ref()) && is_wanted(&name.to_string_lossy()) {
            let file_name = name.file_name().unwrap_or_default().to_string_lossy().into_owned();
            samples.push(Sample { file_name, bytes: fs::read(directory.join(name))? });
        }
    }
    Ok(samples)
}
