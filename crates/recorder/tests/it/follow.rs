//! Files that change while they are followed, and the end of following.

use std::cell::Cell;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use steno_capture::tail::{TailOptions, Waker};
use steno_journal::{Journal, Options, Store};
use steno_recorder::sources::{
    FollowObserver, ImportOutcome, ImportProgress, SourceError, SourceFile, SourceFollower, SourceRecorder,
    SourceRecorderOptions,
};
use steno_testkit::sim_disk::SimDisk;

use crate::bench::{Bench, Step, append, archive, sources, store, transcript, transcripts};
use crate::sessions::{SESSION, prompt, response, turn};

/// Agents write their last records while they stop, and often stop at the same time as the follower.
#[test]
fn last_bytes_are_recorded_before_following_ends() {
    let bench = Bench::new();
    let path = bench.claude(&format!("projects/p/{SESSION}.jsonl"));
    let agents = bench.claude(&format!("projects/p/{SESSION}/subagents"));
    fs::write(&path, turn(1, 2)).unwrap();
    let followed = store();
    let step: Step<'_> = Box::new(|| {
        append(&path, &prompt(5));
        fs::create_dir_all(&agents).unwrap();
        fs::write(agents.join("agent-a.jsonl"), prompt(6)).unwrap();
        fs::write(agents.join("agent-a.meta.json"), "{}").unwrap();
    });
    bench.follow(&followed, [step]);
    let imported = store();
    bench.import(&imported);
    assert_eq!(sources(&followed), sources(&imported));
    assert_eq!(transcripts(&followed), transcripts(&imported));
    assert_eq!(sources(&followed).len(), 3);
}

#[test]
fn file_that_reappears_continues() {
    let bench = Bench::new();
    let path = bench.claude(&format!("projects/p/{SESSION}.jsonl"));
    let aside = bench.path("aside");
    fs::write(&path, turn(1, 2)).unwrap();
    let followed = store();
    let away: Step<'_> = Box::new(|| fs::rename(&path, &aside).unwrap());
    bench.follow(&followed, [away]);
    bench.import(&followed);
    append(&aside, &prompt(5));
    fs::copy(&aside, &path).unwrap();
    bench.follow(&followed, []);
    let again: Step<'_> = Box::new(|| {
        fs::remove_file(&path).unwrap();
        append(&aside, &response(6, 2));
        fs::copy(&aside, &path).unwrap();
    });
    bench.follow(&followed, [again]);
    let imported = store();
    bench.import(&imported);
    assert_eq!(sources(&followed), sources(&imported));
    assert_eq!(transcript(&followed), transcript(&imported));
}

/// Growth hides a change in the middle; it is found before the file is closed.
#[test]
fn change_hidden_by_growth_is_found_on_close() {
    let bench = Bench::new();
    let path = bench.claude(&format!("projects/p/{SESSION}.jsonl"));
    let session: String = (1..80).map(prompt).collect();
    fs::write(&path, &session).unwrap();
    let changed = session.replace("Prompt 40:", "PROMPT 40:") + &prompt(80);
    let followed = store();
    let steps: [Step<'_>; 2] = [
        Box::new(|| {
            let mut file = fs::OpenOptions::new().write(true).open(&path).unwrap();
            std::io::Write::write_all(&mut file, changed.as_bytes()).unwrap();
        }),
        Box::new(|| {}),
    ];
    bench.follow(&followed, steps);
    let generations = &sources(&followed)[0].1;
    assert!(generations.last() == Some(&changed), "the last of {} is another", generations.len());
}

/// The first line is unreadable and long.
#[test]
fn session_is_recognised_at_the_first_telling_line() {
    let bench = Bench::new();
    let path = bench.claude(&format!("projects/p/{SESSION}.jsonl"));
    fs::write(&path, "x".repeat(4000) + "\n" + &prompt(1)[..100]).unwrap();
    let followed = store();
    let step: Step<'_> = Box::new(|| append(&path, &prompt(1)[100..]));
    bench.follow(&followed, [step]);
    let imported = store();
    bench.import(&imported);
    assert_eq!(transcript(&followed), transcript(&imported));
}

