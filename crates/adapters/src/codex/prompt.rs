//! Which of the messages on the user's side somebody wrote, and what the others are.

use serde_json::value::RawValue;
use steno_model::json::{JsonString, RawJson};
use steno_model::{ContentBlock, Fidelity};

use super::wire::Part;
use crate::emit::string;
use crate::wire::{RawField as _, objects};

/// Tags that Codex wraps its own messages in; the tag, with `_` for what is no letter, names the fact.
const WRAPPERS: [&str; 23] = [
    "app-context",
    "apps_instructions",
    "collaboration_mode",
    "context_window",
    "environment_context",
    "goal_context",
    "hook_prompt",
    "memory",
    "model_switch",
    "multi_agent_mode",
    "permissions instructions",
    "personality_spec",
    "plugins_instructions",
    "realtime_conversation",
    "recommended_plugins",
    "skill",
    "skills_instructions",
    "subagent_notification",
    "token_budget",
    "turn_aborted",
    "user_action",
    "user_instructions",
    "user_shell_command",
];

/// The beginning of the message that holds a project's `AGENTS.md`, and the tag that it ends with.
const AGENTS_MD: (&str, &str) = ("# AGENTS.md instructions", "</INSTRUCTIONS>");

/// Parts that are no words; a mark stands for each, since they are large and in the evidence.
const PICTURES: [&str; 9] = [
    "audio",
    "encrypted_content",
    "image",
    "input_audio",
    "input_image",
    "localAudio",
    "localImage",
    "local_audio",
    "local_image",
];

/// Parts of a prompt that the model is not shown as such.
const BESIDE: [&str; 2] = ["mention", "skill"];

/// The kind of what a client sends, in the manner of Codex's own names.
const SENT: &str = "user.input";

/// Returns what Codex tells the model with a text; `None` when somebody wrote it.
///
/// A tag quoted inside a person's words does not make them a notice: the whole text has to be wrapped.
pub(super) fn notice(text: &str) -> Option<&'static str> {
    let text = text.trim();
    if text.starts_with(AGENTS_MD.0) && text.ends_with(AGENTS_MD.1) {
        return Some("agents_md");
    }
    let inside = text.strip_prefix('<')?.strip_suffix('>')?;
    let (_, closing) = inside.rsplit_once("</")?;
    let opening = inside.split_once('>').map(|(tag, _)| tag)?;
    let is_opening = |tag: &str| {
        opening
            .strip_prefix(tag)
            .is_some_and(|attributes| attributes.is_empty() || attributes.starts_with(' '))
    };
    WRAPPERS.into_iter().find(|tag| is_opening(tag) && closing == *tag)
}

/// Tells whether a text only says where a picture begins or ends.
fn is_picture_mark(text: &str) -> bool {
    text == "</image>" || (text.starts_with("<image") && text.ends_with('>') && !text.contains('\n'))
}

/// A message on the user's side, its parts told apart.
#[derive(Default)]
pub(super) struct UserMessage {
    /// What somebody wrote, and a mark for each picture or file.
    pub(super) blocks: Vec<ContentBlock>,
    /// The words among it.
    pub(super) text: String,
    /// What Codex tells the model: the fact's name, and the text.
    pub(super) notices: Vec<(String, JsonString)>,
    /// Whether something in it is of a kind that nobody knows.
    pub(super) is_odd: bool,
    /// What is sent along with the words and shown to the user alone, by its kind.
    pub(super) beside: Vec<(String, RawJson)>,
    /// The pictures and sounds among it, by kind: where each lies or how large it is.
    pub(super) pictures: Vec<(String, RawJson)>,
}

/// Takes a message apart. `kinds` are the kinds of its parts, where Codex names them.
pub(super) fn user_message(content: &RawValue, kinds: &[String]) -> UserMessage {
    let mut message = UserMessage::default();
    if let Some(text) = Some(content).string() {
        message.say(text);
        return message;
    }
    let parts = objects::<Part<'_>>(content);
    message.is_odd = parts.is_none();
    for (place, (raw, part)) in parts.unwrap_or_default().into_iter().enumerate() {
        let Some(part) = part else {
            message.is_odd = true;
            continue;
        };
        let kind = part.kind.text().unwrap_or_default();
        let is_text = matches!(&*kind, "input_text" | "output_text" | "text" | "Text");
        if let Some(text) = part.text.string().filter(|_| is_text) {
            message.take(text, kinds.get(place).map(String::as_str));
            continue;
        }
        let is_beside = BESIDE.contains(&&*kind);
        message.is_odd |= !PICTURES.contains(&&*kind) && !is_beside;
        let place = part.path.json().or_else(|| part.name.json());
        message.mark(&kind, place, raw.get().len(), !is_beside);
        if is_beside {
            message.beside.push((kind.into_owned(), RawJson::from_raw(raw)));
        }
    }
    message
}

