//! The unpacked bytes of a generation, which the offsets of evidence refer to.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io;
use std::ops::ControlFlow;
use std::sync::Arc;

use steno_capture::packing::Unpacker;
use steno_model::{Evidence, Packing};
use steno_vault::{Manifest, SourceId, Vault};

/// Why a generation could not be read to its end.
#[derive(Debug, thiserror::Error)]
pub enum EvidenceError {
    /// The vault does not have it whole.
    #[error(transparent)]
    Vault(#[from] steno_vault::Error),
    /// The bytes cannot be unpacked.
    #[error("cannot unpack it")]
    Packing(#[source] io::Error),
}

/// Passes the bytes of a generation to `each` from the beginning, unpacked, until `each` breaks. Late bytes are left
/// out, because no record was read from them. Returns the packing.
///
/// # Errors
/// [`EvidenceError`]; what comes before the error has been passed on.
pub fn read_unpacked(
    vault: &Vault,
    manifest: &Manifest,
    generation: u32,
    each: &mut dyn FnMut(u64, &[u8]) -> ControlFlow<()>,
) -> Result<Option<Packing>, EvidenceError> {
    let late = manifest.generations.get(generation as usize).and_then(|generation| generation.late_from);
    let (mut unpacker, mut packing) = (Unpacker::default(), None);
    let (mut offset, mut flow, mut outcome) = (0, ControlFlow::Continue(()), Ok(()));
    vault.read(manifest, generation, 0, |at, bytes| {
        if late.is_some_and(|late| at >= late) {
            return false;
        }
        packing = unpacker.packing(bytes);
        outcome = unpacker.unpack(bytes, &mut |plain| {
            if flow.is_continue() {
                flow = each(offset, plain);
            }
            offset += plain.len() as u64;
        });
        outcome.is_ok() && flow.is_continue()
    })?;
    outcome.map(|()| packing).map_err(EvidenceError::Packing)
}

/// Reads records one by one.
pub struct EvidenceReader {
    vault: Arc<Vault>,
    manifests: HashMap<SourceId, Option<Manifest>>,
    /// Whether a generation is packed.
    packed: HashMap<(SourceId, u32), bool>,
}

impl EvidenceReader {
    /// Reads nothing yet.
    #[must_use]
    pub fn new(vault: Arc<Vault>) -> Self {
        Self { vault, manifests: HashMap::new(), packed: HashMap::new() }
    }

    /// Returns the record that evidence names; `None` if the vault does not have all of it.
    pub fn record(&mut self, evidence: &Evidence) -> Option<Vec<u8>> {
        let source = SourceId::parse(&evidence.source.to_text())?;
        let vault = &self.vault;
        let manifest = self.manifests.entry(source).or_insert_with(|| vault.manifest(source).ok().flatten());
        let manifest = manifest.as_ref()?;
        let (generation, offset) = (evidence.position.generation, evidence.position.offset);
        // Older versions did not record in the event that a generation is packed; its first bytes show it.
        let is_packed = match self.packed.entry((source, generation)) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(unknown) => *unknown.insert(is_packed(vault, manifest, generation)?),
        };
        let length = usize::try_from(evidence.length).ok()?;
        let mut bytes = Vec::new();
        let mut take = |at: u64, piece: &[u8]| {
            let before = usize::try_from(offset.saturating_sub(at)).unwrap_or(usize::MAX);
            let piece = piece.get(before..).unwrap_or_default();
            bytes.extend_from_slice(&piece[..piece.len().min(length - bytes.len())]);
            bytes.len() < length
        };
        let is_read = if is_packed {
            let mut each = |at: u64, piece: &[u8]| {
                if take(at, piece) { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            };
            read_unpacked(vault, manifest, generation, &mut each).is_ok()
        } else {
            vault.read(manifest, generation, offset, take).is_ok()
        };
        (is_read && bytes.len() == length).then_some(bytes)
    }
}

fn is_packed(vault: &Vault, manifest: &Manifest, generation: u32) -> Option<bool> {
    let packing = read_unpacked(vault, manifest, generation, &mut |_, _| ControlFlow::Break(()));
    packing.ok().map(|packing| packing.is_some())
}
