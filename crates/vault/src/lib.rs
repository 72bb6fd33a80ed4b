//! Evidence: agents' files byte for byte, every generation, each chunk stored once.
//!
//! A **source** is one file of an agent through all its generations. Its one owner appends bytes as they come; what was
//! committed is there after a power cut, and comes back as it was.
//!
//! ```
//! use std::sync::Arc;
//! use steno_disk::{Disk as _, RealDisk, StorePath};
//! use steno_vault::{HostPath, Keep, Role, SourceId, SourceInfo, Vault};
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
//! writer.commit(Keep::InTail)?;
//! writer.begin_generation("rewritten", "2026-06-08T09:00:00Z")?;
//! writer.append(b"{}\n")?;
//! writer.commit(Keep::InTail)?;
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
//! - **Chunks.** Bytes are cut where their content says, so that equal stretches are cut alike wherever they stand, and
//!   each chunk is stored once under its BLAKE3 hash. One that is much like another is stored as what differs: a fork of a
//!   session has another id in every line, and costs next to nothing.
//! - **Packs** only grow. Each process writes its own, so that nobody waits; when it is closed, a file beside it says what
//!   counts in it. A pack whose process died counts as far as manifests name its chunks.
//! - **Manifests** are JSON lines with checksums, one file a source: what it is, its generations, their chunks in order,
//!   and how far it was read and made into events when its owner let go of it.
//! - **Tails.** The end of a source that makes no whole chunk yet is synced in a file of its own, and moves into a pack
//!   when there is enough of it.
//! - **Order of writing.** Chunk, sync, manifest, sync. So no manifest names what a power cut can take.
//! - **Forgetting.** A tombstone is written, then everything is deleted that nothing else uses. Whoever opens the vault next
//!   completes what was cut short. Tombstones of spines lie among them, so that a session is forgotten in one step.
//!
//! # Where to look
//! `writer` is the way in and `vault` the way out. Between them: `cut` finds boundaries and likeness, `codec` compresses,
//! `frame` and `pack` are how chunks lie on the disk, `index` knows where, `chunks` puts these together; `manifest` and
//! `tail_file` are a source's own files. `settle` finds out what counts in packs of processes that died, `forget` and
//! `sweep` delete, `gate` keeps those apart from who stores; `verify` checks, `usage` weighs. `docs/format/vault.md`
//! describes all files for other programs.

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
mod pack;
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

pub use error::Error;
pub use forget::{Forgotten, ToForget};
pub use ids::{ChunkHash, PackId, SourceId};
pub use limits::Limits;
pub use manifest::{Adapted, ChunkRef, Generation, HostPath, Manifest, Sighting, SourceInfo};
pub use name_hash::NameHash;
pub use names::VaultFile;
pub use restore::{RestoreError, Standing, is_being_restored};
pub use role::Role;
pub use sweep::Swept;
pub use tombstones::{Reason, SpineTombstone, Tombstone};
pub use usage::{SourceUsage, Usage};
pub use vault::Vault;
pub use verify::{Finding, Progress, Touched, Verified};
pub use writer::{Keep, SourceWriter};
