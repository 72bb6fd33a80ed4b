//! The commands, one file each.

pub mod completions;
pub mod config;
pub mod doctor;
pub mod du;
pub mod entries;
pub mod event_lines;
pub mod events;
pub mod follow;
pub mod forget;
pub mod import;
pub mod ls;
pub mod pause;
mod provider_events;
pub mod receipt;
pub mod record;
mod related_runs;
pub mod restore;
mod run_writer;
pub mod seal;
pub mod service;
pub mod show;
pub mod tree;
pub mod up;
pub mod usage;
pub mod verify;
mod verify_vault;
pub mod watch;
