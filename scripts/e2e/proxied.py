"""The claim of `steno proxy`: an agent whose model is behind it notices nothing, and what its model said is recorded as
the session of the agent's own file."""

import shutil
from collections import Counter
from pathlib import Path

from agents import RIG, WORK, Job
from promises import demand
from store import STENO, Store

WRAPPER = Path(__file__).parent / "sandboxed" / "proxied.sh"


def proxied(agent):
    """The agent works through the proxy; its files are imported afterwards, and change nothing but what they add."""
    store = Store(f"proxied-{agent.name}")
    # Of the checkout nothing is visible in the sandbox.
    wrapper = shutil.copy(WRAPPER, WORK / "proxied.sh")
    job = Job(agent, "main", [str(RIG), "main", str(WORK), agent.name], {"WRAP": f"{wrapper} {STENO} {store.path}"})
    job.end()
    said = Path(f"{store.path}.err").read_text()
    demand(said == "", f"the proxy complains: {said}")
    store.run("verify")
    sessions = [session["run_id"] for session in store.lines("ls", "--json") if not session["parent_run_id"]]
    demand(len(sessions) == 1, f"one session was to be recorded, and not {sessions}")
    calls = check_calls(store, job)
    before = used(store)
    store.run("import")
    after = [session["run_id"] for session in store.lines("ls", "--json") if not session["parent_run_id"]]
    demand(after == sessions, f"the agent's own file is another session: {after}")
    demand(used(store) == before, f"usage with the agent's own file is {used(store)} and not {before}")
    return f"{calls} calls of the model in one session, {before[0]} responses counted once"


def check_calls(store, job):
    """Each call that the model made is there once, with its result; returns how many there are."""
    made, results = Counter(), Counter()
    for run in store.transcripts():
        for event in store.lines("events", run, "--json", "--type", "tool.call", "--type", "tool.result"):
            counted = made if event["type"] == "tool.call" else results
            counted[event["payload"]["call_id"], event["payload"]["name"]] += 1
    want = Counter((call.id, call.name) for call in job.calls())
    demand(made == want, f"calls: too many {made - want}, missing {want - made}")
    demand(results == want, f"results: too many {results - want}, missing {want - results}")
    return sum(want.values())


def used(store):
    """The responses and tokens of the store."""
    rows = store.lines("usage", "--json")
    return tuple(sum(row[name] for row in rows) for name in ("responses", "input_tokens", "output_tokens", "total_tokens"))
