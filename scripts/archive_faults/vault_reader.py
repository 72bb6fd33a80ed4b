"""Reads a store's vault by its format, with no code of ours: manifests, tails and packs.

A manifest is JSON lines with a CRC-32 each. A tail is a row of frames: `STAL`, generation, offset, length, CRC-32 of the
bytes and of all that before them. A pack is frames behind 16 bytes: `SCHK`, form, lengths, a sketch, the chunk's hash, the hash of the
chunk it differs from if it does, CRC-32 of the stored bytes and of the header. Numbers are little-endian.
"""

import json
import struct
import subprocess
import tempfile
import zlib
from dataclasses import dataclass, field
from pathlib import Path

RAW, PACKED, DIFFERING, DIFFERING_TWICE = range(4)
TAIL_HEADER = struct.Struct("<4sIQIII")
CHUNK_HEADER = struct.Struct("<4sB3xII24s32s")
PACK_PREAMBLE_LEN = 16


class NotThere(Exception):
    """What a manifest names is not to be found, or not what it was: now, or at all."""


# What reading can come to while the vault is being written: what does not fit now may fit soon.
NOT_NOW = (NotThere, OSError, ValueError, LookupError, subprocess.CalledProcessError)


@dataclass
class Generation:
    why: str
    chunks: list = field(default_factory=list)

    @property
    def chunked_len(self):
        return sum(length for _, length in self.chunks)


@dataclass
class Source:
    name: str
    info: dict = field(default_factory=dict)
    generations: list = field(default_factory=list)

    @property
    def path(self):
        return self.info["path"]


class Vault:
    """The vault of a store, which another process may be writing."""

    def __init__(self, store):
        self.root = Path(store) / "vault"
        self._frames = {}
        self._scanned = {}
        self._chunks = {}

    def sources(self):
        return [self._source(path) for path in sorted(self.root.glob("sources/*.jsonl"))]

    def at(self, *paths):
        """The sources that lie at one of some paths."""
        return [source for source in self.sources() if source.path in paths]

    def contents(self, source):
        return [self.content(source, number) for number in range(len(source.generations))]

    def content(self, source, number):
        """All bytes of a generation, those in the tail included."""
        chunks = source.generations[number].chunks
        content = b"".join(self._chunk(name, length) for name, length in chunks)
        for generation, offset, data in self._tail(source.name):
            if generation == number and offset <= len(content) < offset + len(data):
                content += data[len(content) - offset :]
        return content

    def _source(self, path):
        source = Source(path.stem)
        lines = path.read_bytes().split(b"\n")
        for place, line in enumerate(lines[:-1]):
            kind, said = manifest_line(line)
            if kind is None and place == len(lines) - 2 and not lines[-1]:
                break
            if kind == "source":
                source.info = said
            elif kind == "generation":
                demand(said["number"] == len(source.generations), f"{path}: generations out of turn")
                source.generations.append(Generation(said["why"]))
            else:
                demand(kind in ("chunks", "state"), f"{path}: a line that is not what was written")
                self._add(source, said if kind == "chunks" else said.get("more"))
        return source

    def _add(self, source, more):
        if more:
            generation = source.generations[more["generation"]]
            demand(more["offset"] == generation.chunked_len, f"{source.name}: chunks out of turn")
            generation.chunks += [tuple(chunk) for chunk in more["chunks"]]

    def _tail(self, name):
        try:
            data = (self.root / "tails" / f"{name}.tail").read_bytes()
        except FileNotFoundError:
            return
        at = 0
        while at + TAIL_HEADER.size <= len(data):
            magic, generation, offset, length, content_sum, header_sum = TAIL_HEADER.unpack_from(data, at)
            end = at + TAIL_HEADER.size + length
            content = data[at + TAIL_HEADER.size : end]
            is_header = magic == b"STAL" and zlib.crc32(data[at : at + 24]) == header_sum
            if not is_header or len(content) != length or zlib.crc32(content) != content_sum:
                return
            yield generation, offset, content
            at = end

    def _chunk(self, name, length):
        if name not in self._chunks:
            if name not in self._frames:
                self._scan()
            demand(name in self._frames, f"no chunk {name}")
            self._chunks[name] = self._read(*self._frames[name])
        demand(len(self._chunks[name]) == length, f"chunk {name} has another length")
        return self._chunks[name]

    def _scan(self):
        """Finds frames in what packs have gained since the last time."""
        for path in self.root.glob("packs/*.pack"):
            data = path.read_bytes()
            at = self._scanned.get(path, PACK_PREAMBLE_LEN)
            while frame := chunk_frame(data, at):
                name, form, base, length, stored, end = frame
                # Of several frames the one that needs the fewest others: two may differ from each other.
                if name not in self._frames or form < self._frames[name][0]:
                    self._frames[name] = (form, base, length, stored)
                at = end
            self._scanned[path] = at

    def _read(self, form, base, length, stored):
        if form == RAW:
            return stored
        if form == PACKED:
            return unpack(stored)
        if base not in self._frames:
            self._scan()
        demand(base in self._frames, f"no base {base}")
        return unpack(stored, against=self._chunk(base, self._frames[base][2]))


def demand(condition, message):
    if not condition:
        raise NotThere(message)


def manifest_line(line):
    """The kind of a line and what it says; None for one that is not what was written."""
    head, mark, checksum = line.rpartition(b',"crc":"')
    if not mark or checksum[8:] != b'"}' or int(checksum[:8], 16) != zlib.crc32(head):
        return None, None
    ((kind, said),) = json.loads(head + b"}").items()
    return kind, said


def chunk_frame(data, at):
    """The frame at an offset; None when there is none that is whole."""
    if at + CHUNK_HEADER.size > len(data):
        return None
    magic, form, length, stored_len, _sketch, name = CHUNK_HEADER.unpack_from(data, at)
    if magic != b"SCHK":
        return None
    end = at + CHUNK_HEADER.size
    base = data[end : end + 32].hex() if form in (DIFFERING, DIFFERING_TWICE) else None
    end += 32 if base else 0
    if end + 8 > len(data):
        return None
    stored_sum, header_sum = struct.unpack_from("<II", data, end)
    stored = data[end + 8 : end + 8 + stored_len]
    if zlib.crc32(data[at : end + 4]) != header_sum or len(stored) != stored_len:
        return None
    demand(zlib.crc32(stored) == stored_sum, f"the stored bytes of {name.hex()} are not what was written")
    return name.hex(), form, base, length, stored, end + 8 + stored_len


def unpack(stored, against=None):
    """Has `zstd` unpack bytes, as what differs from others if there are any."""
    command = ["zstd", "-d", "-q", "-c"]
    if against is None:
        return subprocess.run(command, input=stored, stdout=subprocess.PIPE, check=True).stdout
    with tempfile.NamedTemporaryFile() as base, tempfile.NamedTemporaryFile(suffix=".zst") as packed:
        base.write(against)
        packed.write(stored)
        base.flush()
        packed.flush()
        command += ["--patch-from", base.name, packed.name]
        return subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout
