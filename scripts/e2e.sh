#!/usr/bin/env bash
# Runs real agents (Claude Code and Codex, with a scripted model and no network) beside `steno watch`, and holds the
# store to what the model said and to what a fresh `steno import` makes of the same files: while the agents work,
# through kills of `watch`, and after their files were deleted and given back. With arguments, runs only the claims
# whose names contain one of them. The claims are in scripts/e2e; the rig that runs the agents is a shared file.
#
# Needs root, for namespaces, and npm, which fetches the agents. If STENO_E2E_AGENTS names a directory below /tmp,
# they are kept there for the next time.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export PATH="$PATH:/usr/sbin:/sbin"

agents=(claude codex)
# Far more than the claims take: only one that hangs gets there.
limit_s=900

absent() {
    echo "e2e: SKIPPED: $1" >&2
    [ "${CI:-}" != true ] || exit 1
    exit 0
}

[ "$(uname)" = Linux ] || absent "the rig knows only Linux"
[ "$(id -u)" -eq 0 ] || absent "the rig makes namespaces and needs root"
for tool in python3 npm unshare ip; do
    command -v "$tool" >/dev/null || absent "$tool is missing"
done
python3 -c 'import sys; sys.exit(sys.version_info < (3, 10))' || absent "python3 is older than 3.10"
if [ -n "${STENO_SHARED:-}" ] && [ ! -d "$STENO_SHARED" ]; then
    echo "e2e: FAILED: STENO_SHARED names \`$STENO_SHARED\`, which is not a directory" >&2
    exit 1
fi
rig=${STENO_SHARED:-../shared}/agents/rig
[ -x "$rig" ] || absent "\`$rig\` is absent"

# The rig wants to lie below /tmp, and shows its agents nothing else of it.
work=$(mktemp -d /tmp/steno-e2e.XXXXXX)
claims=""

# Also after a failure or a signal: no process and no file stays behind.
# shellcheck disable=SC2329 # the trap calls it
clean_up() {
    local code=$? file pid
    trap - EXIT
    if [ -n "$claims" ] && kill "$claims" 2>/dev/null; then
        wait "$claims" || true
    fi
    # Everything that was started has the name of the directory, which is nobody else's, in its arguments.
    for file in /proc/[0-9]*/cmdline; do
        if grep -qsF "$work" "$file"; then
            pid=${file#/proc/}
            pid=${pid%/cmdline}
            echo "e2e: FAILED: process $pid was left behind: $(tr '\0' ' ' <"$file" | head -c 200)" >&2
            kill -KILL "$pid" || true
            [ "$code" -ne 0 ] || code=1
        fi
    done 2>/dev/null
    rm -rf --one-file-system "$work"
    exit "$code"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# Puts the agents into the directory, from where they are kept if that is so. The rig pins their versions, so that what
# is kept is known by the rig's hash.
set_up() {
    if [ -n "${STENO_E2E_AGENTS:-}" ]; then
        local kept
        kept=$STENO_E2E_AGENTS/$(sha256sum "$rig" | cut -c1-16)
        "$rig" setup "$kept" "${agents[@]}" >/dev/null
        cp -al "$kept/pkgs" "$work/" 2>/dev/null || { rm -rf "$work/pkgs" && cp -a "$kept/pkgs" "$work/"; }
    fi
    "$rig" setup "$work" "${agents[@]}" || { tail -n 5 "$work"/logs/npm-*.log >&2; return 1; }
}

# A copy, because somebody may build again while the claims are checked.
target=$(cargo metadata --format-version 1 --no-deps |
    python3 -c 'import json, sys; print(json.load(sys.stdin)["target_directory"])')
cargo build --quiet -p steno
cp "$target/debug/steno" "$work/steno"

SECONDS=0
set_up
echo "set up in $SECONDS s"

export E2E_WORK=$work
export PYTHONDONTWRITEBYTECODE=1
timeout "$limit_s" python3 -W error scripts/e2e/run.py "$@" &
claims=$!
code=0
wait "$claims" || code=$?
claims=""
[ "$code" -ne 124 ] || echo "e2e: FAILED: not done after $limit_s s" >&2
exit "$code"
