"""Power cuts on ext4 and xfs while many clients record, and the control that shows what they are worth."""

import os
import random
import shutil
import threading
import time
from collections import deque
from contextlib import closing

from client import STENO_LIBC, Client, Store
from ledger import Ledger, Lost
from mounts import Image
from promises import Violation, demand

# A few in CI, all of them at night. The last two use the other build.
REPEATS = int(os.environ.get("STENO_POWER_CUTS", "12"))
REPEATS_CONTROL = 3
CLIENTS_PER_RUN = 8
IN_FLIGHT_MAX = 32
WRITERS = 4
CUTS_PER_STORE = 4
# A fast machine fills any image in the time before a cut, and a full one is another test. Each writer stops here.
BYTES_MAX = 64 << 20
# Twice what fits the above: room for the file system's own log, and for the blocks that xfs takes ahead of need.
IMAGE_BYTES = 2 * BYTES_MAX * WRITERS * CUTS_PER_STORE


def feed(client, stop):
    """One of the clients of a run: keeps events in flight until an answer is an error or the time is over."""
    flying, bytes_left = deque(), BYTES_MAX // CLIENTS_PER_RUN
    while not stop.is_set() and bytes_left > 0:
        # Now and then a long line, which a cut is likely to tear.
        sizes = (50_000, 200_000) if client.ledger.dice.random() < 0.02 else (100, 2000)
        payload = client.ledger.payload(*sizes)
        bytes_left -= len(payload)
        sent = client.send(payload)
        if sent is None:
            return
        flying.append(sent)
        if len(flying) >= IN_FLIGHT_MAX:
            answer = client.wait(flying.popleft())
            if not answer or "error" in answer:
                return


def live_and_die(image, store, writers, dice, **how):
    """Records into several runs at once until the power is cut; returns the exit codes of the writers."""
    stop = threading.Event()
    clients = [Client(store, ledger, level, **how) for ledger, level in writers]
    senders = [client for client in clients for _ in range(CLIENTS_PER_RUN)]
    threads = [threading.Thread(target=feed, args=(client, stop), daemon=True) for client in senders]
    for thread in threads:
        thread.start()
    # Early cuts hit the making of files, late ones the work.
    time.sleep(dice.choice([dice.uniform(0.0, 0.1), dice.uniform(0.1, 1.0)]))
    # A machine without power tells nobody anything, but a process on a file system that goes down lives on, and for
    # some milliseconds its fdatasync may say yes falsely: both ext4 and xfs did, to a bare loop in C too.
    for client in clients:
        client.stop_listening()
    image.cut_power()
    stop.set()
    for thread in threads:
        thread.join()
    codes = [client.end() for client in clients]
    image.boot()
    return codes


def cut_often(kind, seeds, fresh_stores, **how):
    """Cuts the power again and again; after each cut yields the seed, the store and the ledgers to compare it with."""
    with Image(kind, IMAGE_BYTES) as image:
        store = old = None
        for seed in seeds:
            dice = random.Random(f"{kind} {seed}")
            if store is None or fresh_stores or seed % CUTS_PER_STORE == 0:
                if store:
                    shutil.rmtree(store.path, ignore_errors=True)
                store, old = Store(image.point / f"store-{seed}"), Ledger(f"{kind} {seed} old")
            # One run goes on over several cuts; the others are new, because new files have names to lose.
            ledgers = [old, *(Ledger(f"{kind} {seed} {number}") for number in range(1, WRITERS))]
            levels = ["synced"] * (WRITERS - 1) + ["written"]
            # The last repeats use the other build, so that the control differs from them by one thing only.
            if seed >= REPEATS - 2:
                how.setdefault("steno", STENO_LIBC)
            codes = live_and_die(image, store, list(zip(ledgers, levels)), dice, **how)
            demand(set(codes) == {3}, f"writers ended with {codes} after the cut, not all with 3")
            yield seed, store, ledgers


def power_cut(kind):
    fired, used = 0, set()
    with closing(cut_often(kind, range(REPEATS), fresh_stores=False)) as cuts:
        for seed, store, ledgers in cuts:
            fired += 1
            used.update(ledgers)
            for ledger in ledgers:
                try:
                    ledger.settle(store, power_cut=True)
                except Violation as error:
                    raise type(error)(f"seed {seed}: {error}") from None
    acknowledged = sum(ledger.acknowledged for ledger in used)
    dropped = sum(ledger.dropped for ledger in used)
    torn = sum(ledger.torn_tails for ledger in used)
    demand(acknowledged > 0 and dropped > 0, "the cuts came when nothing was in flight")
    return REPEATS, fired, f"{acknowledged} acknowledged, {dropped} others not recorded, {torn} torn tails"


def power_cut_control(kind):
    """Without syncs the same test must find a loss, or it proves nothing."""
    how = {"wrapper": ["eatmydata"], "steno": STENO_LIBC}
    seeds = range(100, 100 + REPEATS_CONTROL)
    with closing(cut_often(kind, seeds, fresh_stores=True, **how)) as cuts:
        losses = sum(any(loses(store, ledger) for ledger in ledgers) for _seed, store, ledgers in cuts)
    demand(losses > 0, "nothing acknowledged was lost without syncs: the power cut test proves nothing")
    return REPEATS_CONTROL, losses, "the oracle found the loss without syncs"


def loses(store, ledger):
    try:
        ledger.compare(store.read(store.transcript(ledger.run)), power_cut=True)
    except Lost:
        return True
    return False


def power_cut_ext4():
    return power_cut("ext4")


def power_cut_xfs():
    return power_cut("xfs")


def power_cut_control_ext4():
    return power_cut_control("ext4")


def power_cut_control_xfs():
    return power_cut_control("xfs")
