"""Checks receipts with the second verifier, which shares no code with the program.

The sessions are all of ../shared, or our own samples without it. Sources of one session are recorded one after the other in
both orders, and the output of a command also by `steno run`. Requests of Claude Code are made from its session files. All
receipts are made after each step, and those of the step before must still hold, for the program too.
"""

import importlib.util
import json
import shutil
from concurrent.futures import ThreadPoolExecutor

from commands import ROOT, run_steno, shared
from http_recordings import recording_of
from promises import Violation, demand

# How many stores are checked at a time. Nearly all of the time is spent in the program.
STORES_AT_A_TIME = 2
# What the files of an agent's output and of connections are called in `versions`; the others are the agent's own.
OUTPUTS = "stream", "exec", "stdout", "app-server", "json"


def load_verifier():
    spec = importlib.util.spec_from_file_location("verify_receipt", ROOT / "docs/receipts/verify_receipt.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


VERIFIER = load_verifier()


class Check:
    """A store that gets one source after the other, and its receipts."""

    def __init__(self, program, store, steps):
        self.program, self.store, self.steps = program, store, steps
        self.turns = self.of_several = self.checks = 0

    def run(self):
        """Returns the receipts of the last step, by session and turn."""
        self.store.parent.mkdir(parents=True)
        receipts = {}
        for step in self.steps:
            self.steno(*step)
            self.check_older(receipts)
            receipts = self.make_receipts()
        self.turns = len(receipts)
        self.of_several = sum(len(self.runs_of(text)) > 1 for text in receipts.values())
        shutil.rmtree(self.store.parent)
        return receipts

    def steno(self, *args):
        return run_steno(self.program, self.store, *args)

    def list_turns(self):
        try:
            return [json.loads(line) for line in self.steno("receipt", "ls", "--json").splitlines()]
        except Violation as error:
            if "no turns found" in str(error):
                return []
            raise

    def make_receipts(self):
        receipts = {}
        for turn in self.list_turns():
            which = ["--thread", turn["thread_id"], "--turn", turn["id"]]
            text = self.steno("receipt", "export", *which, "--integrity")
            lines = self.store.parent / "lines.jsonl"
            lines.write_text(self.steno("receipt", "lines", *which))
            receipts[turn["thread_id"], turn["id"]] = text
            self.demand_holds(text, lines)
            self.demand_holds(text)
            self.demand_holds(text.split(',\n  "integrity"')[0] + "\n}\n")
        if receipts:
            self.check_changed(text)
        return receipts

    def check_older(self, receipts):
        """Receipts from before a source was added."""
        for text in receipts.values():
            self.demand_holds(text)
            path = self.store.parent / "receipt.json"
            path.write_text(text)
            self.steno("receipt", "verify", path)

    def check_changed(self, text):
        broken = text.replace('"raw_reasoning_exported": false', '"raw_reasoning_exported": true')
        try:
            self.verify(broken)
        except VERIFIER.Differs:
            return
        raise Violation("the verifier takes a changed receipt")

    def runs_of(self, text):
        return [run["run_id"] for run in json.loads(text)["source_event_lineage"]["runs"]]

    def verify(self, text, lines=None):
        transcripts = [self.store / "transcripts" / f"{run}.jsonl" for run in self.runs_of(text)]
        VERIFIER.verify(text.encode(), transcripts, lines)

    def demand_holds(self, text, lines=None):
        self.checks += 1
        try:
            self.verify(text, lines)
        except (VERIFIER.Differs, VERIFIER.BadInput) as error:
            receipt = json.loads(text)
            where = f"{self.steps}: {receipt['thread']['id']} {receipt['turn']['id']}"
            raise Violation(f"{where}, from {'its lines' if lines else 'transcripts'}: {error.args}") from None


def import_of(paths):
    return ["import", *sorted(map(str, paths))]


def captures():
    """The sources of each capture: the agent's files, and its output or connection."""
    for capture in sorted((shared() / "captures").glob("*/*/*/")):
        outputs = [capture / name for name in ("stream.ndjson", "duplex.jsonl") if (capture / name).exists()]
        yield capture, capture / "home", outputs[0]


def stores(work):
    """The steps of each store, by its name."""
    for capture, home, output in captures():
        name = "-".join(capture.parts[-3:])
        sources = {name: output}
        for number, session in enumerate(sorted(home.glob("projects/*/*.jsonl"))):
            requests = work / f"{name}-{number}.http.jsonl"
            requests.write_text(recording_of(session))
            sources[f"{name}-http-{number}"] = requests
        for of, source in sources.items():
            steps = [import_of([home]), import_of([source])]
            yield of, steps
            yield f"{of}-reversed", steps[::-1]
        if output.suffix == ".ndjson":
            yield f"{name}-wrapped", [import_of([home]), ["run", "--", "cat", str(output)]]
    for version in sorted((shared() / "captures").glob("*/*/")):
        # Captures that resume a session have copies of its file.
        sources = [source for of, *both in captures() if of.parent == version for source in both]
        yield "-".join(version.parts[-2:]), [import_of(sources)]
    for agent in sorted((shared() / "versions").glob("*/")):
        outputs = [path for path in agent.iterdir() if path.name.startswith(OUTPUTS)]
        files = [path for path in agent.iterdir() if path not in outputs]
        yield f"versions-{agent.name}", [import_of(part) for part in (outputs, files) if part]
    if (shared() / "recordings").is_dir():
        yield "recordings", [import_of([shared() / "recordings"])]


def check_verifier(program, work):
    """Two implementations of one page agree on every turn, in whichever order its sources come."""
    work.mkdir()
    kind, found = "real sessions", dict(stores(work))
    if not found:
        kind, found = "our own samples: ../shared is absent", {"samples": [["up", "--demo", "--once"]]}
    checks = {name: Check(program, work / name / "store", steps) for name, steps in found.items()}
    with ThreadPoolExecutor(STORES_AT_A_TIME) as pool:
        receipts = dict(zip(checks, pool.map(Check.run, checks.values())))
    for name in checks:
        if name.endswith("-reversed"):
            same = receipts[name] == receipts[name.removesuffix("-reversed")]
            demand(same, f"{name}: receipts depend on the order of the sources")
    turns, of_several, number = (sum(getattr(check, what) for check in checks.values())
                                 for what in ("turns", "of_several", "checks"))
    demand(turns, "there are no turns")
    print(f"second verifier: ok, {turns} turns of {kind}, {of_several} of several runs, {number} checks", flush=True)
