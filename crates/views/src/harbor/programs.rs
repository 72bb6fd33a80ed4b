//! What programs do, as far as their names and first words tell: the fixed tables that choices are made by. Each has names
//! of programs, some with the word behind them.

use super::command::{Effect, Rank, judge};

/// What a simple command does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Does {
    /// It changes files.
    Writes,
    /// It only looks.
    Reads,
    /// It looks whether something is so.
    Compares,
    /// Nobody knows; it may check something.
    Other,
    /// It checks how code is written.
    Lints,
    /// It builds.
    Builds,
    /// It runs tests.
    Tests,
}

/// Programs that run tests.
const TESTS: &str = "ava,bats,bazel test,bun test,busted,cabal test,cargo nextest,cargo t,cargo test,composer test,ctest,\
    dart test,deno test,doctest,dotnet test,flutter test,go test,gotestsum,gradle check,gradle test,\
    gradlew check,gradlew test,jest,just check,just test,karma,make check,make test,make tests,\
    meson test,mix test,mocha,mvn test,mvn verify,mvnw test,mvnw verify,ninja test,nose2,nox,npm t,\
    npm test,phpunit,playwright test,pnpm test,prove,py.test,pytest,rake spec,rake test,rspec,sbt test,\
    stack test,swift test,tox,unittest,vitest,yarn test,zig test";

/// Programs that build.
const BUILDS: &str = "bazel build,bun build,cabal build,cargo b,cargo build,cargo c,cargo check,cargo doc,cmake --build,\
    compileall,dotnet build,go build,gradle assemble,gradle build,gradlew assemble,gradlew build,javac,\
    make,meson compile,mix compile,mvn compile,mvn package,mvnw compile,mvnw package,ninja,py_compile,\
    rustc,sbt compile,stack build,swift build,tsc,zig build";

/// Programs that check how code is written.
const LINTS: &str = "actionlint,cargo clippy,cargo deny,eslint,flake8,go vet,golangci-lint,hadolint,markdownlint,mypy,\
    pylint,pyright,rubocop,ruff,shellcheck,standard,staticcheck,stylelint,svelte-check,\
    terraform validate,vue-tsc,yamllint";

/// Programs that check how code is written when they are told to check, and else write it anew.
const FORMATTERS: &str = "autopep8,biome,black,cargo fmt,clang-format,dprint,gofmt,isort,prettier,ruff format,rustfmt,\
    terraform fmt";

/// Programs that only look.
const READS: &str = ".,:,awk,basename,cargo locate-project,cargo metadata,cargo tree,cat,cd,column,comm,command,cut,date,\
    df,dir,dirname,docker images,docker ps,du,echo,egrep,env,export,false,fd,fgrep,file,find,git blame,\
    git cat-file,git describe,git diff,git grep,git log,git ls-files,git ls-tree,git merge-base,\
    git remote,git rev-list,git rev-parse,git shortlog,git show,git status,git symbolic-ref,go env,\
    go list,grep,head,hexdump,hostname,id,jq,less,ls,lsof,md5sum,more,nl,npm list,npm ls,npm outdated,\
    npm view,nproc,od,pip check,pip freeze,pip list,pip show,pip3 freeze,pip3 list,pip3 show,popd,\
    printenv,printf,ps,pushd,pwd,readlink,realpath,rg,rustup show,sed,set,sha1sum,sha256sum,shasum,\
    shopt,sleep,sort,source,stat,strings,tac,tail,tr,tree,true,type,ulimit,uname,uniq,unset,wc,whereis,\
    which,who,whoami,xxd,yes";

/// Programs that look whether something is so.
const COMPARES: &str = "[,[[,cmp,diff,test";

/// Programs that change files.
const WRITES: &str = "apply_patch,apt,apt-get,brew,bun add,bun install,bundle add,bundle install,bundle update,cargo add,\
    cargo clean,cargo fix,cargo generate,cargo init,cargo install,cargo new,cargo remove,cargo update,\
    chgrp,chmod,chown,composer install,composer require,cp,dd,docker build,docker compose,docker cp,\
    docker run,git add,git am,git apply,git branch,git checkout,git cherry-pick,git clean,git clone,\
    git commit,git config,git fetch,git init,git merge,git mv,git pull,git push,git rebase,git reset,\
    git restore,git revert,git rm,git stash,git submodule,git switch,git tag,git worktree,go fmt,\
    go generate,go get,go install,go mod,install,kill,ln,mkdir,mktemp,mv,npm ci,npm i,npm install,\
    npm update,patch,pip install,pip uninstall,pip3 install,pip3 uninstall,pkill,pnpm add,pnpm install,\
    poetry add,poetry install,rm,rmdir,rsync,tar,tee,touch,truncate,unzip,uv add,uv sync,yarn add";

