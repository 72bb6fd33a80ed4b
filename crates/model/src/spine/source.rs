//! What a spine is made from.

/// What a spine is made from, as its `session_meta` says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpineSource {
    /// A session file.
    Rollout,
    /// A rollout trace: what Codex writes below `CODEX_ROLLOUT_TRACE_ROOT`.
    RolloutTrace,
    /// A connection to `codex app-server`, both directions of it.
    AppServer,
}

impl SpineSource {
    /// Returns its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Rollout => "rollout",
            Self::RolloutTrace => "rollout_trace",
            Self::AppServer => "app_server",
        }
    }

    /// Finds the one of a name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        [Self::Rollout, Self::RolloutTrace, Self::AppServer].into_iter().find(|source| source.name() == name)
    }

    /// Returns what such a source cannot carry: what is not in the spine was not seen, and may have happened.
    #[must_use]
    pub fn cannot_carry(self) -> &'static [&'static str] {
        match self {
            Self::Rollout => &[
                "submissions and their answers",
                "approval requests and answers",
                "who answered",
                "user input requests",
                "elicitations",
                "output deltas and the beginnings of items",
                "failed and repeated requests to the model",
                "steering that no request took up",
                "notices of the program",
                "the prompt and the request of a compaction",
                "changes in the working tree",
                "the shell's environment",
                "the settings of turns in which the model is not asked",
            ],
            Self::RolloutTrace => &[
                "submissions and their answers",
                "approval requests and answers",
                "who answered",
                "user input requests",
                "elicitations",
                "output deltas",
                "compactions by the agent itself",
                "the settings of a turn",
                "token counts of turns",
                "git's identity, and changes in the working tree",
                "the shell's environment",
            ],
            Self::AppServer => &[
                "what the model was asked and answered, word for word",
                "calls of tools that the agent refused by itself",
                "the work of a review inside of a turn",
                "how commands end that outlive their turn",
                "the settings of a child's turns",
                "the names of children",
                "what a patch has printed",
                "which response has used which tokens",
                "what the agent notes for itself",
                "secrets of the account, which are withheld",
            ],
        }
    }
}
