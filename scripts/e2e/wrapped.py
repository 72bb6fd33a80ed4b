"""Claims of `steno run` and `steno mcp`: an agent that is wrapped notices nothing, and what it printed and called is recorded
once, in the session of its own files. Each takes an agent, and returns what was seen, in words with figures."""

import json
import os
import shutil
import signal
import time
from pathlib import Path

from agents import GEMINI, WORK
from ending import LOOK_S, wait_until
from merged import Merged
from promises import demand
from store import STENO, Store
from wraps import Wrap

PYTHON = "/usr/bin/python3"
ROUTED = Path(__file__).parent / "sandboxed" / "routed.sh"
# How long a recorder is stopped, while its agent works on.
STOPPED_S = 3
# The tools that the scripted model calls on the MCP server in the main scenario.
SERVED = ["add", "echo", "fail", "picture"]


class Wrapped:
    """A run of an agent under `steno run`, with a tee between the two."""

    def __init__(self, agent, name, begin, through=()):
        self.store = Store(agent, name)
        self.teed = WORK / f"teed-{name}-{agent.name}"
        tee = [PYTHON, str(WORK / "tee.py"), str(self.teed)]
        # A script that does the same as these words may be put in their place.
        steno = [*map(str, through)] or [STENO, "--store", str(self.store.path), "run", "--"]
        self.job = begin(wrap=" ".join([*steno, *tee]))

    def recorder(self):
        """Waits for the process that records, and for something to record; returns its id."""
        demand(wait_until(lambda: self.job.said.stat().st_size or not self.job.is_alive()), "the agent prints nothing")
        found = wait_until(lambda: recorders(self.store) or not self.job.is_alive())
        demand(found is not True and len(found) == 1, f"recorders of a running command: {found}")
        return found[0]

    def check(self, code=0):
        """Holds streams, exit code and record to what the agent did; returns figures."""
        has = self.job.end(None)
        own = int((self.teed / "exit_code").read_text())
        demand(has == own, f"the agent ended with {own}, and `steno run` with {has}")
        demand((code == 0) == (own == 0), f"the agent ended with {own}")
        said, complained = self.job.said.read_bytes(), self.job.complained.read_bytes()
        demand(said and said == (self.teed / "s2c").read_bytes(), f"stdout: {len(said)} bytes, not as the agent wrote them")
        demand(b"steno: " not in complained, f"`steno run` complains: {complained[-500:]}")
        self.store.run("import")
        demand(not [*(self.store.path / "wraps").iterdir()], "a wrap is left over")
        self.store.run("verify")
        self._check_record({"out": said, "err": complained}, own)
        session = Merged(self.store)
        calls = session.check_calls(self.job)
        return f"{len(said)} bytes of stdout and exit code {own} kept and recorded, {calls} calls in one session"

    def _check_record(self, streams, code):
        """All that was printed is in the record, and how the command ended."""
        run = (self.teed / "run").read_text()
        files = [file for path, file in self.store.given_back(run).items() if path.endswith(".wrap")]
        demand(len(files) == 1, f"run {run} has {len(files)} wraps")
        wrap = Wrap(files[0])
        for lane, bytes in streams.items():
            demand(wrap.lanes[lane] == bytes, f"{lane}: {len(wrap.lanes[lane])} of {len(bytes)} bytes are recorded")
        demand(wrap.lost == 0 and wrap.ended == {"exit_code": code}, f"lost {wrap.lost}, ended {wrap.ended}")
        ends = self.store.lines("events", run, "--json", "--type", "run.completed")
        codes = [end["payload"].get("exit_code") for end in ends]
        demand(codes == [code], f"run.completed with {codes}, and not {code}")


def recorders(store):
    """The processes that record wraps into a store."""
    found = []
    for dir in Path("/proc").iterdir():
        try:
            words = (dir / "cmdline").read_bytes().split(b"\0") if dir.name.isdecimal() else []
        except OSError:
            continue
        if b"__wrap-recorder" in words and str(store.path).encode() in words:
            found.append(int(dir.name))
    return found


def wrapped(agent):
    """The main scenario, and one in which the agent fails."""
    figures = Wrapped(agent, "wrapped", agent.main).check()
    return f"{figures}; {Wrapped(agent, 'refused', agent.refused).check(code=1)} of an agent that failed"


def routed(agent):
    """The same with the agent's MCP server behind `steno mcp`, by its configuration, which is changed and changed back."""
    script = shutil.copy(ROUTED, WORK / f"routed-{agent.name}.sh")
    kept = WORK / f"servers-{agent.name}"
    store = WORK / "stores" / f"routed-{agent.name}"
    run = Wrapped(agent, "routed", agent.main, [script, STENO, store, agent.servers, kept])
    figures = run.check()
    before, changed = ((kept / name).read_bytes() for name in ("before", "changed"))
    after = agent.servers.read_bytes()
    demand(STENO.encode() in changed and STENO.encode() not in before + after, "the configuration was not changed, or not back")
    if agent is GEMINI:
        # It writes its settings anew when it starts.
        before, after = (json.loads(text)["mcpServers"] for text in (before, after))
    demand(before == after, f"{agent.servers.name} is not as it was")
    session = Merged(run.store)
    seen = sorted(call.tool for call in session.calls if "mcp" in call.channels)
    demand(seen == SERVED, f"`steno mcp` saw {seen}, and not {SERVED}")
    routers = sorted(call.tool for call in session.calls if call.is_router)
    demand(routers == SERVED, f"{routers} have fidelity router, and not {SERVED}")
    return f"{figures}; {len(seen)} MCP calls at the seam, once each, with fidelity router"


def stopped(agent):
    """The recorder is stopped for some seconds, while the agent works."""
    run = Wrapped(agent, "stopped", agent.long)
    recorder = run.recorder()
    os.kill(recorder, signal.SIGSTOP)
    size = run.job.said.stat().st_size
    time.sleep(STOPPED_S)
    more = run.job.said.stat().st_size - size
    demand(run.job.is_alive() and more > 0, f"the agent printed {more} bytes beside a stopped recorder")
    os.kill(recorder, signal.SIGCONT)
    return f"{more} bytes printed in {STOPPED_S} s beside a stopped recorder; {run.check()}"


def killed_recorder(agent):
    """The recorder is killed at the beginning, and the next command archives everything."""
    run = Wrapped(agent, "killed-recorder", agent.long)
    os.kill(run.recorder(), signal.SIGKILL)
    wait_until(lambda: not run.job.is_alive(), every_s=LOOK_S)
    left = [path.stat().st_size for path in (run.store.path / "wraps").glob("*.wrap")]
    demand(len(left) == 1, f"wraps left by a killed recorder: {left}")
    return f"{left[0]} bytes left by a killed recorder and archived by the next import; {run.check()}"
