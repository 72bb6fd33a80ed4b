"""Calls that fail, by strace, one chosen call at a time; each repeat has to show that its fault fired."""

import itertools

from client import WORK, Client, Store
from ledger import Ledger
from promises import demand
from tracing import Trace

# Sent one by one. strace counts each thread's calls, and up to five threads sync: 60 syncs mean that one of the
# threads gets to its twelfth.
EVENTS = 60
NTH_MAX = 12


class Case:
    """A run of its own, and one traced writer after the other on it."""

    def __init__(self, name):
        self.store = Store(WORK / f"injected-{name}")
        self.ledger = Ledger(name)
        self.path = self.store.transcript(self.ledger.run)

    def live(self, *inject, level="synced"):
        """Sends events one by one until the process is gone; returns its trace, its client and its exit code."""
        trace = Trace([self.path], ["write", "fdatasync", "ftruncate"], inject)
        client = Client(self.store, self.ledger, level, wrapper=trace.wrapper)
        for _ in range(EVENTS):
            if client.record(self.ledger.payload()) is None:
                break
        return trace, client, client.end()

    def goes_on(self):
        """Recovers, and records some more without faults."""
        self.ledger.settle(self.store)
        client = Client(self.store, self.ledger)
        client.record_some(3)
        demand(client.end() == 0, f"the run does not go on: {client.stderr.decode()}")
        self.ledger.settle(self.store)


def one_write_refused():
    """ENOSPC, EDQUOT and EFBIG: one refusal, its seq goes to the next one, nothing else is disturbed."""
    fired = 0
    cases = list(itertools.product(["ENOSPC", "EDQUOT", "EFBIG"], [1, 2, 7, 40], ["synced", "written"]))
    for error, nth, level in cases:
        case = Case(f"{error}-{nth}-{level}")
        trace, _client, code = case.live(f"write:error={error}:when={nth}", level=level)
        demand(trace.injected() == 1, f"{error} at write {nth} did not fire")
        answers = [sent.seq for sent in case.ledger.sent]
        want = [*range(1, nth), None, *range(nth, EVENTS)]
        demand(answers == want, f"{error} at write {nth}: answers {answers}")
        demand(code == 3, f"{error} at write {nth}: exit code {code}")
        notes = [(note["kind"], note["count"]) for note in case.store.notes(case.ledger.run)]
        demand(notes == [("refused", 1)], f"{error} at write {nth}: notes {notes}")
        case.goes_on()
        fired += 1
    return len(cases), fired, "ENOSPC, EDQUOT, EFBIG"


def poisoned(name, inject, level="synced"):
    """After the first error every answer is one, the exit code is 3, and opening again leads back."""
    case = Case(name)
    trace, client, code = case.live(*inject, level=level)
    demand(trace.injected() == len(inject), f"{name}: fired {trace.injected()} times: {trace.lines()[-3:]}")
    answers = [sent.answer for sent in case.ledger.sent]
    bad = [index for index, answer in enumerate(answers) if answer is None or "error" in answer]
    # The very first sync is that of the opening; its failure leaves nobody to answer.
    opened = any(answers)
    first = bad[0] if bad else len(answers)
    demand(bad == list(range(first, len(answers))), f"{name}: acknowledged after a failure")
    demand(opened and all(answers) or b"error:" in client.stderr, f"{name}: no answer and no message")
    demand(code == 3, f"{name}: exit code {code}")
    case.goes_on()
    return trace.injected() > 0


def sync_fails():
    nths = range(1, NTH_MAX + 1)
    fired = sum(poisoned(f"sync-{nth}", [f"fdatasync:error=EIO:when={nth}"]) for nth in nths)
    return len(nths), fired, "no answer but errors after each"


def write_fails():
    """EIO, a write of nothing, and a full disk whose partial line cannot be cut off."""
    kinds = {
        "eio": ["write:error=EIO"],
        "zero": ["write:retval=0"],
        "uncut": ["write:error=ENOSPC", "ftruncate:error=EIO"],
    }
    cases = list(itertools.product(kinds, [1, 2, 9, 30], ["synced", "written"]))
    fired = 0
    for kind, nth, level in cases:
        first, *more = kinds[kind]
        inject = [f"{first}:when={nth}", *(f"{what}:when=1" for what in more)]
        fired += poisoned(f"{kind}-{nth}-{level}", inject, level)
    return len(cases), fired, "EIO, 0 bytes, ENOSPC with a failing truncate"


def interrupted_writes():
    """EINTR is no failure: the write is made again."""
    fired, cases = 0, [(first, level) for first in (1, 2, 3) for level in ("synced", "written")]
    for first, level in cases:
        case = Case(f"eintr-{first}-{level}")
        trace, _client, code = case.live(f"write:error=EINTR:when={first}+3", level=level)
        demand(code == 0 and not case.ledger.errors(), f"EINTR: exit code {code}, {case.ledger.errors()[:1]}")
        case.goes_on()
        fired += trace.injected()
    return len(cases), fired, "every event recorded"
