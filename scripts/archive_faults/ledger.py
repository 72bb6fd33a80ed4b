"""What stood in each file, written down before something is done to it: a file that only grows, synced line by line.

The ledger lies outside of the home, and nobody but the writer has a hand in it.
"""

import base64
import json
import os
import zlib
from dataclasses import dataclass


@dataclass
class Stood:
    """A content that stood in a file, and whether the vault was seen to have it."""

    file: str
    operation: str
    content: bytes
    waited: bool
    # What an operation puts in its place byte by byte, so that half of it may be seen.
    after: bytes | None = None

    def explains(self, found):
        """Whether bytes could be read when this stood there: the beginning of it, or of what half a change makes."""
        if self.content.startswith(found):
            return True
        if self.after is None or len(found) > len(self.after):
            return False
        changed = next((at for at, byte in enumerate(found) if self.after[at] != byte), len(found))
        return self.content[changed : len(found)] == found[changed:]


class Ledger:
    """The ledger as its one writer has it."""

    def __init__(self, path):
        self.path = path
        self._file = path.open("ab", buffering=0)
        if self._file.tell() and path.read_bytes()[-1:] != b"\n":
            # A line that was being written when its writer was killed: what it announced was not begun.
            self._file.write(b"\n")

    def write(self, stood):
        line = {"file": stood.file, "operation": stood.operation, "waited": stood.waited}
        line["content"] = packed(stood.content)
        if stood.after is not None:
            line["after"] = packed(stood.after)
        self._append(line)

    def done(self, operation):
        self._append({"done": operation})

    def close(self):
        self._file.close()

    def _append(self, line):
        self._file.write(json.dumps(line).encode() + b"\n")
        os.fsync(self._file.fileno())


def read(path):
    """Everything that stood in files, in order, and how often each operation was done."""
    stood, done = [], {}
    for line in path.read_bytes().split(b"\n") if path.exists() else []:
        try:
            said = json.loads(line)
        except ValueError:
            continue
        if "done" in said:
            done[said["done"]] = done.get(said["done"], 0) + 1
            continue
        after = said.get("after")
        content = unpacked(said["content"])
        stood.append(Stood(said["file"], said["operation"], content, said["waited"], after and unpacked(after)))
    return stood, done


def packed(content):
    return base64.b85encode(zlib.compress(content, 1)).decode()


def unpacked(text):
    return zlib.decompress(base64.b85decode(text))
