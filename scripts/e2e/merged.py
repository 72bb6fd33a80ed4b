"""A session as `steno show` tells it: the facts of all its channels, each once."""

import re
from collections import Counter
from dataclasses import dataclass

from oracle import own_id
from promises import demand

# How agents name the tools of the rig's MCP server, and how `steno mcp` does.
SERVED = re.compile(r"^(mcp__tiny__|mcp_tiny_|tiny-)")


@dataclass(frozen=True)
class Fact:
    """A call: its id, its tool, the channels that tell of it, and whether it was seen where it was carried out."""

    id: str
    tool: str
    channels: tuple
    is_router: bool


class Merged:
    """The one session of a store, with its subagents."""

    def __init__(self, store):
        tops = [row["run_id"] for row in store.lines("ls", "--json") if not row["parent_run_id"]]
        demand(len(tops) == 1, f"`steno ls` has {len(tops)} sessions and not one")
        self.id = tops[0]
        told = store.lines("show", self.id, "--json")
        demand(not any(run["unknown_records"] for run in told), "there are records that nobody knows")
        routers = {block["tool_id"] for block in tool_blocks(told) if block["fidelity"] == "router"}
        facts = store.lines("show", self.id, "--channels", "--json")
        self.calls = [fact_of(fact, routers) for fact in facts if fact["fact"] == "call"]
        self.results = [fact["tool_call_id"] for fact in facts if fact["fact"] == "result"]

    def check_calls(self, job):
        """Each call that the model made is there once, with its result; returns how many there are."""
        want = job.calls()
        made, have = (Counter(tool(call.name) for call in want), Counter(call.tool for call in self.calls))
        demand(have == made, f"calls: too many {have - made}, missing {made - have}")
        ids = [call.id for call in self.calls]
        demand(len({*ids}) == len(ids), f"{len(ids)} calls have {len({*ids})} ids")
        # Gemini CLI gives calls their ids, and not the model.
        if all(call.id for call in want):
            demand({*map(own_id, ids)} == {call.id for call in want}, "calls have other ids than the model gave them")
        demand(sorted(self.results) == sorted(ids), f"{len(self.results)} results for {len(ids)} calls")
        return len(ids)


def tool(name):
    return SERVED.sub("", name)


def fact_of(fact, routers):
    id = fact["tool_call_id"]
    return Fact(id, tool(fact["name"]), tuple(fact["channels"]), id in routers)


def tool_blocks(value):
    """All `tool_use` blocks in a JSON value."""
    if isinstance(value, dict):
        if value.get("type") == "tool_use":
            yield value
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            yield from tool_blocks(each)
