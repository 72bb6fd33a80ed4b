//! The output of a command as far as its event keeps it: the beginning and the end.

use std::collections::VecDeque;

use steno_model::json::{JsonString, ObjectWriter, RawJson};

/// How many bytes of the beginning are kept.
const HEAD_BYTES_MAX: usize = 256 * 1024;
/// How many bytes of the end are kept.
const TAIL_BYTES_MAX: usize = 64 * 1024;

/// The output of one lane.
#[derive(Default)]
pub(crate) struct CommandOutput {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    bytes: u64,
    lost: u64,
}

impl CommandOutput {
    /// Takes the next bytes.
    pub(crate) fn take(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        let room = HEAD_BYTES_MAX - self.head.len();
        let (head, rest) = bytes.split_at(room.min(bytes.len()));
        self.head.extend_from_slice(head);
        let last = &rest[rest.len().saturating_sub(TAIL_BYTES_MAX)..];
        let surplus = (self.tail.len() + last.len()).saturating_sub(TAIL_BYTES_MAX);
        self.tail.drain(..surplus);
        self.tail.extend(last);
    }

    /// Counts bytes that are not in the file.
    pub(crate) fn lose(&mut self, bytes: u64) {
        self.lost += bytes;
    }

    /// Tells whether there was no output.
    pub(crate) fn is_empty(&self) -> bool {
        self.bytes == 0 && self.lost == 0
    }

    /// Writes the fields of a lane: its text, and how many bytes it had, are left out of the text, and were lost.
    pub(crate) fn write(&self, name: &str, object: &mut ObjectWriter<'_>) {
        let text = |bytes: &[u8]| JsonString::from_text(&String::from_utf8_lossy(bytes));
        let (front, back) = self.tail.as_slices();
        let left_out = self.bytes - (self.head.len() + self.tail.len()) as u64;
        let field = |what: &str| format!("{name}_{what}");
        if left_out == 0 {
            object.string(name, &text(&[&self.head, front, back].concat()));
        } else {
            object.string(name, &text(&self.head));
            object.string(&field("end"), &text(&[front, back].concat()));
            object.number(&field("left_out_bytes"), left_out);
        }
        object.number(&field("bytes"), self.bytes);
        object.optional(
            &field("lost_bytes"),
            Some(&self.lost).filter(|lost| **lost > 0),
            |object, name, lost| {
                object.number(name, *lost);
            },
        );
    }
}

/// Returns both lanes as one object.
pub(crate) fn output_fields(out: &CommandOutput, err: &CommandOutput, object: &mut ObjectWriter<'_>) {
    out.write("stdout", object);
    if !err.is_empty() {
        err.write("stderr", object);
    }
}

/// Returns one lane as an object.
pub(crate) fn lane_fields(name: &str, output: &CommandOutput) -> RawJson {
    RawJson::object(|object| output.write(name, object))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pieces: &[&[u8]], want: &str) {
        let mut output = CommandOutput::default();
        for piece in pieces {
            output.take(piece);
        }
        let text = lane_fields("o", &output);
        assert_eq!(text.as_str(), want);
    }

    #[test]
    fn short_output_is_whole() {
        check(&[], r#"{"o":"","o_bytes":0}"#);
        check(&[b"a\x1b[1m\n", b"\xffb"], "{\"o\":\"a\\u001b[1m\\n\u{fffd}b\",\"o_bytes\":8}");
    }

    #[test]
    fn output_is_whole_up_to_the_limits_and_cut_beyond_them() {
        let most = HEAD_BYTES_MAX + TAIL_BYTES_MAX;
        for len in [HEAD_BYTES_MAX - 1, HEAD_BYTES_MAX, HEAD_BYTES_MAX + 1, most] {
            let all = vec![b'x'; len];
            check(&[&all], &format!(r#"{{"o":"{}","o_bytes":{len}}}"#, "x".repeat(len)));
        }
        let all: Vec<u8> = [vec![b'a'; HEAD_BYTES_MAX], vec![b'b'; 3], vec![b'c'; TAIL_BYTES_MAX]].concat();
        let (head, tail) = ("a".repeat(HEAD_BYTES_MAX), "c".repeat(TAIL_BYTES_MAX));
        let len = all.len();
        let want = format!(r#"{{"o":"{head}","o_end":"{tail}","o_left_out_bytes":3,"o_bytes":{len}}}"#);
        check(&[&all], &want);
        let pieces: Vec<&[u8]> = all.chunks(1000).collect();
        check(&pieces, &want);
    }
}
