//! The effects of programs, judged by their names, first words and options.

use super::command::{Effect, Rank, judge};
use super::tables::{
    BUILDS, COMPARES, FIND_DOES, FORMATTERS, LEAVES, LINTS, LISTING, READS, REWRITING, REWRITING_SHORT,
    TESTS, WRITES,
};

/// The effect of a simple command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Does {
    /// It changes files.
    Writes,
    /// It only reads.
    Reads,
    /// It tests a condition.
    Compares,
    /// Unknown; it may check something.
    Other,
    /// It checks style.
    Lints,
    /// It builds.
    Builds,
    /// It runs tests.
    Tests,
}

/// Returns the effect of a simple command, by its words without redirections.
pub(super) fn does(words: &[String]) -> Does {
    let Some((program, rest)) = program(words) else { return Does::Reads };
    let run = Run { program, rest, second: second_word(rest) };
    let only = matches!(rest, [only] if matches!(only.as_str(), "-h" | "-v" | "-V" | "version" | "help"));
    if only || run.has(&["--help", "--version"]) {
        return Does::Reads;
    }
    if run.is_check() && (run.rewrites() || words.iter().any(|word| is_updating(word))) {
        return Does::Writes;
    }
    run.by_options().or_else(|| run.by_tables()).unwrap_or(Does::Other)
}

/// Returns true if a simple command that writes does not change files of the task.
pub(super) fn leaves_files(words: &[String]) -> bool {
    program(words)
        .is_none_or(|(program, rest)| Run { program, rest, second: second_word(rest) }.is_in(LEAVES))
}

/// A program with its arguments.
struct Run<'a> {
    program: &'a str,
    rest: &'a [String],
    /// The first word that is not an option.
    second: &'a str,
}

