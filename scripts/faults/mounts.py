"""File systems to break: a tmpfs of a given size, and an image on a loop device whose power can be cut."""

import contextlib
import fcntl
import os
import struct
import subprocess

from client import WORK
from ending import end_children


# What `xfs_io -x -c shutdown` calls, for ext4 and xfs alike. Called from here it comes without the delay of starting a
# program, so that what was acknowledged just before it counts.
GOING_DOWN = 0x8004587D
NO_LOG_FLUSH = 2


class Missing(Exception):
    """Something that a test needs is not on this machine."""


def call(*command):
    subprocess.run(command, check=True, capture_output=True, timeout=120)


def mount(point, *args):
    point.mkdir(parents=True, exist_ok=True)
    try:
        call("mount", *args, str(point))
    except subprocess.CalledProcessError as error:
        raise Missing(f"`mount {' '.join(args)}` fails: {error.stderr.decode().strip()}") from None


def unmount(point):
    # After a failure a writer may still be there, and would keep the file system busy.
    end_children()
    call("umount", str(point))


@contextlib.contextmanager
def tmpfs(size):
    point = WORK / "tmpfs"
    mount(point, "-t", "tmpfs", "-o", f"size={size}", "tmpfs")
    try:
        yield point
    finally:
        unmount(point)


class Image:
    """A file system of its own in a file."""

    MAKE = {"ext4": ["mkfs.ext4", "-qF"], "xfs": ["mkfs.xfs", "-qf"]}

    def __init__(self, kind, size):
        self.file = WORK / f"{kind}.img"
        self.point = WORK / kind
        with self.file.open("wb") as file:
            # Sparse: only what is written takes room.
            file.truncate(size)
        call(*self.MAKE[kind], str(self.file))

    def __enter__(self):
        mount(self.point, "-o", "loop", str(self.file))
        return self

    def __exit__(self, *_):
        unmount(self.point)
        self.file.unlink()

    def cut_power(self):
        """Stops all input and output at once. The log is not flushed: what was not synced is gone."""
        handle = os.open(self.point, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.ioctl(handle, GOING_DOWN, struct.pack("I", NO_LOG_FLUSH))
        finally:
            os.close(handle)

    def boot(self):
        """Mounts again, which replays the file system's own log."""
        call("umount", str(self.point))
        mount(self.point, "-o", "loop", str(self.file))
