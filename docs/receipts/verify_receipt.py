#!/usr/bin/env python3
"""Check a receipt of steno without steno: a second implementation of README.md.

    verify_receipt.py RECEIPT --transcript FILE
    verify_receipt.py RECEIPT --lines FILE

It makes every field of the receipt anew, from a run's transcript or from the lines that `steno receipt lines` prints,
and compares fields and bytes. Exit code 0: it holds. 1: it does not, and the first field that differs is named. 2: the
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
from dataclasses import dataclass
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
    prompt_cache_miss_tokens""".split())
EFFECTS = {"approval_required_count": "approvals", "approval_allowed_count": "approvals",
           "approval_denied_count": "approvals", "command_execution_count": "calls", "file_change_count": "calls",
           "sandbox_denied_count": "sandbox denials"}
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


# --- Events and the turn ----------------------------------------------------------------------------------------------

class Event(namedtuple("Event", "seq run type path time payload line")):
    def is_step(self, what, kind):
        return self.type == f"step.{what}" and self.payload.get("kind") == kind

    def text_of(self, name):
        """A field of the payload as the line has it."""
        return member(member(self.line.decode(), "payload"), name)


def read_events(data, name):
    """The events of one run. Bytes after the last newline are no line."""
    events = []
    for line in data.split(b"\n")[:-1]:
        record = read_json(line, f"{name}, line {len(events) + 1}")
        texts = [word(inside(record, field)) for field in ("run_id", "type", "path", "timestamp")]
        seq, payload = count(inside(record, "seq")), inside(record, "payload")
        if None in texts or not seq:
            raise BadInput(f"{name}, line {len(events) + 1}: not an event with seq, run_id, type, path and timestamp")
        events.append(Event(seq, *texts, payload if isinstance(payload, dict) else {}, line))
    if len({event.run for event in events}) != 1:
        raise BadInput(f"{name}: these are not the events of one run")
    return events


def upwards(path):
    """A path and all above it, nearest first; cut at dots that no backslash precedes."""
    dots = [dot.start() for dot in re.finditer(r"(?<!\\)\.", path)]
    return [path[:end] for end in [len(path)] + dots[::-1]]


@dataclass
class Call:
    """A call and the result that ended it, or a result without a call."""
    event: Event
    result: Event = None

    def __post_init__(self):
        self.id = word(self.event.payload.get("call_id"), "")
        self.is_call = self.event.type == "tool.call"
        self.is_made = self.is_call and self.event.payload.get("input_available") is not False

    def outcome(self):
        return self.result.payload.get("outcome") if self.result else None

    def has_result(self):
        return self.result is not None and self.outcome() != "interrupted"


def match_calls(events):
    """All calls of a run, as a result may come in another turn than its call."""
    calls, waiting = [], {}
    for event in events:
        if event.type == "tool.call":
            calls.append(Call(event))
            waiting.setdefault(calls[-1].id, []).append(calls[-1])
        elif event.type == "tool.result":
            alone = Call(event, event)
            if waiting.get(alone.id):
                waiting[alone.id].pop().result = event
            else:
                calls.append(alone)
    return calls


