//! Finds the session file of a thread in directories.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;

use steno_capture::packing::UnpackReader;
use steno_disk::{Links, open_regular};

use super::Bases;

/// Directories with session files, compressed or not.
#[derive(Clone, Debug, Default)]
pub struct RolloutDirs(pub Vec<PathBuf>);

impl RolloutDirs {
    /// Returns the session file of a thread. If a session continues in a second file, that file has an id of its own:
    /// it is found by that id.
    #[must_use]
    pub fn find(&self, id: &str) -> Option<PathBuf> {
        let is_its = |path: &PathBuf| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let rest =
                name.trim_end_matches(".zst").strip_suffix(".jsonl").and_then(|name| name.strip_suffix(id));
            name.starts_with("rollout-") && rest.is_some_and(|rest| rest.ends_with(['-', '_']))
        };
        let entries = self.0.iter().filter_map(|dir| std::fs::read_dir(dir).ok()).flatten().flatten();
        entries.map(|entry| entry.path()).find(is_its)
    }
}

impl Bases for RolloutDirs {
    fn open(&mut self, thread: &str) -> Option<Box<dyn BufRead>> {
        let file = open_regular(&self.find(thread)?, Links::Refused).ok()?;
        Some(Box::new(BufReader::new(UnpackReader::new(file))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn find_matches_the_thread_or_the_file_id() {
        let dir = tempfile::tempdir().unwrap();
        let names =
            ["rollout-x-t1.jsonl", "rollout-y-t1_u2.jsonl", "rollout-y-t3.jsonl.zst", "other-t4.jsonl"];
        for name in names {
            std::fs::write(dir.path().join(name), "").unwrap();
        }
        let dirs = RolloutDirs(vec![dir.path().to_owned()]);
        let found = |id| dirs.find(id).map(|path| path.file_name().unwrap().to_string_lossy().into_owned());
        assert_eq!(["t1", "u2", "t3"].map(found), [0, 1, 2].map(|at| Some(names[at].to_owned())));
        assert_eq!(["t4", "1", "t1_u3"].map(found), [None, None, None]);
    }
}
