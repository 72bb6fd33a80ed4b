"""Stands between a client and a server, and keeps what each of them wrote. Its arguments are a new directory and the
server's command. Bytes are handed on first and kept then; it ends as the server does, and keeps the exit code, and the run
that it is told of."""

import os
import subprocess
import sys
import threading
from pathlib import Path

# The client may stay when the server has ended; what it has written by then is kept all the same.
LAST_S = 1


def pump(source, sink, path):
    """Hands bytes on until there are no more, or nobody takes them; keeps all that were read."""
    with path.open("wb", buffering=0) as kept:
        is_taken = True
        while is_taken and (piece := os.read(source, 65536)):
            try:
                write_all(lambda rest: os.write(sink, rest), piece)
            except BrokenPipeError:
                is_taken = False
            write_all(kept.write, piece)
    # Last, so that whoever sees this end finds everything kept.
    os.close(sink)


def write_all(write, piece):
    rest = memoryview(piece)
    while rest:
        rest = rest[write(rest) :]


def main():
    into, *command = sys.argv[1:]
    into = Path(into)
    into.mkdir(parents=True)
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    # Descriptors of our own, so that each pump closes one that is nobody else's.
    to_server, from_server = os.dup(server.stdin.fileno()), os.dup(server.stdout.fileno())
    server.stdin.close()
    server.stdout.close()
    up = threading.Thread(target=pump, args=(0, to_server, into / "c2s"), daemon=True)
    up.start()
    pump(from_server, 1, into / "s2c")
    code = server.wait()
    up.join(LAST_S)
    code = code if code >= 0 else 128 - code
    (into / "exit_code").write_text(str(code))
    (into / "run").write_text(os.environ.get("STENO_RUN", ""))
    os._exit(code)


if __name__ == "__main__":
    main()
