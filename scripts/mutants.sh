#!/usr/bin/env bash
# Builds the journal, the vault and the recorder with one known mistake at a time, and fails unless a test notices it. Only
# the tests of crashes, threads, faults and readers are run. Without a mistake they must pass.
#   scripts/mutants.sh [sample] [journal|vault|recorder]
# With `sample`, only every third mistake is tried, others on other days.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# Each test takes seconds. One that reaches the limit hangs, and a hang proves nothing.
limit_s=600

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

fail() {
    echo "mutants: FAILED: $1" >&2
    exit 1
}

# The tests of `crate`, with the feature in `feature` if there is one.
its_tests() {
    cargo test --quiet -p "steno-$crate" --test it ${feature:+--features "$feature"} "$@"
}

# Builds first, so that a mutant that does not compile does not count as noticed.
build() {
    its_tests --no-run >"$scratch/build" 2>&1 || {
        cat "$scratch/build" >&2
        fail "the tests of $crate do not build${feature:+ with $feature}"
    }
    its_tests -- --list "${filters[@]}" 2>"$scratch/build" | sed -n 's/: test$//p' >"$scratch/names"
    [ -s "$scratch/names" ] || fail "no test of $crate matches ${filters[*]}"
}

# Runs one test after the other until one fails, and leaves its name in `noticed_by`.
run_tests() {
    local name code
    noticed_by=""
    while read -r name; do
        code=0
        timeout "$limit_s" cargo test -p "steno-$crate" --test it ${feature:+--features "$feature"} \
            -- --exact "$name" >"$scratch/output" 2>&1 </dev/null || code=$?
        [ "$code" -ne 124 ] || fail "$name hangs${feature:+ with $feature}"
        [ "$code" -ne 0 ] || continue
        # Only a test that ran and failed counts; anything else is another error.
        grep -q "^test $name .*FAILED$" "$scratch/output" || {
            cat "$scratch/output" >&2
            fail "$name did not run${feature:+ with $feature}"
        }
        noticed_by=$name
        return
    done <"$scratch/names"
}

every=1
if [ "${1:-}" = sample ]; then
    every=3
    shift
fi
day=$(($(date +%s) / 86400))
tried=0
survivors=0

# Tries all mutants of a crate against the tests that match the filters.
try_crate() {
    crate=$1
    shift
    filters=("$@")
    local mutants
    mapfile -t mutants < <(sed -n 's/^\(mutant-[a-z-]*\) *=.*/\1/p' "crates/$crate/Cargo.toml")
    [ "${#mutants[@]}" -gt 0 ] || fail "crates/$crate/Cargo.toml declares no mutants"
    # A sample is tried after all tests have passed.
    if [ "$every" -eq 1 ]; then
        feature=""
        build
        run_tests
        [ -z "$noticed_by" ] || {
            cat "$scratch/output" >&2
            fail "$noticed_by fails without any mutant"
        }
        echo "$crate, no mutant: $(wc -l <"$scratch/names") tests pass"
    fi
    local number
    for number in "${!mutants[@]}"; do
        [ $(((number + day) % every)) -eq 0 ] || continue
        feature=${mutants[number]}
        build
        run_tests
        tried=$((tried + 1))
        if [ -n "$noticed_by" ]; then
            local why
            why=$(grep -A1 "panicked at" "$scratch/output" | sed -n 2p | cut -c1-100)
            echo "$crate, $feature: noticed by $noticed_by ($why)"
        else
            echo "$crate, $feature: SURVIVED"
            survivors=$((survivors + 1))
        fi
    done
}

case ${1:-all} in
all | journal) try_crate journal crashes:: concurrency:: recovery::readers_do_not_change_a_torn_file ;;&
all | vault) try_crate vault crashes:: threads:: faults:: ;;&
all | recorder) try_crate recorder import_order:: ;;&
esac
[ "$tried" -gt 0 ] || fail "there are mutants of journal, vault and recorder"
echo "$tried mutants, $survivors survived, ${SECONDS} s"
[ "$survivors" -eq 0 ]
