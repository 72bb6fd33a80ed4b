#!/usr/bin/env bash
# Feeds mutated input to the adapters and to the spine's validator for some seconds (60), guided by coverage. Fails on a
# finding.
#   scripts/fuzz.sh [SECONDS] [sample|TARGET...]
# `sample` is every fourth target, others on other days.
# Needs a C++ compiler and 64-bit Linux, and no other Rust toolchain. Inputs that reach new code stay in fuzz/corpus,
# findings in fuzz/artifacts; neither is committed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

seconds=${1:-60}
shift || true
all=(claude_disk claude_stream codex_rollout codex_exec codex_app_server gemini_chat gemini_stream gemini_output
    copilot_events copilot_stream opencode_stream http acp mcp
    spine_segment spine_archive distill)
targets=("$@")
[ "$#" -gt 0 ] || targets=("${all[@]}")
if [ "${1:-}" = sample ]; then
    targets=()
    day=$(($(date +%s) / 86400))
    for number in "${!all[@]}"; do
        [ $(((number + day) % 4)) -ne 0 ] || targets+=("${all[number]}")
    done
fi
shared=${STENO_SHARED:-../shared}
input_bytes_max=16384
seed_bytes_max=6000
line_bytes_max=3000
host=x86_64-unknown-linux-gnu
build=${CARGO_TARGET_DIR:-$PWD/target}/fuzz

# The flags of LLVM with which libFuzzer sees the reached code; stable compilers pass them on. Comparisons are not traced:
# that takes two thirds of the time, and the words that input is compared with are in the dictionary.
instruments="--cfg fuzzing -Cpasses=sancov-module -Ccodegen-units=1 -Cllvm-args=-sanitizer-coverage-level=4
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table"

command -v c++ >/dev/null || { echo "fuzz: FAILED: there is no C++ compiler (\`c++\`)" >&2; exit 1; }
# With an explicit target, build scripts are not instrumented.
RUSTFLAGS=$(echo $instruments) CARGO_TARGET_DIR=$build \
    cargo build --quiet --release --locked --manifest-path fuzz/Cargo.toml --target "$host" "${targets[@]/#/--bin=}"

