"""Behaves like agents in a home, badly, and writes down what stood in a file before something is done to it.

Usage: writer.py HOME STORE LEDGER SEED OPERATIONS. Can be killed at any moment and started again with another seed; ends
when as many operations are done; told to do none, it writes everywhere at once. Before it destroys something it waits until the vault has it, except now and then.
"""

import os
import random
import re
import subprocess
import sys
import time
from pathlib import Path

import homes
import ledger
from records import Blobs, Claude, Codex
from vault_reader import NOT_NOW, Vault

# Far more than the vault takes: reached only when bytes never come, which is a failure.
PATIENCE_S = 40
# How often nothing is waited for.
HOSTILE = 0.2
ID = re.compile(rb'^\{"(?:uuid|id)":"([0-9a-f-]{36})"', re.MULTILINE)


class File:
    """A file of an agent, wherever it is now."""

    def __init__(self, home, name, records):
        self.name = name
        self.records = records
        self.paths = [home / path for path in homes.all_names(name)]
        self.aside = home / homes.ASIDE / "-".join(name.parts)

    @property
    def path(self):
        return next((path for path in self.paths if path.exists()), self.paths[0])

    @property
    def is_packed(self):
        return self.path.suffix == ".zst"

    def content(self):
        return self.path.read_bytes() if self.path.exists() else b""


