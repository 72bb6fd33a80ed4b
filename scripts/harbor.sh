#!/usr/bin/env bash
# What `steno export atif` and `steno spine distill` write, held to Harbor's own code and to ours. Needs network access to a package registry
# for Harbor; real sessions are taken from ../shared where that is there.
title="harbor"
# shellcheck source=scripts/supervised.sh
source "$(dirname "${BASH_SOURCE[0]}")/supervised.sh"

need python3
make_work "${TMPDIR:-/tmp}/steno-harbor.XXXXXX"
build_copy steno
python3 -m venv "$work/python"
pip=$work/python/bin/pip
"$pip" install --quiet "pydantic>=2,<3" pathspec toml typing-extensions
# Its validator and its loader run on any Python that pydantic does; the rest of it wants a newer one.
"$pip" download --quiet --dest "$work/wheels" --python-version 3.13 --only-binary=:all: --no-deps harbor==0.25.0
"$work/python/bin/python" -m zipfile -e "$work"/wheels/harbor-*.whl "$work/harbor"

export HARBOR_WORK=$work HARBOR_STENO=$work/steno HARBOR_PYTHON=$work/python/bin/python HARBOR_CODE=$work/harbor
supervise scripts/harbor/run.py "$@"
