#!/usr/bin/env python3
"""Has Harbor's own converter make trajectories of Claude Code's sessions: convert.py PROJECTS OUT

Prints one line of JSON: how many sessions and steps, and the seconds of processor that converting took, without what
importing takes. Needs a Python that Harbor runs on, and what it imports.
"""
import json
import os
import pathlib
import resource
import sys
import tempfile

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")

from harbor.agents.installed.claude_code import ClaudeCode  # noqa: E402


def spent():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def main():
    projects, out = map(pathlib.Path, sys.argv[1:])
    out.mkdir(parents=True, exist_ok=True)
    sessions = steps = failed = 0
    with tempfile.TemporaryDirectory() as work:
        work = pathlib.Path(work)
        agent = ClaudeCode(logs_dir=work, model_name="claude-x")
        began = spent()
        for file in sorted(projects.glob("*/*.jsonl")):
            # It reads a directory, with the session's file and those of its subagents in it.
            session = work / file.stem
            subagents = session / file.stem / "subagents"
            subagents.mkdir(parents=True)
            (session / file.name).symlink_to(file)
            for one in (file.parent / file.stem / "subagents").glob("*.jsonl"):
                (subagents / one.name).symlink_to(one)
            try:
                trajectory = agent._convert_events_to_trajectory(session)
            except Exception:
                failed += 1
                continue
            if trajectory is None:
                failed += 1
                continue
            (out / f"{file.stem}.json").write_text(json.dumps(trajectory.to_json_dict(), ensure_ascii=True))
            sessions += 1
            steps += len(trajectory.steps)
        cpu = spent() - began
    print(json.dumps({"sessions": sessions, "steps": steps, "failed": failed, "cpu_s": cpu}))


if __name__ == "__main__":
    main()