/// Says what a simple command does, by its words without redirections.
pub(super) fn does(words: &[String]) -> Does {
    let Some((program, rest)) = program(words) else { return Does::Reads };
    let run = Run { program, rest, second: second_word(rest) };
    if run.has(&["--version", "-V", "--help"]) || matches!(run.second, "version" | "help") {
        return Does::Reads;
    }
    run.by_flags().or_else(|| run.by_tables()).unwrap_or(Does::Other)
}

/// A program with what stands behind it.
struct Run<'a> {
    program: &'a str,
    rest: &'a [String],
    /// The first word that is no option.
    second: &'a str,
}

impl Run<'_> {
    fn has(&self, flags: &[&str]) -> bool {
        let is_one = |word: &String| {
            flags
                .iter()
                .any(|flag| word.strip_prefix(flag).is_some_and(|end| end.is_empty() || end.starts_with('=')))
        };
        self.rest.iter().any(is_one)
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

    /// What programs do that do one thing or another by their options.
    fn by_flags(&self) -> Option<Does> {
        if let Some(script) = self.inner_script() {
            return Some(does_script(script));
        }
        if self.is_in(FORMATTERS) {
            let checks = self.has(&[
                "--check",
                "--check-only",
                "--diff",
                "-c",
                "-l",
                "--list-different",
                "--dry-run",
                "-n",
            ]);
            let is_check = checks || self.program == "biome" && self.second != "format";
            return Some(if is_check { Does::Lints } else { Does::Writes });
        }
        let is_edited = self.has(&["--fix", "--write", "--in-place", "-i"]);
        let edits_at_once = self.program == "sed" && self.rest.iter().any(|word| word.starts_with("-i"));
        if edits_at_once || is_edited && (self.is_in(LINTS) || matches!(self.program, "sed" | "perl")) {
            return Some(Does::Writes);
        }
        match self.program {
            "find" if self.has(&["-exec", "-execdir", "-delete", "-ok", "-fprint"]) => Some(Does::Other),
            "grep" | "rg" if self.has(&["-q", "--quiet"]) => Some(Does::Compares),
            "git" => self.git(),
            "python" | "python3" if is_test_file(self.second) => Some(Does::Tests),
            "node" if self.has(&["--test"]) => Some(Does::Tests),
            "tsc" if self.has(&["--noEmit"]) => Some(Does::Lints),
            "bash" | "sh" if self.has(&["-n"]) => Some(Does::Lints),
            _ if !self.is_in(TESTS) => None,
            _ if self.has(&["--no-run"]) => Some(Does::Builds),
            _ if self.has(&["--collect-only", "--co", "--list", "--listTests", "--list-tests", "-list"]) => {
                Some(Does::Reads)
            }
            _ => Some(Does::Tests),
        }
    }

    /// Parts of git that look or change by what stands behind them.
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

    /// Returns what a shell is given to run.
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
        if self.is_in(LINTS) {
            return Some(Does::Lints);
        }
        if self.is_in(WRITES) {
            return Some(Does::Writes);
        }
        if let Some(script) = script_of_packages(self.program, self.rest) {
            return Some(by_name(script));
        }
        if matches!(self.program, "make" | "just" | "rake" | "task") && !self.second.is_empty() {
            return Some(by_name(self.second));
        }
        if self.is_in(COMPARES) {
            return Some(Does::Compares);
        }
        if self.is_in(BUILDS) {
            return Some(Does::Builds);
        }
        self.is_in(READS).then_some(Does::Reads)
    }
}

/// Says what a script does that a shell is given, as if it were a command.
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

/// Tells whether a file holds tests, by how tests are called.
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

/// Returns the program and what stands behind it, without what only sets it off: assignments, `time`, `npx`, ….
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
            ("env" | "time" | "nice" | "nohup" | "exec" | "npx" | "bunx" | "xvfb-run", Some(next))
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

/// Returns the first word behind a program that is no option, nor the value of one.
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

/// Returns the script that a manager of packages runs.
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

/// Says what something does that a project itself has named.
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
    fn programs_are_known_by_their_first_words() {
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
                "gofmt -l .",
            ],
        );
    }

    #[test]
    fn what_changes_files_or_only_looks_checks_nothing() {
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
            ],
        );
        check(
            Does::Reads,
            &["ls -la", "cd x", "git status --short", "sed -n 1,5p x", "rg x", "FOO=1", "find . -name x"],
        );
        check(
            Does::Other,
            &[
                "./run.sh",
                "python3 a.py",
                "python3 -c 'assert True'",
                "find . -delete",
                "node a.js",
                "bash -c './x; ls y'",
            ],
        );
        check(
            Does::Compares,
            &["grep -q x y", "test -f x", "[ -d y ]", "git diff --exit-code", "bash -c 'cmp a b'"],
        );
        let only_looking = [
            "python3 --version",
            "cargo test --help",
            "pytest --collect-only -q",
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
