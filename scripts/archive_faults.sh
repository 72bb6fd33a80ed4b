#!/usr/bin/env bash
# Runs writers that rotate, truncate, rewrite and tear files and are killed, while `steno watch` is killed too. Compares
# the vault with a ledger of what was in the files, and the events with those of one import. Needs no root. Takes the arguments of
# scripts/archive_faults/run.py: `--seed`, `--rounds`, `--operations`.
title="archive faults"
# shellcheck source=scripts/supervised.sh
source "$(dirname "${BASH_SOURCE[0]}")/supervised.sh"

# zstd, because the vault is read without our own code.
need python3 zstd
make_work "${TMPDIR:-/tmp}/steno-archive-faults.XXXXXX"
build_copy steno

export ARCHIVE_FAULTS_WORK=$work ARCHIVE_FAULTS_STENO=$work/steno
supervise scripts/archive_faults/run.py "$@"
