#!/usr/bin/env python3
"""Compares `steno run -- CMD` with `CMD | cat`: the time until CMD has ended, and whether every byte was recorded.
Needs zstd.

Usage: run_speed.py [STENO] [--mb 1024] [--rounds 5]

Both write to /dev/null, in turns. Each round begins with an empty store. The figures are the medians of the rounds.
"""
import argparse
import json
import os
import shutil
import statistics
import subprocess
import tempfile
import time

COMMANDS = {
    "head": "head -c {bytes} /dev/zero",
    "seq": "seq -f %030g 1 {lines}",
    "yes": "yes 'the quick brown fox jumps over' | head -c {bytes}",
    "cat": "i=0; while [ $i -lt {times} ]; do cat {text}; i=$((i+1)); done",
}
# The text that `cat` prints again and again.
TEXT_BYTES = 64 * 1024 * 1024
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def timed(words, done, **options):
    """Returns the seconds until the command inside has ended, and until the whole has ended."""
    begun = time.time()
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL, **options)
    whole = time.time() - begun
    return float(open(done).read()) - begun, whole


def lost_and_kept(store):
    """Returns how many bytes the wrap or the events say were kept and lost."""
    kept = lost = 0
    for name in os.listdir(os.path.join(store, "wraps")):
        if not name.endswith(".wrap"):
            continue
        with subprocess.Popen(["zstd", "-dcq", os.path.join(store, "wraps", name)], stdout=subprocess.PIPE) as unpacked:
            wrap = unpacked.stdout
            for line in iter(wrap.readline, b""):
                control = json.loads(line)
                if "len" in control:
                    kept += len(wrap.read(control["len"] + 1)) - 1
                lost += control.get("lost", {}).get("bytes", 0)
    transcripts = os.path.join(store, "transcripts")
    for name in os.listdir(transcripts) if not kept else []:
        if name.endswith(".jsonl") and name.count(".") == 1:
            for line in open(os.path.join(transcripts, name)):
                result = json.loads(line)["payload"].get("result") or {}
                kept += result.get("stdout_bytes", 0)
                lost += result.get("stdout_lost_bytes", 0)
    return kept, lost


def write_text(path):
    """Writes a text of the project's own sources."""
    sources = []
    for dir, _, names in os.walk(os.path.join(ROOT, "crates")):
        sources += [os.path.join(dir, name) for name in names if name.endswith(".rs")]
    text = b"".join(open(source, "rb").read() for source in sorted(sources))
    with open(path, "wb") as file:
        for at in range(0, TEXT_BYTES, len(text)):
            file.write(text[: TEXT_BYTES - at])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("steno", nargs="?", default="target/release/steno")
    parser.add_argument("--mb", type=int, default=1024)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--dir", help="where the store is")
    args = parser.parse_args()
    size = args.mb * 1024 * 1024
    steno = os.path.abspath(args.steno)
    is_slow = False
    text = tempfile.NamedTemporaryFile(dir=args.dir)
    write_text(text.name)
    for name, command in COMMANDS.items():
        command = command.format(bytes=size, lines=size // 31, times=size // TEXT_BYTES, text=text.name)
        plain, wrapped, returned, counts = [], [], [], set()
        for _ in range(args.rounds):
            with tempfile.TemporaryDirectory(dir=args.dir) as dir:
                done = os.path.join(dir, "done")
                script = f"{command}; date +%s.%N > {done}"
                store = os.path.join(dir, "store")
                env = {"PATH": os.environ["PATH"], "HOME": dir, "STENO_HOME": store}
                plain.append(timed(["sh", "-c", f"({script}) | cat"], done)[0])
                ended, whole = timed([steno, "run", "--", "sh", "-c", script], done, env=env)
                wrapped.append(ended)
                returned.append(whole)
                counts.add(lost_and_kept(store))
                stop_recorder(store)
                for _ in range(100):
                    shutil.rmtree(store, ignore_errors=True)
                    if not os.path.exists(store):
                        break
                    time.sleep(0.1)
        ratio = statistics.median(wrapped) / statistics.median(plain)
        is_slow |= ratio > 1.2
        print(
            f"{name}: cat {statistics.median(plain):.2f} s, run {statistics.median(wrapped):.2f} s"
            f" (returns after {statistics.median(returned):.2f} s), ratio {ratio:.2f};"
            f" bytes kept and lost {sorted(counts)}",
            flush=True,
        )
    raise SystemExit(1 if is_slow else 0)


def stop_recorder(store):
    """Ends the recorder of a store, which would write to it while it is removed."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            words = open(f"/proc/{pid}/cmdline", "rb").read()
        except OSError:
            continue
        if b"__wrap-recorder" in words and store.encode() in words:
            os.kill(int(pid), 9)


if __name__ == "__main__":
    main()
