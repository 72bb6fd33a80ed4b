//! The validator: takes files by name and bytes, in any order and in one pass, and reports violations of rules.
//!
//! A directory and a tar file are read in the same way. Memory depends on the longest line and the number of files, not
//! on the size of the files.

use std::collections::{BTreeMap, BTreeSet};

use sha2::{Digest as _, Sha256};
use steno_journal::{ARTIFACTS_DIR, META_BYTES_MAX, SegmentMeta, SegmentName, SpineState};
use steno_model::ArtifactKind;

use super::agreement;
use super::artifact_refs::{Refs, is_plain_name};
use super::bundle_json::{self, BUNDLE_JSON, BUNDLE_JSON_BYTES_MAX, BundleJson};
use super::finding::{Finding, FindingLocation, Findings, Rule, Severity};
use super::segment_check::{Segment, SegmentCheck, SegmentTotals};
use crate::hash::hex;

/// The maximum number of files.
const FILES_MAX: usize = 100_000;

/// The arrangement of the files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    /// Segments and `artifacts/` in one directory.
    Spine,
    /// A bundle: `bundle.json`, `spine/`, `rollout/`, `artifacts/`.
    Bundle,
}

/// Facts about a spine that are known before it is read.
#[derive(Clone, Debug, Default)]
pub(super) struct ExpectedSpine {
    /// The thread that it must have.
    pub(super) thread: Option<String>,
    /// True if our journal wrote it, so that its numbers have no gaps.
    pub(super) is_ours: bool,
    /// True if a process is writing it, so that its end may be incomplete.
    pub(super) is_held: bool,
    /// True if a part of it could not be read, so that a missing file is not a fault.
    pub(super) is_partial: bool,
}

/// The result of a check.
#[derive(Clone, Debug)]
pub struct Report {
    /// The thread, if a file names it.
    pub thread: Option<String>,
    /// The number of segments.
    pub segments: u64,
    /// The number of segments with a meta file.
    pub sealed: u64,
    /// The number of records.
    pub records: u64,
    /// The length of all segments.
    pub bytes: u64,
    /// The findings, at most the first hundred of each rule.
    pub findings: Vec<Finding>,
    /// The number of errors.
    pub errors: u64,
    /// The number of warnings.
    pub warnings: u64,
    /// The number of remarks.
    pub infos: u64,
    /// True if a process was writing it, according to its lock.
    pub is_held: bool,
    pub(super) parts: Parts,
}

impl Report {
    /// Returns the segments that are not empty and have no meta file.
    pub fn unsealed(&self) -> impl Iterator<Item = &str> {
        self.open_segments().map(|segment| segment.file.as_str())
    }

    /// Returns the number of bytes that no meta file covers, including a torn end.
    #[must_use]
    pub fn unsealed_bytes(&self) -> u64 {
        self.open_segments().map(|segment| segment.bytes).sum()
    }

    /// Returns the number of bytes that a crash left and that were never a record.
    #[must_use]
    pub fn torn_bytes(&self) -> u64 {
        let of_writer = self.parts.segments.keys().next_back().filter(|_| self.is_held);
        let left = self.parts.segments.iter().filter(|(index, _)| Some(*index) != of_writer);
        left.filter_map(|(_, segment)| segment.torn).map(|torn| torn.len).sum()
    }

    fn open_segments(&self) -> impl Iterator<Item = &Segment> {
        let is_open = |index: &u32| !self.parts.metas.contains_key(index);
        let segments =
            self.parts.segments.iter().filter(move |(index, found)| is_open(index) && found.bytes > 0);
        segments.map(|(_, found)| found)
    }

    /// Returns the state of the spine after the whole check.
    #[must_use]
    pub fn state(&self) -> SpineState {
        match (self.is_valid(), self.is_held, self.unsealed().next()) {
            (false, ..) => SpineState::Damaged,
            (true, true, _) => SpineState::Recording,
            (true, false, Some(_)) => SpineState::Unsealed,
            (true, false, None) => SpineState::Sealed,
        }
    }

    /// Returns the SHA-256 of each sealed segment, in order, according to its meta file.
    pub fn sealed_sha256(&self) -> impl Iterator<Item = &str> {
        self.parts.metas.values().filter_map(|found| Some(found.meta.as_ref()?.sha256.as_str()))
    }

    /// Returns the shell snapshots that exist and that records name, by the names of their files in `artifacts/`.
    pub fn shell_snapshots(&self) -> impl Iterator<Item = &str> {
        let of_kind = self.parts.named.iter().filter(|(.., kind, _)| *kind == ArtifactKind::ShellSnapshot);
        let names: BTreeSet<&str> = of_kind.map(|(name, ..)| name.as_str()).collect();
        names.into_iter().filter(|name| self.parts.artifacts.contains_key(*name))
    }

