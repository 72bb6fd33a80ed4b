#!/usr/bin/env bash
# Builds the journal with each of the known mistakes, one at a time, and fails unless a test notices it. The tests that
# are to notice are those of crashes, of many threads, and of readers; without a mistake they have to pass.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

mutants=(mutant-no-fsync mutant-no-dir-fsync mutant-seq-outside-lock mutant-fsync-retried mutant-reader-repairs)
filters=(crashes:: concurrency:: recovering::readers_never_repair)
# Each of the tests takes seconds: one that gets here hangs, and a hang proves nothing.
limit_s=600

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

fail() {
    echo "mutants: FAILED: $1" >&2
    exit 1
}

# A mutant that is declared and not tried here would be a promise that nobody keeps.
declared=$(sed -n 's/^\(mutant-[a-z-]*\) *=.*/\1/p' crates/journal/Cargo.toml | sort)
[ "$declared" = "$(printf '%s\n' "${mutants[@]}" | sort)" ] ||
    fail "crates/journal/Cargo.toml declares other mutants: $(echo "$declared" | tr '\n' ' ')"

# The journal's tests, with the feature in `feature` if there is one.
journal_tests() {
    cargo test --quiet -p steno-journal --test it ${feature:+--features "$feature"} "$@"
}

# Built apart, so that a mutant which does not compile is not taken for one that was noticed.
build() {
    journal_tests --no-run >"$scratch/build" 2>&1 || {
        cat "$scratch/build" >&2
        fail "the tests do not build${feature:+ with $feature}"
    }
    journal_tests -- --list "${filters[@]}" 2>"$scratch/build" | sed -n 's/: test$//p' >"$scratch/names"
    [ -s "$scratch/names" ] || fail "no test matches ${filters[*]}"
}

# Runs one test after the other until one fails, and leaves its name in `noticed_by`.
run_tests() {
    local name code
    noticed_by=""
    while read -r name; do
        code=0
        timeout "$limit_s" cargo test -p steno-journal --test it ${feature:+--features "$feature"} \
            -- --exact "$name" >"$scratch/output" 2>&1 </dev/null || code=$?
        [ "$code" -ne 124 ] || fail "$name hangs${feature:+ with $feature}"
        [ "$code" -ne 0 ] || continue
        # Only a test that ran and failed counts; anything else is trouble of another kind.
        grep -q "^test $name .*FAILED$" "$scratch/output" || {
            cat "$scratch/output" >&2
            fail "$name did not run${feature:+ with $feature}"
        }
        noticed_by=$name
        return
    done <"$scratch/names"
}

feature=""
build
run_tests
[ -z "$noticed_by" ] || {
    cat "$scratch/output" >&2
    fail "$noticed_by fails without any mutant"
}
echo "no mutant: $(wc -l <"$scratch/names") tests pass"

survivors=0
for feature in "${mutants[@]}"; do
    build
    run_tests
    if [ -n "$noticed_by" ]; then
        why=$(grep -A1 "panicked at" "$scratch/output" | sed -n 2p | cut -c1-100)
        echo "$feature: noticed by $noticed_by ($why)"
    else
        echo "$feature: SURVIVED"
        survivors=$((survivors + 1))
    fi
done
echo "${#mutants[@]} mutants, $survivors survived, ${SECONDS} s"
[ "$survivors" -eq 0 ]