impl Run<'_> {
    fn has(&self, flags: &[&str]) -> bool {
        let is_flag = |word: &str, flag: &str| {
            word.strip_prefix(flag).is_some_and(|end| end.is_empty() || end.starts_with('='))
        };
        self.rest.iter().any(|word| flags.iter().any(|flag| is_flag(word, flag)))
    }

    fn any(&self, is: impl Fn(&str) -> bool) -> bool {
        self.rest.iter().any(|word| is(word))
    }

    fn is_in(&self, table: &str) -> bool {
        table.split(',').any(|entry| match entry.split_once(' ') {
            Some((first, next)) => {
                first == self.program
                    && (next == self.second || self.rest.first().is_some_and(|word| word == next))
            }
            None => entry == self.program,
        })
    }

    fn is_check(&self) -> bool {
        [TESTS, LINTS, FORMATTERS, BUILDS].iter().any(|table| self.is_in(table))
    }

    /// Returns true if an option makes a checker write.
    fn rewrites(&self) -> bool {
        let mut short = REWRITING_SHORT.split(',').filter_map(|entry| entry.split_once(' '));
        self.has(&REWRITING) || short.any(|(name, flag)| name == self.program && self.has(&[flag]))
    }

    /// Returns the effect of programs whose effect depends on their options.
    fn by_options(&self) -> Option<Does> {
        if let Some(script) = self.inner_script() {
            return Some(does_script(script));
        }
        if self.is_in(FORMATTERS) {
            // Programs that list what they would write end with 0 in any case.
            let checks = self.has(&["--check", "--check-only", "--list-different"])
                || matches!(self.program, "isort" | "prettier") && self.has(&["-c", "-l"])
                || self.program == "biome" && self.second != "format";
            return Some(if checks { Does::Lints } else { Does::Writes });
        }
        match self.program {
            "sed" | "perl" => self.any(is_in_place).then_some(Does::Writes),
            "sort" | "tree" => self.has(&["-o", "--output"]).then_some(Does::Writes),
            "find" => {
                self.any(|word| FIND_DOES.iter().any(|does| word.starts_with(does))).then_some(Does::Other)
            }
            "fd" => self.has(&["-x", "-X", "--exec", "--exec-batch"]).then_some(Does::Other),
            "awk" => {
                self.any(|word| word.contains(['>', '|']) || word.contains("system")).then_some(Does::Other)
            }
            "grep" | "rg" => self.has(&["-q", "--quiet"]).then_some(Does::Compares),
            "git" => self.git(),
            "env" => self.any(|word| !word.contains('=')).then_some(Does::Other),
            "command" => (!self.has(&["-v", "-V"])).then_some(Does::Other),
            "make" => self.has(&["-n", "-q", "-p"]).then_some(Does::Reads),
            "python" | "python3" => is_test_file(self.second).then_some(Does::Tests),
            "node" => self.has(&["--test"]).then_some(Does::Tests),
            "tsc" => self.has(&["--noEmit"]).then_some(Does::Lints),
            "bash" | "sh" => self.has(&["-n"]).then_some(Does::Lints),
            _ => None,
        }
    }

    /// Returns the effect of git commands whose effect depends on their arguments.
    fn git(&self) -> Option<Does> {
        let mut behind = self.rest.iter().skip_while(|word| *word != self.second).skip(1);
        let third = behind.find(|word| !word.starts_with('-')).map_or("", String::as_str);
        match self.second {
            "diff" if self.has(&["--exit-code", "--quiet"]) => Some(Does::Compares),
            "branch" if third.is_empty() || self.has(&["--list", "--contains", "--merged"]) => {
                Some(Does::Reads)
            }
            "tag" if third.is_empty() || self.has(&["-l", "--list"]) => Some(Does::Reads),
            "stash" | "worktree" if matches!(third, "list" | "show") => Some(Does::Reads),
            "config" if self.has(&["--get", "--list", "-l"]) => Some(Does::Reads),
            _ => None,
        }
    }

    /// Returns the script that a shell gets as an argument.
    fn inner_script(&self) -> Option<&str> {
        if !matches!(self.program, "bash" | "sh" | "zsh" | "dash" | "ksh") {
            return None;
        }
        let is_flag =
            |word: &&String| word.starts_with('-') && !word.starts_with("--") && word.ends_with('c');
        let at = self.rest.iter().position(|word| is_flag(&word))?;
        self.rest.get(at + 1).map(String::as_str)
    }

    fn by_tables(&self) -> Option<Does> {
        if self.has(&LISTING) && (self.is_in(TESTS) || self.is_in(BUILDS)) {
            return Some(Does::Reads);
        }
        for (table, does) in [(TESTS, Does::Tests), (LINTS, Does::Lints), (WRITES, Does::Writes)] {
            if self.is_in(table) {
                return Some(does);
            }
        }
        if let Some(script) = script_of_packages(self.program, self.rest) {
            return Some(by_name(script));
        }
        if matches!(self.program, "make" | "just" | "rake" | "task") && !self.second.is_empty() {
            return Some(by_name(self.second));
        }
        let rest = [(COMPARES, Does::Compares), (BUILDS, Does::Builds), (READS, Does::Reads)];
        rest.into_iter().find(|(table, _)| self.is_in(table)).map(|(_, does)| does)
    }
}

/// Returns the effect of a script that is an argument of a shell.
fn does_script(script: &str) -> Does {
    let judged = judge(script);
    match (judged.rank, judged.effect) {
        (_, Effect::Writes) => Does::Writes,
        (Ok(Rank::TestRunner), _) => Does::Tests,
        (Ok(Rank::Build), _) => Does::Builds,
        (Ok(Rank::Linter), _) => Does::Lints,
        (Ok(Rank::Other), Effect::None) => Does::Compares,
        (Err(_), Effect::None) => Does::Reads,
        (_, Effect::Unknown) => Does::Other,
    }
}

