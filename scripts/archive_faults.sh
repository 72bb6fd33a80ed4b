#!/usr/bin/env bash
# Agents that rotate, truncate, rewrite, tear and are killed, beside a `steno watch` that is killed too: holds the vault
# to a ledger of what stood in their files, and the events to those of one import. Needs no root. Arguments are those of
# scripts/archive_faults/run.py: `--seed`, `--rounds`, `--operations`.
title="archive faults"
# shellcheck source=scripts/supervised.sh
source "$(dirname "${BASH_SOURCE[0]}")/supervised.sh"

# zstd, because the vault is read with no code of ours.
need python3 zstd
make_work "${TMPDIR:-/tmp}/steno-archive-faults.XXXXXX"
build_copy steno

export ARCHIVE_FAULTS_WORK=$work ARCHIVE_FAULTS_STENO=$work/steno
supervise scripts/archive_faults/run.py "$@"
