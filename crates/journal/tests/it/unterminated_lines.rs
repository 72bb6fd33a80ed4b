//! Unterminated lines at the end of a file: cut, rewritten, written slowly, and never returned as something else.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use steno_journal::{Error, Follower, Level, Reader, RunFile, Store, run_ends};
use steno_model::Seq;
use steno_testkit::sample::{message, time};
use steno_testkit::sim_disk::SimDisk;

use crate::kit::{bench, run};
use crate::watched_disk::{Doing, WatchedDisk};

const ENOSPC: i32 = 28;

/// A line of about that length with the text `label`, with its newline.
fn line(seq: u64, label: &str, bytes: usize) -> Vec<u8> {
    let mut line = Vec::new();
    message(label, bytes).encode(run(), time).write_line(Seq::new(seq).unwrap(), &mut line);
    line
}

/// A disk whose transcript holds `content`.
fn disk_with(content: &[u8]) -> SimDisk {
    let disk = bench().disk;
    put(&disk, content);
    disk
}

fn put(disk: &SimDisk, content: &[u8]) {
    disk.tamper(&RunFile::Transcript(run()).path(), content);
}

fn follow(disk: &SimDisk) -> Follower {
    Follower::open(&Store::open(Arc::new(disk.clone())).unwrap(), run(), Seq::FIRST).unwrap()
}

/// Reads to the end several times, because a long rest is read in parts.
#[track_caller]
fn read(follower: &mut Follower) -> Vec<Vec<u8>> {
    const LOOKS: usize = 40;
    let mut lines = Vec::new();
    for _ in 0..LOOKS {
        while let Some(recorded) = follower.read_next().unwrap() {
            lines.push([&recorded.line[..], b"\n"].concat());
        }
        follower.wait(Duration::ZERO).unwrap();
    }
    lines
}

/// Follows a file in which the head of a line `a` is cut off and `after` is written there instead.
#[track_caller]
fn check_rewritten(a_head: &[u8], after: &[&[u8]], torn: &[u8]) {
    let one = line(1, "one", 300);
    let disk = disk_with(&[&one[..], a_head].concat());
    let mut follower = follow(&disk);
    assert_eq!(read(&mut follower), [&one[..]]);
    put(&disk, &[&one[..], &after.concat(), torn].concat());
    assert_eq!(read(&mut follower), after);
}

#[test]
fn follower_does_not_join_parts_of_two_lines() {
    for bytes in [1_000, 700_000, 3_000_000] {
        let (a, b, c) = (line(2, "a", bytes), line(2, "b", bytes), line(3, "c", bytes));
        let short = line(2, "short", 400);
        for head in [1, bytes / 2, bytes - 1] {
            check_rewritten(&a[..head], &[&b], b"");
            check_rewritten(&a[..head], &[&b, &c], b"");
            check_rewritten(&a[..head], &[&short], b"");
            // As long as the old bytes, and longer, with the end of the line inside.
            check_rewritten(&a[..head], &[&short], &a[..head.saturating_sub(short.len())]);
            check_rewritten(&a[..head], &[&short], &a[..head]);
        }
    }
}

#[test]
fn refused_line_does_not_mix_with_its_replacement() {
    let bench = bench();
    let watched = WatchedDisk::new(&bench.disk);
    bench.recorder.close().unwrap();
    let journal =
        steno_journal::Journal::new(Store::create(Arc::new(watched.clone())).unwrap(), crate::kit::options());
    let recorder = journal.record(run()).unwrap();
    recorder.record(message("one", 300), Level::Written).unwrap();
    let follower = Arc::new(Mutex::new(follow(&bench.disk)));
    let seen = Arc::new(Mutex::new(Vec::new()));
    let full = {
        let (disk, path) = (bench.disk.clone(), RunFile::Transcript(run()).path());
        let (seen, follower) = (Arc::clone(&seen), Arc::clone(&follower));
        move |doing, at: &steno_disk::StorePath| {
            if doing != Doing::Append || *at != path {
                return Ok(());
            }
            // Half of the line is in the file when the disk is full, and is read at that moment.
            let content = disk.content(&path).unwrap();
            put(&disk, &[&content[..], &line(2, "refused", 2_000)[..1_000]].concat());
            seen.lock().unwrap().extend(read(&mut follower.lock().unwrap()));
            Err(std::io::Error::from_raw_os_error(ENOSPC))
        }
    };
    watched.set_hook(full);
    let refused = recorder.record(message("refused", 2_000), Level::Written);
    assert!(matches!(refused, Err(Error::NoRoom { .. })), "{refused:?}");
    watched.set_hook(|_, _| Ok(()));
    recorder.record(message("kept", 2_000), Level::Written).unwrap();
    assert_eq!(*seen.lock().unwrap(), [line(1, "one", 300)], "the reader did come by");
    assert_eq!(read(&mut follower.lock().unwrap()), [line(2, "kept", 2_000)]);
}

