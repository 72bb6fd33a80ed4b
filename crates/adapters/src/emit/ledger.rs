//! Which records have no entry yet: each gets one, and some only when a later record has shown what they are.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::PendingRecord;

/// From how many records on all of them are looked at, and not only the first.
const LOOK_AT_MIN: usize = 1024;

/// The records without an entry, in the order of the source.
#[derive(Default)]
pub(crate) struct Ledger {
    open: BTreeMap<(u32, u64), PendingRecord>,
    /// From how many records on it is worth to look at all of them again.
    look_at: usize,
}

impl Ledger {
    /// Keeps a record that has no entry.
    pub(super) fn open(&mut self, held: PendingRecord) {
        self.open.insert((held.generation, held.offset), held);
    }

    /// Takes note that a record has an entry.
    pub(super) fn close(&mut self, generation: u32, offset: u64) {
        if !self.open.is_empty() {
            self.open.remove(&(generation, offset));
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Hands over the records that nobody keeps any more, the first ones alone: those behind one that is kept follow it,
    /// unless there are very many.
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
