# shellcheck shell=bash
# Runs a long test in a separate process and directory, and leaves no process, mount or file behind, also after a failure
# or a signal. The scripts of such tests source this file and set `title`, with which their messages begin. Code that the
# tests share is in scripts/supervised.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export PATH="$PATH:/usr/sbin:/sbin"
title=${title:?}

# Far more than any test needs; only a test that hangs reaches it.
limit_s=900
work=""
tests=""

# Ends with 0 without having tested anything; on CI it fails.
absent() {
    echo "$title: SKIPPED: $1" >&2
    [ "${CI:-}" != true ] || exit 1
    exit 0
}

# Skips unless this is Linux with the named tools and Python.
need() {
    local tool
    [ "$(uname)" = Linux ] || absent "this is for Linux alone"
    for tool in "$@"; do
        command -v "$tool" >/dev/null || absent "$tool is missing"
    done
    python3 -c 'import sys; sys.exit(sys.version_info < (3, 10))' || absent "python3 is older than 3.10"
}

need_root() {
    [ "$(id -u)" -eq 0 ] || absent "$1 and needs root"
}

# Ends processes that a test left behind; succeeds if there were none. Everything that a test starts has the unique name of
# the directory in its arguments.
end_processes() {
    local file pid none=0
    for file in /proc/[0-9]*/cmdline; do
        if grep -qsF "$work" "$file"; then
            pid=${file#/proc/}
            pid=${pid%/cmdline}
            echo "$title: FAILED: process $pid was left behind: $({ tr '\0' ' ' <"$file"; } 2>/dev/null | head -c 200)" >&2
            kill -KILL "$pid" 2>/dev/null || true
            none=1
        fi
    done
    return "$none"
}

# shellcheck disable=SC2329 # the trap calls it
clean_up() {
    local code=$? point
    trap - EXIT
    if [ -n "$tests" ] && kill "$tests" 2>/dev/null; then
        wait "$tests" || true
    fi
    end_processes || [ "$code" -ne 0 ] || code=1
    while read -r point; do
        umount "$point" 2>/dev/null || umount -l "$point" || true
    done < <(awk -v below="$work/" 'index($2, below) == 1 { print $2 }' /proc/mounts | tac)
    if [ "$code" -ne 0 ] && [ -n "${STENO_KEEP:-}" ]; then
        echo "$title: kept in $work" >&2
    else
        rm -rf --one-file-system "$work"
    fi
    exit "$code"
}

# Creates the directory `work` from a template of mktemp. It is deleted at the end, unless STENO_KEEP is set.
make_work() {
    # Resolved, because strace compares paths as text.
    work=$(realpath "$(mktemp -d "$1")")
    trap clean_up EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM
}

# Builds `steno` and copies it into the directory, because another build may replace it while the tests run. Passes
# further arguments to cargo.
build_copy() {
    local name=$1 target
    shift
    target=$(cargo metadata --format-version 1 --no-deps |
        python3 -c 'import json, sys; print(json.load(sys.stdin)["target_directory"])')
    cargo build --quiet -p steno "$@"
    cp "$target/debug/steno" "$work/$name"
}

# Runs a test, a Python script with its arguments, and ends with its exit code.
supervise() {
    local code=0
    export PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$PWD/scripts/supervised
    timeout "$limit_s" python3 -W error "$@" &
    tests=$!
    wait "$tests" || code=$?
    tests=""
    [ "$code" -ne 124 ] || echo "$title: FAILED: not done after $limit_s s" >&2
    exit "$code"
}
