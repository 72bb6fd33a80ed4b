//! Fixed tables of program names, some with their subcommand.

/// Programs that run tests.
pub(super) const TESTS: &str = "ava,bats,bazel test,bun test,busted,cabal test,cargo nextest,cargo t,cargo test,composer test,ctest,\
    dart test,deno test,doctest,dotnet test,flutter test,go test,gotestsum,gradle check,gradle test,\
    gradlew check,gradlew test,jest,just check,just test,karma,make check,make test,make tests,\
    meson test,mix test,mocha,mvn test,mvn verify,mvnw test,mvnw verify,ninja test,nose2,nox,npm t,\
    npm test,phpunit,playwright test,pnpm test,prove,py.test,pytest,rake spec,rake test,rspec,sbt test,\
    stack test,swift test,tox,unittest,vitest,yarn test,zig test";

/// Programs that build.
pub(super) const BUILDS: &str = "bazel build,bun build,cabal build,cargo b,cargo build,cargo c,cargo check,cargo doc,cmake --build,\
    compileall,dotnet build,go build,gradle assemble,gradle build,gradlew assemble,gradlew build,javac,\
    make,meson compile,mix compile,mvn compile,mvn package,mvnw compile,mvnw package,ninja,py_compile,\
    rustc,sbt compile,stack build,swift build,tsc,zig build";

/// Programs that check style.
pub(super) const LINTS: &str = "actionlint,cargo clippy,cargo deny,eslint,flake8,go vet,golangci-lint,hadolint,markdownlint,mypy,\
    pylint,pyright,rubocop,ruff,shellcheck,standard,staticcheck,stylelint,svelte-check,\
    terraform validate,vue-tsc,yamllint";

/// Programs that check formatting with an option, and rewrite files without it.
pub(super) const FORMATTERS: &str = "autopep8,biome,black,cargo fmt,clang-format,dprint,gofmt,isort,prettier,ruff format,rustfmt,\
    terraform fmt";

/// Programs that only read.
pub(super) const READS: &str = ".,:,awk,basename,cargo locate-project,cargo metadata,cargo tree,cat,cd,column,comm,command,cut,date,\
    df,dir,dirname,docker images,docker ps,du,echo,egrep,env,export,false,fd,fgrep,file,find,git blame,\
    git cat-file,git describe,git diff,git grep,git log,git ls-files,git ls-tree,git merge-base,\
    git remote,git rev-list,git rev-parse,git shortlog,git show,git status,git symbolic-ref,go env,\
    go list,grep,head,hexdump,hostname,id,jq,less,ls,lsof,md5sum,more,nl,npm list,npm ls,npm outdated,\
    npm view,nproc,od,pip check,pip freeze,pip list,pip show,pip3 freeze,pip3 list,pip3 show,popd,\
    printenv,printf,ps,pushd,pwd,readlink,realpath,rg,rustup show,sed,set,sha1sum,sha256sum,shasum,\
    shopt,sleep,sort,source,stat,strings,tac,tail,tr,tree,true,type,ulimit,uname,uniq,unset,wc,whereis,\
    which,who,whoami,xxd,yes";

/// Programs that test a condition.
pub(super) const COMPARES: &str = "[,[[,cmp,diff,test";

/// Programs that change files.
pub(super) const WRITES: &str = "apply_patch,apt,apt-get,brew,bun add,bun install,bundle add,bundle install,bundle update,cargo add,\
    cargo clean,cargo fix,cargo generate,cargo init,cargo install,cargo new,cargo remove,cargo update,\
    chgrp,chmod,chown,composer install,composer require,cp,dd,docker build,docker compose,docker cp,\
    docker run,git add,git am,git apply,git branch,git checkout,git cherry-pick,git clean,git clone,\
    git commit,git config,git fetch,git init,git merge,git mv,git pull,git push,git rebase,git reset,\
    git restore,git revert,git rm,git stash,git submodule,git switch,git tag,git worktree,go fmt,\
    go generate,go get,go install,go mod,install,kill,ln,mkdir,mktemp,mv,npm ci,npm i,npm install,\
    npm update,patch,pip install,pip uninstall,pip3 install,pip3 uninstall,pkill,pnpm add,pnpm install,\
    poetry add,poetry install,rm,rmdir,rsync,tar,tee,touch,truncate,unzip,uv add,uv sync,yarn add";

/// Those of them that do not change files of the task.
pub(super) const LEAVES: &str =
    "git add,git branch,git commit,git config,git fetch,git push,git tag,kill,mkdir,mktemp,pkill";

/// Options with which a checker writes.
pub(super) const REWRITING: [&str; 10] = [
    "--fix",
    "--fix-only",
    "--write",
    "--in-place",
    "--autocorrect",
    "--apply",
    "--bless",
    "--update",
    "--updateSnapshot",
    "--snapshot-update",
];

/// Short options of the same kind, which mean something else to other programs.
pub(super) const REWRITING_SHORT: &str = "autopep8 -i,ava -u,clang-format -i,gofmt -w,jest -u,playwright -u,prettier -w,rubocop -a,\
    rubocop -A,vitest -u";

/// Options with which a program only lists what it would do.
pub(super) const LISTING: [&str; 8] =
    ["--collect-only", "--co", "--no-run", "--list", "--listTests", "--dry-run", "--just-print", "-N"];

/// The actions of `find` that do more than find, by the beginning of the word.
pub(super) const FIND_DOES: [&str; 5] = ["-exec", "-ok", "-delete", "-fprint", "-fls"];
