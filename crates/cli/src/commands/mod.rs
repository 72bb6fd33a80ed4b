//! The commands, one file each.

pub mod completions;
pub mod config;
pub mod event_lines;
pub mod events;
pub mod follow;
pub mod ls;
pub mod record;
mod run_writer;
pub mod seal;
pub mod tree;
pub mod verify;
