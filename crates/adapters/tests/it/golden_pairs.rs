//! Small sessions written by hand, each with the events that it has to give: a folder for each provider.
//!
//! In the input ␀ stands for a NUL and ␦ for a byte that is no UTF-8; a name that says `cut` has no last newline.

use std::path::Path;

use steno_adapters::{Adapter, codex};
use steno_model::Vocabulary as _;
use steno_testkit::{golden, places};

use crate::reading::{Piece, Reading, claude_pieces, output, read, source_of};

#[test]
fn hand_made_sessions_of_claude_give_their_events() {
    check("claude", 10, claude_pieces);
}

#[test]
fn hand_made_sessions_of_codex_give_their_events() {
    check("codex", 22, codex_pieces);
}

/// Reads every session of a provider and compares what came out.
#[track_caller]
fn check(provider: &str, cases: usize, open: fn(&str, &[u8]) -> (Adapter, Vec<Piece>)) {
    let directory = places::workspace_root().join("crates/adapters/tests/golden").join(provider);
    let mut found = 0;
    for name in places::files_below(&directory) {
        let Some((stem, _)) = name.split_once(".in.") else { continue };
        let text = places::read(directory.join(&name)).replace('␀', "\0");
        let mut bytes = replace(text.as_bytes(), "␦".as_bytes(), b"\xff");
        if stem.contains("cut") {
            bytes.pop();
        }
        let (adapter, pieces) = open(&name, &bytes);
        let reading = read(adapter, &pieces);
        golden::check(directory.join(format!("{stem}.out.jsonl")), &shown(&reading));
        found += 1;
    }
    assert_eq!(found, cases, "{provider}");
}

/// Returns the adapter that the name of one of Codex's sessions asks for, and its bytes.
pub(crate) fn codex_pieces(name: &str, bytes: &[u8]) -> (Adapter, Vec<Piece>) {
    let source = source_of(Path::new(name));
    let adapter = match () {
        () if name.starts_with("rollout") => codex::rollout(source),
        () if name.starts_with("exec") => codex::exec(source),
        // Both directions, as a recording has them.
        () => codex::app_server(source).of_conversation(),
    };
    (adapter, vec![output(bytes)])
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
