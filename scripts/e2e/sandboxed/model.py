"""The rig's scripted model, which also compacts: a request that ends with a trigger is answered by one item that nobody
can read, as a provider does it. And it can think until a recorder has seen what it was asked. It lies where the rig's own
lies, which is `rig_model` beside it."""

import time
from pathlib import Path

import rig_model

# How long the recorder may take. One that takes longer has missed the beginning, and whoever looks at the record sees that.
SEEN_S_MAX = 30
LOOK_S = 0.02

USAGE = {
    "input_tokens": 120,
    "input_tokens_details": {"cached_tokens": 20},
    "output_tokens": 12,
    "output_tokens_details": {"reasoning_tokens": 0},
    "total_tokens": 132,
}


class Model(rig_model.H):
    def choose(self, turns, raw):
        name, step, blocks = super().choose(turns, raw)
        for block in blocks:
            if "seen_in" in block:
                wait_until_seen(Path(block["seen_in"]), name)
        return name, step, blocks

    def oai_responses(self, req, raw):
        if not any(item.get("type") == "compaction_trigger" for item in req.get("input", [])):
            return super().oai_responses(req, raw)
        number = self.record(raw, "compaction")
        item = {"type": "compaction", "id": rig_model.uid("cmp_"), "encrypted_content": "bm90IGZvciBhbnlib2R5"}
        response = {"id": rig_model.uid("resp_"), "object": "response", "model": req.get("model"), "output": []}
        self.emitted(number, "responses", None, None, [item], USAGE)
        self.sse_start()
        self._say("response.created", 0, response={**response, "status": "in_progress"})
        self._say("response.output_item.done", 1, output_index=0, item=item)
        done = {**response, "status": "completed", "output": [item], "usage": USAGE}
        self._say("response.completed", 2, response=done)
        return self.sse_end()

    def _say(self, kind, number, **said):
        self.sse({"type": kind, "sequence_number": number, **said}, kind)


def wait_until_seen(spines, scenario):
    """Waits until a spine has the prompt that chose a scenario, said back by the agent. That comes behind the beginning of
    the turn, and what the recorder looks at there stands before it."""
    marker = f"[[scenario:{scenario}]]".encode()
    until = time.monotonic() + SEEN_S_MAX
    while time.monotonic() < until:
        lines = (line for path in spines.glob("*/segment-*.jsonl") for line in path.read_bytes().splitlines())
        if any(marker in line and b'"item/completed"' in line for line in lines):
            return
        time.sleep(LOOK_S)


if __name__ == "__main__":
    rig_model.ThreadingHTTPServer.daemon_threads = True
    rig_model.ThreadingHTTPServer(("127.0.0.1", rig_model.PORT), Model).serve_forever()
