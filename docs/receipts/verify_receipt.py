#!/usr/bin/env python3
"""Check a receipt of steno without steno: a second implementation of README.md.

    verify_receipt.py RECEIPT --transcript FILE [--transcript FILE ...]
    verify_receipt.py RECEIPT --lines FILE

It makes every field of the receipt anew, from the transcripts of its runs or from the lines that `steno receipt lines`
prints, and compares fields and bytes. Exit code 0: it holds. 1: it does not, and the first field that differs is named. 2: the
input cannot be used. Python 3.11, nothing but the standard library.
"""

import argparse
import datetime
import hashlib
import json
import pathlib
import re
import sys
from collections import namedtuple
from dataclasses import dataclass, field
from itertools import zip_longest

SCHEMA = "codewhale.conformance-receipt/v0"
CLAIMS = ["local_receipt_only", "not_safety_certification", "not_provider_compatibility_certification"]


def flags(true, false):
    return dict.fromkeys(true.split(), True) | dict.fromkeys(false.split(), False)


AUTO_BY_POLICY = flags("never", "untrusted on-request on-failure onRequest onFailure")
AUTO_BY_MODE = flags("bypassPermissions", "default plan acceptEdits")
TRUST = flags("danger-full-access dangerFullAccess", "workspace-write workspaceWrite read-only readOnly")
ANSWERS = flags("allowed allow approve approved", "denied deny reject rejected")
CACHE = set("""cache_read_input_tokens cache_creation_input_tokens cacheReadInputTokens cacheCreationInputTokens
    cached_input_tokens cache_write_input_tokens cachedInputTokens cacheWriteInputTokens prompt_cache_hit_tokens
    prompt_cache_miss_tokens cacheReadTokens cacheWriteTokens""".split())
EFFECTS = {"approval_required_count": "approvals", "approval_allowed_count": "approvals",
           "approval_denied_count": "approvals", "command_execution_count": "calls", "file_change_count": "calls",
           "sandbox_denied_count": "sandbox denials"}
CLASSES = {"command_execution_count": "command", "file_change_count": "file_change"}
WHO = "router", "agent_emitted"
LAST_STOPS = ("end_turn", "stop_sequence", "max_tokens", "refusal", "stop", "length", "content_filter", "completed",
              "max_output_tokens", "STOP", "MAX_TOKENS", "content-filter")
COUNT_LIMIT = 2 ** 64
TIME = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})[Tt]([01][0-9]|2[0-3]):([0-5][0-9]):([0-5][0-9]|60)"
                  r"(?:\.([0-9]{1,9}))?(?:[Zz]|([+-])([01][0-9]|2[0-3]):([0-5][0-9]))")
# 0000-01-01T00:00:00Z and 9999-12-30T22:00:00.999Z, as `milliseconds` counts.
TIMES = 12_591_244_800_000, 328_160_671_200_999


class BadInput(Exception):
    """A file that cannot be used: exit code 2."""


class Differs(Exception):
    """The first field that does not follow from the record, with both values: exit code 1."""


@dataclass(frozen=True)
class Number:
    """A number as it stands in the text: one that went through a float would not be the same."""
    text: str


ABSENT = Number("(absent)")  # null is a value, and something else


# --- JSON: Python's parser does most of it, but what `usage` says has to keep its bytes -------------------------------

def read_json(text, what):
    """Parse UTF-8 bytes or text. Of a name that comes twice the last value counts."""
    def refuse(constant):
        raise ValueError(f"{constant} is not JSON")
    try:
        text = mend(text.decode() if isinstance(text, bytes) else text)
        return json.loads(text, parse_int=Number, parse_float=Number, parse_constant=refuse)
    except ValueError as error:
        raise BadInput(f"{what}: {error}") from None


def mend(text):
    """Half of a surrogate pair is no character: it becomes U+FFFD. All other escapes stay."""
    pair_half_or_other = r"\\u[dD][89abAB]XX\\u[dD][c-fC-F]XX|(\\u[dD][89a-fA-F]XX)|\\.".replace("X", "[0-9a-fA-F]")
    return re.sub(pair_half_or_other, lambda match: r"\ufffd" if match[1] else match[0], text)


def word(*values):
    """The first one that is text, or None: what is no text is not there."""
    return next((value for value in values if isinstance(value, str)), None)


def inside(value, *names):
    """A field of a field of something that may be no object at all."""
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def count(value):
    """A whole number below 2^64, or None."""
    is_whole = isinstance(value, Number) and re.fullmatch("0|[1-9][0-9]{0,19}", value.text)
    return int(value.text) if is_whole and int(value.text) < COUNT_LIMIT else None


def member(text, name):
    """The text of the last value of that name, in the text of a JSON object that is known to be good."""
    decoder, gap = json.JSONDecoder(parse_int=str), re.compile(r"[\s,:]*")
    found, at = None, text.index("{") + 1
    while text[at := gap.match(text, at).end()] != "}":
        key, at = decoder.raw_decode(text, at)
        start = gap.match(text, at).end()
        at = decoder.raw_decode(text, start)[1]
        found = text[start:at] if key == name else found
    return found


def lay_out(text):
    """JSON text in the receipt's layout: numbers stand for its tokens meanwhile, and names that come twice stay two."""
    tokens = []
    token = r'"(?:[^"\\]|\\.)*"|[^][{}:,"\s]+'
    numbered = re.sub(token, lambda match: tokens.append(match[0]) or f'"{len(tokens)}"', text)
    laid_out = json.dumps(json.loads(numbered), indent=2)
    return re.sub(r'"([0-9]+)"', lambda number: tokens[int(number[1]) - 1], laid_out)


# --- Events -----------------------------------------------------------------------------------------------------------

class Event(namedtuple("Event", "seq run type path time payload line record")):
    def kind(self):
        return word(self.payload.get("kind")) if self.type in ("step.started", "step.completed") else None

    def is_end(self):
        return self.type.endswith(".completed")

    def blocks(self):
        blocks = self.payload.get("blocks")
        return [block if isinstance(block, dict) else {} for block in blocks] if isinstance(blocks, list) else []

    def text_of(self, name):
        """A field of the payload as the line has it."""
        return member(member(self.line.decode(), "payload"), name)


def read_events(data, name):
    """The events of a file. Bytes after the last newline are no line."""
    events = []
    for line in data.split(b"\n")[:-1]:
        record = read_json(line, f"{name}, line {len(events) + 1}")
        texts = [word(inside(record, field)) for field in ("run_id", "type", "path", "timestamp")]
        seq, payload = count(inside(record, "seq")), inside(record, "payload")
        if None in texts or not seq:
            raise BadInput(f"{name}, line {len(events) + 1}: not an event with seq, run_id, type, path and timestamp")
        events.append(Event(seq, *texts, payload if isinstance(payload, dict) else {}, line, record))
    return events


