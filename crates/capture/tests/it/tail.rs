//! Following one file: which bytes are returned, and when a new generation begins.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;

use steno_capture::tail::{ChangeKind, Error, LATE_QUIET_READS_MAX, Mark, Tail, TailRead};
use steno_testkit::places::make_pipe;
use tempfile::TempDir;

use crate::tail_kit::{Followed, append, is_open_here, noise, overwrite, replace, truncate};

fn dir() -> TempDir {
    tempfile::tempdir().expect("a directory")
}

/// Something that happens to a file.
type Happens<'a> = &'a dyn Fn(&Path);

/// How a file is followed while something happens to it.
#[derive(Clone, Copy, Debug)]
enum FollowMode {
    Live,
    Parked,
    Restarted,
}

const FOLLOW_MODES: [FollowMode; 3] = [FollowMode::Live, FollowMode::Parked, FollowMode::Restarted];

fn take(mode: FollowMode, followed: &mut Followed) {
    match mode {
        FollowMode::Live => {}
        FollowMode::Parked => followed.tail.park(),
        FollowMode::Restarted => followed.restart(),
    }
}

/// Changes a file that was read to its end, in every mode of following it, and compares the reasons of new generations.
/// At the end the newest generation equals the file.
#[track_caller]
fn check(content: &[u8], happens: impl Fn(&Path), want: &[ChangeKind]) {
    for mode in FOLLOW_MODES {
        let dir = dir();
        let mut followed = Followed::with_content(dir.path().join("log"), content);
        take(mode, &mut followed);
        happens(&followed.path);
        assert_eq!(followed.changes(), want, "{mode:?}");
        let file = fs::read(&followed.path).expect("read");
        assert!(
            followed.generations.last() == Some(&file),
            "{mode:?}: the newest generation is not the file"
        );
        assert_eq!(followed.generations.len(), want.len() + 1, "{mode:?}");
        // It stays so, and reading continues.
        followed.restart();
        assert_eq!(followed.changes(), [], "{mode:?}");
        append(&followed.path, b"more\n");
        assert_eq!(followed.changes(), [], "{mode:?}");
        assert!(followed.generations.last().is_some_and(|bytes| bytes.ends_with(b"more\n")), "{mode:?}");
    }
}

#[test]
fn appended_bytes_are_returned_once_in_order() {
    check(b"one\n", |path| append(path, b"two\nthree\n"), &[]);
    check(b"", |path| append(path, b"first\n"), &[]);
    check(&noise(1, 5_000), |path| append(path, &noise(2, 200_000)), &[]);
}

#[test]
fn growth_at_any_byte_continues_the_generation() {
    let content = "{\"text\":\"naïve – 日本語 🦀\"}\n{\"text\":\"second\"}\n".as_bytes();
    let dir = dir();
    for cut in 0..=content.len() {
        for mode in FOLLOW_MODES {
            let path = dir.path().join(format!("{cut}{mode:?}"));
            let mut followed = Followed::with_content(&path, &content[..cut]);
            take(mode, &mut followed);
            append(&path, &content[cut..]);
            followed.read_all();
            assert_eq!(followed.generations, [content], "cut at {cut}, {mode:?}");
        }
    }
}

#[test]
fn reads_that_split_a_character_lose_nothing() {
    let content = "größer 🦀 日本\n".repeat(40);
    let dir = dir();
    for max_read_bytes in 1..12 {
        let path = dir.path().join(max_read_bytes.to_string());
        fs::write(&path, &content).expect("written");
        let mut followed = Followed::new(&path);
        followed.max_read_bytes = max_read_bytes;
        followed.read_all();
        assert_eq!(followed.texts(), [content.as_str()]);
    }
}

#[test]
fn line_longer_than_a_read_comes_in_pieces() {
    let dir = dir();
    let line = [noise(3, 1_000_000), b"\n".to_vec()].concat();
    let mut followed = Followed::new(dir.path().join("log"));
    fs::write(&followed.path, &line).expect("written");
    let mut looks = 0;
    while let TailRead::Bytes { .. } = followed.look() {
        looks += 1;
    }
    // The limit of a read is checked with every read.
    assert_eq!(looks, line.len().div_ceil(65_536));
    assert!(followed.generations == [line]);
}

