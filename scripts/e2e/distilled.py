"""The claim of `steno spine distill`: turns of a real session become tasks that fail before what the session did and pass
behind it; and what is not known, or is no example for anybody, is said. It takes an agent, which is Codex, and returns what was
seen, in words with figures."""

import json
import subprocess

from agents import ENV, RIG, WORK, Job
from connections import PYTHON, Connection, call, patch
from ending import PATIENCE_S
from promises import demand
from sessionfiles import SessionFiles
from spines import check_valid
from store import STENO, Store
from tasks import Task, changed, tree

NAME = "distilled"


def test_of(module, body):
    """The words of a test, and the command that runs it."""
    return (
        f"import unittest\n\n\nclass Test(unittest.TestCase):\n    def test(self):\n{body}",
        f"python3 -m unittest -q {module}",
    )


PRICES, RUN_PRICES = test_of(
    "test_prices", "        import prices\n        self.assertEqual(prices.total([1, 2, 3]), 6)\n"
)
RATES, RUN_RATES = test_of(
    "test_rates", "        import pathlib\n        self.assertIn('19', pathlib.Path('rates.txt').read_text())\n"
)
CHEAPER, RUN_CHEAPER = test_of("test_cheaper", "        import cheaper\n        self.assertEqual(cheaper.half(6), 3)\n")
NAMES, RUN_NAMES = test_of("test_names", "        import names\n        self.assertEqual(names.plain('Ü'), 'ü')\n")
EMPTY, RUN_EMPTY = test_of("test_empty", "        import prices\n        self.assertEqual(prices.total([]), 0)\n")
# What the repository has that others have too, what only it has, and what nobody has committed.
PUBLISHED = {
    ".gitignore": "__pycache__/\n",
    "prices.py": "def total(prices):\n    return sum(prices[1:])\n",
    "rates.txt": "rate 5\n",
    "test_prices.py": PRICES,
    "test_rates.py": RATES,
}
COMMITTED = {"rates.txt": "rate 6\n"}
CHANGED = {"rates.txt": "rate 7\n", "draft ü.txt": "nobody knows it\n"}


def run(command):
    return call("exec_command", cmd=command)


def added(path, text):
    return patch(f"*** Add File: {path}\n" + "".join(f"+{line}\n" for line in text.splitlines()))


def turn(name, words, *steps, answers=(), is_interrupted=False):
    """A turn: what the user says, what the model does, and what is said to it when it asks."""
    steps = [[step] for step in (*steps, {"text": "Done.", "phase": "final_answer"})]
    # It is not heard until the recorder has looked at the repository: a look that is slower than the model counts for nothing.
    steps[0][:0] = [{"seen_in": str(WORK / "stores" / f"{NAME}-codex" / "spine")}, {"think": "Well."}]
    words = f"[[scenario:{name}]] {words}"
    return {"scenario": name, "steps": steps, "words": words, "answers": answers, "is_interrupted": is_interrupted}


