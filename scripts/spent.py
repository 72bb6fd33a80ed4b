#!/usr/bin/env python3
"""Runs a command and tells what it cost: spent.py STDOUT_FILE COMMAND [ARG...]

Its output goes through a pipe to the file. A line of JSON on stdout has the seconds of processor (user and system), of
wall, and of wall until the first output, which is null without one, and the peak of resident memory in KiB, which is
never below this interpreter's own. Ends as the command does.
"""
import json
import os
import sys
import time

out = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
ours, theirs = os.pipe()
began = time.monotonic()
child = os.posix_spawnp(sys.argv[2], sys.argv[2:], os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, theirs, 1)])
os.close(theirs)
first = None
while piece := os.read(ours, 1 << 16):
    first = first or time.monotonic() - began
    while piece:
        piece = piece[os.write(out, piece):]
_, status, used = os.wait4(child, 0)
wall = time.monotonic() - began
cpu = used.ru_utime + used.ru_stime
print(json.dumps({"cpu_s": cpu, "wall_s": wall, "first_s": first, "peak_kib": used.ru_maxrss}))
sys.exit(os.waitstatus_to_exitcode(status))