    /// Returns the rollouts of a bundle, by their names in `rollout/`.
    pub fn rollouts(&self) -> impl Iterator<Item = &str> {
        self.parts.rollouts.keys().map(String::as_str)
    }

    /// Returns true if there is no error.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.errors == 0
    }
}

/// Facts of the files, which are compared at the end.
#[derive(Clone, Debug, Default)]
pub(super) struct Parts {
    pub(super) segments: BTreeMap<u32, Segment>,
    pub(super) metas: BTreeMap<u32, MetaFile>,
    /// Artifacts and rollouts by their name in their directory: hash and length.
    pub(super) artifacts: BTreeMap<String, (String, u64)>,
    pub(super) rollouts: BTreeMap<String, (String, u64)>,
    pub(super) bundle: BundleFile,
    /// The artifacts that records name: name and hash, kind, place.
    pub(super) named: Vec<(String, String, ArtifactKind, FindingLocation)>,
    /// Artifacts of unknown kinds by name: kind and place.
    pub(super) unknown: BTreeMap<String, (String, FindingLocation)>,
}

/// The state of `bundle.json`.
#[derive(Clone, Debug, Default)]
pub(super) enum BundleFile {
    #[default]
    Absent,
    Unreadable,
    Read(BundleJson),
}

impl BundleFile {
    pub(super) fn read(&self) -> Option<&BundleJson> {
        match self {
            Self::Read(bundle) => Some(bundle),
            Self::Absent | Self::Unreadable => None,
        }
    }
}

/// The meta file of a segment.
#[derive(Clone, Debug, Default)]
pub(super) struct MetaFile {
    pub(super) file: String,
    pub(super) bytes: u64,
    /// `None` if it could not be read.
    pub(super) meta: Option<SegmentMeta>,
}

/// A file that is being read.
pub(super) enum Open {
    Segment(u32, Box<SegmentCheck>),
    Meta(u32, SmallFile),
    BundleJson(SmallFile),
    Artifact(String, Sha256, u64),
    Rollout(String, Sha256, u64),
}

/// A small file, kept whole. A file that is too long is kept up to one byte beyond the limit.
pub(super) struct SmallFile {
    file: String,
    bytes: Vec<u8>,
    bytes_max: usize,
}

impl SmallFile {
    fn new(file: &str, bytes_max: usize) -> Self {
        Self { file: file.to_owned(), bytes: Vec::new(), bytes_max }
    }

    fn push(&mut self, piece: &[u8]) {
        let room = (self.bytes_max + 1).saturating_sub(self.bytes.len());
        self.bytes.extend_from_slice(&piece[..piece.len().min(room)]);
    }
}

pub(super) struct Validator {
    layout: Layout,
    known: ExpectedSpine,
    pub(super) findings: Findings,
    refs: Refs,
    parts: Parts,
    /// The names so far, unchanged and in lower case: some systems unpack two names that differ only in case into one
    /// file.
    names: BTreeSet<String>,
    lower_names: BTreeSet<String>,
}

impl Validator {
    pub(super) fn new(layout: Layout, known: ExpectedSpine) -> Self {
        let (findings, refs) = (Findings::default(), Refs::default());
        Self {
            layout,
            known,
            findings,
            refs,
            parts: Parts::default(),
            names: BTreeSet::new(),
            lower_names: BTreeSet::new(),
        }
    }

    /// Begins a file by its name, which is safe. Returns `None` if the file need not be read.
    pub(super) fn open(&mut self, name: &str) -> Option<Open> {
        if self.layout == Layout::Bundle && !self.is_new(name) {
            return None;
        }
        match (self.layout, name.split_once('/')) {
            (Layout::Spine, None) | (Layout::Bundle, Some(("spine", _))) => self.open_of_spine(name),
            (Layout::Bundle, None) if name == BUNDLE_JSON => {
                self.parts.bundle = BundleFile::Unreadable;
                Some(Open::BundleJson(SmallFile::new(name, BUNDLE_JSON_BYTES_MAX)))
            }
            (_, Some((ARTIFACTS_DIR, below))) if is_plain_name(below) => {
                // A temporary file that a crash left does not count.
                let is_temporary = steno_disk::StorePath::new(below.to_owned()).is_temporary();
                (!is_temporary).then(|| Open::Artifact(below.to_owned(), Sha256::new(), 0))
            }
            (Layout::Bundle, Some(("rollout", below))) if is_plain_name(below) => {
                Some(Open::Rollout(below.to_owned(), Sha256::new(), 0))
            }
            (Layout::Bundle, _) => {
                self.findings.add(
                    Rule::BundleUnknown,
                    FindingLocation::file(name),
                    "it does not belong in a bundle",
                );
                None
            }
            (Layout::Spine, Some(_)) => None,
        }
    }

