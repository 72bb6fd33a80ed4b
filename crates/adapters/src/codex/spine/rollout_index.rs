//! Finds the rollout lines that the records of a spine were made from, by their evidence.

use steno_model::{Evidence, SpineRecord, SpineSource, SpineType, Timestamp, Word};

use super::fields::PayloadFields;
use crate::codex::wire::RawLine;
use crate::record_bounds::{SourceLine, SourceLines};
use crate::wire::{RawField as _, parse};

/// The lines that the records of a spine were made from, in the order of the records.
#[derive(Debug, Default)]
pub struct RolloutIndex {
    sections: Vec<RolloutSection>,
    /// Whether a record has no evidence in a rollout.
    has_others: bool,
}

/// Consecutive records that were made from one rollout.
#[derive(Debug)]
pub struct RolloutSection {
    rollout: String,
    /// Where the section begins: earlier lines belong to another section.
    offset_first: u64,
    lines: Vec<IndexedLine>,
}

/// A line that a record was made from.
#[derive(Debug)]
struct IndexedLine {
    offset: u64,
    length: u64,
    seq: u64,
    time: Timestamp,
    /// Whether it was copied from another thread.
    is_copied: bool,
}

impl RolloutIndex {
    /// Takes the next record of the spine.
    pub fn record(&mut self, record: &SpineRecord) {
        let is_of_line = match record.record_type {
            Word::Known(SpineType::SessionMeta | SpineType::TurnContext | SpineType::Event) => true,
            Word::Known(SpineType::Submission | SpineType::Bridge) | Word::Unknown(_) => {
                self.has_others = true;
                false
            }
            // These are derived from the record of a line.
            Word::Known(SpineType::ArtifactRef | SpineType::CompactionBoundary) => false,
        };
        if !is_of_line {
            return;
        }
        let evidence = record.extra.get("evidence").and_then(Evidence::read);
        let prefix = format!("{}:", SpineSource::Rollout.name());
        let rollout = evidence
            .as_ref()
            .and_then(|evidence| evidence.source.to_text().strip_prefix(&prefix).map(str::to_owned));
        let (Some(evidence), Some(rollout)) = (evidence, rollout) else {
            self.has_others = true;
            return;
        };
        let line = IndexedLine {
            offset: evidence.position.offset,
            length: evidence.length,
            seq: record.seq.get(),
            time: record.timestamp.clone(),
            is_copied: PayloadFields::parse(record.payload.as_str()).json_text("copied_from").is_some(),
        };
        match self.sections.last_mut() {
            Some(section) if section.rollout == rollout => section.lines.push(line),
            Some(_) | None => {
                let earlier = self.sections.iter().rfind(|section| section.rollout == rollout);
                let end = earlier.and_then(|section| section.lines.last());
                let offset_first = end.map_or(0, |line| line.offset + line.length + 1);
                self.sections.push(RolloutSection { rollout, offset_first, lines: vec![line] });
            }
        }
    }

    /// Returns the sections in the order of the records; none if the spine was not made from rollouts alone.
    #[must_use]
    pub fn sections(&self) -> &[RolloutSection] {
        if self.has_others { &[] } else { &self.sections }
    }
}

impl RolloutSection {
    /// Returns the name of the rollout, as in the evidence of the records.
    #[must_use]
    pub fn rollout(&self) -> &str {
        &self.rollout
    }

    /// Begins to read the rollout.
    #[must_use]
    pub fn read(&self) -> SectionReader<'_> {
        SectionReader { section: self, lines: SourceLines::default(), offset: 0, read: 0, differs: false }
    }
}

/// Reads a rollout up to the last line of a section.
pub struct SectionReader<'a> {
    section: &'a RolloutSection,
    lines: SourceLines,
    offset: u64,
    /// How many lines of the section were read.
    read: usize,
    differs: bool,
}

/// How far a section was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SectionState {
    /// Lines are missing.
    Unfinished,
    /// All lines were read; the rollout may continue.
    Finished,
    /// These are not the bytes that the records were made from.
    Different,
}

