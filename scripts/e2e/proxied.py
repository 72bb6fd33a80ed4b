"""The claim of `steno proxy`: an agent whose model is behind it notices nothing, and what its model said is recorded as
the session of the agent's own file, if the agent names that in its requests."""

import shutil
from collections import Counter
from pathlib import Path

from agents import COPILOT, GEMINI, WORK
from merged import Merged
from oracle import key
from promises import demand
from store import STENO, Store

WRAPPER = Path(__file__).parent / "sandboxed" / "proxied.sh"
# Does not name its session in requests. Then each conversation, that of the subagent too, is a session of its own.
NAMELESS = [GEMINI]


def proxied(agent):
    """The agent works through the proxy; its files are imported afterwards, and change nothing but what they add."""
    store = Store(agent, "proxied")
    # Of the checkout nothing is visible in the sandbox.
    wrapper = shutil.copy(WRAPPER, WORK / f"proxied-{agent.name}.sh")
    job = agent.main(wrap=f"{wrapper} {STENO} {store.path}")
    job.end()
    said = Path(f"{store.path}.err").read_text()
    demand(said == "", f"the proxy complains: {said}")
    store.run("verify")
    alone, together = (2, 3) if agent in NAMELESS else (1, 1)
    sessions = top_sessions(store)
    demand(len(sessions) == alone, f"{alone} sessions were to be recorded, and not {sessions}")
    calls = check_calls(store, job)
    store.run("import")
    after = top_sessions(store)
    demand(len(after) == together and sessions <= after, f"with the agent's own files there are {after}")
    responses = job.responses()
    figures = f"{calls} calls of the model in {alone} sessions"
    if agent in NAMELESS:
        return f"{figures}, {responses} responses; its own files are another session, since its requests name none"
    demand(counted(store) == responses, f"{counted(store)} responses are counted, and the model gave {responses}")
    # A subagent of Copilot CLI has no id in requests, and its calls are there and in the session's own file.
    if agent is not COPILOT:
        Merged(store).check_calls(job)
    return f"{figures}, {responses} responses counted once, also with the agent's own files"


def top_sessions(store):
    return {session["run_id"] for session in store.lines("ls", "--json") if not session["parent_run_id"]}


def check_calls(store, job):
    """Each call that the model made is there once, with its result; returns how many there are."""
    made, results = Counter(), Counter()
    wanted = job.calls()
    have_ids = all(call.id for call in wanted)
    for run in store.transcripts():
        for event in store.lines("events", run, "--json", "--type", "tool.call", "--type", "tool.result"):
            counted = made if event["type"] == "tool.call" else results
            counted[key(event["payload"]["call_id"] if have_ids else None, event["payload"]["name"], None)] += 1
    want = Counter(key(call.id, call.name, None) for call in wanted)
    demand(made == want, f"calls: too many {made - want}, missing {want - made}")
    # With this call a subagent of Gemini CLI ends, and its model is not told the result.
    del want[key(None, "complete_task", None)]
    demand(results == want, f"results: too many {results - want}, missing {want - results}")
    return len(wanted)


def counted(store):
    """How many responses the store has."""
    return sum(row["responses"] for row in store.lines("usage", "--json"))
