"""Tasks that were distilled, as seen from outside: what their files say, and what they come to when they are built without
Docker, by the steps of their Dockerfiles."""

import shutil
import subprocess
import tomllib

from agents import ENV, WORK, files_below
from ending import PATIENCE_S
from promises import demand


class Task:
    """A directory with a task."""

    def __init__(self, dir):
        self.dir = dir
        self.name = dir.name
        self.files = files_below(dir, dir)
        self.instruction = self.files["instruction.md"].decode()
        self.told = tomllib.loads(self.files["task.toml"].decode())["metadata"]["steno"]
        self.turns = tuple(self.told["turns"])
        self.doubts = self.told["repository"]["doubts"]
        self.has_solution = "solution/solve.sh" in self.files
        kind = self.told["solution"]["kind"]
        demand(self.has_solution == (kind != "none"), f"{self.name}: {kind}, and files {sorted(self.files)}")

    def solution_patches(self):
        """The changes of its solution, call by call; none if it has another."""
        if self.told["solution"]["kind"] != "patches":
            return None
        return [file for path, file in sorted(self.files.items()) if path.startswith("solution/change-")]

    def build(self):
        """Makes the directory that its Dockerfile makes, and returns it."""
        into = WORK / "built"
        shutil.rmtree(into, ignore_errors=True)
        into.mkdir()
        context = self.dir / "environment"
        for line in (context / "Dockerfile").read_text().splitlines():
            step, _, rest = line.partition(" ")
            match step:
                case "#" | "FROM" | "WORKDIR":
                    pass
                case "RUN":
                    self._must("sh", "-ec", rest, cwd=into)
                case "ADD":
                    name, to = rest.split(" ")
                    demand(to == "./", f"{self.name}: {line}")
                    self._must("tar", "-xf", str(context / name), cwd=into)
                case "COPY":
                    name, to = rest.split(" ")
                    self._must("cp", "-r", str(context / name), to, cwd=into)
                case _:
                    demand(False, f"{self.name}: a step that nobody knows: {line}")
        return into

    def run(self, script, dir):
        """Runs one of its scripts in a directory; returns whether it ended with 0, and what it said."""
        return ran(str(self.dir / script), cwd=dir)

    def _must(self, *command, cwd):
        fine, said = ran(*command, cwd=cwd)
        demand(fine, f"{self.name}: {command}: {said}")


def ran(*command, cwd):
    said = subprocess.run(command, cwd=cwd, env=ENV, capture_output=True, timeout=PATIENCE_S, check=False)
    return said.returncode == 0, (said.stdout + said.stderr).decode(errors="replace")[-1000:]


def tree(dir):
    """The files of a working tree, without what git and Python keep for themselves."""
    own = {".git", "__pycache__"}
    return {path: file for path, file in files_below(dir, dir).items() if not own.intersection(path.split("/"))}


def changed(one, other):
    """The paths in which two trees differ."""
    return sorted(path for path in {*one, *other} if one.get(path) != other.get(path))
