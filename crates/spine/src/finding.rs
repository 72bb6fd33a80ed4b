//! Findings of the validator: rule, severity, place and words.

use std::collections::BTreeMap;
use std::fmt;

/// The number of findings of one rule that are kept with their places. The others are counted.
const KEPT_PER_RULE_MAX: u64 = 100;

/// The maximum length of a finding's words and of a file's name, in characters. Both contain text of others.
const WORDS_CHARS_MAX: usize = 300;

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Information that is not a fault.
    Info,
    /// Allowed, but possibly unwanted.
    Warning,
    /// The spine is not valid.
    Error,
}

impl Severity {
    /// Returns its word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// Declares the rules: variant, name, severity.
macro_rules! rules {
    ($($(#[$doc:meta])* $variant:ident = $name:literal, $severity:ident;)+) => {
        /// A rule for a spine or a bundle. `docs/format/spine.md` lists the rules.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Rule { $($(#[$doc])* $variant),+ }

        impl Rule {
            /// Every rule.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// Returns its name.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $name),+ }
            }

            /// Returns the severity of a violation, unless the context decides it.
            #[must_use]
            pub fn severity(self) -> Severity {
                match self { $(Self::$variant => Severity::$severity),+ }
            }
        }
    };
}

rules! {
    /// A line is JSON.
    LineJson = "line.json", Error;
    /// A line is UTF-8.
    LineUtf8 = "line.utf8", Error;
    /// A line is not longer than the limit.
    LineLength = "line.length", Error;
    /// A line does not nest deeper than the limit.
    LineDepth = "line.depth", Error;
    /// The envelope has its fields, once and of the right kinds.
    EnvelopeField = "envelope.field", Error;
    /// A record names the schema version.
    SchemaVersion = "schema_version", Error;
    /// Every record names the same thread.
    ThreadId = "thread_id", Error;
    /// Numbers increase.
    SeqOrder = "seq.order", Error;
    /// Numbers increase by 1, from 1. A gap is an error in a store, where all numbers are ours.
    SeqGap = "seq.gap", Warning;
    /// A time is RFC 3339 in UTC.
    Timestamp = "timestamp", Error;
    /// A type is one of the seven.
    TypeUnknown = "type.unknown", Warning;
    /// A payload has the fields of its type.
    PayloadShape = "payload.shape", Error;
    /// A compaction has both histories.
    CompactionHistory = "compaction.history", Error;
    /// A compaction is local or remote.
    CompactionKind = "compaction.kind", Error;
    /// A bridge is of one of three kinds.
    BridgeKind = "bridge.kind", Error;
    /// A bridge names both sides.
    BridgeIds = "bridge.ids", Error;
    /// A bridge has two sides.
    BridgeSelf = "bridge.self", Error;
    /// One side of a bridge is this thread.
    BridgeThread = "bridge.thread", Error;
    /// A bridge has its answer.
    BridgeAnswer = "bridge.answer", Error;
    /// An artifact is of a known kind.
    ArtifactKind = "artifact.kind", Warning;
    /// The path of an artifact is in `artifacts/`.
    ArtifactPath = "artifact.path", Error;
    /// An artifact exists.
    ArtifactMissing = "artifact.missing", Error;
    /// An artifact has the hash that the record names.
    ArtifactSha256 = "artifact.sha256", Error;
    /// Every artifact is named by a record.
    ArtifactUnused = "artifact.unused", Info;
    /// Nothing is left out of the bundle.
    LeftOut = "bundle.left_out", Info;
    /// Nothing in the bundle is changed.
    Changed = "bundle.changed", Info;
    /// A meta file is JSON.
    MetaJson = "meta.json", Error;
    /// A meta file has its fields.
    MetaField = "meta.field", Error;
    /// A meta file names the schema version.
    MetaSchema = "meta.schema", Error;
    /// A meta file names the segment's hash.
    MetaSha256 = "meta.sha256", Error;
    /// A meta file names the segment's length.
    MetaBytes = "meta.bytes", Error;
    /// A meta file names how many records there are.
    MetaCount = "meta.count", Error;
    /// A meta file names the first and the last number.
    MetaSeq = "meta.seq", Error;
    /// A meta file names the thread.
    MetaThread = "meta.thread", Error;
    /// A meta file names its own index.
    MetaIndex = "meta.index", Error;
    /// A segment has a meta file.
    SegmentUnsealed = "segment.unsealed", Info;
    /// An unsealed segment ends with a complete line.
    SegmentTorn = "segment.torn", Warning;
    /// A sealed segment ends with a complete line.
    SegmentCut = "segment.cut", Error;
    /// A sealed segment, or one before others, has records.
    SegmentEmpty = "segment.empty", Error;
    /// The indexes of segments have no gap.
    SegmentMissing = "segment.missing", Error;
    /// A file name that begins like that of a segment is a valid one.
    SegmentName = "segment.name", Error;
    /// Every file is a regular file.
    FileKind = "file.kind", Error;
    /// A name in a tar file can be unpacked safely.
    FileName = "file.name", Error;
    /// `bundle.json` exists and is JSON.
    BundleJson = "bundle.json", Error;
    /// `bundle.json` has its fields.
    BundleField = "bundle.field", Error;
    /// `bundle.json` names the version of bundles.
    BundleVersion = "bundle.version", Error;
    /// `bundle.json` names the spine's schema version.
    BundleSchema = "bundle.schema", Error;
    /// `bundle.json` names the thread of the spine.
    BundleThread = "bundle.thread", Error;
    /// The rollouts are those that `bundle.json` lists.
    BundleRollout = "bundle.rollout", Error;
    /// A bundle has a rollout of its thread.
    BundleNoRollout = "bundle.no_rollout", Warning;
    /// A bundle has only the files of a bundle.
    BundleUnknown = "bundle.unknown", Warning;
    /// No two files of a bundle have the same name.
    BundleDuplicate = "bundle.duplicate", Error;
    /// A tar file can be read to its end.
    BundleTar = "bundle.archive", Error;
    /// No count exceeds its limit.
    Limit = "limit", Error;
}

/// The place of a finding.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FindingLocation {
    /// The file, relative to the checked directory.
    pub file: String,
    /// The line in it, from 1.
    pub line: Option<u64>,
    /// The byte at which that line, or the fault, begins.
    pub offset: Option<u64>,
}

impl FindingLocation {
    pub(super) fn file(name: impl Into<String>) -> Self {
        Self { file: name.into(), line: None, offset: None }
    }

