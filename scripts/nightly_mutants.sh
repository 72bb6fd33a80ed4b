#!/usr/bin/env bash
# Changes a few source files in small ways with cargo-mutants and runs the tests of their crates: a change that no test
# notices is a missing test. Which files is decided by the day of the year, so that all files get their turn. Takes how many
# files (3) and for how many seconds (3600) as arguments. Reports missed mutants; fails only if it cannot run.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

count=${1:-3}
seconds_max=${2:-3600}
day=${STENO_MUTANTS_DAY:-$(date -u +%j)}
out=${STENO_MUTANTS_OUT:-target/nightly-mutants}

cargo mutants --version >/dev/null 2>&1 || {
    echo "cargo-mutants is missing: cargo install cargo-mutants --locked" >&2
    exit 2
}

# Every source file but those of tests and test kits, in an order that has nothing to do with the day.
mapfile -t files < <(find crates -path '*/src/*' -name '*.rs' ! -path 'crates/testkit/*' ! -name 'tests.rs' ! -name '*_tests.rs' \
    ! -path '*/tests/*' ! -name 'testing.rs' | LC_ALL=C sort)
[ "${#files[@]}" -gt 0 ] || { echo "there are no source files" >&2; exit 2; }
picked=()
for ((turn = 0; turn < count; turn++)); do
    # A step that is prime spreads the files of one day over the crates.
    picked+=("${files[$((((10#$day * count + turn) * 7919) % ${#files[@]}))]}")
done
echo "day $day, ${#picked[@]} of ${#files[@]} files:"
printf '  %s\n' "${picked[@]}"

started=$SECONDS
missed=0
for file in "${picked[@]}"; do
    left=$((seconds_max - (SECONDS - started)))
    [ "$left" -gt 0 ] || { echo "$file: no time left"; continue; }
    crate=${file#crates/}
    crate=${crate%%/*}
    package="steno-$crate"
    [ "$crate" = cli ] && package=steno
    dir="$out/${file//\//_}"
    mkdir -p "$dir"
    status=0
    timeout --kill-after=30 "$left" cargo mutants --package "$package" --file "$file" --test-package "$package" \
        --minimum-test-timeout 60 --timeout-multiplier 3 --build-timeout 900 --no-shuffle --colors never \
        --output "$dir" >"$dir/log" 2>&1 || status=$?
    case $status in
    # 0: all caught, 2: some missed, 3: some timed out.
    0 | 2 | 3) ;;
    124 | 137) echo "$file: stopped after $left s" ;;
    *)
        echo "$file: cargo-mutants failed with $status" >&2
        tail -n 20 "$dir/log" >&2
        exit 1
        ;;
    esac
    lines() { if [ -f "$dir/mutants.out/$1.txt" ]; then wc -l <"$dir/mutants.out/$1.txt"; else echo 0; fi; }
    echo "$file: $(lines caught) caught, $(lines missed) missed, $(lines timeout) timed out, $(lines unviable) not viable"
    if [ -s "$dir/mutants.out/missed.txt" ]; then
        sed 's/^/  missed: /' "$dir/mutants.out/missed.txt"
        missed=$((missed + $(lines missed)))
    fi
done
echo "mutants: $missed missed in ${#picked[@]} files, $((SECONDS - started)) s"
