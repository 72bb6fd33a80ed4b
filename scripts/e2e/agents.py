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

    def __init__(self, name, **about):
        self.name = name
        # The directory that `steno` knows, and in it the one with nothing but sessions.
        self.home = WORK / "home" / name / f".{name}"
        self.sessions = self.home / about["sessions"]
        # The tool that starts a subagent, and the tool that runs a command, with the name of its parameter.
        self.spawn = about["spawn"]
        self.shell = about["shell"]
        # Tells `steno` where the agent's files are.
        self.variables = {about["variable"]: str(self.home if name != "gemini" else self.home.parent)}
        # The configuration that names its MCP servers.
        self.servers = about["servers"] if "servers" in about else self.home / about["settings"]
        self._refusing = about.get("refusing", f"{name}_err400")
        self._words = about["words"]
        self._resume = about["resume"]

    def main(self, wrap=None):
        """Begins the scenario with everything in it: tools, failures, a subagent, MCP, a refused request."""
        return Job(self, "main", [str(RIG), "main", str(WORK), self.name], {"WRAP": wrap} if wrap else {})

    def long(self, wrap=None):
        """Begins a scenario with many short turns and a subagent."""
        return self._run("long", f"[[scenario:{self.name}_long]] Take your time.", wrap=wrap)

    def refused(self, wrap):
        """Begins a scenario in which the model refuses the second request, so that the agent fails."""
        return self._run("refused", f"[[scenario:{self._refusing}]] Fail.", wrap=wrap)

    def go_on(self, session):
        """Begins to go on with a session, in the home that is there."""
        return self._run("again", f"[[scenario:{self.name}_sub]] Go on.", session=session)

    def _run(self, name, prompt, session=None, wrap=None):
        command = [str(RIG), "run", str(WORK), self.name, name, *self._words(prompt)]
        if session:
            command[-1:] = self._resume(session, command[-1])
        env = {"KEEP": "1"} if session else {}
        return Job(self, name, command, {**env, **({"WRAP": wrap} if wrap else {})})

    def files(self):
        """The files of all sessions, by their path in the home, with their bytes; without locks."""
        files = files_below(self.home, self.sessions)
        return {path: file for path, file in files.items() if not path.endswith(".lock")}

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


CLAUDE = Agent(
    "claude",
    sessions="projects",
    spawn="Agent",
    shell=("Bash", "command"),
    variable="CLAUDE_CONFIG_DIR",
    servers=WORK / "mcp.json",
    # With other refusals it ends well.
    refusing="claude_err400b",
    words=lambda prompt: [
        *("--output-format", "stream-json", "--verbose", "--permission-mode", "bypassPermissions", "-p", prompt),
    ],
    resume=lambda session, prompt: [prompt, "--resume", session],
)
CODEX = Agent(
    "codex",
    sessions="sessions",
    spawn="spawn_agent",
    shell=("exec_command", "cmd"),
    variable="CODEX_HOME",
    settings="config.toml",
    words=lambda prompt: [
        *("exec", "--json", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", prompt),
    ],
    resume=lambda session, prompt: ["resume", session, prompt],
)
GEMINI = Agent(
    "gemini",
    # Gemini CLI names a project after its directory.
    sessions="tmp/gemini/chats",
    spawn="invoke_agent",
    shell=("run_shell_command", "command"),
    variable="GEMINI_CLI_HOME",
    settings="settings.json",
    words=lambda prompt: [
        *("--output-format", "stream-json", "--skip-trust", "-m", "gemini-2.5-pro", "--approval-mode", "yolo"),
        *("-p", prompt),
    ],
    resume=lambda session, prompt: [prompt, "--resume", session],
)
COPILOT = Agent(
    "copilot",
    sessions="session-state",
    spawn="task",
    shell=("bash", "command"),
    variable="COPILOT_HOME",
    servers=WORK / "mcp-copilot.json",
    words=lambda prompt: [
        *("--allow-all-tools", "--no-auto-update", "--disable-builtin-mcps", "--output-format", "json", "-p", prompt),
    ],
    resume=lambda session, prompt: [prompt, f"--resume={session}"],
)
AGENTS = [CLAUDE, CODEX, GEMINI, COPILOT]


class Job:
    """One run of an agent."""

    def __init__(self, agent, name, command, env=None):
        self.agent = agent
        self.logs = WORK / "logs" / f"{agent.name}-{name}"
        self.said, self.complained = (WORK / f"{stream}-{agent.name}-{name}" for stream in ("said", "complained"))
        with self.said.open("wb") as said, self.complained.open("wb") as complained:
            # A session of its own, so that the whole sandbox can be ended with it.
            self.process = subprocess.Popen(
                command,
                env={**ENV, **(env or {})},
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=complained,
                start_new_session=True,
            )
        ended_with_us(self.process, end_group)

    def is_alive(self):
        return self.process.poll() is None

    def end(self, wanted=0):
        """Waits for the end, which has to be a good one unless another exit code is wanted; `None` takes any code."""
        try:
            code = self.process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            end_group(self.process)
            code = f"none in {PATIENCE_S} s"
        said = self.said.read_text(errors="replace")[-1000:] + self.complained.read_text(errors="replace")[-1000:]
        demand(code == wanted or wanted is None, f"{self.agent.name} ended with {code}: {said}")
        return code

    def calls(self):
        """The calls that the model made."""
        items = [(record["scenario"], item) for record in self._emitted() for item in record["items"]]
        return [call for call in (call_of(scenario, item) for scenario, item in items) if call]

    def responses(self):
        """How many responses the model gave, without refusals."""
        return sum(record["usage"] is not None for record in self._emitted())

    def _emitted(self):
        return [json.loads(line) for line in (self.logs / "emitted.jsonl").read_text().splitlines()]

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
    if "functionCall" in item:
        return Call(scenario, None, item["functionCall"]["name"], item["functionCall"]["args"])
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
    count = {"description": "Count", "prompt": "[[scenario:claude_sub]] Count.", "subagent_type": "general-purpose"}
    write_long(CLAUDE, count)
    write_long(CODEX, {"message": "[[scenario:codex_sub]] Count."}, namespace="multi_agent_v1")
    write_long(GEMINI, {"agent_name": "generalist", "prompt": "[[scenario:gemini_sub]] Count."})
    count = {"description": "Count", "prompt": "[[scenario:copilot_sub]] Count.", "agent_type": "general-purpose"}
    write_long(COPILOT, {**count, "name": "counter", "mode": "sync"})


def write_long(agent, count, **more):
    tool, command = agent.shell
    # Copilot's shell wants a description, and the others allow one, except Codex's.
    about = {} if agent is CODEX else {"description": "Echo"}
    calls = [{"tool": tool, "args": {command: f"echo turn {turn}", **about}} for turn in range(TURNS)]
    calls[DELEGATES] = {"tool": agent.spawn, "args": count, **more}
    steps = [[{"sleep": THINKS_S}, {"text": "One more."}, call] for call in calls]
    path = WORK / "rig" / "scenarios" / f"{agent.name}_long.json"
    path.write_text(json.dumps({"steps": [*steps, [{"text": "Done."}]]}))