    pub(super) fn line(name: &str, line: u64, offset: u64) -> Self {
        Self { file: name.to_owned(), line: Some(line), offset: Some(offset) }
    }
}

impl fmt::Display for FindingLocation {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.file)?;
        match self.line {
            Some(line) => write!(out, ":{line}"),
            None => Ok(()),
        }
    }
}

/// A violation of a rule, or a remark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The rule.
    pub rule: Rule,
    /// The severity.
    pub severity: Severity,
    /// The place.
    pub place: FindingLocation,
    /// The statement, for people. It may contain text of others.
    pub words: String,
}

/// The findings so far. The first hundred of each rule have their places.
#[derive(Default)]
pub(super) struct Findings {
    kept: Vec<Finding>,
    counts: BTreeMap<(Rule, Severity), u64>,
}

impl Findings {
    pub(super) fn add(&mut self, rule: Rule, place: FindingLocation, words: impl Into<String>) {
        self.add_as(rule.severity(), rule, place, words);
    }

    pub(super) fn add_as(
        &mut self,
        severity: Severity,
        rule: Rule,
        mut place: FindingLocation,
        words: impl Into<String>,
    ) {
        let count = self.counts.entry((rule, severity)).or_default();
        *count += 1;
        if *count > KEPT_PER_RULE_MAX {
            return;
        }
        let mut words = words.into();
        cut(&mut words);
        cut(&mut place.file);
        self.kept.push(Finding { rule, severity, place, words });
    }

    /// Adds the findings of another check.
    pub(super) fn take_over(&mut self, others: Self) {
        for Finding { rule, severity, place, words } in others.kept {
            self.add_as(severity, rule, place, words);
        }
    }

    pub(super) fn count(&self, severity: Severity) -> u64 {
        self.counts.iter().filter(|((_, found), _)| *found == severity).map(|(_, count)| count).sum()
    }

    pub(super) fn into_parts(self) -> (Vec<Finding>, [u64; 3]) {
        let counts = [Severity::Error, Severity::Warning, Severity::Info].map(|found| self.count(found));
        (self.kept, counts)
    }
}

/// Cuts a text to the limit.
fn cut(text: &mut String) {
    if let Some((at, _)) = text.char_indices().nth(WORDS_CHARS_MAX) {
        text.truncate(at);
        text.push('…');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rule_names_are_unique() {
        let names: std::collections::BTreeSet<_> = Rule::ALL.iter().map(|rule| rule.as_str()).collect();
        assert_eq!(names.len(), Rule::ALL.len());
    }

    #[test]
    fn findings_beyond_the_limit_are_counted_and_long_texts_cut() {
        let mut findings = Findings::default();
        for line in 0..250 {
            findings.add(Rule::LineJson, FindingLocation::line("f", line, 0), "é".repeat(1000));
        }
        findings.add(Rule::SegmentUnsealed, FindingLocation::file("f"), "");
        let (kept, counts) = findings.into_parts();
        assert_eq!((kept.len(), counts), (101, [250, 0, 1]));
        assert_eq!(kept[0].words.chars().count(), WORDS_CHARS_MAX + 1);
    }
}
