//! Follows a file with random changes, and compares with a record of all contents at the path.

use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, UNIX_EPOCH};

use steno_capture::tail::{MARK_BYTES_MAX, TailRead};
use steno_testkit::dice::Dice;

use crate::tail_kit::{Followed, append, dir_in_memory, noise, overwrite, replace, truncate};

/// Changes a file, and knows every content that was at its path.
struct Writer {
    path: PathBuf,
    dice: Dice,
    content: Option<Vec<u8>>,
    /// The file that was rotated last, to which a writer may still append.
    rotated: Option<Vec<u8>>,
    history: BTreeSet<Vec<u8>>,
    piece_len_max: usize,
    edits: u32,
}

impl Writer {
    fn new(path: PathBuf, seed: u64, piece_len_max: usize) -> Self {
        let (content, history) = (Some(Vec::new()), BTreeSet::from([Vec::new()]));
        fs::write(&path, "").expect("written");
        Self { path, dice: Dice::new(seed), content, rotated: None, history, piece_len_max, edits: 0 }
    }

    fn rotated_path(&self) -> PathBuf {
        self.path.with_extension("1")
    }

    fn piece(&mut self) -> Vec<u8> {
        let len = 1 + self.dice.below(self.piece_len_max);
        noise(self.dice.roll(), len)
    }

    /// Does one thing.
    fn act(&mut self) {
        let Some(mut content) = self.content.take() else {
            let content = self.piece();
            fs::write(&self.path, &content).expect("written");
            return self.now_is(Some(content));
        };
        match self.dice.below(12) {
            0..4 => {
                let piece = self.piece();
                append(&self.path, &piece);
                content.extend(piece);
            }
            4 => {
                content.truncate(self.dice.below(content.len() + 1));
                truncate(&self.path, content.len() as u64);
            }
            5 => {
                content = self.piece();
                fs::write(&self.path, &content).expect("written");
            }
            6 => {
                content = self.piece();
                replace(&self.path, &content);
            }
            7 => {
                content.extend(self.piece());
                replace(&self.path, &content);
            }
            8 if !content.is_empty() => self.edit(&mut content),
            9 => {
                fs::rename(&self.path, self.rotated_path()).expect("renamed");
                self.rotated = Some(std::mem::replace(&mut content, self.piece()));
                fs::write(&self.path, &content).expect("written");
            }
            10 => self.append_to_rotated(),
            11 if self.dice.once_in(3) => {
                fs::remove_file(&self.path).expect("removed");
                return self.now_is(None);
            }
            _ => {}
        }
        self.now_is(Some(content));
    }

    /// Changes a byte in place, and the time with it: not every system measures that finely.
    fn edit(&mut self, content: &mut [u8]) {
        let at = self.dice.below(content.len());
        content[at] ^= 0x55;
        overwrite(&self.path, at as u64, &content[at..=at]);
        self.edits += 1;
        let file = OpenOptions::new().write(true).open(&self.path).expect("opened");
        file.set_modified(UNIX_EPOCH + Duration::from_nanos(self.edits.into())).expect("set");
    }

    fn append_to_rotated(&mut self) {
        let piece = self.piece();
        let path = self.rotated_path();
        if let Some(rotated) = &mut self.rotated {
            rotated.extend(&piece);
            append(&path, &piece);
            // A later read finds this in the file that had the path.
            self.history.insert(rotated.clone());
        }
    }

    fn now_is(&mut self, content: Option<Vec<u8>>) {
        self.history.extend(content.clone());
        self.content = content;
    }

    fn stood_there(&self, bytes: &[u8]) -> bool {
        // The first content that does not sort before the bytes is the one that begins with them, if any does.
        self.history.range(bytes.to_vec()..).next().is_some_and(|content| content.starts_with(bytes))
    }
}

/// Runs one seed: everything read of a generation was at the path, and the last generation equals the file.
#[track_caller]
fn play(path: &Path, seed: u64, piece_len_max: usize, acts_max: usize) {
    let mut writer = Writer::new(path.to_owned(), seed, piece_len_max);
    let mut followed = Followed::new(path);
    for _ in 0..24 {
        for _ in 0..=writer.dice.below(acts_max) {
            writer.act();
        }
        followed.max_read_bytes = 1 + writer.dice.below(piece_len_max * 2);
        let looks = if acts_max == 1 { 1 + writer.dice.below(4) } else { writer.dice.below(5) };
        for _ in 0..looks {
            while let TailRead::Late { .. } = followed.look() {}
        }
        match writer.dice.below(8) {
            0 => followed.tail.park(),
            1 => followed.restart(),
            2 => drop(followed.read_all()),
            _ => {}
        }
    }
    let end = followed.read_all();
    for (generation, bytes) in followed.generations.iter().enumerate() {
        assert!(writer.stood_there(bytes), "seed {seed}: generation {generation} never stood there");
    }
    match &writer.content {
        Some(content) => {
            assert_eq!(end, TailRead::AtEnd, "seed {seed}");
            assert!(
                followed.generations.last() == Some(content),
                "seed {seed}: the end is not the file's content"
            );
        }
        None => assert_eq!(end, TailRead::Gone, "seed {seed}"),
    }
    for left in [path.to_owned(), writer.rotated_path()] {
        fs::remove_file(left).ok();
    }
}

/// Files short enough for the two marks to cover them: anything may happen between two looks.
#[test]
fn small_files_are_followed_exactly_through_random_changes() {
    let dir = dir_in_memory();
    for seed in 0..2_000 {
        play(&dir.path().join(seed.to_string()), seed, 60, 4);
    }
}

/// Longer files, with one thing happening between two looks.
#[test]
fn large_files_are_followed_exactly_step_by_step() {
    let dir = dir_in_memory();
    for seed in 0..400 {
        play(&dir.path().join(seed.to_string()), seed, 15_000, 1);
    }
}

/// A writer and a reader at the same time. Meanwhile only the order of reads is checked; when the writer stops, the
/// newest generation equals the file.
#[track_caller]
fn race(seed: u64, piece_len_max: usize) {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("log");
    let mut writer = Writer::new(path.clone(), seed, piece_len_max);
    let mut followed = Followed::new(&path);
    let rests = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let rests = &rests;
        let writer = &mut writer;
        scope.spawn(move || {
            for _ in 0..300 {
                writer.act();
            }
            rests.store(true, Ordering::Release);
        });
        while !rests.load(Ordering::Acquire) {
            followed.look();
        }
    });
    if writer.content.is_none() {
        writer.act();
    }
    followed.read_all();
    if writer.content.as_ref().is_some_and(|content| content.len() > MARK_BYTES_MAX) {
        // Only this finds a change in the middle that growth hid.
        followed.tail.recheck();
    }
    assert_eq!(followed.read_all(), TailRead::AtEnd);
    assert!(
        followed.generations.last() == writer.content.as_ref(),
        "seed {seed}: the end is not the file's content"
    );
}

#[test]
fn file_written_while_it_is_read_is_complete_in_the_end() {
    for seed in 0..20 {
        race(seed, 60);
        race(seed, 30_000);
    }
}
