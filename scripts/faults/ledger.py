"""What a client was promised, and the oracle that compares it with the store after a fault.

The ledger lives in this process's memory, so no fault of a file system can reach it. The rules are those of the
design's FAULTS.md: every acknowledged record is there byte for byte, seq is contiguous from 1, earlier lines are
unchanged, torn bytes are kept aside, and a second recovery changes nothing.
"""

import itertools
import json
import random
import re
import uuid
from dataclasses import dataclass

from promises import Violation, demand

# What JSON libraries like to change: key order, duplicate keys, big numbers, spaces, lone surrogates, NUL.
AWKWARD = r'{"b":1,"a":12345678901234567890123,"a":2.50, "s":"\ud800\u0000\/","é":[ ]}'


class Lost(Violation):
    """A record that was acknowledged is not there."""


@dataclass
class Sent:
    """One event on its way: the payload, the level asked for, and the answer if there was one.

    An answer that came late, when the power was already cut, is no promise.
    """

    payload: bytes
    level: str
    answer: dict | None = None
    late: bool = False

    @property
    def seq(self):
        return self.answer.get("seq") if self.answer else None

    @property
    def error(self):
        return self.answer.get("error") if self.answer else None


class Ledger:
    """What one run must hold."""

    def __init__(self, seed=0):
        self.dice = random.Random(seed)
        self.run = str(uuid.UUID(int=self.dice.getrandbits(128), version=4))
        self.good = b""
        self.sent = []
        self.torn_tails = 0
        self.acknowledged = 0
        self.dropped = 0
        # Several threads take numbers from it; `next` is one step, `+= 1` would not be.
        self._numbers = itertools.count(1)
        self._head = re.compile(
            rb'\{"seq":(\d+),"run_id":"' + self.run.encode() + rb'","type":"message.user","path":"",'
            rb'"iteration":0,"timestamp":"[0-9T:.Z-]+","payload":'
        )

    @property
    def count(self):
        """How many events were there after the last recovery."""
        return self.good.count(b"\n")

    def payload(self, len_min=200, len_max=2000):
        """Makes a payload that is unlike any other."""
        filler = "x" * self.dice.randint(len_min, len_max)
        text = f"{self.run[:8]} {next(self._numbers)} {filler}"
        block = f'{{"type":"text","fidelity":"router","text":"{text}"}}'
        return f'{{"role":"user","blocks":[{block}],"odd":{AWKWARD}}}'.encode()

    def errors(self):
        return [sent.error for sent in self.sent if sent.error]

    def settle(self, store, power_cut=False):
        """Holds the store to its promises, has it recovered, and begins a new page.

        After a power cut only what was acknowledged as synced is promised.
        """
        readers_change_nothing(store, self.run)
        good, rest = self.compare(store.read(store.transcript(self.run)), power_cut)
        self._recover(store, good, rest)
        self.good, self.sent = good, []

    def compare(self, raw, power_cut=False):
        """Demands that a file holds everything promised; returns its good lines and what comes after them."""
        good, rest = self._split(raw)
        self._check(good, power_cut)
        return good, rest

    def _split(self, raw):
        """Splits a file into its good lines and what a crash left behind them."""
        end, seq = 0, 0
        for line in raw.splitlines(keepends=True):
            head = self._head.match(line)
            if not (line.endswith(b"\n") and head and int(head[1]) == seq + 1 and is_json(line)):
                break
            end, seq = end + len(line), seq + 1
        rest = raw[end:]
        demand(b"\n" not in rest or b"\0" in rest, f"{self.run}: a bad line after seq {seq}: {rest[:120]!r}")
        return raw[:end], rest

    def _check(self, good, power_cut):
        if len(good) < len(self.good) and self.good.startswith(good):
            raise Lost(f"{self.run}: only {len(good)} of {len(self.good)} bytes are still there")
        demand(good.startswith(self.good), f"{self.run}: earlier lines have changed")
        recorded = self._match(good[len(self.good) :])
        for sent in self.sent:
            promised = sent.seq is not None and not sent.late and not (power_cut and sent.level == "written")
            if promised and recorded.get(sent.seq) is not sent:
                raise Lost(f"{self.run}: seq {sent.seq} was acknowledged as {sent.level} and is not there")
            self.acknowledged += promised
        self.dropped += len(self.sent) - len(recorded)

    def _match(self, added):
        """Finds for each new line what was sent; a line is there once, in the order of sending, and not if refused."""
        by_payload = {sent.payload: index for index, sent in enumerate(self.sent)}
        recorded, last = {}, -1
        for seq, line in enumerate(added.splitlines(keepends=True), start=self.count + 1):
            payload = line[self._head.match(line).end() : -2]
            index = by_payload.get(payload, -1)
            demand(index > last, f"{self.run}: seq {seq} was never sent, or is out of order")
            sent, last = self.sent[index], index
            demand(sent.seq in (None, seq), f"{self.run}: seq {seq} was acknowledged as {sent.seq}")
            refused = sent.error and "was not written" in sent.error
            demand(not refused, f"{self.run}: seq {seq} is there although it was refused")
            recorded[seq] = sent
        return recorded

    def _recover(self, store, good, rest):
        if not store.transcript(self.run).exists():
            return
        demand_ok(store.run("seal", self.run))
        demand(store.read(store.transcript(self.run)) == good, f"{self.run}: recovery changed good lines")
        if rest:
            self.torn_tails += 1
            kept = store.dir("transcripts").glob(f"{self.run}.jsonl.torn-{len(good)}-*")
            demand(any(store.read(path) == rest for path in kept), f"{self.run}: torn bytes are not kept")
            demand("recovered" in store.note_kinds(self.run), f"{self.run}: the recovery is not noted")
        before = store.snapshot()
        demand_ok(store.run("seal", self.run))
        demand(store.snapshot() == before, f"{self.run}: a second recovery changed something")
        self._verify(store, good)

    def _verify(self, store, good):
        said = demand_ok(store.run("verify", "--json", self.run))
        found = json.loads(said.stdout)
        found = {key: found[key] for key in ("ok", "events", "bytes", "unsealed_bytes", "torn_bytes")}
        want = dict(ok=True, events=good.count(b"\n"), bytes=len(good), unsealed_bytes=0, torn_bytes=0)
        demand(found == want, f"{self.run}: verify found {found}, not {want}")
        if good:
            shown = demand_ok(store.run("events", "--raw", self.run)).stdout
            demand(shown == good, f"{self.run}: `events --raw` differs from the file")


def is_json(line):
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        return False


def demand_ok(said):
    demand(said.returncode == 0, f"{said.args[1:]} ended with {said.returncode}: {said.stderr.decode()}")
    return said


def readers_change_nothing(store, run):
    """Reads what a fault left; readers never repair."""
    if not store.transcript(run).exists():
        return
    before = store.snapshot(locks=True)
    demand_ok(store.run("verify", run))
    store.run("events", run)
    store.run("ls")
    demand(store.snapshot(locks=True) == before, f"{run}: a reader changed something")
