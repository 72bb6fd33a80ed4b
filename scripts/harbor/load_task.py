#!/usr/bin/env python3
"""Has Harbor's own code load tasks: for each directory one line of JSON, whether it is one, its name and its instruction."""

import json
import sys
import typing

import typing_extensions

# Harbor wants a newer Python; this is all that its loader misses.
typing.override = typing_extensions.override

from harbor.models.task.task import Task  # noqa: E402

for path in sys.argv[1:]:
    found = {"valid": Task.is_valid_dir(path)}
    if found["valid"]:
        task = Task(path)
        found |= {"name": task.name, "instruction": task.instruction}
    print(json.dumps(found))
