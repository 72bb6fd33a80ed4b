//! Which files have unread bytes.

use super::{SourceFile, SourceRecorder, catalog, is_left_out};

impl SourceRecorder {
    /// Tells whether a file has unread bytes, as far as this process knows. A forgotten file has none.
    pub(super) fn is_unread(&self, file: &SourceFile) -> bool {
        let cursor = self.catalog.at(file.path()).and_then(|known| known.cursor);
        let is_forgotten = || {
            let first = catalog::ids_at(file.path()).next();
            let is_source = first.is_some_and(|id| self.vault.is_forgotten(id).unwrap_or(false));
            !self.options.again && (is_source || is_left_out(&self.vault, file).unwrap_or(false))
        };
        cursor.map_or(0, |cursor| cursor.offset()) != file.size_bytes && !is_forgotten()
    }
}
