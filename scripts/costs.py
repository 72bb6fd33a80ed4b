#!/usr/bin/env python3
"""Computes what agents' sessions cost without steno, and compares it with `steno usage`.

    scripts/costs.py STENO PRICES.json DIR…

Each DIR is a home of Claude Code, Codex, Gemini CLI or Copilot CLI, or has some below it (`home/`, `.claude/`). PRICES.json
is the table that scripts/prices.py reads. Every session file is read here line by line, by the rules of docs/cost.md; only
the grouping by session comes from steno's answer, so the sums of each directory are compared.
"""
import collections
import json
import pathlib
import re
import subprocess
import sys
from decimal import Decimal

MILLION = Decimal(1_000_000)
TIER = re.compile(r"_above_(\d+)k_tokens$")


def price(table, model, kind, length):
    """Dollars per million tokens of a kind, in a request of this length; input is what everything else falls back to."""
    entry = table[model]
    limits = sorted({int(TIER.search(name)[1]) for name in entry if TIER.search(name)})
    above = [limit for limit in limits if length > limit * 1000]
    tier = f"_above_{above[-1]}k_tokens" if above else ""
    for name in kind:
        if name + tier in entry:
            return entry[name + tier]
    raise KeyError((model, kind))


INPUT, OUTPUT = "input_cost_per_token", "output_cost_per_token"
READ, WRITE = "cache_read_input_token_cost", "cache_creation_input_token_cost"
HOUR = "cache_creation_input_token_cost_above_1hr"


def cost(table, model, used):
    """used: new input, output, read from a cache, written to it for minutes, for an hour."""
    if not any(used):
        return Decimal(0)
    length = used[0] + used[2] + used[3] + used[4]
    kinds = [(INPUT,), (OUTPUT,), (READ, INPUT), (WRITE, INPUT), (HOUR, WRITE, INPUT)]
    prices = [price(table, model, kind, length) for kind in kinds]
    return sum(count * each for count, each in zip(used, prices)) / MILLION


def records(path):
    for line in path.read_bytes().split(b"\n"):
        try:
            record = json.loads(line.replace(b"\0", b""))
        except ValueError:
            continue
        if isinstance(record, dict):
            yield record


def claude(files):
    """Responses by id: the largest of each count over all lines and files."""
    seen = {}
    for path in files:
        for record in records(path):
            message = record.get("message")
            if record.get("type") != "assistant" or not isinstance(message, dict) or "usage" not in message:
                continue
            usage = message["usage"]
            hour = (usage.get("cache_creation") or {}).get("ephemeral_1h_input_tokens", 0)
            written = usage.get("cache_creation_input_tokens") or 0
            counts = [usage.get("input_tokens") or 0, usage.get("output_tokens") or 0,
                      usage.get("cache_read_input_tokens") or 0, written - hour, hour]
            model, known = seen.get(message.get("id"), (message.get("model"), [0] * 5))
            seen[message.get("id")] = (model, [max(pair) for pair in zip(known, counts)])
    return seen.values()


def codex(files):
    """Responses by id; the model is that of the turn."""
    seen = {}
    for path in files:
        model = None
        for record in records(path):
            payload = record.get("payload") or {}
            if record.get("type") == "turn_context":
                model = payload.get("model")
            if record.get("type") == "token_usage_record":
                usage = payload["usage"]
                read, written = usage["cached_input_tokens"], usage.get("cache_write_input_tokens", 0)
                seen[payload["response_id"]] = (model, [usage["input_tokens"] - read - written,
                                                        usage["output_tokens"], read, written, 0])
    return seen.values()


def gemini(files):
    """Messages by id, with the last tokens that are written for each."""
    seen = {}
    for path in files:
        for record in records(path):
            tokens = record.get("tokens")
            if record.get("type") == "gemini" and isinstance(tokens, dict):
                counts = [tokens["input"] - tokens["cached"], tokens["output"] + tokens.get("thoughts", 0),
                          tokens["cached"], 0, 0]
                seen[record["id"]] = (record.get("model"), counts)
    return seen.values()


def copilot(files):
    seen = {}
    for path in files:
        for number, record in enumerate(records(path)):
            if record.get("type") == "session.usage_record":
                usage = record["data"]["usage"]
                read, written = usage["cacheReadTokens"], usage["cacheWriteTokens"]
                key = usage.get("apiCallId") or (path, number)
                seen[key] = (usage["model"], [usage["inputTokens"] - read - written, usage["outputTokens"],
                                              read, written, 0])
    return seen.values()


AGENTS = [("claude", "projects", "**/*.jsonl", claude), ("codex", "sessions", "**/rollout-*.jsonl", codex),
          ("gemini", "tmp", "*/chats/**/*.jsonl", gemini),
          ("copilot", "session-state", "*/events.jsonl", copilot)]


def homes(top):
    """Directories below `top` that are the home of an agent."""
    for agent, name, pattern, read in AGENTS:
        for place in sorted({top / name, *top.glob(f"**/{name}")}):
            files = sorted(place.glob(pattern)) if place.is_dir() else []
            if files:
                yield agent, place, read(files)


def main():
    program, table, *tops = sys.argv[1:]
    table = json.loads(pathlib.Path(table).read_text(), parse_float=Decimal, parse_int=Decimal)
    wrong = 0
    for agent, place, responses in (home for top in tops for home in homes(pathlib.Path(top))):
        ours = collections.Counter()
        for model, used in responses:
            ours[model] += cost(table, re.sub(r"\[1m\]$", "", model or ""), used) if any(used) else 0
        said = subprocess.run([program, "usage", place, "--by", "model", "--json"], capture_output=True, text=True)
        rows = [json.loads(line, parse_float=Decimal) for line in said.stdout.splitlines()]
        theirs = {row["model"] or "": Decimal(row["cost_usd"] or 0) for row in rows if row["total_tokens"]}
        models = {model for model, dollars in ours.items() if dollars} | set(theirs)
        for model in sorted(models):
            pair = Decimal(ours[model]), theirs.get(model, Decimal(0))
            same = pair[0] == pair[1]
            wrong += not same
            print(f"{'same ' if same else 'WRONG'} {agent:8} {model:20} {pair[0]:>14} {pair[1]:>14} {place}")
    return 1 if wrong else 0


sys.exit(main())
