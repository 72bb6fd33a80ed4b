#!/bin/bash
# proxied.sh STENO STORE COMMAND...   Runs an agent whose model is behind `steno proxy`, inside the sandbox.
# The agent's configuration or a variable names the port of the scripted model; here it names that of the proxy.
set -u
steno=$1 store=$2
shift 2
model=8088 port=8099
[ -f "${CODEX_HOME:-}/config.toml" ] && sed -i "s/:$model/:$port/" "$CODEX_HOME/config.toml"
for name in ANTHROPIC_BASE_URL GOOGLE_GEMINI_BASE_URL COPILOT_PROVIDER_BASE_URL; do
    [ -z "${!name:-}" ] || export "$name=${!name/:$model/:$port}"
done
"$steno" --store "$store" proxy --upstream "http://127.0.0.1:$model" --port "$port" --json >"$store.url" 2>"$store.err" &
proxy=$!
for _ in $(seq 100); do
    [ -s "$store.url" ] && break
    sleep 0.1
done
"$@"
code=$?
kill -INT "$proxy"
wait "$proxy" || code=99
exit "$code"
