#!/usr/bin/env bash
# Runs real agents (Claude Code, Codex, Gemini CLI and Copilot CLI, with a scripted model and no network) under `steno run`,
# with `steno mcp`, behind `steno proxy` and beside `steno watch`. Compares the store with what the model said, and with a
# new `steno import` of the same files: while the agents work, after kills of recorders and of `watch`, and after the files
# were deleted and restored. Then runs `steno app-server` between a client and Codex, and compares the spines with the
# bytes that passed and with Codex's session files. Makes tasks from turns, and solves them.
# With arguments, runs only the claims whose names contain one of them. The claims are in scripts/e2e; the rig that runs
# the agents is in ../shared.
#
# Needs root for namespaces, zstd, and npm to fetch the agents. If STENO_E2E_AGENTS names a directory below /tmp, the agents
# stay there for the next run.
title=e2e
# shellcheck source=scripts/supervised.sh
source "$(dirname "${BASH_SOURCE[0]}")/supervised.sh"

agents=(claude codex gemini copilot)

need python3 npm unshare ip zstd
python3 -c 'import tomllib' 2>/dev/null || absent "python3 is older than 3.11"
need_root "the rig makes namespaces"
if [ -n "${STENO_SHARED:-}" ] && [ ! -d "$STENO_SHARED" ]; then
    echo "e2e: FAILED: STENO_SHARED names \`$STENO_SHARED\`, which is not a directory" >&2
    exit 1
fi
rig=${STENO_SHARED:-../shared}/agents/rig
[ -x "$rig" ] || absent "\`$rig\` is absent"

# The rig must be below /tmp, and hides the rest of /tmp from its agents.
make_work /tmp/steno-e2e.XXXXXX

# Puts the agents into the directory, from an earlier run if there is one. The rig pins their versions, so the hash of
# the rig identifies them.
set_up() {
    if [ -n "${STENO_E2E_AGENTS:-}" ]; then
        local kept
        kept=$STENO_E2E_AGENTS/$(sha256sum "$rig" | cut -c1-16)
        "$rig" setup "$kept" "${agents[@]}" >/dev/null
        cp -al "$kept/pkgs" "$work/" 2>/dev/null || { rm -rf "$work/pkgs" && cp -a "$kept/pkgs" "$work/"; }
    fi
    "$rig" setup "$work" "${agents[@]}" || { tail -n 5 "$work"/logs/npm-*.log >&2; return 1; }
}

build_copy steno

SECONDS=0
set_up
echo "set up in $SECONDS s"

export E2E_WORK=$work
supervise scripts/e2e/run.py "$@"
