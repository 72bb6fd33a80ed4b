//! Entries of sources in the vault: a source is read again from its first byte.

use steno_adapters::Sink;
use steno_vault::{Manifest, Vault};

use crate::sources::{Feed, adapter_source, inferred_time};

/// A source in the vault.
#[derive(Clone, Copy)]
pub struct StoredSource<'a> {
    /// The vault.
    pub vault: &'a Vault,
    /// The manifest of the source.
    pub manifest: &'a Manifest,
}

/// Reads all generations of a source, until `is_enough` returns true.
///
/// # Errors
/// An error of the vault; what comes before the error has been passed on.
pub fn read_stored(
    source: StoredSource<'_>,
    sink: &mut dyn Sink,
    is_enough: &dyn Fn() -> bool,
) -> Result<(), steno_vault::Error> {
    let StoredSource { vault, manifest } = source;
    let mut feed = Feed::new(adapter_source(vault, manifest.id, &manifest.info), true);
    let mut captured = None;
    for (number, generation) in (0..).zip(&manifest.generations) {
        captured = inferred_time(&generation.since);
        vault.read(manifest, number, 0, |offset, bytes| {
            if generation.late_from.is_some_and(|late| offset >= late) || is_enough() {
                return false;
            }
            feed.take(number, bytes, captured.as_ref(), sink);
            true
        })?;
        feed.pause(captured.as_ref(), sink);
    }
    feed.end(captured.as_ref(), sink);
    Ok(())
}
