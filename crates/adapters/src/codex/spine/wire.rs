//! The fields of a rollout trace that we use. Protocol events in a trace have the types of rollout payloads.

use crate::wire::wire;

wire! {
    /// The manifest of a trace.
    pub(super) struct TraceManifest { root_thread_id: "root_thread_id", started_at_ms: "started_at_unix_ms", }
}

wire! {
    /// A line of a trace.
    pub(super) struct TraceLine {
        time_ms: "wall_time_unix_ms",
        thread_id: "thread_id",
        turn_id: "codex_turn_id",
        payload: "payload",
    }
}

wire! {
    /// The payload of a line.
    pub(super) struct TraceRecord { kind: "type", thread_id: "thread_id", turn_id: "codex_turn_id", }
}

wire! {
    /// A reference to a file of the trace.
    pub(super) struct FileReference { id: "raw_payload_id", kind: "kind" => ReferenceKind, path: "path", }
}

wire! {
    pub(super) struct ReferenceKind { name: "type", }
}

wire! {
    /// The history before a compaction, and after it.
    pub(super) struct Checkpoint {
        input_history: "input_history",
        replacement_history: "replacement_history",
    }
}