def upwards(path):
    """A path and all above it, nearest first; cut at dots that no backslash precedes."""
    dots = [dot.start() for dot in re.finditer(r"(?<!\\)\.", path)]
    return [path[:end] for end in [len(path)] + dots[::-1]]


def nearest(path, known):
    """The longest beginning of a path that is known, or None."""
    return next((prefix for prefix in upwards(path) if prefix in known), None)


def error_of(payload):
    """Why something failed, or None: null, false and the empty string are how writers say that nothing did."""
    error = payload.get("error")
    return None if error is None or error is False or error == "" else error


class Run:
    """One run: its events, and what its beginnings say."""

    def __init__(self, events):
        self.events, self.id = events, events[0].run
        self.starts = [event for event in events if event.type == "run.started"]
        sources = [inside(event.payload, "source") for event in self.starts]
        self.channel = word(*(inside(source, "channel") for source in sources))
        self.adapter = word(inside(sources[0], "adapter")) if sources else None
        self.session = word(inside(events[0].record, "session_run_id"))

    def carries(self, last):
        """What its source said last, up to an event, that it tells of; None if it does not say."""
        said = [inside(start.payload, "source", "carries") for start in self.starts if start.seq <= last]
        return said[-1] if said and isinstance(said[-1], list) else None


# --- Several runs as one, by the provider's ids -----------------------------------------------------------------------

class Node:
    """An event of the session, and what later runs say of the same fact."""

    def __init__(self, run, event, path):
        self.run, self.event, self.path, self.again, self.next = run, event, path, [], None
        self.is_branch = False


# The ids that tie a fact to one of another run, whether it is added where they do not, and ids by which only later runs
# find it.
Ids = namedtuple("Ids", "own stands_alone of_parts", defaults=[()])


def ids_of(event, turn, counts):
    """What a fact is known by in other runs."""
    def numbered(*key):
        counts[key] = counts.get(key, 0) + 1
        return (*key, counts[key])

    def by_call(*what, apart=""):  # the n-th in its turn, and the n-th in its run
        in_turn = [("turn of", turn, *what, numbered("in turn", turn, apart, *what)[-1])] if turn else []
        return in_turn + [(*what, numbered("in run", apart, *what)[-1])]

    payload, call = event.payload, word(event.payload.get("tool_call_id"))
    message, kind = word(payload.get("id")), event.kind()
    known = [] if message is None else [("message", message)]
    if event.type == "message.user":
        return Ids(known, False)
    if event.type == "message.assistant":
        return ids_of_words(event, known, numbered, by_call)
    if event.type in ("tool.call", "tool.result"):
        call, who = word(payload.get("call_id")), word(payload.get("fidelity"), "")
        return Ids([], False) if call is None else Ids(by_call(event.type, call, apart=who), True)
    if event.type in ("step.call_workflow.started", "step.call_workflow.completed"):
        child = word(inside(event.record, "child_run_id"))
        known = [] if child is None else [("child", child, event.is_end())]
        known += [] if call is None else by_call("child of", call, event.is_end())
        return Ids(known, bool(known))
    if kind == "turn":
        return Ids([("turn", turn, event.is_end())], True)
    if kind == "approval" and call is not None:
        return Ids(by_call("approval", call, event.is_end()), True)
    if kind == "amend" and call is not None:
        return Ids([numbered("amend", call, event.text_of("result"))], True)
    return Ids([], False)


def ids_of_words(event, known, numbered, by_call):
    """The ids of what the model said. A record that asks for calls and nothing else is known by these calls."""
    blocks, response = event.blocks(), word(event.payload.get("response"))
    if not blocks:
        return Ids([] if response is None else [("usage", response)], False)
    words = tuple(word(block.get(name)) or "" for block in blocks
                  for name in ("type", "text", "thinking", "tool_id", "command"))
    if response is not None:
        known.append(numbered("response", response, words))
    calls = [word(block.get("tool_id")) if block.get("type") == "tool_use" else None for block in blocks]
    if None in calls:
        parts = [key for call in calls if call is not None and len(blocks) > 1 for key in by_call("use", call)]
        return Ids(known, False, parts)
    together = by_call("use", *calls)
    each = [key for call in calls if len(calls) > 1 for key in by_call("use", call)]
    return Ids(known + together + each, True)


def texts_of(event):
    """Who says what, of a message that has texts; else None."""
    blocks = event.blocks() if event.type in ("message.user", "message.assistant") else []
    texts = tuple(word(block.get("text")) or "" for block in blocks if block.get("type") == "text")
    return (event.type, texts) if any(texts) else None


def first_text_of(event):
    """The first text of a prompt of several blocks: the others may be the files that it names."""
    blocks = event.blocks() if event.type == "message.user" else []
    text = word(blocks[0].get("text")) if len(blocks) > 1 else None
    return (event.type, (text,)) if text else None


def is_answer(event):
    """Whether the model says or thinks something in it; calls alone are no answer."""
    return event.type == "message.assistant" and any(
        block.get("type") != "tool_use" or word(block.get("tool_id")) is None for block in event.blocks())


MAY_RETURN = "tool.call", "tool.result", "approval", "use", "child of"  # an agent may use the id of a call again


class Place(namedtuple("Place", "path is_own is_alike")):
    """Where a turn of a run stands in the session: whether no run before has it, or one has only its texts."""


