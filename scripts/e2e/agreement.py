"""Holds the spine of a connection's thread to the spine of the thread's session file: on all that both of them carry,
they agree; and what only one of them has is something that the other says it cannot carry."""

import re
import shlex
from collections import Counter, defaultdict
from datetime import datetime, timedelta
from urllib.parse import unquote, urlsplit

from promises import demand
from spines import of_type

# What a session file has nothing of, by the method of a message, and how its spine says so.
WIRE_ONLY = {
    "submissions and their answers": {"thread/reverted"},
    "approval requests and answers": {
        "item/commandExecution/requestApproval",
        "item/fileChange/requestApproval",
        "serverRequest/resolved",
    },
    "user input requests": {"item/tool/requestUserInput"},
    "elicitations": {"mcpServer/elicitation/request"},
    "output deltas and the beginnings of items": {
        "item/started",
        "item/agentMessage/delta",
        "item/commandExecution/outputDelta",
        "item/commandExecution/terminalInteraction",
        "item/reasoning/summaryPartAdded",
        "item/reasoning/summaryTextDelta",
    },
    "failed and repeated requests to the model": {"error"},
    "changes in the working tree": {"turn/diff/updated"},
    "notices of the program": {
        "account/login/completed",
        "account/rateLimits/updated",
        "account/updated",
        "configWarning",
        "deprecationNotice",
        "mcpServer/startupStatus/updated",
        "remoteControl/status/changed",
        "thread/name/updated",
        "thread/readState/changed",
        "thread/started",
        "thread/status/changed",
        "warning",
    },
}
# What a connection has nothing of, by the type of a line.
DISK_ONLY = {
    "what the model was asked and answered, word for word": {"raw_response_item"},
    "which response has used which tokens": {"token_usage_record"},
    "what the agent notes for itself": {
        "inter_agent_communication_metadata",
        "retained_context",
        "thread_settings_applied",
        "world_state",
    },
}
# What is left out below, and how a connection and a session file say so.
TOLD_LEFT_OUT = {"the settings of a child's turns", "how commands end that outlive their turn"}
WRITTEN_LEFT_OUT = {"the settings of turns in which the model is not asked"}
# What is held together below.
WIRE_BOTH = {"item/completed", "thread/settings/updated", "thread/tokenUsage/updated", "turn/completed", "turn/started"}
DISK_BOTH = {"compacted", "item_completed", "task_complete", "task_started", "token_count", "turn_aborted"}

SETTINGS = ("model", "approval_policy", "cwd", "sandbox_policy")
META = ("id", "cwd", "cli_version", "source", "model_provider", "originator", "forked_from_id", "parent_thread_id")
TOKENS = ("total_tokens", "input_tokens", "cached_input_tokens", "output_tokens", "reasoning_output_tokens")


def snake(text):
    """A name as session files spell it."""
    return re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", text).replace("-", "_").lower()


def snake_keys(value):
    """An object without what it says nothing of, its names as session files spell them."""
    if isinstance(value, dict):
        return {snake(name): snake_keys(each) for name, each in value.items() if each is not None}
    return [snake_keys(each) for each in value] if isinstance(value, list) else value


def same(value):
    return value


def path_of(text):
    return unquote(urlsplit(text).path) if text.startswith("file:") else text


def millis(duration):
    return duration["secs"] * 1000 + duration["nanos"] // 1_000_000


def actions_told(actions):
    return [(snake(action["type"]), action["command"]) for action in actions]


def actions_written(actions):
    return [(action["type"], action["cmd"]) for action in actions]


def changes_told(changes):
    return sorted((each["path"], each["kind"]["type"], each["kind"].get("move_path"), each["diff"]) for each in changes)


def changes_written(changes):
    texts = {"add": "content", "delete": "content", "update": "unified_diff"}
    rows = ((path, each["type"], each.get("move_path"), each[texts[each["type"]]]) for path, each in changes.items())
    return sorted(rows)


