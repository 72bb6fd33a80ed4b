//! Agents' files when the reader of stdout leaves: how much is read, and how much memory it takes.

use std::process::Stdio;

use serde_json::json;

use crate::agents_files::{put, session, text};
use crate::kit::{RUN, Steno, program, run};

/// A long session whose end cannot be decompressed: reading up to there gives a warning.
fn long_session_with_a_cut_end(steno: &Steno) -> String {
    let mut bytes = zstd::encode_all(text(&session()).repeat(2_500).as_bytes(), 1).unwrap();
    bytes.truncate(bytes.len() - 5);
    put(steno, "s.jsonl", bytes)
}

#[test]
fn reading_stops_when_the_output_is_closed() {
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
        assert!(said.err.contains("ends inside compressed data"), "{args:?}: {}", said.err);
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = steno.command(args);
        let output =
            command.stdout(writer).stderr(Stdio::piped()).spawn().unwrap().wait_with_output().unwrap();
        let err = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), err.as_str()), (Some(0), ""), "{args:?}");
    }
}

#[test]
fn closed_output_is_not_a_failure() {
    let steno = Steno::new();
    let bookkeeping = format!("{{\"type\":\"last-prompt\",\"sessionId\":\"{RUN}\"}}\n");
    let file = put(&steno, "s.jsonl", bookkeeping.repeat(40_000) + &text(&session()));
    for command in ["events", "tree", "show", "entries", "usage"] {
        assert_eq!(steno.run(&[command, &file]).code, 0, "{command}");
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        assert_eq!(
            steno.command(&[command, &file]).stdout(writer).status().unwrap().code(),
            Some(0),
            "{command}"
        );
    }
}

#[test]
fn long_lines_are_not_copied_repeatedly() {
    const LINE_BYTES: usize = 20_000_000;
    let steno = Steno::new();
    let mut lines = session();
    lines[3]["message"]["content"][0]["content"] =
        json!("All \"work\" and no play.\n".repeat(LINE_BYTES / 24));
    let file = put(&steno, "s.jsonl", text(&lines));
    // The adapter itself needs about five lines for events, and five more for entries.
    for (args, half_lines_max) in [(&["events", &file][..], 11), (&["entries", &file], 21)] {
        let limit = program_bytes() + half_lines_max * LINE_BYTES / 2;
        let script = format!("ulimit -v {} && exec \"$0\" \"$@\" > /dev/null", limit / 1000);
        let said = run(steno.shell(&script, args), b"");
        assert_eq!((said.code, said.err.as_str()), (0, ""), "{args:?}");
    }
}

/// Returns how much address space the program itself takes: the segments of its file that are loaded.
fn program_bytes() -> usize {
    let elf = std::fs::read(program()).unwrap();
    let number = |at: usize, len: usize| {
        elf[at..at + len].iter().rev().fold(0_usize, |number, byte| number << 8 | usize::from(*byte))
    };
    let (table, size, count) = (number(0x20, 8), number(0x36, 2), number(0x38, 2));
    let headers = (0..count).map(|index| table + index * size);
    headers.filter(|header| number(*header, 4) == 1).map(|header| number(header + 0x28, 8)).sum()
}
