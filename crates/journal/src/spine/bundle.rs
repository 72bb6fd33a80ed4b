//! What a bundle of a spine is made of (R118, R119): the same spine gives the same files in the same order.

use steno_disk::StorePath;
use steno_model::{ArtifactKind, SPINE_SCHEMA_VERSION, ThreadId};

use super::artifact::DIR as ARTIFACTS;
use super::bundle_json::{BUNDLE_JSON, BUNDLE_VERSION, BundleJson, LeftOut, RolloutFile};
use super::validator::{MetaFile, Report};
use crate::names::{SegmentIndex, SegmentName};
use crate::side::json_line;

/// What to do with shell snapshots, which hold every exported variable, keys among them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Snapshots {
    /// They stay out, and the bundle says so.
    LeftOut,
    /// They go in.
    Included,
}

/// What goes into a bundle beside the spine.
#[derive(Clone, Debug)]
pub struct BundleWish {
    /// The agent's own records of the thread.
    pub rollouts: Vec<RolloutFile>,
    /// Where the first of them lay, also if it is not there any more.
    pub rollout_path: Option<String>,
    /// What to do with shell snapshots.
    pub snapshots: Snapshots,
}

/// A file of a bundle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BundleEntry {
    /// Its path in the bundle.
    pub name: String,
    /// How many bytes it has.
    pub size_bytes: u64,
    /// Where they come from.
    pub content: BundleContent,
}

/// Where the bytes of a bundle's file come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BundleContent {
    /// From here.
    Bytes(Vec<u8>),
    /// From a file of the store.
    Stored(StorePath),
    /// From the rollout of that index in the wish.
    Rollout(usize),
}

/// Plans the bundle of a spine that was found valid: its sealed segments, the artifacts that they name, and what was wished
/// for. Returns the files in the order of their names, and what stays out; `None` when no segment is sealed.
#[must_use]
pub fn plan_bundle(
    thread: &ThreadId,
    report: &Report,
    wish: BundleWish,
) -> Option<(Vec<BundleEntry>, Vec<LeftOut>)> {
    let dir = StorePath::spine_of(thread);
    let mut entries = Vec::new();
    let mut left_out = Vec::new();
    let mut created_at = None;
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
        created_at = Some(about.closed_at.clone());
        sealed.push(segment.file.as_str());
        entries.push(stored(format!("spine/{records}"), segment.bytes, dir.below(records)));
        entries.push(stored(format!("spine/{meta}"), *bytes, dir.below(meta)));
    }
    for (name, _, kind, place) in &report.parts.named {
        let file = format!("{ARTIFACTS}/{name}");
        let Some((_, bytes)) = report.parts.artifacts.get(name) else { continue };
        let is_known =
            entries.iter().any(|entry| entry.name == file) || left_out.iter().any(|out| out.file == file);
        if is_known || !sealed.contains(&place.file.as_str()) {
            continue;
        }
        match (kind, wish.snapshots) {
            (ArtifactKind::ShellSnapshot, Snapshots::LeftOut) => {
                let reason = "shell snapshots hold exported variables, secrets among them".to_owned();
                left_out.push(LeftOut { file, reason });
            }
            (ArtifactKind::ShellSnapshot | ArtifactKind::GitDiff | ArtifactKind::GitInfo, _) => {
                let path = dir.below(&file);
                entries.push(stored(file, *bytes, path));
            }
        }
    }
    for (index, rollout) in wish.rollouts.iter().enumerate() {
        let (name, size_bytes) = (rollout.file.clone(), rollout.bytes);
        entries.push(BundleEntry { name, size_bytes, content: BundleContent::Rollout(index) });
    }
    let bundle = BundleJson {
        bundle_version: BUNDLE_VERSION.to_owned(),
        thread_id: thread.to_string(),
        created_at: created_at?,
        spine_schema_version: SPINE_SCHEMA_VERSION.to_owned(),
        rollout_path: wish.rollout_path,
        rollout_files: Some(wish.rollouts),
        left_out: left_out.clone(),
    };
    let text = format!("{}\n", json_line(&bundle)).into_bytes();
    entries.push(BundleEntry::of_bytes(BUNDLE_JSON.to_owned(), text));
    entries.sort_by(|one, other| one.name.cmp(&other.name));
    Some((entries, left_out))
}

fn stored(name: String, size_bytes: u64, path: StorePath) -> BundleEntry {
    BundleEntry { name, size_bytes, content: BundleContent::Stored(path) }
}

impl BundleEntry {
    fn of_bytes(name: String, bytes: Vec<u8>) -> Self {
        Self { name, size_bytes: bytes.len() as u64, content: BundleContent::Bytes(bytes) }
    }
}
