//! The adapters that a store was derived with, saved so that not every run has to be checked again.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use steno_adapters::adapter_versions;
use steno_disk::{Disk, StorePath, read_full, replace_file};
use steno_vault::SourceId;

/// The most bytes that are read of the file.
const FILE_BYTES_MAX: usize = 1024 * 1024;

/// The content of `derived.json`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DerivationState {
    /// The adapters that the whole store was derived with.
    adapters: Vec<String>,
    /// Sources that are given up: the evidence or a transcript is damaged.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    left: BTreeSet<String>,
}

impl DerivationState {
    /// Reads the state of a store. Without a state, or with one of other adapters, it is empty.
    pub(crate) fn read(disk: &dyn Disk) -> Self {
        let Ok(Some(file)) = disk.open_read(&path()) else { return Self::default() };
        let mut text = vec![0; FILE_BYTES_MAX];
        let read = read_full(&*file, &mut text, 0).unwrap_or(0);
        let state: Self = serde_json::from_slice(&text[..read]).unwrap_or_default();
        if state.is_current() { state } else { Self::default() }
    }

    /// Tells whether the whole store was derived with the adapters of this program.
    pub(crate) fn is_current(&self) -> bool {
        self.adapters == adapter_versions()
    }

    /// Tells whether a source is given up.
    pub(crate) fn is_given_up(&self, source: SourceId) -> bool {
        !self.left.is_empty() && self.left.contains(&source.to_string())
    }

    /// Sets whether a source is given up.
    pub(crate) fn set_given_up(&mut self, source: SourceId, is_given_up: bool) {
        if is_given_up {
            self.left.insert(source.to_string());
        } else {
            self.left.remove(&source.to_string());
        }
    }

    /// Saves that the whole store was derived with the adapters of this program.
    pub(crate) fn write(&mut self, disk: &dyn Disk) -> std::io::Result<()> {
        self.adapters = adapter_versions().iter().map(|&adapter| adapter.to_owned()).collect();
        let text = serde_json::to_string(self).expect("our own records are strings and numbers");
        replace_file(disk, &path(), format!("{text}\n").as_bytes())
    }
}

fn path() -> StorePath {
    StorePath::root().below("derived.json")
}
