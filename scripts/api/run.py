#!/usr/bin/env python3
"""Runs schemathesis against `steno serve`, and the second verifier against receipts."""

import argparse
import json
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "supervised"))
from changed_runs import check_changed_runs  # noqa: E402
from commands import ROOT, run_steno  # noqa: E402
from promises import Violation, demand  # noqa: E402
from receipts import check_verifier  # noqa: E402

WORK = pathlib.Path(os.environ["API_WORK"])
STENO = os.environ["API_STENO"]
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


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--examples", type=int, default=60, help="how many requests are made up for each operation")
    parser.add_argument("--sessions", type=int, default=40, help="how many sessions are made of changed runs")
    parser.add_argument("--seed", type=int, default=1, help="which changes are made")
    args = parser.parse_args()
    try:
        check_schema(args.examples)
        check_verifier(STENO, WORK / "receipts")
        check_changed_runs(STENO, WORK / "changed", args.sessions, args.seed)
    except Violation as violation:
        print(f"api: FAILED: {violation}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
