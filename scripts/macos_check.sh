#!/usr/bin/env bash
# Type-checks the program and its tests for macOS, arm64 and x86_64, on Linux. Nothing is linked or run.
# Debian's rustc-web, cargo-web and rust-web-src bring a compiler with the sources of std, `-Zbuild-std` builds std for
# the target, and zig, from PyPI, compiles the C parts. Needs root for apt-get unless the packages are there.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

tools=${MACOS_CHECK_DIR:-${TMPDIR:-/tmp}/steno-macos-check}
targets=(aarch64-apple-darwin x86_64-apple-darwin)
mkdir -p "$tools/sdk"

has_compiler() {
    [ -x /usr/bin/cargo ] && [ -x /usr/bin/rustc ] && [ -d "$(/usr/bin/rustc --print sysroot)/lib/rustlib/src/rust" ]
}

if ! has_compiler; then
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq
    apt-get install -y -qq --no-install-recommends rustc-web cargo-web rust-web-src >/dev/null
fi
[ -d "$tools/zig" ] || python3 -m pip install --quiet --target "$tools/zig" ziglang

# Writes a C compiler or an archiver for a processor. Flags for Apple's own tools mean nothing to zig.
write_tool() {
    local tool=$1 processor=$2 file=$3
    {
        echo '#!/usr/bin/env bash'
        echo "export PYTHONPATH='$tools/zig'"
        if [ "$tool" = ar ]; then
            echo 'exec python3 -m ziglang ar "$@"'
        else
            echo 'args=()'
            echo 'for arg in "$@"; do'
            echo '    case $arg in'
            echo '    --target=* | -arch | arm64 | x86_64 | -mmacosx-version-min=* | -isysroot | --sysroot=*) ;;'
            echo '    *) args+=("$arg") ;;'
            echo '    esac'
            echo 'done'
            echo "exec python3 -m ziglang cc -target $processor-macos \"\${args[@]}\""
        fi
    } >"$file"
    chmod +x "$file"
}

settings=(PATH=/usr/bin:/bin RUSTC_BOOTSTRAP=1 RUSTC=/usr/bin/rustc "SDKROOT=$tools/sdk" "CARGO_TARGET_DIR=$tools/target")
flags=()
for target in "${targets[@]}"; do
    processor=${target%%-*}
    write_tool cc "$processor" "$tools/cc-$processor"
    write_tool ar "$processor" "$tools/ar-$processor"
    settings+=("CC_${target//-/_}=$tools/cc-$processor" "AR_${target//-/_}=$tools/ar-$processor")
    flags+=(--target "$target")
done

echo "-- $(/usr/bin/rustc --version), for ${targets[*]}"
env "${settings[@]}" /usr/bin/cargo check -Zbuild-std=std,panic_abort --workspace --tests "${flags[@]}"
