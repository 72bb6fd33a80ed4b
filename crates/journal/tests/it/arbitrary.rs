//! Any bytes instead of a transcript: no panic, nothing lost, and a file that can be opened can be continued.

use std::sync::Arc;

use proptest::prelude::*;
use steno_journal::{Ending, Error, Level, RunFile, Store, check_run, inspect};
use steno_testkit::sample::message;
use steno_testkit::sim_disk::SimDisk;

use crate::kit::{bench, journal_on, run, transcript};

/// Pieces that files are made of: good lines of this run, in and out of order, and all kinds of bad bytes.
fn piece() -> impl Strategy<Value = Vec<u8>> {
    let bench = bench();
    for number in 0..4 {
        bench.recorder.record(message(&format!("m{number}"), 250), Level::Written).unwrap();
    }
    let lines: Vec<Vec<u8>> =
        transcript(&bench.disk).split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
    let line = proptest::sample::select(lines);
    prop_oneof![
        6 => line.clone(),
        1 => (line.clone(), any::<prop::sample::Index>()).prop_map(|(line, at)| line[..at.index(line.len())].to_vec()),
        1 => (line, any::<prop::sample::Index>(), any::<u8>()).prop_map(|(mut line, at, byte)| {
            let at = at.index(line.len());
            line[at] = byte;
            line
        }),
        1 => proptest::collection::vec(any::<u8>(), 0..40),
        1 => Just(vec![0; 30]),
        1 => Just(b"\n".to_vec()),
        1 => Just(b"{\"seq\":1}\n".to_vec()),
    ]
}

/// Opens a file of these bytes, and checks what may be expected of any file.
fn check(bytes: &[u8]) {
    let disk = SimDisk::new(1);
    journal_on(&disk).unwrap();
    let path = RunFile::Transcript(run()).path();
    disk.tamper(&path, bytes);
    let store = Store::open(Arc::new(disk.clone())).unwrap();
    let checked = check_run(&store, run(), Vec::new());
    let found = inspect(&disk, run());
    assert_eq!(disk.content(&path).unwrap(), bytes, "looking changes nothing");
    match (found, checked) {
        (Ok(found), Ok(checked)) => {
            assert_eq!((found.ending(), found.good_bytes()), (checked.ending, checked.bytes));
            let recorder = journal_on(&disk).unwrap().record(run()).unwrap();
            let next = recorder.record(message("next", 250), Level::Synced).unwrap();
            assert_eq!(next.get(), checked.events + 1);
            recorder.close().unwrap();
            let good = usize::try_from(found.good_bytes()).unwrap();
            assert_eq!(transcript(&disk)[..good], bytes[..good], "good lines stay");
            let kept = disk
                .snapshot()
                .into_iter()
                .any(|(name, kept)| name.contains(".torn-") && kept == bytes[good..]);
            assert_eq!(kept, found.ending() != Ending::Whole, "the rest is kept aside");
            assert_eq!(check_run(&store, run(), Vec::new()).unwrap().ending, Ending::Whole);
        }
        (Err(Error::Damaged { offset, .. }), Err(Error::Damaged { offset: same, .. })) => {
            assert_eq!(offset, same);
            assert!(journal_on(&disk).unwrap().record(run()).is_err());
            assert_eq!(disk.content(&path).unwrap(), bytes, "damage is left as it is");
        }
        (found, checked) => panic!("{:?} and {checked:?}", found.err()),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn file_of_random_pieces_is_recovered_or_unchanged(pieces in proptest::collection::vec(piece(), 0..8)) {
        check(&pieces.concat());
    }

    #[test]
    fn file_of_random_bytes_is_recovered_or_unchanged(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        check(&bytes);
    }
}
