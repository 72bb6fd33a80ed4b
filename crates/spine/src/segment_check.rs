//! Checks the records of one segment, and collects what its meta file and the other segments must agree with.

use sha2::{Digest as _, Sha256};
use steno_journal::has_hole;
use steno_model::{Error as ModelError, PayloadFlaw, SPINE_SCHEMA_VERSION, Seq, SpineEnvelope};

use super::artifact_refs::{Refs, check_path};
use super::finding::{FindingLocation, Findings, Rule, Severity};
use super::splitter::{Line, Splitter};
use crate::hash::hex;

/// The facts of a segment.
#[derive(Clone, Debug)]
pub(super) struct Segment {
    /// Its name, relative to the checked directory.
    pub(super) file: String,
    pub(super) bytes: u64,
    pub(super) sha256: String,
    pub(super) records: u64,
    /// The lowest and the highest number.
    pub(super) seq_first: Option<Seq>,
    pub(super) seq_last: Option<Seq>,
    /// The thread that its first record names.
    pub(super) thread: Option<String>,
    /// The time that its first record names.
    pub(super) time_first: String,
    /// The latest time that a record names, as an instant and as text.
    pub(super) newest: Option<(jiff::Timestamp, String)>,
    pub(super) torn: Option<Torn>,
    pub(super) unread: Unread,
}

/// The number of lines that are neither records nor a torn end. Their numbers are unknown and are not checked.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Unread {
    pub(super) all: u64,
    /// Lines before the first record.
    pub(super) leading: u64,
    /// Lines after the last record.
    pub(super) trailing: u64,
}

/// The end of a segment that is not a record: bytes without a newline, or zeros without valid lines after them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Torn {
    pub(super) offset: u64,
    pub(super) line: u64,
    pub(super) len: u64,
}

/// Totals of all segments.
pub(super) struct SegmentTotals<'a> {
    pub(super) findings: &'a mut Findings,
    pub(super) refs: &'a mut Refs,
    /// The severity of a gap in the numbers.
    pub(super) gap: Severity,
}

/// A segment that is being read.
pub(super) struct SegmentCheck {
    splitter: Splitter,
    hash: Sha256,
    lines: u64,
    hole: Option<Hole>,
    /// The number of lines after the highest number that may take the place of others: bad lines and those out of
    /// order.
    astray: u64,
    found: Segment,
}

/// Bad lines with zeros. A crash may have left them; if valid lines follow, they are damage.
struct Hole {
    offset: u64,
    line: u64,
    /// The number of lines.
    lines: u64,
    /// The findings if they are damage.
    findings: Findings,
}

impl SegmentCheck {
    pub(super) fn new(file: String) -> Self {
        let found = Segment {
            file,
            bytes: 0,
            sha256: String::new(),
            records: 0,
            seq_first: None,
            seq_last: None,
            thread: None,
            time_first: String::new(),
            newest: None,
            torn: None,
            unread: Unread::default(),
        };
        Self { splitter: Splitter::default(), hash: Sha256::new(), lines: 0, hole: None, astray: 0, found }
    }

    pub(super) fn push(&mut self, piece: &[u8], noticed: &mut SegmentTotals<'_>) {
        self.hash.update(piece);
        self.found.bytes += piece.len() as u64;
        let mut splitter = std::mem::take(&mut self.splitter);
        splitter.push(piece, |offset, line| self.line(offset, &line, noticed));
        self.splitter = splitter;
    }

    fn line(&mut self, offset: u64, line: &Line<'_>, noticed: &mut SegmentTotals<'_>) {
        self.lines += 1;
        let (rule, words, hole) = match line {
            Line::TooLong { hole } => (Rule::LineLength, too_long_words(), *hole),
            Line::Whole(bytes) => match SpineEnvelope::parse(bytes) {
                Ok(record) => return self.record(offset, &record, noticed),
                Err(error) => (rule_of(&error), error.to_string(), has_hole(bytes)),
            },
        };
        let place = FindingLocation::line(&self.found.file, self.lines, offset);
        self.found.unread.trailing += 1;
        self.astray += 1;
        if hole {
            // This may be the end that a crash left. The next lines show whether it is.
            let line = self.lines;
            let hole = self.hole.get_or_insert_with(|| Hole {
                offset,
                line,
                lines: 0,
                findings: Findings::default(),
            });
            hole.lines += 1;
            hole.findings.add(rule, place, words);
        } else {
            self.end_hole(noticed);
            noticed.findings.add(rule, place, words);
        }
    }

    /// Ends a hole: a crash cannot have left the lines after the zeros, so the zeros are damage.
    fn end_hole(&mut self, noticed: &mut SegmentTotals<'_>) {
        if let Some(hole) = self.hole.take() {
            noticed.findings.take_over(hole.findings);
        }
    }

