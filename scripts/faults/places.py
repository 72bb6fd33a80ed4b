"""Trouble with the place: a read-only file system, and a file that is deleted, replaced or renamed under its writer."""

import itertools
import os

from client import WORK, Client, Store
from ledger import Ledger
from mounts import call, tmpfs
from promises import demand


def read_only():
    """Recording is refused with a clear message, nothing changes, and reading works."""
    fired = 0
    with tmpfs("4m") as point:
        store, ledger, torn = Store(point / "store"), Ledger("read-only"), Ledger("read-only torn")
        for one in (ledger, torn):
            client = Client(store, one)
            client.record_some(20)
            demand(client.end() == 0, "recording failed")
        with store.transcript(torn.run).open("ab") as file:
            file.write(b'{"seq":21,')
        before = store.snapshot(locks=True)
        call("mount", "-o", "remount,ro", str(point))
        runs = [ledger.run, torn.run, Ledger("read-only new").run]
        for args in [*(["record", "--run", run] for run in runs), *(["seal", run] for run in runs[:2])]:
            said = store.run(*args)
            told = said.stderr.decode()
            demand(said.returncode == 3, f"{args[0]} ended with {said.returncode}, not 3: {told}")
            demand("Read-only file system" in told and "error:" in told, f"{args[0]} does not say why: {told}")
            fired += 1
        for args in (["ls"], ["verify"], ["events", ledger.run], ["events", "--raw", torn.run], ["tree", ledger.run]):
            said = store.run(*args)
            demand(said.returncode == 0 and said.stdout, f"`{args[0]}` fails on a read-only store: {said.stderr}")
        demand(store.snapshot(locks=True) == before, "something changed on a read-only file system")
        call("mount", "-o", "remount,rw", str(point))
        ledger.settle(store)
        torn.settle(store)
        demand(torn.torn_tails == 1, "the torn tail was not there")
    return fired, fired, "record and seal refused; ls, verify, events, tree work"


def delete(path):
    path.unlink()


def replace(path):
    other = path.with_suffix(".other")
    other.write_bytes(b"something else\n")
    other.rename(path)


def rename(path):
    path.rename(path.with_suffix(".renamed"))


def rename_and_replace(path):
    rename(path)
    path.write_bytes(b"")


def copy_over(path):
    """What an editor or a backup tool does: the same bytes, another file."""
    data = path.read_bytes()
    path.unlink()
    path.write_bytes(data)


def file_vanishes():
    """The writer says so and stops; what it acknowledged is kept under another name."""
    actions = [delete, replace, rename, rename_and_replace, copy_over]
    cases = list(itertools.product(actions, ["synced", "written"], ["new", "old"]))
    fired = 0
    for action, level, age in cases:
        name = f"{action.__name__} {level} {age}"
        store, ledger = Store(WORK / f"vanish-{name}".replace(" ", "-")), Ledger(name)
        # A run that was closed before has a seal, which must not be given up either.
        if age == "old":
            client = Client(store, ledger)
            client.record_some(5)
            demand(client.end() == 0, "recording failed")
            ledger.settle(store)
        client = Client(store, ledger, level)
        client.record_some(20)
        action(store.transcript(ledger.run))
        answers = [client.record(ledger.payload()) for _ in range(5)]
        code = client.end()
        told = " ".join(str(answer) for answer in answers) + client.stderr.decode()
        demand(code == 3, f"{name}: exit code {code}, answers {answers}")
        demand(f"transcripts/{ledger.run}.jsonl` was deleted or replaced" in told, f"{name}: not named: {told}")
        # At level `written` a name is looked at when something is synced: when it is closed at the latest.
        demand(level == "written" or all("error" in answer for answer in answers), f"{name}: {answers}")
        kept = list(store.dir("transcripts").glob(f"{ledger.run}.jsonl.orphan-*"))
        demand(len(kept) == 1 and kept[0].name in told, f"{name}: kept in {kept}, told {told}")
        ledger.compare(kept[0].read_bytes())
        demand(os.stat(kept[0]).st_mode & 0o777 == 0o600, f"{name}: others may read what was kept")
        fired += 1
    return len(cases), fired, ", ".join(action.__name__ for action in actions)
