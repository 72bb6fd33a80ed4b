//! Tests of what the journal guarantees.

#![expect(clippy::unwrap_used, reason = "a test that meets an error has failed")]

mod kit;
mod watched_disk;

mod arbitrary;
mod bulk_crashes;
mod catch_up;
mod concurrency;
mod crashes;
mod cuts;
mod fan_out;
mod faults;
mod follower;
mod formats;
mod real_disk;
mod recorder;
mod recovery;
mod refusals;
mod remove;
mod rewrite;
mod seals;
mod segments;
mod shutdown;
#[cfg(feature = "shuttle")]
mod shuttle;
mod sidecar_files;
mod spine_artifacts;
mod stores;
mod unterminated_lines;
mod verify;
