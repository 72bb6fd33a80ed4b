"""Agents that rotate, truncate, rewrite, tear and die beside a `steno watch` that dies too: the vault has every byte that
could be read, the events are those of one import, and kills came between two events of one record.

Usage: run.py [--seed NUMBER] [--rounds COUNT] [--operations COUNT]. The program is named by ARCHIVE_FAULTS_STENO, the
directory to work in by ARCHIVE_FAULTS_WORK; PYTHONPATH has scripts/supervised.
"""

import argparse
import os
import random
import shutil
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import ledger
from checks import check
from ending import PATIENCE_S, end_children, end_when_stopped, ended_with_us
from promises import Violation, demand
from watching import Watch, is_transcript

HERE = Path(__file__).parent
WORK = Path(os.environ.get("ARCHIVE_FAULTS_WORK", "."))
STENO = os.environ.get("ARCHIVE_FAULTS_STENO", "steno")
# In some rounds there is time for the last files of agents, in others all are written when following is to end.
CALM_EVERY = 2


class Case:
    """A home, a store and a ledger."""

    def __init__(self, name):
        self.dir = WORK.resolve() / name
        self.home, self.store, self.ledger = self.dir / "home", self.dir / "store", self.dir / "ledger.jsonl"
        for top in (".claude/projects", ".codex/sessions"):
            (self.home / top).mkdir(parents=True)
        self.env = {"PATH": os.environ["PATH"], "HOME": str(self.home), "LC_ALL": "C.UTF-8"}
        self.steno = [STENO, "--store", str(self.store)]
        self.vault = None

    @property
    def transcripts(self):
        return self.store / "transcripts"

    def run(self, *args):
        return subprocess.run([*self.steno, *args], env=self.env, capture_output=True, timeout=PATIENCE_S, check=False)

    def runs(self):
        return sorted(path.stem for path in self.transcripts.iterdir() if is_transcript(path.name))


class Agents:
    """One writer after the other, until the work is done."""

    def __init__(self, case, dice, operations):
        self.case, self.dice, self.operations = case, dice, operations
        self.kills = 0
        self.start()

    def start(self):
        self.process = subprocess.Popen(self.command(self.operations), stderr=subprocess.PIPE)
        ended_with_us(self.process)
        self.lives_until = time.monotonic() + self.dice.uniform(0.2, 1.2)

    def command(self, operations):
        seed = str(self.dice.getrandbits(64))
        args = [self.case.home, self.case.store, self.case.ledger, seed, operations]
        return [sys.executable, "-W", "error", str(HERE / "writer.py"), *map(str, args)]

    def leave(self):
        subprocess.run(self.command(0), timeout=PATIENCE_S, check=True)

    def is_done(self):
        """Kills the writer when its time has come; tells whether all is done."""
        code = self.process.poll()
        if code is None and time.monotonic() > self.lives_until:
            self.process.kill()
            self.process.wait()
            self.process.stderr.close()
            self.kills += 1
            self.start()
        elif code is not None:
            demand(code == 0, f"the writer failed: {self.process.stderr.read().decode()}")
            self.process.stderr.close()
        return code is not None


def play(case, dice, operations, is_calm):
    """One round; returns its counts."""
    counts = Counter()
    try:
        watch, agents = Watch(case, dice), Agents(case, dice, operations)
        while not agents.is_done():
            if dice.random() < 0.6:
                watch.kill_when_it_writes(at_most_s=dice.uniform(0.1, 1))
            else:
                time.sleep(dice.uniform(0.05, 1))
                watch.kill()
        watch.wait_until_ready()
        if is_calm:
            agents.leave()
            watch.wait_until_quiet()
        else:
            watch.hold()
            agents.leave()
        code = watch.stop()
        demand(code == 0, f"watch ended with {code}")
        counts["kills of watch"] = len(watch.kills)
        counts["kills of writers"] = agents.kills
        counts["kills between two events of a record"] = watch.between()
        counts["operations"] = sum(ledger.read(case.ledger)[1].values())
        check(case, counts)
    finally:
        end_children()
    return counts


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--operations", type=int, default=100)
    args = parser.parse_args()
    end_when_stopped()
    total, began = Counter(), time.monotonic()
    for number in range(args.rounds):
        case = Case(f"round-{args.seed}-{number}")
        dice = random.Random(f"{args.seed}-{number}")
        started = time.monotonic()
        try:
            counts = play(case, dice, args.operations, is_calm=number % CALM_EVERY == 0)
        except Violation as error:
            print(f"round {number} of seed {args.seed}: FAILED, {error}", flush=True)
            print((case.dir / "watch.log").read_text(errors="replace").replace("started\n", "")[-2000:])
            return 1
        total += counts
        print(f"round {number}: {told(counts)}; {time.monotonic() - started:.1f} s", flush=True)
        shutil.rmtree(case.dir)
    print(f"all: {told(total)}; {time.monotonic() - began:.1f} s")
    fired = ["kills of watch", "kills of writers", "kills between two events of a record", "hostile contents"]
    silent = [name for name in fired if not total[name]]
    if silent:
        print(f"FAILED: no {', no '.join(silent)}: a fault that never fires shows nothing")
        return 1
    print("passed")
    return 0


def told(counts):
    return ", ".join(f"{count} {name}" for name, count in counts.items())


if __name__ == "__main__":
    sys.exit(main())
