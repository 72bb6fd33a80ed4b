"""Codex's session files, and the histories that they tell, put together without `steno`."""

import json
import re

from promises import demand

# Items that only a provider makes.
REMOTE = {"compaction", "compaction_summary", "context_compaction"}


class SessionFile:
    def __init__(self, path):
        self.path = path
        self.lines = [json.loads(line) for line in path.read_bytes().splitlines()]
        self.meta = next(line["payload"] for line in self.lines if line["type"] == "session_meta")
        self.thread = self.meta["id"]

    def parent(self):
        source = self.meta.get("source")
        spawn = source.get("subagent", {}).get("thread_spawn", {}) if isinstance(source, dict) else {}
        return self.meta.get("parent_thread_id", spawn.get("parent_thread_id"))


class SessionFiles:
    """All session files of a home."""

    def __init__(self, agent):
        # In the order of their first lines: a thread may have more than one, if turns of it were taken back.
        files = [SessionFile(path) for path in agent.sessions.rglob("rollout-*.jsonl")]
        self.files = sorted(files, key=lambda file: (file.lines[0]["timestamp"], file.lines[0]["ordinal"]))

    def of(self, thread):
        return [file for file in self.files if file.thread == thread]

    def threads(self):
        """All threads but those of reviews, whose work the wire shows inside of a turn of another thread."""
        return {file.thread for file in self.files if file.meta["source"] != {"subagent": "review"}}

    def compactions(self, thread):
        """What every compaction of a thread did: turn, kind, and the history before and after it."""
        found = []
        for file in self.of(thread):
            found += self._fold(file, None)[1]
        return found

    def _fold(self, file, end):
        """The history at a line's number, or at the end, and the compactions up to there."""
        history, found, turn = self._base(file), [], None
        for line in file.lines:
            if end is not None and line["ordinal"] >= end:
                break
            payload = line["payload"]
            if line["type"] == "response_item":
                history.append(payload)
            elif line["type"] == "event_msg" and payload["type"] == "task_started":
                turn = payload["turn_id"]
            elif line["type"] == "compacted":
                after = payload["replacement_history"]
                kind = "remote" if any(item["type"] in REMOTE for item in after) else "local"
                found.append({"turn_id": turn, "kind": kind, "before": history, "after": after})
                history = list(after)
        return history, found

    def _base(self, file):
        """What a file goes on from: the beginning of another."""
        base = file.meta.get("history_base")
        if not base:
            return []
        # The file of a thread, or one that a thread goes on in, which has an id of its own.
        others = [each for each in self.files if re.search(f"[-_]{base['thread_id']}$", each.path.stem)]
        demand(len(others) == 1, f"{file.path.name} goes on from {base['thread_id']}: {others}")
        return self._fold(others[0], base["end_ordinal_exclusive"])[0]
