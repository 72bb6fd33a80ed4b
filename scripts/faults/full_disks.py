"""No room, for real: a full tmpfs, and a limit on the size of files. The writer refuses, and goes on when it can."""

import random

from client import WORK, Client, Store
from ledger import Ledger
from mounts import call, tmpfs
from promises import demand
from tracing import Trace

REPEATS = 8


def record_until_refused(client, cause):
    """Records until there is no room; returns how many answers were refusals."""
    for _ in range(2000):
        answer = client.record(client.ledger.payload(200, 3000))
        if "error" in answer:
            break
    refused = 0
    # Some more, which may be short enough to fit.
    for _ in range(6):
        refused += "error" in answer
        demand("seq" in answer or cause in answer["error"], f"refused for another reason: {answer}")
        answer = client.record(client.ledger.payload(50, 3000))
    return refused + ("error" in answer)


def nothing_is_torn(store, client):
    """While the writer lives and there is no room: the file holds what was acknowledged, and not a byte more."""
    raw = store.read(store.transcript(client.ledger.run))
    last = max(sent.seq or 0 for sent in client.ledger.sent)
    lines = raw.count(b"\n")
    demand(raw.endswith(b"\n") and lines == last, f"{last} acknowledged, {lines} lines and {raw[-80:]!r}")


def refusals_are_noted(store, run, refused):
    noted = sum(note["count"] for note in store.notes(run) if note["kind"] == "refused")
    demand(noted == refused, f"{refused} were refused, and {noted} noted")


def full_disk():
    """A tmpfs runs full; a file beside the store is removed; the same process goes on."""
    fired = partial = 0
    for seed in range(REPEATS):
        with tmpfs("256k") as point:
            store, ledger = Store(point / "store"), Ledger(f"room {seed}")
            filler = point / "filler"
            filler.write_bytes(bytes(random.Random(seed).randint(40_000, 120_000)))
            trace = Trace([store.transcript(ledger.run)], ["write"])
            client = Client(store, ledger, ["synced", "written"][seed % 2], wrapper=trace.wrapper)
            refused = record_until_refused(client, "No space left on device")
            nothing_is_torn(store, client)
            filler.unlink()
            client.record_some(10)
            code = client.end()
            demand(code == 3, f"`steno record` ended with {code}, not 3, after refusals")
            refusals_are_noted(store, ledger.run, refused)
            ledger.settle(store)
            fired, partial = fired + refused, partial + trace.short_writes()
    demand(partial > 0, "no write was cut short by the full disk")
    return REPEATS, fired, f"{partial} of these writes had taken a part of the line"


def full_disk_to_the_end():
    """The writer ends while the disk is still full; what it acknowledged is there when there is room again."""
    fired = 0
    for seed in range(REPEATS):
        with tmpfs("4m") as point:
            store, ledger = Store(point / "store"), Ledger(f"end {seed}")
            filler = point / "filler"
            # Room for the index too, which reading commands write later.
            filler.write_bytes(bytes(3_700_000))
            client = Client(store, ledger, ["synced", "written"][seed % 2])
            fired += record_until_refused(client, "No space left on device")
            code = client.end()
            demand(code == 3, f"`steno record` ended with {code}, not 3, on a full disk: {client.stderr.decode()}")
            demand(store.run("verify", ledger.run).returncode == 0, "verify fails on a full disk")
            filler.unlink()
            ledger.settle(store)
            again = Client(store, ledger)
            again.record_some(3)
            demand(again.end() == 0, "the run does not go on when there is room")
            ledger.settle(store)
    return REPEATS, fired, "each run went on later"


def file_size_limit():
    """RLIMIT_FSIZE: an answer and no death by SIGXFSZ; with the limit raised the same process goes on."""
    fired = 0
    for seed in range(REPEATS):
        store, ledger = Store(WORK / f"limit-{seed}"), Ledger(f"limit {seed}")
        limit = random.Random(seed).randint(20_000, 60_000)
        # The limit stands behind strace, whose own log it must not cut.
        trace = Trace([], [])
        wrapper = [*trace.wrapper, "prlimit", f"--fsize={limit}:unlimited"]
        client = Client(store, ledger, ["synced", "written"][seed % 2], wrapper=wrapper)
        refused = record_until_refused(client, "File too large")
        nothing_is_torn(store, client)
        call("prlimit", f"--pid={store.holder(ledger.run)}", "--fsize=unlimited:unlimited")
        client.record_some(10)
        code = client.end()
        demand(code == 3, f"`steno record` ended with {code}, not 3, after refusals")
        signals = trace.count("--- SIGXFSZ")
        demand(signals == refused, f"{refused} refusals and {signals} SIGXFSZ")
        refusals_are_noted(store, ledger.run, refused)
        ledger.settle(store)
        fired += signals
    return REPEATS, fired, "SIGXFSZ counted by strace"
