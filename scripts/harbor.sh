#!/usr/bin/env bash
# Checks what `steno export atif` and `steno spine distill` write with Harbor's own code and with ours. Fetches Harbor
# from a package registry. Uses the real sessions in ../shared if it exists.
title="harbor"
# shellcheck source=scripts/supervised.sh
source "$(dirname "${BASH_SOURCE[0]}")/supervised.sh"

need python3
make_work "${TMPDIR:-/tmp}/steno-harbor.XXXXXX"
build_copy steno
python3 -m venv "$work/python"
pip=$work/python/bin/pip
"$pip" install --quiet "pydantic>=2,<3" pathspec toml typing-extensions
# Its validator and loader run on every Python that pydantic supports; the rest needs a newer one.
"$pip" download --quiet --dest "$work/wheels" --python-version 3.13 --only-binary=:all: --no-deps harbor==0.25.0
"$work/python/bin/python" -m zipfile -e "$work"/wheels/harbor-*.whl "$work/harbor"

export HARBOR_WORK=$work HARBOR_STENO=$work/steno HARBOR_PYTHON=$work/python/bin/python HARBOR_CODE=$work/harbor
supervise scripts/harbor/run.py "$@"
