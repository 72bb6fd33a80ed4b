"""Claims of `steno app-server`: a client that Codex serves through it notices nothing, and all that was said is
recorded. Each takes an agent, which is Codex, and returns what was seen, in words with figures."""

import json
import shutil
from collections import Counter
from pathlib import Path

from agents import RIG, WORK, Job
from agreement import check_thread
from promises import demand
from recorded import check_artifacts, check_bridges, check_compactions, check_messages, check_runs, check_secret
from sessionfiles import SessionFiles
from spines import check_valid, spines
from store import STENO, Store
from teed import Teed

PYTHON = "/usr/bin/python3"
SANDBOXED = Path(__file__).parent / "sandboxed"
# What a connection and its session files have both, and has to be there for the comparison to say anything.
COMPARED = [
    "turns",
    "ends of turns",
    "turns with token totals",
    "settings of turns",
    "items userMessage",
    "items agentMessage",
    "items reasoning",
    "items commandExecution",
    "items fileChange",
    "items collabAgentToolCall",
    "items contextCompaction",
    "compactions",
    "sessions",
    "child links",
]


def call(tool, namespace=None, **args):
    return {"tool": tool, "args": args, **({"namespace": namespace} if namespace else {})}


def patch(text):
    return {"custom": "apply_patch", "input": f"*** Begin Patch\n{text}*** End Patch\n"}


QUESTION = {
    "id": "color",
    "header": "Color",
    "question": "Which color?",
    "options": [{"label": "Red (Recommended)", "description": "warm"}, {"label": "Blue", "description": "cold"}],
}
REVIEW = {
    "findings": [],
    "overall_correctness": "patch is correct",
    "overall_explanation": "It is fine.",
    "overall_confidence_score": 0.9,
}
CHILD_ID = '{{match:agent_id[\\\\":\\s]+([0-9a-f-]{36})}}'
# What the model says to our own client: children ask for commands and for patches, and one is refused.
SCENARIOS = {
    "e2e_parent": [
        [
            {"text": "First a patch.", "phase": "commentary"},
            patch("*** Update File: kept.txt\n@@\n zero\n-one\n+eins\n two\n"),
        ],
        [{"tool_search": "spawn agent wait close"}],
        [call("spawn_agent", "multi_agent_v1", message="[[scenario:e2e_child]] Count.")],
        [call("wait_agent", "multi_agent_v1", targets=[CHILD_ID], timeout_ms=30000)],
        [call("exec_command", cmd="printf 'a\\nb\\n'; exit 3")],
        [{"text": "Delegated.", "phase": "final_answer"}],
    ],
    "e2e_child": [
        [
            {"think": "**Counting**\n\nUse wc."},
            call("exec_command", cmd="wc -l notes.txt > counted.txt; cat counted.txt"),
        ],
        [patch("*** Add File: child.py\n+print('child')\n")],
        [call("exec_command", cmd="touch refused.txt")],
        [call("exec_command", cmd="touch again.txt")],
        [{"text": "Counted.", "phase": "final_answer"}],
    ],
    "e2e_other": [
        [call("spawn_agent", "collaboration", task_name="kid", message="[[scenario:e2e_kid]] Do it.")],
        [call("wait_agent", "collaboration", timeout_ms=30000)],
        [{"text": "Delegated.", "phase": "final_answer"}],
    ],
    "e2e_kid": [
        [call("exec_command", cmd="touch kid.txt")],
        [patch("*** Add File: kid.py\n+print('kid')\n")],
        [{"text": "Done.", "phase": "final_answer"}],
    ],
    "e2e_review": [
        [call("exec_command", cmd="git diff --stat HEAD")],
        [{"text": json.dumps(REVIEW), "phase": "final_answer"}],
    ],
    "e2e_ask": [[call("request_user_input", questions=[QUESTION])], [{"text": "Red it is.", "phase": "final_answer"}]],
}


def set_up():
    """Adds what our own session needs to the rig: its scenarios, its client, and a model that compacts."""
    for name, steps in SCENARIOS.items():
        (WORK / "rig" / "scenarios" / f"{name}.json").write_text(json.dumps({"steps": steps}))
    lib = WORK / "rig" / "lib"
    (lib / "model_server.py").rename(lib / "rig_model.py")
    shutil.copy(SANDBOXED / "model.py", lib / "model_server.py")
    for name in ("client.py", "asker.py", "tee.py"):
        shutil.copy(SANDBOXED / name, WORK)