impl SectionReader<'_> {
    /// Takes the next bytes of the rollout, from its beginning, and hands over lines without their newlines, each with the
    /// `seq` of its record. A line without a record has the `seq` of the line before it. Lines that were copied from another
    /// thread, and lines that are too long to keep in memory, are left out.
    pub fn feed(&mut self, bytes: &[u8], each: &mut dyn FnMut(u64, &[u8])) -> SectionState {
        let mut lines = std::mem::take(&mut self.lines);
        lines.feed(self.offset, bytes, |line| self.line(&line, each));
        self.lines = lines;
        self.offset += bytes.len() as u64;
        self.state()
    }

    /// Tells how far the section was read.
    #[must_use]
    pub fn state(&self) -> SectionState {
        if self.differs {
            SectionState::Different
        } else if self.read == self.section.lines.len() {
            SectionState::Finished
        } else {
            SectionState::Unfinished
        }
    }

    fn line(&mut self, line: &SourceLine<'_>, each: &mut dyn FnMut(u64, &[u8])) {
        if line.offset < self.section.offset_first || self.state() != SectionState::Unfinished {
            return;
        }
        let known = &self.section.lines[self.read];
        let bytes = line.bytes();
        if line.offset < known.offset {
            let before = self.read.checked_sub(1).map(|before| &self.section.lines[before]);
            if let Some(bytes) = bytes.filter(|bytes| !bytes.trim_ascii().is_empty()) {
                each(before.map_or(known.seq, |before| before.seq), bytes);
            }
            return;
        }
        match bytes.filter(|bytes| line.offset == known.offset && is_line_of(bytes, known)) {
            Some(bytes) => {
                self.read += 1;
                if !known.is_copied {
                    each(known.seq, bytes);
                }
            }
            None => self.differs = true,
        }
    }
}