MENDED = patch(
    "*** Update File: prices.py\n@@\n def total(prices):\n-    return sum(prices[1:])\n+    return sum(prices)\n"
)
GENEROUS = patch("*** Update File: prices.py\n@@\n def total(prices):\n-    return sum(prices)\n+    return 0\n")
TURNS = [
    # Every change is a patch.
    turn(
        "e2e_mend",
        "`total` leaves the first price out.\n\nMend it; \"test_prices\" shows it.\n  - ü你😀, $HOME and 'quotes'",
        run(RUN_PRICES),
        MENDED,
        run(RUN_PRICES),
    ),
    # A command changes what nobody has committed.
    turn("e2e_rate", "The rate is 19 now.", run(RUN_RATES), run("sed -i s/7/19/ rates.txt"), run(RUN_RATES)),
    # Both of it.
    turn(
        "e2e_cheaper",
        "Half the price, with a test.",
        run(RUN_CHEAPER),
        added("test_cheaper.py", CHEAPER),
        run("printf 'def half(price):\\n    return price // 2\\n' > cheaper.py"),
        run(RUN_CHEAPER),
    ),
    turn(
        "e2e_denied",
        "Add it to the notes, or something.",
        GENEROUS,
        added("more.txt", "more\n"),
        run(RUN_PRICES),
        answers=("decline", "accept", "accept"),
    ),
    turn(
        "e2e_names",
        "Names in small letters.",
        run(RUN_NAMES),
        added("test_names.py", NAMES),
        added("names.py", "def plain(name):\n    return name.lower()\n"),
        run("git status --short"),
        run(RUN_NAMES),
    ),
    turn("e2e_interrupted", "Wait for it.", added("waits.txt", "long\n"), run("sleep 60"), is_interrupted=True),
    turn(
        "e2e_empty",
        "An empty list costs nothing.",
        run(RUN_EMPTY),
        added("test_empty.py", EMPTY),
        run(RUN_EMPTY),
    ),
]
# What turns become: the command that checks it, and the kind of its solution from the connection, and from the session file,
# where nothing stands if it becomes no task.
WINDOWS = {
    (1, 1): (RUN_PRICES, "patches", "patches"),
    (2, 2): (RUN_RATES, "diff", None),
    (3, 3): (RUN_CHEAPER, "diff", "none"),
    (5, 5): (RUN_NAMES, "patches", "patches"),
    (7, 7): (RUN_EMPTY, "patches", "patches"),
    (1, 3): (RUN_CHEAPER, "diff", "none"),
    (2, 3): (RUN_CHEAPER, "diff", "none"),
}
# Why the others become none, from both.
REFUSED = {4: "denied-approval", 6: "failed-turn"}
# What is in doubt. Whatever a session file does not say of the working tree is; a command whose end nobody has seen may go on.
UNKNOWN_TREE = "whether the working tree differed from the commit is not recorded"
UNKNOWN_CALLS = "before the window may have changed files in a way that is not recorded"
DOUBTS = {(7, 7): [UNKNOWN_CALLS]}
UNKNOWN_TOP = "the top of the repository is not recorded"
WRITTEN_DOUBTS = {turns: [UNKNOWN_CALLS] * (turns[0] > 2) + [UNKNOWN_TREE, UNKNOWN_TOP] for turns in WINDOWS}


def set_up():
    """Adds what the session needs to the rig."""
    for each in TURNS:
        path = WORK / "rig" / "scenarios" / f"{each['scenario']}.json"
        path.write_text(json.dumps({"steps": each["steps"]}))


def distilled(agent):
    """Our own session, in a repository: changes by patches, by commands and by both, in seven turns, of which one was denied
    something and one was interrupted."""
    connection = Connection(agent, NAME)
    copies, repository = connection.dir / "copies", WORK / "scratch" / agent.name
    converse(agent, connection, repository, copies)
    live = Distilling(connection.store, repository, connection.dir / "live")
    other = Store(agent, f"{NAME}-file")
    files = SessionFiles(agent).files
    demand(len(files) == 1, f"one thread has {len(files)} session files")
    other.run("spine", "record", str(files[0].path))
    written = Distilling(other, repository, connection.dir / "written")
    for each, kind in ((live, 1), (written, 2)):
        each.check_list({turns[0]: want[kind] for turns, want in WINDOWS.items() if turns[0] == turns[1]})
        each.distill([turns for turns, want in WINDOWS.items() if want[kind]])
        each.check_refused()
        each.check_same_bytes()
    live.check_tasks(copies, 1, DOUBTS)
    written.check_tasks(copies, 2, WRITTEN_DOUBTS)
    check_agreement(live, written)
    return f"{live.told()}; of the session file {written.told()}; refused by both {len(REFUSED)}"


def converse(agent, connection, repository, copies):
    """Has the session with the agent."""
    story = connection.dir / "story.json"
    turns = [{name: each[name] for name in ("words", "answers", "is_interrupted")} for each in TURNS]
    story.write_text(json.dumps({"published": PUBLISHED, "committed": COMMITTED, "changed": CHANGED, "turns": turns}))
    client = [PYTHON, str(WORK / "asker.py"), str(connection.server), str(repository), str(story), str(copies)]
    Job(agent, NAME, [str(RIG), "run", str(WORK), agent.name, NAME, *client], {"NOBIN": "1"}).end()


