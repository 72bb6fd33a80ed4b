"""Records in the shapes that Claude Code and Codex write, made up by chance and told apart by their ids."""

import json
import uuid

# Letters of one to four bytes, and what JSON has to escape.
WORDS = ["build", "fix", "Prüfung", "naïve", "測試", "🚀", "rm -rf ./target", "¿qué?", "“quoted”", "a\tb", "c\n", '"d"']
# How many calls a record has that becomes so many events.
MANY = (40, 200)


class Records:
    """Makes the records of one session, one after the other."""

    def __init__(self, dice, session):
        self.dice = dice
        self.session = session
        self.open_calls = []

    def name(self):
        return str(uuid.UUID(int=self.dice.getrandbits(128), version=4))

    def text(self, len_min=1, len_max=30):
        return " ".join(self.dice.choice(WORDS) for _ in range(self.dice.randint(len_min, len_max)))

    def time(self):
        # Any time: nothing is ever sorted by it.
        return f"2026-0{self.dice.randint(1, 9)}-02T03:{self.dice.randint(10, 59)}:05.000Z"

    def some(self, count):
        return b"".join(self.one() for _ in range(count))


class Claude(Records):
    """A session, or a subagent's part in it."""

    def __init__(self, dice, session, agent=None):
        super().__init__(dice, session)
        self.agent = agent

    def one(self):
        kinds = [self.prompt, self.response, self.results, self.fact]
        return self.dice.choices(kinds, [3, 4, 4, 1])[0]()

    def prompt(self):
        return self._line("user", {"role": "user", "content": self.text()})

    def response(self, calls=None):
        """Text and calls in one record, which becomes an event each."""
        calls = self.dice.randint(0, 5) if calls is None else calls
        blocks = [{"type": "text", "text": self.text()}]
        for _ in range(calls):
            call = f"toolu_{self.name()}"
            self.open_calls.append(call)
            blocks.append({"type": "tool_use", "id": call, "name": "Bash", "input": {"command": self.text(1, 4)}})
        usage = {"input_tokens": self.dice.randint(1, 999), "output_tokens": self.dice.randint(1, 999)}
        message = {"id": f"msg_{self.name()}", "type": "message", "role": "assistant", "model": "claude-x"}
        message |= {"content": blocks, "stop_reason": "tool_use" if calls else "end_turn", "usage": usage}
        return self._line("assistant", message)

    def many(self):
        return self.response(calls=self.dice.randint(*MANY))

    def results(self):
        calls, self.open_calls = self.open_calls[:3], self.open_calls[3:]
        if not calls:
            return self.prompt()
        blocks = [{"type": "tool_result", "tool_use_id": call, "content": self.text()} for call in calls]
        return self._line("user", {"role": "user", "content": blocks})

    def large(self):
        """A line that no single read takes."""
        return self._line("user", {"role": "user", "content": self.text(9000, 20000)})

    def fact(self):
        return to_line({"type": "ai-title", "aiTitle": self.text(1, 5), "sessionId": self.session})

    def _line(self, kind, message):
        record = {"uuid": self.name(), "parentUuid": None, "isSidechain": self.agent is not None, "cwd": "/work"}
        record |= {"sessionId": self.session, "version": "2.1.200", "type": kind, "message": message}
        record |= {"agentId": self.agent} if self.agent else {}
        return to_line(record | {"timestamp": self.time()})


class Codex(Records):
    """A thread's rollout. Its first record names it."""

    def __init__(self, dice, session):
        super().__init__(dice, session)
        self.is_begun = False

    def one(self):
        if not self.is_begun:
            self.is_begun = True
            payload = {"id": self.session, "timestamp": self.time(), "cwd": "/work", "originator": "codex_cli"}
            return self._line("session_meta", payload | {"cli_version": "0.130.0", "source": "cli"})
        kinds = [self.prompt, self.response, self.call, self.results]
        return self.dice.choices(kinds, [2, 3, 4, 4])[0]()

    def prompt(self):
        turn = self._line("event_msg", {"type": "task_started", "turn_id": self.name()})
        return turn + self._line("event_msg", {"type": "user_message", "message": self.text(), "images": []})

    def response(self):
        content = [{"type": "output_text", "text": self.text()}]
        return self._line("response_item", {"type": "message", "role": "assistant", "content": content})

    def call(self):
        call = f"call_{self.name()}"
        self.open_calls.append(call)
        arguments = json.dumps({"cmd": self.text(1, 4)})
        payload = {"type": "function_call", "name": "exec_command", "arguments": arguments, "call_id": call}
        return self._line("response_item", payload)

    def many(self):
        return b"".join(self.call() for _ in range(20))

    def results(self):
        if not self.open_calls:
            return self.call()
        output = f"Process exited with code 0\nOutput:\n{self.text()}\n"
        call = self.open_calls.pop(0)
        return self._line("response_item", {"type": "function_call_output", "call_id": call, "output": output})

    def large(self):
        content = [{"type": "output_text", "text": self.text(9000, 20000)}]
        return self._line("response_item", {"type": "message", "role": "assistant", "content": content})

    def _line(self, kind, payload):
        # The id is nobody's: it makes the beginning of a file unlike any other.
        return to_line({"id": self.name(), "timestamp": self.time(), "type": kind, "payload": payload})


class Blobs(Records):
    """A file beside a session that nobody reads as records."""

    def one(self):
        return self.dice.randbytes(self.dice.randint(1, 3000))

    def many(self):
        return self.dice.randbytes(30_000)

    def large(self):
        return self.dice.randbytes(200_000)


def to_line(record):
    return json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
