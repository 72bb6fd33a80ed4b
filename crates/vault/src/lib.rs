//! Evidence: agents' files byte for byte, in every generation, with each chunk stored once.
//!
//! A **source** is one file of an agent in all its generations. It has one owner at a time, which appends bytes as they
//! arrive. Committed bytes survive a power cut and read back unchanged.
//!
//! ```
//! use std::sync::Arc;
//! use steno_disk::{Disk as _, RealDisk, StorePath};
//! use steno_vault::{HostPath, Remainder, Role, SourceId, SourceInfo, Vault};
//!
//! # let dir = tempfile::tempdir()?;
//! let disk = Arc::new(RealDisk::create(&dir.path().join("store"))?);
//! disk.make_dir(&StorePath::locks())?;
//! let vault = Vault::create(disk)?;
//!
//! let path = HostPath("/agents/claude/projects/p/s.jsonl".into());
//! let source = SourceId::derive(&path.0, 0);
//! let info = SourceInfo {
//!     provider: None,
//!     role: Role::Transcript,
//!     home: None,
//!     path,
//!     session: None,
//!     project: None,
//!     is_filtered: false,
//! };
//! let mut writer = vault.write(source, &info, "2026-06-08T08:14:42Z")?;
//! writer.append(b"{\"type\":\"user\"}\n")?;
//! writer.commit(Remainder::InTail)?;
//! writer.begin_generation("rewritten", "2026-06-08T09:00:00Z")?;
//! writer.append(b"{}\n")?;
//! writer.commit(Remainder::InTail)?;
//!
//! let manifest = vault.manifest(source)?.expect("it was just written");
//! let mut first = Vec::new();
//! vault.read(&manifest, 0, 0, |_, bytes| {
//!     first.extend_from_slice(bytes);
//!     true
//! })?;
//! assert_eq!(first, b"{\"type\":\"user\"}\n");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Model
//! - **Chunks.** Bytes are cut at boundaries that depend on their content, so equal stretches give equal chunks. Each
//!   chunk is stored once, under its BLAKE3 hash. A chunk that is similar to another is stored as a delta: a fork of a
//!   session has a different id in every line and still takes almost no space.
//! - **Packs** only grow. Each process writes its own pack, so processes do not wait for each other. When a pack is
//!   closed, an index file beside it lists the valid frames. In a pack whose process died, the chunks that manifests
//!   name are valid.
//! - **Manifests** are JSON lines with checksums, one file per source: what the source is, its generations, their
//!   chunks in order, and how far it was read and turned into events when its owner closed it.
//! - **Tails.** The bytes at the end of a source that do not fill a chunk yet are synced in a separate file. They move
//!   into a pack when there are enough of them.
//! - **Order of writing.** Chunk, sync, manifest, sync. A manifest therefore never names a chunk that a power cut can
//!   lose. [`SharedCommits`] commits many sources in this order with few syncs.
//! - **Forgetting.** A tombstone is written first. Then everything is deleted that nothing else uses. If that is
//!   interrupted, the next process that opens the vault completes it. Tombstones of spines are in the same file, so a
//!   session is forgotten in one step.
//!
//! # Where to look
//! `writer` writes and `vault` reads. Between them: `chunker` finds boundaries and sketches chunks, `codec` compresses,
//! `frame` and `pack` define how chunks are stored on disk, `index` knows where they are, and `chunks` combines these.
//! `manifest` and `tail_file` are the files of one source, and `outlines` has what is often needed of all manifests.
//! `settle` decides which frames are valid in packs of processes that died, `forget` and `sweep` delete, `gate` keeps
//! sweeps and writers apart; `verify` checks, `usage` reports sizes. `docs/format/vault.md` describes all files for other
//! programs.

mod checksum_lines;
mod chunker;
mod chunks;
mod codec;
mod error;
mod forget;
mod frame;
mod gate;
mod host_path;
mod ids;
mod index;
mod limits;
mod manifest;
mod name_hash;
mod names;
mod outlines;
mod pack;
mod provider_word;
mod restore;
mod role;
mod settle;
mod sweep;
mod tail_file;
mod tombstones;
mod usage;
mod vault;
mod verify;
mod writer;

pub use checksum_lines::{checked_line, write_line as write_checked_line};
pub use error::Error;
pub use forget::{ForgetReport, ForgetRequest};
pub use ids::{ChunkHash, PackId, SourceId};
pub use limits::Limits;
pub use manifest::{AdapterProgress, ChunkRef, Generation, HostPath, Manifest, Sighting, SourceInfo};
pub use name_hash::NameHash;
pub use names::VaultFile;
pub use outlines::{ManifestOutline, Outlines};
pub use restore::{RestoreError, RestoreTarget, is_being_restored};
pub use role::Role;
pub use sweep::SweepReport;
pub use tombstones::{Reason, SpineTombstone, Tombstone};
pub use usage::{SourceUsage, Usage};
pub use vault::Vault;
pub use verify::{AffectedSource, Finding, Progress, VerifyReport};
pub use writer::{Remainder, SharedCommits, SourceEnd, SourceWriter};
