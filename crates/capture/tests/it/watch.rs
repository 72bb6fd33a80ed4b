//! Watching many files, by notices and by polling: every change is reported in the end.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use steno_capture::tail::{Backend, Changes, TailOptions, Watch};
use steno_testkit::dice::Dice;
use tempfile::TempDir;

use crate::tail_kit::append;

/// How long a notice may take before a test gives up. No test gets near it.
const PATIENCE: Duration = Duration::from_mins(1);

/// Short intervals, so that tests are fast.
fn options(backend: Backend) -> TailOptions {
    TailOptions {
        poll_interval: Duration::from_millis(10),
        subagent_discovery_interval: Duration::from_millis(20),
        backend,
        ..TailOptions::default()
    }
}

/// Only the system's notices, without polling.
fn notices_only() -> TailOptions {
    TailOptions { subagent_discovery_interval: Duration::from_hours(1), ..options(Backend::System) }
}

/// A correct caller: adds a directory, then lists it; adds a file, then reads it.
struct Caller {
    watch: Watch,
    home: TempDir,
    /// The last content of each file.
    files: BTreeMap<PathBuf, Option<String>>,
}

impl Caller {
    fn new(options: TailOptions) -> Self {
        let home = tempfile::tempdir().expect("a directory");
        let mut caller = Self { watch: Watch::new(options), home, files: BTreeMap::new() };
        let root = caller.path("");
        caller.list(&root);
        caller
    }

    /// Runs a test with notices only, with the usual checks, and with polling.
    fn every_way(test: impl Fn(&mut Self)) {
        for options in [notices_only(), options(Backend::System), options(Backend::Polling)] {
            let backend = options.backend;
            let mut caller = Self::new(options);
            test(&mut caller);
            let health = caller.watch.health();
            assert_eq!((health.backend, health.overflows), (backend, 0));
            assert_eq!(if backend == Backend::System { health.dirs_polled } else { health.dirs_watched }, 0);
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        if name.is_empty() { self.home.path().to_owned() } else { self.home.path().join(name) }
    }

    fn list(&mut self, dir: &Path) {
        self.watch.add_dir(dir);
        let Ok(entries) = fs::read_dir(dir) else { return };
        for entry in entries.flatten() {
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => self.list(&entry.path()),
                Ok(kind) if kind.is_file() => self.look(&entry.path()),
                Ok(_) | Err(_) => {}
            }
        }
    }

    fn look(&mut self, file: &Path) {
        self.watch.add_file(file);
        self.files.insert(file.to_owned(), fs::read_to_string(file).ok());
    }

    fn heed(&mut self, changes: &Changes) {
        for dir in &changes.dirs {
            self.list(dir);
        }
        for file in &changes.paths {
            self.look(file);
        }
        if changes.overflow {
            self.list(&self.path(""));
        }
    }

    /// Handles changes until a file has this content, or is deleted.
    #[track_caller]
    fn until(&mut self, file: &Path, content: Option<&str>) {
        let deadline = Instant::now() + PATIENCE;
        while self.files.get(file).map(Option::as_deref) != Some(content) {
            assert!(
                Instant::now() < deadline,
                "nobody told of {content:?} in {}: {:?}",
                file.display(),
                self.files
            );
            let changes = self.watch.wait(PATIENCE);
            self.heed(&changes);
        }
    }

    /// Changes every file, and handles changes until each is known.
    #[track_caller]
    fn until_all_is_known(&mut self) {
        let mut files = Vec::new();
        gather(&self.path(""), &mut files);
        for file in files {
            append(&file, b" at last");
            let content = fs::read_to_string(&file).expect("read");
            self.until(&file, Some(&content));
        }
    }

    /// Handles changes until there are no more.
    #[track_caller]
    fn until_quiet(&mut self) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            assert!(Instant::now() < deadline, "it is never quiet");
            let changes = self.watch.wait(Duration::from_millis(100));
            if changes == Changes::default() {
                return;
            }
            self.heed(&changes);
        }
    }
}

#[test]
fn created_grown_and_deleted_files_are_reported() {
    Caller::every_way(|caller| {
        let file = caller.path("log");
        fs::write(&file, "one").expect("written");
        caller.until(&file, Some("one"));
        for _ in 0..3 {
            caller.until_quiet();
            append(&file, b" more");
            let content = fs::read_to_string(&file).expect("read");
            caller.until(&file, Some(&content));
        }
        fs::rename(&file, caller.path("log.1")).expect("renamed");
        caller.until(&file, None);
        caller.until(&caller.path("log.1"), Some("one more more more"));
        fs::remove_file(caller.path("log.1")).expect("removed");
        caller.until(&caller.path("log.1"), None);
    });
}

#[test]
fn file_created_right_after_its_directories_is_found() {
    Caller::every_way(|caller| {
        for number in 0..20 {
            let dir = caller.path(&format!("{number}/deep/deeper"));
            fs::create_dir_all(&dir).expect("made");
            fs::write(dir.join("log"), "one").expect("written");
            caller.until(&dir.join("log"), Some("one"));
            append(&dir.join("log"), b" two");
            caller.until(&dir.join("log"), Some("one two"));
        }
    });
}

