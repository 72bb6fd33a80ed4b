"""The store as seen from outside, and a `steno watch` that fills it."""

import itertools
import json
import shutil
import signal
import subprocess
import time

from agents import ENV, WORK, files_below
from ending import PATIENCE_S, ended_with_us, exit_code, wait_until
from oracle import difference
from promises import Violation, demand

STENO = str(WORK / "steno")
# How long `watch` may take until everything is recorded. One that has to take over from another needs some seconds.
SOON_S = 30
NUMBERS = itertools.count(1)


class Store:
    """A store of one agent's sessions: a new directory."""

    def __init__(self, agent, name):
        self.path = WORK / "stores" / f"{name}-{agent.name}"
        self.path.parent.mkdir(exist_ok=True)
        demand(not self.path.exists(), f"there is a store {self.path.name} already")
        # Variables alone say where the agent's home is: nobody's home has none.
        self.env = {**ENV, **agent.variables}

    def run(self, *args):
        """Runs a command, which has to end well; returns its output."""
        command = [STENO, "--store", str(self.path), *args]
        said = subprocess.run(command, env=self.env, capture_output=True, timeout=PATIENCE_S, check=False)
        demand(said.returncode == 0, f"`steno {' '.join(args)}` ended with {said.returncode}: {said.stderr.decode()}")
        return said.stdout

    def lines(self, *args):
        """Runs a command that prints a JSON object a line."""
        return [json.loads(line) for line in self.run(*args).splitlines()]

    def transcripts(self):
        """The bytes of every run's transcript."""
        return {path.stem: path.read_bytes() for path in self._transcripts()}

    def size(self):
        """How many bytes all transcripts have."""
        return sum(path.stat().st_size for path in self._transcripts())

    def _transcripts(self):
        paths = sorted((self.path / "transcripts").glob("*.jsonl"))
        return [path for path in paths if "." not in path.stem]

    def given_back(self, run):
        """The files of a run's session as `steno restore` gives them back, elsewhere."""
        dir = WORK / f"given-{self.path.name}"
        shutil.rmtree(dir, ignore_errors=True)
        self.run("restore", run, "--to", str(dir))
        return files_below(dir, dir)

    def holder(self, run):
        """The process id that a run's lock file names, if there is one."""
        try:
            return json.loads((self.path / "locks" / f"{run}.lock").read_bytes())["pid"]
        except (FileNotFoundError, ValueError):
            return None

    def wait_for(self, want):
        """Waits until transcripts are as wanted; returns how long that took."""
        started = time.monotonic()
        if not wait_until(lambda: want.items() <= self.transcripts().items(), SOON_S):
            now = self.transcripts()
            got = {run: now[run] for run in want if run in now}
            raise Violation(f"not recorded after {SOON_S} s: {difference(got, want)}")
        return time.monotonic() - started


class Watch:
    """One `steno watch` on the home of a store's agent."""

    def __init__(self, store, *options):
        name = f"watch-{next(NUMBERS)}-{store.path.name}"
        self.out, self.talk = WORK / f"{name}.out", WORK / f"{name}.err"
        command = [STENO, "--store", str(store.path), "watch", "--json", *options]
        with self.out.open("wb") as out, self.talk.open("wb") as talk:
            self.process = subprocess.Popen(command, env=store.env, stdout=out, stderr=talk)
        ended_with_us(self.process)

    def kill(self):
        """Ends it with SIGKILL."""
        code = self.process.poll()
        demand(code is None, f"`steno watch` had ended with {code}: {self._last_words()}")
        self.process.kill()
        self.process.wait()

    def end(self):
        """Ends it with SIGINT, as Ctrl-C does; returns how many events it has recorded."""
        self.process.send_signal(signal.SIGINT)
        code = exit_code(self.process, "steno watch")
        demand(code == 0, f"`steno watch` ended with {code}: {self._last_words()}")
        # One report of the pass over what was there, and one of what came since.
        reports = [json.loads(line) for line in self.out.read_bytes().splitlines()]
        trouble = ("files_failed", "events_refused", "records_unknown", "records_unreadable")
        bad = {key: report[key] for report in reports for key in trouble if report[key]}
        demand(not bad, f"`steno watch` had trouble: {bad}: {self._last_words()}")
        return sum(report["events"] for report in reports)

    def _last_words(self):
        return self.talk.read_text(errors="replace")[-1000:]
