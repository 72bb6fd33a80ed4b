//! Entries as logs, and archives of agents' homes.

#![expect(clippy::unwrap_used, reason = "a test that meets an error has failed")]

mod bench;
mod connections;
mod dying;
mod evidence;
mod following;
mod forgetting;
mod forgetting_spines;
mod late;
mod logging;
mod many_runs;
mod moving;
mod rederiving;
mod refusing;
mod restarting;
mod sessions;
mod sharing;
mod spines;
