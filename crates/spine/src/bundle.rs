//! The content of a bundle (R118, R119). The same spine gives the same files in the same order.

use std::collections::BTreeMap;

use sha2::{Digest as _, Sha256};
use steno_disk::StorePath;
use steno_journal::{ARTIFACTS_DIR, SegmentIndex, SegmentName};
use steno_model::{ArtifactKind, SPINE_SCHEMA_VERSION, ThreadId};

use super::bundle_json::{BUNDLE_JSON, BUNDLE_VERSION, BundleJson, ChangedFile, LeftOut, RolloutFile};
use super::validator::{MetaFile, Report};
use crate::hash::hex;

/// What a bundle does with shell snapshots, which contain every exported variable, including keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Snapshots {
    /// Left out and listed as left out.
    LeftOut,
    /// With masked values, by the names of their files in `artifacts/`. A snapshot that is not in this map is left out.
    Masked(BTreeMap<String, MaskedFile>),
    /// Unchanged.
    Whole,
}

/// A file with masked values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MaskedFile {
    /// Its content.
    pub bytes: Vec<u8>,
    /// The number of masked values.
    pub values: u64,
}

/// The files of a bundle, and what it lists as left out or changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BundlePlan {
    /// The files, in the order of their names.
    pub entries: Vec<BundleEntry>,
    /// The files that are left out.
    pub left_out: Vec<LeftOut>,
    /// The files that are changed.
    pub changed: Vec<ChangedFile>,
}

/// What a bundle has besides the spine.
#[derive(Clone, Debug)]
pub struct BundleWish {
    /// The rollouts of the thread, and of threads that it continues.
    pub rollouts: Vec<RolloutFile>,
    /// The path of the first rollout, even if it no longer exists.
    pub rollout_path: Option<String>,
    /// What to do with shell snapshots.
    pub snapshots: Snapshots,
    /// What is left out besides snapshots and unknown artifacts.
    pub left_out: Vec<LeftOut>,
}

/// A file of a bundle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BundleEntry {
    /// Its path in the bundle.
    pub name: String,
    /// Its size.
    pub size_bytes: u64,
    /// The source of its bytes.
    pub content: BundleContent,
}

/// The source of the bytes of a bundle's file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BundleContent {
    /// These bytes.
    Bytes(Vec<u8>),
    /// A file of the store.
    Stored(StorePath),
    /// The requested rollout with this index.
    Rollout(usize),
}

/// Plans the bundle of a valid spine: its sealed segments, the artifacts that they name, and what else is requested.
/// Returns `None` if no segment is sealed.
///
/// # Panics
///
/// Never: the description of a bundle consists of strings and numbers.
#[must_use]
pub fn plan_bundle(thread: &ThreadId, report: &Report, wish: BundleWish) -> Option<BundlePlan> {
    let dir = StorePath::spine_of(thread);
    let mut entries = Vec::new();
    let mut left_out = wish.left_out;
    let (mut newest, mut closed_at) = (None, None);
    let mut sealed = Vec::new();
    for (index, segment) in &report.parts.segments {
        let [records, meta] =
            [SegmentName::Records, SegmentName::Meta].map(|name| name(SegmentIndex(*index)));
        let Some(MetaFile { bytes, meta: Some(about), .. }) = report.parts.metas.get(index) else {
            if segment.bytes > 0 {
                let reason = "it is not sealed".to_owned();
                left_out.push(LeftOut { file: format!("spine/{records}"), reason });
            }
            continue;
        };
        newest = newest.max(segment.newest.as_ref());
        closed_at = Some(&about.closed_at);
        sealed.push(segment.file.as_str());
        entries.push(stored(format!("spine/{records}"), segment.bytes, dir.below(records)));
        entries.push(stored(format!("spine/{meta}"), *bytes, dir.below(meta)));
    }
    let mut plan = BundlePlan { entries, left_out, changed: Vec::new() };
    plan.artifacts(&dir, report, &sealed, &wish.snapshots);
    let BundlePlan { mut entries, left_out, changed } = plan;
    for (index, rollout) in wish.rollouts.iter().enumerate() {
        let (name, size_bytes) = (rollout.file.clone(), rollout.bytes);
        entries.push(BundleEntry { name, size_bytes, content: BundleContent::Rollout(index) });
    }
    let bundle = BundleJson {
        bundle_version: BUNDLE_VERSION.to_owned(),
        thread_id: thread.to_string(),
        // A spine without a record has no other time.
        created_at: newest.map(|(_, time)| time).or(closed_at)?.clone(),
        spine_schema_version: SPINE_SCHEMA_VERSION.to_owned(),
        rollout_path: wish.rollout_path,
        rollout_files: Some(wish.rollouts),
        left_out: left_out.clone(),
        changed: changed.clone(),
    };
    let mut text = serde_json::to_vec(&bundle).expect("the description of a bundle is strings and numbers");
    text.push(b'\n');
    entries.push(BundleEntry::of_bytes(BUNDLE_JSON.to_owned(), text));
    entries.sort_by(|one, other| one.name.cmp(&other.name));
    Some(BundlePlan { entries, left_out, changed })
}

