"""Commands of `steno`, run to their end, and where real sessions lie."""

import os
import pathlib
import subprocess

from promises import demand

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def shared():
    """Returns the directory of real sessions, which need not be there."""
    return pathlib.Path(os.environ.get("STENO_SHARED", ROOT.parent / "shared"))


def run_steno(program, store, *args, **more):
    """Runs a command on a store, with the directory around that as its home, and returns what it prints."""
    command = [str(program), "--store", str(store), *map(str, args)]
    env = {"HOME": str(pathlib.Path(store).parent), "PATH": os.environ["PATH"]}
    done = subprocess.run(command, capture_output=True, text=True, env=env, **more)
    words = f"{done.stderr[-500:]}{done.stdout[-500:]}"
    demand(done.returncode == 0, f"{command[3:]} ended with {done.returncode}: {words}")
    return done.stdout