/// Returns true if a file contains tests, by its name.
pub(super) fn is_test_file(path: &str) -> bool {
    let (dirs, name) = path.rsplit_once('/').unwrap_or(("", path));
    let is_of_tests = |dir: &str| matches!(dir, "test" | "tests" | "__tests__" | "spec" | "specs");
    let stem = name.split_once('.').map_or(name, |(stem, _)| stem);
    name == "conftest.py"
        || dirs.split('/').any(is_of_tests)
        || stem.starts_with("test_")
        || ["_test", "_tests", "_spec"].iter().any(|end| stem.ends_with(end))
        || [".test.", ".spec."].iter().any(|part| name.contains(part))
        || ["Test.java", "Tests.java", "Test.kt", "Tests.cs", "Test.php"]
            .iter()
            .any(|end| name.ends_with(end))
}

/// Returns the program and its arguments, without prefixes: assignments, `time`, `npx` and so on.
fn program(words: &[String]) -> Option<(&str, &[String])> {
    let mut rest = words;
    loop {
        let (first, after) = rest.split_first()?;
        let name = first.rsplit('/').next().unwrap_or(first);
        let is_assignment = first.split_once('=').is_some_and(|(name, _)| {
            !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        });
        let skipped = match (name, after.first().map(String::as_str)) {
            _ if is_assignment => 0,
            ("env" | "time" | "nice" | "nohup" | "npx" | "bunx" | "xvfb-run", Some(next))
                if !next.starts_with('-') =>
            {
                0
            }
            ("timeout", Some(next)) if !next.starts_with('-') => 1,
            ("uv" | "poetry" | "pipenv" | "pdm" | "hatch" | "rye", Some("run"))
            | ("bundle" | "pnpm" | "yarn", Some("exec"))
            | ("python" | "python3" | "py", Some("-m")) => 1,
            _ => return Some((name, after)),
        };
        rest = after.get(skipped..)?;
    }
}

/// Returns true if an option makes a program overwrite its files: `-i`, `-i.bak`, or among combined letters.
fn is_in_place(word: &str) -> bool {
    let letters = word.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
    // The text after one of these letters is its value.
    let own = letters.map_or("", |letters| letters.split(['e', 'f', 'l']).next().unwrap_or(letters));
    own.contains('i') || word == "--in-place" || word.starts_with("--in-place=")
}

/// Returns true if a word sets a variable that makes tests update their expectations.
fn is_updating(word: &str) -> bool {
    let name = word.split_once('=').filter(|(_, value)| !matches!(*value, "" | "0" | "no" | "false"));
    name.is_some_and(|(name, _)| {
        ["UPDATE_", "BLESS"].iter().any(|begin| name.starts_with(begin)) || name.ends_with("_UPDATE")
    })
}

/// Returns the first argument of a program that is neither an option nor the value of one.
fn second_word(rest: &[String]) -> &str {
    let has_value = |word: &str| {
        matches!(word, "-C" | "--directory" | "--prefix" | "--cwd" | "--manifest-path" | "-f" | "--file")
    };
    let mut words = rest.iter().map(String::as_str);
    while let Some(word) = words.next() {
        if has_value(word) {
            words.next();
        } else if !word.starts_with(['-', '+']) {
            return word;
        }
    }
    ""
}

/// Returns the script that a package manager runs.
fn script_of_packages<'a>(program: &str, rest: &'a [String]) -> Option<&'a str> {
    if !matches!(program, "npm" | "pnpm" | "yarn" | "bun" | "composer" | "deno") {
        return None;
    }
    let mut plain = rest.iter().filter(|word| !word.starts_with('-')).map(String::as_str);
    match (program, plain.next()?) {
        (_, "run" | "run-script" | "task") => plain.next(),
        ("yarn" | "pnpm", other) => Some(other),
        _ => None,
    }
}