class Line:
    """The facts of all runs in one order: that of the first run."""

    def __init__(self, runs):
        self.nodes, self.known, self.turn_of_id, self.paths, self.turn_ids = [], {}, {}, set(), {}
        self.has_id = set()  # the turns whose provider's id is known
        self.turns_with = {}  # the turns that have a text
        self.answered = set()  # the turns in which the model said something
        for event in runs[0].events:
            if event.type == "step.started" and event.kind() == "turn":
                self.name_turn(event, event.path)
        counts = {}
        for event in runs[0].events:
            turn = nearest(event.path, self.paths)
            node = Node(0, event, event.path)
            if self.nodes:
                self.nodes[-1].next = node
            self.nodes.append(node)
            self.learn(ids_of(event, turn or "", counts), turn, node)
        for number, run in enumerate(runs[1:], 1):
            if run.channel != "exec":  # it counts its items, and its ids mean nothing elsewhere
                self.add(number, run)

    def name_turn(self, start, path):
        self.paths.add(path)
        turn_id = word(start.payload.get("turn_id"))
        if turn_id is not None:
            self.turn_ids.setdefault(turn_id, path)
            self.has_id.add(path)

    def find(self, ids, turn):
        """The node of one of these ids. That of a call which another turn has is another call's."""
        for key in ids.own:
            elsewhere = key[0] in MAY_RETURN and turn is not None and self.turn_of_id.get(key, turn) != turn
            if key in self.known and not elsewhere:
                return self.known[key]
        return None

    def learn(self, ids, turn, node, is_new=True):
        for key in [*ids.own, *ids.of_parts]:
            self.known.setdefault(key, node)
            if turn is not None:
                self.turn_of_id.setdefault(key, turn)
        if not is_new or turn is None:
            return
        for texts in filter(None, (texts_of(node.event), first_text_of(node.event))):
            self.turns_with.setdefault(texts, []).append(turn)
        if is_answer(node.event):
            self.answered.add(turn)

    def place_turns(self, run):
        """Where each turn of a run stands in the session."""
        starts, places = {}, {}
        for event in run.events:
            if event.type == "step.started" and event.kind() == "turn":
                starts.setdefault(event.path, event)
        turn_ids = {path: word(start.payload.get("turn_id")) for path, start in starts.items()}
        for path, turn_id in turn_ids.items():
            if turn_id in self.turn_ids:
                places[path] = Place(self.turn_ids[turn_id], False, False)
        self.place_by_facts(run, starts, turn_ids, places)
        self.place_by_texts(run, turn_ids, places)
        for path, start in starts.items():
            if path not in places:
                free = f"{path}@{run.channel or 'other'}"
                names = [path, free] + [f"{free}-{n}" for n in range(2, len(self.paths) + 3)]
                own = next(name for name in names if name not in self.paths)
                places[path] = Place(own, True, False)
                self.name_turn(start, own)
        return places

    def place_by_facts(self, run, starts, turn_ids, places):
        """By the first id that a run before has too. Turns with different ids are two turns."""
        counts = {}
        for event in run.events:
            path, ids = nearest(event.path, starts), ids_of(event, "", counts).own
            if path is None or path in places:
                continue
            ids = [key for key in ids if key[0] not in MAY_RETURN or (*key[:-1], 2) not in self.known]
            known = next((self.turn_of_id[key] for key in ids if key in self.turn_of_id), None)
            if known is not None and not (known in self.has_id and turn_ids[path] is not None):
                self.name_turn(starts[path], known)
                places[path] = Place(known, False, False)

    def place_by_texts(self, run, turn_ids, places):
        """By the texts of its messages without an id: those before have all of them in one turn, or its first prompt in a
        turn without an answer. That is no proof."""
        like, asked = {}, {}
        for event in run.events:
            path, texts = nearest(event.path, turn_ids), texts_of(event)
            if path is None or path in places or turn_ids[path] is not None:
                continue
            if texts and word(event.payload.get("id")) is None:
                with_texts = self.turns_with.get(texts, [])
                like[path] = [turn for turn in like.get(path, with_texts) if turn in with_texts]
                if event.type == "message.user":
                    asked.setdefault(path, [turn for turn in with_texts if turn not in self.answered])
        taken = {place.path for place in places.values()}
        for path in turn_ids:
            found = [turn for turn in asked.get(path, []) + like.get(path, []) if turn not in taken]
            if found:
                taken.add(found[-1])
                places[path] = Place(found[-1], False, True)

    def add(self, number, run):
        places, counts, last, facts = self.place_turns(run), {}, self.nodes[0], []
        for event in run.events:
            if event.type in ("run.started", "run.completed"):
                continue
            begun = nearest(event.path, places)
            place = None if begun is None else places[begun]
            path = event.path if begun is None else place.path + event.path[len(begun):]
            turn = nearest(path, self.paths)
            ids = ids_of(event, turn or "", counts)
            facts.append((event, path, turn, ids, self.find(ids, turn), place is not None and place.is_alike))
        own = {place.path for place in places.values() if place.is_own}
        now, in_turn = None, {}  # the turn that began last, and the last fact of each turn
        added = []  # for each fact, the node that it adds, or None
        for event, path, turn, ids, node, is_alike in facts:
            if event.type == "step.started" and event.kind() == "turn":
                now = turn
            before = last if turn is None else in_turn.get(turn) or self.known.get(("turn", turn, False)) or last
            is_new = node is None and (turn is None or turn in own or ids.stands_alone)
            if is_alike or not node and not is_new:
                is_usage = event.type == "message.assistant" and "usage" in event.payload
                before.again.append((number, event, path, is_alike or not is_usage))
                continue
            if is_new:
                node = Node(number, event, path)
                node.next, before.next = before.next, node
            else:
                node.again.append((number, event, path, False))
                node.is_branch &= run.channel == "disk"
            self.learn(ids, turn, node, is_new)
            added.append(node if is_new else None)
            if turn is not None:
                in_turn[turn] = node
            if turn is None or now is None or turn == now:
                last = node
        if run.channel == "disk" and None in added:
            self.cut_branch(number, added[len(added) - added[::-1].index(None):])

    def cut_branch(self, number, tail):
        """What a copy of the agent's file has at its end, where the session goes on in another way."""
        words = "message.user", "message.assistant", "tool.call"
        if not any(node.event.type in words for node in tail):
            return
        after = tail[-1].next
        while after and (after.run == number or after.is_branch):
            after = after.next
        for node in tail if after else ():
            node.is_branch = True

    def __iter__(self):
        """Every event with its run, its path in the session, whether it is told again, and whether it is left out."""
        node = self.nodes[0]
        while node:
            if not node.is_branch:
                yield node.run, node.event, node.path, False, False
                for run, event, path, is_left_out in node.again:
                    yield run, event, path, True, is_left_out
            node = node.next


# --- The session ------------------------------------------------------------------------------------------------------

@dataclass
class Result:
    run: int = None
    is_router: bool = False
    outcome: str = None
    error: object = None
    is_routers_outcome: bool = None  # whose word the outcome is, where that is another one's

    def rank(self):
        """How much its outcome counts: the largest wins, whatever comes first."""
        is_router = self.is_router if self.is_routers_outcome is None else self.is_routers_outcome
        if self.outcome is None:
            return (3, is_router, 1) if self.error is not None else (0,)
        if self.outcome == "ok" and is_router:
            return (5,)
        words = {"ok": 0, "failed": 2, "interrupted": 3}
        if self.outcome in words:
            return 3, is_router, words[self.outcome]
        return ({"unknown": 1, "denied": 4}.get(self.outcome, 2),)

    def refine(self, other):
        """Takes the outcome of another one that counts more."""
        if other.rank() > self.rank():
            whose = other.is_router if other.is_routers_outcome is None else other.is_routers_outcome
            self.is_routers_outcome, self.outcome = whose, other.outcome
            self.error = other.error if self.error is None else self.error


