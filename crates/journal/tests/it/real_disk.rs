//! The disk of the operating system: modes, links, pipes, directories, locks.

use std::fs;
use std::os::unix::fs::{FileTypeExt, PermissionsExt, symlink};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use steno_disk::{Disk, RealDisk, StorePath};
use steno_journal::{Error, Journal, Level, Options, RunFile, Seal, Store, check_run, read_seals};
use steno_testkit::places::make_pipe;
use steno_testkit::sample::message;

use crate::faults::record_until_noticed;
use crate::kit::run;

fn journal(root: &Path) -> Journal {
    let disk = Arc::new(RealDisk::create(root).unwrap());
    Journal::new(Store::create(disk).unwrap(), Options::default())
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn store_is_readable_only_by_its_owner() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("deep/er/store");
    let journal = journal(&root);
    let recorder = journal.record(run()).unwrap();
    recorder.record(message("one", 300), Level::Synced).unwrap();
    recorder.note_dropped(1, "to have a notes file").unwrap();
    recorder.close().unwrap();
    for dir in ["", "transcripts", "locks"] {
        assert_eq!(mode(&root.join(dir)), 0o700, "{dir}");
    }
    let files =
        [RunFile::Transcript(run()), RunFile::Seals(run()), RunFile::Notes(run()), RunFile::Lock(run())];
    for path in files.map(RunFile::path).iter().map(StorePath::as_str).chain(["format.json"]) {
        assert_eq!(mode(&root.join(path)), 0o600, "{path}");
    }
}

#[test]
fn recorded_run_verifies_and_continues() {
    let dir = tempfile::tempdir().unwrap();
    for count in 1..=3_u64 {
        let journal = journal(dir.path());
        let recorder = journal.record(run()).unwrap();
        assert_eq!(recorder.record(message("m", 300), Level::Synced).unwrap().get(), count);
        recorder.close().unwrap();
        let seals: Vec<Seal> = read_seals(&**journal.store().disk(), run()).unwrap();
        let checked = check_run(journal.store(), run(), seals).unwrap();
        assert_eq!((checked.events, checked.seals, checked.sealed_bytes), (count, count * 2, checked.bytes));
    }
}

#[track_caller]
fn check_refused(make: impl Fn(&Path), want: &str) {
    let dir = tempfile::tempdir().unwrap();
    let journal = journal(dir.path());
    let path = dir.path().join(RunFile::Transcript(run()).path().as_str());
    make(&path);
    let error = journal.record(run()).err().unwrap();
    assert!(matches!(error, Error::NotRegular { .. }), "{error:?}");
    assert!(error.to_string().contains(want), "{error}");
}

#[test]
fn links_pipes_and_directories_are_refused() {
    check_refused(|path| symlink("/etc/passwd", path).unwrap(), "a symbolic link");
    check_refused(|path| symlink("dangling", path).unwrap(), "a symbolic link");
    check_refused(|path| fs::create_dir(path).unwrap(), "a directory");
    check_refused(
        |path| {
            make_pipe(path);
            assert!(fs::metadata(path).unwrap().file_type().is_fifo());
        },
        "a FIFO",
    );
}

#[test]
fn link_in_place_of_a_directory_is_not_followed() {
    let dir = tempfile::tempdir().unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    let journal = journal(dir.path());
    fs::remove_dir(dir.path().join("transcripts")).unwrap();
    symlink(elsewhere.path(), dir.path().join("transcripts")).unwrap();
    assert!(journal.record(run()).is_err());
    assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 0);
}

#[test]
fn second_writer_in_the_same_process_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let first = journal(dir.path());
    let recorder = first.record(run()).unwrap();
    let second = journal(dir.path());
    assert!(matches!(second.record(run()).err(), Some(Error::Locked { .. })));
    assert!(second.store().is_locked(run()).unwrap());
    drop(recorder);
    assert!(!second.store().is_locked(run()).unwrap());
    assert!(second.record(run()).is_ok());
}

#[test]
fn deleted_file_is_noticed_on_the_real_disk() {
    for level in [Level::Synced, Level::Written] {
        let dir = tempfile::tempdir().unwrap();
        let journal = journal(dir.path());
        let recorder = journal.record(run()).unwrap();
        recorder.record(message("one", 300), level).unwrap();
        let path = dir.path().join(RunFile::Transcript(run()).path().as_str());
        let held = fs::read(&path).unwrap();
        fs::remove_file(&path).unwrap();
        let (_, kept) = record_until_noticed(&recorder, level);
        assert!(fs::read(dir.path().join(kept.as_str())).unwrap().starts_with(&held));
    }
}

