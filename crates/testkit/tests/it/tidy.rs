//! The rules of `STYLE.md` that need no compiler, each checked over every source file of the workspace. A rule
//! is a function from one file to complaints, and has a test below that breaks it.
//!
//! Files below `fixtures` and `golden` are not checked, because their bytes must not change.

use std::fmt::Write as _;
use std::ops::RangeInclusive;
use std::path::Path;

use steno_testkit::places;

use crate::source::{self, Layers};

const HEADER_LINES_MAX: usize = 10;
const FILE_LINES_MAX: usize = 500;
const TEST_FILE_LINES_MAX: usize = 700;
const FUNCTION_LINES_MAX: usize = 70;

/// Names that say nothing about what is inside.
const VAGUE: [&str; 9] = ["core", "common", "utils", "util", "helpers", "helper", "types", "manager", "misc"];

/// What code must not contain, and what to do about it.
const UNWANTED: [(&str, &str); 7] = [
    ("#[ignore", "assert what happens today, or use `skip!`"),
    ("#[should_panic", "catch the error and compare it"),
    ("todo!", "finish it"),
    ("unimplemented!", "finish it"),
    ("dbg!", "remove it"),
    ("#[allow(", "use `expect` with a reason"),
    ("#![allow(", "use `expect` with a reason"),
];

/// Invented user names: tests may use their home directories in samples.
const NOBODY: [&str; 5] = ["user", "me", "you", "alice", "bob"];

#[test]
fn files_open_with_a_header() {
    check_workspace(header);
}

#[test]
fn names_say_what_is_inside() {
    check_workspace(vague_names);
}

#[test]
fn files_are_short() {
    check_workspace(file_length);
}

#[test]
fn functions_are_short() {
    check_workspace(function_length);
}

#[test]
fn code_has_no_ignored_tests_gaps_or_silenced_lints() {
    check_workspace(unwanted);
}

#[test]
fn notes_to_do_have_a_number() {
    check_workspace(unnumbered_notes);
}

#[test]
fn lines_have_no_trailing_white_space() {
    check_workspace(trailing_whitespace);
}

#[test]
fn no_machine_is_named() {
    check_workspace(machine_paths);
}

struct File {
    path: String,
    text: String,
    /// For Rust only.
    rust: Option<Layers>,
}

type Rule = fn(&File) -> Vec<String>;

impl File {
    fn new(path: &str, text: String) -> Self {
        let rust = (Path::new(path).extension() == Some("rs".as_ref())).then(|| source::layers(&text));
        Self { path: path.to_owned(), text, rust }
    }

    fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }

    fn is_for_tests(&self) -> bool {
        self.name() == "tests.rs" || self.path.split('/').any(|part| part == "tests")
    }

    fn test_modules(&self) -> Vec<RangeInclusive<usize>> {
        self.rust.as_ref().map(|rust| source::test_modules(&rust.code)).unwrap_or_default()
    }

    fn complaint(&self, line: usize, what: &str) -> String {
        format!("{}:{line}: {what}", self.path)
    }
}

/// Returns true if a file is written by hand, by its name.
fn is_written_by_hand(path: &str) -> bool {
    let endings = [".rs", ".md", ".toml", ".sh", ".py", ".yml", ".yaml", "justfile", ".ci/run"];
    let for_its_bytes = path.split('/').any(|part| part == "fixtures" || part == "golden");
    endings.iter().any(|ending| path.ends_with(ending)) && !for_its_bytes
}

#[track_caller]
fn check_workspace(rule: Rule) {
    let paths: Vec<String> = places::files().into_iter().filter(|path| is_written_by_hand(path)).collect();
    assert!(
        paths.iter().any(|path| path == "crates/testkit/tests/it/tidy.rs"),
        "the walk misses this very file"
    );
    let mut report = String::new();
    for path in paths {
        for complaint in rule(&File::new(&path, places::read(&path))) {
            let _ = writeln!(report, "{complaint}");
        }
    }
    assert!(report.is_empty(), "\n{report}");
}

/// A file opens with `//!`: one to ten lines on what it owns. A crate's page may be longer.
fn header(file: &File) -> Vec<String> {
    if file.rust.is_none() {
        return Vec::new();
    }
    let lines = file.text.lines().take_while(|line| line.starts_with("//!")).count();
    let says_something = file.text.lines().next().is_some_and(|line| line.len() > "//! ".len());
    let complaint = match lines {
        0 => "does not open with `//!`".to_owned(),
        _ if !says_something => "opens with an empty line of its header".to_owned(),
        lines if lines > HEADER_LINES_MAX && file.name() != "lib.rs" => {
            format!("has a header of {lines} lines, {HEADER_LINES_MAX} at most")
        }
        _ => return Vec::new(),
    };
    vec![file.complaint(1, &complaint)]
}

