//! The closed vocabularies of the exchange transcript (002): ten event types, six block types, two fidelities.

use crate::word::vocabulary;

vocabulary! {
    /// The type of an event. There are ten, and writers emit no others (R42).
    EventType, "event type" {
        /// A run begins.
        RunStarted = "run.started",
        /// A run ends. Never inferred: a session that can be resumed has no end.
        RunCompleted = "run.completed",
        /// A step begins.
        StepStarted = "step.started",
        /// A step ends, or something happened at one instant.
        StepCompleted = "step.completed",
        /// A child run begins, as its parent sees it.
        CallWorkflowStarted = "step.call_workflow.started",
        /// A child run ends, as its parent sees it.
        CallWorkflowCompleted = "step.call_workflow.completed",
        /// A prompt.
        MessageUser = "message.user",
        /// A response.
        MessageAssistant = "message.assistant",
        /// A tool is called.
        ToolCall = "tool.call",
        /// A tool returns.
        ToolResult = "tool.result",
    }
}

impl EventType {
    /// Tells whether events of this type begin something with an end.
    #[must_use]
    pub fn is_start(self) -> bool {
        matches!(self, Self::RunStarted | Self::StepStarted | Self::CallWorkflowStarted)
    }

    /// Tells whether events of this type have to name a child run (R58).
    #[must_use]
    pub fn calls_a_run(self) -> bool {
        matches!(self, Self::CallWorkflowStarted | Self::CallWorkflowCompleted)
    }
}

vocabulary! {
    /// The type of a content block. There are six (R47).
    BlockType, "block type" {
        /// Plain text.
        Text = "text",
        /// Reasoning.
        Thinking = "thinking",
        /// A tool invocation.
        ToolUse = "tool_use",
        /// A tool's output.
        ToolResult = "tool_result",
        /// A shell command that a step ran.
        Command = "command",
        /// A chunk of a provider's stream; reserved, none of our own writers emits it (R81).
        Stream = "stream",
    }
}

vocabulary! {
    /// Where a block or a call was observed (R50).
    Fidelity, "fidelity" {
        /// By our own router: authoritative.
        Router = "router",
        /// Reported by the agent.
        AgentEmitted = "agent_emitted",
    }
}

vocabulary! {
    /// Who speaks in a message.
    Role, "role" {
        /// The user, or a program that prompts for the user.
        User = "user",
        /// The model.
        Assistant = "assistant",
    }
}