#[test]
fn missing_directory_is_not_a_store() {
    let dir = tempfile::tempdir().unwrap();
    assert!(RealDisk::open(&dir.path().join("nothing")).unwrap().is_none());
    let disk = RealDisk::open(dir.path()).unwrap().unwrap();
    let store = Store::open(Arc::new(disk)).unwrap();
    assert_eq!(store.runs().unwrap(), []);
    assert!(!store.is_locked(run()).unwrap());
}

#[test]
fn create_refuses_existing_files_and_discard_removes_only_temporary_ones() {
    let dir = tempfile::tempdir().unwrap();
    let disk = RealDisk::create(dir.path()).unwrap();
    let path = RunFile::Notes(run()).path();
    disk.make_dir(&path.dir()).unwrap();
    disk.create(&path).unwrap();
    assert_eq!(disk.create(&path).err().unwrap().kind(), std::io::ErrorKind::AlreadyExists);
    assert!(disk.discard(&path).is_err());
    let failed = disk.rename(&path, &path.torn(1, "x")).and_then(|()| disk.discard(&path.torn(1, "x")));
    assert!(failed.is_err());
    // The target is a directory: the rename fails, and the temporary file is removed.
    fs::create_dir(dir.path().join(path.as_str())).unwrap();
    assert!(steno_disk::replace_file(&disk, &path, b"x").is_err());
    let names = disk.list(&path.dir()).unwrap();
    assert_eq!(names, [path.file_name(), path.torn(1, "x").file_name()]);
}

#[test]
fn too_long_lock_file_counts_as_garbled() {
    const LOCK_TEXT_BYTES_MAX: usize = 4096;
    let text = |bytes| format!("{:>bytes$}", r#"{"epoch":41,"pid":1,"since":"2026-06-08T08:14:42.123Z"}"#);
    let dir = tempfile::tempdir().unwrap();
    let journal = journal(dir.path());
    let lock = dir.path().join(RunFile::Lock(run()).path().as_str());
    let epoch_after = |bytes| {
        fs::write(&lock, text(bytes)).unwrap();
        journal.record(run()).unwrap().epoch()
    };
    assert_eq!(epoch_after(LOCK_TEXT_BYTES_MAX), steno_model::Epoch(42));
    assert!(epoch_after(LOCK_TEXT_BYTES_MAX + 1) > steno_model::Epoch(1_000_000_000), "seconds since 1970");
}

#[test]
fn maximum_epoch_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let journal = journal(dir.path());
    let lock = dir.path().join(RunFile::Lock(run()).path().as_str());
    for (before, after) in [(u64::MAX - 1, Some(u64::MAX)), (u64::MAX, None)] {
        let text = format!(r#"{{"epoch":{before},"pid":1,"since":""}}"#);
        fs::write(&lock, &text).unwrap();
        match (journal.record(run()), after) {
            (Ok(recorder), Some(after)) => assert_eq!(recorder.epoch(), steno_model::Epoch(after)),
            (Err(Error::Damaged { path, .. }), None) => {
                assert_eq!(path, RunFile::Lock(run()).path());
                assert_eq!(fs::read_to_string(&lock).unwrap(), text);
            }
            (opened, _) => panic!("{before}: {:?}", opened.err()),
        }
    }
}

#[test]
fn rename_keeps_the_identity_of_a_file() {
    let dir = tempfile::tempdir().unwrap();
    let disk = RealDisk::create(dir.path()).unwrap();
    let (from, to) = (RunFile::Notes(run()).path(), RunFile::Seals(run()).path());
    disk.make_dir(&from.dir()).unwrap();
    let file = disk.create(&from).unwrap();
    steno_disk::append_all(&*file, b"abc").unwrap();
    disk.rename(&from, &to).unwrap();
    let open = file.identity().unwrap();
    assert!(disk.identity(&to).unwrap().unwrap().is_same_file(&open));
    assert_eq!((open.size_bytes, open.links), (3, 1));
    assert_eq!(disk.identity(&from).unwrap(), None);
}

/// A process that is being started has copies of all descriptors of its parent until it runs another program.
#[test]
fn lock_is_released_at_once_while_processes_start() {
    let dir = tempfile::tempdir().unwrap();
    let disk = RealDisk::create(dir.path()).unwrap();
    let path = StorePath::new("lock".to_owned());
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..60 {
                std::process::Command::new("true").status().unwrap();
            }
            is_over.store(true, Ordering::Relaxed);
        });
        while !is_over.load(Ordering::Relaxed) {
            assert!(disk.try_lock(&path).unwrap().is_some());
            assert!(!disk.is_locked(&path).unwrap());
        }
    });
}
