"""The store as seen from outside, and a client that talks to one `steno record` process."""

import contextlib
import json
import os
import subprocess
import threading
from pathlib import Path

from ending import PATIENCE_S, ended_with_us, exit_code
from ledger import Sent
from promises import Violation, demand

WORK = Path(os.environ["FAULTS_WORK"])
STENO = os.environ["FAULTS_STENO"]
# The same program with rustix's libc backend: tools that work by LD_PRELOAD cannot reach direct system calls.
STENO_LIBC = os.environ["FAULTS_STENO_LIBC"]
ENV = {"PATH": os.environ["PATH"], "HOME": str(WORK), "LC_ALL": "C.UTF-8"}

class Store:
    """A store's directory."""

    def __init__(self, path):
        self.path = Path(path)

    def dir(self, name):
        return self.path / name

    def transcript(self, run):
        return self.path / "transcripts" / f"{run}.jsonl"

    def read(self, path):
        return path.read_bytes() if path.exists() else b""

    def run(self, *args, steno=STENO, wrapper=()):
        command = [*wrapper, steno, "--store", str(self.path), *args]
        return subprocess.run(command, env=ENV, capture_output=True, timeout=PATIENCE_S, check=False)

    def snapshot(self, locks=False):
        """Every file of the record and its bytes. Each opening is numbered in its lock file, so these are left out if
        need be. The index is derived: whoever lists sessions may write it."""
        files = (path for path in sorted(self.path.rglob("*")) if path.is_file() and not path.name.startswith("index.db"))
        shown = {str(path.relative_to(self.path)): path.read_bytes() for path in files}
        return {name: data for name, data in shown.items() if locks or not name.startswith("locks/")}

    def notes(self, run):
        path = self.path / "transcripts" / f"{run}.notes.jsonl"
        return [json.loads(line) for line in self.read(path).splitlines()]

    def note_kinds(self, run):
        return [note["kind"] for note in self.notes(run)]

    def holder(self, run):
        """The process id that the run's lock file names."""
        return json.loads(self.read(self.path / "locks" / f"{run}.lock"))["pid"]


class Client:
    """One `steno record` process. Answers come in the order of sending, so each finds its place in the ledger."""

    def __init__(self, store, ledger, level="synced", steno=STENO, wrapper=()):
        self.ledger = ledger
        self.level = level
        self.stderr = b""
        command = [*wrapper, steno, "--store", str(store.path), "record", "--run", ledger.run, "--level", level]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, env=ENV, stdin=pipe, stdout=pipe, stderr=pipe)
        ended_with_us(self.process)
        self._sending = threading.Lock()
        self._news = threading.Condition()
        self._answered = len(ledger.sent)
        self._over = self._late = False
        self._threads = [threading.Thread(target=work, daemon=True) for work in (self._hear, self._hear_errors)]
        for thread in self._threads:
            thread.start()

    def send(self, payload):
        """Sends an event without waiting; None when nobody listens any more."""
        sent = Sent(payload, self.level)
        with self._sending:
            self.ledger.sent.append(sent)
            try:
                self.process.stdin.write(b'{"type":"message.user","payload":' + payload + b"}\n")
                self.process.stdin.flush()
            except (BrokenPipeError, ValueError):
                return None
        return sent

    def wait(self, sent):
        """Waits for an answer; None when the process ended without one."""
        with self._news:
            if not self._news.wait_for(lambda: sent.answer or self._over, PATIENCE_S):
                raise Violation(f"{self.ledger.run}: no answer in {PATIENCE_S} s")
        return sent.answer

    def record(self, payload):
        """Sends an event and waits for its answer."""
        sent = self.send(payload)
        return self.wait(sent) if sent else None

    def record_some(self, count, **sizes):
        """Records events one after the other, and demands that each is acknowledged with the next seq."""
        for _ in range(count):
            want = max((sent.seq or 0 for sent in self.ledger.sent), default=0) or self.ledger.count
            answer = self.record(self.ledger.payload(**sizes))
            demand(answer and answer.get("seq") == want + 1, f"seq {want + 1} wanted, {answer} got {self.stderr}")

    def stop_listening(self):
        """Takes no answer from now on as a promise."""
        self._late = True

    def end(self):
        """Ends the input, and returns the exit code; a signal's is negative."""
        with self._sending, contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        code = exit_code(self.process, "steno record")
        for thread in self._threads:
            thread.join(PATIENCE_S)
        self.process.stdout.close()
        self.process.stderr.close()
        return code

    def _hear(self):
        # An answer that a kill has torn is no answer.
        for line in self.process.stdout:
            if line.endswith(b"\n"):
                with self._news:
                    sent = self.ledger.sent[self._answered]
                    sent.answer, sent.late = json.loads(line), self._late
                    self._answered += 1
                    self._news.notify_all()
        with self._news:
            self._over = True
            self._news.notify_all()

    def _hear_errors(self):
        self.stderr = self.process.stderr.read()
