//! What the journal promises, each promise shown.

#![expect(clippy::unwrap_used, reason = "a test that meets an error has failed")]

mod kit;
mod spine_kit;
mod watched_disk;

mod arbitrary;
mod catching_up;
mod concurrency;
mod crashes;
mod cuts;
mod fan_out;
mod faults;
mod following;
mod formats;
mod giving_up;
mod real_disk;
mod recording;
mod recovering;
mod refusals;
mod removing;
mod rewriting;
mod sealing;
mod segments;
#[cfg(feature = "shuttle")]
mod shuttle;
mod side_files;
mod spine_archives;
mod spine_artifacts;
mod spine_contents;
mod spine_damage;
mod spine_repair;
mod spine_rules;
mod stores;
mod unsettled_ends;
mod verifying;
