"""Holds a store to the ledger: every byte that was waited for is there, nothing is there that never stood in a file, and
the events are those of one import after the other of what the vault has."""

import json
import os
import shutil
import subprocess
from collections import defaultdict
from pathlib import Path

import homes
from ledger import Stood, read
from promises import demand
from vault_reader import Vault

ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"


def check(case, counts):
    """Checks everything, and adds to the counts."""
    sources = sources_by_file(case)
    stood = contents_by_file(case)
    for name in sources:
        demand(name in stood, f"{name} is in the vault, and never was a file")
    for name, contents in stood.items():
        wanted = [content for content in contents if content.waited and content.content]
        demand(name in sources or not wanted, f"{name} is not in the vault")
        if name in sources:
            generations = case.vault.contents(sources[name])
            check_generations(name, generations, contents, counts)
            counts["generations"] += len(generations)
            counts["archived bytes"] += sum(map(len, generations))
        else:
            counts["bytes missed"] += sum(len(content.content) for content in contents)
    said = case.run("verify")
    demand(said.returncode == 0, f"verify: {said.stdout.decode()} {said.stderr.decode()}")
    check_restored(case, sources, counts)
    check_events(case, sources, counts)


def sources_by_file(case):
    case.vault = Vault(case.store)
    found = {}
    for source in case.vault.sources():
        name = homes.first_name(Path(source.path).relative_to(case.home))
        demand(name not in found, f"{name} is two sources")
        found[name] = source
    return found


def contents_by_file(case):
    """What stood in each file, in order; what stands there now comes last."""
    contents = defaultdict(list)
    for stood in read(case.ledger)[0]:
        contents[Path(stood.file)].append(stood)
    for name, path in homes.all_files(case.home).items():
        contents[name].append(Stood(str(name), "end", path.read_bytes(), True))
    return contents


def check_generations(name, generations, contents, counts):
    """Compares what the vault has with what stood there, both in order."""
    at = 0
    for number, found in enumerate(generations):
        explained = (place for place in range(at, len(contents)) if contents[place].explains(found))
        at = next(explained, None)
        demand(at is not None, f"{name}: generation {number}, {len(found)} bytes, never stood there in that order")
    at = 0
    for stood in contents:
        if stood.waited:
            having = (place for place in range(at, len(generations)) if generations[place].startswith(stood.content))
            at = next(having, None)
            demand(at is not None, f"{name}: what stood there before `{stood.operation}` is not in the vault")
            counts["contents waited for"] += 1
            counts["bytes waited for"] += len(stood.content)
        else:
            kept = max((shared(stood.content, found) for found in generations), default=0)
            counts["hostile contents"] += 1
            counts["bytes missed"] += len(stood.content) - kept


def shared(content, found):
    """How many bytes of a content a generation has."""
    both = min(len(content), len(found))
    return both if content[:both] == found[:both] else 0


def check_restored(case, sources, counts):
    """Has the program itself give back each generation of some sessions."""
    runs = case.runs()
    for name, source in sorted(sources.items()):
        run = name.stem
        if name.parent.parent != homes.PROJECTS or run not in runs:
            continue
        for number, want in enumerate(case.vault.contents(source)):
            to = case.dir / "restored"
            shutil.rmtree(to, ignore_errors=True)
            said = case.run("restore", run, "--generation", str(number), "--to", str(to))
            demand(said.returncode == 0, f"restore {run}: {said.stderr.decode()}")
            below_home = Path(source.path).relative_to(case.home / ".claude")
            demand((to / below_home).read_bytes() == want, f"restore {run}: generation {number} differs")
            counts["generations restored"] += 1
        shutil.rmtree(case.dir / "restored", ignore_errors=True)


def check_events(case, sources, counts):
    """Imports the generations one after the other from a home at the same place, and compares all events."""
    generations = {name: case.vault.contents(source) for name, source in sources.items()}
    names = {source.name: str(name) for name, source in sources.items()}
    events = {run: events_of(case, run, names) for run in case.runs()}
    os.rename(case.home, case.dir / "home-before")
    os.rename(case.store, case.dir / "store-before")
    for top in (".claude", ".codex"):
        (case.home / top).mkdir(parents=True)
    for number in range(max(map(len, generations.values()))):
        put_generation(case, sources, generations, number)
        said = case.run("import")
        demand(said.returncode == 0, f"import: {said.stderr.decode()}")
    again = sources_by_file(case)
    names = {source.name: str(name) for name, source in again.items()}
    for name, contents in generations.items():
        demand(case.vault.contents(again[name]) == contents, f"{name}: the import has other generations")
    imported = {run: events_of(case, run, names) for run in case.runs()}
    demand(set(imported) == set(events), f"runs differ: {set(imported) ^ set(events)}")
    for run, lines in events.items():
        pairs = enumerate(zip(lines, imported[run], strict=False), start=1)
        other = next((f"{number}: {found} and not {want}" for number, (found, want) in pairs if found != want), "")
        lengths = f"{len(lines)} events and not {len(imported[run])}"
        demand(lines == imported[run], f"run {run} differs from one import: {lengths}; {other[:2000]}")
        counts["events"] += len(lines)
    counts["runs"] += len(events)


def put_generation(case, sources, generations, number):
    """Puts a generation of every source in place, so that whoever reads it begins that generation."""
    emptied = False
    for name, contents in generations.items():
        if 0 < number < len(contents) and contents[number].startswith(contents[number - 1]):
            # It would go on with the one before. A file that is seen empty does not.
            os.truncate(next(path for path in places(case, name, sources) if path.exists()), 0)
            emptied = True
    if emptied:
        demand(case.run("import").returncode == 0, "import of emptied files")
    for name, contents in generations.items():
        if number < len(contents):
            plain, packed = places(case, name, sources)
            to, other = (packed, plain) if contents[number].startswith(ZSTD_MAGIC) else (plain, packed)
            to.parent.mkdir(parents=True, exist_ok=True)
            temporary = to.with_name(to.name + ".tmp")
            temporary.write_bytes(contents[number])
            os.rename(temporary, to)
            other.unlink(missing_ok=True)


def places(case, name, sources):
    """Where a file is put: in the directory where it was last, compressed or not."""
    directory = Path(sources[name].path).parent
    return directory / name.name, directory / f"{name.name}.zst"


def events_of(case, run, names):
    """The events of a run, whole. Sources go by the path they had first: a file that was moved is named after that."""
    said = subprocess.run([*case.steno, "events", run, "--json"], env=case.env, capture_output=True, check=False)
    demand(said.returncode == 0, f"events {run}: {said.stderr.decode()}")
    lines = []
    for line in said.stdout.splitlines():
        source = json.loads(line).get("evidence", {}).get("source")
        lines.append(line.decode().replace(source, names[source]) if source else line.decode())
    return lines
