#!/usr/bin/env bash
# Breaks disks, clocks and processes under `steno record` and holds the store to what it acknowledged: full disks,
# failing and lying calls, kills, power cuts. Needs root, for mounts. With arguments, runs only the tests whose names
# contain one of them. The tests are in scripts/faults.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export PATH="$PATH:/usr/sbin:/sbin"

# Far more than the tests take: only a test that hangs gets there.
limit_s=900

absent() {
    echo "faults: SKIPPED: $1" >&2
    [ "${CI:-}" != true ] || exit 1
    exit 0
}

[ "$(uname)" = Linux ] || absent "these tests know only Linux"
[ "$(id -u)" -eq 0 ] || absent "these tests mount file systems and need root"
command -v python3 >/dev/null || absent "python3 is missing"
python3 -c 'import sys; sys.exit(sys.version_info < (3, 10))' || absent "python3 is older than 3.10"

# Resolved, because strace compares paths as text.
work=$(realpath "$(mktemp -d "${TMPDIR:-/tmp}/steno-faults.XXXXXX")")
tests=""

# Also after a failure or a signal: no process, no mount and no file stays behind.
# shellcheck disable=SC2329 # the trap calls it
clean_up() {
    local code=$? point
    trap - EXIT
    if [ -n "$tests" ] && kill "$tests" 2>/dev/null; then
        wait "$tests" || true
    fi
    while read -r point; do
        umount "$point" 2>/dev/null || umount -l "$point" || true
    done < <(awk -v below="$work/" 'index($2, below) == 1 { print $2 }' /proc/mounts | tac)
    rm -rf --one-file-system "$work"
    exit "$code"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# Copies, because somebody may build again while the tests run. libfiu and eatmydata replace functions of libc, and
# rustix makes its system calls without libc: for these tools there is a build with rustix's libc backend.
target=$(cargo metadata --format-version 1 --no-deps |
    python3 -c 'import json, sys; print(json.load(sys.stdin)["target_directory"])')
cargo build --quiet -p steno -p steno-journal --features rustix/use-libc
cp "$target/debug/steno" "$work/steno-libc"
cargo build --quiet -p steno
cp "$target/debug/steno" "$work/steno"

export FAULTS_WORK=$work FAULTS_STENO=$work/steno FAULTS_STENO_LIBC=$work/steno-libc
export PYTHONDONTWRITEBYTECODE=1
timeout "$limit_s" python3 -W error scripts/faults/run.py "$@" &
tests=$!
code=0
wait "$tests" || code=$?
tests=""
[ "$code" -ne 124 ] || echo "faults: FAILED: not done after $limit_s s" >&2
exit "$code"
