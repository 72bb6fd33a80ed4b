//! Small hand-written sessions, each with the expected events, in a folder for each provider.
//!
//! In the input ␀ stands for a NUL and ␦ for an invalid byte; if the name contains `cut`, the last newline is removed.

use std::path::Path;

use steno_adapters::{Adapter, Source, acp, codex, gemini, http, mcp, opencode};
use steno_model::Vocabulary as _;
use steno_testkit::{golden, places};

use crate::copilot_files::copilot_pieces;
use crate::reading::{Piece, Reading, claude_pieces, output, read, source_of};

/// The hand-written sessions of a provider or a protocol.
pub(crate) struct Folder {
    /// The directory in `tests/golden`.
    pub(crate) name: &'static str,
    /// Chooses the adapter of a session by its file name, and returns it with the bytes.
    pub(crate) open: fn(&str, &[u8]) -> (Adapter, Vec<Piece>),
}

/// All hand-written sessions. The tests of `every_provider` read each of them too.
pub(crate) const FOLDERS: [Folder; 8] = [
    Folder { name: "claude", open: claude_pieces },
    Folder { name: "codex", open: codex_pieces },
    Folder { name: "gemini", open: gemini_pieces },
    Folder { name: "copilot", open: copilot_pieces },
    Folder { name: "opencode", open: opencode_pieces },
    Folder { name: "http", open: http_pieces },
    Folder { name: "acp", open: acp_pieces },
    Folder { name: "mcp", open: mcp_pieces },
];

/// The fewest sessions of a provider: an ordinary one, every kind of block, a call without a result, an unknown type,
/// broken text, a cut last line.
const CASES_MIN: usize = 6;

#[test]
fn sessions_match_their_golden_files() {
    FOLDERS.iter().for_each(check);
}

/// Reads every session of a provider and compares the output.
#[track_caller]
fn check(folder: &Folder) {
    let directory = places::workspace_root().join("crates/adapters/tests/golden").join(folder.name);
    let mut expected = Vec::new();
    for name in places::files_below(&directory) {
        let Some((stem, _)) = name.split_once(".in.") else { continue };
        let text = places::read(directory.join(&name)).replace('␀', "\0");
        let mut bytes = replace(text.as_bytes(), "␦".as_bytes(), b"\xff");
        if stem.contains("cut") {
            bytes.pop();
        }
        let (adapter, pieces) = (folder.open)(&name, &bytes);
        let reading = read(adapter, &pieces);
        let name = format!("{stem}.out.jsonl");
        golden::check(directory.join(&name), &shown(&reading));
        expected.push(name);
    }
    assert!(expected.len() >= CASES_MIN, "{} has only {expected:?}", folder.name);
    let mut there = places::files_below(&directory);
    there.retain(|name| !name.contains(".in."));
    assert_eq!(there, expected, "each file of {} is a session or the output of one", folder.name);
}

/// Chooses the adapter for a session of Codex by its name, and returns it with the bytes.
fn codex_pieces(name: &str, bytes: &[u8]) -> (Adapter, Vec<Piece>) {
    let source = source_of(Path::new(name));
    let adapter = match () {
        () if name.starts_with("rollout") => codex::rollout(source),
        () if name.starts_with("exec") => codex::exec(source),
        // A recording has both directions.
        () => codex::app_server(source).of_conversation(),
    };
    (adapter, vec![output(bytes)])
}

/// Returns the adapter that the name of a recording asks for, and its bytes.
fn http_pieces(name: &str, bytes: &[u8]) -> (Adapter, Vec<Piece>) {
    let adapter = http::recording(source_of(Path::new(name)));
    let adapter = match () {
        () if name.starts_with("bodies") => adapter,
        () if name.starts_with("events") => adapter.of_events(),
        () => adapter.of_conversation(),
    };
    (adapter, vec![output(bytes)])
}

/// The session below which the sample of a subagent stands.
const GEMINI_PARENT: &str = "0a000000-0000-4000-8000-000000000009";

/// Returns the adapter that the name of one of Gemini's sessions asks for, and its bytes.
fn gemini_pieces(name: &str, bytes: &[u8]) -> (Adapter, Vec<Piece>) {
    let source = Source { directory: Some(GEMINI_PARENT.to_owned()), ..source_of(Path::new(name)) };
    let adapter = match () {
        () if name.starts_with("stream") => gemini::stream(source),
        () if name.starts_with("output") => gemini::output(source),
        () => gemini::chat(source),
    };
    (adapter, vec![output(bytes)])
}

/// Returns the adapter of `OpenCode`'s output, and its bytes.
fn opencode_pieces(name: &str, bytes: &[u8]) -> (Adapter, Vec<Piece>) {
    (opencode::stream(source_of(Path::new(name))), vec![output(bytes)])
}

/// Returns the adapter of a connection between a client and its agent, and its bytes.
fn acp_pieces(name: &str, bytes: &[u8]) -> (Adapter, Vec<Piece>) {
    (acp::connection(source_of(Path::new(name))).of_conversation(), vec![output(bytes)])
}

/// Returns the adapter of a connection to an MCP server, and its bytes.
fn mcp_pieces(name: &str, bytes: &[u8]) -> (Adapter, Vec<Piece>) {
    (mcp::connection(source_of(Path::new(name))).of_conversation(), vec![output(bytes)])
}

/// Shows the output: events, entries, and completeness.
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
