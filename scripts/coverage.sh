#!/usr/bin/env bash
# Prints how many lines of model and journal their own tests reach, and fails if there are too few of either (R77).
#
# The compiler counts (-C instrument-coverage); llvm-tools of the same toolchain read what it counted, and are installed if
# they are missing. Only the crates of the workspace are built again; dependencies come from `cargo test`.
#
# COVERAGE_MIN is the lowest percentage that passes; the default is 85.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

percent_min=${COVERAGE_MIN:-85}
crates=(model journal)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

fail() {
    echo "coverage: FAILED: $1" >&2
    exit 1
}

# Prints the directory of the toolchain's own llvm tools.
tools_dir() {
    local host
    host=$(rustc -vV | sed -n 's/^host: //p')
    echo "$(rustc --print sysroot)/lib/rustlib/$host/bin"
}

tools=$(tools_dir)
if [ ! -x "$tools/llvm-profdata" ] || [ ! -x "$tools/llvm-cov" ]; then
    echo "coverage: the toolchain has no llvm-tools; installing them"
    rustup component add llvm-tools || fail "\`rustup component add llvm-tools\` does not work here"
fi

# Cargo keeps what it builds with a wrapper apart from what it builds without, in the same target directory, and builds it
# again when the wrapper changes.
mkdir -p "${CARGO_TARGET_DIR:-target}"
wrapper=$(realpath "${CARGO_TARGET_DIR:-target}")/coverage-rustc
printf '#!/bin/sh\nexec "$@" -C instrument-coverage\n' >"$scratch/wrapper"
if ! cmp -s "$scratch/wrapper" "$wrapper"; then
    install -m 755 "$scratch/wrapper" "$wrapper"
fi
export RUSTC_WORKSPACE_WRAPPER=$wrapper LLVM_PROFILE_FILE="$scratch/%p-%4m.profraw"

packages=()
for crate in "${crates[@]}"; do
    packages+=(-p "steno-$crate")
done
cargo test "${packages[@]}" --tests --no-run --message-format=json >"$scratch/built.json" ||
    fail "the tests do not build"
python3 - "$scratch/built.json" >"$scratch/programs" <<'PYTHON'
import json, sys

for line in open(sys.argv[1]):
    message = json.loads(line)
    if message.get("reason") == "compiler-artifact" and message["profile"]["test"] and message["executable"]:
        print(message["executable"])
PYTHON
[ -s "$scratch/programs" ] || fail "there is no test to run"
cargo test "${packages[@]}" --tests >"$scratch/tests.log" 2>&1 || {
    cat "$scratch/tests.log" >&2
    fail "the tests do not pass"
}

"$tools/llvm-profdata" merge -sparse "$scratch"/*.profraw -o "$scratch/all.profdata" ||
    fail "what the tests counted cannot be read"
objects=()
while read -r program; do
    objects+=(-object "$program")
done <"$scratch/programs"
# llvm-cov takes the first program without a flag.
"$tools/llvm-cov" export -format=lcov -instr-profile "$scratch/all.profdata" "${objects[1]}" "${objects[@]:2}" \
    >"$scratch/lines" || fail "the lines cannot be counted"

python3 - "$scratch/lines" "$percent_min" "${crates[@]}" <<'PYTHON'
import sys


def first_test_line(path):
    """Leave out the unit tests at the end of a file: they are not measured."""
    with open(path) as source:
        lines = source.read().splitlines()
    starts = (number for number, line in enumerate(lines, 1) if line == "mod tests {")
    return min(starts, default=len(lines) + 1)


# For each file: the lines that can be reached, and the lines that were.
files, path = {}, None
for record in open(sys.argv[1]):
    kind, _, value = record.strip().partition(":")
    if kind == "SF":
        path, end = value, first_test_line(value)
    elif kind == "DA":
        number, times = value.split(",")[:2]
        if int(number) < end:
            reachable, reached = files.setdefault(path, (set(), set()))
            reachable.add(number)
            if int(times) > 0:
                reached.add(number)
percent_min, enough = float(sys.argv[2]), True
for crate in sys.argv[3:]:
    of_crate = {path.split(f"/crates/{crate}/src/")[1]: lines for path, lines in files.items()
                if f"/crates/{crate}/src/" in path and not path.endswith("/tests.rs")}
    count = sum(len(reachable) for reachable, _ in of_crate.values())
    covered = sum(len(reached) for _, reached in of_crate.values())
    if count == 0:
        sys.exit(f"coverage: FAILED: nothing of {crate} was measured")
    percent = 100 * covered / count
    print(f"{crate}: {percent:.1f} % ({covered} of {count} lines)")
    least = min(of_crate, key=lambda name: len(of_crate[name][1]) / len(of_crate[name][0]))
    print(f"  least: {least}, {len(of_crate[least][1])} of {len(of_crate[least][0])}")
    enough &= percent >= percent_min
if not enough:
    sys.exit(f"coverage: FAILED: less than {percent_min:g} %")
PYTHON
echo "measured in ${SECONDS} s"
