"""Checks the claims, or those whose names contain one of the arguments, for each agent, and says what was seen. The
agents work beside each other; each claim is a process of its own, and the claims of one agent come one after the other."""

import subprocess
import sys
import threading
import time
import traceback
from concurrent.futures import ThreadPoolExecutor

import claims
import connections
import distilled
import proxied
import wrapped
from agents import AGENTS, CLAUDE, CODEX, WORK, write_scenarios
from ending import end_children, end_when_stopped, ended_with_us
from promises import Violation

# The argument of a process that checks one claim.
ONE = "--one"
# Of all agents.
CLAIMS = [wrapped.wrapped, wrapped.routed, proxied.proxied, claims.restored, wrapped.stopped, wrapped.killed_recorder]
CLAIMS += [claims.followed]
# What `watch` does with any file was shown with these; another agent's files need no more of it.
WATCH_CLAIMS = [claims.followed_by_polling, claims.killed, claims.restored_beside_watch, claims.shared]
WATCH_CLAIMS += [claims.taken_over]
CODEX_CLAIMS = [connections.connected, connections.bridged, distilled.distilled]


def claims_of(agent):
    """An agent's claims by name, those that take long first."""
    own = [*(CODEX_CLAIMS if agent is CODEX else []), *(WATCH_CLAIMS if agent in (CLAUDE, CODEX) else []), *CLAIMS]
    return {f"{claim.__name__}_{agent.name}": claim for claim in own}


def check(name):
    """Checks a claim; returns 0 if it holds."""
    agent = next(agent for agent in AGENTS if name in claims_of(agent))
    agent.clear()
    started, code = time.monotonic(), 1
    try:
        outcome, said, code = "ok", claims_of(agent)[name](agent), 0
    except Violation as error:
        outcome, said = "FAILED", str(error)
    except Exception:  # Its process ends in order, and says why it failed.
        outcome, said = "FAILED", traceback.format_exc()
    finally:
        end_children()
    print(f"{name}: {outcome}, {said} ({time.monotonic() - started:.1f} s)", flush=True)
    return code


def check_all(names, printing):
    """Checks claims one after the other, each in its own process; returns how many do not hold."""
    failed = 0
    for name in names:
        command = [sys.executable, "-W", "error", __file__, ONE, name]
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        ended_with_us(process, subprocess.Popen.terminate)
        said, _ = process.communicate()
        failed += process.returncode != 0
        with printing:
            print(said.decode(errors="replace") or f"{name}: FAILED, its process ended with {process.returncode}\n", end="")
            sys.stdout.flush()
    return failed


def main():
    end_when_stopped()
    if sys.argv[1:2] == [ONE]:
        return check(sys.argv[2])
    (WORK / "nobody").mkdir()
    write_scenarios()
    connections.set_up()
    distilled.set_up()
    wanted = sys.argv[1:]
    lists = [
        [name for name in claims_of(agent) if not wanted or any(part in name for part in wanted)] for agent in AGENTS
    ]
    began, printing = time.monotonic(), threading.Lock()
    with ThreadPoolExecutor(len(AGENTS)) as pool:
        failed = sum(pool.map(lambda names: check_all(names, printing), lists))
    count = sum(map(len, lists))
    print(f"{count - failed} passed, {failed} failed, in {time.monotonic() - began:.0f} s")
    return 1 if failed or not count else 0


if __name__ == "__main__":
    sys.exit(main())
