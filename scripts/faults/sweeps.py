"""A kill or an error in every call in turn, by strace: in the work, in recovery, and in the making of a store."""

import itertools
import re

from client import Client
from injected import NTH_MAX, Case
from promises import demand
from tracing import Trace

# Every kind of call that changes a store.
CALLS = ["openat2", "write", "pwrite64", "fdatasync", "fsync", "ftruncate", "renameat", "mkdir", "mkdirat"]
CALLS += ["chmod", "fchmod", "fchmodat"]


def killed_in_a_call():
    """On entering the nth write or sync of the work; one run lives through all the kills of a kind."""
    fired = 0
    for call, level in itertools.product(["write", "fdatasync"], ["synced", "written"]):
        case = Case(f"kill-{call}-{level}")
        # At level `written` only opening and closing sync: fewer calls to die in.
        nths = range(1, 3 if (call, level) == ("fdatasync", "written") else NTH_MAX + 1)
        for nth in nths:
            trace, _client, code = case.live(f"{call}:signal=SIGKILL:when={nth}", level=level)
            demand(trace.killed(call) and code == -9, f"SIGKILL in {call} {nth} did not fire: exit code {code}")
            case.ledger.settle(case.store)
            fired += 1
        case.goes_on()
    return fired, fired, "write and fdatasync, both levels"


def killed_in_recovery():
    """In every call that `steno seal` makes on a run with a torn tail; the next recovery finishes the work."""
    return in_every_call("kill-recovery", "signal=SIGKILL", torn_case, sealing)


def killed_in_the_first_opening():
    """In every call that makes a store and a run; the next opening finishes the work."""
    return in_every_call("kill-opening", "signal=SIGKILL", Case, recording)


def error_in_recovery():
    """EIO from every call of recovery: it says so, and the next one finishes the work."""
    return in_every_call("error-recovery", "error=EIO", torn_case, sealing)


def error_in_the_first_opening():
    return in_every_call("error-opening", "error=EIO", Case, recording)


def sealing(case):
    return ["seal", case.ledger.run]


def recording(case):
    return ["record", "--run", case.ledger.run]


def in_every_call(name, fault, prepare, args_of):
    """Counts the calls in a run without faults, then has the fault in each of them in turn."""
    fired = 0
    counts = calls_of(prepare(f"{name}-dry"), args_of)
    demand(sum(counts.values()) > 15, f"{name}: only these calls: {counts}")
    for call, count in counts.items():
        for nth in range(1, count + 1):
            case = prepare(f"{name}-{call}-{nth}")
            trace, said = run_traced(case, args_of, [f"{call}:{fault}:when={nth}"])
            came = trace.killed(call) if "SIGKILL" in fault else trace.injected() == 1
            demand(came, f"{name}: did not fire in {call} {nth}")
            failed = said.returncode == -9 or said.returncode == 3 and b"error:" in said.stderr
            demand(failed, f"{name}: {call} {nth} ended with {said.returncode}: {said.stderr.decode()}")
            case.goes_on()
            fired += 1
    return fired, fired, ", ".join(f"{count} {call}" for call, count in counts.items())


def torn_case(name):
    """A run whose writer was killed inside a line: events without a seal, and bytes without a newline."""
    case = Case(name)
    client = Client(case.store, case.ledger)
    client.record_some(5)
    client.process.kill()
    client.end()
    with case.path.open("ab") as file:
        file.write(b'{"seq":6,"run_id":"')
    return case


def run_traced(case, args_of, inject):
    # No paths: the names of temporary files are not known before, and nothing but the store is changed here.
    trace = Trace([], CALLS, inject)
    return trace, case.store.run(*args_of(case), wrapper=trace.wrapper)


def calls_of(case, args_of):
    """How often the main thread makes each call; the others have nothing to do when nothing is recorded."""
    trace, _said = run_traced(case, args_of, [])
    made = [re.match(r"(\d+) +(\w+)\(", line) for line in trace.lines()]
    made = [match[2] for match in made if match and match[1] == made[0][1]]
    return {call: made.count(call) for call in CALLS if call in made}
