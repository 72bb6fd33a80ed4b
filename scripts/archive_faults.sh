#!/usr/bin/env bash
# Agents that rotate, truncate, rewrite, tear and are killed, beside a `steno watch` that is killed too: holds the vault
# to a ledger of what stood in their files, and the events to those of one import. Needs no root. Arguments are those of
# scripts/archive_faults/run.py: `--seed`, `--rounds`, `--operations`.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# Far more than the test takes: only one that hangs gets there.
limit_s=900

absent() {
    echo "archive faults: SKIPPED: $1" >&2
    [ "${CI:-}" != true ] || exit 1
    exit 0
}

[ "$(uname)" = Linux ] || absent "this test knows only Linux"
command -v python3 >/dev/null || absent "python3 is missing"
python3 -c 'import sys; sys.exit(sys.version_info < (3, 10))' || absent "python3 is older than 3.10"
# The vault is read with no code of ours.
command -v zstd >/dev/null || absent "zstd is missing; apt-get install zstd"

work=$(realpath "$(mktemp -d "${TMPDIR:-/tmp}/steno-archive-faults.XXXXXX")")
test=""

# Also after a failure or a signal: no process and no file stays behind. Set STENO_KEEP to look at what failed.
# shellcheck disable=SC2329 # the trap calls it
clean_up() {
    local code=$?
    trap - EXIT
    if [ -n "$test" ] && kill "$test" 2>/dev/null; then
        wait "$test" || true
    fi
    if [ "$code" -ne 0 ] && [ -n "${STENO_KEEP:-}" ]; then
        echo "archive faults: kept in $work" >&2
    else
        rm -rf --one-file-system "$work"
    fi
    exit "$code"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# A copy, because somebody may build again while the test runs.
target=$(cargo metadata --format-version 1 --no-deps |
    python3 -c 'import json, sys; print(json.load(sys.stdin)["target_directory"])')
cargo build --quiet -p steno
cp "$target/debug/steno" "$work/steno"

export ARCHIVE_FAULTS_WORK=$work ARCHIVE_FAULTS_STENO=$work/steno PYTHONDONTWRITEBYTECODE=1
timeout "$limit_s" python3 -W error scripts/archive_faults/run.py "$@" &
test=$!
code=0
wait "$test" || code=$?
test=""
[ "$code" -ne 124 ] || echo "archive faults: FAILED: not done after $limit_s s" >&2
exit "$code"