def states_told(states):
    return {thread: (snake(state["status"]), state["message"]) for thread, state in states.items()}


def states_written(states):
    found = {}
    for thread, state in states.items():
        (status, message), *_ = state.items() if isinstance(state, dict) else [(state, None)]
        found[thread] = (status, message)
    return found


def text_of(content):
    return "".join(part["text"] for part in content)


# The fields of items on the wire: what each is called in a session file, and how both are made alike.
ITEMS = {
    "userMessage": {"content": ("content", same, same)},
    "agentMessage": {"text": ("content", same, text_of), "phase": ("phase", same, same)},
    "reasoning": {"summary": ("summary_text", same, same), "content": ("raw_content", same, same)},
    "commandExecution": {
        "command": ("command", shlex.split, same),
        "cwd": ("cwd", same, path_of),
        "processId": ("process_id", same, same),
        "source": ("source", snake, same),
        "status": ("status", snake, same),
        # No output is none on the wire.
        "aggregatedOutput": ("aggregated_output", same, lambda text: text or None),
        "exitCode": ("exit_code", same, same),
        "durationMs": ("duration", same, millis),
        "commandActions": ("parsed_cmd", actions_told, actions_written),
    },
    "fileChange": {"changes": ("changes", changes_told, changes_written), "status": ("status", snake, same)},
    "mcpToolCall": {
        "server": ("server", same, same),
        "tool": ("tool", same, same),
        "arguments": ("arguments", same, same),
        "status": ("status", snake, same),
        "result": ("result", snake_keys, snake_keys),
        "error": ("error", snake_keys, snake_keys),
        "readOnlyHint": ("readOnlyHint", same, same),
        "durationMs": ("duration", same, millis),
    },
    "collabAgentToolCall": {
        "tool": ("tool", snake, same),
        "status": ("status", snake, same),
        "senderThreadId": ("sender_thread_id", same, same),
        "receiverThreadIds": ("receiver_thread_ids", same, same),
        "prompt": ("prompt", same, same),
        "model": ("model", same, same),
        "reasoningEffort": ("reasoning_effort", same, same),
        "agentsStates": ("agents_states", states_told, states_written),
    },
    "contextCompaction": {},
    "subAgentActivity": {
        "kind": ("kind", snake, same),
        "agentThreadId": ("agent_thread_id", same, same),
        "agentPath": ("agent_path", same, same),
        "model": ("model", same, same),
        "reasoningEffort": ("reasoning_effort", same, same),
    },
    "enteredReviewMode": {"review": ("user_facing_hint", same, same)},
    "exitedReviewMode": {"review": ("review_output", same, lambda output: output["overall_explanation"])},
}
# What only a session file has of an item, and how a connection says so.
ITEM_DISK_ONLY = {
    "receiver_agents": "the names of children",
    "stdout": "what a patch has printed",
    "stderr": "what a patch has printed",
    "target": "the work of a review inside of a turn",
}


class Told:
    """What a connection's spine says of its thread."""

    def __init__(self, records, own_turns):
        self.turns, self.ends, self.items, self.tokens = [], {}, defaultdict(list), defaultdict(list)
        self.begun = set()
        for event in of_type(records, "event"):
            method, params = event["msg"].get("method"), event["msg"].get("params") or {}
            if method == "turn/started":
                turn = params["turn"]
                self.turns.append((turn["id"], turn["rootTurnId"], turn["startedAt"]))
            elif method == "turn/completed":
                turn = params["turn"]
                self.ends[turn["id"]] = (turn["status"], turn["completedAt"], turn["durationMs"])
            elif method == "thread/tokenUsage/updated" and params["turnId"] in own_turns:
                usage = params["tokenUsage"]
                totals = [tuple(snake_keys(usage[part])[name] for name in TOKENS) for part in ("total", "last")]
                self.tokens[params["turnId"]].append(totals)
            elif method == "item/started":
                self.begun.add(params["item"]["id"])
            elif method == "item/completed":
                item = params["item"]
                self.items[item["type"]].append((params["turnId"], item))


