"""The rig's scripted model, which also compacts: a request that ends with a trigger is answered by one item that nobody
can read, as a provider does it. It lies where the rig's own lies, which is `rig_model` beside it."""

import rig_model

USAGE = {
    "input_tokens": 120,
    "input_tokens_details": {"cached_tokens": 20},
    "output_tokens": 12,
    "output_tokens_details": {"reasoning_tokens": 0},
    "total_tokens": 132,
}


class Model(rig_model.H):
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


if __name__ == "__main__":
    rig_model.ThreadingHTTPServer.daemon_threads = True
    rig_model.ThreadingHTTPServer(("127.0.0.1", rig_model.PORT), Model).serve_forever()