/// No crate, directory, file or module has a name that fits anything.
fn vague_names(file: &File) -> Vec<String> {
    let Some(rust) = &file.rust else { return vague_package(file) };
    let mut found = Vec::new();
    for part in file.path.split('/').map(|part| part.strip_suffix(".rs").unwrap_or(part)) {
        if is_vague(part) {
            found.push(file.complaint(1, &format!("`{part}` could hold anything: name what it owns")));
        }
    }
    for (line, name) in source::modules(&rust.code) {
        if is_vague(&name) {
            found.push(
                file.complaint(line, &format!("module `{name}` could hold anything: name what it owns")),
            );
        }
    }
    found
}

fn vague_package(file: &File) -> Vec<String> {
    if file.name() != "Cargo.toml" {
        return Vec::new();
    }
    let names = file.text.lines().enumerate().filter_map(|(at, line)| {
        let name = line.strip_prefix("name = \"")?.strip_suffix('"')?;
        is_vague(name)
            .then(|| file.complaint(at + 1, &format!("`{name}` could hold anything: name what it owns")))
    });
    names.collect()
}

/// Looks at the last word: `json_utils` is no better than `utils`.
fn is_vague(name: &str) -> bool {
    name.rsplit(['_', '-']).next().is_some_and(|word| VAGUE.contains(&word))
}

/// A file is split at 500 lines, those of its test module not counted; a file of tests at 700.
fn file_length(file: &File) -> Vec<String> {
    if file.rust.is_none() {
        return Vec::new();
    }
    let (lines_max, tests) = if file.is_for_tests() {
        (TEST_FILE_LINES_MAX, 0)
    } else {
        (FILE_LINES_MAX, file.test_modules().into_iter().map(Iterator::count).sum())
    };
    let lines = file.text.lines().count() - tests;
    if lines <= lines_max {
        return Vec::new();
    }
    vec![file.complaint(1, &format!("has {lines} lines, {lines_max} at most"))]
}

/// A function has 70 lines of code at most, in tests too, where clippy's own limit is easily silenced.
fn function_length(file: &File) -> Vec<String> {
    let Some(rust) = &file.rust else { return Vec::new() };
    let long = source::functions(&rust.code).into_iter().filter(|f| f.code_lines > FUNCTION_LINES_MAX);
    long.map(|f| {
        let what = format!("`{}` has {} lines of code, {FUNCTION_LINES_MAX} at most", f.name, f.code_lines);
        file.complaint(f.line, &what)
    })
    .collect()
}

/// Code has no test that never runs, no gap marked as such, and no lint silenced without a reason.
fn unwanted(file: &File) -> Vec<String> {
    let Some(rust) = &file.rust else { return Vec::new() };
    let mut found = Vec::new();
    for (at, line) in rust.code.lines().enumerate() {
        for (needle, instead) in UNWANTED {
            if word_starts(line, needle).next().is_some() {
                found.push(file.complaint(at + 1, &format!("has `{needle}`: {instead}")));
            }
        }
    }
    for (at, line) in rust.comments.lines().enumerate() {
        if line.contains("```ignore") {
            found.push(
                file.complaint(at + 1, "has an example that never runs: make it run, or call it `text`"),
            );
        }
    }
    found
}

/// A note on something left to do names an issue in the same line, as in `TODO #12`.
fn unnumbered_notes(file: &File) -> Vec<String> {
    let text = file.rust.as_ref().map_or(&file.text, |rust| &rust.comments);
    let mut found = Vec::new();
    for (at, line) in text.lines().enumerate() {
        for note in ["TODO", "FIXME"] {
            let unnumbered = word_starts(line, note).any(|start| !has_issue_number(&line[start..]));
            if unnumbered {
                found.push(file.complaint(at + 1, &format!("has `{note}` without an issue number")));
            }
        }
    }
    found
}

fn has_issue_number(text: &str) -> bool {
    text.split('#').skip(1).any(|after| after.starts_with(|c: char| c.is_ascii_digit()))
}

/// No line ends in spaces, tabs or a carriage return, and a file ends with its last line.
fn trailing_whitespace(file: &File) -> Vec<String> {
    let lines = file.text.split('\n').enumerate().filter(|(_, line)| line.trim_end() != *line);
    let mut found: Vec<String> = lines.map(|(at, _)| file.complaint(at + 1, "ends in white space")).collect();
    let last = file.text.lines().count();
    if !file.text.is_empty() && (!file.text.ends_with('\n') || file.text.ends_with("\n\n")) {
        found.push(file.complaint(last, "the file does not end in exactly one newline"));
    }
    found
}

