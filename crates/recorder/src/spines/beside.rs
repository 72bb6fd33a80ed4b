//! Session files that lie beside others, found by the threads they are of.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;

use steno_capture::packing::Unpacked;
use steno_disk::{Links, open_regular};

use super::Bases;

/// Session files in some directories, packed or not.
#[derive(Clone, Debug, Default)]
pub struct Beside(pub Vec<PathBuf>);

impl Beside {
    /// Returns where the file of a thread lies.
    #[must_use]
    pub fn find(&self, thread: &str) -> Option<PathBuf> {
        let end = format!("-{thread}.jsonl");
        let is_its = |path: &PathBuf| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with("rollout-") && name.trim_end_matches(".zst").ends_with(&end)
        };
        let entries = self.0.iter().filter_map(|dir| std::fs::read_dir(dir).ok()).flatten().flatten();
        entries.map(|entry| entry.path()).find(is_its)
    }
}

impl Bases for Beside {
    fn open(&mut self, thread: &str) -> Option<Box<dyn BufRead>> {
        let file = open_regular(&self.find(thread)?, Links::Refused).ok()?;
        Some(Box::new(BufReader::new(Unpacked::new(file))))
    }
}
