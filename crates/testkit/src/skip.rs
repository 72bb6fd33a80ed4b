//! Reports tests that cannot run on this machine.
//!
//! Owns the macros `skip!` and `needs!`, the file of skips, and the questions that decide on a skip. Which skips
//! are acceptable is not decided here: CI compares the file with its list.

use std::env;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::places;

/// The variable that names the file to which every skip adds a line.
const SKIPS: &str = "STENO_SKIPS";

/// The variable that names the directory of sample sessions, when it is not beside the workspace.
const SHARED: &str = "STENO_SHARED";

/// Skips a test that lacks something: prints the reason on stderr, adds `crate::module::test<TAB>reason` to the file
/// that `STENO_SKIPS` names, and returns. Takes what `format!` takes.
///
/// ```
/// fn mounts_a_file_system() {
///     if !steno_testkit::is_root() {
///         steno_testkit::skip!("mounting needs root");
///     }
///     // …
/// }
/// ```
#[macro_export]
macro_rules! skip {
    ($($reason:tt)+) => {{
        fn here() {}
        $crate::skip::announce(env!("CARGO_PKG_NAME"), ::std::any::type_name_of_val(&here), &format!($($reason)+));
        return;
    }};
}

/// Takes the value out of an `Option`, or skips the test as [`skip!`](crate::skip!) does.
///
/// ```
/// fn asks_jq() {
///     let jq = steno_testkit::needs!(steno_testkit::tool("jq"), "jq is not installed");
///     assert!(jq.is_file());
/// }
/// ```
#[macro_export]
macro_rules! needs {
    ($what:expr, $($reason:tt)+) => {{
        let Some(found) = $what else { $crate::skip!($($reason)+) };
        found
    }};
}

/// Returns the directory of sample sessions: the one that `STENO_SHARED` names, else `shared` beside the
/// workspace, if there is one.
///
/// # Panics
/// If `STENO_SHARED` names something that is not a directory: a wrong setting must not look like a skip.
#[must_use]
pub fn shared_dir() -> Option<PathBuf> {
    if let Some(named) = env::var_os(SHARED) {
        let named = PathBuf::from(named);
        assert!(named.is_dir(), "`{SHARED}` names `{}`, which is not a directory", named.display());
        return Some(named);
    }
    let dir = places::workspace_root().parent()?.join("shared");
    dir.is_dir().then_some(dir)
}

/// Returns the path of a program, from `PATH` and then the directories for administrators, which `PATH` often lacks.
#[must_use]
pub fn tool(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let directories = env::split_paths(&path).chain(["/usr/sbin", "/sbin"].map(PathBuf::from));
    directories.map(|directory| directory.join(name)).find(|file| is_program(file))
}

/// Tells whether the test runs as root.
#[must_use]
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Reports a skip. Called by [`skip!`](crate::skip!), which knows the package and the place.
///
/// # Panics
/// If the file of skips cannot be written: an uncounted skip would look like a pass.
pub fn announce(package: &str, place: &str, reason: &str) {
    let line = line(package, place, reason);
    // Not `eprintln!`: the test runner keeps that for tests that fail.
    let _ = writeln!(io::stderr(), "SKIPPED {line}");
    if let Some(file) = env::var_os(SKIPS).filter(|name| !name.is_empty()) {
        append(Path::new(&file), &line);
    }
}

/// Builds the line. The crate of an integration test is called `it`, so the package's name goes in front.
fn line(package: &str, place: &str, reason: &str) -> String {
    let package = package.replace('-', "_");
    let place = place.strip_suffix("::here").unwrap_or(place).replace("::{{closure}}", "");
    let within = place.split("::").next() == Some(package.as_str());
    let name = if within { place } else { format!("{package}::{place}") };
    format!("{name}\t{}", reason.replace(['\t', '\n', '\r'], " "))
}

fn append(file: &Path, line: &str) {
    // One write call in append mode: test binaries run side by side and must not mix their lines.
    let opened = OpenOptions::new().create(true).append(true).open(file);
    let written = opened.and_then(|mut file| file.write_all(format!("{line}\n").as_bytes()));
    written.unwrap_or_else(|error| panic!("cannot count a skip in `{}`: {error}", file.display()));
}

fn is_program(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    file.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::process::Command;

    use super::*;

    /// Set for the copy of this test binary in which the two `child` tests do something.
    const CHILD: &str = "STENO_TESTKIT_CHILD";

    #[test]
    fn child_skips() {
        if env::var_os(CHILD).is_some() {
            let missing = 2;
            skip!("lacks {missing}\tthings");
        }
    }

    #[test]
    fn child_needs() {
        if env::var_os(CHILD).is_some() {
            assert_eq!(needs!(Some(3), "it is there"), 3);
            let nothing: Option<u8> = None;
            panic!("the test went on with {}", needs!(nothing, "there is none"));
        }
    }

    #[test]
    fn skips_are_counted_in_the_file_and_seen_on_stderr() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("skips");
        let mut child = Command::new(env::current_exe().unwrap());
        child.args(["skip::tests::child_", "--test-threads=1"]).env(CHILD, "1").env(SKIPS, &file);
        let output = child.output().unwrap();

        let want = "steno_testkit::skip::tests::child_needs\tthere is none\n\
                    steno_testkit::skip::tests::child_skips\tlacks 2 things\n";
        assert_eq!(fs::read_to_string(file).unwrap(), want);
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains("SKIPPED steno_testkit::skip::tests::child_skips"), "{said}");
        assert!(output.status.success());
    }

    #[test]
    fn skip_that_cannot_be_counted_fails_the_test() {
        let mut child = Command::new(env::current_exe().unwrap());
        child.args(["--exact", "skip::tests::child_skips"]).env(CHILD, "1").env(SKIPS, "/");
        assert!(!child.output().unwrap().status.success());
    }

    #[test]
    fn names_begin_with_the_crate() {
        let check =
            |place, want: &str| assert_eq!(line("steno-journal", place, "why"), format!("{want}\twhy"));
        check("steno_journal::disk::tests::full::here", "steno_journal::disk::tests::full");
        check("it::faults::full::here", "steno_journal::it::faults::full");
        check("it::faults::full::{{closure}}::here", "steno_journal::it::faults::full");
    }

    #[test]
    fn tool_finds_programs_and_nothing_else() {
        assert!(tool("sh").is_some_and(|path| path.ends_with("sh")));
        assert_eq!(tool("no-such-program-anywhere"), None);
        assert!(!is_program(&places::workspace_root().join("Cargo.toml")));
        assert!(!is_program(&places::workspace_root()));
    }
}
