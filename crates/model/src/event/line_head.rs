//! The first fields of a line, read without the rest, so that readers can skip lines quickly.

use std::str::from_utf8;

use super::words::EventType;
use crate::word::Vocabulary as _;
use crate::{RunId, Seq};

/// The first fields of a line, in our order of writing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineHead {
    /// The line's number.
    pub seq: Seq,
    /// The run it belongs to.
    pub run_id: RunId,
    /// Its type.
    pub event_type: EventType,
}

impl LineHead {
    /// Reads the first fields of a line. The rest of the line is not checked.
    ///
    /// Returns `None` when the fields have another order or spelling, or the type is not one of the ten. Such a line
    /// has to be read as a whole.
    #[must_use]
    pub fn read(line: &[u8]) -> Option<Self> {
        let rest = line.strip_prefix(b"{\"seq\":")?;
        let (seq, rest) = rest.split_at(rest.iter().position(|byte| *byte == b',')?);
        let (run_id, rest) = split_string(rest.strip_prefix(b",\"run_id\":\"")?)?;
        let rest = skip_string(rest, b",\"parent_run_id\":\"")?;
        let rest = skip_string(rest, b",\"child_run_id\":\"")?;
        let (event_type, _) = split_string(rest.strip_prefix(b",\"type\":\"")?)?;
        Some(Self {
            seq: Seq::new(from_utf8(seq).ok()?.parse().ok()?)?,
            run_id: RunId::parse(run_id).ok()?,
            event_type: EventType::find(event_type)?,
        })
    }
}

/// Splits text after the end of the string that it begins in. A string with escapes is not read.
fn split_string(text: &[u8]) -> Option<(&str, &[u8])> {
    let end = text.iter().position(|byte| matches!(byte, b'"' | b'\\'))?;
    let string = from_utf8(&text[..end]).ok()?;
    Some((string, text[end..].strip_prefix(b"\"")?))
}

/// Skips a field if it is the next one.
fn skip_string<'a>(text: &'a [u8], field: &[u8]) -> Option<&'a [u8]> {
    text.strip_prefix(field).map_or(Some(text), |value| split_string(value).map(|(_, rest)| rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Envelope;

    const RUN: &str = r#""run_id":"550e8400-e29b-41d4-a716-446655440000""#;
    const REST: &str = r#""path":"","iteration":0,"timestamp":"2026-06-08T00:00:01Z","payload":null}"#;

    #[track_caller]
    fn check(line: &str, want: Option<(u64, EventType)>) {
        let head = LineHead::read(line.as_bytes());
        assert_eq!(head.map(|head| (head.seq.get(), head.event_type)), want, "{line}");
        if let Some(head) = head {
            let whole = Envelope::parse(line.as_bytes()).unwrap();
            assert_eq!((head.seq, head.run_id), (whole.seq, whole.run_id), "{line}");
            assert_eq!(Some(head.event_type), whole.event_type.known(), "{line}");
        }
    }

    #[test]
    fn line_head_matches_the_whole_line() {
        let other = r#""550e8400-e29b-41d4-a716-446655440001""#;
        let call = Some((7, EventType::ToolCall));
        check(&format!(r#"{{"seq":7,{RUN},"type":"tool.call",{REST}"#), call);
        check(&format!(r#"{{"seq":7,{RUN},"parent_run_id":{other},"type":"tool.call",{REST}"#), call);
        check(&format!(r#"{{"seq":7,{RUN},"child_run_id":{other},"type":"tool.call",{REST}"#), call);
        check(
            &format!(
                r#"{{"seq":7,{RUN},"parent_run_id":{other},"child_run_id":{other},"type":"tool.call",{REST}"#
            ),
            call,
        );
    }

    #[test]
    fn line_head_is_none_for_other_spellings() {
        for line in [
            format!(r#"{{{RUN},"seq":7,"type":"tool.call",{REST}"#),
            format!(r#"{{ "seq":7,{RUN},"type":"tool.call",{REST}"#),
            format!(r#"{{"seq":0,{RUN},"type":"tool.call",{REST}"#),
            format!(r#"{{"seq":7,{RUN},"type":"tool.\u0063all",{REST}"#),
            format!(r#"{{"seq":7,{RUN},"type":"future.type",{REST}"#),
            format!(r#"{{"seq":7,{RUN},"parent_run_id":null,"type":"tool.call",{REST}"#),
            format!(r#"{{"seq":7,{RUN}"#),
            String::new(),
        ] {
            check(&line, None);
        }
    }
}