#[test]
fn session_that_replaces_an_unknown_file_is_recognised() {
    let mut bench = Bench::new();
    let path = bench.path("given.jsonl");
    bench.given = vec![path.clone()];
    fs::write(&path, "{\"a\":1}\n".repeat(200_000)).unwrap();
    let imported = store();
    assert_eq!(bench.import(&imported).events, 0);
    fs::write(&path, turn(1, 2)).unwrap();
    let events = bench.import(&imported).events;
    assert_eq!(events, bench.import(&store()).events);
    assert!(events > 0);
}

/// One file grows after every read; another file appears after a while.
struct Endless {
    growing: PathBuf,
    other: PathBuf,
    prompts: u32,
    is_other_recorded: bool,
    is_over: bool,
    waker: Waker,
}

impl FollowObserver for Endless {
    fn is_stopped(&self) -> bool {
        self.is_over
    }

    fn recorded(&mut self, path: &Path, _events: u64) {
        self.is_other_recorded |= path == self.other && !self.is_over;
        if self.is_other_recorded || self.prompts > 2_000 {
            self.is_over = true;
            self.waker.wake();
            return;
        }
        if self.prompts > 200 {
            fs::write(&self.other, prompt(1)).unwrap();
        }
        for _ in 0..40 {
            self.prompts += 1;
            append(&self.growing, &prompt(self.prompts));
        }
    }

    fn failed(&mut self, path: &Path, error: &SourceError) {
        panic!("{}: {error}", path.display());
    }
}

fn archive_reading(store: &SimDisk, max_read_bytes: usize) -> SourceRecorder {
    let journal = Journal::new(Store::create(Arc::new(store.clone())).unwrap(), Options::default());
    SourceRecorder::open(
        journal,
        SourceRecorderOptions { max_read_bytes, ..SourceRecorderOptions::default() },
    )
    .unwrap()
}

#[test]
fn endlessly_growing_file_does_not_starve_others() {
    let bench = Bench::new();
    let growing = bench.claude(&format!("projects/p/{SESSION}.jsonl"));
    let other = bench.claude("projects/p/0f000000-0000-4000-8000-000000000002.jsonl");
    fs::write(&growing, turn(1, 2)).unwrap();
    let mut archive = archive_reading(&store(), 200);
    let following = SourceFollower::new(&mut archive, bench.places(), TailOptions::default());
    let waker = following.waker();
    let mut watcher =
        Endless { growing, other, prompts: 10, is_other_recorded: false, is_over: false, waker };
    following.run(&mut watcher).unwrap();
    assert!(watcher.is_other_recorded);
}

/// Lets a file grow after every read, and stops the import after a while.
struct Enough {
    pieces: Cell<u32>,
}

impl ImportProgress for Enough {
    fn bytes(&mut self, path: &Path, _count: u64) {
        self.pieces.set(self.pieces.get() + 1);
        append(path, &prompt(self.pieces.get()));
    }

    fn done(&mut self, _file: &SourceFile, _outcome: ImportOutcome) {}

    fn failed(&mut self, file: &SourceFile, error: &SourceError) {
        panic!("{}: {error}", file.path().display());
    }

    fn is_enough(&self) -> bool {
        assert!(self.pieces.get() <= 50, "it was enough before");
        self.pieces.get() == 50
    }
}

#[test]
fn import_of_an_endlessly_growing_file_can_be_stopped() {
    let bench = Bench::new();
    fs::write(bench.claude(&format!("projects/p/{SESSION}.jsonl")), turn(1, 2)).unwrap();
    let imported = store();
    archive(&imported).import(&bench.places().list().files, &mut Enough { pieces: Cell::new(0) });
    bench.import(&imported);
    let whole = store();
    bench.import(&whole);
    assert_eq!(transcript(&imported), transcript(&whole));
}

/// An observer that is paused at first.
struct Paused {
    asked: Cell<u32>,
    recorded: u64,
    ready_after: Option<u64>,
    waker: Waker,
}

impl FollowObserver for Paused {
    fn is_stopped(&self) -> bool {
        self.ready_after.is_some()
    }

    fn is_paused(&self) -> bool {
        self.asked.set(self.asked.get() + 1);
        self.waker.wake();
        self.asked.get() < 3
    }

