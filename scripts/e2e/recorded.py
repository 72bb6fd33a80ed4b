"""Holds what is recorded of a connection to what was said on it, to Codex's session files, and to what git had."""

import json
import subprocess
from collections import Counter

from agents import ENV
from ending import PATIENCE_S
from promises import demand
from spines import of_type, spines

TOOLS = ("commandExecution", "fileChange", "mcpToolCall", "collabAgentToolCall")


def check_messages(teed, live):
    """Each message is one record, byte for byte, in the spine of its thread; tickets are counted from 1, and whatever
    answers has a later one than what it answers."""
    records = [
        (thread, record) for thread, all in live.items() for record in all if record.type in ("submission", "event")
    ]
    tickets = sorted(record.payload["rpc"]["ticket"] for _, record in records)
    demand(tickets == list(range(1, teed.count + 1)), f"{len(tickets)} tickets for {teed.count} messages")
    records.sort(key=lambda each: each[1].payload["rpc"]["ticket"])
    threads = thread_of_each(teed)
    asked = {}
    for direction, lines in teed.sides.items():
        kind, field = ("submission", "op") if direction == "c2s" else ("event", "msg")
        own = [each for each in records if each[1].payload["rpc"]["dir"] == direction]
        demand(len(own) == len(lines), f"{direction}: {len(own)} records for {len(lines)} messages")
        for (thread, record), line, kept in zip(own, lines, teed.kept()[direction]):
            ticket = record.payload["rpc"]["ticket"]
            rpc = f',"rpc":{{"dir":"{direction}","kind":"{line.kind}","ticket":{ticket}}}}}'
            fine = record.type == kind and b'"%s":%s%s' % (field.encode(), kept, rpc.encode()) in record.line
            demand(fine, f"{direction} {ticket}: {kept[:300]} became {record.line[:500]}")
            want = threads[id(line)]
            demand(thread == want, f"{direction} {ticket}: in the spine of {thread}, and not of {want}")
            asked.setdefault((direction, line.kind == "request", line.message.get("id")), ticket)
    for (direction, is_request, number), ticket in asked.items():
        answer = asked.get(({"c2s": "s2c", "s2c": "c2s"}[direction], False, number)) if is_request else None
        demand(
            answer is None or answer > ticket,
            f"the answer to {direction} {number} has ticket {answer}, it has {ticket}",
        )


def thread_of_each(teed):
    """The thread that each message belongs to: the one it names, the one of what it answers, or the first."""
    named = {}
    for lines in teed.sides.values():
        for line in lines:
            places = (
                line.params,
                line.params.get("thread") or {},
                (line.message.get("result") or {}).get("thread") or {},
            )
            names = [place.get(name) for place, name in zip(places, ("threadId", "id", "id"))]
            named[id(line)] = next((name for name in names if name), None)
    started = next(line.message["id"] for line in teed.sides["c2s"] if line.message.get("method") == "thread/start")
    answers = (line.message for line in teed.sides["s2c"] if line.kind == "response")
    first = next(answer["result"]["thread"]["id"] for answer in answers if answer["id"] == started)
    found = {}
    for direction, lines in teed.sides.items():
        other = teed.sides["s2c" if direction == "c2s" else "c2s"]
        requests = {line.message["id"]: named[id(line)] for line in other if line.kind == "request"}
        for line in lines:
            asked = requests.get(line.message.get("id")) if line.kind in ("response", "error") else None
            found[id(line)] = named[id(line)] or asked or first
    return found


def check_runs(store, teed, live):
    """The connection is in the archive too: a run for each thread, with its calls, and every message as evidence."""
    store.run("verify")
    runs = {run["session_run_id"]: run for run in store.lines("ls", "--runs", "--json")}
    demand(runs.keys() == live.keys(), f"runs of {sorted(runs)}, spines of {sorted(live)}")
    children = teed.children()
    for thread, run in runs.items():
        parent = children[thread][0] if thread in children else None
        want = runs[parent]["run_id"] if parent else None
        demand(run["parent_run_id"] == want, f"run {run['run_id']} is below {run['parent_run_id']}, and not {want}")
        events = store.lines("events", run["run_id"], "--json")
        items = [
            line.params for line in teed.sides["s2c"] if "item" in line.params and line.params["threadId"] == thread
        ]
        calls = {params["item"]["id"] for params in items if params["item"]["type"] in TOOLS}
        made = {event["payload"]["call_id"] for event in events if event["type"] == "tool.call"}
        demand(made == calls, f"run {run['run_id']} has calls {made}, and there were {calls}")
        channel = events[0]["payload"]["source"]["channel"]
        demand(channel == "app-server", f"run {run['run_id']} came by {channel}")
    kept = [file for run in runs.values() for file in store.given_back(run["run_id"]).values()]
    demand(all(file == kept[0] for file in kept), "the runs of a connection have not one evidence")
    *lines, end = kept[0].splitlines()
    demand(json.loads(end)["msg"]["method"] == "steno/ended", f"the record does not end with how the server did: {end}")
    demand(len(lines) == teed.count, f"{len(lines)} lines of evidence for {teed.count} messages")
    for run in runs.values():
        last = store.lines("events", run["run_id"], "--json")[-1]
        demand(last["type"] == "run.completed", f"run {run['run_id']} ends with {last['type']}")
    for direction, messages in teed.kept().items():
        own = [line for line in lines if line.startswith(b'{"dir":"%s"' % direction.encode())]
        wrong = [line for line, kept in zip(own, messages, strict=True) if not line.endswith(b',"msg":%s}' % kept)]
        demand(not wrong, f"{direction}: evidence is not what was said: {wrong[:1]}")


