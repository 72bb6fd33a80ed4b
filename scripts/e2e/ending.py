"""Everything that is started here ends with us, also when somebody stops us."""

import atexit
import contextlib
import os
import signal
import subprocess

# Long enough for a loaded machine; reached only when something hangs, which is a failure.
PATIENCE_S = 120

_children = {}


def ended_with_us(process, end=subprocess.Popen.kill):
    """Has a process ended when we end, if it is still there."""
    _children[process] = end


def end_group(process):
    """Ends a process and its group. The first process of a sandbox is in it, and takes all others there with it."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


@atexit.register
def end_children():
    """Ends what a claim that failed has left behind."""
    while _children:
        process, end = _children.popitem()
        if process.poll() is None:
            end(process)
            process.wait()
