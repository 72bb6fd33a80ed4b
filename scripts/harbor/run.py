#!/usr/bin/env python3
"""Exports sessions as ATIF, and has Harbor's validator and ours look at every file."""

import json
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "supervised"))
from promises import Violation, demand  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
WORK = pathlib.Path(os.environ["HARBOR_WORK"])
STENO = os.environ["HARBOR_STENO"]
PYTHON = os.environ["HARBOR_PYTHON"]
# One faulty document for each of some rules that Harbor has too: a validator that accepts all would show nothing.
FAULTS = [
    ("steps.number", '"step_id":1,', '"step_id":9,'),
    ("field.unknown", '"agent":{', '"colour":"red","agent":{'),
    ("steps.empty", '"steps":[', '"steps":[],"extra":{},"was":['),
]


def steno(*args):
    """Runs a command to its end and returns what it prints."""
    command = [STENO, "--store", str(WORK / "store"), *map(str, args)]
    done = subprocess.run(command, capture_output=True, text=True, env={"HOME": str(WORK), "PATH": os.environ["PATH"]})
    demand(done.returncode == 0, f"{command[3:]} ended with {done.returncode}: {done.stderr[-500:]}{done.stdout[-500:]}")
    return done.stdout


def harbors_words(file):
    """Returns whether Harbor's validator accepts a file, and what it says, run as a user runs it."""
    command = [PYTHON, "-m", "harbor.utils.trajectory_validator", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, env={"PYTHONPATH": os.environ["HARBOR_CODE"]})
    return done.returncode == 0, done.stdout + done.stderr


def sessions():
    """Returns what there is to export, by name: our samples, and every real session that there is."""
    found = {"samples": ROOT / "crates/cli/src/demo/agents"}
    shared = pathlib.Path(os.environ.get("STENO_SHARED", ROOT.parent / "shared"))
    for name in ["captures/claude", "captures/codex", "recordings", "versions/claude", "versions/codex"]:
        if (shared / name).is_dir():
            found[name] = shared / name
    return found


def check_exports():
    """Both validators accept every file."""
    for name, source in sessions().items():
        out = WORK / "out" / name
        told = [json.loads(line) for line in steno("export", "atif", source, "-o", out, "--json").splitlines()]
        files = sorted(out.glob("*.json"))
        demand(len(files) == told[-1]["exported"] > 0, f"{name}: {len(files)} files, and {told[-1]} is told")
        steno("export", "check", *files)
        for file in files:
            accepted, words = harbors_words(file)
            demand(accepted, f"Harbor refuses {file.name} of {name}:\n{words[-2000:]}")
        print(f"{name}: ok, {len(files)} trajectories, {told[-1]['steps']} steps, {told[-1]['calls']} calls", flush=True)


def check_faults():
    """Harbor's validator is really asked: it refuses what is wrong."""
    good = min((WORK / "out").rglob("*.json"), key=lambda file: file.stat().st_size)
    for rule, was, now in FAULTS:
        faulty = WORK / f"{rule}.json"
        faulty.write_text(good.read_text().replace(was, now, 1))
        accepted, _ = harbors_words(faulty)
        demand(not accepted, f"Harbor accepts a document with the fault {rule}")
        done = subprocess.run([STENO, "export", "check", str(faulty)], capture_output=True, text=True)
        demand(done.returncode == 1 and rule in done.stdout, f"our check of {rule} says {done.stdout[-500:]}")
    print(f"faults: ok, {len(FAULTS)} refused by both", flush=True)


def main():
    try:
        check_exports()
        check_faults()
    except Violation as violation:
        print(f"harbor: FAILED: {violation}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
