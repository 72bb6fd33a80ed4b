#!/usr/bin/env bash
# Tests the local API against its own description with schemathesis, and receipts with the second verifier in
# docs/receipts. Fetches schemathesis from a package registry. Uses the real sessions in ../shared if it exists.
title="api"
# shellcheck source=scripts/supervised.sh
source "$(dirname "${BASH_SOURCE[0]}")/supervised.sh"

need python3
make_work "${TMPDIR:-/tmp}/steno-api.XXXXXX"
build_copy steno
python3 -m venv "$work/python"
"$work/python/bin/pip" install --quiet "schemathesis>=4,<5"

export API_WORK=$work API_STENO=$work/steno API_SCHEMATHESIS=$work/python/bin/st
supervise scripts/api/run.py "$@"
