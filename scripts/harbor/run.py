#!/usr/bin/env python3
"""Exports sessions as ATIF and distills tasks, and has Harbor's own code and ours look at all of them."""

import json
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "supervised"))
from commands import ROOT, run_steno, shared  # noqa: E402
from promises import Violation, demand  # noqa: E402

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
    return run_steno(STENO, WORK / "store", *args)


def harbors_words(file):
    """Returns whether Harbor's validator accepts a file, and what it says, run as a user runs it."""
    command = [PYTHON, "-m", "harbor.utils.trajectory_validator", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, env={"PYTHONPATH": os.environ["HARBOR_CODE"]})
    return done.returncode == 0, done.stdout + done.stderr


def sessions():
    """Returns what there is to export, by name: our samples, and every real session that there is."""
    found = {"samples": ROOT / "crates/cli/src/demo/agents"}
    for name in ["captures/claude", "captures/codex", "recordings", "versions/claude", "versions/codex"]:
        if (shared() / name).is_dir():
            found[name] = shared() / name
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


def loaded(*tasks):
    """Returns what Harbor's loader makes of directories."""
    command = [PYTHON, str(ROOT / "scripts/harbor/load_task.py"), *map(str, tasks)]
    done = subprocess.run(command, capture_output=True, text=True, env={"PYTHONPATH": os.environ["HARBOR_CODE"]})
    demand(done.returncode == 0, f"Harbor's loader ended with {done.returncode}: {done.stderr[-2000:]}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def check_tasks():
    """Harbor's loader takes every task that we distill, and the trajectory in it."""
    for name, source in sessions().items():
        threads = set()
        for file in sorted(source.rglob("*rollout*.jsonl")):
            threads |= set(json.loads(steno("spine", "record", "--json", file).splitlines()[-1])["threads"])
        tasks = []
        for thread in sorted(threads):
            out = WORK / "tasks" / name / thread
            command = [STENO, "--store", str(WORK / "store"), "spine", "distill", thread, "--each-turn", "--json", "-o", out]
            done = subprocess.run(list(map(str, command)), capture_output=True, text=True, env={"HOME": str(WORK)})
            demand(done.returncode in (0, 1), f"{thread} ended with {done.returncode}: {done.stderr[-500:]}")
            told = [json.loads(line) for line in done.stdout.splitlines()]
            demand(all("refused" in line or "output" in line for line in told), f"{thread}: {told}")
            tasks += [line for line in told if "output" in line]
        for task, found in zip(tasks, loaded(*(task["output"] for task in tasks)), strict=True):
            demand(found["valid"], f"Harbor refuses {task['output']}")
            words = (pathlib.Path(task["output"]) / "instruction.md").read_text()
            demand(found["name"] == f"steno/{task['name']}" and found["instruction"] == words, f"{task} is read as {found}")
            if task["trajectory"]:
                accepted, words = harbors_words(pathlib.Path(task["output"]) / "trajectory.json")
                demand(accepted, f"Harbor refuses what came before {task['output']}:\n{words[-2000:]}")
        before = sum(task["trajectory"] for task in tasks)
        print(f"tasks of {name}: ok, {len(tasks)} from {len(threads)} threads, {before} with what came before", flush=True)
    samples = list((WORK / "tasks/samples").rglob("task.toml"))
    demand(samples, "no task was made of our samples")
    (samples[0].parent / "tests/test.sh").unlink()
    demand(not loaded(samples[0].parent)[0]["valid"], "Harbor takes a task without a check")
    print("tasks: ok, one without a check is refused", flush=True)


def main():
    try:
        check_exports()
        check_faults()
        check_tasks()
    except Violation as violation:
        print(f"harbor: FAILED: {violation}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