def check_bridges(teed, live, files):
    """What was answered for a child is a bridge in its spine and its parent's, and nothing else is."""
    want, own = teed.bridges()
    demand(want and own, f"{len(want)} answers for children, {own} for threads themselves")
    for thread, records in live.items():
        here = [each for each in want if thread in (each["parent_thread_id"], each["sub_agent_thread_id"])]
        got = of_type(records, "bridge")
        demand(got == here, f"{thread}: bridges {got}, and not {here}")
    for bridge in want:
        child, parent = bridge["sub_agent_thread_id"], bridge["parent_thread_id"]
        demand(files.of(child)[0].parent() == parent, f"the session file of {child} does not name {parent}")
    return Counter((each["bridge_kind"], each["decision"]) for each in want), own


def check_compactions(live, files):
    """Every compaction has its boundary, with the histories that the session files give."""
    kinds = Counter()
    threads = files.threads()
    demand(live.keys() == threads, f"spines of {sorted(live)}, session files of {sorted(threads)}")
    for thread, records in live.items():
        want = files.compactions(thread)
        told = [each["msg"]["params"] for each in of_type(records, "event") if is_compaction(each["msg"])]
        turns = [params["turnId"] for params in told]
        demand(turns == [each["turn_id"] for each in want], f"{thread}: compactions in {turns} on the wire, not {want}")
        got = of_type(records, "compaction_boundary")
        demand(len(got) == len(want), f"{thread}: {len(got)} boundaries for {len(want)} compactions")
        for has, each in zip(got, want):
            names = ("turn_id", "kind", "pre_compaction_history", "post_compaction_history")
            same = [has[name] for name in names] == [each[name] for name in ("turn_id", "kind", "before", "after")]
            demand(
                same and "pre_incomplete" not in has, f"{thread}: the boundary in {each['turn_id']} is not as it was"
            )
            demand(each["before"] and each["after"], f"{thread}: a history in {each['turn_id']} is empty")
            kinds[each["kind"]] += 1
    return kinds


def is_compaction(message):
    item = (message.get("params") or {}).get("item") or {}
    return message.get("method") == "item/completed" and item["type"] == "contextCompaction"


def check_secret(connection):
    """A key that the client gave to the server is nowhere in the store."""
    said = (connection.dir / "outer" / "c2s").read_bytes()
    secret = b"sk-e2e-secret"
    demand(secret in said, "the client gave no secret away")
    files = [path for path in connection.store.path.rglob("*") if path.is_file()]
    leaks = [path for path in files if secret in path.read_bytes()]
    given = connection.store.given_back(connection.store.lines("ls", "--runs", "--json")[0]["run_id"])
    demand(not leaks and not any(secret in file for file in given.values()), f"the secret is in {leaks} or in evidence")
    return f"a secret in none of {len(files)} files"


def check_artifacts(connection, before):
    """What git had at the beginning can be made again from what was kept."""
    # The first thread: what comes later finds what that one has changed.
    thread, records = min(spines(connection.store).items())
    # What a turn has changed is in those of its end.
    kept = {each["kind"]: each for each in reversed(of_type(records, "artifact_ref"))}
    demand(sorted(kept) == ["git_diff", "git_info", "shell_snapshot"], f"artifacts {sorted(kept)}")
    dir, diff = connection.store.path / "spine" / thread, kept["git_diff"]
    demand(diff["base_sha"] == git(before, "rev-parse", "origin/main").strip(), f"the base is {diff['base_sha']}")
    want = {
        "commit_hash": git(before, "rev-parse", "HEAD").strip(),
        "branch": "main",
        "repository_url": "https://example.com/team/project.git",
    }
    info = kept["git_info"]["git"]
    demand(info == want, f"git was told to be {info}, and is {want}")
    again = connection.dir / "again"
    git(connection.dir, "clone", "--quiet", str(before), str(again))
    git(again, "checkout", "--quiet", diff["base_sha"])
    git(again, "apply", str(dir / diff["artifact_path"]))
    got, had = (plain_files(dir) for dir in (again, before))
    demand(got == had, f"the patch gives {sorted(got)}, and there were {sorted(had)}")
    return f"artifacts {len(kept)}, {len(had)} files as they were from the patch"


def git(dir, *args):
    said = subprocess.run(["git", *args], cwd=dir, env=ENV, capture_output=True, timeout=PATIENCE_S, check=False)
    demand(said.returncode == 0, f"`git {' '.join(args)}` ended with {said.returncode}: {said.stderr.decode()}")
    return said.stdout.decode()


def plain_files(dir):
    """The files of a working tree."""
    paths = (path for path in dir.rglob("*") if path.is_file() and ".git" not in path.relative_to(dir).parts)
    return {str(path.relative_to(dir)): path.read_bytes() for path in paths}
