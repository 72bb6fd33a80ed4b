"""Sessions that nobody recorded: runs of real sessions, changed at random and put together, so that ids are missing, come
twice or mean other calls. Both implementations of receipts must agree on these too.
"""

import copy
import json
import random
from concurrent.futures import ThreadPoolExecutor

from commands import run_steno
from promises import Violation
from receipts import STORES_AT_A_TIME, Check, captures, import_of

CHANNELS = "disk", "disk", "stream", "acp", "app-server", "control", "exec", "http", None
FIELDS = """id response turn_id tool_call_id usage usage_scope final input_available outcome class
    settings ended_by stop_reason""".split()
RUN_LINES_MAX = 150


def run_id(number):
    return f"{number:08x}-0000-4000-8000-000000000000"


def read_sessions(program, store, sources):
    """The runs of each session in some sources, as lists of events."""
    store.parent.mkdir(parents=True)
    run_steno(program, store, *(import_of(sources) if sources else ["up", "--demo", "--once"]))
    sessions = {}
    for path in sorted((store / "transcripts").glob("*.jsonl")):
        events = [json.loads(line) for line in path.read_text().splitlines()] if "." not in path.stem else []
        if 2 < len(events) <= RUN_LINES_MAX:
            sessions.setdefault(events[0].get("session_run_id", events[0]["run_id"]), []).append(events)
    return list(sessions.values())


class Changes:
    """What is changed in the runs of a session; every change may come several times."""

    def __init__(self, dice, runs):
        self.dice, self.runs = dice, copy.deepcopy(runs)
        events = [event for run in self.runs for event in run]
        self.calls = [event["payload"]["call_id"] for event in events if event["payload"].get("call_id")]
        self.paths = sorted({event["path"] for event in events}) + ["turn-0001.inner", "turn-0009", ""]

    def make(self):
        ways = [self.drop, self.repeat, self.swap, self.cut, self.forget, self.forget, self.call_another, self.move,
                self.say, self.join, self.part, self.count, self.answer, self.begin_turn, self.infer_time]
        for run in self.runs:
            source = run[0]["payload"].get("source")
            if source and self.dice.random() < 0.35:
                source["channel"] = self.dice.choice(CHANNELS)
            for _ in range(self.dice.choice([0, 1, 2, 4, 8, 16])):
                at = self.dice.randrange(1, len(run)) if len(run) > 2 else 0
                if at:
                    self.dice.choice(ways)(run, at, run[at]["payload"])
        return self.runs

    def drop(self, run, at, _):
        del run[at]

    def repeat(self, run, at, _):
        run.insert(self.dice.randrange(1, len(run)), copy.deepcopy(run[at]))

    def swap(self, run, at, _):
        other = self.dice.randrange(1, len(run))
        run[at], run[other] = run[other], run[at]

    def cut(self, run, at, _):
        if self.dice.random() < 0.3:
            del run[at + 1:]

    def forget(self, run, at, _):
        name = self.dice.choice(FIELDS)
        for event in run if self.dice.random() < 0.4 else [run[at]]:
            event["payload"].pop(name, None)

    def call_another(self, _, __, payload):
        call = self.dice.choice(self.calls or ["call"])
        payload.update({name: call for name in ("call_id", "tool_call_id") if name in payload})
        for block in payload.get("blocks", []):
            if block.get("type") == "tool_use":
                block["tool_id"] = call

    def move(self, run, at, _):
        run[at]["path"] = self.dice.choice(self.paths)

    def say(self, _, __, payload):
        for block in payload.get("blocks", []):
            if block.get("type") == "text":
                block["text"] = self.dice.choice(["yes", "no", ""])

    def join(self, run, at, payload):
        while at + 1 < len(run) and run[at]["type"] == run[at + 1]["type"] == "message.assistant":
            payload["blocks"] = payload.get("blocks", []) + run.pop(at + 1)["payload"].get("blocks", [])

    def part(self, run, at, payload):
        if len(payload.get("blocks", [])) > 1:
            rest = copy.deepcopy(run[at])
            payload["blocks"], rest["payload"]["blocks"] = payload["blocks"][:1], payload["blocks"][1:]
            run.insert(at + 1, rest)

    def count(self, run, at, payload):
        if run[at]["type"] != "message.assistant":
            return
        payload["response"] = self.dice.choice([payload.get("response"), 1, 2, "r1", None])
        payload["thread_tokens"] = self.dice.choice([None, {"all": 1}, {"all": 2}])
        if isinstance(payload.get("usage"), dict):
            payload["usage_scope"] = self.dice.choice(["process", "turn", "session", "response", "other", 5])
            payload["final"] = self.dice.choice([True, False])
            payload["usage"] = {name: self.dice.choice([0, 5, 7]) for name in payload["usage"]}

    def answer(self, _, __, payload):
        if "outcome" in payload:
            payload["outcome"] = self.dice.choice(["ok", "failed", "denied", "interrupted", "unknown"])
        if payload.get("kind") == "approval" and payload.get("result"):
            payload["result"]["decision"] = self.dice.choice(["allowed", "denied", "timeout"])

    def begin_turn(self, run, at, _):
        payload = {"kind": "turn", "name": "turn"} | self.dice.choice([{}, {"turn_id": "t1"}, {"turn_id": "t2"}])
        run.insert(at, run[at] | {"type": "step.started", "path": self.dice.choice(self.paths), "payload": payload})

    def infer_time(self, run, at, _):
        run[at]["ts_inferred"] = True


def draft_of(event):
    """An event as it is recorded anew; all runs are of the first one's session."""
    kept = {name: value for name, value in event.items() if name not in ("seq", "run_id", "parent_run_id")}
    return json.dumps(kept | {"session_run_id": run_id(1)}) + "\n"


def check_changed_runs(program, work, cases, seed):
    """Two implementations of one page agree on sessions whose records are odd."""
    sources = [source for _, *both in captures() for source in both]
    sessions = read_sessions(program, work / "unchanged/store", sources)
    several = [runs for runs in sessions if len(runs) > 1]

    def check_one(number):
        dice = random.Random(f"{seed} {number}")
        runs = dice.choice(several or sessions)
        chosen = Changes(dice, [dice.choice(runs) for _ in range(dice.choice([2, 2, 3]))]).make()
        check = Check(program, work / f"changed-{number}/store", [])
        check.store.parent.mkdir()
        for name, run in enumerate(chosen, 1):
            run_steno(program, check.store, "record", "--run", run_id(name), input="".join(map(draft_of, run)))
        try:
            check.turns = len(check.make_receipts())
        except Violation as violation:
            raise Violation(f"changed runs {number} of seed {seed}: {violation}") from None
        return check

    with ThreadPoolExecutor(STORES_AT_A_TIME) as pool:
        done = list(pool.map(check_one, range(cases)))
    turns, checks = sum(check.turns for check in done), sum(check.checks for check in done)
    print(f"changed runs: ok, {turns} turns in {cases} sessions, {checks} checks", flush=True)
