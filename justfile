# Longer jobs. `just` without arguments lists them.

[private]
default:
    @just --list --unsorted

# All tests of the workspace
test:
    cargo test --workspace

# Formatting and clippy, warnings refused
lint:
    cargo fmt --all --check
    cargo clippy --workspace --all-targets -- -D warnings

# The API documentation, warnings refused
doc:
    RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps

# Measures journal, adapters, import and server; writes target/bench/journal.json, adapters.json, import_and_reading.json, load.json
bench:
    cargo bench --no-fail-fast -p steno-journal -p steno-adapters -p steno-recorder -p steno-server --bench journal --bench adapters --bench import_and_reading --bench load

# The time until a command that prints 1 GB has ended, under `steno run` and with `CMD | cat`; builds the release
run-speed *args:
    cargo build --release -p steno
    scripts/run_speed.py {{args}}

# Builds the journal and the vault with each known mistake; the tests must notice every one
mutants *args:
    scripts/mutants.sh {{args}}

# Full disks, failing syncs, kills and power cuts; needs root
faults:
    scripts/faults.sh

# Real agents with a scripted model under `steno run`, `mcp`, `proxy`, `watch` and `app-server`; needs root, npm and the `shared` directory
e2e:
    scripts/e2e.sh

# Agents' files rewritten, torn and deleted while writers and `steno watch` are killed; needs zstd
archive-faults *args:
    scripts/archive_faults.sh {{args}}

# The local API against its own description, and receipts against the second verifier; fetches schemathesis
api *args:
    scripts/api.sh {{args}}

# Compares all views over every file by itself and a very long session, stops a recorder for 30 s, tries all known mistakes, fuzzes for 17 minutes, then for an hour mutants of a few files; cuts the power often (needs root)
nightly mutant_seconds="3600":
    STENO_TEST_LONG=1 cargo test -p steno --test it consistency
    STENO_TEST_LONG=1 cargo test -p steno --test it run_faults
    scripts/mutants.sh
    scripts/fuzz.sh
    scripts/nightly_mutants.sh 3 {{mutant_seconds}}
    if [ "$(id -u)" -eq 0 ]; then scripts/faults.sh; else echo "faults: SKIPPED, they need root" >&2; fi

# Harbor's own code over what `steno export atif` and `steno spine distill` write; fetches harbor
harbor:
    scripts/harbor.sh

# `steno search` and `steno usage` against programs that share no code with them; fetches a Python package, needs the `shared` directory
cross-check *args:
    scripts/cross_check.sh {{args}}

# The commit queue and the fan-out under many thread interleavings
model-check:
    cargo test -p steno-journal --features shuttle --test it shuttle

# Feeds mutated input to adapters and the spine's validator for some seconds; needs a C++ compiler
fuzz seconds="60" *targets:
    scripts/fuzz.sh {{seconds}} {{targets}}

# How many lines of model and journal their tests reach; fails below 85 %
coverage:
    scripts/coverage.sh

# Type-checks program and tests for macOS, on Linux; needs root, or Debian's rustc-web, and PyPI
macos-check:
    scripts/macos_check.sh

# Everything that must pass before a change is merged
ci:
    .ci/run