@dataclass
class Call:
    """A call, from whatever tells of it."""
    id: str
    turn: object
    is_made: bool = False
    kind: str = None
    result: Result = None
    is_answered: bool = False
    is_amended: bool = False
    approvals: list = field(default_factory=list)
    reports: list = field(default_factory=list)
    told: dict = field(default_factory=dict)  # which reports each run has of it

    def whose(self, report, run):
        """`own` if the run has told of it, and not yet in this way; `others` if only other runs have; else None."""
        return "others" if run not in self.told else "own" if report not in self.told[run] else None

    def answer(self, found):
        self.is_answered, known = True, self.result
        if known is None:
            self.result = found
        elif (known.run == found.run and (found.is_router or not known.is_router)
              or found.is_router and not known.is_router):
            self.result = found
            found.refine(known)
        else:
            known.refine(found)

    def outcome(self):
        if self.result is None or not (self.is_answered or self.is_amended):
            answers = [ANSWERS.get(approval.decision) for approval in self.approvals]
            return "denied" if False in answers and True not in answers else "open"
        if self.result.outcome in ("denied", "interrupted", "failed", "ok"):
            return self.result.outcome
        return "failed" if self.result.outcome is None and self.result.error is not None else "unknown"

    def effect(self):
        """`command` or `file_change` if it was carried out, `open` if that is not known, else None."""
        outcome = self.outcome()
        if self.kind not in ("command", "file_change") or outcome == "denied":
            return None
        if outcome == "open" or self.kind == "file_change" and outcome == "unknown":
            return "open"
        return self.kind if self.kind == "command" or outcome == "ok" else None


@dataclass
class Approval:
    run: int
    turn: object
    call: Call
    is_asked: bool
    decision: str
    reports: list = field(default_factory=list)

    def refine(self, other):
        """The first answer counts that is a yes or a no."""
        self.is_asked |= other.is_asked
        if self.decision not in ANSWERS and (self.decision is None or other.decision in ANSWERS):
            self.decision = other.decision


class Turn:
    def __init__(self, name, path, run, event):
        self.name, self.path, self.run, self.seq, self.started_at = name, path, run, event.seq, event.time
        self.settings, self.model, self.runs, self.ended_in = event.payload.get("settings"), None, [run], []
        self.has_settings = "settings" in event.payload
        self.events, self.left_out, self.others, self.thoughts = [], [], [], []
        self.status, self.ended_by, self.ended_at, self.error = "in_progress", None, None, None
        self.is_end_inferred = False
        self.last, self.last_error, self.said, self.reports = None, None, None, {}
        self.sandbox_denials = 0

    def fact(self, event, is_again):
        """A message, call, result, approval, compaction or error is the last fact of the turn until the next one."""
        self.last_error = None
        if not is_again and (event.record.get("ts_inferred") is not True or self.last is None):
            self.last = event.time

    def say(self, run, event):
        """A record of the model's; those with one `response` are one, and one without is its own."""
        response, blocks = event.payload.get("response"), event.blocks()
        key = None if response is None else (isinstance(response, str) or run, event.text_of("response"))
        is_same = self.said is not None and key is not None and self.said["key"] == key
        if not is_same and not blocks:
            return
        if not is_same:
            self.said = {"key": key, "stop": None, "model": None, "has_words": False}
        self.said["stop"] = word(event.payload.get("stop_reason"), self.said["stop"])
        self.said["model"] = word(event.payload.get("model"), self.said["model"])
        self.said["has_words"] |= any(block.get("type") != "thinking" for block in blocks)

    def end(self, run, event, is_again):
        self.ended_in.append(run)
        if self.ended_by and is_again:
            return
        self.error, self.ended_at = error_of(event.payload), event.time
        self.is_end_inferred = event.record.get("ts_inferred") is True
        self.status = "completed" if self.error is None else (
            "interrupted" if self.error in ("interrupted", "aborted") else "failed")
        ended_by = event.payload.get("ended_by")
        self.ended_by = ended_by if ended_by in ("prompt", "interrupt") else "record"

    def judge(self, is_waiting):
        """What the record leaves open: the end of a turn that the next prompt ended, and of one that is the last."""
        said = self.said or {"stop": None, "model": None, "has_words": False}
        is_last_word = said["stop"] in LAST_STOPS and said["model"] != "<synthetic>" and said["has_words"]
        if self.is_end_inferred:
            self.ended_at = self.last or self.ended_at
        if self.ended_by == "prompt" and self.error is None:
            self.ended_at = self.last or self.ended_at
            if is_waiting or self.last_error is not None:
                self.status = "interrupted" if is_waiting else "failed"
        elif self.ended_by is None and is_last_word and not is_waiting and self.last_error is None:
            self.status, self.ended_at = "completed", self.last

    def seqs(self, run):
        return [seq for number, seq in self.events + self.left_out if number == run]


