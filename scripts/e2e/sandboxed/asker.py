"""A client of `codex app-server` that asks for one thing after the other in one thread, in a repository. Its arguments are the
server, the directory to work in, a file that tells the story, and where to leave a copy of the working tree as it was before
the first turn and behind each. It ends with 0 if everything went as it was meant to."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

from client import Server, is_command, words


def main():
    command, cwd, story, copies = sys.argv[1], Path(sys.argv[2]), json.loads(Path(sys.argv[3]).read_text()), sys.argv[4]
    make_repository(cwd, story)
    keep(cwd, Path(copies) / "0")
    answers = []
    server = Server([command, "app-server"], lambda method, params: answered(method, answers))
    server.greet()
    thread = server.begin(str(cwd), sandbox="danger-full-access", approvalPolicy="never")
    for number, turn in enumerate(story["turns"], 1):
        answers += turn["answers"]
        policy = {"approvalPolicy": "untrusted" if answers else "never"}
        if turn["is_interrupted"]:
            interrupt(server, thread, turn["words"], policy)
        else:
            server.turn(thread, turn["words"], **policy)
        if answers:
            sys.exit(f"nobody has asked for {answers}")
        keep(cwd, Path(copies) / str(number))
    server.end()


def make_repository(dir, story):
    """A repository with a commit that others have, one that they have not, and changes."""

    def git(*args):
        subprocess.run(["git", *args], cwd=dir, check=True)

    git("init", "--quiet", "--initial-branch=main")
    git("config", "user.name", "nobody")
    git("config", "user.email", "nobody@example.com")
    git("remote", "add", "origin", "https://example.com/team/shop.git")
    for message, files in (("one", story["published"]), ("two", story["committed"])):
        write(dir, files)
        git("add", ".")
        git("commit", "--quiet", f"--message={message}")
        if message == "one":
            git("update-ref", "refs/remotes/origin/main", "HEAD")
    write(dir, story["changed"])


def write(dir, files):
    for name, text in files.items():
        (dir / name).write_text(text)


def keep(dir, copy):
    shutil.copytree(dir, copy, ignore=shutil.ignore_patterns(".git", "__pycache__"))


def answered(method, answers):
    is_known = method in ("item/commandExecution/requestApproval", "item/fileChange/requestApproval")
    if not is_known or not answers:
        sys.exit(f"nobody knows an answer to {method}")
    return {"decision": answers.pop(0)}


def interrupt(server, thread, text, policy):
    """Begins a turn, and ends it when a command runs that nobody waits for."""
    server.call("turn/start", threadId=thread, input=words(text), **policy)
    begun = server.wait_for(is_command, "command")["params"]["turnId"]
    server.call("turn/interrupt", threadId=thread, turnId=begun)
    server.wait_for(lambda message: message.get("method") == "turn/completed", "end of what was interrupted")


if __name__ == "__main__":
    main()
