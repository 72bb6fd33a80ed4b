//! What programs do, as far as their names and first words tell: the fixed tables that choices are made by. Each has names
//! of programs, some with the word behind them.

/// What a simple command does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Does {
    /// It changes files.
    Writes,
    /// It only looks.
    Reads,
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
const READS: &str = ".,:,awk,basename,cat,cd,column,comm,command,cut,date,df,dir,dirname,du,echo,egrep,env,export,false,\
    fd,fgrep,file,find,git blame,git cat-file,git describe,git diff,git grep,git log,git ls-files,\
    git ls-tree,git merge-base,git remote,git rev-list,git rev-parse,git shortlog,git show,git status,\
    git symbolic-ref,grep,head,hexdump,hostname,id,jq,less,ls,lsof,md5sum,more,nl,nproc,od,popd,\
    printenv,printf,ps,pushd,pwd,readlink,realpath,rg,sed,set,sha1sum,sha256sum,shasum,shopt,sleep,sort,\
    source,stat,strings,tac,tail,tr,tree,true,type,ulimit,uname,uniq,unset,wc,whereis,which,who,whoami,\
    xxd,yes";

/// Programs that change files.
const WRITES: &str = "apply_patch,apt,apt-get,brew,bun add,bun install,bundle add,bundle install,bundle update,cargo add,\
    cargo clean,cargo fix,cargo generate,cargo init,cargo install,cargo new,cargo remove,cargo update,\
    chgrp,chmod,chown,composer install,composer require,cp,dd,docker,git add,git am,git apply,\
    git branch,git checkout,git cherry-pick,git clean,git clone,git commit,git config,git fetch,\
    git init,git merge,git mv,git pull,git push,git rebase,git reset,git restore,git revert,git rm,\
    git stash,git submodule,git switch,git tag,git worktree,go fmt,go generate,go get,go install,go mod,\
    install,kill,ln,mkdir,mktemp,mv,npm ci,npm i,npm install,npm update,patch,pip,pip3,pkill,pnpm add,\
    pnpm install,poetry add,poetry install,rm,rmdir,rsync,tar,tee,touch,truncate,unzip,uv add,uv sync,\
    yarn add";

/// Says what a simple command does, by its words without redirections.
pub(super) fn does(words: &[String]) -> Does {
    let Some((program, rest)) = program(words) else { return Does::Reads };
    let has = |flags: &[&str]| {
        rest.iter().any(|word| flags.iter().any(|flag| word == flag || word.starts_with(&format!("{flag}="))))
    };
    let second = second_word(rest);
    let is_in = |table: &str| {
        table.split(',').any(|entry| match entry.split_once(' ') {
            Some((first, next)) => {
                first == program && (next == second || rest.first().is_some_and(|word| word == next))
            }
            None => entry == program,
        })
    };
    if is_in(FORMATTERS) {
        let checks =
            has(&["--check", "--check-only", "--diff", "-c", "-l", "--list-different", "--dry-run", "-n"]);
        return if checks || program == "biome" && second != "format" { Does::Lints } else { Does::Writes };
    }
    if has(&["--fix", "--write", "--in-place", "-i"]) && (is_in(LINTS) || matches!(program, "sed" | "perl")) {
        return Does::Writes;
    }
    if program == "sed" && rest.iter().any(|word| word.starts_with("-i")) {
        return Does::Writes;
    }
    if program == "find" && has(&["-exec", "-execdir", "-delete", "-ok", "-fprint"]) {
        return Does::Other;
    }
    if program == "grep" && has(&["-q", "--quiet"]) || program == "git" && has(&["--check", "--exit-code"]) {
        return Does::Other;
    }
    if is_in(TESTS) {
        return Does::Tests;
    }
    if is_in(LINTS)
        || program == "tsc" && has(&["--noEmit"])
        || matches!(program, "bash" | "sh") && has(&["-n"])
    {
        return Does::Lints;
    }
    if is_in(WRITES) {
        return Does::Writes;
    }
    if let Some(script) = script_of_packages(program, rest) {
        return by_name(script);
    }
    if matches!(program, "make" | "just" | "rake" | "task") && !second.is_empty() {
        return by_name(second);
    }
    if is_in(BUILDS) {
        return Does::Builds;
    }
    if is_in(READS) { Does::Reads } else { Does::Other }
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
                "grep -q x y",
                "test -f x",
                "git diff --check",
                "find . -delete",
                "node a.js",
            ],
        );
    }
}
