//! The records of `OpenCode`.

use crate::shapes::is_number;
use crate::wire::{WireObject as _, wire};

wire! {
    /// A line of the output.
    pub(super) struct Line {
        kind: "type" as Text,
        timestamp: "timestamp",
        session: "sessionID" as Text,
        part: "part" => Part,
        error: "error" => ErrorReport,
    }
}

wire! {
    /// A part of a message: a text, a thought, a call with its result, or the beginning or end of a step.
    pub(super) struct Part {
        id: "id" as Text,
        message: "messageID" as Text,
        text: "text" as Text,
        tool: "tool" as Text,
        call: "callID" as Text,
        state: "state" => ToolState,
        reason: "reason" as Text,
        tokens: "tokens" as Object,
        cost: "cost",
    }
}

wire! {
    /// A call that has ended.
    pub(super) struct ToolState {
        status: "status" as Text,
        input: "input",
        output: "output",
        error: "error" as Text,
        metadata: "metadata" => Metadata,
        time: "time" as Object,
        attachments: "attachments" as List,
    }
}

wire! {
    /// What a tool adds to its result.
    pub(super) struct Metadata {
        exit: "exit",
        session: "sessionId" as Text,
        is_interrupted: "interrupted" as Flag,
    }
}

wire! {
    /// The input of a call that has begun a subagent.
    pub(super) struct TaskInput {
        agent: "subagent_type",
        description: "description",
    }
}

wire! {
    /// The input of the tool `invalid`, which stands for a call that could not be made.
    pub(super) struct InvalidInput {
        error: "error",
    }
}

wire! {
    /// An error of the session.
    pub(super) struct ErrorReport {
        name: "name" as Text,
        data: "data" => ErrorData,
    }
}

wire! {
    pub(super) struct ErrorData { message: "message" as Text, }
}

/// Tells whether a value is of another kind than usual, numbers included.
pub(super) fn is_odd(line: &Line<'_>) -> bool {
    let exit = line.part.and_then(|part| part.state?.metadata?.exit);
    line.is_odd() || !is_number(line.timestamp) || !is_number(exit)
}
