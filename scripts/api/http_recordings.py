"""Requests of Claude Code as `steno proxy` records them, made from a session file: the file has messages as the API does."""

import json


def read_history(path):
    """The session's id, and its messages: a prompt or result as it is, an answer with all of its records as one."""
    session, history, answers = None, [], {}
    for line in path.read_text().splitlines():
        record = json.loads(line)
        if record.get("type") not in ("user", "assistant") or record.get("isSidechain"):
            continue
        session, message = record["sessionId"], record["message"]
        if record["type"] == "user":
            history.append({"role": "user", "content": message["content"]})
            continue
        known = answers.get(message["id"])
        if known is None:
            history.append(answers.setdefault(message["id"], dict(message)))
        else:
            known["content"] = known["content"] + message["content"]
            known.update({name: message[name] for name in ("usage", "stop_reason") if message.get(name)})
    return session, history


def recording_of(path):
    """The lines of the recording: each answer, with everything before it as its request."""
    lines = []

    def add(direction, message):
        time = 1_794_727_500 + len(lines)
        lines.append({"dir": direction, "t": time, "ticket": len(lines) + 1, "msg": message})

    session, history = read_history(path)
    add("recorder", {"method": "steno/http", "params": {"version": 1, "upstream": "https://api.example.com"}})
    for at, answer in enumerate(history):
        if answer["role"] == "user":
            continue
        messages = [{"role": message["role"], "content": message["content"]} for message in history[:at]]
        # A request without tools is one that the agent makes for itself.
        about_session = {"metadata": {"user_id": json.dumps({"session_id": session})}, "tools": [{"name": "Bash"}]}
        body = {"model": answer["model"], "messages": messages} | about_session
        about = {"method": "POST", "path": "/v1/messages", "headers": {"user_agent": "claude-cli/2.1.325 (external, cli)"}}
        exchange = {"exchange": len(lines)}
        add("c2s", {"http": "request"} | exchange | about | {"body": body})
        add("s2c", {"http": "response"} | exchange | {"status": 200, "headers": {}})
        add("s2c", {"http": "body"} | exchange | {"body": answer})
        add("s2c", {"http": "end"} | exchange | {"outcome": "complete"})
    return "".join(json.dumps(line) + "\n" for line in lines)