/// No file names a directory of a developer's machine.
fn machine_paths(file: &File) -> Vec<String> {
    let tests = file.test_modules();
    let mut found = Vec::new();
    for (at, line) in file.text.lines().enumerate() {
        let in_tests = file.is_for_tests() || tests.iter().any(|lines| lines.contains(&(at + 1)));
        // Put together here, so that this file does not contain what it looks for.
        for directory in ["work", "root", "home"].map(|name| format!("/{name}/")) {
            let named = word_starts(line, &directory).any(|start| {
                let below = &line[start + directory.len()..];
                // Not at the root of anything: `~/x`, `../x`, `a-/x`, `*/x`, `${A}/x`.
                let relative = line[..start].ends_with(['~', '.', '-', '*', '}']);
                let made_up = in_tests && directory.starts_with("/h") && is_somebody_made_up(below);
                !relative && !made_up
            });
            if named {
                found.push(file.complaint(at + 1, &format!("names a machine's directory, `{directory}`")));
            }
        }
    }
    found
}

fn is_somebody_made_up(below: &str) -> bool {
    let name = below.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
    NOBODY.contains(&name)
}

/// Finds `needle` at the beginning of a word.
fn word_starts<'a>(line: &'a str, needle: &'a str) -> impl Iterator<Item = usize> {
    let starts = line.match_indices(needle).map(|(start, _)| start);
    starts.filter(|&start| !line[..start].ends_with(|c: char| c.is_alphanumeric() || c == '_'))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the complaints of a rule about a sample, as line and part of the message.
    #[track_caller]
    fn check(rule: Rule, path: &str, text: &str, want: &[(usize, &str)]) {
        let found = rule(&File::new(path, text.to_owned()));
        let fits = |(complaint, (line, part)): (&String, &(usize, &str))| {
            complaint.starts_with(&format!("{path}:{line}: ")) && complaint.contains(part)
        };
        assert!(found.len() == want.len() && found.iter().zip(want).all(fits), "{text}\n{found:#?}");
    }

    #[test]
    fn missing_long_or_empty_headers_are_found() {
        check(header, "a.rs", "//! Owns a.\n", &[]);
        check(header, "a.rs", "", &[(1, "does not open")]);
        check(header, "a.rs", "// Owns a.\n", &[(1, "does not open")]);
        check(header, "a.rs", "\n//! Owns a.\n", &[(1, "does not open")]);
        check(header, "a.rs", "//!\n//! Owns a.\n", &[(1, "empty line")]);
        check(header, "a.rs", &"//! Owns a.\n".repeat(10), &[]);
        check(header, "a.rs", &"//! Owns a.\n".repeat(11), &[(1, "11 lines, 10 at most")]);
        check(header, "crates/a/src/lib.rs", &"//! Owns a.\n".repeat(11), &[]);
        check(header, "a.md", "", &[]);
    }

    #[test]
    fn vague_names_are_found_in_paths_modules_and_packages() {
        check(vague_names, "crates/a/src/event.rs", "mod score;", &[]);
        for name in VAGUE {
            check(vague_names, &format!("crates/a/src/{name}.rs"), "", &[(1, name)]);
            check(vague_names, &format!("crates/{name}/src/lib.rs"), "", &[(1, name)]);
            check(vague_names, "a.rs", &format!("//! A.\npub mod {name} {{}}"), &[(2, name)]);
            let manifest = format!("[package]\nname = \"steno-{name}\"\n");
            check(vague_names, "crates/a/Cargo.toml", &manifest, &[(2, name)]);
        }
        check(vague_names, "a/json_utils/b.rs", "", &[(1, "json_utils")]);
        check(vague_names, "Cargo.toml", "[package]\nname = \"steno-journal\"\n", &[]);
    }

    #[test]
    fn long_files_are_found_and_tests_are_not_counted() {
        let code = |lines: usize| "x;\n".repeat(lines);
        check(file_length, "a.rs", &code(500), &[]);
        check(file_length, "a.rs", &code(501), &[(1, "501 lines, 500 at most")]);
        let with_tests = |lines| format!("{}#[cfg(test)]\nmod tests {{\n{}}}\n", code(lines), code(400));
        check(file_length, "a.rs", &with_tests(500), &[]);
        check(file_length, "a.rs", &with_tests(501), &[(1, "501 lines")]);
        check(file_length, "crates/a/tests/it/b.rs", &code(700), &[]);
        check(file_length, "crates/a/tests/it/b.rs", &code(701), &[(1, "701 lines, 700 at most")]);
        check(file_length, "crates/a/src/b/tests.rs", &code(700), &[]);
    }

    #[test]
    fn long_functions_are_found_in_tests_too() {
        let function = |lines: usize| format!("fn a() {{\n{}}}\n", "x();\n\n// why\n".repeat(lines));
        check(function_length, "a.rs", &function(70), &[]);
        check(function_length, "a.rs", &function(71), &[(1, "`a` has 71 lines")]);
        let in_tests = format!("#[cfg(test)]\nmod tests {{\n{}}}\n", function(71));
        check(function_length, "a.rs", &in_tests, &[(3, "`a` has 71 lines")]);
    }

    #[test]
    fn unwanted_code_is_found_but_not_in_comments() {
        check(unwanted, "a.rs", "#[test]\n#[ignore]\nfn a() {}", &[(2, "#[ignore")]);
        check(unwanted, "a.rs", "#[should_panic(expected = \"x\")]", &[(1, "#[should_panic")]);
        check(unwanted, "a.rs", "todo!()", &[(1, "todo!")]);
        check(unwanted, "a.rs", "unimplemented!(\"x\")", &[(1, "unimplemented!")]);
        check(unwanted, "a.rs", "f(dbg!(x))", &[(1, "dbg!")]);
        check(unwanted, "a.rs", "#[allow(dead_code)]", &[(1, "#[allow(")]);
        check(unwanted, "a.rs", "#![allow(dead_code)]", &[(1, "#![allow(")]);
        check(unwanted, "a.rs", "mod a {}#[allow(x)]", &[(1, "#[allow(")]);
        check(unwanted, "a.rs", "/// ```ignore\n/// a();\n/// ```", &[(1, "never runs")]);
        check(unwanted, "a.rs", "// todo!()\nf(\"#[ignore]\", my_dbg!(x));", &[]);
    }

    #[test]
    fn notes_need_a_number() {
        check(unnumbered_notes, "a.rs", "x; // TODO later", &[(1, "`TODO`")]);
        check(unnumbered_notes, "a.rs", "/* FIXME: # 7 */", &[(1, "`FIXME`")]);
        check(unnumbered_notes, "a.rs", "// TODO #7: later\n// TODO(#8)", &[]);
        check(unnumbered_notes, "a.rs", "f(\"TODO\"); // TODONE", &[(1, "`TODO`")]);
        check(unnumbered_notes, "a.md", "See below.\n\nTODO\n", &[(3, "`TODO`")]);
    }

    #[test]
    fn white_space_at_ends_is_found() {
        check(trailing_whitespace, "a.md", "a\nb\n", &[]);
        check(trailing_whitespace, "a.md", "", &[]);
        check(trailing_whitespace, "a.md", "a \nb\t\nc\r\n", &[(1, "white"), (2, "white"), (3, "white")]);
        check(trailing_whitespace, "a.md", "a", &[(1, "newline")]);
        check(trailing_whitespace, "a.md", "a\n\n", &[(2, "newline")]);
    }

    #[test]
    fn machine_paths_are_found_unless_they_are_examples() {
        for name in ["work", "root", "home"] {
            let path = format!("/{name}/x");
            check(machine_paths, "a.md", &format!("see\n`{path}`"), &[(2, name)]);
            check(machine_paths, "a.rs", &format!("f(\"{path}\")"), &[(1, name)]);
            check(machine_paths, "crates/a/tests/it/b.rs", &format!("f(\"{path}\")"), &[(1, name)]);
            check(machine_paths, "a.md", &format!("a{path}, ~{path}, ${{A}}{path}, ..{path}"), &[]);
        }
        let made_up = format!("/{}/alice/x", "home");
        check(machine_paths, "crates/a/tests/it/b.rs", &made_up, &[]);
        check(machine_paths, "a.rs", &format!("#[cfg(test)]\nmod tests {{\n\"{made_up}\"\n}}"), &[]);
        check(machine_paths, "a.rs", &format!("\"{made_up}\"\n"), &[(1, "home")]);
    }

    #[test]
    fn fixtures_are_not_checked() {
        assert!(is_written_by_hand("crates/a/src/lib.rs"));
        assert!(is_written_by_hand(".ci/run"));
        assert!(is_written_by_hand("justfile"));
        assert!(!is_written_by_hand("crates/a/tests/golden/view.md"));
        assert!(!is_written_by_hand("crates/a/tests/fixtures/session.md"));
        assert!(!is_written_by_hand("Cargo.lock"));
    }
}
