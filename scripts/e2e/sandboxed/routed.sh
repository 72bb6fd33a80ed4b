#!/bin/bash
# routed.sh STENO STORE CONFIG KEPT COMMAND...   Runs an agent under `steno run`, inside the sandbox, with its MCP servers
# behind `steno mcp`: CONFIG, which names them, is changed before and changed back after. KEPT has what it was.
set -u
steno=$1 store=$2 config=$3 kept=$4
shift 4
mkdir "$kept" && cp "$config" "$kept/before" || exit 96
"$steno" --store "$store" mcp --wrap-config "$config" >"$kept/words" 2>&1 || exit 97
cp "$config" "$kept/changed"
"$steno" --store "$store" run -- "$@"
code=$?
"$steno" --store "$store" mcp --wrap-config "$config" --undo >>"$kept/words" 2>&1 || code=98
exit "$code"
