//! A file cut at every byte, and flipped at every byte.

use std::sync::Arc;

use steno_journal::{Ending, Error, Level, RunFile, Store, check_run};
use steno_model::Seq;
use steno_testkit::sample::message;
use steno_testkit::sim_disk::SimDisk;

use crate::kit::{bench, journal_on, newlines, run, transcript};

struct Files {
    transcript: Vec<u8>,
    seals: Vec<u8>,
}

/// A small run, closed and sealed, with two seals.
fn sealed_run() -> Files {
    let bench = bench();
    for number in 0..4 {
        bench.recorder.record(message(&format!("m{number}é"), 260 + number * 13), Level::Synced).unwrap();
        if number == 1 {
            bench.recorder.seal().unwrap();
        }
    }
    bench.recorder.close().unwrap();
    Files {
        transcript: transcript(&bench.disk),
        seals: bench.disk.content(&RunFile::Seals(run()).path()).unwrap(),
    }
}

fn disk_with(transcript: &[u8], seals: Option<&[u8]>) -> SimDisk {
    let disk = SimDisk::new(1);
    journal_on(&disk).unwrap();
    disk.tamper(&RunFile::Transcript(run()).path(), transcript);
    if let Some(seals) = seals {
        disk.tamper(&RunFile::Seals(run()).path(), seals);
    }
    disk
}

#[test]
fn file_cut_at_any_byte_keeps_whole_lines_and_continues() {
    let whole = sealed_run().transcript;
    let mut torn = 0;
    for cut in 0..=whole.len() {
        let disk = disk_with(&whole[..cut], None);
        let good = whole[..cut].iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let lines = newlines(&whole[..good]) as u64;
        let found = steno_journal::inspect(&disk, run()).unwrap();
        let want = match cut - good {
            0 => Ending::Whole,
            len => Ending::Torn { offset: good as u64, len: len as u64 },
        };
        assert_eq!((found.good_bytes(), found.ending()), (good as u64, want), "cut at {cut}");
        torn += u64::from(want != Ending::Whole);
        let recorder = journal_on(&disk).unwrap().record(run()).unwrap();
        assert_eq!(recorder.seq_last(), Seq::new(lines), "cut at {cut}");
        let seq = recorder.record(message("next", 300), Level::Synced).unwrap();
        assert_eq!(seq.get(), lines + 1);
        recorder.close().unwrap();
        assert_eq!(transcript(&disk)[..good], whole[..good], "earlier lines are unchanged");
        let kept =
            disk.snapshot().into_iter().filter(|(name, _)| name.contains(".torn-")).collect::<Vec<_>>();
        match want {
            Ending::Whole => assert_eq!(kept, []),
            Ending::Torn { .. } => {
                assert_eq!(kept[0].1, whole[good..cut], "torn bytes are kept, cut at {cut}");
            }
        }
    }
    assert_eq!(torn, whole.len() as u64 - 4, "every cut but those after a newline, or at 0, tore a line");
}

#[test]
fn cut_inside_a_sealed_prefix_prevents_writing() {
    let files = sealed_run();
    for cut in 0..files.transcript.len() {
        let disk = disk_with(&files.transcript[..cut], Some(&files.seals));
        let before = disk.snapshot();
        let opened = journal_on(&disk).unwrap().record(run());
        assert!(matches!(opened, Err(Error::SealBroken { .. })), "cut at {cut}");
        let lock = |(name, _): &(String, Vec<u8>)| name.starts_with("locks/");
        let after: Vec<_> = disk.snapshot().into_iter().filter(|file| !lock(file)).collect();
        assert_eq!(after, before.into_iter().filter(|file| !lock(file)).collect::<Vec<_>>());
    }
}

#[test]
fn every_flipped_byte_of_a_sealed_file_is_found() {
    let files = sealed_run();
    for at in 0..files.transcript.len() {
        let mut flipped = files.transcript.clone();
        flipped[at] ^= 1;
        let disk = disk_with(&flipped, Some(&files.seals));
        let store = Store::open(Arc::new(disk.clone())).unwrap();
        let checked = check_run(&store, run(), Vec::new());
        assert!(matches!(checked, Err(Error::SealBroken { .. } | Error::Damaged { .. })), "flipped at {at}");
        assert!(journal_on(&disk).unwrap().record(run()).is_err(), "flipped at {at}");
    }
}

#[test]
fn zeros_at_the_end_are_a_torn_tail_and_zeros_before_good_lines_are_damage() {
    let whole = sealed_run().transcript;
    let second = whole.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    for (tail, torn) in [
        (&b"\0\0\0\0"[..], true),
        (b"\0\0\n", true),
        (b"\0\0\n\0\0", true),
        (b"{\"seq\":2,\0\0\0}\n", true),
        (b"garbage\n", false),
        (b"\0\0\ngarbage\n", false),
        (b"garbage\n\0\0", false),
    ] {
        let disk = disk_with(&[&whole[..second], tail].concat(), None);
        let opened = journal_on(&disk).unwrap().record(run());
        match (torn, opened) {
            (true, Ok(recorder)) => assert_eq!(recorder.seq_last(), Some(Seq::FIRST)),
            (false, Err(Error::Damaged { offset, .. })) => assert_eq!(offset, second as u64),
            (_, other) => panic!("{:?}: {:?}", String::from_utf8_lossy(tail), other.err()),
        }
    }
    let mut holed = whole.clone();
    holed[second..second + 20].fill(0);
    let disk = disk_with(&holed, None);
    let before = disk.snapshot();
    assert!(matches!(steno_journal::inspect(&disk, run()), Err(Error::Damaged { .. })));
    assert_eq!(disk.snapshot(), before, "nothing was changed");
}

#[test]
fn gaps_duplicates_and_foreign_lines_are_damage() {
    let whole = String::from_utf8(sealed_run().transcript).unwrap();
    let lines: Vec<_> = whole.split_inclusive('\n').collect();
    let stranger = lines[1].replace("000000000001", "000000000002");
    for bad in [
        vec![lines[0], lines[2]],
        vec![lines[0], lines[0]],
        vec![lines[1]],
        vec![lines[0], lines[2], lines[1]],
        vec![lines[0], &stranger],
    ] {
        let disk = disk_with(bad.concat().as_bytes(), None);
        let found = steno_journal::inspect(&disk, run());
        assert!(matches!(found.err(), Some(Error::Damaged { .. })), "{bad:?}");
    }
}