class Turn:
    """One turn: its events, its calls, and the lines that its receipt is made of."""

    def __init__(self, events, turn_id):
        self.id, self.owners, starts, begun = turn_id, {}, [], {}
        for event in events:
            if event.is_step("started", "turn"):
                starts.append((f"{event.path}@{event.seq}" if event.path in begun else event.path, event))
                begun[event.path] = event
            self.owners[event.seq] = next((begun[path] for path in upwards(event.path) if path in begun), None)
        found = [event for name, event in starts if name == turn_id]
        if len(found) != 1:
            raise Differs("turn.id", turn_id, ABSENT)
        self.start = found[0]
        self.events = [e for e in events if self.owns(e)]
        self.first, self.last = self.events[0].seq, self.events[-1].seq
        ends = [e for e in self.events if e.is_step("completed", "turn") and e.path == self.start.path]
        self.end = ends[-1] if ends else None
        self.runs = [e for e in events if e.type == "run.started" and e.seq <= self.last]
        said = inside(self.runs[-1].payload, "source", "carries") if self.runs else None
        self.carries = said if isinstance(said, list) else []
        self.does_not = "does not carry" if isinstance(said, list) else "does not say whether it carries"
        calls = match_calls(events)
        self.calls = [call for call in calls if self.owns(call.event)]
        self.lines = self.find_lines(calls, [event for _, event in starts])

    def owns(self, event):
        return self.owners[event.seq] is self.start

    def find_lines(self, calls, starts):
        """Besides its own events, what tells whose the calls, results and paths are."""
        lines = self.events + self.runs + [call.result for call in self.calls if call.result]
        lines += [call.event for call in calls if call.result and self.owns(call.result)]
        last = max(event.seq for event in lines)
        lines += [e for e in starts if self.start.path in upwards(e.path) and e.seq <= last]
        return sorted({event.seq: event for event in lines}.values(), key=lambda event: event.seq)


# --- The fields, in the order of the receipt --------------------------------------------------------------------------

