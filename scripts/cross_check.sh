#!/usr/bin/env bash
# Compares `steno search` and `steno usage` with programs that share no code with them, over the agents' files in
# ../shared and a history that its corpus/gen.py makes. Fetches the Python package regex.
title="cross-check"
# shellcheck source=scripts/supervised.sh
source "$(dirname "${BASH_SOURCE[0]}")/supervised.sh"

shared=${STENO_SHARED:-../shared}
need python3
[ -d "$shared/captures" ] || absent "$shared is absent"
make_work "${TMPDIR:-/tmp}/steno-cross-check.XXXXXX"
build_copy steno
python3 -m venv "$work/python"
"$work/python/bin/pip" install --quiet regex
python3 "$shared/corpus/gen.py" "$work/history" --mb "${1:-1}" --seed 3 >"$work/truth.json"

echo "== search"
"$work/python/bin/python" scripts/searches.py "$work/steno" "$shared/captures" "$work/history"
echo "== cost"
python3 scripts/costs.py "$work/steno" "$shared/prices/prices.json" "$shared/captures" "$work/history" >"$work/costs.txt" ||
    { cat "$work/costs.txt" >&2; exit 1; }
awk '{ n[$1]++ } END { for (w in n) print n[w], w }' "$work/costs.txt"