    fn ready(&mut self) {
        self.ready_after = Some(self.recorded);
    }

    fn recorded(&mut self, _path: &Path, events: u64) {
        self.recorded += events;
    }

    fn failed(&mut self, path: &Path, error: &SourceError) {
        panic!("{}: {error}", path.display());
    }
}

#[test]
fn paused_follower_becomes_ready_after_the_pause() {
    let bench = Bench::new();
    fs::write(bench.claude(&format!("projects/p/{SESSION}.jsonl")), turn(1, 2)).unwrap();
    let followed = store();
    let mut archive = archive(&followed);
    let following = SourceFollower::new(&mut archive, bench.places(), TailOptions::default());
    let waker = following.waker();
    let mut watcher = Paused { asked: Cell::new(0), recorded: 0, ready_after: None, waker };
    let health = following.run(&mut watcher).unwrap();
    assert!(health.events > 0);
    assert_eq!(watcher.ready_after, Some(health.events));
}

/// An observer that deletes a file when everything is recorded, and ends when it hears of that.
struct Deleting {
    path: PathBuf,
    gone: Vec<PathBuf>,
    waker: Waker,
}

impl FollowObserver for Deleting {
    fn is_stopped(&self) -> bool {
        !self.gone.is_empty()
    }

    fn ready(&mut self) {
        fs::remove_file(&self.path).unwrap();
    }

    fn recorded(&mut self, _path: &Path, _events: u64) {}

    fn gone(&mut self, path: &Path) {
        self.gone.push(path.to_owned());
        self.waker.wake();
    }

    fn failed(&mut self, path: &Path, error: &SourceError) {
        panic!("{}: {error}", path.display());
    }
}

#[test]
fn deleted_file_is_reported() {
    let bench = Bench::new();
    let path = bench.claude(&format!("projects/p/{SESSION}.jsonl"));
    fs::write(&path, turn(1, 2)).unwrap();
    let followed = store();
    let mut archive = archive(&followed);
    let following = SourceFollower::new(&mut archive, bench.places(), TailOptions::default());
    let mut watcher = Deleting { path: path.clone(), gone: Vec::new(), waker: following.waker() };
    following.run(&mut watcher).unwrap();
    assert_eq!(watcher.gone, [path]);
}

/// An observer that ends as soon as everything is recorded, or at once; files appear at that moment.
struct Hasty {
    is_over: bool,
    come: Vec<PathBuf>,
}

impl FollowObserver for Hasty {
    fn is_stopped(&self) -> bool {
        self.is_over
    }

    fn ready(&mut self) {
        self.is_over = true;
        self.come.iter().for_each(|path| append(path, &prompt(9)));
    }

    fn recorded(&mut self, _path: &Path, _events: u64) {}

    fn failed(&mut self, path: &Path, error: &SourceError) {
        panic!("{}: {error}", path.display());
    }
}

#[test]
fn unread_files_are_counted_and_read_next_time() {
    for (is_over, last_round_s, want) in [(false, 60, 0), (false, 0, 2), (true, 60, 2)] {
        let bench = Bench::new();
        let file =
            |number: u32| bench.claude(&format!("projects/p/0f000000-0000-4000-8000-{number:012}.jsonl"));
        // Files that were recorded before and empty files are not counted.
        fs::write(file(1), turn(1, 2)).unwrap();
        fs::write(file(2), "").unwrap();
        let followed = store();
        bench.import(&followed);
        if is_over {
            append(&file(3), &prompt(9));
            append(&file(4), &prompt(9));
        }
        let mut archive = archive(&followed);
        let following = SourceFollower::new(&mut archive, bench.places(), TailOptions::default())
            .with_last_round(Duration::from_secs(last_round_s));
        let mut watcher = Hasty { is_over, come: vec![file(3), file(4)] };
        let health = following.run(&mut watcher).unwrap();
        assert_eq!(health.files_unread, want, "{is_over} {last_round_s}");
        drop(archive);
        bench.import(&followed);
        let imported = store();
        bench.import(&imported);
        assert_eq!(sources(&followed), sources(&imported), "{is_over} {last_round_s}");
        assert_eq!(transcripts(&followed), transcripts(&imported), "{is_over} {last_round_s}");
    }
}
