//! Finds the homes of agents and classifies the files in them.
//!
//! Owns where an agent keeps its sessions, by version and variable; which files belong to a session; which must never
//! be read; and when the agent will delete them. Only settings and lists of projects are opened here; other
//! files are read elsewhere.

mod file_place;
mod files;
mod gemini_project;
mod homes;
mod layout;
mod path_listing;
mod problem;
mod retention;
mod settings;
mod walk;

pub use file_place::{FilePlace, Role, SessionKey, may_hold, role_of};
pub use files::{FoundFile, Listing, Stat, file_at, files, files_below};
pub use gemini_project::{gemini_project_dir, gemini_project_of, gemini_root, gemini_root_file};
pub use homes::{Environment, Home, Homes, Origin, database, homes};
pub use layout::{DEPTH_MAX, SECRETS, has_short_ids};
pub use path_listing::{LooseFile, PathFile, PathListing, list_path, may_have_records};
pub use problem::{Problem, ProblemKind};
pub use retention::{Retention, RetentionOrigin, retention};