class Session:
    """The runs of a session folded into turns, calls and approvals."""

    def __init__(self, runs):
        self.runs, self.turns, self.at, self.calls, self.approvals = runs, [], {}, [], []
        self.by_id, self.counts, self.asked, self.sandboxes = {}, {}, {}, {}
        self.id = word(*(run.session for run in runs), runs[0].id)
        for run, event, path, is_again, is_left_out in Line(runs):
            begun = nearest(path, self.at)
            turn = None if begun is None else self.at[begun]
            if is_left_out:
                turn and turn.left_out.append((run, event.seq))
                continue
            turn = self.take(run, event, path, turn, is_again)
            turn and turn.events.append((run, event.seq))
        for told in self.calls + self.approvals:
            for turn in {id(turn): turn for turn, _ in told.reports if turn}.values():
                turn.others += [at for other, at in told.reports if other is not turn]
        for turn in self.turns:
            turn.judge(any(call.turn is turn and not call.is_answered for call in self.calls))

    def take(self, run, event, path, turn, is_again):
        """Fold one event; returns its turn."""
        kind, here = event.kind(), (run, event, turn, is_again)
        if kind == "turn":
            return self.take_turn(run, event, path, turn, is_again)
        if event.type == "message.user" and not is_again:
            self.take_prompt(*here)
        elif event.type == "message.assistant":
            self.take_words(path, *here)
        elif event.type in ("tool.call", "tool.result"):
            self.take_call(*here)
        elif kind == "approval":
            self.take_approval(*here)
        elif kind == "amend":
            self.take_amendment(*here)
        elif kind in ("compaction", "error") and turn:
            turn.fact(event, is_again)
            if kind == "error":
                error = error_of(event.payload)
                turn.last_error = word(event.payload.get("name")) if error is None else error
        elif kind == "sandbox" and not is_again:
            key = path, word(event.payload.get("name"), "")
            turn_of_denial = self.sandboxes.pop(key, turn) if event.is_end() else turn
            if not event.is_end():
                self.sandboxes[key] = turn
            elif turn_of_denial:
                turn_of_denial.sandbox_denials += 1
        return turn

    def take_turn(self, run, event, path, around, is_again):
        turn = self.at.get(path)
        if turn is None and is_again:
            return around
        if turn is None or not (event.is_end() or is_again):
            name = f"{path}@{event.seq}" if path in self.at else path
            turn = self.at[path] = Turn(name, path, run, event)
            self.turns.append(turn)
        elif not event.is_end():
            turn.runs += [run] if run not in turn.runs else []
            if not turn.has_settings and "settings" in event.payload:
                turn.settings, turn.has_settings = event.payload["settings"], True
        if event.is_end():
            turn.end(run, event, is_again)
        return turn

    def take_prompt(self, run, event, turn, is_again):
        blocks = event.blocks()
        said = [block for block in blocks if not self.is_answer(block, run, event, turn)
                and block.get("label") != "system_prompt"]
        if turn and (said or not blocks):
            turn.fact(event, is_again)

    def take_words(self, path, run, event, turn, is_again):
        payload = event.payload
        if turn:
            if turn.model is None and path == turn.path:
                turn.model = word(payload.get("model"))
            turn.reports.setdefault(run, []).append(event)
            if not is_again:
                turn.say(run, event)
                if event.blocks():
                    turn.fact(event, is_again)
        for n, block in enumerate(event.blocks()):
            if not is_again and self.is_answer(block, run, event, turn):
                continue
            if block.get("type") == "tool_use":
                who = block.get("fidelity")
                self.report(word(block.get("tool_id")), "use", who, run, event, turn).is_made = True
            elif block.get("type") == "thinking" and turn and not is_again:
                turn.thoughts.append((run, event.seq, n, word(block.get("thinking"))))

    def is_answer(self, block, run, event, turn):
        """A result in a message, as writers without `tool.result` have it."""
        call = self.last_call(word(block.get("tool_id")), turn) if block.get("type") == "tool_result" else None
        if not call:
            return False
        call.reports.append((turn, (run, event.seq)))
        if call.result is not None:
            return False
        call.result, call.is_answered = Result(None, block.get("fidelity") == "router"), True
        call.turn and call.turn.fact(event, False)
        return True

    def report(self, call_id, what, who, run, event, turn):
        """The call that a report is about: the first in its turn that has no such report of its run, else elsewhere."""
        calls, report = self.by_id.setdefault(call_id, []), (what, who if who in WHO else None)
        call = None if call_id is None else self.find_call(calls, report, run, turn)
        if call is None:
            call = Call(call_id, turn)
            self.calls.append(call)
            calls.append(call)
        call.told.setdefault(run, set()).add(report)
        call.reports.append((turn, (run, event.seq)))
        return call

    @staticmethod
    def find_call(calls, report, run, turn):
        is_anywhere = report[0] == "tool.result" or turn is None
        if len(calls) == 1:
            is_near = is_anywhere or calls[0].turn is None or calls[0].turn is turn
            return calls[0] if is_near and calls[0].whose(report, run) else None
        near = [call for call in calls if call.turn is turn]
        elsewhere = calls if is_anywhere else [call for call in calls if call.turn is None]
        for scope in near, elsewhere:
            for whose in "own", "others":
                found = next((call for call in scope if call.whose(report, run) == whose), None)
                if found:
                    return found
        return None

    def last_call(self, call_id, turn):
        """The last call with an id: of the turn, if it has one."""
        calls = (None if call_id is None else self.by_id.get(call_id)) or [None]
        return next((call for call in reversed(calls) if call and call.turn is turn), calls[-1])

    def take_call(self, run, event, turn, is_again):
        payload, is_result = event.payload, event.type == "tool.result"
        call = self.report(word(payload.get("call_id")), event.type, payload.get("fidelity"), run, event, turn)
        call.kind = word(payload.get("class")) if call.kind is None else call.kind
        if is_result:
            is_router, outcome = payload.get("fidelity") == "router", word(payload.get("outcome"))
            call.answer(Result(run, is_router, outcome, error_of(payload)))
        else:
            call.is_made |= payload.get("input_available") is not False or bool(word(payload.get("name")))
        fact_of = call.turn if is_result else turn
        fact_of and fact_of.fact(event, is_again)

    def take_amendment(self, run, event, turn, is_again):
        call = self.last_call(word(event.payload.get("tool_call_id"), event.payload.get("name")), turn)
        facts = event.payload.get("result")
        if not call:
            return
        facts = facts if isinstance(facts, dict) else {}
        call.result, call.is_amended = call.result or Result(), True
        call.result.outcome = word(facts.get("outcome"), call.result.outcome)
        error = error_of(facts)
        call.result.error = call.result.error if error is None else error
        call.reports.append((turn, (run, event.seq)))

    def take_approval(self, run, event, turn, is_again):
        turn and turn.fact(event, is_again)
        call_id = word(event.payload.get("tool_call_id"))
        call = self.last_call(call_id, turn)
        decision = word(inside(event.payload, "result", "decision"))
        found = Approval(run, turn, call, not event.is_end(), decision)
        key = run, word(event.payload.get("name"), "")
        if found.call:
            found.call.reports.append((turn, (run, event.seq)))
        known = self.asked.get(key) if event.is_end() else None
        if known is None and found.call:  # the n-th question of a run about a call is the n-th of another
            place = id(found.call), run
            self.counts[place] = self.counts.get(place, 0) + 1
            known = dict(enumerate(found.call.approvals, 1)).get(self.counts[place])
        if known is None and found.call is None and is_again:
            return
        if known is not None:
            known.refine(found)
        else:
            known = found
            self.approvals.append(found)
            found.call and found.call.approvals.append(found)
        known.reports.append((turn, (run, event.seq)))
        if not event.is_end():
            self.asked[key] = known

    def turn(self, name):
        found = [turn for turn in self.turns if turn.name == name]
        if len(found) != 1:
            raise Differs("turn.id", name, ABSENT)
        return found[0]

    def lines_of(self, turn):
        """What tells of the turn and its calls, and what tells which turn and session it is."""
        in_turn = turn.events + turn.left_out
        lines = set(in_turn + turn.others)
        for number, run in enumerate(self.runs):
            lines.add((number, run.events[0].seq))
            if own := turn.seqs(number):
                lines |= {(number, start.seq) for start in run.starts if start.seq <= max(own)}
        for other in self.turns:
            is_before = other.seq <= max((seq for run, seq in lines if run == other.run), default=0)
            if is_before and turn.path in upwards(other.path) or turn.path.startswith(other.path + "@"):
                lines.add((other.run, other.seq))
        events = [{event.seq: event for event in run.events} for run in self.runs]
        return [[events[n][seq] for run, seq in sorted(lines) if run == n] for n in range(len(self.runs))]


# --- The fields, in the order of the receipt --------------------------------------------------------------------------