    fn record(&mut self, offset: u64, record: &SpineEnvelope<'_>, noticed: &mut SegmentTotals<'_>) {
        self.end_hole(noticed);
        let found = &mut self.found;
        let lines = self.lines;
        let place = || FindingLocation::line(&found.file, lines, offset);
        match (found.seq_last, record.seq) {
            (Some(last), seq) if seq <= last => {
                noticed.findings.add(Rule::SeqOrder, place(), format!("seq {seq} comes after {last}"));
                self.astray += 1;
            }
            (Some(last), seq) if seq.get() - last.get() - 1 > self.astray => {
                let words = format!("seq {seq} comes after {last}: {} missing", seq.get() - last.get() - 1);
                noticed.findings.add_as(noticed.gap, Rule::SeqGap, place(), words);
            }
            _ => {}
        }
        if let Some(thread) = found.thread.as_deref().filter(|thread| *thread != record.thread_id) {
            let words =
                format!("a record of thread `{}` in the spine of thread `{thread}`", record.thread_id);
            noticed.findings.add(Rule::ThreadId, place(), words);
        }
        if !record.has_time() {
            let words = format!("`{}` is not an RFC 3339 time in UTC", record.timestamp);
            noticed.findings.add(Rule::Timestamp, place(), words);
        }
        if record.record_type.known().is_none() {
            let words = format!("a record of the unknown type `{}`", record.record_type);
            noticed.findings.add(Rule::TypeUnknown, place(), words);
        }
        match record.check_payload() {
            Ok(None) => {}
            Ok(Some(artifact)) => match check_path(&artifact.path) {
                Ok(name) => noticed.refs.add(name, &artifact, place(), noticed.findings),
                Err(words) => noticed.findings.add(Rule::ArtifactPath, place(), words),
            },
            Err(flaw) => {
                if let PayloadFlaw::ArtifactKind { found, path: Some(path) } = &flaw
                    && let Ok(name) = check_path(path)
                {
                    noticed.refs.add_unknown(name, found, place());
                }
                noticed.findings.add(rule_of_flaw(&flaw), place(), flaw.to_string());
            }
        }
        if found.records == 0 {
            found.thread = Some(record.thread_id.to_string());
            found.time_first = record.timestamp.to_string();
            found.seq_first = Some(record.seq);
            found.unread.leading = found.unread.trailing;
        }
        found.unread.all += std::mem::take(&mut found.unread.trailing);
        if found.seq_last < Some(record.seq) {
            self.astray = 0;
        }
        if let Ok(instant) = record.timestamp.parse()
            && found.newest.as_ref().is_none_or(|(newest, _)| *newest < instant)
        {
            found.newest = Some((instant, record.timestamp.to_string()));
        }
        found.records += 1;
        found.seq_first = found.seq_first.min(Some(record.seq));
        found.seq_last = found.seq_last.max(Some(record.seq));
    }

    pub(super) fn finish(mut self, noticed: &mut SegmentTotals<'_>) -> Segment {
        let rest = self.splitter.rest();
        if rest.as_ref().is_some_and(|rest| rest.is_too_long) {
            self.end_hole(noticed);
        }
        let mut found = self.found;
        found.sha256 = hex(&self.hash);
        let end = found.bytes;
        match (self.hole, rest) {
            (Some(Hole { offset, line, lines, .. }), _) => {
                found.unread.trailing -= lines;
                found.torn = Some(Torn { offset, line, len: end - offset });
            }
            (None, Some(rest)) if rest.is_too_long => {
                let place = FindingLocation::line(&found.file, self.lines + 1, rest.offset);
                noticed.findings.add(Rule::LineLength, place, too_long_words());
            }
            (None, Some(rest)) => {
                found.torn = Some(Torn { offset: rest.offset, line: self.lines + 1, len: rest.len });
            }
            (None, None) => {}
        }
        found.unread.all += found.unread.trailing;
        found
    }
}

fn too_long_words() -> String {
    format!("a line longer than {} bytes", steno_model::limits::LINE_BYTES_MAX)
}

fn rule_of(error: &ModelError) -> Rule {
    match error {
        ModelError::NotUtf8 { .. } => Rule::LineUtf8,
        ModelError::TooLong { .. } => Rule::LineLength,
        ModelError::TooDeep { .. } => Rule::LineDepth,
        ModelError::WrongField { wanted, .. } if *wanted == SPINE_SCHEMA_VERSION => Rule::SchemaVersion,
        ModelError::BadId { .. } => Rule::ThreadId,
        ModelError::MissingField { .. }
        | ModelError::WrongField { .. }
        | ModelError::DuplicateField { .. }
        | ModelError::ForbiddenField { .. } => Rule::EnvelopeField,
        ModelError::NotJson { .. }
        | ModelError::Empty
        | ModelError::NotAnObject
        | ModelError::OtherRun { .. }
        | ModelError::UnknownEventType { .. }
        | ModelError::UnknownBlockType { .. }
        | ModelError::UnknownWord { .. }
        | ModelError::WrongPayload { .. } => Rule::LineJson,
    }
}

fn rule_of_flaw(flaw: &PayloadFlaw) -> Rule {
    match flaw {
        PayloadFlaw::NotAnObject { .. } | PayloadFlaw::Field { .. } => Rule::PayloadShape,
        PayloadFlaw::ArtifactKind { .. } => Rule::ArtifactKind,
        PayloadFlaw::History { .. } => Rule::CompactionHistory,
        PayloadFlaw::CompactionKind { .. } => Rule::CompactionKind,
        PayloadFlaw::BridgeKind { .. } => Rule::BridgeKind,
        PayloadFlaw::BridgeIds { .. } => Rule::BridgeIds,
        PayloadFlaw::BridgeSelf => Rule::BridgeSelf,
        PayloadFlaw::BridgeOfOthers => Rule::BridgeThread,
        PayloadFlaw::Unanswered { .. } => Rule::BridgeAnswer,
    }
}