class Connection:
    """A connection between a client and Codex, with `steno app-server` in between and a tee on either side of it."""

    def __init__(self, agent, name, *options):
        self.agent = agent
        self.name = name
        self.store = Store(agent, name)
        self.dir = WORK / f"{name}-{agent.name}"
        self.dir.mkdir()
        tee = [PYTHON, str(WORK / "tee.py")]
        outer, inner = ([*tee, str(self.dir / side)] for side in ("outer", "inner"))
        steno = [STENO, "--store", str(self.store.path), "app-server", "--"]
        codex = [str(WORK / "pkgs" / agent.name / "node_modules" / ".bin" / "codex"), *options]
        # The client names one program and no arguments of it.
        self.server = self.dir / "server"
        words = " ".join(f"'{word}'" for word in [*outer, *steno, *inner, *codex])
        self.server.write_text(f'#!/bin/sh\nexec {words} "$@"\n')
        self.server.chmod(0o755)

    def check(self, bridge_kinds, compaction_kinds, more_compared=()):
        """Holds what is recorded to what was said and to the session files, in which the kinds that are named have to
        be; returns figures."""
        teed, files = Teed(self.dir), SessionFiles(self.agent)
        live = spines(self.store)
        figures = [f"messages {teed.count} of {teed.bytes} bytes, the same on both sides and each recorded once"]
        check_messages(teed, live)
        check_valid(self.store)
        check_runs(self.store, teed, live)
        figures.append(f"spines {len(live)} with {sum(map(len, live.values()))} records, nothing found in them")
        bridges, own = check_bridges(teed, live, files)
        demand({kind for kind, _ in bridges} == bridge_kinds, f"there were bridges {bridges}")
        bridges = {f"{kind} {json.dumps(decision)}": count for (kind, decision), count in bridges.items()}
        figures.append(f"bridges {told(bridges)}, own answers without one {own}")
        compactions = check_compactions(live, files)
        demand(compactions.keys() == compaction_kinds, f"there were compactions {compactions}")
        figures.append(f"compactions {told(compactions)}, both histories as the session files give them")
        figures.append(f"agree with the session files on {told(self._agree(live, files, more_compared))}")
        return figures

    def _agree(self, live, files, more):
        """Holds each spine to that of its session files, in another store."""
        other = Store(self.agent, f"{self.name}-files")
        other.run("spine", "record", *(str(file.path) for file in files.files if file.thread in live))
        check_valid(other)
        written = spines(other)
        demand(
            live.keys() == written.keys(), f"threads of the connection {sorted(live)}, of the files {sorted(written)}"
        )
        compared = Counter()
        for thread, records in live.items():
            compared += check_thread(thread, records, written[thread])
        absent = [kind for kind in (*COMPARED, *more) if not compared[kind]]
        demand(not absent, f"nothing was there to compare of {absent}")
        return compared


def told(counts):
    return ", ".join(f"{count} {kind}" for kind, count in sorted(counts.items()))


def connected(agent):
    """The rig's own session: tools of every kind, a child, approvals, an interrupt, a compaction by Codex, a fork."""
    connection = Connection(agent, "connected")
    env = {"SERVER": str(connection.server)}
    Job(agent, "codex-app-server", [str(RIG), "drive", str(WORK), "codex-app-server"], env).end()
    return "; ".join(connection.check({"exec_approval"}, {"local"}, ["items mcpToolCall", "forks"]))


def bridged(agent):
    """Our own session, in a repository: two threads, more approvals of children, a question, a secret, an error,
    compactions by the provider, turns taken back, a review, an interrupt."""
    # A provider of this name compacts by itself.
    connection = Connection(agent, "bridged", "-c", 'model_providers.scripted.name="OpenAI"')
    before = connection.dir / "before"
    client = [PYTHON, str(WORK / "client.py"), str(connection.server), str(WORK / "scratch" / agent.name), str(before)]
    Job(agent, "bridged", [str(RIG), "run", str(WORK), agent.name, "bridged", *client], {"NOBIN": "1"}).end()
    more = ["items subAgentActivity", "items enteredReviewMode", "items exitedReviewMode"]
    figures = connection.check({"exec_approval", "patch_approval"}, {"remote"}, more)
    figures.append(check_secret(connection))
    figures.append(check_artifacts(connection, before))
    return "; ".join(figures)