def thread_fields(session, turn):
    settings = turn.settings
    mode = word(inside(settings, "permission_mode"), inside(settings, "mode"))
    policy = word(inside(settings, "approval_policy"))
    sandbox = inside(settings, "sandbox_policy")
    return {"id": session.id, "model": word(inside(settings, "model"), turn.model), "mode": mode,
            "auto_approve": AUTO_BY_POLICY.get(policy, AUTO_BY_MODE.get(mode)),
            "trust_mode": TRUST.get(word(sandbox, inside(sandbox, "type"), inside(sandbox, "mode"))),
            "allow_shell": None}


def milliseconds(time):
    """A time of RFC 3339 in whole milliseconds, or None if it is none. A leap second counts as the one before."""
    match = TIME.fullmatch(time)
    if not match:
        return None
    year, month, day, hour, minute, second, fraction, sign, zone_hour, zone_minute = match.groups("0")
    try:  # Python knows no year 0, but the calendar repeats itself after 400 years
        days = datetime.date(int(year) % 400 + 400, int(month), int(day)).toordinal() + int(year) // 400 * 146097
    except ValueError:
        return None
    hours, minutes = int(hour) - int(sign + zone_hour), int(minute) - int(sign + zone_minute)
    result = ((days * 24 + hours) * 60 + minutes) * 60_000 + min(int(second), 59) * 1000 + int(f"{fraction}00"[:3])
    return result if TIMES[0] <= result <= TIMES[1] else None


def turn_fields(turn):
    times = milliseconds(turn.started_at), milliseconds(turn.ended_at or "")
    duration = times[1] - times[0] if None not in times and times[0] <= times[1] else None
    return {"id": turn.name, "status": turn.status, "started_at": turn.started_at, "ended_at": turn.ended_at,
            "duration_ms": duration}


def does_not(carries):
    return "does not carry" if carries is not None else "does not say whether it carries"


def reasoning_fields(turn, channels):
    """Thoughts by their hashes: their text is never in a receipt."""
    items = []
    for run, seq, n, text in turn.thoughts:
        name = f"item-run{run + 1}-{seq}" if run else f"item-{seq}"
        items.append({"id": f"{name}-{n}" if n else name, "sha256": sha256(text.encode()).hex() if text else None})
    carries = channels[0].carries if channels else None
    available = bool(items) or "thinking" in (carries or [])
    return {"raw_reasoning_exported": False, "available": available,
            "reason": None if available else f"the source {does_not(carries)} reasoning",
            "item_count": len(items) if available else None, "items": items}


def tool_fields(calls):
    return {"tool_call_count": sum(call.is_made for call in calls),
            "tool_result_count": sum(call.is_answered for call in calls),
            "unmatched_tool_call_ids": [call.id or "" for call in calls if call.is_made and not call.is_answered],
            "unmatched_tool_result_ids": [call.id or "" for call in calls if call.is_answered and not call.is_made]}


def usage_in(events):
    """What one run says that a turn used: how well it knows it, the sum, its own report, whether there may be more."""
    own, responses, final, with_id, total = None, {}, set(), set(), {}
    for event in events:
        usage, scope = event.payload.get("usage"), word(event.payload.get("usage_scope"), "response")
        if not isinstance(usage, dict) or scope not in ("response", "turn"):  # others cover more than the turn
            continue
        if scope == "turn":
            own = event.text_of("usage")
            continue
        key = response_of(event)
        if key[0] == "response" and isinstance(event.payload["response"], str):
            with_id.add(key)
        counts = responses.setdefault(key, {})
        for name, value in usage.items():  # a name has its place even if its value is no count
            counts[name] = max(counts.get(name, -1), -1 if count(value) is None else count(value))
        if event.payload.get("final") is True:
            final.add(key)
    all_final = len(final) == len(responses)
    if own and responses and not any(count(value) for value in read_json(own, "usage").values()):
        own = None  # a command of the program's own asked the model for nothing
    if own and not (responses and all_final):
        return 2, None, own, False
    for name, number in (item for counts in responses.values() for item in counts.items()):
        if number >= 0:
            total[name] = min(total.get(name, 0) + number, COUNT_LIMIT - 1)
    rank = 3 if not all_final else 0 if len(with_id) == len(responses) else 1
    return (rank, total, None, not all_final) if responses else None


def response_of(event):
    """What names the response of a report: its id, else the total of the thread after it, else its number."""
    names = ["response", "thread_tokens", "response"][not isinstance(event.payload.get("response"), str):]
    name = next((name for name in names if event.payload.get(name) is not None), None)
    return (name, event.text_of(name)) if name else ("seq", event.seq)


def find_usage(turn):
    """A turn has its usage from one run: the one that knows it best."""
    told = [(run, usage_in(events)) for run, events in turn.reports.items()]
    told = [(usage[0], run, usage[1:]) for run, usage in told if usage]
    return min(told, key=lambda one: one[:2])[2] if told else (None, None, False)


# What one run that has the turn can tell of, and whether it has all of it.
Channel = namedtuple("Channel", "carries is_whole")


def read_channels(session, turn, told):
    """The runs that have the turn. What notes beside them say, only the receipt knows here."""
    channels, notes = [], []
    for number in turn.runs:
        run, seqs = session.runs[number], turn.seqs(number)
        missing = []
        for note in told if isinstance(told, list) else []:
            fields = {"after_seq": count(inside(note, "after_seq")), "count": count(inside(note, "count")),
                      "what": inside(note, "what")}
            of_run = word(inside(note, "run_id"), session.runs[turn.run].id)
            is_good = fields["count"] and fields["what"] in ("refused", "dropped") and of_run == run.id
            if is_good and min(seqs) <= (fields["after_seq"] or 0) <= max(seqs):
                missing.append(fields if number == turn.run else fields | {"run_id": run.id})
        notes += missing
        has_end = run.channel == "disk" or not turn.ended_in or number in turn.ended_in
        channels.append(Channel(run.carries(max(seqs)), has_end and not missing))
    return channels, notes


def lineage_fields(session, turn, notes, sizes):
    seqs = turn.seqs(turn.run)
    lineage = {"first_seq": min(seqs), "last_seq": max(seqs), "event_count": len(seqs), "missing_event_ranges": notes}
    if sizes:
        lineage["runs"] = [{"run_id": run.id, "tree_size": size, "adapter": run.adapter}
                           for run, size in zip(session.runs, sizes)]
    return lineage


def left_out(session, turn):
    """What no id ties to the turn."""
    for number, run in enumerate(session.runs):
        events = sum(of_run == number for of_run, _ in turn.left_out)
        if number and run.channel == "exec":
            yield f"run {run.id} is left out: its ids are its own"
        elif events:
            yield f"{plural(events, 'event')} of run {run.id} left out: no id ties them to the turn"


