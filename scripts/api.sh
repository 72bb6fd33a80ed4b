#!/usr/bin/env bash
# The local API held to its own description by schemathesis, and receipts to the second verifier in docs/receipts. Needs
# network access to a package registry for schemathesis; real sessions are taken from ../shared where that is there.
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
