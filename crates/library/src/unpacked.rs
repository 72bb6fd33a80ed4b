//! The unpacked bytes of a generation, which the offsets of evidence refer to.

use std::io;
use std::ops::ControlFlow;

use steno_capture::packing::Unpacker;
use steno_model::Packing;
use steno_vault::{Manifest, Vault};

/// Why a generation could not be read to its end.
#[derive(Debug, thiserror::Error)]
pub enum GenerationError {
    /// The vault does not have all of it.
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
/// [`GenerationError`]; what comes before the error has been passed on.
pub fn read_unpacked(
    vault: &Vault,
    manifest: &Manifest,
    generation: u32,
    each: &mut dyn FnMut(u64, &[u8]) -> ControlFlow<()>,
) -> Result<Option<Packing>, GenerationError> {
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
    outcome.map(|()| packing).map_err(GenerationError::Packing)
}
