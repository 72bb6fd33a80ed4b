//! Which of the user's messages a person wrote, and what the others are.

/// What a message on the user's side is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A prompt.
    Prompt,
    /// The user stopped the turn.
    Interrupt,
    /// A notice of Claude Code to the model, with its name.
    Notice(&'static str),
    /// A notice about a background task.
    TaskNotice,
}

/// Tags that Claude Code wraps its own messages in, and the names of the notices.
const WRAPPERS: [(&str, &str); 10] = [
    ("command-name", "local_command"),
    ("local-command-stdout", "local_command_output"),
    ("local-command-stderr", "local_command_output"),
    ("local-command-caveat", "meta"),
    ("bash-input", "bash_input"),
    ("bash-stdout", "bash_output"),
    ("bash-stderr", "bash_output"),
    ("system-reminder", "meta"),
    ("user-memory-input", "memory_input"),
    ("user-prompt-submit-hook", "hook"),
];

const INTERRUPTS: [&str; 2] = ["[Request interrupted by user]", "[Request interrupted by user for tool use]"];

/// Classifies a message by its text; a tag quoted inside a prompt does not make it a notice.
pub(super) fn kind_of(text: &str) -> Kind {
    let text = text.trim();
    if INTERRUPTS.contains(&text) {
        return Kind::Interrupt;
    }
    if is_task_notice(text) {
        return Kind::TaskNotice;
    }
    let opening = text.strip_prefix('<').and_then(|rest| rest.split_once('>')).map(|(tag, _)| tag);
    let closing = text.strip_suffix('>').and_then(|rest| rest.rsplit_once("</")).map(|(_, tag)| tag);
    let is_wrapped = |tag: &str| closing.is_some_and(|closing| closing == tag || is_wrapper(closing));
    WRAPPERS
        .iter()
        .find(|(tag, _)| opening == Some(tag) && is_wrapped(tag))
        .map_or(Kind::Prompt, |(_, name)| Kind::Notice(name))
}

/// The path of the whole output may follow the notification.
fn is_task_notice(text: &str) -> bool {
    const TAGS: [(&str, &str); 2] =
        [("<task-notification>", "</task-notification>"), ("<agent-notification>", "</agent-notification>")];
    TAGS.iter().any(|(open, close)| text.starts_with(open) && text.contains(close))
}

fn is_wrapper(tag: &str) -> bool {
    matches!(tag, "command-args" | "command-message") || WRAPPERS.iter().any(|(wrapper, _)| *wrapper == tag)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, want: Kind) {
        assert_eq!(kind_of(text), want, "{text}");
    }

    #[test]
    fn notices_are_not_prompts() {
        check("Fix the build.", Kind::Prompt);
        check("", Kind::Prompt);
        check(
            "<command-name>/compact</command-name>\n<command-args>x</command-args>",
            Kind::Notice("local_command"),
        );
        check("<task-notification>\n<id>1</id></task-notification>\nRead the file.", Kind::TaskNotice);
        check(" [Request interrupted by user] ", Kind::Interrupt);
    }

    #[test]
    fn command_for_the_model_is_a_prompt() {
        // Claude Code names a command first if it runs it itself, and last if it asks the model.
        let asked =
            "<command-message>review is running</command-message>\n<command-name>/review</command-name>";
        check(asked, Kind::Prompt);
    }

    #[test]
    fn tag_inside_a_prompt_does_not_make_it_a_notice() {
        check("<system-reminder> is a tag that I see; why?", Kind::Prompt);
        check("What does </system-reminder> mean?", Kind::Prompt);
        check("<div>fix this</div>", Kind::Prompt);
        check("Why was it [Request interrupted by user]?", Kind::Prompt);
    }
}
