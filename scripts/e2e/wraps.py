"""Wraps, read without `steno`."""

import json
import subprocess

from promises import demand


class Wrap:
    """The file of a command: the bytes of each lane, what was lost, and how the command ended."""

    def __init__(self, file):
        unpacked = subprocess.run(["zstd", "-dcq"], input=file, stdout=subprocess.PIPE, check=True).stdout
        header, _, rest = unpacked.partition(b"\n")
        self.header = json.loads(header)
        self.lanes = {"out": b"", "err": b"", "in": b""}
        self.lost, self.ended = 0, None
        while rest:
            line, _, rest = rest.partition(b"\n")
            told = json.loads(line)
            if "lane" in told:
                self.lanes[told["lane"]] += rest[: told["len"]]
                demand(rest[told["len"] : told["len"] + 1] == b"\n", f"a frame does not end: {told}")
                rest = rest[told["len"] + 1 :]
            elif "lost" in told:
                self.lost += told["lost"]["bytes"]
            elif "ended" in told:
                self.ended = told["ended"]
