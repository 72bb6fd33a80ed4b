"""Where agents keep their files below a user's home, and which paths are one file's through its life."""

import uuid
from pathlib import Path

PROJECTS = Path(".claude/projects")
SESSIONS = Path(".codex/sessions/2026/01/02")
ARCHIVED = Path(".codex/archived_sessions")
# What is neither a session nor a rollout is moved here for a while: on the same file system, and no agent's home.
ASIDE = Path("aside")


def session_names(dice, count):
    return [str(uuid.UUID(int=dice.getrandbits(128), version=4)) for _ in range(count)]


def session(project, name):
    return PROJECTS / project / f"{name}.jsonl"


def beside(session_path, *below):
    """A file in the directory that a session has beside its own file."""
    return session_path.with_suffix("").joinpath(*below)


def rollout(thread):
    return SESSIONS / f"rollout-2026-01-02T03-04-05-{thread}.jsonl"


def all_names(file):
    """Every path that a file can have: Codex archives threads and compresses them."""
    if not file.name.startswith("rollout-"):
        return [file]
    plain = [directory / file.name for directory in (SESSIONS, ARCHIVED)]
    return plain + [path.with_name(path.name + ".zst") for path in plain]


def first_name(path):
    """The path that a file had when it was made."""
    if not path.name.startswith("rollout-"):
        return path
    return SESSIONS / path.name.removesuffix(".zst")


def all_files(home):
    """Every file in the agents' homes, by the path that it had when it was made."""
    found = {}
    for top in (".claude", ".codex"):
        for path in sorted((home / top).rglob("*")):
            name = path.relative_to(home)
            if path.is_file() and ".tmp" not in name.name and not name.name.endswith(".bak"):
                found[first_name(name)] = path
    return found
