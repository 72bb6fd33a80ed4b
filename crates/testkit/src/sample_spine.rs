//! A sample spine: a record of every type and two artifacts, as the journal writes it.

use std::sync::Arc;

use steno_disk::Disk;
use steno_journal::{
    ArtifactFile, Error, Journal, Level, Options, Rotation, SegmentIndex, SegmentName, Store,
};
use steno_model::json::RawJson;
use steno_model::{SpineDraft, SpineType, ThreadId};

use crate::sample::time;
use crate::sim_disk::SimDisk;

/// When a segment of the sample is full.
pub const SMALL: Rotation = Rotation { bytes_max: 100_000, records_max: 3 };
/// An artifact: a difference.
pub const PATCH: &[u8] = b"diff --git a/x b/x\n";
/// An artifact: a snapshot of a shell.
pub const SNAPSHOT: &[u8] = b"declare -x KEY=\"sk-dummy\"\n";

/// Returns the thread of the sample.
///
/// # Panics
/// Never: the text is a name of a thread.
#[must_use]
pub fn thread() -> ThreadId {
    ThreadId::parse("thread_123").expect("the text is a name of a thread")
}

/// Returns a draft with a payload.
///
/// # Panics
/// When the payload is not JSON.
#[must_use]
pub fn draft(record_type: SpineType, payload: &str) -> SpineDraft {
    let payload = RawJson::parse(payload).expect("the payload is JSON");
    SpineDraft::new(record_type, time(), payload).expect("the payload is not too deep")
}

/// Returns the time that the journal of [`journal_on`] has.
///
/// # Panics
/// Never: the number is a time.
#[must_use]
pub fn clock() -> jiff::Timestamp {
    jiff::Timestamp::from_millisecond(1_780_906_482_123).expect("the number is a time")
}

/// Opens a journal on a disk, with a clock that stands still.
///
/// # Errors
/// What the disk says.
pub fn journal_on(disk: &SimDisk) -> Result<Journal, Error> {
    let disk: Arc<dyn Disk> = Arc::new(disk.clone());
    Ok(Journal::new(Store::create(disk)?, Options { clock, ..Options::default() }))
}

/// Writes a spine of eight records in three segments, each sealed.
///
/// # Panics
/// When the journal fails.
pub fn write_spine(journal: &Journal) {
    let spine = journal.spine(&thread(), SMALL).expect("the spine is written");
    let patch = spine.keep_artifact(ArtifactFile::GitDiff, PATCH).expect("the spine is written");
    let shell = spine.keep_artifact(ArtifactFile::ShellSnapshot, SNAPSHOT).expect("the spine is written");
    let diff = format!(
        r#"{{"kind":"git_diff","base_sha":"abc","artifact_path":"{}","sha256":"{}"}}"#,
        patch.artifact_path, patch.sha256
    );
    let snapshot = format!(
        r#"{{"kind":"shell_snapshot","shell":"zsh","artifact_path":"{}","sha256":"{}"}}"#,
        shell.artifact_path, shell.sha256
    );
    for (record_type, payload) in [
        (SpineType::SessionMeta, r#"{"id":"thread_123","rollout_path":"/h/r.jsonl","git":null}"#),
        (SpineType::TurnContext, r#"{"turn_id":"u1","context":{"model":"m"}}"#),
        (SpineType::Submission, r#"{"id":"1","op":{"type":"user_turn"}}"#),
        (SpineType::Event, r#"{"id":"u1","msg":{"type":"agent_message","text":"hello"}}"#),
        (SpineType::ArtifactRef, &diff),
        (SpineType::ArtifactRef, &snapshot),
        (
            SpineType::CompactionBoundary,
            r#"{"turn_id":"u1","kind":"local","pre_compaction_history":[1],"post_compaction_history":[]}"#,
        ),
        (
            SpineType::Bridge,
            r#"{"bridge_kind":"exec_approval","parent_thread_id":"thread_123","parent_turn_id":"u1","sub_agent_thread_id":"thread_9","sub_agent_turn_id":"u9","sub_agent_call_id":"c9","decision":"accept"}"#,
        ),
    ] {
        spine.record(&draft(record_type, payload), Level::Synced).expect("the spine is written");
    }
    spine.close().expect("the spine is written");
}

/// Returns a disk with that spine in its store.
///
/// # Panics
/// Never: the simulated disk fails only when asked to.
#[must_use]
pub fn spine_on_disk() -> SimDisk {
    let disk = SimDisk::new(1);
    write_spine(&journal_on(&disk).expect("the spine is written"));
    disk
}

/// Returns the name of a segment's file.
#[must_use]
pub fn records(index: u32) -> String {
    SegmentName::Records(SegmentIndex(index)).to_string()
}

/// Returns the name of a segment's meta file.
#[must_use]
pub fn meta(index: u32) -> String {
    SegmentName::Meta(SegmentIndex(index)).to_string()
}
