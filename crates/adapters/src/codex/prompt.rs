//! Separates prompts of the user from messages that Codex writes with the user's role.

use serde_json::value::RawValue;
use steno_model::json::{JsonString, RawJson};
use steno_model::{ContentBlock, Fidelity};

use super::wire::Part;
use crate::emit::string;
use crate::wire::{RawField as _, objects};

/// Tags around Codex's own messages; the tag, with `_` for other characters, is the name of the fact.
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

/// The start of the message with a project's `AGENTS.md`, and the tag at its end.
const AGENTS_MD: (&str, &str) = ("# AGENTS.md instructions", "</INSTRUCTIONS>");

/// Parts without text. Each is replaced by a mark, because they are large and the evidence has them.
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

/// Parts of a prompt that the model does not get in this form.
const BESIDE: [&str; 2] = ["mention", "skill"];

/// The kind of a client's input, in the style of Codex's names.
const SENT: &str = "user.input";

/// Returns the kind of notice in a text of Codex; `None` for a text of the user.
///
/// A tag inside a prompt does not make it a notice: the whole text must be wrapped.
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

/// Returns true if a text is only the tag around a picture.
fn is_picture_mark(text: &str) -> bool {
    text == "</image>" || (text.starts_with("<image") && text.ends_with('>') && !text.contains('\n'))
}

/// A message with the user's role, split into its parts.
#[derive(Default)]
pub(super) struct UserMessage {
    /// The user's texts, and a mark for each picture or file.
    pub(super) blocks: Vec<ContentBlock>,
    /// The text of the blocks.
    pub(super) text: String,
    /// Notices of Codex to the model: name of the fact, and text.
    pub(super) notices: Vec<(String, JsonString)>,
    /// Whether a part is of an unknown kind.
    pub(super) is_odd: bool,
    /// Parts that only the user sees, with their kind.
    pub(super) others: Vec<(String, RawJson)>,
    /// Pictures and sounds with their kind: the location or the size of each.
    pub(super) pictures: Vec<(String, RawJson)>,
}

/// Splits a message. `kinds` are the kinds of its parts, if Codex names them.
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
            message.others.push((kind.into_owned(), RawJson::from_raw(raw)));
        }
    }
    message
}

/// Splits the input of a client, or an item with it: all parts are the user's.
pub(super) fn sent(input: &RawValue) -> UserMessage {
    let parts = objects::<Part<'_>>(input).map_or(0, |parts| parts.len());
    user_message(input, &vec![SENT.to_owned(); parts])
}

impl UserMessage {
    /// Takes a text; the kind that Codex gives wins over its content.
    fn take(&mut self, text: JsonString, kind: Option<&str>) {
        let kind = kind.filter(|kind| *kind != "unknown");
        let is_users = kind.is_some_and(|kind| kind.starts_with("user."));
        let plain = text.to_text();
        let name = if is_users { None } else { notice(&plain).or(kind) };
        // A user may write such a tag too. The input of the model has it around each picture.
        let is_mark = name.is_none() && kind != Some(SENT) && is_picture_mark(&plain);
        match name {
            Some(name) => self.notices.push((name.replace(['-', ' '], "_"), text)),
            None if is_mark => {}
            None => self.say(text),
        }
    }

    /// Takes a part without text and keeps a mark with its kind and its location or size.
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

    /// Takes a text of the user.
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
    fn notices_are_not_prompts() {
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
    fn tag_inside_a_prompt_does_not_make_it_a_notice() {
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
    fn picture_is_one_block_without_its_wrapping_tags() {
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
    fn content_kinds_given_by_codex_are_used() {
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
