//! Tells what a person wrote from what Gemini CLI writes on the user's side.

/// The tags that Gemini CLI puts around context that it adds.
const TAGS: [&str; 7] = [
    "active_topic",
    "extension_context",
    "hook_context",
    "loaded_context",
    "session_context",
    "system_note",
    "system_reminder",
];

/// The prompt that Gemini CLI sends by itself when the model stopped too early.
const CONTINUE: &str = "System: Please continue.";

/// How Gemini CLI's own warning begins when the model seems to repeat itself.
const LOOP: &str = "System: Potential loop detected.";

/// How a message begins that has a command which the user ran in shell mode, and its output.
const USER_SHELL: &str = "I ran the following shell command:\n```sh\n";

/// How the context of a session began before it had a tag.
const SETTING_UP: &str = "This is the Gemini CLI. We are setting up the context for our chat.";

/// How the summary that replaces compressed messages begins.
const SNAPSHOT: &str = "<state_snapshot>";

/// The answer to such a summary, which Gemini CLI writes in the model's name.
const ACKNOWLEDGEMENT: &str = "Got it. Thanks for the additional context!";

/// Returns the name of text that no person wrote; `None` for a prompt.
pub(super) fn context_name(message: &str, text: &str) -> Option<&'static str> {
    let text = text.trim();
    let is_inside = |tag: &&&str| {
        let rest = text.strip_prefix('<').and_then(|rest| rest.strip_prefix(**tag));
        let inside = rest.and_then(|rest| rest.strip_prefix('>'));
        let end = inside.and_then(|rest| rest.strip_suffix('>')).and_then(|rest| rest.strip_suffix(**tag));
        end.is_some_and(|rest| rest.ends_with("</"))
    };
    match () {
        () if text == CONTINUE => Some("continue"),
        () if text.starts_with(LOOP) => Some("loop_detected"),
        () if text.starts_with(USER_SHELL) => Some("user_shell"),
        () if text.starts_with(SETTING_UP) => Some("session_context"),
        () => TAGS.iter().find(is_inside).copied().or_else(|| is_derived(message).then_some("context")),
    }
}

/// Tells whether a text is the summary that replaces compressed messages.
pub(super) fn is_snapshot(text: &str) -> bool {
    text.trim_start().starts_with(SNAPSHOT)
}

/// Tells whether a text is the answer to such a summary, which the model did not give.
pub(super) fn is_acknowledgement(text: &str) -> bool {
    text == ACKNOWLEDGEMENT
}

/// Tells whether a message's id is a hash, which only messages of Gemini CLI itself have. Others have a UUID.
fn is_derived(message: &str) -> bool {
    const HASH_LEN: usize = 32;
    message.len() == HASH_LEN && message.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_texts_in_tags_are_context() {
        let hash = "0123456789abcdef0123456789abcdef";
        let uuid = "01234567-89ab-cdef-0123-456789abcdef";
        for (message, text, want) in [
            (uuid, "\n<session_context>\nx\n</session_context>\n", Some("session_context")),
            (uuid, "<loaded_context></loaded_context>", Some("loaded_context")),
            (uuid, "<session_context> is what I mean", None),
            (uuid, "What is <session_context>x</session_context>", None),
            (uuid, "<other>x</other>", None),
            (uuid, "System: Please continue.", Some("continue")),
            (uuid, "System: Potential loop detected. Details: it reads one file.", Some("loop_detected")),
            (uuid, "I ran the following shell command:\n```sh\nls\n```\n\nThis produced", Some("user_shell")),
            (uuid, "I ran the following shell command: ls", None),
            (uuid, "Why \"System: Potential loop detected.\"?", None),
            (hash, "x", Some("context")),
            (uuid, "x", None),
            ("m1", "", None),
        ] {
            assert_eq!(context_name(message, text), want, "{message} {text}");
        }
    }
}