/// Tells whether a line has the length and the time of a record. A record of a line without a time has the time of an
/// earlier line.
fn is_line_of(bytes: &[u8], known: &IndexedLine) -> bool {
    let line = std::str::from_utf8(bytes).ok().and_then(|text| parse::<RawLine<'_>>(text).ok());
    let time = line.and_then(|line| Timestamp::parse(&line.timestamp.text()?).ok());
    bytes.len() as u64 == known.length && time.is_none_or(|time| time == known.time)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codex::spine::RolloutFold;

    const HEAD: &str = r#"{"timestamp":"2026-05-01T10:00:00.000Z","type":"session_meta","payload":{"id":"t1","git":{"commit_hash":"c0"}}}"#;
    const LINES: [&str; 3] = [
        r#"{"timestamp":"2026-05-01T10:00:01.000Z","type":"event_msg","payload":{"type":"task_started","turn_id":"u1"}}"#,
        "{torn",
        r#"{"timestamp":"2026-05-01T10:00:03.000Z","type":"hologram","payload":{"a":1}}"#,
    ];

    /// Returns the records of a rollout, as they are in a spine from some `seq` on.
    fn records(name: &str, text: &str, seq_first: u64) -> Vec<SpineRecord> {
        let (mut fold, mut offset, mut made) = (RolloutFold::new(), 0, Vec::new());
        for line in text.split_inclusive('\n') {
            if !line.trim().is_empty() {
                made.extend(fold.line(offset, line.trim_end_matches('\n').as_bytes()));
            }
            offset += line.len() as u64;
        }
        let record = |(seq, made): (u64, super::super::SpineMade)| {
            let evidence = Evidence {
                source: format!("rollout:{name}").as_str().into(),
                position: made.position,
                length: made.length,
                unpacked: None,
            };
            let line = format!(
                r#"{{"schema_version":"codex_trace_spine_v1","thread_id":"t1","seq":{seq},"timestamp":{},"type":"{}","payload":{},"evidence":{}}}"#,
                made.timestamp.as_json().as_raw(),
                made.record_type,
                made.payload.as_str(),
                evidence.to_json().as_str()
            );
            SpineRecord::parse(line.as_bytes()).unwrap()
        };
        (seq_first..).zip(made).map(record).collect()
    }

    fn index(records: &[SpineRecord]) -> RolloutIndex {
        let mut index = RolloutIndex::default();
        for record in records {
            index.record(record);
        }
        index
    }

    /// Reads a section from a text that is cut into pieces of every length.
    #[track_caller]
    fn check(section: &RolloutSection, text: &str, want: &[(u64, &str)], state: SectionState) {
        for len in [1, 7, text.len()] {
            let (mut reader, mut found) = (section.read(), Vec::new());
            for piece in text.as_bytes().chunks(len) {
                reader.feed(piece, &mut |seq, line| {
                    found.push((seq, String::from_utf8(line.to_vec()).unwrap()));
                });
            }
            let found: Vec<(u64, &str)> = found.iter().map(|(seq, line)| (*seq, line.as_str())).collect();
            assert_eq!((found.as_slice(), reader.state()), (want, state), "pieces of {len}");
        }
    }

    #[test]
    fn lines_have_the_numbers_of_their_records_and_end_with_the_last() {
        let text = format!("{HEAD}\n\n{}\n", LINES.join("\n"));
        let index = index(&records("r", &text, 1));
        let [section] = index.sections() else { panic!("{index:?}") };
        assert_eq!(section.rollout(), "r");
        // The second record is the artifact that the head names.
        let want = [(1, HEAD), (3, LINES[0]), (4, LINES[1]), (5, LINES[2])];
        check(section, &text, &want, SectionState::Finished);
        check(section, &format!("{text}{}\n", LINES[0]), &want, SectionState::Finished);
        let cut = text.trim_end_matches('\n');
        check(section, cut, &want[..3], SectionState::Unfinished);
    }

    #[test]
    fn another_rollout_is_noticed() {
        let text = format!("{HEAD}\n{}\n", LINES.join("\n"));
        let index = index(&records("r", &text, 1));
        let section = &index.sections()[0];
        check(section, &text.replace("10:00:00", "10:00:09"), &[], SectionState::Different);
        check(section, &text.replace("c0", "c00"), &[], SectionState::Different);
        let want = [(1, HEAD), (3, LINES[0])];
        check(section, &text.replace("{torn\n", ""), &want, SectionState::Different);
    }

    #[test]
    fn line_without_a_record_belongs_to_the_record_before_it() {
        let text = format!("{HEAD}\n{}\n", LINES.join("\n"));
        let mut records = records("r", &text, 1);
        records.remove(2);
        let index = index(&records);
        let want = [(1, HEAD), (1, LINES[0]), (4, LINES[1]), (5, LINES[2])];
        check(&index.sections()[0], &text, &want, SectionState::Finished);
    }

    #[test]
    fn copied_lines_are_left_out() {
        let head =
            HEAD.replace(r#""id""#, r#""forked_from_id":"t0","subagent_history_start_ordinal":3,"id""#);
        let copied = LINES[0].replace(r#""type":"event_msg""#, r#""ordinal":1,"type":"event_msg""#);
        let text = format!("{head}\n{copied}\n{}\n", LINES[2]);
        let index = index(&records("r", &text, 1));
        check(&index.sections()[0], &text, &[(1, &head), (4, LINES[2])], SectionState::Finished);
    }

    #[test]
    fn thread_that_continues_in_another_file_has_sections() {
        let (first, second) = (format!("{HEAD}\n{}\n", LINES[0]), format!("{HEAD}\n{}\n", LINES[2]));
        let mut all = records("a", &first, 1);
        all.extend(records("b", &second, 4));
        let more = format!("{first}{}\n", LINES[2]);
        all.extend(records("a", &more, 4).into_iter().skip(3));
        let index = index(&all);
        let names: Vec<&str> = index.sections().iter().map(RolloutSection::rollout).collect();
        assert_eq!(names, ["a", "b", "a"]);
        check(&index.sections()[1], &second, &[(4, HEAD), (6, LINES[2])], SectionState::Finished);
        check(&index.sections()[2], &more, &[(7, LINES[2])], SectionState::Finished);
    }

    #[test]
    fn spine_of_a_connection_has_no_sections() {
        let line = r#"{"schema_version":"codex_trace_spine_v1","thread_id":"t1","seq":9,"timestamp":"2026-05-01T10:00:00.050Z","type":"submission","payload":{"id":"1","op":{}}}"#;
        let mut all = records("r", &format!("{HEAD}\n"), 1);
        all.push(SpineRecord::parse(line.as_bytes()).unwrap());
        assert_eq!(index(&all).sections().len(), 0);
    }
}
