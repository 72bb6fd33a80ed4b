"""Clocks that go backwards: seq is the only order, so nothing must depend on them."""

import re

from client import WORK, Client, Store
from ledger import Ledger
from promises import demand

EVENTS = 50


def clock_steps_back():
    """Every look at the clock shows an earlier time, and each process begins a year before the last one."""
    fired = lives = 0
    for level in ("synced", "written"):
        store, ledger = Store(WORK / f"clock-{level}"), Ledger(f"clock {level}")
        for year in (2024, 2023, 2022):
            # `i` steps at each look at the clock. The monotonic clock stays as it is: it never goes backwards.
            faketime = ["env", "DONT_FAKE_MONOTONIC=1", "faketime", "-f", f"@{year}-06-01 12:00:00 i-2.0"]
            client = Client(store, ledger, level, wrapper=faketime)
            client.record_some(EVENTS)
            code = client.end()
            demand(code == 0, f"exit code {code}: {client.stderr.decode()}")
            ledger.settle(store)
            lives += 1
        times = re.findall(rb'"timestamp":"([^"]+)","payload"', ledger.good)
        fired += sum(later < earlier for earlier, later in zip(times, times[1:]))
        demand(len(times) == 3 * EVENTS, f"{len(times)} events")
    return lives, fired, "lines with an earlier time than the line before"
