"""A connection as two tees have kept it, one on either side of `steno app-server`, and what must be recorded of it."""

import json
from dataclasses import dataclass

from promises import demand

# Of these nothing is recorded but that they were there.
SECRETS = {"account/login/start", "account/chatgptAuthTokens/refresh", "attestation/generate"}
# What a child asks for that its parent's client answers, and what the answer is called.
BRIDGES = {
    "item/commandExecution/requestApproval": "exec_approval",
    "item/fileChange/requestApproval": "patch_approval",
    "item/tool/requestUserInput": "request_user_input",
}


@dataclass(frozen=True)
class Line:
    """A message of one side: its bytes, and what they say."""

    direction: str
    bytes: bytes
    message: dict

    @property
    def kind(self):
        if "method" in self.message:
            return "request" if "id" in self.message else "notification"
        return "error" if "error" in self.message else "response"

    @property
    def params(self):
        return self.message.get("params") or {}


class Teed:
    """What was said on a connection, in the order of each direction."""

    def __init__(self, dir):
        self.bytes = 0
        sides = {}
        for direction in ("c2s", "s2c"):
            outer, inner = ((dir / side / direction).read_bytes() for side in ("outer", "inner"))
            demand(
                outer == inner, f"{direction}: {len(outer)} bytes at the client, {len(inner)} at the server, not alike"
            )
            demand(outer.endswith(b"\n"), f"{direction}: the last message is not whole")
            self.bytes += len(outer)
            sides[direction] = [Line(direction, line, json.loads(line)) for line in outer[:-1].split(b"\n")]
        self.sides = sides
        self.answers = {}
        for line in sides["c2s"]:
            if line.kind == "response":
                demand(line.message["id"] not in self.answers, f"two answers to request {line.message['id']}")
                self.answers[line.message["id"]] = line.message["result"]

    @property
    def count(self):
        return sum(map(len, self.sides.values()))

    def kept(self):
        """What has to be kept of each message, as bytes, by direction."""
        asked = set()
        for lines in self.sides.values():
            asked |= {
                (line.direction, line.message["id"]) for line in lines if is_secret(line) and line.kind == "request"
            }
        return {direction: [kept(line, asked) for line in lines] for direction, lines in self.sides.items()}

    def loaded(self):
        """The threads that the client has started, gone on with or forked: these answer for themselves."""
        asks = ("thread/start", "thread/resume", "thread/fork")
        asked = {line.message["id"] for line in self.sides["c2s"] if line.message.get("method") in asks}
        answers = [line.message for line in self.sides["s2c"] if line.kind == "response"]
        return {answer["result"]["thread"]["id"] for answer in answers if answer["id"] in asked}

    def children(self):
        """Who started each thread that an agent has started: parent, turn and call."""
        found = {}
        for line in self.sides["s2c"]:
            item = line.params.get("item") or {}
            begun = []
            if item.get("type") == "collabAgentToolCall" and item["tool"] == "spawnAgent":
                begun = item["receiverThreadIds"]
            if item.get("type") == "subAgentActivity" and item["kind"] == "started":
                begun = [item["agentThreadId"]]
            for child in begun:
                by = (item.get("senderThreadId", line.params["threadId"]), line.params["turnId"], item["id"])
                demand(found.setdefault(child, by) == by, f"{child} was started by {found[child]} and by {by}")
        return found

    def bridges(self):
        """What was answered for children, with all ids; and how many questions threads have answered for themselves."""
        children, loaded = self.children(), self.loaded()
        bridges, own = [], 0
        for line in self.sides["s2c"]:
            kind = BRIDGES.get(line.message.get("method"))
            if not kind or line.message["id"] not in self.answers:
                continue
            child, result = line.params["threadId"], self.answers[line.message["id"]]
            if child in loaded:
                own += 1
                continue
            demand(child in children, f"nobody has said who started {child}")
            parent, turn, call = children[child]
            bridge = {
                "bridge_kind": kind,
                "parent_thread_id": parent,
                "parent_turn_id": turn,
                "parent_call_id": call,
                "sub_agent_thread_id": child,
                "sub_agent_turn_id": line.params["turnId"],
                "sub_agent_call_id": line.params["itemId"],
            }
            is_input = kind == "request_user_input"
            bridges.append(
                {**bridge, **({"user_input_response": result} if is_input else {"decision": result["decision"]})}
            )
        return bridges, own


def is_secret(line):
    return line.message.get("method") in SECRETS


def kept(line, asked):
    """What has to be kept of a message: itself, unless it is a secret or answers a request for one."""
    other = {"c2s": "s2c", "s2c": "c2s"}[line.direction]
    is_answer = line.kind in ("response", "error") and (other, line.message["id"]) in asked
    if not is_secret(line) and not is_answer:
        return line.bytes
    known = {name: line.message[name] for name in ("method", "id") if name in line.message}
    return json.dumps({**known, "withheld": True, "bytes": len(line.bytes)}, separators=(",", ":")).encode()
