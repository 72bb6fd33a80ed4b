//! Small sessions written by hand, each with the events that it has to give.
//!
//! In the input ␀ stands for a NUL and ␦ for a byte that is no UTF-8; a name that begins with `cut` has no last newline.

use steno_model::Vocabulary as _;
use steno_testkit::{golden, places};

use crate::reading::{Reading, claude_pieces, read};

#[test]
fn hand_made_sessions_give_their_events() {
    let directory = places::workspace_root().join("crates/adapters/tests/golden/claude");
    let mut cases = 0;
    for name in places::files_below(&directory) {
        let Some((stem, _)) = name.split_once(".in.") else { continue };
        let text = places::read(directory.join(&name)).replace('␀', "\0");
        let mut bytes = replace(text.as_bytes(), "␦".as_bytes(), b"\xff");
        if stem.starts_with("cut") {
            bytes.pop();
        }
        let (adapter, pieces) = claude_pieces(&name, &bytes);
        let reading = read(adapter, &pieces);
        golden::check(directory.join(format!("{stem}.out.jsonl")), &shown(&reading));
        cases += 1;
    }
    assert_eq!(cases, 9);
}

/// Shows what came out: events, then entries, then how much was understood.
fn shown(reading: &Reading) -> String {
    let mut shown = reading.lines.concat();
    for entry in &reading.entries {
        let subtype = entry.subtype.as_deref().unwrap_or("-");
        shown.push_str(&format!("entry {} {} {subtype}\n", entry.source, entry.kind.as_str()));
    }
    shown + &format!("{:?}\n", reading.completeness)
}

fn replace(bytes: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = bytes;
    while let Some(at) = rest.windows(from.len()).position(|window| window == from) {
        out.extend_from_slice(&rest[..at]);
        out.extend_from_slice(to);
        rest = &rest[at + from.len()..];
    }
    out.extend_from_slice(rest);
    out
}
