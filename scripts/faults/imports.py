"""Power cuts on ext4 and xfs while `steno import` archives many files."""

import json
import random
import shutil
import subprocess
import time
import uuid

from client import ENV, STENO, WORK, Store
from ending import PATIENCE_S
from mounts import Image
from promises import demand

REPEATS = 10
FILES = 80
LINES = 120
IMAGE_BYTES = 1 << 30


def agents():
    """Writes the files of an agent; returns their directory."""
    place = WORK / "imported" / ".claude" / "projects" / "p"
    shutil.rmtree(WORK / "imported", ignore_errors=True)
    place.mkdir(parents=True)
    dice = random.Random(1)
    for _ in range(FILES):
        session = str(uuid.UUID(int=dice.getrandbits(128), version=4))
        lines = []
        for number in range(LINES):
            text = f"{number} " + dice.randbytes(dice.randrange(20, 900)).hex()
            record = {
                "parentUuid": f"u{number - 1}" if number else None,
                "isSidechain": False,
                "cwd": "/work",
                "sessionId": session,
                "version": "2.1.200",
                "type": "user",
                "message": {"role": "user", "content": text},
                "uuid": f"u{number}",
                "timestamp": f"2026-01-02T03:{number // 60:02}:{number % 60:02}.000Z",
            }
            lines.append(json.dumps(record) + "\n")
        (place / f"{session}.jsonl").write_text("".join(lines))
    return place.parent.parent


def transcripts(store):
    files = store.dir("transcripts").glob("*.jsonl")
    runs = [path for path in files if path.name.count(".") == 1]
    return {path.name: path.read_bytes() for path in runs}


def positions(store):
    """How many events have no evidence. A torn end of a transcript does not count."""
    lines = [json.loads(line) for line in store.run("verify", "--json").stdout.decode().splitlines()]
    found = [line for line in lines if line.get("kind") == "positions"]
    return sum(line["wrong"] + line["elsewhere"] + line["unreadable"] for line in found)


def report(store, home):
    """Imports everything; returns the counts."""
    done = store.run("import", "--json", str(home))
    demand(done.returncode == 0, f"an import ends with {done.returncode}: {done.stderr.decode()[:300]}")
    return json.loads(done.stdout.decode().splitlines()[-1])


def power_cut_import(kind):
    home = agents()
    whole = Store(WORK / "imported-whole")
    shutil.rmtree(whole.path, ignore_errors=True)
    begun = time.monotonic()
    report(whole, home)
    takes = time.monotonic() - begun
    wanted = transcripts(whole)
    demand(len(wanted) == FILES, f"{len(wanted)} transcripts of {FILES} files")
    fired = inside = kept = 0
    with Image(kind, IMAGE_BYTES) as image:
        for seed in range(REPEATS):
            dice = random.Random(f"{kind} {seed}")
            store = Store(image.point / f"store-{seed}")
            command = [STENO, "--store", str(store.path), "import", "--json", str(home)]
            process = subprocess.Popen(command, env=ENV, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
            time.sleep(dice.uniform(0.0, 1.2 * takes))
            # What it said before the cut counts.
            was_done = process.poll() == 0
            image.cut_power()
            process.communicate(timeout=PATIENCE_S)
            image.boot()
            fired += 1
            inside += not was_done
            there = transcripts(store) if store.dir("transcripts").exists() else {}
            kept += sum(len(data) > 0 for data in there.values())
            if store.dir("vault").exists():
                demand(positions(store) == 0, f"seed {seed}: events survived without their bytes")
            again = report(store, home)
            demand(not was_done or again["files_new"] == 0, f"seed {seed}: {again['files_new']} files were lost")
            demand(transcripts(store) == wanted, f"seed {seed}: the transcripts differ from those of one import")
            demand(store.run("verify").returncode == 0, f"seed {seed}: `verify` finds something")
            demand(report(store, home)["files_new"] == 0, f"seed {seed}: a third import finds something new")
            shutil.rmtree(store.path, ignore_errors=True)
    demand(inside > 0 and kept > 0, f"{inside} cuts inside an import, {kept} transcripts survived them")
    return REPEATS, fired, f"{inside} inside the import, {kept} transcripts survived"


def power_cut_import_ext4():
    return power_cut_import("ext4")


def power_cut_import_xfs():
    return power_cut_import("xfs")
