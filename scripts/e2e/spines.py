"""Spines as they lie in a store."""

import json
from dataclasses import dataclass

from promises import demand


@dataclass(frozen=True)
class Record:
    """A record of a spine: its line, and what that says."""

    line: bytes
    type: str
    payload: dict


def spines(store):
    """The records of every spine, by thread, in order."""
    found = {}
    for dir in sorted((store.path / "spine").iterdir()):
        segments = sorted(dir.glob("segment-*.jsonl"), key=lambda path: int(path.stem.removeprefix("segment-")))
        lines = [line for path in segments for line in path.read_bytes().splitlines()]
        found[dir.name] = [record(line) for line in lines]
    return found


def record(line):
    said = json.loads(line)
    return Record(line, said["type"], said["payload"])


def of_type(records, type):
    return [record.payload for record in records if record.type == type]


def check_valid(store):
    """Nothing is found by the validator in any spine, not even what is no error; and all of them are sealed."""
    said = store.lines("spine", "validate", "--json")
    findings = [each for each in said if "rule" in each]
    demand(not findings, f"{store.path.name}: the validator found {findings[:3]}")
    names = sorted(each["thread_id"] for each in said)
    have = sorted(path.name for path in (store.path / "spine").iterdir())
    demand(names == have, f"{store.path.name}: {names} were validated, and there are {have}")
    for each in said:
        fine = each["valid"] and each["sealed"] == each["segments"] and each["records"] > 0
        demand(fine, f"{store.path.name}: {each}")
