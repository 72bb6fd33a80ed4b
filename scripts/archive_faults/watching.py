"""`steno watch` beside the writer, killed at any moment and started again."""

import contextlib
import json
import os
import signal
import subprocess
import time
from dataclasses import dataclass

from ending import PATIENCE_S, ended_with_us, exit_code, wait_until
from promises import demand


@dataclass(frozen=True)
class Position:
    """Where the last event of a run stood when its recorder was killed."""

    run: str
    source: str
    generation: int
    offset: int
    part: int


class Watch:
    """One `steno watch` after the other."""

    def __init__(self, case, dice):
        self.case, self.dice = case, dice
        self.kills = []
        self.log_path = case.dir / "watch.log"
        self.log = self.log_path.open("ab")
        self.start()

    def start(self):
        self.log.write(b"started\n")
        self.log.flush()
        command = [*self.case.steno, "watch"]
        self.process = subprocess.Popen(command, env=self.case.env, stdout=self.log, stderr=self.log)
        ended_with_us(self.process)

    def kill(self):
        """Kills it, takes down where each run ends, and starts it again."""
        self.process.kill()
        self.process.wait()
        self.kills.append(self.positions())
        self.start()

    def kill_when_it_writes(self, at_most_s):
        """Kills it as soon as a transcript has grown, which is in the middle of a record with many events."""
        before = self.sizes()

        def has_written():
            return any(size > before.get(path, 0) for path, size in self.sizes().items())

        wait_until(lambda: has_written() or self.has_ended(), at_most_s, every_s=0.0005)
        self.kill()

    def wait_until_ready(self):
        """Waits until all that was there when it was started is recorded."""

        def is_ready():
            return b"following" in self.log_path.read_bytes().rpartition(b"started\n")[2]

        wait_until(lambda: is_ready() or self.has_ended())
        demand(is_ready(), "`steno watch` is not ready")

    def wait_until_quiet(self):
        """Waits until no transcript has grown for a while."""
        before, until = None, time.monotonic() + PATIENCE_S
        while (now := self.sizes()) != before and time.monotonic() < until:
            before = now
            time.sleep(0.5)

    def hold(self):
        """Keeps it from doing anything until it is stopped."""
        self.process.send_signal(signal.SIGSTOP)

    def stop(self):
        """Stops it as people do, and returns its exit code."""
        self.process.send_signal(signal.SIGINT)
        self.process.send_signal(signal.SIGCONT)
        code = exit_code(self.process, "steno watch")
        self.log.close()
        return code

    def has_ended(self):
        return self.process.poll() is not None

    def sizes(self):
        with contextlib.suppress(FileNotFoundError), os.scandir(self.case.transcripts) as entries:
            return {entry.path: entry.stat().st_size for entry in entries if is_transcript(entry.name)}
        return {}

    def positions(self):
        found = []
        for path in self.sizes():
            with open(path, "rb") as file:
                lines = file.read().split(b"\n")
            if len(lines) > 1 and (position := position_of(lines[-2])):
                found.append(position)
        return found

    def between(self):
        """How many kills came between two events of one record: the record's next event was written later."""
        records = {}
        for path in self.sizes():
            with open(path, "rb") as file:
                for position in map(position_of, file):
                    if position:
                        record = (position.run, position.source, position.generation, position.offset)
                        records[record] = max(records.get(record, 0), position.part)
        count = 0
        for kill in self.kills:
            last = ((records.get((at.run, at.source, at.generation, at.offset), 0), at.part) for at in kill)
            count += any(part > known for part, known in last)
        return count


def is_transcript(name):
    return name.endswith(".jsonl") and name.count(".") == 1


def position_of(line):
    try:
        event = json.loads(line)
    except ValueError:
        return None
    at = event.get("evidence")
    return at and Position(event["run_id"], at["source"], at["generation"], at["offset"], at["part"])
