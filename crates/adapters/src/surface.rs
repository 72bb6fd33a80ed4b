//! The surfaces: each place in which we know a provider's records, and what holds for it.

use steno_model::{Provider, Vocabulary as _};

/// Declares the surfaces once, so that the list of all of them is complete.
macro_rules! surfaces {
    ($($(#[$doc:meta])* $variant:ident,)+) => {
        /// What a provider's records look like in one place.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Surface { $($(#[$doc])* $variant,)+ }

        impl Surface {
            /// All surfaces.
            pub const ALL: &[Self] = &[$(Self::$variant,)+];
        }
    };
}

surfaces! {
    /// A session file of Claude Code.
    ClaudeDisk,
    /// Claude Code's `stream-json`, with or without the control protocol.
    ClaudeStream,
    /// A rollout of Codex.
    CodexRollout,
    /// `codex exec --json`.
    CodexExec,
    /// Codex's app-server.
    CodexAppServer,
    /// A chat file of Gemini CLI.
    GeminiChat,
    /// Gemini CLI's `stream-json`.
    GeminiStream,
    /// Gemini CLI's output as one JSON document.
    GeminiOutput,
    /// A session file of Copilot CLI.
    CopilotEvents,
    /// What `copilot -p --output-format json` prints.
    CopilotStream,
    /// What `opencode run --format json` prints.
    OpenCodeStream,
    /// Model calls over HTTP: a recording of `steno proxy`, or bodies of requests and answers.
    Http,
    /// A connection of the Agent Client Protocol.
    Acp,
    /// A connection to an MCP server.
    Mcp,
    /// The output of a command that `steno run` started.
    Wrap,
}

impl Surface {
    /// Returns the agent that writes such records; `None` for protocols that several agents use.
    #[must_use]
    pub fn provider(self) -> Option<Provider> {
        Provider::find(self.provider_name())
    }

    /// Tells whether an agent prints such records, or exchanges them with a client.
    #[must_use]
    pub fn is_stream(self) -> bool {
        match self {
            Self::ClaudeStream
            | Self::CodexExec
            | Self::CodexAppServer
            | Self::GeminiStream
            | Self::GeminiOutput
            | Self::CopilotEvents
            | Self::CopilotStream
            | Self::OpenCodeStream
            | Self::Acp => true,
            Self::ClaudeDisk
            | Self::CodexRollout
            | Self::GeminiChat
            | Self::Mcp
            | Self::Http
            | Self::Wrap => false,
        }
    }

    /// Returns the surface of such records if a command prints them. The first records that Copilot CLI prints may be the
    /// same as those in its file.
    pub(crate) fn when_printed(self) -> Self {
        if self == Self::CopilotEvents { Self::CopilotStream } else { self }
    }

    /// Tells whether a source may be one JSON document over many lines.
    #[must_use]
    pub fn is_document(self) -> bool {
        match self {
            Self::GeminiChat | Self::GeminiOutput | Self::Http => true,
            Self::ClaudeDisk
            | Self::ClaudeStream
            | Self::CodexRollout
            | Self::CodexExec
            | Self::CodexAppServer
            | Self::GeminiStream
            | Self::CopilotEvents
            | Self::CopilotStream
            | Self::OpenCodeStream
            | Self::Acp
            | Self::Mcp
            | Self::Wrap => false,
        }
    }

    /// Tells whether a source may have sessions that do not belong together.
    #[must_use]
    pub fn is_connection(self) -> bool {
        match self {
            Self::CodexAppServer | Self::Acp | Self::Mcp | Self::Http => true,
            Self::ClaudeDisk
            | Self::ClaudeStream
            | Self::CodexRollout
            | Self::CodexExec
            | Self::GeminiChat
            | Self::GeminiStream
            | Self::GeminiOutput
            | Self::CopilotEvents
            | Self::CopilotStream
            | Self::OpenCodeStream
            | Self::Wrap => false,
        }
    }

    /// Returns the name of the agent or the protocol, which is also that of its folder here and of its page.
    #[must_use]
    pub fn provider_name(self) -> &'static str {
        match self {
            Self::ClaudeDisk | Self::ClaudeStream => Provider::Claude.as_str(),
            Self::CodexRollout | Self::CodexExec | Self::CodexAppServer => Provider::Codex.as_str(),
            Self::GeminiChat | Self::GeminiStream | Self::GeminiOutput => Provider::Gemini.as_str(),
            Self::CopilotEvents | Self::CopilotStream => Provider::Copilot.as_str(),
            Self::OpenCodeStream => Provider::OpenCode.as_str(),
            Self::Http => "http",
            Self::Acp => "acp",
            Self::Mcp => "mcp",
            Self::Wrap => crate::wrap::PROVIDER,
        }
    }

    /// Returns the surface's name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::ClaudeDisk => "disk",
            Self::ClaudeStream | Self::GeminiStream | Self::CopilotStream | Self::OpenCodeStream => "stream",
            Self::CodexRollout => "rollout",
            Self::CodexExec => "exec",
            Self::CodexAppServer => "app-server",
            Self::GeminiChat => "chat",
            Self::GeminiOutput => "output",
            Self::CopilotEvents => "events",
            Self::Http => "exchanges",
            Self::Acp => "acp",
            Self::Mcp => "mcp",
            Self::Wrap => "wrap",
        }
    }
}
