//! Reads the parts of a document: the elements of its list, its other fields, and its end.

use std::borrow::Cow;

use super::{Adapter, RecordText, SourceOffset, begun};
use crate::emit::{CurrentRecord, Emit};
use crate::repair::{self, LinePiece, PieceContent};
use crate::sink::Sink;

impl Adapter {
    /// Reads an element of a document's list.
    pub(super) fn listed(&mut self, place: SourceOffset<'_>, bytes: &[u8], sink: &mut dyn Sink) {
        self.has_listed = true;
        let whole = str::from_utf8(bytes).is_ok_and(|text| {
            let found = RecordText { text, length: text.len(), is_repaired: false, is_in_document: true };
            self.object(place, &found, sink).is_ok()
        });
        if whole {
            return;
        }
        for LinePiece { at, len, content } in repair::pieces(bytes, self.is_record()) {
            let place = place.after(at);
            let is_read = match &content {
                PieceContent::Object { text, repaired } => {
                    let found =
                        RecordText { text, length: len, is_repaired: *repaired, is_in_document: true };
                    self.object(place, &found, sink).is_ok()
                }
                PieceContent::Unreadable(_) => false,
            };
            if !is_read {
                self.not_an_object(place, &bytes[at..][..len], sink);
            }
        }
    }

    /// Reads the fields of a document outside its list as one record.
    pub(super) fn fields(&mut self, place: SourceOffset<'_>, bytes: &[u8], sink: &mut dyn Sink) {
        let fields = repair::to_text(bytes);
        let is_repaired = matches!(fields, Cow::Owned(_));
        let text = format!("{{{fields}}}");
        let found = RecordText { text: &text, length: bytes.len(), is_repaired, is_in_document: true };
        if self.object(place, &found, sink).is_err() {
            self.not_an_object(place, bytes, sink);
        }
    }

    /// Ends a document: a record that it no longer has will not follow, unless its list was empty and lines follow.
    pub(super) fn document_end(&mut self, place: SourceOffset<'_>, sink: &mut dyn Sink) {
        if !self.has_listed {
            return;
        }
        let at = CurrentRecord::end_of(&self.source.id, self.generation, place.offset());
        let mut emit = Emit::new(sink, self.mapper.about(), at, &mut self.memory);
        self.completeness.vanished += emit.whole_generation(begun(&*self.mapper));
    }
}
