"""Runs the fault tests, or those whose names contain one of the arguments, and says how often each fault fired."""

import os
import shutil
import sys
import time
import traceback

import clocks
import full_disks
import imports
import injected
import places
import power
import short
import sweeps
from ending import end_children, end_when_stopped
from mounts import Missing
from promises import Violation

LOOP = ["mount", "umount"]
# A test returns how often it was repeated, how often its fault fired, and what else is worth knowing.
TESTS = [
    (power.power_cut_ext4, [*LOOP, "mkfs.ext4"]),
    (power.power_cut_control_ext4, [*LOOP, "mkfs.ext4", "eatmydata"]),
    (power.power_cut_xfs, [*LOOP, "mkfs.xfs"]),
    (power.power_cut_control_xfs, [*LOOP, "mkfs.xfs", "eatmydata"]),
    (imports.power_cut_import_ext4, [*LOOP, "mkfs.ext4"]),
    (imports.power_cut_import_xfs, [*LOOP, "mkfs.xfs"]),
    (full_disks.full_disk, ["mount", "strace"]),
    (full_disks.full_disk_to_the_end, ["mount"]),
    (full_disks.file_size_limit, ["prlimit", "strace"]),
    (injected.one_write_refused, ["strace"]),
    (injected.sync_fails, ["strace"]),
    (injected.write_fails, ["strace"]),
    (injected.interrupted_writes, ["strace"]),
    (sweeps.killed_in_a_call, ["strace"]),
    (sweeps.killed_in_recovery, ["strace"]),
    (sweeps.killed_in_the_first_opening, ["strace"]),
    (sweeps.error_in_recovery, ["strace"]),
    (sweeps.error_in_the_first_opening, ["strace"]),
    (short.short_writes, ["fiu-run", "strace"]),
    (places.read_only, ["mount"]),
    (places.file_vanishes, []),
    (clocks.clock_steps_back, ["faketime"]),
]
PACKAGES = {
    "mkfs.xfs": "xfsprogs",
    "mkfs.ext4": "e2fsprogs",
    "fiu-run": "fiu-utils",
    "prlimit": "util-linux",
}


def check(test, needs):
    """Runs a test; returns a word for how it went and a line about it."""
    missing = [tool for tool in needs if shutil.which(tool) is None]
    if missing:
        packages = " ".join(sorted({PACKAGES.get(tool, tool) for tool in missing}))
        return "SKIPPED", f"missing {', '.join(missing)}; apt-get install {packages}"
    try:
        repeats, fired, more = test()
    except Missing as error:
        return "SKIPPED", str(error)
    except Violation as error:
        return "FAILED", str(error)
    except Exception:  # A test that breaks must not take the others with it.
        return "FAILED", traceback.format_exc()
    finally:
        end_children()
    said = f"{repeats} repeats, fired {fired}"
    if fired == 0:
        return "FAILED", f"{said}: a fault that never fires shows nothing"
    return "ok", f"{said}, ok ({more}"


def main():
    end_when_stopped()
    wanted = sys.argv[1:]
    tests = [(test, needs) for test, needs in TESTS if not wanted or any(part in test.__name__ for part in wanted)]
    counts = {"ok": 0, "FAILED": 0, "SKIPPED": 0}
    for test, needs in tests:
        started = time.monotonic()
        outcome, said = check(test, needs)
        counts[outcome] += 1
        took = f"{time.monotonic() - started:.1f} s"
        end = f"; {took})" if outcome == "ok" else f" ({took})"
        print(f"{test.__name__}: {'' if outcome == 'ok' else outcome + ', '}{said}{end}", flush=True)
    skipped_counts = os.environ.get("CI") == "true"
    if counts["SKIPPED"]:
        print(f"{counts['SKIPPED']} SKIPPED{', which counts as failed on CI' if skipped_counts else ''}")
    failed = counts["FAILED"] + (counts["SKIPPED"] if skipped_counts else 0)
    print(f"{counts['ok']} passed, {failed} failed")
    return 1 if failed or not tests else 0


if __name__ == "__main__":
    sys.exit(main())
