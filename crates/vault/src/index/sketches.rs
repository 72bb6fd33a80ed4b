//! Finds chunks that share sketch numbers with a new one.

use std::collections::{HashMap, VecDeque};

use super::Key;
use crate::chunker::Sketch;

/// How many chunks are indexed: the newest ones.
pub(super) const ALIKE_LEN_MAX: usize = 64 * 1024;

/// Chunks, indexed by the numbers of their sketches.
#[derive(Default)]
pub(super) struct SketchIndex {
    /// The newest chunk with each number.
    newest: HashMap<u32, Key, foldhash::fast::FixedState>,
    /// The indexed chunks, oldest first.
    sketched: VecDeque<(Key, Sketch)>,
}

impl SketchIndex {
    pub(super) fn insert(&mut self, key: Key, sketch: Sketch) {
        if self.sketched.len() >= ALIKE_LEN_MAX
            && let Some((old, sketch)) = self.sketched.pop_front()
        {
            for number in sketch {
                if self.newest.get(&number) == Some(&old) {
                    self.newest.remove(&number);
                }
            }
        }
        self.sketched.push_back((key, sketch));
        self.newest.extend(sketch.map(|number| (number, key)));
    }

    /// Finds the chunk that shares the most numbers of a sketch, among those for which `known` returns something;
    /// returns how many numbers it shares.
    pub(super) fn find<T>(&self, sketch: &Sketch, known: impl Fn(&Key) -> Option<T>) -> Option<(T, usize)> {
        let keys: Vec<&Key> = sketch.iter().filter_map(|number| self.newest.get(number)).collect();
        let shared = |key: &Key| keys.iter().filter(|other| **other == key).count();
        let found = keys.iter().filter_map(|key| Some((known(key)?, shared(key))));
        found.max_by_key(|(_, shared)| *shared)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sketch_index_is_bounded() {
        let mut alikes = SketchIndex::default();
        for number in 0..u32::try_from(ALIKE_LEN_MAX).unwrap() + 10 {
            let mut key = Key::default();
            key[..4].copy_from_slice(&number.to_le_bytes());
            alikes.insert(key, std::array::from_fn(|location| number * 8 + u32::try_from(location).unwrap()));
        }
        assert_eq!(alikes.sketched.len(), ALIKE_LEN_MAX);
        assert_eq!(alikes.newest.len(), ALIKE_LEN_MAX * 6);
    }
}