#[test]
fn read_of_zero_bytes_is_not_the_end() {
    let dir = dir();
    fs::write(dir.path().join("log"), "ab").expect("written");
    let (mut tail, mut buffer) = (Tail::new(dir.path().join("log")), Vec::new());
    let look = tail.read_next(&mut buffer, 0).expect("a look");
    assert_eq!(look, TailRead::Bytes { generation: 0, offset: 0, len: 1 });
}

#[test]
fn shorter_file_is_a_new_generation() {
    check(b"one\ntwo\n", |path| truncate(path, 4), &[ChangeKind::Shortened]);
    check(b"one\ntwo\n", |path| fs::write(path, "zero\n").expect("written"), &[ChangeKind::Shortened]);
    check(&noise(1, 100_000), |path| truncate(path, 99_999), &[ChangeKind::Shortened]);
}

#[test]
fn file_copied_away_and_truncated_is_a_new_generation() {
    let copy_and_cut = |path: &Path| {
        fs::copy(path, path.with_extension("1")).expect("copied");
        truncate(path, 0);
        append(path, b"new\n");
    };
    check(b"one\ntwo\n", copy_and_cut, &[ChangeKind::Shortened]);
}

#[test]
fn emptied_file_is_one_new_empty_generation() {
    let dir = dir();
    let mut followed = Followed::with_content(dir.path().join("log"), b"one\n");
    truncate(&followed.path, 0);
    assert_eq!(followed.look(), TailRead::NewGeneration { generation: 1, why: ChangeKind::Shortened });
    assert_eq!((followed.look(), followed.look()), (TailRead::AtEnd, TailRead::AtEnd));
    assert_eq!(followed.cursor().offset(), 0);
    followed.restart();
    assert_eq!(followed.look(), TailRead::AtEnd);
    assert_eq!(followed.texts(), ["one\n", ""]);
}

#[test]
fn file_truncated_and_grown_past_the_offset_is_a_new_generation() {
    let rewrite = |content: Vec<u8>| {
        move |path: &Path| {
            truncate(path, 0);
            append(path, &content);
        }
    };
    check(b"one\n", rewrite(b"another and longer\n".to_vec()), &[ChangeKind::Rewritten]);
    for len in [4_000, 10_000, 300_000] {
        let old = noise(1, len);
        check(&old, rewrite(noise(2, len + 1)), &[ChangeKind::Rewritten]);
        check(&old, rewrite(noise(2, len * 2)), &[ChangeKind::Rewritten]);
        // Only the first or only the last byte of what was read is another.
        let mut other = [old.clone(), b"more".to_vec()].concat();
        other[0] ^= 1;
        check(&old, rewrite(other.clone()), &[ChangeKind::Rewritten]);
        other[0] ^= 1;
        other[len - 1] ^= 1;
        check(&old, rewrite(other), &[ChangeKind::Rewritten]);
        // All bytes are the same, so the change is invisible and nothing is lost.
        check(&old, rewrite([old.clone(), b"more".to_vec()].concat()), &[]);
    }
}

#[test]
fn edit_of_the_same_length_is_a_new_generation() {
    for (len, at) in [(10, 3), (9_000, 0), (9_000, 8_999), (300_000, 150_000), (300_000, 299_999)] {
        let edit = |path: &Path| {
            overwrite(path, at, b"?");
            // So that the test does not depend on how finely the system measures time.
            let file = OpenOptions::new().write(true).open(path).expect("opened");
            file.set_modified(std::time::UNIX_EPOCH).expect("set");
        };
        check(&noise(1, len), edit, &[ChangeKind::Rewritten]);
    }
}

#[test]
fn edit_hidden_by_growth_is_found_by_recheck_park_or_restart() {
    let edit_and_grow = |path: &Path| {
        overwrite(path, 150_000, b"?");
        append(path, b"more\n");
    };
    let dir = dir();
    let mut followed = Followed::with_content(dir.path().join("log"), &noise(1, 300_000));
    edit_and_grow(&followed.path);
    assert_eq!(followed.changes(), []);
    followed.tail.recheck();
    assert_eq!(followed.changes(), [ChangeKind::Rewritten]);
    assert!(followed.generations[1] == fs::read(&followed.path).expect("read"));
    overwrite(&followed.path, 200_000, b"?");
    append(&followed.path, b"more\n");
    Followed::new(&followed.path).settle();
    assert_eq!(followed.changes(), []);
    followed.tail.park();
    assert_eq!(followed.changes(), []);
    followed.tail.recheck();
    assert_eq!(followed.changes(), [ChangeKind::Rewritten]);
    for mode in [FollowMode::Parked, FollowMode::Restarted] {
        take(mode, &mut followed);
        edit_and_grow(&followed.path);
        overwrite(&followed.path, 100_000, format!("{mode:?}").as_bytes());
        assert_eq!(followed.changes(), [ChangeKind::Rewritten], "{mode:?}");
    }
}

