//! Remembers the records of a source's earlier generations, so that a rewritten source gives no event twice and removed
//! records are reported.

use std::collections::{HashMap, HashSet};
use std::hash::BuildHasher as _;
use std::ops::Range;

/// The hashes that identify a record.
#[derive(Clone, Copy, Default)]
struct RecordMark {
    bytes: u64,
    /// The provider's own id, if it gives one.
    id: Option<u64>,
    place: RecordSpan,
}

/// The position of a record in its generation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RecordSpan {
    pub(crate) offset: u64,
    pub(crate) length: u64,
}

/// The records of all generations.
#[derive(Default)]
pub(crate) struct EarlierRecords {
    hasher: foldhash::fast::FixedState,
    /// The ids of all earlier generations.
    ids: HashSet<u64>,
    /// The most occurrences of the same bytes in one earlier generation.
    times: HashMap<u64, u32>,
    before: PreviousGeneration,
    /// The records of this generation, in order.
    now: Vec<RecordMark>,
    /// The occurrences of the same bytes in this generation, if it is not the first.
    times_now: HashMap<u64, u32>,
    at_hand: RecordMark,
}

/// The generation before this one.
#[derive(Default)]
struct PreviousGeneration {
    marks: Vec<RecordMark>,
    /// The indexes of records with these bytes or this id, in order.
    found: HashMap<u64, Vec<usize>>,
    /// The index up to which this generation has followed it.
    followed: usize,
}

impl EarlierRecords {
    /// Takes the current record; tells whether an earlier generation had as many with the same bytes.
    pub(super) fn take(&mut self, text: &str, place: RecordSpan) -> bool {
        let bytes = self.hasher.hash_one(text);
        self.at_hand = RecordMark { bytes, id: None, place };
        let times_now = self.times_now.get(&bytes).copied().unwrap_or_default();
        self.times.get(&bytes).is_some_and(|times| *times > times_now)
    }

    /// Sets the id of the current record; tells whether an earlier generation had a record with this id.
    pub(super) fn name(&mut self, id: &str) -> bool {
        let id = self.hasher.hash_one((id, 0_u8));
        self.at_hand.id = Some(id);
        self.ids.contains(&id)
    }

    /// Remembers the current record; returns the records of the previous generation that were left out before it.
    pub(super) fn keep(&mut self) -> Vec<RecordSpan> {
        // A record that is known by its bytes was not read, and keeps the id that it had.
        self.at_hand.id = self.at_hand.id.or_else(|| self.before.id_of(self.at_hand.bytes));
        self.now.push(self.at_hand);
        if !self.times.is_empty() {
            *self.times_now.entry(self.at_hand.bytes).or_default() += 1;
        }
        let skipped = self.before.follow(self.at_hand);
        self.before.marks[skipped].iter().map(|mark| mark.place).collect()
    }

    /// Ends a generation that is complete; returns the records of the previous one that would follow.
    pub(super) fn end(&mut self) -> Vec<RecordSpan> {
        let missing = self.before.followed..self.before.marks.len();
        self.before.followed = missing.end;
        self.before.marks[missing].iter().map(|mark| mark.place).collect()
    }

    /// Begins the next generation; returns the records of the last but one generation that the last one did not reach.
    pub(super) fn rewritten(&mut self) -> Vec<RecordSpan> {
        let left = self.before.marks.split_off(self.before.followed);
        let now = std::mem::take(&mut self.now);
        self.ids.extend(now.iter().filter_map(|mark| mark.id));
        self.times_now.clear();
        for mark in &now {
            let times_now = self.times_now.entry(mark.bytes).or_default();
            *times_now += 1;
            let times = self.times.entry(mark.bytes).or_default();
            *times = (*times).max(*times_now);
        }
        self.times_now.clear();
        self.before = PreviousGeneration::of(now);
        left.into_iter().map(|mark| mark.place).collect()
    }

    /// Returns how many records the generation before had.
    pub(super) fn records_before(&self) -> usize {
        self.before.marks.len()
    }
}

impl PreviousGeneration {
    fn of(marks: Vec<RecordMark>) -> Self {
        let mut found = HashMap::<u64, Vec<usize>>::new();
        for (ordinal, mark) in marks.iter().enumerate() {
            for key in [Some(mark.bytes), mark.id].into_iter().flatten() {
                found.entry(key).or_default().push(ordinal);
            }
        }
        Self { marks, found, followed: 0 }
    }

