"""Checks the claims, or those whose names contain one of the arguments, for each agent, and says what was seen."""

import sys
import time
import traceback

import claims
import connections
import distilled
import proxied
from agents import AGENTS, WORK, write_scenarios
from ending import end_children, end_when_stopped
from promises import Violation

CLAIMS = [
    claims.followed,
    claims.followed_by_polling,
    claims.killed,
    claims.restored,
    claims.restored_beside_watch,
    claims.shared,
    claims.taken_over,
    proxied.proxied,
]
# Of Codex alone.
CODEX_CLAIMS = [connections.connected, connections.bridged, distilled.distilled]


def check(claim, agent):
    """Checks a claim; returns a word for how it went and a line about it."""
    for each in AGENTS:
        each.clear()
    try:
        return "ok", claim(agent)
    except Violation as error:
        return "FAILED", str(error)
    except Exception:  # A claim that breaks must not take the others with it.
        return "FAILED", traceback.format_exc()
    finally:
        end_children()


def main():
    end_when_stopped()
    (WORK / "nobody").mkdir()
    write_scenarios()
    connections.set_up()
    distilled.set_up()
    wanted, failed = sys.argv[1:], 0
    pairs = [(claim, agent) for claim in CLAIMS for agent in AGENTS] + [(claim, AGENTS[1]) for claim in CODEX_CLAIMS]
    pairs = [(f"{claim.__name__}_{agent.name}", claim, agent) for claim, agent in pairs]
    pairs = [pair for pair in pairs if not wanted or any(part in pair[0] for part in wanted)]
    began = time.monotonic()
    for name, claim, agent in pairs:
        started = time.monotonic()
        outcome, said = check(claim, agent)
        failed += outcome != "ok"
        print(f"{name}: {outcome}, {said} ({time.monotonic() - started:.1f} s)", flush=True)
    print(f"{len(pairs) - failed} passed, {failed} failed, in {time.monotonic() - began:.0f} s")
    return 1 if failed or not pairs else 0


if __name__ == "__main__":
    sys.exit(main())
