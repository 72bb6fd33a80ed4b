//! Checking everything that the vault keeps, without changing anything.
//!
//! All packs are read once, from beginning to end. What is damaged is told with its place and with the sources that it
//! takes something from; what nobody needs any more is counted and is no finding. What is kept in memory grows with the
//! number of chunks and not with their bytes.

mod packs;
mod sources;

use crate::error::Error;
use crate::ids::SourceId;
use crate::manifest::SourceInfo;
use crate::tombstones::Tombstones;
use crate::vault::Vault;

use packs::PackScan;
use sources::SourceScan;

/// What a check came to.
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
    /// How many of these nobody needs: what no manifest names any more, or never did, and what crashes have left.
    pub garbage_bytes: u64,
    /// How many bytes all tails have.
    pub tail_bytes: u64,
    /// How many manifests and tails end with something that a crash has left unfinished. It was never committed.
    pub unfinished: usize,
    /// What is wrong.
    pub findings: Vec<Finding>,
}

/// Something that is not as it was written.
#[derive(Debug)]
pub struct Finding {
    /// What it is, and where.
    pub error: Error,
    /// The sources that it takes something from. None when all can be read all the same, as when a chunk stands twice.
    pub affects: Vec<AffectedSource>,
}

/// A source that something is taken from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AffectedSource {
    /// The source.
    pub source: SourceId,
    /// What it is, unless that is what cannot be read.
    pub info: Option<SourceInfo>,
}

/// How far a check has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// How many bytes of packs were read.
    pub bytes_done: u64,
    /// How many there are.
    pub bytes_total: u64,
}

impl Vault {
    /// Checks every pack, manifest and tail, and says what is wrong with them and which sources that affects.
    ///
    /// Sources may be written meanwhile. `progress` hears how far it is after each pack.
    ///
    /// # Errors
    /// What the system says when directories cannot be listed. What is wrong with a file is a finding.
    pub fn verify(&self, mut progress: impl FnMut(Progress)) -> Result<VerifyReport, Error> {
        // Manifests before packs: whatever one names was in a pack before.
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
