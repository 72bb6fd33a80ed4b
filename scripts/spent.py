#!/usr/bin/env python3
"""Runs a command and tells what it cost: spent.py STDOUT_FILE COMMAND [ARG...]

Its output goes to the file; a line of JSON on stdout has seconds of processor (user and system) and of wall, and the
peak of resident memory in KiB, which is never below this interpreter's own. Ends as the command does.
"""
import json
import os
import sys
import time

out = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
began = time.monotonic()
child = os.posix_spawnp(sys.argv[2], sys.argv[2:], os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, out, 1)])
_, status, used = os.wait4(child, 0)
wall = time.monotonic() - began
print(json.dumps({"cpu_s": used.ru_utime + used.ru_stime, "wall_s": wall, "peak_kib": used.ru_maxrss}))
sys.exit(os.waitstatus_to_exitcode(status))
