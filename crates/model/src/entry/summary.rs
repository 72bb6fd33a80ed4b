//! Statistics over entries: what `transcript.stop` reports.

use std::collections::BTreeMap;

use super::{EntrySource, EntryType, TranscriptEntry};
use crate::json::{JsonString, RawJson};
use crate::{Timestamp, Vocabulary};

/// How many entries there were, by type and source, and their first and last time (R28).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TranscriptSummary {
    /// The total.
    pub total_entries: u64,
    /// By type, without types that did not occur.
    pub entries_by_type: BTreeMap<EntryType, u64>,
    /// By source.
    pub entries_by_source: BTreeMap<EntrySource, u64>,
    /// Sources in the order in which they were first seen.
    pub sources: Vec<EntrySource>,
    /// The time of the first entry, in the order of the log.
    pub first_timestamp: Option<Timestamp>,
    /// The time of the last entry, in the order of the log.
    pub last_timestamp: Option<Timestamp>,
}

impl TranscriptSummary {
    /// Counts one entry.
    pub fn push(&mut self, entry: &TranscriptEntry) {
        self.total_entries += 1;
        *self.entries_by_type.entry(entry.entry_type()).or_default() += 1;
        let of_source = self.entries_by_source.entry(entry.source().clone()).or_default();
        if *of_source == 0 {
            self.sources.push(entry.source().clone());
        }
        *of_source += 1;
        self.first_timestamp.get_or_insert_with(|| entry.timestamp().clone());
        self.last_timestamp = Some(entry.timestamp().clone());
    }

    /// Returns the summary as JSON.
    #[must_use]
    pub fn to_json(&self) -> RawJson {
        // Counts and texts can always be serialized.
        serde_json::to_string(self).map_or_else(|_| RawJson::null(), RawJson::trusted)
    }
}

impl serde::Serialize for TranscriptSummary {
    fn serialize<S: serde::Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeStruct;
        let text = |source: &EntrySource| source.to_json().to_text().into_owned();
        let time = |time: &Option<Timestamp>| {
            time.as_ref().map(|time| JsonString::to_text(time.as_json()).into_owned())
        };
        let by_type: BTreeMap<_, _> =
            self.entries_by_type.iter().map(|(word, count)| (word.as_str(), count)).collect();
        // Sources with different tokens can decode to one text; their counts are added then.
        let mut by_source = BTreeMap::<String, u64>::new();
        for (source, count) in &self.entries_by_source {
            *by_source.entry(text(source)).or_default() += count;
        }
        let mut object = out.serialize_struct("TranscriptSummary", 6)?;
        object.serialize_field("total_entries", &self.total_entries)?;
        object.serialize_field("entries_by_type", &by_type)?;
        object.serialize_field("entries_by_source", &by_source)?;
        object.serialize_field("sources", &self.sources.iter().map(text).collect::<Vec<_>>())?;
        object.serialize_field("first_timestamp", &time(&self.first_timestamp))?;
        object.serialize_field("last_timestamp", &time(&self.last_timestamp))?;
        object.end()
    }
}
