//! What becomes of agents' files goes to somebody: how much is read when they leave, and how much memory it takes.

use std::process::Stdio;

use crate::agents_files::{put, session, text};
use crate::kit::Steno;

/// A long session whose end cannot be decompressed: whoever gets there warns of it.
fn long_session_with_a_cut_end(steno: &Steno) -> String {
    let mut bytes = zstd::encode_all(text(&session()).repeat(2_500).as_bytes(), 1).unwrap();
    bytes.truncate(bytes.len() - 5);
    put(steno, "s.jsonl", bytes)
}

#[test]
fn nobody_reads_on_when_nobody_reads_along() {
    let steno = Steno::new();
    let file = long_session_with_a_cut_end(&steno);
    for args in [
        &["events", &file][..],
        &["events", &file, "--json"],
        &["events", &file, "--type", "none.such"],
        &["events", &file, "--completeness"],
        &["entries", &file],
        &["tree", &file],
        &["usage", &file],
    ] {
        let said = steno.run(args);
        assert!(said.err.contains("ends inside of compressed data"), "{args:?}: {}", said.err);
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = steno.command(args);
        let output =
            command.stdout(writer).stderr(Stdio::piped()).spawn().unwrap().wait_with_output().unwrap();
        let err = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), err.as_str()), (Some(0), ""), "{args:?}");
    }
}