#[test]
fn touched_file_is_unchanged() {
    check(
        &noise(1, 300_000),
        |path| {
            let file = OpenOptions::new().write(true).open(path).expect("opened");
            file.set_modified(std::time::UNIX_EPOCH).expect("touched");
            fs::set_permissions(path, fs::Permissions::from_mode(0o600)).expect("set");
        },
        &[],
    );
}

#[test]
fn replaced_file_is_a_new_generation_unless_it_continues_the_old() {
    let old = noise(1, 100_000);
    check(b"one\n", |path| replace(path, b"two\n"), &[ChangeKind::Replaced]);
    check(b"one\n", |path| replace(path, b""), &[ChangeKind::Replaced]);
    check(&old, |path| replace(path, &noise(2, 100_000)), &[ChangeKind::Replaced]);
    check(&old, |path| replace(path, &old[..99_999]), &[ChangeKind::Replaced]);
    check(&old, |path| replace(path, &old), &[]);
    check(&old, |path| replace(path, &[old.as_slice(), b"more\n"].concat()), &[]);
    let mut edited = [old.as_slice(), b"more\n"].concat();
    edited[50_000] ^= 1;
    check(&old, |path| replace(path, &edited), &[ChangeKind::Replaced]);
    // Of an empty file nothing was read.
    check(b"", |path| replace(path, b"two\n"), &[]);
}

#[test]
fn cursor_has_the_inode_of_the_continued_copy() {
    let dir = dir();
    let mut followed = Followed::with_content(dir.path().join("log"), b"one\n");
    let before = followed.cursor();
    replace(&followed.path, b"one\ntwo\n");
    followed.read_all();
    let after = followed.cursor();
    assert_ne!(before.stamp.file, after.stamp.file);
    assert_eq!((after.generation, after.whole), (0, mark(b"one\ntwo\n")));
}

fn mark(bytes: &[u8]) -> Mark {
    Mark { len_bytes: bytes.len() as u64, hash: blake3::hash(bytes).into() }
}

/// A deleted file's number goes to the next file at once on some systems: here the cursor is made to say so.
#[test]
fn same_inode_with_other_content_is_a_new_generation() {
    let dir = dir();
    let followed = Followed::with_content(dir.path().join("old"), b"one\n");
    for content in ["two\n", "zero\n", "1\n"] {
        let path = dir.path().join("new");
        fs::write(&path, content).expect("written");
        let mut cursor = followed.cursor();
        cursor.stamp.file = Followed::with_content(&path, content.as_bytes()).cursor().stamp.file;
        let mut tail = Tail::resume(&path, cursor);
        let look = tail.read_next(&mut Vec::new(), 100).expect("a look");
        assert!(matches!(look, TailRead::NewGeneration { generation: 1, .. }), "{content}: {look:?}");
    }
}

#[test]
fn bytes_added_before_and_after_a_rename_belong_to_the_old_generation() {
    let dir = dir();
    let mut followed = Followed::with_content(dir.path().join("log"), b"one\n");
    let rotated = dir.path().join("log.1");
    append(&followed.path, b"before\n");
    fs::rename(&followed.path, &rotated).expect("renamed");
    append(&rotated, b"after\n");
    fs::write(&followed.path, "new\n").expect("written");
    assert_eq!(followed.changes(), [ChangeKind::Replaced]);
    assert_eq!(followed.texts(), ["one\nbefore\nafter\n", "new\n"]);
}

#[test]
fn late_bytes_of_a_replaced_file_are_read_until_it_is_quiet() {
    let dir = dir();
    let mut followed = Followed::with_content(dir.path().join("log"), b"one\n");
    let rotated = dir.path().join("log.1");
    fs::rename(&followed.path, &rotated).expect("renamed");
    fs::write(&followed.path, "new\n").expect("written");
    followed.read_all();
    append(&rotated, b"late\n");
    assert_eq!(followed.look(), TailRead::Late { generation: 0, offset: 4, len: 5 });
    append(&followed.path, b"newer\n");
    assert_eq!(followed.read_all(), TailRead::AtEnd);
    for _ in 0..LATE_QUIET_READS_MAX - 2 {
        assert_eq!(followed.look(), TailRead::AtEnd);
    }
    append(&rotated, b"later\n");
    assert_eq!(followed.look(), TailRead::Late { generation: 0, offset: 9, len: 6 });
    for _ in 0..=LATE_QUIET_READS_MAX {
        assert_eq!(followed.look(), TailRead::AtEnd);
    }
    append(&rotated, b"too late\n");
    assert_eq!(followed.look(), TailRead::AtEnd);
    assert_eq!(followed.texts(), ["one\n", "new\nnewer\n"]);
    assert_eq!(followed.late, b"late\nlater\n");
}

