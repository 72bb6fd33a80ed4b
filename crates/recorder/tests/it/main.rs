//! Tests of recording: sources, connections, spines, entries and forgetting.

#![expect(clippy::unwrap_used, reason = "a test that meets an error has failed")]

mod bench;
mod connections;
mod damaged_transcripts;
mod disk_crashes;
mod entry_logs;
mod evidence;
mod follow;
mod forget;
mod forget_spines;
mod import_order;
mod late_bytes;
mod many_runs;
mod moved_files;
mod rederive;
mod restarts;
mod sessions;
mod several_processes;
mod spines;