def thread_fields(turn):
    settings = turn.start.payload.get("settings")
    models = [event.payload.get("model") for event in turn.events
              if event.type == "message.assistant" and event.path == turn.start.path]
    mode = word(inside(settings, "permission_mode"), inside(settings, "mode"))
    policy = word(inside(settings, "approval_policy"))
    sandbox = inside(settings, "sandbox_policy")
    return {"id": turn.start.run, "model": word(inside(settings, "model"), *models), "mode": mode,
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
    status, ended_at, duration = "in_progress", None, None
    if turn.end:
        error, ended_at = turn.end.payload.get("error"), turn.end.time
        none = error is None or error is False or error == ""
        status = "completed" if none else "interrupted" if error in ("interrupted", "aborted") else "failed"
        times = milliseconds(turn.start.time), milliseconds(ended_at)
        duration = times[1] - times[0] if None not in times and times[0] <= times[1] else None
    return {"id": turn.id, "status": status, "started_at": turn.start.time, "ended_at": ended_at,
            "duration_ms": duration}


def reasoning_fields(turn):
    """Thoughts by their hashes: their text is never in a receipt."""
    items = []
    for event in turn.events:
        blocks = event.payload.get("blocks") if event.type == "message.assistant" else None
        for n, block in enumerate(blocks if isinstance(blocks, list) else []):
            if inside(block, "type") == "thinking":
                text = word(block.get("thinking"))
                items.append({"id": f"item-{event.seq}-{n}" if n else f"item-{event.seq}",
                              "sha256": sha256(text.encode()).hex() if text else None})
    available = bool(items) or "thinking" in turn.carries
    return {"raw_reasoning_exported": False, "available": available,
            "reason": None if available else f"the source {turn.does_not} reasoning",
            "item_count": len(items) if available else None, "items": items}


def tool_fields(turn):
    return {"tool_call_count": sum(call.is_made for call in turn.calls),
            "tool_result_count": sum(call.has_result() for call in turn.calls),
            "unmatched_tool_call_ids": [call.id for call in turn.calls if call.is_made and not call.has_result()],
            "unmatched_tool_result_ids": [call.id for call in turn.calls if not call.is_made]}


def find_usage(turn):
    """The sum over responses, the turn's own report if that says more, and whether the sum is only a lower bound."""
    own, responses, final, total = None, {}, set(), {}
    for event in turn.events:
        usage, scope = event.payload.get("usage"), event.payload.get("usage_scope")
        if event.type != "message.assistant" or not isinstance(usage, dict) or scope == "session":
            continue
        if scope == "turn":
            own = event.text_of("usage")
            continue
        key = event.seq if event.payload.get("response") is None else event.text_of("response")
        counts = responses.setdefault(key, {})
        for name, value in usage.items():  # a name has its place even if its value is no count
            counts[name] = max(counts.get(name, -1), -1 if count(value) is None else count(value))
        if event.payload.get("final") is True:
            final.add(key)
    all_final = len(final) == len(responses)
    if own and not (responses and all_final):
        return None, own, False
    for name, number in (item for counts in responses.values() for item in counts.items()):
        if number >= 0:
            total[name] = min(total.get(name, 0) + number, COUNT_LIMIT - 1)
    return total if responses else None, None, not all_final


def lineage_fields(turn, told):
    """What notes beside the run say, only the receipt knows here; but it has to be of this turn."""
    notes = [{"after_seq": count(inside(note, "after_seq")), "count": count(inside(note, "count")),
              "what": inside(note, "what")} for note in (told if isinstance(told, list) else [])]
    notes = [note for note in notes if turn.first <= (note["after_seq"] or 0) <= turn.last and note["count"]
             and note["what"] in ("refused", "dropped")]
    return {"first_seq": turn.first, "last_seq": turn.last, "event_count": len(turn.events),
            "missing_event_ranges": notes}


def effect_fields(turn):
    """What was asked and done. A zero that the source does not vouch for is no zero, but null."""
    asked, answers = set(), {}
    for event in turn.events:
        name = word(event.payload.get("name"))
        request = event.seq if name is None else name
        answer = ANSWERS.get(word(inside(event.payload, "result", "decision")))
        if event.is_step("started", "approval"):
            asked.add(request)
        elif event.is_step("completed", "approval") and answer is not None:
            answers.setdefault(request, answer)
    done = [call.event.payload.get("class") for call in turn.calls if call.is_call and call.outcome() != "denied"]
    allowed, sandbox = sum(answers.values()), sum(e.is_step("completed", "sandbox") for e in turn.events)
    counts = dict(zip(EFFECTS, [len(asked), allowed, len(answers) - allowed, done.count("command"),
                                done.count("file_change"), sandbox]))
    known = {what for name, what in EFFECTS.items() if counts[name] or what in turn.carries}
    return {name: number if EFFECTS[name] in known else None for name, number in counts.items()}


def unavailable(receipt, turn, lower_bound):
    """Every null with its reason, in the order of the fields."""
    ended = "the record has no such time" if turn.end else "no end of the turn is on record"
    usage = "some responses have no final count: it may have been more" if lower_bound else (
        "the record has no usage of the turn")
    reasons = {("thread", name): "the record does not say what was in force during the turn"
               for name in receipt["thread"]}
    reasons |= {("turn", "ended_at"): ended, ("turn", "duration_ms"): ended, ("usage_evidence", "usage"): usage}
    reasons |= {("side_effect_boundary", name): f"the source {turn.does_not} {what}" for name, what in EFFECTS.items()}
    return [{"field": f"{section}.{name}", "reason": reason} for (section, name), reason in reasons.items()
            if receipt[section][name] is None or lower_bound and name == "usage"]


def build(turn, given, integrity):
    """The receipt as text; the turn's own report comes in last, as text too. Of the given one only notes are used."""
    total, own, lower_bound = find_usage(turn)
    usage = read_json(own, "usage") if own else total
    usage_evidence = {"available": usage is not None, "usage": usage,
                      "provider_cache_breakdown_available": not CACHE.isdisjoint(usage or {})}
    told = inside(given, "source_event_lineage", "missing_event_ranges")
    receipt = {"schema_id": SCHEMA, "thread": thread_fields(turn), "turn": turn_fields(turn),
               "reasoning_custody": reasoning_fields(turn), "tool_lineage": tool_fields(turn),
               "usage_evidence": usage_evidence, "source_event_lineage": lineage_fields(turn, told),
               "side_effect_boundary": effect_fields(turn), "claim_ceiling": CLAIMS}
    receipt |= {"unavailable": unavailable(receipt, turn, lower_bound)} | integrity
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


def integrity_fields(turn, size, root, paths):
    lines = [{"seq": event.seq, "sha256": sha256(event.line).hex(), "audit_path": path}
             for event, path in zip(turn.lines, paths)]
    return {"integrity": {"run_id": turn.start.run, "tree_size": size, "root": root, "lines": lines}}


# --- The check --------------------------------------------------------------------------------------------------------

def from_transcript(receipt, events):
    """A transcript may have grown since: a receipt with a tree is of its first `tree_size` lines."""
    if [event.seq for event in events] != list(range(1, len(events) + 1)):
        raise BadInput("the transcript's events are not numbered from 1, one after the other")
    events = events[:count(inside(receipt, "integrity", "tree_size")) or None]
    turn = Turn(events, word(inside(receipt, "turn", "id")))
    if "integrity" not in receipt:
        return build(turn, receipt, {})
    root, paths = tree_over(events)
    return build(turn, receipt, integrity_fields(turn, len(events), root.hex(), [paths[e.seq] for e in turn.lines]))


def from_lines(receipt, lines):
    """Size, root and paths can only be the receipt's own here, and nothing vouches for other lines than its own."""
    lines = sorted(lines, key=lambda line: line.seq)
    turn = Turn(lines, word(inside(receipt, "turn", "id")))
    if lines != turn.lines:
        seqs = [[line.seq for line in side] for side in (turn.lines, lines)]
        raise Differs("integrity.lines, which are not the lines that were shown", *seqs)
    size, root = count(inside(receipt, "integrity", "tree_size")), word(inside(receipt, "integrity", "root"))
    proofs = inside(receipt, "integrity", "lines")
    proofs = (proofs if isinstance(proofs, list) else []) + [None] * len(lines)
    paths = [proven_path(proof, line, size, root) for proof, line in zip(proofs, lines)]
    return build(turn, receipt, integrity_fields(turn, size, root, paths))


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


def verify(data, source, name, is_transcript):
    """Make the receipt anew and compare it. Returns the root, if it has one."""
    receipt = read_json(data, "the receipt")
    if not isinstance(receipt, dict):
        raise BadInput("the receipt: not a JSON object")
    text = (from_transcript if is_transcript else from_lines)(receipt, read_events(source, name))
    compare(receipt, read_json(text, "the receipt made anew"))
    for n, lines in enumerate(zip_longest(data.decode().split("\n"), text.split("\n")), 1):
        if lines[0] != lines[1]:
            raise Differs(f"line {n}, which says the same in other bytes", *lines)
    return inside(receipt, "integrity", "root")


def show(value):
    """A value in one line."""
    return value.text if isinstance(value, Number) else json.dumps(value, default=show, ensure_ascii=False)


def main():
    parser = argparse.ArgumentParser(description="Check a receipt of steno, without steno.")
    parser.add_argument("receipt")
    against = parser.add_mutually_exclusive_group(required=True)
    against.add_argument("--transcript", metavar="FILE", help="the run's transcript")
    against.add_argument("--lines", metavar="FILE", help="the lines that the receipt is made of")
    args = parser.parse_args()
    sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace")
    is_transcript = args.lines is None
    source = args.transcript if is_transcript else args.lines
    try:
        root = verify(pathlib.Path(args.receipt).read_bytes(), pathlib.Path(source).read_bytes(), source, is_transcript)
    except Differs as difference:
        field, receipt, record = difference.args
        print(f"the receipt does not hold: {field}\n  receipt: {show(receipt)}\n  record:  {show(record)}")
        return 1
    except (BadInput, OSError, ValueError, RecursionError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print("the receipt holds: every field follows from the", "transcript" if is_transcript else "lines that were shown")
    print(f"its lines are in the tree with root {root}" if root else "it has no tree",
          "README.md tells what that proves, and what it does not", sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