impl BundlePlan {
    /// Adds the artifacts that records of sealed segments name.
    fn artifacts(&mut self, dir: &StorePath, report: &Report, sealed: &[&str], snapshots: &Snapshots) {
        let parts = &report.parts;
        for (name, _, kind, place) in &parts.named {
            let file = format!("{ARTIFACTS_DIR}/{name}");
            let Some((_, bytes)) = parts.artifacts.get(name) else { continue };
            if self.has(&file) || !sealed.contains(&place.file.as_str()) {
                continue;
            }
            match (kind, snapshots) {
                (ArtifactKind::ShellSnapshot, Snapshots::LeftOut) => {
                    let reason = "shell snapshots hold exported variables, secrets among them".to_owned();
                    self.left_out.push(LeftOut { file, reason });
                }
                (ArtifactKind::ShellSnapshot, Snapshots::Masked(all)) => match all.get(name) {
                    Some(MaskedFile { values: 0, .. }) => {
                        let path = dir.below(&file);
                        self.entries.push(stored(file, *bytes, path));
                    }
                    Some(masked) => self.masked(file, masked),
                    None => {
                        let reason = "its values could not be masked".to_owned();
                        self.left_out.push(LeftOut { file, reason });
                    }
                },
                (ArtifactKind::ShellSnapshot | ArtifactKind::GitDiff | ArtifactKind::GitInfo, _) => {
                    let path = dir.below(&file);
                    self.entries.push(stored(file, *bytes, path));
                }
            }
        }
        for (name, (kind, place)) in &parts.unknown {
            let file = format!("{ARTIFACTS_DIR}/{name}");
            if parts.artifacts.contains_key(name) && !self.has(&file) && sealed.contains(&place.file.as_str())
            {
                let reason = format!("it is of a kind that we don't know, `{kind}`");
                self.left_out.push(LeftOut { file, reason });
            }
        }
    }

    fn has(&self, file: &str) -> bool {
        self.entries.iter().any(|entry| entry.name == file)
            || self.left_out.iter().any(|out| out.file == file)
    }

    fn masked(&mut self, file: String, masked: &MaskedFile) {
        self.changed.push(ChangedFile {
            file: file.clone(),
            reason: "the values of exported variables are masked".to_owned(),
            masked: masked.values,
            bytes: masked.bytes.len() as u64,
            sha256: hex(&Sha256::new_with_prefix(&masked.bytes)),
        });
        self.entries.push(BundleEntry::of_bytes(file, masked.bytes.clone()));
    }
}

fn stored(name: String, size_bytes: u64, path: StorePath) -> BundleEntry {
    BundleEntry { name, size_bytes, content: BundleContent::Stored(path) }
}

impl BundleEntry {
    fn of_bytes(name: String, bytes: Vec<u8>) -> Self {
        Self { name, size_bytes: bytes.len() as u64, content: BundleContent::Bytes(bytes) }
    }
}
