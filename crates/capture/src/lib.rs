//! Where agents' bytes come from: finding their files, following them as they grow, and unpacking them.
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
//!
//! # Following files
//! A [`tail::Tail`] follows one path. Each look hands on the next bytes with their generation and offset, or says that
//! the file became another: replaced, shortened or rewritten. Its [`tail::Cursor`] is plain data; kept with the bytes, it
//! lets another process go on exactly there. A [`tail::Watch`] tells which of many files are worth a look, from the
//! system's notices where there are any and from sizes and times where there are not.
//!
//! ```
//! use steno_capture::tail::{Look, MAX_READ_BYTES, Tail};
//!
//! let dir = tempfile::tempdir()?;
//! let path = dir.path().join("session.jsonl");
//! std::fs::write(&path, "{\"type\":\"user\"}\n")?;
//!
//! let (mut tail, mut buffer) = (Tail::new(&path), Vec::new());
//! assert_eq!(tail.look(&mut buffer, MAX_READ_BYTES)?, Look::Bytes { generation: 0, offset: 0, len: 16 });
//! assert_eq!(buffer, b"{\"type\":\"user\"}\n");
//! assert_eq!(tail.look(&mut buffer, MAX_READ_BYTES)?, Look::AtEnd);
//!
//! let cursor = tail.cursor().expect("a file was found");
//! std::fs::write(&path, "{}\n")?;
//! let mut tail = Tail::resume(&path, cursor);
//! assert!(matches!(tail.look(&mut buffer, MAX_READ_BYTES)?, Look::NewGeneration { generation: 1, .. }));
//! assert_eq!(tail.look(&mut buffer, MAX_READ_BYTES)?, Look::Bytes { generation: 1, offset: 0, len: 3 });
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Compressed files
//! Some agents compress what they are done with, and users do too. [`packing`] gives the bytes back as they were written.
//! What is followed and kept is the file as it is.
//!
//! # Promises
//! - An agent's files are only read. Nothing that takes a file's place can hold a reader up: a pipe, a device, a
//!   directory or a link there is an error.
//! - Of every generation the bytes come once, from offset 0 on and without gaps. What took the place of bytes that were
//!   read is never handed on as going on from them, except by a writer who changes a file while it is being read; the
//!   next look then begins a new generation.
//! - Growth hides a change in the middle of a file until [`tail::Tail::recheck`] or a restart that finds the file changed.
//! - A notice that is lost costs time and no byte.

pub mod discovery;
pub mod git;
pub mod packing;
pub mod proxy;
pub mod tail;