# Prints the samples for a target, if there are any.
samples() {
    local golden=crates/adapters/tests/golden
    case $1 in
    claude_disk)
        ls "$golden"/claude/*.in.jsonl
        find -L "$shared"/{recordings,versions}/claude -name '*.jsonl'
        find -L "$shared"/captures/claude -path '*/projects/*.jsonl'
        ;;
    claude_stream)
        ls "$golden"/claude/*.in.ndjson "$golden"/claude/control.in.jsonl
        find -L "$shared"/versions/claude -name '*.ndjson'
        find -L "$shared"/captures/claude -name stream.ndjson -o -name duplex.jsonl
        ;;
    codex_rollout)
        ls "$golden"/codex/*rollout*.in.jsonl
        find -L "$shared"/{recordings,versions}/codex -name '*.jsonl'
        find -L "$shared"/captures/codex -name 'rollout-*.jsonl'
        ;;
    distill)
        ls crates/cli/src/demo/agents/codex/*.jsonl
        find -L "$shared"/recordings/codex -name '*.jsonl'
        ;;
    codex_exec)
        ls "$golden"/codex/*exec*.in.*
        find -L "$shared"/versions/codex -name 'exec*.ndjson'
        find -L "$shared"/captures/codex -name stream.ndjson
        ;;
    codex_app_server)
        ls "$golden"/codex/*app*.in.*
        find -L "$shared"/versions/codex -name 'app-server*.ndjson'
        find -L "$shared"/captures/codex -name duplex.jsonl
        ;;
    copilot_events)
        ls "$golden"/copilot/*.in.jsonl
        find -L "$shared"/versions/copilot -name '*.jsonl'
        find -L "$shared"/captures/copilot -name events.jsonl
        ;;
    copilot_stream)
        ls "$golden"/copilot/*.in.ndjson
        find -L "$shared"/versions/copilot -name '*.ndjson'
        find -L "$shared"/captures/copilot -name stream.ndjson
        ;;
    opencode_stream) ls "$golden"/opencode/*.in.* ;;
    http) ls "$golden"/http/*.in.* ;;
    gemini_chat)
        ls "$golden"/gemini/{chat,document}*.in.*
        find -L "$shared"/{recordings,versions}/gemini -name '*chat*'
        find -L "$shared"/captures/gemini -path '*/chats/*.jsonl'
        ;;
    gemini_stream)
        ls "$golden"/gemini/stream*.in.*
        find -L "$shared"/versions/gemini -name 'stream*'
        find -L "$shared"/captures/gemini -name stream.ndjson
        ;;
    gemini_output)
        ls "$golden"/gemini/output*.in.*
        find -L "$shared"/versions/gemini -name 'json_*'
        ;;
    acp)
        ls "$golden"/acp/*.in.jsonl
        find -L "$shared"/captures/{gemini,copilot} -path '*/acp/duplex*.jsonl'
        ;;
    mcp)
        ls "$golden"/mcp/*.in.jsonl
        find -L "$shared"/versions/mcp -name '*.ndjson'
        ;;
    spine_segment) ls docs/examples/spine/*.jsonl ;;
    esac 2>/dev/null || true
}

# Puts the samples into a directory, in parts that begin with the sample's first line, which often names the agent. Long
# inputs are slow to try, so long lines are left out.
sow() {
    local number=0 file
    mkdir -p "$2"
    while read -r file; do
        number=$((number + 1))
        awk -v out="$2/$number" -v part_max="$seed_bytes_max" -v line_max="$line_bytes_max" '
            length($0) > line_max { next }
            !head { head = $0 }
            size == 0 || size + length($0) > part_max {
                close(path); path = out "-" ++parts; size = length(head)
                print head >path
                if ($0 == head) next
            }
            { print >path; size += length($0) + 1 }
        ' "$file"
    done < <(samples "$1")
    if [ "$1" = spine_archive ]; then
        archives "$2"
    fi
    # A short line to begin with if there are no samples.
    printf '{"type":"x"}\n' >"$2/0"
    echo "$number samples, $(find "$2" -type f | wc -l) seeds"
}

# Puts archives of a small bundle into a directory, in the formats of tar that allow long names.
archives() {
    local bundle=$scratch/bundle form
    mkdir -p "$bundle/rollout" "$bundle/artifacts"
    cp -r docs/examples/spine "$bundle/spine"
    printf '{"bundle_version":"rollout_plus_v0","rollout_files":[],"left_out":[]}\n' >"$bundle/bundle.json"
    printf 'x\n' >"$bundle/rollout/rollout-$(printf 'x%.0s' {1..100}).jsonl"
    for form in gnu pax; do
        tar --format="$form" -C "$scratch" -b 1 -cf "$1/$form" bundle
    done
}

# The words that adapters and the validator look for, as libFuzzer's dictionary.
words() {
    grep -rhoE '"[A-Za-z][A-Za-z0-9_./-]{2,40}"' crates/adapters/src crates/model/src/spine crates/spine/src \
        crates/exports/src/harbor |
        sort -u
}

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
words >"$scratch/words"

failed=()
for target in "${targets[@]}"; do
    echo "== $target, $seconds s"
    sow "$target" "$scratch/$target"
    mkdir -p "fuzz/corpus/$target" "fuzz/artifacts/$target"
    if "$build/$host/release/$target" -max_total_time="$seconds" -max_len="$input_bytes_max" -timeout=20 \
        -rss_limit_mb=2048 -dict="$scratch/words" -artifact_prefix="fuzz/artifacts/$target/" -print_final_stats=1 \
        "fuzz/corpus/$target" "$scratch/$target" >"$scratch/log" 2>&1; then
        grep -E '^#[0-9]+.*(INITED|DONE)|^stat::(number_of_executed_units|average_exec|peak)' "$scratch/log"
    else
        grep -vE '^#[0-9]+|^ParseDict' "$scratch/log" | head -c 8000 >&2
        failed+=("$target")
    fi
done
[ "${#failed[@]}" -eq 0 ] || { echo "fuzz: FAILED: ${failed[*]}; the inputs are in fuzz/artifacts" >&2; exit 1; }
echo "fuzz: ${#targets[@]} targets, no finding"
