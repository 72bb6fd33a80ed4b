//! How far a file was read, as stored in a manifest.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use steno_capture::tail::{Cursor, FileId, MARK_BYTES_MAX, Mark, Stamp};

/// A cursor as it is stored. Every source has one, so fields with the usual value are left out.
#[derive(Serialize, Deserialize)]
struct StoredCursor {
    generation: u32,
    offset: u64,
    whole: String,
    /// The maximum length of a head if absent.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    head_bytes: Option<u64>,
    head: String,
    device: u64,
    inode: u64,
    /// Equal to the offset if absent.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    size_bytes: Option<u64>,
    modified_ns: i64,
    /// Equal to `modified_ns` if absent.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    changed_ns: Option<i64>,
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    settled: bool,
}

/// Returns the value unless it is the usual one.
fn unusual<T: PartialEq>(value: T, usual: &T) -> Option<T> {
    Some(value).filter(|value| value != usual)
}

/// Encodes a cursor.
pub(crate) fn write(cursor: &Cursor) -> Box<RawValue> {
    let Cursor { generation, head, whole, stamp } = cursor;
    let written = StoredCursor {
        generation: *generation,
        offset: whole.len_bytes,
        whole: hex(whole),
        head_bytes: unusual(head.len_bytes, &(MARK_BYTES_MAX as u64)),
        head: hex(head),
        device: stamp.file.device,
        inode: stamp.file.inode,
        size_bytes: unusual(stamp.size_bytes, &whole.len_bytes),
        modified_ns: stamp.modified_ns,
        changed_ns: unusual(stamp.changed_ns, &stamp.modified_ns),
        settled: stamp.settled,
    };
    serde_json::value::to_raw_value(&written).expect("our own records are strings and numbers")
}

/// Decodes a cursor; `None` if it does not have our form.
pub(crate) fn read(raw: &RawValue) -> Option<Cursor> {
    let written: StoredCursor = serde_json::from_str(raw.get()).ok()?;
    Some(Cursor {
        generation: written.generation,
        head: mark(written.head_bytes.unwrap_or(MARK_BYTES_MAX as u64), &written.head)?,
        whole: mark(written.offset, &written.whole)?,
        stamp: Stamp {
            file: FileId { device: written.device, inode: written.inode },
            size_bytes: written.size_bytes.unwrap_or(written.offset),
            modified_ns: written.modified_ns,
            changed_ns: written.changed_ns.unwrap_or(written.modified_ns),
            settled: written.settled,
        },
    })
}

fn hex(mark: &Mark) -> String {
    blake3::Hash::from_bytes(mark.hash).to_hex().to_string()
}

fn mark(len_bytes: u64, hex: &str) -> Option<Mark> {
    Some(Mark { len_bytes, hash: *blake3::Hash::from_hex(hex).ok()?.as_bytes() })
}

/// Builds the cursor for bytes of the vault without looking at their file. Resuming from it compares all bytes with the
/// file.
pub(crate) struct CursorBuilder {
    generation: u32,
    head: Vec<u8>,
    whole: blake3::Hasher,
    len: u64,
}

impl CursorBuilder {
    /// Begins a generation with no bytes.
    pub(crate) fn new(generation: u32) -> Self {
        Self { generation, head: Vec::new(), whole: blake3::Hasher::new(), len: 0 }
    }

    pub(crate) fn take(&mut self, bytes: &[u8]) {
        let wanted = MARK_BYTES_MAX.saturating_sub(self.head.len()).min(bytes.len());
        self.head.extend_from_slice(&bytes[..wanted]);
        self.whole.update(bytes);
        self.len += bytes.len() as u64;
    }

    /// Returns the cursor.
    pub(crate) fn finish(&self) -> Cursor {
        let head = Mark { len_bytes: self.head.len() as u64, hash: *blake3::hash(&self.head).as_bytes() };
        let whole = Mark { len_bytes: self.len, hash: *self.whole.finalize().as_bytes() };
        let file = FileId { device: 0, inode: 0 };
        let stamp = Stamp { file, size_bytes: 0, modified_ns: 0, changed_ns: 0, settled: false };
        Cursor { generation: self.generation, head, whole, stamp }
    }
}

#[cfg(test)]
mod tests {
    use steno_capture::tail::{Tail, TailRead};

    use super::*;

    #[test]
    fn cursor_round_trips() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        for (content, read_max) in [(&b"hello\n"[..], 100), (&[b'x'; 9_000], 5_000), (&[b'x'; 9_000], 9_000)]
        {
            std::fs::write(&path, content).unwrap();
            let mut tail = Tail::new(&path);
            tail.read_next(&mut Vec::new(), read_max).unwrap();
            let mut cursor = tail.cursor().unwrap();
            assert_eq!(read(&write(&cursor)), Some(cursor));
            (cursor.stamp.changed_ns, cursor.stamp.settled) = (cursor.stamp.modified_ns + 1, true);
            assert_eq!(read(&write(&cursor)), Some(cursor));
        }
        assert_eq!(read(&RawValue::from_string("{}".into()).unwrap()), None);
    }

    #[test]
    fn cursor_of_vault_bytes_resumes_at_their_end() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        let content: Vec<u8> = (0..20_000_u32).flat_map(u32::to_le_bytes).collect();
        std::fs::write(&path, &content).unwrap();
        let mut known = CursorBuilder::new(3);
        content[..50_000].chunks(7_000).for_each(|piece| known.take(piece));
        let mut buffer = Vec::new();
        let look = Tail::resume(&path, known.finish()).read_next(&mut buffer, 1_000_000).unwrap();
        assert_eq!(look, TailRead::Bytes { generation: 3, offset: 50_000, len: 30_000 });
        assert!(buffer == content[50_000..]);
        known.take(b"not in the file");
        let look = Tail::resume(&path, known.finish()).read_next(&mut buffer, 1_000_000).unwrap();
        assert!(matches!(look, TailRead::NewGeneration { generation: 4, .. }), "{look:?}");
    }
}
