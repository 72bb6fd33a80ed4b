//! Checks for any segment and any bundle: the validator does not panic and finds the same however the bytes are cut,
//! and the fast way to read a record agrees with the complete one.

use std::io::{self, Read, Write as _};

use steno_model::{Error, SpineEnvelope, SpineRecord};
use steno_spine::{Report, TarWriter, validate_tar};

use crate::dice::Dice;

const BLOCK_BYTES: usize = 512;

/// Checks any segment.
///
/// # Panics
/// If a check fails.
pub fn check_segment(input: &[u8]) {
    for line in input.split(|byte| *byte == b'\n') {
        check_line(line);
    }
    let mut tar = TarWriter::new(Vec::new());
    let made = tar.begin("spine/segment-000.jsonl", input.len() as u64).and_then(|()| tar.write_all(input));
    made.expect("memory takes every write");
    same_in_pieces(&tar.finish().expect("memory takes every write"));
}

/// Checks any bundle. Header checksums are corrected first, or all changes would fail there.
///
/// # Panics
/// If a check fails.
pub fn check_tar(input: &[u8]) {
    let mut tar = input.to_vec();
    for header in tar.chunks_exact_mut(BLOCK_BYTES).filter(|header| &header[257..262] == b"ustar") {
        header[148..156].fill(b' ');
        let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
        header[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
    }
    same_in_pieces(input);
    same_in_pieces(&tar);
}

fn check_line(line: &[u8]) {
    match (SpineEnvelope::parse(line), SpineRecord::parse(line)) {
        (Ok(quick), Ok(whole)) => {
            assert_eq!((&*quick.thread_id, quick.seq), (whole.thread_id.as_str(), whole.seq));
            assert_eq!(quick.record_type, whole.record_type);
            quick.check_payload().ok();
        }
        // Only one of them checks depth, and tells an empty line from one that is not JSON.
        (Err(Error::TooDeep { .. } | Error::Empty), _) => {}
        (Err(_), Err(_)) => {}
        (quick, whole) => panic!("{:?} and {:?}", quick.err(), whole.err()),
    }
}

fn same_in_pieces(tar: &[u8]) {
    let whole = validate_tar(tar);
    let cut = validate_tar(Pieces { rest: tar, dice: Dice::of(tar) });
    let seen = |report: &Report| (report.records, report.bytes, report.errors, report.warnings, report.infos);
    assert_eq!(whole.findings, cut.findings, "whole, and in pieces");
    assert_eq!(seen(&whole), seen(&cut), "whole, and in pieces");
}

/// Gives bytes in pieces of any length, with interruptions.
struct Pieces<'a> {
    rest: &'a [u8],
    dice: Dice,
}

impl Read for Pieces<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.dice.below(16) == 0 {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let len = into.len().min(1 + self.dice.below(700));
        self.rest.read(&mut into[..len])
    }
}
