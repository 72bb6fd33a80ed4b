"""Waiting for what others do, for so long and no longer; and everything that is started here ends with us, also when
somebody stops us."""

import atexit
import contextlib
import os
import signal
import subprocess
import sys
import time

from promises import Violation

# Long enough for a loaded machine; reached only when something hangs, which is a failure.
PATIENCE_S = 120
# How long to wait between two looks.
LOOK_S = 0.01

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
    """Ends what a test that failed has left behind."""
    while _children:
        process, end = _children.popitem()
        if process.poll() is None:
            end(process)
            process.wait()


def end_when_stopped():
    """Has us end in order, and our children with us, when somebody stops us. A shell hides Ctrl-C from what it runs in
    the background, so that this has to be asked for too."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    signal.signal(signal.SIGINT, signal.default_int_handler)


def exit_code(process, name):
    """Waits for the end of a process; a signal's number comes back negative."""
    try:
        return process.wait(PATIENCE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        raise Violation(f"`{name}` did not end in {PATIENCE_S} s") from None


def wait_until(look, at_most_s=PATIENCE_S, every_s=LOOK_S):
    """Looks until there is something, and returns it; what the last look has shown if there never is."""
    until = time.monotonic() + at_most_s
    while not (found := look()) and time.monotonic() < until:
        time.sleep(every_s)
    return found
