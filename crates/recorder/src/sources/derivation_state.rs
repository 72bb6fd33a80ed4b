//! What a store was derived with, written down so that nobody has to look at every run again.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use steno_adapters::adapter_versions;
use steno_disk::{Disk, StorePath, read_full, replace_file};
use steno_vault::SourceId;

/// How much of the file is read.
const FILE_BYTES_MAX: usize = 1024 * 1024;

/// The content of `derived.json`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DerivationState {
    /// The adapters that the whole store was derived with.
    adapters: Vec<String>,
    /// Sources of which something could not be derived: the evidence or a transcript is damaged.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    left: BTreeSet<String>,
}

impl DerivationState {
    /// Reads what a store says. One that says nothing, or of other adapters, says nothing of ours.
    pub(crate) fn read(disk: &dyn Disk) -> Self {
        let Ok(Some(file)) = disk.open_read(&path()) else { return Self::default() };
        let mut text = vec![0; FILE_BYTES_MAX];
        let read = read_full(&*file, &mut text, 0).unwrap_or(0);
        let found: Self = serde_json::from_slice(&text[..read]).unwrap_or_default();
        if found.is_current() { found } else { Self::default() }
    }

    /// Tells whether the whole store was derived with the adapters of this program.
    pub(crate) fn is_current(&self) -> bool {
        self.adapters == adapter_versions()
    }

    /// Tells whether something of a source could not be derived.
    pub(crate) fn is_given_up(&self, source: SourceId) -> bool {
        !self.left.is_empty() && self.left.contains(&source.to_string())
    }

    /// Takes in whether something of a source could not be derived.
    pub(crate) fn set_given_up(&mut self, source: SourceId, is_given_up: bool) {
        if is_given_up {
            self.left.insert(source.to_string());
        } else {
            self.left.remove(&source.to_string());
        }
    }

    /// Writes down that the whole store was derived with the adapters of this program.
    pub(crate) fn write(&mut self, disk: &dyn Disk) -> std::io::Result<()> {
        self.adapters = adapter_versions().map(str::to_owned).to_vec();
        let text = serde_json::to_string(self).expect("our own records are strings and numbers");
        replace_file(disk, &path(), format!("{text}\n").as_bytes())
    }
}

fn path() -> StorePath {
    StorePath::root().below("derived.json")
}
