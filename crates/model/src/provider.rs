//! The agents that we know by name.

use crate::word::vocabulary;

vocabulary! {
    /// An agent whose files and records are known.
    ///
    /// Files of the store keep the name as text, which is read as a [`Word`](crate::Word): a name from a later version
    /// survives.
    Provider, "provider" {
        /// Anthropic's Claude Code.
        Claude = "claude",
        /// `OpenAI`'s Codex.
        Codex = "codex",
        /// Google's Gemini CLI.
        Gemini = "gemini",
        /// GitHub's Copilot CLI.
        Copilot = "copilot",
        /// `OpenCode`.
        OpenCode = "opencode",
    }
}

impl Provider {
    /// Returns the name for people.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::Claude => "Claude Code",
            Self::Codex => "Codex",
            Self::Gemini => "Gemini CLI",
            Self::Copilot => "Copilot CLI",
            Self::OpenCode => "OpenCode",
        }
    }
}