    /// Reports that the input could not be read to its end.
    pub(super) fn ends_early(&mut self, rule: Rule, words: String) {
        self.known.is_partial = true;
        self.findings.add(rule, FindingLocation::file("the archive"), words);
    }

    /// Reports that something else is in place of a file or a directory.
    pub(super) fn is_no_file(&mut self, name: &str, found: &str) {
        self.findings.add(Rule::FileKind, FindingLocation::file(name), format!("it is {found}"));
    }

    fn is_new(&mut self, name: &str) -> bool {
        let is_new = self.names.insert(name.to_owned());
        if !self.lower_names.insert(name.to_lowercase()) {
            let words = "another file has the same name, at least if case is ignored";
            self.findings.add(Rule::BundleDuplicate, FindingLocation::file(name), words);
        }
        if is_new && self.names.len() == FILES_MAX + 1 {
            self.findings.add(
                Rule::Limit,
                FindingLocation::file(name),
                format!("more than {FILES_MAX} files"),
            );
        }
        is_new && self.names.len() <= FILES_MAX
    }

    fn open_of_spine(&mut self, file: &str) -> Option<Open> {
        let name = file.rsplit('/').next().unwrap_or(file);
        match SegmentName::parse(name) {
            Some(SegmentName::Records(index)) => {
                Some(Open::Segment(index.0, Box::new(SegmentCheck::new(file.to_owned()))))
            }
            Some(SegmentName::Meta(index)) => {
                self.parts.metas.insert(index.0, MetaFile { file: file.to_owned(), ..MetaFile::default() });
                Some(Open::Meta(index.0, SmallFile::new(file, META_BYTES_MAX)))
            }
            None => {
                // The name of a file kept aside begins with that of the original file.
                let aside = [".torn-", ".orphan-", ".tmp-"].iter().any(|mark| name.contains(mark));
                if name.to_ascii_lowercase().starts_with("segment") && !aside {
                    let words = "its name resembles that of a segment, but is not one";
                    self.findings.add(Rule::SegmentName, FindingLocation::file(file), words);
                }
                None
            }
        }
    }

    fn noticed(&mut self) -> SegmentTotals<'_> {
        let gap = self.known.gap();
        SegmentTotals { findings: &mut self.findings, refs: &mut self.refs, gap }
    }

    pub(super) fn push(&mut self, open: &mut Open, piece: &[u8]) {
        match open {
            Open::Segment(_, check) => check.push(piece, &mut self.noticed()),
            Open::Meta(_, kept) | Open::BundleJson(kept) => kept.push(piece),
            Open::Artifact(_, hash, bytes) | Open::Rollout(_, hash, bytes) => {
                hash.update(piece);
                *bytes += piece.len() as u64;
            }
        }
    }

    pub(super) fn close(&mut self, open: Open) {
        match open {
            Open::Segment(index, check) => {
                let found = check.finish(&mut self.noticed());
                self.parts.segments.insert(index, found);
            }
            Open::Meta(index, kept) => {
                let meta = agreement::read_meta(&kept.bytes, &kept.file, &mut self.findings);
                let bytes = kept.bytes.len() as u64;
                self.parts.metas.insert(index, MetaFile { file: kept.file, bytes, meta });
            }
            Open::BundleJson(kept) => {
                let read = bundle_json::read(&kept.bytes, &kept.file, &mut self.findings);
                self.parts.bundle = read.map_or(BundleFile::Unreadable, BundleFile::Read);
            }
            Open::Artifact(name, hash, bytes) => {
                self.parts.artifacts.insert(name, (hex(&hash), bytes));
            }
            Open::Rollout(name, hash, bytes) => {
                self.parts.rollouts.insert(name, (hex(&hash), bytes));
            }
        }
    }

    /// Compares all files.
    pub(super) fn finish(mut self) -> Report {
        let named = std::mem::take(&mut self.refs.all).into_iter();
        self.parts.unknown = std::mem::take(&mut self.refs.unknown);
        self.parts.named = named.map(|((name, sha256), (kind, place))| (name, sha256, kind, place)).collect();
        let thread = agreement::check(self.layout, &self.known, &self.parts, &mut self.findings);
        let (findings, [errors, warnings, infos]) = self.findings.into_parts();
        let parts = self.parts;
        let segments = || parts.segments.values();
        Report {
            thread,
            segments: parts.segments.len() as u64,
            sealed: parts.segments.keys().filter(|index| parts.metas.contains_key(index)).count() as u64,
            records: segments().map(|segment| segment.records).sum(),
            bytes: segments().map(|segment| segment.bytes).sum(),
            findings,
            errors,
            warnings,
            infos,
            is_held: self.known.is_held,
            parts,
        }
    }
}

impl ExpectedSpine {
    /// Returns the severity of a gap in the numbers.
    pub(super) fn gap(&self) -> Severity {
        if self.is_ours { Severity::Error } else { Rule::SeqGap.severity() }
    }
}
