#!/usr/bin/env python3
"""Runs schemathesis against `steno serve`, and the second verifier against receipts."""

import argparse
import json
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "supervised"))
from commands import ROOT, run_steno, shared  # noqa: E402
from promises import Violation, demand  # noqa: E402

WORK = pathlib.Path(os.environ["API_WORK"])
STENO = os.environ["API_STENO"]
VERIFIER = ROOT / "docs/receipts/verify_receipt.py"
# The id that generators of requests try first: so there is something behind it.
ZERO = "00000000-0000-0000-0000-000000000000"


def steno(store, *args, **more):
    """Runs a command to its end and returns what it prints."""
    return run_steno(STENO, store, *args, **more)


def check_schema(examples):
    """Whatever is asked, the answer is one that the description allows."""
    store = WORK / "schema"
    session = (ROOT / "crates/server/tests/fixtures/receipts/session.jsonl").read_text()
    drafts = "".join("{" + line.split(",", 2)[2] + "\n" for line in session.splitlines())
    steno(store, "record", "--run", ZERO, input=drafts)
    # A schema cannot say which text is a query: an open quotation mark, or no word at all, is refused.
    search = '[[operations]]\ninclude-name = "GET /v1/search"\nchecks.positive_data_acceptance.enabled = false\n'
    (WORK / "schemathesis.toml").write_text(search)
    command = [STENO, "--store", str(store), "serve", "--port", "0", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            told = json.loads(server.stdout.readline())
            token = json.loads(pathlib.Path(told["token_file"]).read_text())["token"]
            command = [os.environ["API_SCHEMATHESIS"], "run", told["url"] + "/v1/openapi.json", "--max-examples", str(examples)]
            done = subprocess.run([*command, "-H", f"Authorization: Bearer {token}"], capture_output=True, text=True, cwd=WORK)
            summary = [line.strip() for line in done.stdout.splitlines() if "generated" in line]
            demand(done.returncode == 0 and summary, f"schemathesis found something:\n{done.stdout[-6000:]}{done.stderr[-1000:]}")
            print(f"schemathesis: ok, {summary[-1]}", flush=True)
        finally:
            server.terminate()
            demand(server.wait(30) == 0, "the server did not end well")


def sessions():
    """Real sessions if there are any, else our own samples."""
    real = [shared() / name for name in ["captures/claude", "captures/codex", "recordings"]]
    return [path for path in real if path.is_dir()]


def check_verifier():
    """Two implementations of one page agree on every turn."""
    store = WORK / "receipts"
    given = sessions()
    steno(store, *(["import", *map(str, given)] if given else ["up", "--demo", "--once"]))
    turns = [json.loads(line) for line in steno(store, "receipt", "ls", "--json").splitlines()]
    demand(turns, "there are no turns")
    receipt, lines, checks, several = WORK / "receipt.json", WORK / "lines.jsonl", 0, 0
    for turn in turns:
        which = ["--thread", turn["thread_id"], "--turn", turn["id"]]
        lines.write_text(steno(store, "receipt", "lines", *which))
        for more in ([], ["--integrity"]):
            receipt.write_text(steno(store, "receipt", "export", *which, *more))
            runs = json.loads(receipt.read_text())["source_event_lineage"]["runs"]
            several += len(runs) > 1 and not more
            transcripts = [way for run in runs for way in ("--transcript", store / "transcripts" / (run["run_id"] + ".jsonl"))]
            ways = [transcripts] + ([["--lines", lines]] if more else [])
            for way in ways:
                command = [sys.executable, str(VERIFIER), str(receipt), *map(str, way)]
                done = subprocess.run(command, capture_output=True, text=True)
                demand(done.returncode == 0, f"{turn['thread_id']} {turn['id']} {way[0]}: {done.stdout}{done.stderr}")
                checks += 1
    broken = receipt.read_text().replace('"raw_reasoning_exported": false', '"raw_reasoning_exported": true')
    receipt.write_text(broken)
    command = [sys.executable, str(VERIFIER), str(receipt), *map(str, transcripts)]
    demand(subprocess.run(command, capture_output=True).returncode == 1, "the verifier takes a changed receipt")
    kind = "real sessions" if given else "our own samples: ../shared is absent"
    print(f"second verifier: ok, {len(turns)} turns of {kind}, {several} of several runs, {checks} checks", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--examples", type=int, default=60, help="how many requests are made up for each operation")
    args = parser.parse_args()
    try:
        check_schema(args.examples)
        check_verifier()
    except Violation as violation:
        print(f"api: FAILED: {violation}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
