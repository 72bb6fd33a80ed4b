//! The records without an entry. Each gets one, some only after a later record has shown what they are.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::PendingRecord;

/// The number of records from which all of them are checked, not only the first.
const LOOK_AT_MIN: usize = 1024;

/// The records without an entry, in the order of the source.
#[derive(Default)]
pub(crate) struct Ledger {
    open: BTreeMap<(u32, u64), PendingRecord>,
    /// The number of records at which to check all of them again.
    look_at: usize,
}

impl Ledger {
    /// Keeps a record that has no entry.
    pub(super) fn open(&mut self, held: PendingRecord) {
        self.open.insert((held.generation, held.offset), held);
    }

    /// Notes that a record has an entry.
    pub(super) fn close(&mut self, generation: u32, offset: u64) {
        if !self.open.is_empty() {
            self.open.remove(&(generation, offset));
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Removes and returns the records that are no longer pending, up to the first pending one, or all of them if there
    /// are very many.
    pub(crate) fn take_free(&mut self) -> Vec<PendingRecord> {
        let mut free = Vec::new();
        while let Some(first) = self.open.first_entry()
            && is_free(first.get())
        {
            free.push(first.remove());
        }
        if self.open.len() >= self.look_at.max(LOOK_AT_MIN) {
            free.extend(self.open.extract_if(.., |_, held| is_free(held)).map(|(_, held)| held));
            self.look_at = 2 * self.open.len();
        }
        free
    }

    /// Hands over all records: the source has ended.
    pub(crate) fn take_all(&mut self) -> Vec<PendingRecord> {
        std::mem::take(&mut self.open).into_values().collect()
    }
}

fn is_free(held: &PendingRecord) -> bool {
    Arc::strong_count(&held.text) == 1
}