#[test]
fn file_rewritten_and_replaced_between_two_reads_gives_both_contents() {
    let dir = dir();
    let mut followed = Followed::with_content(dir.path().join("log"), b"one\n");
    fs::write(&followed.path, "2\n").expect("written");
    replace(&followed.path, b"three\n");
    assert_eq!(followed.changes(), [ChangeKind::Shortened, ChangeKind::Replaced]);
    assert_eq!(followed.texts(), ["one\n", "2\n", "three\n"]);
}

#[test]
fn deleted_file_is_read_to_its_end() {
    let dir = dir();
    let mut followed = Followed::with_content(dir.path().join("log"), b"one\n");
    let mut writer = OpenOptions::new().append(true).open(&followed.path).expect("opened");
    append(&followed.path, b"two\n");
    fs::remove_file(&followed.path).expect("removed");
    assert_eq!(followed.look(), TailRead::Bytes { generation: 0, offset: 4, len: 4 });
    assert_eq!((followed.look(), followed.look()), (TailRead::Gone, TailRead::Gone));
    writer.write_all(b"three\n").expect("written");
    assert_eq!(followed.read_all(), TailRead::Gone);
    assert_eq!(followed.texts(), ["one\ntwo\nthree\n"]);
}

#[test]
fn returning_file_continues_if_its_prefix_matches() {
    for mode in FOLLOW_MODES {
        for (content, want) in [("one\n", &[][..]), ("one\ntwo\n", &[]), ("2\n", &[ChangeKind::Replaced])] {
            let dir = dir();
            let mut followed = Followed::with_content(dir.path().join("log"), b"one\n");
            let aside = dir.path().join("aside");
            fs::rename(&followed.path, &aside).expect("renamed");
            take(mode, &mut followed);
            assert_eq!((followed.look(), followed.look()), (TailRead::Gone, TailRead::Gone));
            fs::write(&followed.path, content).expect("written");
            assert_eq!(followed.changes(), want, "{mode:?}");
            assert_eq!(followed.texts().last().map(String::as_str), Some(content), "{mode:?}");
        }
    }
}

#[test]
fn missing_file_is_read_once_it_appears() {
    let dir = dir();
    let mut followed = Followed::new(dir.path().join("sub/log"));
    assert_eq!((followed.look(), followed.tail.cursor()), (TailRead::Gone, None));
    followed.tail.park();
    fs::create_dir(dir.path().join("sub")).expect("made");
    fs::write(&followed.path, "one\n").expect("written");
    followed.read_all();
    assert_eq!(followed.texts(), ["one\n"]);
    // A directory of the path is a file now, so the path does not exist.
    fs::remove_dir_all(dir.path().join("sub")).expect("removed");
    fs::write(dir.path().join("sub"), "").expect("written");
    assert_eq!(followed.look(), TailRead::Gone);
}

/// None of them may block: a plain open of a FIFO would never return.
#[test]
fn other_file_types_are_errors_with_the_type() {
    let cases: [(&str, Happens); 5] = [
        ("a FIFO", &|path| make_pipe(path)),
        ("a directory", &|path| fs::create_dir(path).expect("made")),
        ("a symbolic link", &|path| symlink("elsewhere", path).expect("linked")),
        ("a symbolic link", &|path| symlink("log.1", path).expect("linked")),
        ("a socket", &|path| drop(UnixListener::bind(path).expect("bound"))),
    ];
    for mode in FOLLOW_MODES {
        for (want, make) in &cases {
            let dir = dir();
            let mut followed = Followed::with_content(dir.path().join("log"), b"one\n");
            append(&followed.path, b"two\n");
            let aside = dir.path().join("log.1");
            fs::rename(&followed.path, &aside).expect("renamed");
            take(mode, &mut followed);
            make(&followed.path);
            if matches!(mode, FollowMode::Live) {
                assert_eq!(followed.look(), TailRead::Bytes { generation: 0, offset: 4, len: 4 });
            }
            let error = followed.try_look().expect_err("no file");
            assert!(matches!(error, Error::NotRegular { found, .. } if found == *want), "{error}");
            assert_eq!(
                error.to_string(),
                format!("`{}` is {want}, not a regular file", followed.path.display())
            );
            // Nothing is lost by it.
            fs::rename(&aside, &followed.path)
                .or_else(|_| {
                    fs::remove_dir(&followed.path)?;
                    fs::rename(&aside, &followed.path)
                })
                .expect("back");
            assert_eq!(followed.changes(), []);
            assert_eq!(followed.texts(), ["one\ntwo\n"]);
        }
    }
}

