//! Tests of documents: the same parts however they are cut, and lines that only look like one.

use super::*;

const MESSAGES: SplitRule = SplitRule::Documents(DocumentShape::Listing("messages"));
const OBJECTS: SplitRule = SplitRule::Documents(DocumentShape::Whole);

/// Shows the parts of a source, each as `offset kind text`.
fn parts(splitting: SplitRule, pieces: &[&[u8]]) -> Vec<String> {
    let mut splitter = Splitter::new(splitting);
    let mut found = Vec::new();
    let mut keep = |offset: u64, line: Line<'_>| {
        let (kind, text) = match line {
            Line::Whole(text) => ("line", String::from_utf8_lossy(text).into_owned()),
            Line::TooLong(len) => ("too long", len.to_string()),
            Line::Listed(text) => ("element", String::from_utf8_lossy(text).into_owned()),
            Line::Fields(text) => ("fields", String::from_utf8_lossy(text).into_owned()),
            Line::End => ("end", String::new()),
        };
        found.push(format!("{offset} {kind} {text}"));
    };
    let mut offset = 0;
    for piece in pieces {
        splitter.feed(offset, piece, &mut keep);
        offset += piece.len() as u64;
    }
    if let Some((offset, line)) = splitter.unfinished() {
        keep(offset, line);
    }
    found
}

#[track_caller]
fn check(splitting: SplitRule, text: &str, want: &[&str]) {
    let bytes = text.as_bytes();
    assert_eq!(parts(splitting, &[bytes]), want, "{text}");
    for cut in 0..=bytes.len() {
        assert_eq!(parts(splitting, &[&bytes[..cut], &bytes[cut..]]), want, "{text} cut at {cut}");
    }
    let single: Vec<&[u8]> = bytes.chunks(1).collect();
    assert_eq!(parts(splitting, &single), want, "{text} byte by byte");
}

#[test]
fn elements_of_a_document_and_its_other_fields_are_records() {
    check(
        MESSAGES,
        "{\n \"s\": \"x\",\n \"messages\": [\n  {\"id\": \"]}\\\"\"},\n  {\"a\": [{}]}\n ],\n \"t\": [1]\n}",
        &[
            "3 fields \"s\": \"x\"",
            "30 element {\"id\": \"]}\\\"\"}",
            "48 element {\"a\": [{}]}",
            "65 fields \"t\": [1]",
            "75 end ",
        ],
    );
    check(MESSAGES, "{\n\"messages\":[]}", &["16 end "]);
    check(MESSAGES, "{\n\"messages\":[1 , \"a\"]}", &["14 element 1", "18 element \"a\"", "23 end "]);
    check(MESSAGES, "{\n\"a\":1}", &["2 fields \"a\":1", "8 end "]);
}

#[test]
fn document_on_one_line_is_recognised_by_its_list() {
    check(
        MESSAGES,
        "\u{feff}{\"s\":1,\"messages\":[{\"i\":1}],\"k\":2}\n{\"i\":2}\n",
        &[
            "4 fields \"s\":1",
            "22 element {\"i\":1}",
            "31 fields \"k\":2",
            "37 end ",
            "37 line ",
            "38 line {\"i\":2}",
        ],
    );
}

#[test]
fn lines_stay_lines() {
    check(
        MESSAGES,
        "{\"s\":1}\n{\"$set\":{\"messages\":[{}]}}\n{\n",
        &["0 line {\"s\":1}", "8 line {\"$set\":{\"messages\":[{}]}}", "35 line {"],
    );
    check(MESSAGES, "{\"$set\":{\"messages\":[{}]}}\n", &["0 line {\"$set\":{\"messages\":[{}]}}"]);
    check(MESSAGES, "{\"s\":\"messages\"}", &["0 line {\"s\":\"messages\"}"]);
    check(MESSAGES, "{\"s\":\"torn\n{\"i\":2}\n", &["0 line {\"s\":\"torn", "11 line {\"i\":2}"]);
    check(MESSAGES, "noise\n{\n}\n", &["0 line noise", "6 line {", "8 line }"]);
}

#[test]
fn torn_document_keeps_its_whole_elements() {
    check(
        MESSAGES,
        "{\n\"s\":1,\"messages\":[{\"i\":1},{\"i\":",
        &["2 fields \"s\":1", "20 element {\"i\":1}", "28 line {\"i\":"],
    );
    check(MESSAGES, "{\n\"s\":1,\"mess", &["0 line {\n\"s\":1,\"mess"]);
}

#[test]
fn whole_documents_are_found_after_noise() {
    check(
        OBJECTS,
        "noise {\n{\n \"a\": {\"b\": \"}\"}\n}\n{\"c\":1}\n{\n \"d\"",
        &["0 line noise {", "8 line {\n \"a\": {\"b\": \"}\"}\n}", "29 line {\"c\":1}", "37 line {\n \"d\""],
    );
}

#[test]
fn element_beyond_the_limit_is_named_by_its_length() {
    let piece = vec![b'x'; 1024 * 1024];
    let mut pieces: Vec<&[u8]> = vec![b"{\n\"messages\":[\""];
    let count = steno_model::limits::LINE_BYTES_MAX / piece.len() + 1;
    pieces.extend(std::iter::repeat_n(&*piece, count));
    pieces.push(b"\",{\"i\":1}]}");
    let len = count * piece.len() + 2;
    let end = 14 + len + 1;
    assert_eq!(
        parts(MESSAGES, &pieces),
        [format!("14 too long {len}"), format!("{end} element {{\"i\":1}}"), format!("{} end ", end + 9)]
    );
}
