//! Checks everything in the vault without changing anything.
//!
//! Each pack is read once, from beginning to end. Damage is reported with its location and the sources it affects.
//! Unused bytes are counted and are not a finding. Memory use grows with the number of chunks, not with their bytes.

mod packs;
mod sources;

use crate::error::Error;
use crate::ids::SourceId;
use crate::manifest::SourceInfo;
use crate::tombstones::Tombstones;
use crate::vault::Vault;

use packs::PackScan;
use sources::SourceScan;

/// The result of a check.
#[derive(Debug, Default)]
pub struct VerifyReport {
    /// How many sources there are.
    pub sources: usize,
    /// How many packs there are.
    pub packs: usize,
    /// How many chunks sources need, each counted once.
    pub chunks: usize,
    /// How many bytes these have.
    pub chunk_bytes: u64,
    /// How many bytes all packs have.
    pub stored_bytes: u64,
    /// How many of these are unused: chunks that no manifest names, and bytes that crashes left.
    pub garbage_bytes: u64,
    /// How many bytes all tails have.
    pub tail_bytes: u64,
    /// How many manifests and tails end with an incomplete line or frame, left by a crash. It was never committed.
    pub unfinished: usize,
    /// What is wrong.
    pub findings: Vec<Finding>,
}

/// Damage that was found.
#[derive(Debug)]
pub struct Finding {
    /// What it is, and where.
    pub error: Error,
    /// The sources that lost bytes. Empty when all can be read, for example because the chunk is stored twice.
    pub affects: Vec<AffectedSource>,
}

/// A source that is affected by damage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AffectedSource {
    /// The source.
    pub source: SourceId,
    /// What it is, if that can be read.
    pub info: Option<SourceInfo>,
}

/// The progress of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// How many bytes of packs were read.
    pub bytes_done: u64,
    /// How many there are.
    pub bytes_total: u64,
}

impl Vault {
    /// Checks every pack, manifest and tail; reports damage and the sources it affects.
    ///
    /// Sources may be written meanwhile. `progress` is called after each pack.
    ///
    /// # Errors
    /// I/O errors when directories cannot be listed. Errors of single files are findings.
    pub fn verify(&self, mut progress: impl FnMut(Progress)) -> Result<VerifyReport, Error> {
        // Manifests before packs: a chunk is in a pack before a manifest names it.
        let named = SourceScan::read(self)?;
        let mut seen = PackScan::default();
        seen.read(self, &named, &mut progress)?;
        let mut verified = VerifyReport {
            sources: named.sources.len(),
            packs: seen.packs,
            stored_bytes: seen.stored_bytes,
            tail_bytes: named.tail_bytes,
            unfinished: named.unfinished,
            ..VerifyReport::default()
        };
        seen.conclude(self, &named, &mut verified);
        verified.findings.extend(named.findings);
        if let Err(error) = Tombstones::read(&**self.disk()) {
            verified.findings.push(Finding { error, affects: Vec::new() });
        }
        Ok(verified)
    }
}