#[test]
fn every_file_of_a_tree_created_at_once_is_found() {
    Caller::every_way(|caller| {
        let places: Vec<PathBuf> = (0..125)
            .map(|number| caller.path(&format!("{}/{}/{}", number / 25, number / 5 % 5, number % 5)))
            .collect();
        for (number, dir) in places.iter().enumerate() {
            fs::create_dir_all(dir).expect("made");
            fs::write(dir.join("log"), number.to_string()).expect("written");
        }
        for (number, dir) in places.iter().enumerate() {
            caller.until(&dir.join("log"), Some(&number.to_string()));
        }
    });
}

#[test]
fn moved_tree_is_found() {
    Caller::every_way(|caller| {
        let elsewhere = tempfile::tempdir().expect("a directory");
        fs::create_dir_all(elsewhere.path().join("a/b")).expect("made");
        fs::write(elsewhere.path().join("a/b/log"), "one").expect("written");
        fs::rename(elsewhere.path().join("a"), caller.path("a")).expect("renamed");
        caller.until(&caller.path("a/b/log"), Some("one"));
    });
}

#[test]
fn many_files_at_once_are_found() {
    Caller::every_way(|caller| {
        let files: Vec<PathBuf> = (0..1_000).map(|number| caller.path(&number.to_string())).collect();
        for file in &files {
            fs::write(file, "one").expect("written");
        }
        for file in &files {
            caller.until(file, Some("one"));
        }
    });
}

#[test]
fn missing_directory_is_reported_when_it_appears() {
    for backend in [Backend::System, Backend::Polling] {
        let mut caller = Caller::new(options(backend));
        let dir = caller.home.path().join("not/yet");
        caller.watch.add_dir(&dir);
        assert_eq!(caller.watch.health().dirs_missing, 1);
        fs::create_dir_all(&dir).expect("made");
        fs::write(dir.join("log"), "one").expect("written");
        caller.until(&dir.join("log"), Some("one"));
        assert_eq!(caller.watch.health().dirs_missing, 0);
    }
}

#[test]
fn directory_created_again_is_watched() {
    Caller::every_way(|caller| {
        let (dir, log) = (caller.path("a/b"), caller.path("a/b/log"));
        for number in 0..8 {
            fs::create_dir_all(&dir).expect("made");
            fs::write(&log, number.to_string()).expect("written");
            caller.until(&log, Some(&number.to_string()));
            // Sometimes the next changes are reported one by one, and sometimes together.
            if number % 2 == 0 {
                caller.until_quiet();
            }
            append(&log, b" more");
            caller.until(&log, Some(&format!("{number} more")));
            fs::remove_dir_all(caller.path("a")).expect("removed");
        }
        caller.until(&log, None);
    });
}

#[test]
fn directory_in_place_of_another_is_watched() {
    Caller::every_way(|caller| {
        let log = caller.path("a/b/log");
        fs::create_dir_all(caller.path("a/b")).expect("made");
        fs::write(&log, "old").expect("written");
        caller.until(&log, Some("old"));
        caller.until_quiet();
        fs::rename(caller.path("a"), caller.path("z")).expect("renamed");
        fs::create_dir_all(caller.path("a/b")).expect("made");
        fs::write(&log, "new").expect("written");
        caller.until(&log, Some("new"));
        append(&log, b" more");
        caller.until(&log, Some("new more"));
        append(&caller.path("z/b/log"), b" more");
        caller.until(&caller.path("z/b/log"), Some("old more"));
    });
}

/// Trees that are created, deleted and moved while they are listed; in the end the caller knows every file.
#[test]
fn every_file_is_known_after_random_changes() {
    for seed in 0..8 {
        Caller::every_way(|caller| {
            let mut dice = Dice::new(seed);
            for _ in 0..60 {
                shake(&caller.path(""), &mut dice);
                if dice.once_in(3) {
                    let changes = caller.watch.wait(Duration::ZERO);
                    caller.heed(&changes);
                }
            }
            caller.until_all_is_known();
        });
    }
}

/// The same with a writer that does not wait for the caller.
#[test]
fn every_file_is_known_when_the_writer_stops() {
    for seed in 0..10 {
        for backend in [Backend::System, Backend::Polling] {
            let mut caller = Caller::new(options(backend));
            let (root, rests) = (caller.path(""), AtomicBool::new(false));
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    let mut dice = Dice::new(seed);
                    (0..200).for_each(|_| shake(&root, &mut dice));
                    rests.store(true, Ordering::Release);
                });
                while !rests.load(Ordering::Acquire) {
                    let changes = caller.watch.wait(Duration::from_millis(1));
                    caller.heed(&changes);
                }
            });
            caller.until_all_is_known();
        }
    }
}

