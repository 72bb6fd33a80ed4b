"""A client of `codex app-server` that has children ask for approvals, answers questions, makes a mistake, gives a
secret away, compacts, takes turns back, reviews and interrupts, in a repository with changes. Its arguments are the
server, the directory to work in, and where to leave a copy of that as it was at first. It ends with 0 if everything
went as it was meant to."""

import json
import queue
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

PATIENCE_S = 40
# What is said to a command, in order of what is looked for in it.
DECISIONS = {"refused": "decline", "again": "acceptForSession", "": "accept"}
PLAN = {"mode": "plan", "settings": {"model": "gpt-5.5", "reasoning_effort": None, "developer_instructions": None}}


class Server:
    def __init__(self, command, answer):
        # What is said to a request of the server's, by its method and parameters.
        self.answer = answer
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.said = queue.Queue()
        self.asked = 0
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self):
        for line in self.process.stdout:
            self.said.put(json.loads(line))
        self.said.put(None)

    def send(self, message):
        self.process.stdin.write(json.dumps(message, ensure_ascii=False).encode() + b"\n")
        self.process.stdin.flush()

    def wait_for(self, wanted, what):
        """Takes messages, and answers what is asked, until one is as wanted."""
        until = time.monotonic() + PATIENCE_S
        while message := self.said.get(timeout=max(0, until - time.monotonic())):
            if "method" in message and "id" in message:
                self.send({"id": message["id"], "result": self.answer(message["method"], message["params"])})
            if wanted(message):
                return message
        sys.exit(f"the server ended, and there was no {what}")

    def call(self, method, is_fine=True, **params):
        self.asked += 1
        id = self.asked
        self.send({"method": method, "id": id, "params": params})
        said = self.wait_for(lambda message: message.get("id") == id and "method" not in message, f"answer to {method}")
        if ("result" in said) != is_fine:
            sys.exit(f"{method} was answered by {said}")
        return said.get("result")

    def greet(self):
        client = {"name": "e2e", "title": "End to end", "version": "1.0"}
        self.call("initialize", clientInfo=client, capabilities={"experimentalApi": True, "requestAttestation": False})
        self.send({"method": "initialized"})

    def begin(self, cwd, **more):
        """Starts a thread that asks for everything."""
        settings = {"approvalPolicy": "untrusted", "sandbox": "workspace-write", **more}
        return self.call("thread/start", cwd=cwd, **settings)["thread"]["id"]

    def turn(self, thread, text, **settings):
        return self.finish(thread, "turn/start", input=words(text), **settings)

    def finish(self, thread, method, **params):
        """Begins something that takes a turn, and waits for the end of it."""
        self.call(method, threadId=thread, **params)
        return self.wait_for(
            lambda message: message.get("method") == "turn/completed" and message["params"]["threadId"] == thread,
            f"end of {method}",
        )["params"]["turn"]["id"]

    def end(self):
        self.process.stdin.close()
        code = self.process.wait(PATIENCE_S)
        if code != 0:
            sys.exit(f"the server ended with {code}")


def answer(method, params):
    if method in ("item/commandExecution/requestApproval", "item/fileChange/requestApproval"):
        asked = params.get("command", "")
        return {"decision": next(decision for part, decision in DECISIONS.items() if part in asked)}
    if method == "item/tool/requestUserInput":
        questions = params["questions"]
        return {"answers": {each["id"]: {"answers": [each["options"][0]["label"]]} for each in questions}}
    sys.exit(f"nobody knows an answer to {method}")


def make_repository(dir):
    """A repository with a commit that others have, one that they have not, and changes of every kind."""
    dir = Path(dir)

    def git(*args):
        subprocess.run(["git", *args], cwd=dir, check=True)

    (dir / "kept.txt").write_text("one\ntwo\n")
    (dir / "gone.txt").write_text("soon\n")
    git("init", "--quiet", "--initial-branch=main")
    git("config", "user.name", "nobody")
    git("config", "user.email", "nobody@example.com")
    git("add", ".")
    git("commit", "--quiet", "--message=one")
    git("remote", "add", "origin", "https://nobody:secret@example.com/team/project.git")
    git("update-ref", "refs/remotes/origin/main", "HEAD")
    (dir / "kept.txt").write_text("one\ntwo\nthree\n")
    git("commit", "--quiet", "--all", "--message=two")
    (dir / "kept.txt").write_text("zero\none\ntwo\nthree\n")
    (dir / "gone.txt").unlink()
    (dir / "new ü.txt").write_text("nobody knows it\n")
    (dir / "new.bin").write_bytes(bytes(range(256)))


def main():
    command, cwd, before = sys.argv[1:4]
    make_repository(cwd)
    shutil.copytree(cwd, before)
    server = Server([command, "app-server"], answer)
    server.greet()
    server.call("account/login/start", type="apiKey", apiKey="sk-e2e-secret-0123456789")
    server.call("no/such/method", is_fine=False)
    delegate_and_compact(server, cwd)
    delegate_and_interrupt(server, cwd)
    server.end()


def delegate_and_compact(server, cwd):
    """A thread whose child asks for much, that compacts, and that takes turns back."""
    thread = server.begin(cwd)
    server.turn(thread, "[[scenario:e2e_parent]] Delegate it. ü你😀")
    server.turn(thread, "[[scenario:e2e_ask]] Ask me.", collaborationMode=PLAN)
    server.finish(thread, "thread/compact/start")
    server.turn(thread, "[[scenario:hello]] After the compaction.")
    taken_back = server.turn(thread, "[[scenario:hello]] Never mind.")
    server.finish(thread, "thread/compact/start")
    server.turn(thread, "[[scenario:hello]] After another.")
    server.call("thread/revert", threadId=thread, beforeTurnId=taken_back)
    server.turn(thread, "[[scenario:hello]] After it was taken back.")
    taken_back = server.turn(thread, "[[scenario:hello]] Never mind again.")
    server.finish(thread, "thread/compact/start")
    server.call("thread/revert", threadId=thread, beforeTurnId=taken_back)
    server.turn(thread, "[[scenario:hello]] After that was taken back.")
    server.finish(thread, "thread/compact/start")


def delegate_and_interrupt(server, cwd):
    """A thread with a child of the second kind, a review, a command of the user's own, and an interrupt."""
    thread = server.begin(cwd, config={"features.multi_agent_v2": True})
    server.turn(thread, "[[scenario:e2e_other]] Delegate it too.")
    target = {"type": "custom", "instructions": "[[scenario:e2e_review]] Review it."}
    server.finish(thread, "review/start", target=target, delivery="inline")
    server.finish(thread, "thread/shellCommand", command="echo of the user")
    everything = {"approvalPolicy": "never", "sandboxPolicy": {"type": "dangerFullAccess"}}
    server.call("turn/start", threadId=thread, input=words("[[scenario:codex_slow]] Sleep."), **everything)
    begun = server.wait_for(is_command, "command")["params"]["turnId"]
    server.call("turn/steer", threadId=thread, expectedTurnId=begun, input=words("Hurry."))
    server.call("turn/interrupt", threadId=thread, turnId=begun)
    server.wait_for(lambda message: message.get("method") == "turn/completed", "end of what was interrupted")
    server.turn(thread, "[[scenario:hello]] Thanks.")


def is_command(message):
    return message.get("method") == "item/started" and message["params"]["item"]["type"] == "commandExecution"


def words(text):
    return [{"type": "text", "text": text, "text_elements": []}]


if __name__ == "__main__":
    main()