def plural(number, noun):
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def effect_fields(session, turn, calls, channels):
    """What was asked and done, and reasons. A zero that no source vouches for is no zero, but null."""
    asked = [approval for approval in session.approvals if approval.turn is turn]
    answers = [ANSWERS.get(approval.decision) for approval in asked]
    denied_calls = {id(one.call) for one, answer in zip(asked, answers) if answer is False and one.call}
    denied_calls |= {id(call) for call in calls if call.outcome() == "denied"}
    denied = len(denied_calls) + sum(answer is False and not one.call for one, answer in zip(asked, answers))
    effects = [call.effect() for call in calls]
    counts = [sum(one.is_asked for one in asked), answers.count(True), denied, effects.count("command"),
              effects.count("file_change"), turn.sandbox_denials]
    fields, reasons = {}, {}
    has_questions = counts[0] + counts[1] > 0
    for (name, what), number in zip(EFFECTS.items(), counts):
        carries = [channel.carries for channel in channels if channel.carries is not None]
        is_known = number > 0 or any(channel.is_whole and what in (channel.carries or []) for channel in channels)
        if name in ("approval_required_count", "approval_allowed_count"):
            is_known = has_questions or is_known and not denied
        open_calls = sum(call.effect() == "open" and call.kind == CLASSES.get(name) for call in calls)
        fields[name] = number if is_known else None
        if is_known and open_calls:
            reasons[name] = f"a lower bound: the record does not say what became of {plural(open_calls, 'call')}"
        elif not is_known and any(what in words for words in carries):
            reasons[name] = "the record has denials and no questions" if what == "approvals" and denied else (
                f"no source that carries {what} has the whole turn")
        elif not is_known:
            reasons[name] = f"the source {does_not(carries or None)} {what}"
    return fields, reasons


def unavailable(receipt, lower_bound, left, effects):
    """Every null with its reason, in the order of the fields."""
    ended = "the record has no such time" if receipt["turn"]["ended_at"] else "no end of the turn is on record"
    usage = "some responses have no final count: it may have been more" if lower_bound else (
        "the record has no usage of the turn")
    reasons = {("thread", name): "the record does not say what was in force during the turn"
               for name in receipt["thread"]}
    reasons |= {("turn", "ended_at"): ended, ("turn", "duration_ms"): ended, ("usage_evidence", "usage"): usage}
    said = [(f"{section}.{name}", reason) for (section, name), reason in reasons.items()
            if receipt[section][name] is None or lower_bound and name == "usage"]
    said += [("source_event_lineage.runs", reason) for reason in left]
    said += [(f"side_effect_boundary.{name}", reason) for name, reason in effects.items()]
    return [{"field": name, "reason": reason} for name, reason in said]


def build(session, turn, given, sizes, integrity):
    """The receipt as text; the turn's own report comes in last, as text too. Of the given one only notes are used."""
    total, own, lower_bound = find_usage(turn)
    usage = read_json(own, "usage") if own else total
    usage_evidence = {"available": usage is not None, "usage": usage,
                      "provider_cache_breakdown_available": not CACHE.isdisjoint(usage or {})}
    channels, notes = read_channels(session, turn, inside(given, "source_event_lineage", "missing_event_ranges"))
    calls = [call for call in session.calls if call.turn is turn]
    effects, reasons = effect_fields(session, turn, calls, channels)
    receipt = {"schema_id": SCHEMA, "thread": thread_fields(session, turn), "turn": turn_fields(turn),
               "reasoning_custody": reasoning_fields(turn, channels), "tool_lineage": tool_fields(calls),
               "usage_evidence": usage_evidence, "source_event_lineage": lineage_fields(session, turn, notes, sizes),
               "side_effect_boundary": effects, "claim_ceiling": CLAIMS}
    receipt |= {"unavailable": unavailable(receipt, lower_bound, left_out(session, turn), reasons)} | integrity
    usage_evidence["usage"] = total
    text = json.dumps(receipt, indent=2, ensure_ascii=False) + "\n"
    return text.replace('"usage": null', '"usage": ' + lay_out(own).replace("\n", "\n    ")) if own else text


# --- Integrity: the Merkle tree of RFC 6962, section 2.1 --------------------------------------------------------------

def sha256(*parts):
    return hashlib.sha256(b"".join(parts)).digest()


def split(size):
    """Where a tree parts: the largest power of two that is smaller than its size."""
    return 1 << (size - 1).bit_length() - 1


def tree_over(events):
    """The root over these events, and the audit path of each by its number."""
    if len(events) == 1:
        return sha256(b"\0", events[0].line), {events[0].seq: []}
    middle = split(len(events))
    (left, left_paths), (right, right_paths) = tree_over(events[:middle]), tree_over(events[middle:])
    beside_left, beside_right = [right.hex()], [left.hex()]
    paths = {seq: path + beside_left for seq, path in left_paths.items()}
    paths |= {seq: path + beside_right for seq, path in right_paths.items()}
    return sha256(b"\1", left, right), paths


def root_by_path(leaf, index, size, path):
    """The root that an audit path leads to, or None if it is not as long as it has to be."""
    if size == 1 or not path:
        return leaf if size == 1 and index == 0 and not path else None
    middle, node = split(size), bytes.fromhex(path[-1])
    if index < middle:
        below = root_by_path(leaf, index, middle, path[:-1])
        return below and sha256(b"\1", below, node)
    below = root_by_path(leaf, index - middle, size - middle, path[:-1])
    return below and sha256(b"\1", node, below)


def proven_path(proof, event, size, root):
    """A line's audit path, if it leads to the root; else anything but what the receipt has."""
    path = inside(proof, "audit_path")
    if not isinstance(path, list):
        return []
    if not size or not all(re.fullmatch("[0-9a-f]{64}", word(node, "")) for node in path):
        return None
    found = root_by_path(sha256(b"\0", event.line), event.seq - 1, size, path)
    return path if found and found.hex() == root else None


def proof_of(run_id, size, root, lines, paths):
    """The `integrity` of one run."""
    lines = [{"seq": event.seq, "sha256": sha256(event.line).hex(), "audit_path": path}
             for event, path in zip(lines, paths)]
    return {"run_id": run_id, "tree_size": size, "root": root, "lines": lines}


# --- The check --------------------------------------------------------------------------------------------------------

def named_runs(receipt):
    """The runs that a receipt names, each with its length; None for one of an older program, which names none."""
    runs = inside(receipt, "source_event_lineage", "runs")
    if not isinstance(runs, list):
        return None
    return {word(inside(run, "run_id")): count(inside(run, "tree_size")) for run in runs}


def trees_of(receipt):
    """The trees that a receipt names; an older program has written the only one without an array."""
    integrity = receipt.get("integrity")
    return integrity if isinstance(integrity, list) else [] if integrity is None else [integrity]


