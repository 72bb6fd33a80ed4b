"""Real agents under the rig: a run of one, what its model said, and the files that it has."""

import contextlib
import json
import os
import shutil
import subprocess
from pathlib import Path

from ending import PATIENCE_S, end_group, ended_with_us
from oracle import Call
from promises import demand

WORK = Path(os.environ["E2E_WORK"])
RIG = WORK / "rig" / "rig"
ENV = {"PATH": os.environ["PATH"], "HOME": str(WORK / "nobody"), "LC_ALL": "C.UTF-8"}

# How many turns the long scenario has, in which of them a subagent is started, and how long the model thinks in each.
TURNS = 30
DELEGATES = 4
THINKS_S = 0.15


class Agent:
    """An agent: where its files are, and how it is told what to do."""

    def __init__(self, name, home, sessions, spawn):
        self.name = name
        # The directory that `steno` knows, and in it the one with nothing but sessions.
        self.home = WORK / "home" / name / home
        self.sessions = self.home / sessions
        # The tool that starts a subagent.
        self.spawn = spawn

    def main(self):
        """Begins the scenario with everything in it: tools, failures, a subagent, MCP, a refused request."""
        return Job(self, "main", [str(RIG), "main", str(WORK), self.name])

    def long(self):
        """Begins a scenario with many short turns and a subagent."""
        return self._run("long", f"[[scenario:{self.name}_long]] Take your time.")

    def go_on(self, session):
        """Begins to go on with a session, in the home that is there."""
        return self._run("again", f"[[scenario:{self.name}_sub]] Go on.", session)

    def _run(self, name, prompt, session=None):
        command = [str(RIG), "run", str(WORK), self.name, name]
        if self.name == "claude":
            command += ["-p", prompt, "--output-format", "stream-json", "--verbose"]
            command += ["--permission-mode", "bypassPermissions", *(["--resume", session] if session else [])]
        else:
            command += ["exec", "--json", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"]
            command += [*(["resume", session] if session else []), prompt]
        return Job(self, name, command, {"KEEP": "1"} if session else {})

    def files(self):
        """The files of all sessions, by their path in the home, with their bytes."""
        return files_below(self.home, self.sessions)

    def size(self):
        """How many bytes the files of all sessions have now."""
        size = 0
        for dir, _, names in os.walk(self.sessions):
            for name in names:
                with contextlib.suppress(FileNotFoundError):
                    size += os.stat(os.path.join(dir, name)).st_size
        return size

    def clear(self):
        """Makes the agent's home anew, as if it had never run."""
        shutil.rmtree(self.home, ignore_errors=True)
        self.home.mkdir(parents=True)


AGENTS = [
    Agent("claude", ".claude", "projects", "Agent"),
    Agent("codex", ".codex", "sessions", "spawn_agent"),
]


class Job:
    """One run of an agent."""

    def __init__(self, agent, name, command, env=None):
        self.agent = agent
        self.logs = WORK / "logs" / f"{agent.name}-{name}"
        self.said = WORK / f"said-{agent.name}-{name}"
        with self.said.open("wb") as said:
            # A session of its own, so that the whole sandbox can be ended with it.
            self.process = subprocess.Popen(
                command,
                env={**ENV, **(env or {})},
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                start_new_session=True,
            )
        ended_with_us(self.process, end_group)

    def is_alive(self):
        return self.process.poll() is None

    def end(self):
        """Waits for the end, which has to be a good one."""
        try:
            code = self.process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            end_group(self.process)
            code = f"none in {PATIENCE_S} s"
        said = self.said.read_text(errors="replace")
        demand(code == 0, f"{self.agent.name} ended with {code}: {said[-1000:]}")

    def calls(self):
        """The calls that the model made."""
        records = [json.loads(line) for line in (self.logs / "emitted.jsonl").read_text().splitlines()]
        items = [(record["scenario"], item) for record in records for item in record["items"]]
        return [call for call in (call_of(scenario, item) for scenario, item in items) if call]

    def requests(self):
        """The requests to the model, as text."""
        return [strings(json.loads(path.read_bytes())) for path in sorted(self.logs.glob("req_*.json"))]


def files_below(root, dir):
    """The files below a directory, by their path from a root, with their bytes."""
    files = (path for path in sorted(dir.rglob("*")) if path.is_file())
    return {str(path.relative_to(root)): path.read_bytes() for path in files}


def call_of(scenario, item):
    """A call as the model made it; none if the item is something else."""
    if item.get("type") == "tool_use":
        return Call(scenario, item["id"], item["name"], item["input"])
    if "call_id" in item:
        name = item.get("name") or item["type"].removesuffix("_call")
        if item.get("namespace", "").startswith("mcp__"):
            name = f"{item['namespace']}__{name}"
        given = item.get("arguments", item.get("input"))
        is_text = item["type"] == "function_call"
        return Call(scenario, item["call_id"], name, json.loads(given) if is_text else given)
    return None


def strings(value):
    """All texts in a JSON value, one after the other."""
    if isinstance(value, str):
        return value + "\n"
    if isinstance(value, dict):
        value = list(value.values())
    return "".join(map(strings, value)) if isinstance(value, list) else ""


def write_scenarios():
    """Adds the long scenarios to the rig's own."""
    claude, codex = AGENTS
    count = {"description": "Count", "prompt": "[[scenario:claude_sub]] Count.", "subagent_type": "general-purpose"}
    write_long(claude, ("Bash", "command"), {"tool": claude.spawn, "args": count})
    count = {"message": "[[scenario:codex_sub]] Count."}
    write_long(codex, ("exec_command", "cmd"), {"tool": codex.spawn, "namespace": "multi_agent_v1", "args": count})


def write_long(agent, shell, delegate):
    tool, command = shell
    calls = [{"tool": tool, "args": {command: f"echo turn {turn}"}} for turn in range(TURNS)]
    calls[DELEGATES] = delegate
    steps = [[{"sleep": THINKS_S}, {"text": "One more."}, call] for call in calls]
    path = WORK / "rig" / "scenarios" / f"{agent.name}_long.json"
    path.write_text(json.dumps({"steps": [*steps, [{"text": "Done."}]]}))