class Written:
    """What a session file's spine says of its thread."""

    def __init__(self, records):
        self.turns, self.ends, self.items, self.tokens = [], {}, defaultdict(list), defaultdict(list)
        # A review is a turn of another thread, within one of this one, which is all that the wire names.
        self.calls, self.within, seen = set(), {}, set()
        for event in of_type(records, "event"):
            # The beginning of a child's file may be its parent's.
            if "copied_from" in event:
                continue
            msg = event["msg"]
            kind = msg["type"]
            if kind == "task_started":
                self.turns.append((msg["turn_id"], msg["root_turn_id"], msg["started_at"]))
                by = (msg.get("turn_attribution") or {}).get("parent_turn_id")
                if by in seen:
                    self.within[msg["turn_id"]] = by
            elif kind in ("task_complete", "turn_aborted"):
                status = "completed" if kind == "task_complete" else msg["reason"]
                self.ends[msg["turn_id"]] = (status, msg["completed_at"], msg["duration_ms"])
            elif kind == "token_count" and msg["info"]:
                usage = [msg["info"][part] for part in ("total_token_usage", "last_token_usage")]
                self.tokens[event["id"]].append([tuple(part[name] for name in TOKENS) for part in usage])
            elif kind == "raw_response_item" and "call_id" in msg["item"]:
                self.calls.add(msg["item"]["call_id"])
            elif kind == "item_completed":
                item = {**msg["item"], "started": msg["started_at_ms"], "completed": msg["completed_at_ms"]}
                seen.add(msg["turn_id"])
                self.items[item["type"]].append((self.within.get(msg["turn_id"], msg["turn_id"]), item))


def check_thread(thread, live, file):
    """Holds two spines of a thread together; returns how many things of each kind were."""
    compared = Counter()

    def agree(kind, told, written, count):
        demand(
            told == written, f"{thread}: {kind}: the connection has {shown(told)}, the session file {shown(written)}"
        )
        compared[kind] += count

    written = Written(file)
    told = Told(live, {turn for turn, *_ in written.turns})
    agree("turns", told.turns, written.turns, len(told.turns))
    agree("ends of turns", told.ends, written.ends, len(told.ends))
    # Codex writes the total of an interrupted turn to its file, and may stop before it sends it.
    unsent = {turn for turn, end in written.ends.items() if end[0] == "interrupted"} - set(told.tokens)
    totals = {turn: rows for turn, rows in written.tokens.items() if turn not in unsent}
    agree("turns with token totals", dict(told.tokens), totals, len(told.tokens))
    for kind, rows in items(thread, told, written).items():
        agree(kind, *rows, len(rows[0]))
    boundaries = [of_type(records, "compaction_boundary") for records in (live, file)]
    agree("compactions", *boundaries, len(boundaries[0]))
    contexts = settings(live, file, told.tokens)
    agree("settings of turns", *contexts, len(contexts[0]))
    agree("sessions", *metas(live, file), 1)
    compared["child links"] += "parent_thread_id" in of_type(live, "session_meta")[0]
    compared["forks"] += "forked_from_id" in of_type(live, "session_meta")[0]
    check_rest(thread, live, file)
    return compared


def shown(value):
    return repr(value)[:1500]


def items(thread, told, written):
    """What was done, of each kind, in order, from both sides."""
    names = {name[0].upper() + name[1:]: name for name in ITEMS}
    strange = [*(told.items.keys() - ITEMS.keys()), *(written.items.keys() - names.keys())]
    demand(not strange, f"{thread}: nobody knows how to compare {strange}")
    rows = {}
    drop_commands(thread, told, written)
    for name, wire in names.items():
        left = [item_told(turn, item) for turn, item in told.items[wire]]
        right = [item_written(turn, item, ITEMS[wire]) for turn, item in written.items[name]]
        rows[f"items {wire}"] = (left, right)
    return rows


