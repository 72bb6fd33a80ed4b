//! Golden files: checked-in texts that test output is compared with.
//!
//! Owns the comparison and its message. Rewriting takes `STENO_BLESS=1`, and never happens where `CI` is set.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs, io};

/// How many characters of a line are shown before the difference, and how many from there on.
const SHOWN_BEFORE: usize = 40;
const SHOWN_AFTER: usize = 60;

const HINT: &str =
    "hint: if the new text is right, run the test once with `STENO_BLESS=1` and look at the diff";

/// Compares `actual` with the golden file at `path` and fails the test at the first difference.
///
/// A relative path starts at the crate under test, which is where `cargo test` runs its tests. With
/// `STENO_BLESS=1`, and unless `CI` is set, the file is written instead.
///
/// # Panics
/// If the two differ, or if the file is missing or cannot be read or written.
#[track_caller]
pub fn check(path: impl AsRef<Path>, actual: &str) {
    let mode = mode(env::var_os("STENO_BLESS").as_deref(), env::var_os("CI").as_deref());
    if let Err(message) = check_as(mode, path.as_ref(), actual) {
        panic!("{message}");
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Compare,
    Bless,
}

fn mode(bless: Option<&OsStr>, ci: Option<&OsStr>) -> Mode {
    let asked = bless.is_some_and(|value| value == "1");
    let on_ci = ci.is_some_and(|value| !value.is_empty());
    if asked && !on_ci { Mode::Bless } else { Mode::Compare }
}

fn check_as(mode: Mode, path: &Path, actual: &str) -> Result<(), String> {
    let shown = path.display();
    let want = match fs::read(path) {
        Ok(bytes) => {
            Some(String::from_utf8(bytes).map_err(|_| format!("golden file `{shown}` is not UTF-8"))?)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(format!("cannot read golden file `{shown}`: {error}")),
    };
    match (mode, want) {
        (_, Some(want)) if want == actual => Ok(()),
        (Mode::Bless, _) => bless(path, actual),
        (Mode::Compare, Some(want)) => {
            Err(format!("golden file `{shown}` differs {}\n{HINT}", first_difference(&want, actual)))
        }
        (Mode::Compare, None) => Err(format!("golden file `{shown}` is missing\n{HINT}")),
    }
}

fn bless(path: &Path, actual: &str) -> Result<(), String> {
    let directory = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(directory)
        .and_then(|()| fs::write(path, actual))
        .map_err(|error| format!("cannot write golden file `{}`: {error}", path.display()))
}

/// Describes the first difference of two texts. Lines are cut around the difference: records can be megabytes long.
fn first_difference(want: &str, got: &str) -> String {
    // Splitting at the newline, and not `lines()`: a missing last newline is a difference too.
    let (mut wants, mut gots) = (want.split('\n'), got.split('\n'));
    let mut number = 0;
    loop {
        number += 1;
        let (want_line, got_line) = (wants.next(), gots.next());
        if want_line != got_line || want_line.is_none() {
            let counts = (want.split('\n').count(), got.split('\n').count());
            return describe(number, want_line, got_line, counts);
        }
    }
}

fn describe(number: usize, want: Option<&str>, got: Option<&str>, counts: (usize, usize)) -> String {
    let pairs = want.unwrap_or_default().chars().zip(got.unwrap_or_default().chars());
    let same = pairs.take_while(|(want, got)| want == got).count();
    let (want, caret) = excerpt(want, same);
    let (got, _) = excerpt(got, same);
    let mut text = format!("at line {number}, column {}\n", same + 1);
    let _ = writeln!(text, "  want: {want}\n  got:  {got}\n        {}^", " ".repeat(caret));
    let _ = write!(text, "  the file has {} lines, the new text {}", counts.0, counts.1);
    text
}

/// Cuts a line around character `at` and returns it with the column at which that character now stands.
fn excerpt(line: Option<&str>, at: usize) -> (String, usize) {
    let Some(line) = line else { return ("(no such line)".to_owned(), 0) };
    let start = at.saturating_sub(SHOWN_BEFORE);
    let mut text = String::from(if start > 0 { "…" } else { "" });
    text.extend(line.chars().skip(start).take(at - start).flat_map(visible));
    let caret = text.chars().count();
    text.extend(line.chars().skip(at).take(SHOWN_AFTER).flat_map(visible));
    if line.chars().nth(at + SHOWN_AFTER).is_some() {
        text.push('…');
    }
    (text, caret)
}

/// Shows control characters as escapes and leaves all others, quotes above all, as they are.
fn visible(character: char) -> impl Iterator<Item = char> {
    let (plain, escaped) = match character {
        c if c.is_control() => (None, Some(c.escape_default())),
        c => (Some(c), None),
    };
    plain.into_iter().chain(escaped.into_iter().flatten())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_difference(want: &str, got: &str, message: &str) {
        assert_eq!(first_difference(want, got), message);
    }

    #[test]
    fn difference_is_shown_with_line_column_and_both_texts() {
        check_difference(
            "one\n{\"seq\":2}\nthree\n",
            "one\n{\"seq\":7}\nthree\n",
            "at line 2, column 8\n  want: {\"seq\":2}\n  got:  {\"seq\":7}\n               ^\n  \
             the file has 4 lines, the new text 4",
        );
    }

    #[test]
    fn difference_may_be_a_missing_end() {
        check_difference(
            "one\n",
            "one",
            "at line 2, column 1\n  want: \n  got:  (no such line)\n        ^\n  \
             the file has 2 lines, the new text 1",
        );
        check_difference(
            "one",
            "one\r",
            "at line 1, column 4\n  want: one\n  got:  one\\r\n           ^\n  \
             the file has 1 lines, the new text 1",
        );
    }

    #[test]
    fn difference_in_a_long_line_is_cut_out() {
        let long = "é".repeat(5000);
        let message = first_difference(&format!("{long}a{long}"), &format!("{long}b{long}"));
        let before = "é".repeat(SHOWN_BEFORE);
        let after = "é".repeat(SHOWN_AFTER - 1);
        assert!(
            message.contains(&format!("want: …{before}a{after}…\n  got:  …{before}b{after}…\n")),
            "{message}"
        );
        assert!(message.contains(&format!("\n        {}^\n", " ".repeat(SHOWN_BEFORE + 1))), "{message}");
    }

    #[test]
    fn comparing_accepts_equal_text_and_writes_nothing_otherwise() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("deep/a.txt");
        assert!(check_as(Mode::Compare, &path, "a\n").unwrap_err().contains("is missing"));
        assert!(!path.exists());

        assert_eq!(check_as(Mode::Bless, &path, "a\n"), Ok(()));
        assert_eq!(check_as(Mode::Compare, &path, "a\n"), Ok(()));
        assert!(check_as(Mode::Compare, &path, "b\n").unwrap_err().contains("differs at line 1, column 1"));
        assert_eq!(fs::read_to_string(&path).unwrap(), "a\n");

        fs::write(&path, b"\xff").unwrap();
        assert!(check_as(Mode::Bless, &path, "a\n").unwrap_err().contains("is not UTF-8"));
    }

    #[test]
    fn blessing_writes_the_new_text() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.txt");
        fs::write(&path, "old").unwrap();
        assert_eq!(check_as(Mode::Bless, &path, "new"), Ok(()));
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
    }

    #[test]
    fn blessing_needs_the_exact_value_and_no_ci() {
        let decide = |bless: Option<&str>, ci: Option<&str>| mode(bless.map(OsStr::new), ci.map(OsStr::new));
        assert_eq!(decide(Some("1"), None), Mode::Bless);
        assert_eq!(decide(Some("1"), Some("")), Mode::Bless);
        assert_eq!(decide(Some("1"), Some("true")), Mode::Compare);
        assert_eq!(decide(Some("0"), None), Mode::Compare);
        assert_eq!(decide(None, None), Mode::Compare);
    }
}
