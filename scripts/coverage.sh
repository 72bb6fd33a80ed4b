#!/usr/bin/env bash
# Says how many lines of model and journal the workspace's tests reach, and fails when it is too few for either.
#
# The tests of the command line are left out: they start `steno` as another process, which is not measured, and which
# would leave its profile in directories that these tests look at. What only they reach counts as not reached.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

percent_min=85

if ! cargo tarpaulin --version >/dev/null 2>&1; then
    echo "coverage: cargo-tarpaulin is missing; installing it"
    cargo install cargo-tarpaulin --locked
fi

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
target=$(cargo metadata --format-version 1 --no-deps |
    python3 -c 'import json, sys; print(json.load(sys.stdin)["target_directory"])')

# A target directory of its own: other flags would make the next ordinary build start from nothing.
measure() {
    cargo tarpaulin --engine "$1" --workspace --exclude steno \
        --include-files 'crates/model/src/*' 'crates/journal/src/*' \
        --out Json --output-dir "$scratch" --target-dir "$target/coverage" --skip-clean --timeout 600 \
        >"$scratch/$1.log" 2>&1
}

# Prints a line per crate; ends with 1 when one has too few, with 2 when nothing was measured.
judge() {
    python3 - "$scratch/tarpaulin-report.json" "$percent_min" <<'PYTHON'
import json, sys

try:
    with open(sys.argv[1]) as report:
        files = json.load(report)["files"]
except (OSError, ValueError, KeyError):
    sys.exit(2)
enough = True
for crate in ("model", "journal"):
    inside = [file for file in files if f"/crates/{crate}/src/" in "/".join(file["path"])]
    lines = sum(file["coverable"] for file in inside)
    covered = sum(file["covered"] for file in inside)
    if covered == 0:
        sys.exit(2)
    percent = 100 * covered / lines
    print(f"{crate}: {percent:.1f} % ({covered} of {lines} lines)")
    least = min((file for file in inside if file["coverable"]), key=lambda file: file["covered"] / file["coverable"])
    name = "/".join(least["path"]).split("/src/")[-1]
    print(f"  least: {name}, {least['covered']} of {least['coverable']}")
    enough &= percent >= float(sys.argv[2])
sys.exit(0 if enough else 1)
PYTHON
}

tests_failed() {
    grep -qE '^test result: FAILED|^error(\[|:)' "$scratch/$1.log"
}

# The profiles' format changes with the compiler; ptrace needs none, and is slower.
for engine in llvm ptrace; do
    code=0
    if measure "$engine"; then
        judge || code=$?
        [ "$code" -ne 0 ] || echo "measured with tarpaulin's $engine engine, ${SECONDS} s"
        [ "$code" -ne 1 ] || echo "coverage: FAILED: less than $percent_min %" >&2
        [ "$code" -eq 2 ] || exit "$code"
    fi
    if tests_failed "$engine"; then
        cat "$scratch/$engine.log" >&2
        echo "coverage: FAILED: the tests do not build or do not pass" >&2
        exit 1
    fi
    echo "coverage: tarpaulin's $engine engine gives no figures"
done
cat "$scratch/ptrace.log" >&2
echo "coverage: FAILED: nothing was measured" >&2
exit 1
