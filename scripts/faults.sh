#!/usr/bin/env bash
# Breaks disks, clocks and processes under `steno record`, and checks that the store has what was acknowledged: full
# disks, failing and lying calls, kills, power cuts. Needs root for mounts. With arguments, runs only the tests whose names
# contain one of them. The tests are in scripts/faults.
title=faults
# shellcheck source=scripts/supervised.sh
source "$(dirname "${BASH_SOURCE[0]}")/supervised.sh"

need python3
need_root "this mounts file systems"
make_work "${TMPDIR:-/tmp}/steno-faults.XXXXXX"

# libfiu and eatmydata replace functions of libc, but rustix makes system calls without libc. For these tools, build with
# rustix's libc backend.
build_copy steno-libc -p steno-journal --features rustix/use-libc
build_copy steno

export FAULTS_WORK=$work FAULTS_STENO=$work/steno FAULTS_STENO_LIBC=$work/steno-libc
supervise scripts/faults/run.py "$@"