class Distilling:
    """The one thread of a store, and the tasks that were made of it."""

    def __init__(self, store, repository, dir):
        check_valid(store)
        self.store, self.repository, self.dir = store, repository, dir
        dir.mkdir()
        self.thread = next(iter((store.path / "spine").iterdir())).name
        self.bundle = dir / "bundle.tar.zst"
        store.run("spine", "bundle", self.thread, "-o", str(self.bundle))
        self.tasks, self.allowed, self.worked = {}, {}, 0

    def _distill(self, *options, code=0, of=None):
        """Distills without a store, unless it is of a thread, and returns what is told, an object a line."""
        store = ["--store", str(self.store.path if of else WORK / "nowhere")]
        command = [STENO, *store, "spine", "distill", of or str(self.bundle), "--json", *options]
        said = subprocess.run(command, env=ENV, capture_output=True, timeout=PATIENCE_S, check=False)
        demand(said.returncode == code, f"{options} ended with {said.returncode}: {said.stderr.decode()}")
        return [json.loads(line) for line in said.stdout.splitlines()]

    def _wanted(self, windows, into):
        turns = [word for first, last in windows for word in ("--turns", f"{first}..{last}")]
        return [*turns, "--repo", str(self.repository), "-o", str(into)]

    def check_list(self, solutions):
        """The list has every turn, the user's words, and what it would become."""
        listed = self._distill("--list")
        demand([each["turn"] for each in listed] == list(range(1, len(TURNS) + 1)), f"turns {listed}")
        for each, want in zip(listed, TURNS):
            number = each["turn"]
            demand(each["words"] == [want["words"]], f"turn {number}: {each['words']} was said")
            kind = solutions.get(number)
            fine = not each["task"] if kind is None else each["task"] and each["solution"] == (kind != "none")
            demand(fine, f"turn {number} is to be {kind}: {each}")

    def distill(self, windows):
        into = self.dir / "tasks"
        told = self._distill(*self._wanted(windows, into))
        self.tasks = {task.turns: task for task in (Task(WORK / each["output"]) for each in told)}
        demand(sorted(self.tasks) == sorted(windows), f"{sorted(windows)} became {told}")

    def check_refused(self):
        """What is no example is refused with its reason, and labelled if it is allowed."""
        for number, concern in REFUSED.items():
            into = self.dir / f"refused-{number}"
            wanted = self._wanted([(number, number)], into)
            told = self._distill(*wanted, code=1)
            fine = [each["concern"] for each in told] == [concern] and f"turn {number} " in told[0]["refused"]
            demand(fine and not into.exists(), f"turn {number} is refused as {told}")
            self._distill(*wanted, "--allow", concern, "--allow", "open-call")
            task = Task(into)
            labels = [each["label"] for each in task.told["labels"]]
            demand(concern in labels, f"turn {number} was allowed, and has the labels {labels}")
            self.allowed[number] = task

    def check_same_bytes(self):
        """The same thread gives the same bundle, and the same bundle and the thread itself give the same tasks."""
        again = self.dir / "again.tar.zst"
        self.store.run("spine", "bundle", self.thread, "-o", str(again))
        demand(again.read_bytes() == self.bundle.read_bytes(), "a second bundle is another")
        for name, of in (("again", None), ("of-thread", self.thread)):
            into = self.dir / name
            self._distill(*self._wanted(self.tasks, into), of=of)
            for task in self.tasks.values():
                other = Task(into / task.name)
                demand(other.files == task.files, f"{name}: {changed(other.files, task.files)} of {task.name} differ")
        # Of each turn that can become a task the same comes, if nobody names the turns.
        into = self.dir / "each"
        self._distill("--each-turn", "--repo", str(self.repository), "-o", str(into))
        want = {task.name: task.files for (first, last), task in self.tasks.items() if first == last}
        got = {dir.name: Task(dir).files for dir in into.iterdir()}
        demand(got == want, f"each turn became {sorted(got)}, and not {sorted(want)}")

    def check_tasks(self, copies, kind, doubts):
        """Each task begins as the turn did unless it says a doubt, is asked for in the user's words, fails as it begins, and
        passes behind its solution, which leaves what the turn has left."""
        for (first, last), task in self.tasks.items():
            words = "\n\n".join(each["words"] for each in TURNS[first - 1 : last])
            demand(task.instruction == words + "\n", f"{task.name} asks for {task.instruction!r}")
            command, *kinds = WINDOWS[first, last]
            verification, solution = task.told["verification"], task.told["solution"]
            fine = verification["kind"] == "test_runner" and verification["command"] == command
            demand(fine and solution["kind"] == kinds[kind - 1], f"{task.name}: {verification}, {solution}")
            want = doubts.get((first, last), [])
            fine = len(task.doubts) == len(want) and all(part in doubt for part, doubt in zip(want, task.doubts))
            demand(fine, f"{task.name} doubts {task.doubts}, and not {want}")
            self._check_trajectory(task, first)
            before, after = (tree(copies / str(number)) for number in (first - 1, last))
            self._check_work(task, before, after)

    def _check_trajectory(self, task, first):
        path = task.dir / "trajectory.json"
        demand(path.exists() == (first > 1), f"{task.name} has a trajectory: {path.exists()}")
        if first > 1:
            self.store.run("export", "check", str(path))
            steps = json.loads(path.read_bytes())["steps"]
            said = [step["message"] for step in steps if step["source"] == "user"]
            want = [each["words"] for each in TURNS[: first - 1]]
            demand(said == want, f"{task.name} comes behind {said}")

    def _check_work(self, task, before, after):
        dir = task.build()
        begins = tree(dir)
        wrong = changed(begins, before)
        demand(not wrong or UNKNOWN_TREE in task.doubts, f"{task.name}: {wrong} is not as it was")
        demand(wrong or UNKNOWN_TREE not in task.doubts, f"{task.name} doubts {task.doubts}, and all is as it was")
        fine, said = task.run("tests/test.sh", dir)
        demand(not fine, f"{task.name} passes before anything is done: {said}")
        if not task.has_solution:
            return
        fine, said = task.run("solution/solve.sh", dir)
        demand(fine, f"the solution of {task.name} fails: {said}")
        fine, said = task.run("tests/test.sh", dir)
        demand(fine, f"{task.name} fails behind its solution: {said}")
        # Where the beginning is in doubt, what was done to it is not.
        ends = tree(dir)
        does, did = (
            {path: end.get(path) for path in changed(begin, end)} for begin, end in ((begins, ends), (before, after))
        )
        demand(
            does == did, f"the solution of {task.name} changes {sorted(does)}, and the session changed {sorted(did)}"
        )
        self.worked += 1

    def told(self):
        doubtful = sum(bool(task.doubts) for task in self.tasks.values())
        return f"tasks {len(self.tasks)}, solved {self.worked}, with doubts {doubtful}"


def check_agreement(live, written):
    """On what both carry the tasks of both are the same, and what only a connection has is missed where it is documented."""
    denied = [each.allowed[4].solution_patches() for each in (live, written)]
    demand(denied[0] == denied[1] and b"more.txt" in denied[0][0], f"what was not denied is {denied}")
    for turns, task in live.tasks.items():
        other = written.tasks.get(turns)
        if not other:
            continue
        both = [[each.instruction, each.told["verification"]["call"], each.told["calls"]] for each in (task, other)]
        demand(both[0] == both[1], f"{turns}: {both[0]} of the connection, {both[1]} of the session file")
        if other.has_solution:
            patches = [each.solution_patches() for each in (task, other)]
            demand(patches[0] and patches[0] == patches[1], f"{turns}: the solutions are {patches}")
        else:
            why = other.told["solution"]["why"]
            demand("may have changed files in a way that is not recorded" in why, f"{turns}: there is none: {why}")
