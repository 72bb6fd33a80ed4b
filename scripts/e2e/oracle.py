"""What a store must hold of an agent's session: what its model did, told once, as a fresh import tells it."""

import json
from collections import Counter
from dataclasses import dataclass

from promises import demand


@dataclass(frozen=True)
class Call:
    """A call as the model made it."""

    scenario: str
    id: str
    name: str
    given: object


@dataclass
class Session:
    """A session whose agent has ended: its runs as a fresh import has them, its files, and its model's calls."""

    root: str
    transcripts: dict
    files: dict
    calls: list
    spawn: str

    @property
    def events(self):
        return sum(text.count(b"\n") for text in self.transcripts.values())


def finished(jobs, fresh):
    """Imports what an agent has left into a fresh store, and returns the session that its runs were."""
    fresh.run("import")
    roots = [session["run_id"] for session in fresh.lines("ls", "--json") if session["parent_run_id"] is None]
    demand(len(roots) == 1, f"one session was to be found, and not {roots}")
    calls = [call for job in jobs for call in job.calls()]
    agent = jobs[0].agent
    session = Session(roots[0], fresh.transcripts(), agent.files(), calls, agent.spawn)
    check(fresh, [session])
    return session


def check(store, sessions):
    """Holds a store to the sessions that were recorded in it, and to nothing else."""
    store.run("verify")
    want = {run: text for session in sessions for run, text in session.transcripts.items()}
    demand(store.transcripts() == want, f"{store.path.name}: {difference(store.transcripts(), want)}")
    parents = {run["run_id"]: run["parent_run_id"] for run in store.lines("ls", "--runs", "--json")}
    for session in sessions:
        check_calls(store, session)
        check_children(store, session, parents)
        given_back = store.given_back(session.root)
        # Copilot CLI deletes files of a session while it works, and `watch` may have kept them.
        paths = {*session.files, *(() if session.spawn == "task" else given_back)}
        wrong = [path for path in paths if session.files.get(path) != given_back.get(path)]
        demand(not wrong, f"{store.path.name}: not kept as they were: {wrong}")


def difference(got, want):
    """Says where transcripts are not as wanted."""
    for run in sorted({*got, *want}):
        if run not in want or run not in got:
            return f"run {run} is {'not ' if run in want else ''}there"
        lines, wanted = got[run].splitlines(), want[run].splitlines()
        for number, (left, right) in enumerate(zip(lines, wanted), 1):
            if left != right:
                return f"line {number} of run {run} is\n  {left.decode()}\nand not\n  {right.decode()}"
        if len(lines) != len(wanted):
            return f"run {run} has {len(lines)} lines and not {len(wanted)}"
    return "there is no difference"


def check_calls(store, session):
    """Each call that the model made is there once, as it was made, with one result, and no other call is there."""
    made, results = [], Counter()
    for run in session.transcripts:
        # A run may have no call, such as a file that Gemini CLI begins when a session goes on.
        for event in store.lines("events", run, "--json"):
            payload = event["payload"]
            if event["type"] == "tool.call":
                made.append((payload["call_id"], payload["name"], shown(payload["name"], payload["input"])))
            elif event["type"] == "tool.result":
                results[payload["call_id"]] += 1
    ids = {id for id, _, _ in made}
    demand(len(ids) == len(made), f"{len(made)} calls have {len(ids)} ids")
    want = Counter(key(call.id, call.name, call.given) for call in session.calls)
    # Gemini CLI gives calls their ids, and not the model.
    have_ids = all(call.id for call in session.calls)
    have = Counter(key(id if have_ids else None, name, given) for id, name, given in made)
    demand(not want - have, f"{len(want - have)} of {len(session.calls)} calls are not there: {[*(want - have)][:1]}")
    demand(not have - want, f"{len(have - want)} calls are not as the model made them: {[*(have - want)][:1]}")
    odd = {id: results[id] for id in {*ids, *results} if results[id] != 1}
    demand(not odd, f"calls that have not one result: {odd}")


def key(id, name, given):
    """A call in one text, to count."""
    return json.dumps([own_id(id), name, given], sort_keys=True)


def own_id(id):
    """The id that the model gave to a call. Copilot CLI puts a word before those of calls that have no JSON."""
    return id and id.removeprefix("custom_")


def shown(name, given):
    """A call's input without what Claude Code adds to an edit's, which stands for nothing."""
    if name == "Edit" and given.get("replace_all") is False:
        return {key: value for key, value in given.items() if key != "replace_all"}
    return given


def check_children(store, session, parents):
    """Each subagent is a child run of the session's, which names it and the call that started it."""
    spawned = [call for call in session.calls if call.name == session.spawn]
    # Gemini CLI begins another file of a session that goes on.
    children = [run for run in session.transcripts if run != session.root and parents[run]]
    demand(len(children) == len(spawned), f"{len(spawned)} subagents were started, and there are {children}")
    demand(parents[session.root] is None, f"the session is a child of {parents[session.root]}")
    strays = [child for child in children if parents[child] != session.root]
    demand(not strays, f"no children of run {session.root}: {strays}")
    started = store.lines("events", session.root, "--json", "--type", "step.call_workflow.started")
    named = {event["child_run_id"]: event["payload"]["tool_call_id"] for event in started}
    demand(len(started) == len(spawned), f"{len(started)} starts of subagents, {len(spawned)} were wanted")
    demand(sorted(named) == sorted(children), f"run {session.root} names {sorted(named)}, and not {children}")
    ids = {call["call_id"] for call in calls_of(store, session.root) if call["name"] == session.spawn}
    demand({*named.values()} == ids, f"subagents were started by {named}, and not by {ids}")
    for child in children:
        own = Counter(key(None, call["name"], call["input"]) for call in calls_of(store, child))
        subs = [call for call in session.calls if call.scenario.endswith("_sub")]
        want = Counter(key(None, call.name, call.given) for call in subs)
        demand(own and own <= want, f"run {child} has calls of others: {own - want}")


def calls_of(store, run):
    return [event["payload"] for event in store.lines("events", run, "--json", "--type", "tool.call")]