/// Does one thing to a small tree.
fn shake(root: &Path, dice: &mut Dice) {
    let mut place = || {
        let depth = 1 + dice.below(3);
        (0..depth).fold(root.to_owned(), |path, _| path.join(["a", "b"][dice.below(2)]))
    };
    let (one, other) = (place(), place());
    // Most of these fail sometimes, when the path does not exist.
    match dice.below(6) {
        0 | 1 => {
            fs::create_dir_all(&one).expect("made");
            fs::write(one.join("log"), dice.roll().to_string()).expect("written");
        }
        2 => append_if_there(&one.join("log")),
        3 => drop(fs::remove_dir_all(&one)),
        _ => drop(fs::rename(&one, &other)),
    }
}

fn append_if_there(file: &Path) {
    if file.exists() {
        append(file, b" more");
    }
}

fn gather(dir: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).expect("listed").flatten() {
        if entry.path().is_dir() {
            gather(&entry.path(), files);
        } else {
            files.push(entry.path());
        }
    }
}

#[test]
fn directories_beyond_the_limit_are_polled_and_the_others_stay_watched() {
    let mut caller = Caller::new(TailOptions { watches_max: 2, ..options(Backend::System) });
    for name in ["a", "b", "c"] {
        fs::create_dir(caller.path(name)).expect("made");
        fs::write(caller.path(name).join("log"), "one").expect("written");
        caller.until(&caller.path(name).join("log"), Some("one"));
    }
    let health = caller.watch.health();
    assert_eq!((health.backend, health.dirs_watched, health.dirs_polled), (Backend::System, 2, 2));
    assert_eq!(health.why_polled.as_deref(), Some("2 directories are watched, which is the limit"));
    for name in ["a", "b", "c"] {
        append(&caller.path(name).join("log"), b" two");
        caller.until(&caller.path(name).join("log"), Some("one two"));
    }
    caller.watch.remove_dir(&caller.path("a"));
    assert_eq!(caller.watch.health().dirs_watched, 1);
}

#[test]
fn directory_with_two_names_is_reported_under_both() {
    for backend in [Backend::System, Backend::Polling] {
        let mut caller = Caller::new(options(backend));
        let (real, link) = (caller.path("real"), caller.path("link"));
        fs::create_dir(&real).expect("made");
        symlink(&real, &link).expect("linked");
        caller.list(&real);
        caller.list(&link);
        fs::write(real.join("log"), "one").expect("written");
        caller.until(&real.join("log"), Some("one"));
        caller.until(&link.join("log"), Some("one"));
        append(&real.join("log"), b" two");
        caller.until(&real.join("log"), Some("one two"));
        caller.until(&link.join("log"), Some("one two"));
    }
}

#[test]
fn changes_before_a_wait_are_reported_once() {
    Caller::every_way(|caller| {
        let file = caller.path("log");
        fs::write(&file, "").expect("written");
        caller.until(&file, Some(""));
        caller.until_quiet();
        for _ in 0..100 {
            append(&file, b"more");
        }
        let mut told = Changes::default();
        while !told.paths.contains(&file) {
            told = caller.watch.wait(PATIENCE);
        }
        assert_eq!(told.paths, [file]);
    });
}

#[test]
fn reading_and_listing_cause_no_notices() {
    Caller::every_way(|caller| {
        let file = caller.path("log");
        fs::write(&file, "one").expect("written");
        caller.until(&file, Some("one"));
        caller.until_quiet();
        for _ in 0..20 {
            fs::read(&file).expect("read");
            fs::read_dir(caller.path("")).expect("listed").for_each(drop);
        }
        assert_eq!(caller.watch.wait(Duration::from_millis(100)), Changes::default());
    });
}

#[test]
fn removed_files_are_not_polled() {
    let mut caller = Caller::new(options(Backend::Polling));
    let (kept, left) = (caller.path("kept"), caller.path("left"));
    for file in [&kept, &left] {
        fs::write(file, "one").expect("written");
    }
    caller.until(&kept, Some("one"));
    caller.until(&left, Some("one"));
    caller.until_quiet();
    caller.watch.remove_file(&left);
    append(&left, b" two");
    append(&kept, b" two");
    caller.until(&kept, Some("one two"));
    caller.until_quiet();
    assert_eq!(caller.files[&left].as_deref(), Some("one"));
    caller.watch.remove_dir(&caller.path(""));
    assert_eq!(caller.watch.health().dirs_polled, 0);
    append(&kept, b" three");
    assert_eq!(caller.watch.wait(Duration::from_millis(50)), Changes::default());
}

#[test]
fn waiting_ends_when_woken_from_another_thread() {
    Caller::every_way(|caller| {
        caller.until_quiet();
        let waker = caller.watch.waker();
        std::thread::scope(|scope| {
            scope.spawn(|| waker.wake());
            let changes = caller.watch.wait(Duration::MAX);
            assert_eq!(changes, Changes { woken: true, ..Changes::default() });
        });
        assert_eq!(caller.watch.wait(Duration::ZERO), Changes::default());
    });
}
