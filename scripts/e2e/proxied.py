"""The claim of `steno proxy`: an agent whose model is behind it notices nothing, and what its model said is recorded as
the session of the agent's own file, by what the requests name or by the ids of their calls."""

import shutil
from collections import Counter
from pathlib import Path

from agents import GEMINI, WORK
from merged import Merged
from oracle import key
from promises import demand
from store import STENO, Store

WRAPPER = Path(__file__).parent / "sandboxed" / "proxied.sh"
# Does not name its session in requests. Until its files are there, each conversation is a session of its own.
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
    alone = 2 if agent in NAMELESS else 1
    sessions = top_sessions(store)
    demand(len(sessions) == alone, f"{alone} sessions were to be recorded, and not {sessions}")
    calls = check_calls(store, job)
    store.run("import")
    after = top_sessions(store)
    demand(len(after) == 1, f"with the agent's own files there are {after}")
    demand(agent in NAMELESS or sessions == after, f"with the agent's own files, {sessions} became {after}")
    responses, have = job.responses(), counted(store, "responses")
    demand(have == responses, f"{have} responses are counted, and the model gave {responses}")
    files = Store(agent, "proxied-files")
    files.run("import")
    have, want = counted(store, "output_tokens"), counted(files, "output_tokens")
    demand(have == want, f"{have} tokens of output are counted, and the agent's own files have {want}")
    Merged(store).check_calls(job)
    return f"{calls} calls of the model in {alone} sessions; one with the agent's own files, and {responses} responses in it"


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


def counted(store, what):
    """How many responses or tokens the store has."""
    return sum(row[what] for row in store.lines("usage", "--json"))