/// Returns the effect of a script that a project has named.
fn by_name(name: &str) -> Does {
    if matches!(name, "help" | "list" | "version" | "info") {
        return Does::Reads;
    }
    let has = |parts: &[&str]| name.split(['-', ':', '_', '.']).any(|word| parts.contains(&word));
    if has(&["fix", "format", "fmt", "write", "install", "clean"]) {
        return Does::Writes;
    }
    if has(&["test", "tests", "spec", "check", "e2e", "unit"]) {
        return Does::Tests;
    }
    if has(&["lint", "typecheck", "types", "tsc", "eslint"]) {
        return Does::Lints;
    }
    if has(&["build", "compile", "all"]) { Does::Builds } else { Does::Other }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harbor::shell::split;

    #[track_caller]
    fn check(want: Does, scripts: &[&str]) {
        for script in scripts {
            assert_eq!(does(&split(script).unwrap()[0].words), want, "{script}");
        }
    }

    #[test]
    fn programs_are_recognized_by_their_first_words() {
        check(
            Does::Tests,
            &[
                "cargo test -p x",
                "cargo +nightly nextest run",
                "python3 -m pytest -q",
                "uv run pytest",
                "npm test",
                "npm run test:unit",
                "./gradlew test",
                "make -C sub test",
                "RUST_LOG=1 cargo t",
                "timeout 60 go test ./...",
                "npx vitest run",
                "env A=1 /usr/bin/pytest",
                "python -m unittest",
                "python3 test_orders.py",
                "bash -lc 'pytest -q'",
                "node --test",
                "just test",
                "yarn spec",
            ],
        );
        check(
            Does::Builds,
            &["cargo build --release", "make", "npm run build", "tsc -p .", "python -m py_compile a.py"],
        );
        check(
            Does::Lints,
            &[
                "cargo clippy -- -D warnings",
                "cargo fmt --all --check",
                "ruff check .",
                "eslint src",
                "black --check .",
                "tsc --noEmit",
                "npm run lint",
                "bash -n x.sh",
                "prettier --check .",
                "mypy .",
                "isort -c .",
            ],
        );
    }

    #[test]
    fn programs_that_write_or_read_are_not_checks() {
        check(
            Does::Writes,
            &[
                "cargo fmt",
                "black .",
                "eslint --fix src",
                "sed -i s/a/b/ x",
                "sed -i.bak s/a/b/ x",
                "git commit -m x",
                "npm install",
                "rm x",
                "prettier --write .",
                "npm run format",
                "pip install x",
                "make clean",
                "perl -i -pe 1 x",
                "perl -pi -e 1 x",
                "sed -Ei s/a/b/ x",
                "sed -ni s/a/b/ x",
                "gofmt -l .",
                "gofmt -l -w .",
                "black --check --write x",
                "rubocop -a",
                "npx jest -u",
                "UPDATE_EXPECT=1 cargo test",
                "INSTA_UPDATE=always cargo test",
                "sort -o x x",
            ],
        );
        check(
            Does::Reads,
            &[
                "ls -la",
                "cd x",
                "git status --short",
                "sed -n 1,5p x",
                "rg x",
                "FOO=1",
                "find . -name x",
                "python3 --version",
                "node -v",
                "python3 -V",
                "cargo test --help",
                "go version",
                "pytest --collect-only",
                "cargo test --no-run",
                "make -n test",
                "sed -n -e /i/p x",
                "command -v x",
                "awk 'NR < 3' x",
            ],
        );
        check(
            Does::Other,
            &[
                "./run.sh",
                "python3 a.py",
                "python3 -c 'assert True'",
                "find . -delete",
                "find . -fprintf x y",
                "fd -x rm",
                "awk '{ print > \"x\" }' y",
                "env -i rm x",
                "command rm x",
                "node a.js",
            ],
        );
        check(Does::Other, &["bash -c './x; ls y'"]);
    }

    #[test]
    fn shell_and_git_are_judged_by_their_arguments() {
        let compares = ["grep -q x y", "test -f x", "[ -d y ]", "git diff --exit-code", "bash -c 'cmp a b'"];
        check(Does::Compares, &compares);
        let only_looking = [
            "make help",
            "git diff --check",
            "git branch --show-current",
            "git branch -a",
            "git tag",
            "git stash list",
            "cargo metadata --no-deps",
            "bash -c 'ls'",
        ];
        check(Does::Reads, &only_looking);
        check(
            Does::Writes,
            &["git branch new", "git tag v1", "git stash", "bash -c 'rm x'", "pip install x"],
        );
    }
}