class Writer:
    def __init__(self, home, store, ledger_path, seed):
        self.dice = random.Random(seed)
        self.home, self.vault = home, Vault(store)
        self.stood, self.done = ledger.read(ledger_path)
        self.ledger = ledger.Ledger(ledger_path)
        self.files = []
        # The sessions are the same for every writer of a home, whatever its own seed.
        names = random.Random(str(home))
        for number, name in enumerate(homes.session_names(names, 4)):
            self.add(homes.session(f"-work-p{number % 2}", name), Claude(self.dice, name))
        for name in homes.session_names(names, 2):
            self.add(homes.rollout(name), Codex(self.dice, name))
        for file in self.files[:2]:
            self.add(homes.beside(file.name, "tool-results", "out.txt"), Blobs(self.dice, ""))
        for path in sorted((home / homes.PROJECTS).glob("*/*/subagents/agent-*.jsonl")):
            self.add_agent(path.relative_to(home))

    def add(self, name, records):
        self.files.append(File(self.home, name, records))
        return self.files[-1]

    def add_agent(self, name):
        return self.add(name, Claude(self.dice, name.parts[-3], name.stem.removeprefix("agent-")))

    def work(self, operations):
        self.mend()
        while sum(self.done.values()) < operations:
            operation, weight_of = self.dice.choice(OPERATIONS)
            file = self.dice.choice(self.files)
            if self.dice.random() < weight_of and self.suits(operation, file):
                operation(self, file)
                name = operation.__name__
                self.ledger.done(name)
                self.done[name] = self.done.get(name, 0) + 1
            self.pause()
        if not operations:
            self.leave()

    def suits(self, operation, file):
        # What is made anew in another directory than the one it was in is another file.
        is_here = file.path.parent == file.paths[0].parent
        needs = {
            Writer.delete: lambda: is_here,
            Writer.recreate: lambda: is_here,
            Writer.rotate: lambda: is_here,
            Writer.late: lambda: isinstance(file.records, Blobs) and file.content(),
            Writer.subagent: lambda: file.name.parent.parent == homes.PROJECTS,
            Writer.archive: lambda: isinstance(file.records, Codex) and file.content(),
            Writer.compress: lambda: isinstance(file.records, Codex) and file.content() and not file.is_packed,
            Writer.change_in_place: lambda: file.content() and not file.is_packed,
        }
        return needs.get(operation, lambda: True)()

    def mend(self):
        """Ends what the writer before was killed in the middle of."""
        last = {stood.file: stood for stood in self.stood}
        for file in self.files:
            if file.aside.exists():
                os.rename(file.aside, file.path)
            both = [path for path in file.paths if path.exists()]
            if len(both) > 1:
                unpacking = last[str(file.name)].operation == "unpack"
                unwanted = [path for path in both if (path.suffix == ".zst") == unpacking]
                unwanted[0].unlink()
            if str(file.name) in last and last[str(file.name)].operation == "change_in_place":
                # Half of it may be done; whatever stands there now stood there.
                self.keep(file, "killed", file.content())

    def pause(self):
        if self.dice.random() < 0.3:
            time.sleep(self.dice.uniform(0, 0.03))

    def write_pieces(self, out, data):
        """Writes bytes cut anywhere, also inside of a letter."""
        cuts = sorted(self.dice.randrange(len(data) + 1) for _ in range(self.dice.choice([0, 1, 2, 5])))
        for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True):
            out.write(data[start:end])
            if end > start and self.dice.random() < 0.5:
                time.sleep(self.dice.uniform(0, 0.004))

    def wait(self, file, content):
        """Waits until the last generation of the file is what stands there."""
        until = time.monotonic() + PATIENCE_S
        while content:
            try:
                found = self.vault.at(*map(str, file.paths))
                if found and self.vault.content(found[0], len(found[0].generations) - 1) == content:
                    return
            except NOT_NOW as error:
                problem = error
            else:
                problem = None
            if time.monotonic() > until:
                sys.exit(f"{file.name}: {len(content)} bytes are not in the vault after {PATIENCE_S} s: {problem}")
            time.sleep(0.02)

    def keep(self, file, operation, content, after=None, is_hostile=False):
        """Writes down what stands in a file, and waits for the vault to have it unless it is a hostile case."""
        if not is_hostile:
            self.wait(file, content)
        stood = ledger.Stood(str(file.name), operation, content, not is_hostile, after)
        self.ledger.write(stood)
        self.stood.append(stood)

    def before(self, file, operation):
        self.keep(file, operation, file.content(), is_hostile=self.dice.random() < HOSTILE)

    # What is done to files.

    def append(self, file, data=None):
        self.unpack(file)
        content = file.content()
        file.path.parent.mkdir(parents=True, exist_ok=True)
        if data is None:
            kinds = [file.records.one, file.records.many, file.records.large]
            data = self.dice.choices(kinds, [12, 4, 1])[0]()
        if not content and isinstance(file.records, Codex):
            file.records.is_begun = False
            data = file.records.one() + data
        if content and not content.endswith(b"\n") and self.dice.random() < 0.5:
            data = b"\n" + data
        if self.dice.random() < 0.1:
            data = data.rstrip(b"\n")
        with file.path.open("ab", buffering=0) as out:
            self.write_pieces(out, data)

    def append_many(self, file):
        self.append(file, file.records.many())

    def truncate(self, file):
        self.unpack(file)
        self.before(file, "truncate")
        if file.path.exists():
            os.truncate(file.path, 0)
        self.append(file, file.records.some(self.dice.randint(1, 4)))

    def compact(self, file):
        self.unpack(file)
        lines = file.content().splitlines(keepends=True)[1:]
        kept = [line for line in lines if self.dice.random() < 0.7]
        self.before(file, "compact")
        self.replace(file.path, file.records.one() + b"".join(kept) + file.records.one())

    def rotate(self, file):
        self.unpack(file)
        self.before(file, "rotate")
        if file.path.exists():
            file.aside.parent.mkdir(exist_ok=True)
            os.rename(file.path, file.aside.with_suffix(".old"))
        self.append(file, file.records.some(2))

    def change_in_place(self, file):
        """Another record of the same length in place of one, byte by byte. Growth would hide it, so it is waited for."""
        content = file.content()
        found = [match.span(1) for match in ID.finditer(content)] or [(0, len(content))]
        start, end = self.dice.choice(found)
        other = self.dice.randbytes(18).hex()[: end - start].encode() if found[0] != (0, len(content)) else None
        after = content[:start] + (other or self.dice.randbytes(end - start)) + content[end:]
        self.keep(file, "change_in_place", content, after)
        with file.path.open("r+b", buffering=0) as out:
            out.write(after)
        self.wait(file, after)
        self.keep(file, "changed", after)

    def delete(self, file):
        self.before(file, "delete")
        file.path.unlink(missing_ok=True)

    def recreate(self, file):
        self.delete(file)
        self.append(file, file.records.some(3))

    def vanish(self, file):
        """Away for a moment, and back as it was."""
        path = file.path
        if path.exists():
            file.aside.parent.mkdir(exist_ok=True)
            os.rename(path, file.aside)
            time.sleep(self.dice.uniform(0, 0.05))
            os.rename(file.aside, path)
        self.append(file)

    def late(self, file):
        """A writer who does not notice that its file was moved away."""
        content, more = file.content(), file.records.one()
        self.keep(file, "late", content)
        self.keep(file, "later", content + more, is_hostile=True)
        with file.path.open("ab", buffering=0) as out:
            file.aside.parent.mkdir(exist_ok=True)
            os.rename(file.path, file.aside.with_suffix(".old"))
            self.append(file, file.records.some(2))
            self.write_pieces(out, more)

    def subagent(self, file):
        """A file in a directory that was made just before."""
        directory = homes.beside(file.name, "subagents", self.dice.randbytes(2).hex())
        agent = self.add_agent(directory / f"agent-{self.dice.randbytes(4).hex()}.jsonl")
        agent.path.parent.mkdir(parents=True)
        meta = agent.path.with_suffix(".meta.json")
        meta.write_bytes(b'{"agentType":"general-purpose"}')
        agent.path.write_bytes(agent.records.some(self.dice.randint(1, 3)))

    def archive(self, file):
        """Codex moves a thread away, or back."""
        self.wait(file, file.content())
        path = file.path
        other = homes.SESSIONS if path.parent.name == homes.ARCHIVED.name else homes.ARCHIVED
        (self.home / other).mkdir(parents=True, exist_ok=True)
        os.rename(path, self.home / other / path.name)
        self.append(file)

    def compress(self, file):
        path, content = file.path, file.content()
        packed = subprocess.run(["zstd", "-q", "-c"], input=content, stdout=subprocess.PIPE, check=True).stdout
        self.keep(file, "compress", content)
        self.replace(path.with_name(path.name + ".zst"), packed)
        path.unlink()

    def unpack(self, file):
        """Codex unpacks a thread before it goes on with it."""
        if file.is_packed:
            path, packed = file.path, file.content()
            content = subprocess.run(["zstd", "-dqc"], input=packed, stdout=subprocess.PIPE, check=True).stdout
            self.keep(file, "unpack", packed)
            self.replace(path.with_suffix(""), content)
            path.unlink()

    def replace(self, path, content):
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(path.name + ".tmp")
        temporary.write_bytes(content)
        os.rename(temporary, path)

    def leave(self):
        """Writes everywhere at once, as agents do that are stopped."""
        for file in list(self.files):
            if file.name.parent.parent == homes.PROJECTS:
                self.subagent(file)
        for file in self.files:
            if not file.is_packed:
                self.append(file, file.records.one())


# With how likely each is when its turn comes.
OPERATIONS = [
    (Writer.append, 1),
    (Writer.append, 1),
    (Writer.append, 1),
    (Writer.append_many, 1),
    (Writer.append_many, 1),
    (Writer.truncate, 0.4),
    (Writer.compact, 0.4),
    (Writer.rotate, 0.4),
    (Writer.change_in_place, 0.4),
    (Writer.delete, 0.2),
    (Writer.recreate, 0.3),
    (Writer.vanish, 0.3),
    (Writer.late, 1),
    (Writer.subagent, 0.2),
    (Writer.archive, 1),
    (Writer.compress, 1),
]


def main():
    home, store, ledger_path, seed, operations = sys.argv[1:]
    writer = Writer(Path(home), Path(store), Path(ledger_path), seed)
    try:
        writer.work(int(operations))
    finally:
        writer.ledger.close()


if __name__ == "__main__":
    main()