/// Takes apart what somebody sent, or what an item shows of it: all of it is theirs.
pub(super) fn sent(input: &RawValue) -> UserMessage {
    let parts = objects::<Part<'_>>(input).map_or(0, |parts| parts.len());
    user_message(input, &vec![SENT.to_owned(); parts])
}

impl UserMessage {
    /// Takes a text; what Codex calls it counts more than how it looks.
    fn take(&mut self, text: JsonString, kind: Option<&str>) {
        let kind = kind.filter(|kind| *kind != "unknown");
        let is_users = kind.is_some_and(|kind| kind.starts_with("user."));
        let plain = text.to_text();
        let name = if is_users { None } else { notice(&plain).or(kind) };
        // Somebody may write even a picture's mark; what the model is shown has it around each picture.
        let is_mark = name.is_none() && kind != Some(SENT) && is_picture_mark(&plain);
        match name {
            Some(name) => self.notices.push((name.replace(['-', ' '], "_"), text)),
            None if is_mark => {}
            None => self.say(text),
        }
    }

    /// Takes a part that is no text, of which a mark is kept: what it is, and where it lies or how large it is.
    pub(super) fn mark(&mut self, kind: &str, place: Option<RawJson>, bytes: usize, is_picture: bool) {
        let kind = if kind.is_empty() { "part" } else { kind };
        let (name, value) = match place {
            Some(place) => ("path", place),
            None => ("size_bytes", RawJson::from(bytes as u64)),
        };
        if is_picture {
            self.pictures.push((kind.to_owned(), RawJson::object(|object| object.json(name, &value))));
        }
        let mut block = ContentBlock::text(Fidelity::AgentEmitted, "");
        block.extra.push("label", string(kind));
        block.extra.push(name, value);
        self.blocks.push(block);
    }

    /// Takes what somebody wrote.
    pub(super) fn say(&mut self, text: JsonString) {
        self.text.push_str(&text.to_text());
        self.blocks.push(ContentBlock::text(Fidelity::AgentEmitted, text));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, want: Option<&str>) {
        assert_eq!(notice(text), want, "{text}");
    }

    #[test]
    fn notices_are_told_from_prompts() {
        check("Fix the build.", None);
        check("", None);
        check("<environment_context>\n  <cwd>/x</cwd>\n</environment_context>", Some("environment_context"));
        check("<turn_aborted>\nstopped\n</turn_aborted>\n", Some("turn_aborted"));
        check(
            "# AGENTS.md instructions for /x\n\n<INSTRUCTIONS>\nBe brief.\n</INSTRUCTIONS>",
            Some("agents_md"),
        );
        check("<permissions instructions>x</permissions instructions>", Some("permissions instructions"));
    }

    #[test]
    fn a_tag_inside_a_persons_words_stays_theirs() {
        check("<environment_context> is a tag that I see; why?", None);
        check("What does </turn_aborted> mean?", None);
        check("<div>fix this</div>", None);
        check("# AGENTS.md instructions are too long, shorten them", None);
    }

    #[track_caller]
    fn parts(content: &str, kinds: &[&str], text: &str, blocks: usize, notices: &[&str]) {
        let raw: &RawValue = serde_json::from_str(content).unwrap();
        let kinds: Vec<String> = kinds.iter().map(|kind| (*kind).to_owned()).collect();
        let message = user_message(raw, &kinds);
        let names: Vec<&str> = message.notices.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(
            (message.text.as_str(), message.blocks.len(), names),
            (text, blocks, notices.to_vec()),
            "{content}"
        );
    }

    #[test]
    fn a_picture_is_a_mark_and_its_wrapping_is_nothing() {
        parts(
            r#"[{"type":"input_text","text":"Look"},{"type":"input_text","text":"<image name=[Image #1]>"},
                {"type":"input_image","image_url":"data:x"},{"type":"input_text","text":"</image>"}]"#,
            &["user.text", "user.text", "user.image", "user.text"],
            "Look",
            2,
            &[],
        );
    }

    #[test]
    fn what_codex_names_is_believed() {
        parts(
            r#"[{"type":"input_text","text":"x"}]"#,
            &["environments.environment_context"],
            "",
            0,
            &["environments.environment_context"],
        );
        parts(r#""plain""#, &[], "plain", 1, &[]);
        parts(r#"[1,{"type":"mention","path":"a.rs"}]"#, &[], "", 1, &[]);
    }
}
