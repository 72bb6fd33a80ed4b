//! Finds agents' files, follows them as they grow, and decompresses them.
//!
//! # Discovery
//! [`discovery`] knows the homes of Claude Code, Codex, Gemini CLI and Copilot CLI, in all their versions.
//! [`homes`](discovery::homes) finds them, [`files`](discovery::files) lists one, [`role_of`](discovery::role_of)
//! classifies a single path, [`list_path`](discovery::list_path) lists the files at any path, and
//! [`retention`](discovery::retention) tells when the agent will delete them.
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
//! // The environment is an argument: the caller looks the variables up.
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
//! - **Only files that a rule names are listed**: the records of sessions ([`Role::Transcript`](discovery::Role)),
//!   other files of a session ([`Role::Sidecar`](discovery::Role)), and files that several sessions share
//!   ([`Role::Shared`](discovery::Role)). Credentials ([`SECRETS`](discovery::SECRETS)), settings, databases and locks
//!   are never listed, and directories that cannot contain such files are not read.
//! - **Links** are followed for a home itself and for the well-known directories directly below it, which some users
//!   keep on another disk, and nowhere else. Only regular files are listed, and a pipe never blocks the listing.
//! - **Nothing stops a listing.** What cannot be read is a [`Problem`](discovery::Problem) beside what was found.
//! - **The same home gives the same listing**, sorted by path. Paths are kept byte for byte, even if they are not
//!   UTF-8.
//!
//! # Following files
//! A [`tail::Tail`] follows one path. Each read returns the next bytes with their generation and offset, or reports
//! that the file changed: it was replaced, shortened or rewritten. Its [`tail::Cursor`] is plain data; if it is stored
//! with the bytes, another process can continue exactly there. A [`tail::Watch`] tells which of many files may have
//! changed, from the system's notices if there are any, otherwise from sizes and times.
//!
//! ```
//! use steno_capture::tail::{MAX_READ_BYTES, Tail, TailRead};
//!
//! let dir = tempfile::tempdir()?;
//! let path = dir.path().join("session.jsonl");
//! std::fs::write(&path, "{\"type\":\"user\"}\n")?;
//!
//! let (mut tail, mut buffer) = (Tail::new(&path), Vec::new());
//! assert_eq!(tail.read_next(&mut buffer, MAX_READ_BYTES)?, TailRead::Bytes { generation: 0, offset: 0, len: 16 });
//! assert_eq!(buffer, b"{\"type\":\"user\"}\n");
//! assert_eq!(tail.read_next(&mut buffer, MAX_READ_BYTES)?, TailRead::AtEnd);
//!
//! let cursor = tail.cursor().expect("a file was found");
//! std::fs::write(&path, "{}\n")?;
//! let mut tail = Tail::resume(&path, cursor);
//! assert!(matches!(tail.read_next(&mut buffer, MAX_READ_BYTES)?, TailRead::NewGeneration { generation: 1, .. }));
//! assert_eq!(tail.read_next(&mut buffer, MAX_READ_BYTES)?, TailRead::Bytes { generation: 1, offset: 0, len: 3 });
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Compressed files
//! Some agents compress old files, and users do too. [`packing`] decompresses them. The file itself is followed and
//! stored as it is.
//!
//! # Promises
//! - An agent's files are only read. A pipe, a device, a directory or a link instead of a file is an error and never
//!   blocks a reader.
//! - The bytes of every generation are returned once, from offset 0 on and without gaps. Bytes that replaced others are
//!   never returned as a continuation of them, unless a writer changes the file during a read; the next read then
//!   begins a new generation.
//! - Growth hides a change in the middle of a file until [`tail::Tail::recheck`], or until a restart that finds the
//!   file changed.
//! - A lost notice costs time but no bytes.

pub mod discovery;
pub mod git;
pub mod http_proxy;
pub mod packing;
pub mod proxy;
pub mod tail;
pub mod wrap;
