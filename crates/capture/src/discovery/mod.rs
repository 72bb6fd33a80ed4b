//! Finds the homes of agents and classifies the files in them.
//!
//! Owns where an agent keeps its sessions, by version and variable; which files belong to a session; which must never
//! be read; and when the agent will delete them. Only settings are opened here; other files are read elsewhere.

mod files;
mod given;
mod homes;
mod layout;
mod place;
mod problem;
mod provider;
mod retention;
mod settings;
mod walk;

pub use files::{FoundFile, Listing, Stat, file_at, files, files_below};
pub use given::{Given, GivenFile, LooseFile, given};
pub use homes::{Environment, Home, Homes, Origin, homes};
pub use layout::{DEPTH_MAX, SECRETS};
pub use place::{Place, Role, SessionKey, may_hold, role_of};
pub use problem::{Problem, Why};
pub use provider::Provider;
pub use retention::{Retention, SetBy, retention};