def drop_commands(thread, told, written):
    """Leaves out the commands of one side alone. One that was declined is in a session file only as a call and what the
    model was answered; of one that outlives its turn the wire has the beginning."""
    here, there = told.items["commandExecution"], written.items["CommandExecution"]
    ids_here, ids_there = ({item["id"] for _, item in side} for side in (here, there))
    for turn, item in list(here):
        if item["status"] == "declined" and item["id"] not in ids_there:
            demand(item["id"] in written.calls, f"{thread}: the session file has no call {item['id']}, declined")
            here.remove((turn, item))
    for turn, item in list(there):
        if item["id"] in told.begun - ids_here and item["completed"] // 1000 >= written.ends[turn][1]:
            there.remove((turn, item))


def item_told(turn, item):
    fields = ITEMS[item["type"]]
    known = {"type", "id", "startedAtMs", "completedAtMs", *fields}
    rest = {name for name, value in item.items() if value is not None} - known
    demand(not rest, f"only the connection has {rest} of {item['type']} {item['id']}")
    values = {name: made(told, item.get(name)) for name, (_, told, _) in fields.items()}
    return (turn, item["id"], item["startedAtMs"], item["completedAtMs"], values)


def item_written(turn, item, fields):
    known = {"type", "id", "started", "completed", *(name for name, _, _ in fields.values()), *ITEM_DISK_ONLY}
    rest = {name for name, value in item.items() if value is not None} - known
    demand(not rest, f"only the session file has {rest} of {item['type']} {item['id']}")
    values = {name: made(written, item.get(other)) for name, (other, _, written) in fields.items()}
    return (turn, item["id"], item["started"], item["completed"], values)


def made(alike, value):
    return None if value is None else alike(value)


def settings(live, file, asked):
    """What was in force in each turn of a thread, unless it is a child, in which the model was asked."""
    sides = []
    for records in (live, file):
        contexts = [each for each in of_type(records, "turn_context") if each["turn_id"] in asked]
        rows = [(each["turn_id"], {name: each["context"][name] for name in SETTINGS}) for each in contexts]
        for _, row in rows:
            row["sandbox_policy"] = snake(row["sandbox_policy"]["type"])
        sides.append(rows)
    is_child = "parent_thread_id" in of_type(live, "session_meta")[0]
    return ([], []) if is_child and not sides[0] else sides


def metas(live, file):
    """What both say of the session, and whatever the connection says."""
    told, written = (of_type(records, "session_meta")[0] for records in (live, file))
    names = [name for name in META if name in told]
    if "timestamp" in told:
        # The wire has whole seconds.
        began = [datetime.fromisoformat(meta["timestamp"].replace("Z", "+00:00")) for meta in (told, written)]
        demand(abs(began[0] - began[1]) < timedelta(seconds=2), f"the session began at {began}")
    return {name: told[name] for name in names}, {name: written.get(name) for name in names}


def check_rest(thread, live, file):
    """Whatever is not compared is something that the other source says it cannot carry."""
    told, written = (of_type(records, "session_meta")[0]["spine_source"]["cannot_carry"] for records in (live, file))
    unlisted = {*WIRE_ONLY, *WRITTEN_LEFT_OUT} - set(written)
    unlisted |= {*DISK_ONLY, *ITEM_DISK_ONLY.values(), *TOLD_LEFT_OUT} - set(told)
    demand(not unlisted, f"{thread}: not among what cannot be carried: {unlisted}")
    known = WIRE_BOTH.union(*WIRE_ONLY.values())
    methods = {event["msg"]["method"] for event in of_type(live, "event") if "method" in event["msg"]}
    demand(methods <= known, f"{thread}: nobody knows whether a session file has {methods - known}")
    known = DISK_BOTH.union(*DISK_ONLY.values())
    types = {event["msg"]["type"] for event in of_type(file, "event") if "copied_from" not in event}
    demand(types <= known, f"{thread}: nobody knows whether a connection has {types - known}")
