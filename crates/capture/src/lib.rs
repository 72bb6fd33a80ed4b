//! Where agents' bytes come from: finding their files, and following them as they grow.
//!
//! # Discovery
//! [`discovery`] knows the homes of Claude Code, Codex, Gemini CLI and Copilot CLI, through all their eras.
//! [`homes`](discovery::homes) finds them, [`files`](discovery::files) lists one, [`role_of`](discovery::role_of) tells of a
//! single path what it is, [`given`](discovery::given) finds files at any path that somebody names, and
//! [`retention`](discovery::retention) says when the agent will delete them.
//!
//! ```
//! use steno_capture::discovery::{Environment, Role, files, homes, retention};
//!
//! # let dir = tempfile::tempdir()?;
//! # let me = dir.path().canonicalize()?;
//! # let session = "550e8400-e29b-41d4-a716-446655440000";
//! # let project = me.join(".claude/projects/-src-app");
//! # std::fs::create_dir_all(&project)?;
//! # std::fs::write(project.join(format!("{session}.jsonl")), "{}\n")?;
//! // The environment is handed in: whoever has one looks the variables up.
//! let environment = Environment::from_lookup(Some(me), |_name| None);
//! # let environment = Environment { system_root: dir.path().to_owned(), ..environment };
//! let homes = homes(&environment);
//! let home = &homes.found[0];
//! assert_eq!(home.provider.title(), "Claude Code");
//!
//! let listing = files(home);
//! let file = &listing.files[0];
//! assert_eq!(file.place.role, Role::Transcript);
//! assert_eq!(file.place.project.as_deref(), Some("-src-app"));
//! assert_eq!(file.place.session.as_ref().map(|key| key.id()), Some(session));
//!
//! let retention = retention(home, &environment);
//! assert_eq!(retention.days(), Some(30));
//! assert!(retention.due(file.stat.modified) > Some(file.stat.modified));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! - **What is listed** is what a rule names: the records of sessions ([`Role::Transcript`](discovery::Role)), what else
//!   belongs to a session ([`Role::Sidecar`](discovery::Role)), and what the user would miss besides
//!   ([`Role::Shared`](discovery::Role)). Credentials ([`SECRETS`](discovery::SECRETS)), settings, databases and locks never
//!   are, and directories that cannot hold such files are not looked into.
//! - **Links** are followed for a home itself and for the well-known directories right below it, which some people keep on
//!   another disk, and nowhere else. Only regular files are listed, and no pipe holds anybody up.
//! - **Nothing stops a listing.** What cannot be looked at is a [`Problem`](discovery::Problem) beside what was found.
//! - **The same home gives the same listing**, sorted by path. Paths are kept byte for byte, also where they are no text.

pub mod discovery;
pub mod tail;