def put_together(receipt, proofs):
    if "integrity" not in receipt:
        return {}
    return {"integrity": proofs if isinstance(receipt["integrity"], list) else proofs[0]}


def from_transcripts(receipt, transcripts):
    """Transcripts may have grown since: a receipt is of as many lines as it says."""
    named = named_runs(receipt)
    for events in transcripts:
        if not events or [(e.seq, e.run) for e in events] != [(n, events[0].run) for n in range(1, len(events) + 1)]:
            raise BadInput("a transcript's events are not those of one run, numbered from 1, one after the other")
    by_run = {events[0].run: events for events in transcripts}
    if named is None:
        size = count(inside((trees_of(receipt) or [None])[0], "tree_size"))
        runs = [Run(transcripts[0][:size or None])]
    else:
        absent = [run for run in named if run not in by_run]
        if absent or not named:
            raise BadInput(f"the receipt is made of run {absent and absent[0]} too, and its transcript is not given")
        runs = [Run(by_run[run][:size or None]) for run, size in named.items()]
    session = Session(runs)
    turn = session.turn(word(inside(receipt, "turn", "id")))
    needed = session.lines_of(turn)
    if len(runs) > 1 and not is_enough(session, turn, needed):
        needed = [run.events for run in runs]
    proofs = []
    for run, lines in zip(runs, needed):
        root, paths = tree_over(run.events)
        proofs.append(proof_of(run.id, len(run.events), root.hex(), lines, [paths[e.seq] for e in lines]))
    sizes = None if named is None else [len(run.events) for run in runs]
    return build(session, turn, receipt, sizes, put_together(receipt, proofs))


def is_enough(session, turn, lines):
    """Whether lines alone give the same receipt: an id that is used twice may mean another call without the rest."""
    sizes = [0 for _ in session.runs]
    alone = Session([Run(events) for events in lines])
    try:
        same_turn = alone.turn(turn.name)
    except Differs:
        return False
    receipts = build(session, turn, {}, sizes, {}), build(alone, same_turn, {}, sizes, {})
    return receipts[0] == receipts[1] and alone.lines_of(same_turn) == lines


def from_lines(receipt, lines):
    """Sizes, roots and paths can only be the receipt's own here, and nothing vouches for other lines than its own."""
    trees, named = trees_of(receipt), named_runs(receipt)
    if not trees:
        raise BadInput("the receipt has no `integrity`, and so nothing to check lines with")
    by_run = {word(inside(tree, "run_id")): [] for tree in trees}
    for line in sorted(lines, key=lambda line: line.seq):
        if line.run not in by_run:
            raise Differs("integrity, which is of other runs than the lines", list(by_run), line.run)
        by_run[line.run].append(line)
    if not all(by_run.values()):
        shown = [run for run in by_run if by_run[run]]
        raise Differs("integrity, which is of more runs than the lines", list(by_run), shown)
    session = Session([Run(events) for events in by_run.values()])
    turn = session.turn(word(inside(receipt, "turn", "id")))
    proofs, sizes = [], [count(inside(tree, "tree_size")) for tree in trees]
    is_all = len(trees) > 1 and [[e.seq for e in run.events] for run in session.runs] == [
        list(range(1, (size or 0) + 1)) for size in sizes]
    needed = [run.events for run in session.runs] if is_all else session.lines_of(turn)
    for tree, run, own in zip(trees, session.runs, needed):
        if own != run.events:
            seqs = [[line.seq for line in side] for side in (own, run.events)]
            raise Differs("integrity.lines, which are not the lines that were shown", *seqs)
        size, root = count(inside(tree, "tree_size")), word(inside(tree, "root"))
        given = inside(tree, "lines")
        given = (given if isinstance(given, list) else []) + [None] * len(own)
        paths = [proven_path(proof, line, size, root) for proof, line in zip(given, own)]
        proofs.append(proof_of(run.id, size, root, own, paths))
    sizes = None if named is None else [proof["tree_size"] for proof in proofs]
    return build(session, turn, receipt, sizes, put_together(receipt, proofs))


def compare(receipt, record, name=""):
    """Raise the first difference, in the order of the record's receipt."""
    if isinstance(receipt, dict) and isinstance(record, dict):
        for key in record | receipt:
            compare(receipt.get(key, ABSENT), record.get(key, ABSENT), f"{name}.{key}" if name else key)
    elif isinstance(receipt, list) and isinstance(record, list):
        for n in range(max(len(receipt), len(record))):
            compare(*(side[n] if n < len(side) else ABSENT for side in (receipt, record)), f"{name}.{n}")
    elif receipt != record:
        raise Differs(name, receipt, record)


def verify(data, transcripts, lines):
    """Make the receipt anew and compare it. Returns it."""
    receipt = read_json(data, "the receipt")
    if not isinstance(receipt, dict):
        raise BadInput("the receipt: not a JSON object")
    if lines is None:
        text = from_transcripts(receipt, [read_events(pathlib.Path(name).read_bytes(), name) for name in transcripts])
    else:
        text = from_lines(receipt, read_events(pathlib.Path(lines).read_bytes(), lines))
    compare(receipt, read_json(text, "the receipt made anew"))
    for n, pair in enumerate(zip_longest(data.decode().split("\n"), text.split("\n")), 1):
        if pair[0] != pair[1]:
            raise Differs(f"line {n}, which says the same in other bytes", *pair)
    return receipt


def show(value):
    """A value in one line."""
    return value.text if isinstance(value, Number) else json.dumps(value, default=show, ensure_ascii=False)


def main():
    parser = argparse.ArgumentParser(description="Check a receipt of steno, without steno.")
    parser.add_argument("receipt")
    against = parser.add_mutually_exclusive_group(required=True)
    against.add_argument("--transcript", metavar="FILE", action="append", help="the transcript of a run, once for each")
    against.add_argument("--lines", metavar="FILE", help="the lines that the receipt is made of")
    args = parser.parse_args()
    sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace")
    try:
        receipt = verify(pathlib.Path(args.receipt).read_bytes(), args.transcript, args.lines)
    except Differs as difference:
        field_name, said, found = difference.args
        print(f"the receipt does not hold: {field_name}\n  receipt: {show(said)}\n  record:  {show(found)}")
        return 1
    except (BadInput, OSError, ValueError, RecursionError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print("the receipt holds: every field follows from the", "lines that were shown" if args.lines else "transcripts")
    if receipt["turn"]["status"] == "in_progress":
        print("it is not final: the turn has not ended")
    roots = [tree["root"] for tree in trees_of(receipt)]
    for root in roots:
        print(f"its lines are in the tree with root {root}")
    print("" if roots else "it has no tree\n", "README.md tells what that proves, and what it does not", sep="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