#[test]
fn line_rewritten_between_two_reads_is_read_again() {
    let one = line(1, "one", 300);
    let (a, b) = (line(2, "a", 900_000), line(2, "b", 900_000));
    for nth in 1..8 {
        let disk = disk_with(&[&one[..], &a[..800_000]].concat());
        let watched = WatchedDisk::new(&disk);
        let mut reader = Reader::open(&Store::open(Arc::new(watched.clone())).unwrap(), run()).unwrap();
        let reads = AtomicU64::new(0);
        let changed = Arc::new(AtomicBool::new(false));
        let hook = {
            let (disk, changed) = (disk.clone(), Arc::clone(&changed));
            let whole = [&one[..], &b].concat();
            move |doing, _: &steno_disk::StorePath| {
                if doing == Doing::Read && reads.fetch_add(1, Ordering::Relaxed) + 1 == nth {
                    put(&disk, &whole);
                    changed.store(true, Ordering::Relaxed);
                }
                Ok(())
            }
        };
        watched.set_hook(hook);
        let mut lines = Vec::new();
        for _ in 0..20 {
            lines.extend(reader.read_next().unwrap().map(|recorded| recorded.line));
        }
        if changed.load(Ordering::Relaxed) {
            assert_eq!(lines, [&one[..one.len() - 1], &b[..b.len() - 1]], "changed before read {nth}");
        } else {
            assert!(nth > 4, "the file was changed while it was read");
        }
    }
}

#[test]
fn slowly_written_line_is_not_read_from_its_start_each_time() {
    const LINE_BYTES: usize = 8 * 1024 * 1024;
    const STEP_BYTES: usize = 16 * 1024;
    let (one, two) = (line(1, "one", 300), line(2, "two", LINE_BYTES));
    let disk = disk_with(&one);
    let watched = WatchedDisk::new(&disk);
    let store = Store::open(Arc::new(watched.clone())).unwrap();
    let mut follower = Follower::open(&store, run(), Seq::FIRST).unwrap();
    assert!(follower.read_next().unwrap().is_some());
    let file = steno_disk::Disk::open_append(&disk, &RunFile::Transcript(run()).path()).unwrap();
    watched.take_moved();
    let mut looks = 0;
    let mut found = None;
    for step in two.chunks(STEP_BYTES) {
        assert_eq!(found, None);
        steno_disk::append_all(&*file, step).unwrap();
        found = follower.read_next().unwrap().map(|recorded| recorded.line);
        looks += 1;
    }
    assert_eq!(found.as_deref(), Some(&two[..two.len() - 1]));
    let each = watched.take_moved() / looks;
    assert!(each < 700_000, "{each} bytes read for each of {looks} steps");
}

#[test]
fn too_long_lines_are_found_at_any_offset() {
    const LINE_BYTES_MAX: usize = steno_model::limits::LINE_BYTES_MAX;
    let exact = |seq, bytes: usize| {
        let shorter = line(seq, "m", bytes - 1_000);
        let with = line(seq, "m", 2 * bytes - 1_000 - shorter.len());
        assert_eq!(with.len(), bytes);
        with
    };
    let dir = tempfile::tempdir().unwrap();
    let check = |before: &[u8], seq: u64, bytes: usize| {
        let path = dir.path().join("transcript.jsonl");
        std::fs::write(&path, [before, &exact(seq, bytes)].concat()).unwrap();
        let file = steno_disk::open_host_file(&path).unwrap();
        let name = steno_disk::StorePath::outside(&path);
        steno_journal::check_file(file, &name, None, Vec::new()).map(|checked| checked.events)
    };
    for (before, seq, over) in [(Vec::new(), 1, 1), (line(1, "m", 100_000), 2, 100_000)] {
        assert_eq!(check(&before, seq, LINE_BYTES_MAX).unwrap(), seq);
        let refused = check(&before, seq, LINE_BYTES_MAX + over);
        let Err(Error::Damaged { offset, why: steno_journal::Damage::TooLong, .. }) = refused else {
            panic!("{refused:?}")
        };
        assert_eq!(offset, before.len() as u64);
    }
}

#[test]
fn run_that_begins_during_a_listing_has_one_event_or_none() {
    let disk = disk_with(b"");
    let watched = WatchedDisk::new(&disk);
    let hook = {
        let disk = disk.clone();
        move |doing, path: &steno_disk::StorePath| {
            if doing == Doing::Look && *path == RunFile::Transcript(run()).path() {
                put(&disk, &line(1, "one", 300));
            }
            Ok(())
        }
    };
    watched.set_hook(hook);
    let store = Store::open(Arc::new(watched)).unwrap();
    assert_eq!(run_ends(&store, run()).unwrap().events, None);
    let (first, last) = run_ends(&store, run()).unwrap().events.unwrap();
    assert_eq!((first.seq.get(), first), (1, last));
}

#[test]
fn run_ends_skips_zeros_at_the_end() {
    const ZEROS: usize = 3_000_000;
    let lines = [line(1, "one", 300), line(2, "two", 40_000), line(3, "three", 300)].concat();
    for zeros in [0, 1, ZEROS] {
        let disk = disk_with(&[&lines[..], &vec![0; zeros]].concat());
        let store = Store::open(Arc::new(disk)).unwrap();
        let (first, last) = run_ends(&store, run()).unwrap().events.unwrap();
        assert_eq!((first.seq.get(), last.seq.get()), (1, 3), "{zeros}");
    }
}
