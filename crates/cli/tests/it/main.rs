//! The `steno` binary as its users meet it.

#![expect(clippy::unwrap_used, reason = "a test that meets an error has failed")]

mod agents_files;
mod agents_output;
mod app_servers;
mod archiving;
mod bundles;
mod conversations;
mod copies;
mod distilling;
mod documents;
mod errors;
mod escapes;
mod evidence;
mod exports;
mod following;
mod forgetting_spines;
mod full_disks;
mod kill;
mod kit;
mod limits;
mod listing;
mod mishaps;
mod naming;
mod noticed;
mod one_answer;
mod permissions;
mod privacy;
mod queries;
mod reach;
mod receipts;
mod recording;
mod rederiving;
mod service;
mod serving;
mod settings;
mod showing;
mod spine_recording;
mod spines;
mod strange_files;
mod threads_of_connections;
mod trees;
mod usage;
mod verifying;
mod verifying_spines;
mod watching;
