//! What holds for any segment and any archive: the validator survives them, and finds the same however they are cut; and
//! the quick way to read a record agrees with the one that keeps all of it.

use std::io::{self, Read, Write as _};

use steno_model::{Error, SpineEnvelope, SpineRecord};
use steno_spine::{Report, TarWriter, validate_archive};

use crate::dice::Dice;

const BLOCK_BYTES: usize = 512;

/// Checks all that holds for any segment.
///
/// # Panics
/// When something does not hold.
pub fn check_segment(input: &[u8]) {
    for line in input.split(|byte| *byte == b'\n') {
        check_line(line);
    }
    let mut tar = TarWriter::new(Vec::new());
    let made = tar.begin("spine/segment-000.jsonl", input.len() as u64).and_then(|()| tar.write_all(input));
    made.expect("memory takes every write");
    same_in_pieces(&tar.finish().expect("memory takes every write"));
}

/// Checks all that holds for any archive. Sums of headers are put right first, or no change would get past them.
///
/// # Panics
/// When something does not hold.
pub fn check_archive(input: &[u8]) {
    let mut archive = input.to_vec();
    for header in archive.chunks_exact_mut(BLOCK_BYTES).filter(|header| &header[257..262] == b"ustar") {
        header[148..156].fill(b' ');
        let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
        header[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
    }
    same_in_pieces(input);
    same_in_pieces(&archive);
}

fn check_line(line: &[u8]) {
    match (SpineEnvelope::parse(line), SpineRecord::parse(line)) {
        (Ok(quick), Ok(whole)) => {
            assert_eq!((&*quick.thread_id, quick.seq), (whole.thread_id.as_str(), whole.seq));
            assert_eq!(quick.record_type, whole.record_type);
            quick.check_payload().ok();
        }
        // Only one of them asks for depth, and tells an empty line from one that is no JSON.
        (Err(Error::TooDeep { .. } | Error::Empty), _) => {}
        (Err(_), Err(_)) => {}
        (quick, whole) => panic!("{:?} and {:?}", quick.err(), whole.err()),
    }
}

fn same_in_pieces(archive: &[u8]) {
    let whole = validate_archive(archive);
    let cut = validate_archive(Pieces { rest: archive, dice: Dice::of(archive) });
    let seen = |report: &Report| (report.records, report.bytes, report.errors, report.warnings, report.infos);
    assert_eq!(whole.findings, cut.findings, "whole, and in pieces");
    assert_eq!(seen(&whole), seen(&cut), "whole, and in pieces");
}

/// Gives bytes in pieces of any length, and is interrupted now and then.
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
