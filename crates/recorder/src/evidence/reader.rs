//! Reads the records that evidence names.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ops::ControlFlow;
use std::sync::Arc;

use steno_library::read_unpacked;
use steno_model::Evidence;
use steno_vault::{Manifest, SourceId, Vault};

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