#[test]
fn rewritten_document_is_a_new_generation() {
    let in_place = |path: &Path, content: &[u8]| fs::write(path, content).expect("written");
    for write in [in_place as fn(&Path, &[u8]), replace] {
        let dir = dir();
        let mut followed = Followed::with_content(dir.path().join("log"), b"{\"messages\":[]}");
        let mut want = followed.texts();
        for number in 0..40 {
            let content = format!("{{\"messages\":[{}]}}", vec![number.to_string(); number % 7].join(","));
            write(&followed.path, content.as_bytes());
            followed.read_all();
            if want.last() != Some(&content) {
                want.push(content);
            }
        }
        assert_eq!(followed.texts(), want);
    }
}

#[test]
fn parked_tail_opens_its_file_only_after_a_change() {
    let dir = dir();
    let mut followed = Followed::with_content(dir.path().join("log"), b"one\n");
    followed.settle();
    assert!(is_open_here(&followed.path));
    let cursor = followed.cursor();
    followed.tail.park();
    assert!(!is_open_here(&followed.path));
    assert_eq!((followed.look(), followed.cursor()), (TailRead::AtEnd, cursor));
    assert!(!is_open_here(&followed.path));
    append(&followed.path, b"two\n");
    assert_eq!(followed.look(), TailRead::Bytes { generation: 0, offset: 4, len: 4 });
    assert!(is_open_here(&followed.path));
}

#[test]
fn is_unchanged_needs_a_full_read_and_no_later_change() {
    let changes: [Happens; 6] = [
        &|path| append(path, b"more"),
        &|path| truncate(path, 3),
        &|path| overwrite(path, 0, b"?"),
        &|path| replace(path, b"one\n"),
        &|path| fs::remove_file(path).expect("removed"),
        &|path| fs::set_permissions(path, fs::Permissions::from_mode(0o600)).expect("set"),
    ];
    for (number, change) in changes.into_iter().enumerate() {
        let dir = dir();
        Followed::with_content(dir.path().join("log"), b"one\n").settle();
        let mut followed = Followed::new(dir.path().join("log"));
        followed.max_read_bytes = 2;
        followed.look();
        assert!(!Tail::is_unchanged(&followed.path, &followed.cursor()), "half was read");
        followed.read_all();
        assert!(Tail::is_unchanged(&followed.path, &followed.cursor()));
        change(&followed.path);
        assert!(!Tail::is_unchanged(&followed.path, &followed.cursor()), "change {number}");
    }
}

/// Two changes within a tick of the clock have one time, so a file that was read within a tick of its last change is
/// read again after a restart, once.
#[test]
fn recent_times_do_not_prove_a_file_unchanged() {
    let dir = dir();
    // A test may be delayed for longer than a file takes to settle, but not every time.
    let is_young = || !Followed::with_content(dir.path().join("log"), b"one\n").cursor().stamp.settled;
    assert!(std::iter::repeat_with(is_young).take(100).any(|young| young));
    let mut followed = Followed::with_content(dir.path().join("log"), b"one\n");
    let mut cursor = followed.cursor();
    cursor.stamp.settled = false;
    assert!(!Tail::is_unchanged(&followed.path, &cursor));
    overwrite(&followed.path, 0, b"two\n");
    // As if the edit had happened within the tick.
    let same_times = Followed::with_content(dir.path().join("log"), b"two\n").cursor().stamp;
    cursor.stamp = same_times;
    cursor.stamp.settled = false;
    followed.tail = Tail::resume(&followed.path, cursor);
    assert_eq!(followed.changes(), [ChangeKind::Rewritten]);
    followed.settle();
    assert!(Tail::is_unchanged(&followed.path, &followed.cursor()));
}
