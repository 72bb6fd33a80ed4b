#!/usr/bin/env python3
"""Makes a home of Claude Code with many small sessions, to measure what grows with their number.

    scripts/small_sessions.py DIR [--sessions N]

Each session has a prompt, a call with its result, and an answer, in one of a hundred projects.
"""
import argparse
import json
import pathlib
import uuid


def lines(number, session):
    """The records of a session, in order."""
    second = number % 60
    minute = number // 60 % 60
    hour = number // 3600 % 24
    base = {"sessionId": session, "cwd": f"/src/project{number % 100}", "version": "2.1.0", "gitBranch": "main"}
    call = f"toolu_{number:08}"
    said = [
        ("user", {"role": "user", "content": f"Fix the parser of module {number}."}),
        ("assistant", message(number, 0, [{"type": "tool_use", "id": call, "name": "Bash", "input": {"command": f"make test{number}"}}])),
        ("user", {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call, "content": f"module {number}: ok"}]}),
        ("assistant", message(number, 1, [{"type": "text", "text": f"Module {number} is fixed."}])),
    ]
    parent = None
    for place, (kind, content) in enumerate(said):
        own = str(uuid.uuid5(uuid.NAMESPACE_OID, f"{number}/{place}"))
        time = f"2026-05-{1 + number % 28:02}T{hour:02}:{minute:02}:{second:02}.{place:03}Z"
        yield {"parentUuid": parent, "type": kind, "uuid": own, "timestamp": time, "message": content, **base}
        parent = own


def message(number, place, content):
    """A response of the model."""
    usage = {"input_tokens": 10, "output_tokens": 5, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0}
    return {"id": f"msg_{number}_{place}", "type": "message", "role": "assistant", "model": "claude-opus-4-5", "content": content, "usage": usage}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("dir", type=pathlib.Path)
    parser.add_argument("--sessions", type=int, default=20_000)
    options = parser.parse_args()
    for number in range(options.sessions):
        session = str(uuid.uuid5(uuid.NAMESPACE_OID, str(number)))
        project = options.dir / ".claude" / "projects" / f"-src-project{number % 100}"
        project.mkdir(parents=True, exist_ok=True)
        with open(project / f"{session}.jsonl", "w", encoding="utf-8") as out:
            out.writelines(json.dumps(line, separators=(",", ":")) + "\n" for line in lines(number, session))


main()