    /// Returns the id of a record with these bytes.
    fn id_of(&self, bytes: u64) -> Option<u64> {
        self.found.get(&bytes).and_then(|places| places.first()).and_then(|place| self.marks[*place].id)
    }

    /// Advances to the record with this mark, if it is ahead; returns the records in between.
    fn follow(&mut self, mark: RecordMark) -> Range<usize> {
        let ahead = |key: u64| {
            let places = self.found.get(&key)?;
            places.get(places.partition_point(|place| *place < self.followed)).copied()
        };
        let Some(place) = mark.id.and_then(ahead).or_else(|| ahead(mark.bytes)) else { return 0..0 };
        let skipped = self.followed..place;
        self.followed = place + 1;
        skipped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds a generation of records, each a letter, with ids or without. Returns the known records and the offsets of
    /// vanished ones.
    fn read(seen: &mut EarlierRecords, generation: &str, with_ids: bool) -> (String, Vec<u64>) {
        let (mut known, mut gone) = (String::new(), Vec::new());
        for (offset, letter) in (0..).zip(generation.chars()) {
            let text = if with_ids { format!("{letter}{generation}") } else { letter.to_string() };
            let is_there = seen.take(&text, RecordSpan { offset, length: 1 });
            if is_there || (with_ids && seen.name(&letter.to_string())) {
                known.push(letter);
            }
            gone.extend(seen.keep().iter().map(|place| place.offset));
        }
        (known, gone)
    }

    fn offsets(places: &[RecordSpan]) -> Vec<u64> {
        places.iter().map(|place| place.offset).collect()
    }

    #[test]
    fn moved_record_is_recognized_by_id_or_bytes() {
        for with_ids in [true, false] {
            let mut seen = EarlierRecords::default();
            assert_eq!(read(&mut seen, "ABCD", with_ids), (String::new(), vec![]));
            seen.rewritten();
            assert_eq!(read(&mut seen, "ACDE", with_ids), ("ACD".to_owned(), vec![1]));
        }
    }

    #[test]
    fn equal_records_match_as_often_as_they_occurred() {
        let mut seen = EarlierRecords::default();
        read(&mut seen, "ABAB", false);
        seen.rewritten();
        assert_eq!(read(&mut seen, "AAA", false), ("AA".to_owned(), vec![1]));
        seen.rewritten();
        assert_eq!(read(&mut seen, "AAABBB", false).0, "AAABB");
    }

    #[test]
    fn inserted_record_removes_none() {
        let mut seen = EarlierRecords::default();
        read(&mut seen, "ABC", true);
        seen.rewritten();
        assert_eq!(read(&mut seen, "XABCY", true), ("ABC".to_owned(), vec![]));
    }

    #[test]
    fn removed_end_is_reported_when_the_next_generation_begins() {
        let mut seen = EarlierRecords::default();
        read(&mut seen, "ABCD", true);
        assert_eq!(offsets(&seen.rewritten()), [0_u64; 0]);
        assert_eq!(read(&mut seen, "ABX", true), ("AB".to_owned(), vec![]));
        assert_eq!(offsets(&seen.rewritten()), [2, 3]);
        assert_eq!(seen.records_before(), 3);
        assert_eq!(read(&mut seen, "ABCD", true).0, "ABCD", "known from two generations ago");
    }

    #[test]
    fn record_changed_after_an_unchanged_generation_keeps_its_id() {
        let mut seen = EarlierRecords::default();
        for (text, is_read) in [("a", true), ("a", false), ("b", true)] {
            let is_there = seen.take(text, RecordSpan { offset: 0, length: 1 });
            assert_eq!(is_there, !is_read, "{text}");
            if is_read {
                seen.name("id");
            }
            assert_eq!((offsets(&seen.keep()), offsets(&seen.end())), (vec![], vec![]), "{text}");
            seen.rewritten();
        }
    }

    #[test]
    fn cut_end_of_a_complete_generation_is_reported_at_once() {
        let mut seen = EarlierRecords::default();
        read(&mut seen, "ABCD", true);
        seen.rewritten();
        read(&mut seen, "AB", true);
        assert_eq!(offsets(&seen.end()), [2, 3]);
        assert_eq!((offsets(&seen.end()), offsets(&seen.rewritten())), (vec![], vec![]));
    }

    #[test]
    fn missing_copy_of_equal_records_is_reported() {
        let mut seen = EarlierRecords::default();
        read(&mut seen, "AAAB", false);
        seen.rewritten();
        assert_eq!(read(&mut seen, "AAB", false).1, [2]);
    }
}
