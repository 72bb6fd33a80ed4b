"""strace: counts what really happened to a file, and makes chosen calls fail or kill."""

import re

from client import WORK


class Trace:
    """One traced process. Only calls on the given paths are seen and touched.

    `inject` counts calls for each thread and each kind of call apart; the log says what fired.
    """

    def __init__(self, paths, calls, inject=()):
        self.log = WORK / "strace.log"
        self.log.unlink(missing_ok=True)
        self.wrapper = ["strace", "-f", "-q", "-s", "16", "-o", str(self.log)]
        self.wrapper += ["-e", f"trace={','.join(calls) or 'none'}"]
        for path in paths:
            self.wrapper += ["-P", str(path)]
        for what in inject:
            self.wrapper += ["-e", f"inject={what}"]

    def lines(self):
        return self.log.read_text(errors="replace").splitlines() if self.log.exists() else []

    def injected(self):
        """How many calls were answered in the kernel's place."""
        return sum("(INJECTED)" in line for line in self.lines())

    def killed(self, call):
        """Whether a process died inside this call, by SIGKILL."""
        inside = any(re.search(rf"\b{call}\(.*= \?$|\b{call}\(.*<unfinished", line) for line in self.lines())
        return inside and any("+++ killed by SIGKILL +++" in line for line in self.lines())

    def short_writes(self):
        """How many writes took only a part of what they were given."""
        writes = (re.search(r"\bp?write(?:64)?\(.*, (\d+)(?:, \d+)?\) += (\d+)$", line) for line in self.lines())
        return sum(0 < int(found[2]) < int(found[1]) for found in writes if found)

    def count(self, text):
        return sum(text in line for line in self.lines())
