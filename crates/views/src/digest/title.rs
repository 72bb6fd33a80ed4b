//! The title of a session.

use steno_model::json::{RawJson, text_of};
use steno_session::{Block, ItemKind, PayloadFields, Session, Speaker};

/// The number of characters that a title has at most.
const CHARS_MAX: usize = 200;

/// Tags of texts that Claude Code adds to a prompt. Editors add others, which begin with `ide_`.
const ADDITIONS: [&str; 3] = ["system-reminder", "local-command-caveat", "user-prompt-submit-hook"];

pub(super) struct Title {
    pub(super) text: String,
    /// Whether the agent gave it.
    pub(super) is_own: bool,
}

/// Returns the agent's own last title, else the first line of the first prompt.
pub(super) fn of(session: &Session) -> Option<Title> {
    let own = session.facts.iter().rev().find_map(|fact| {
        let name = fact.name.as_ref()?.to_text();
        own_title(&name, fact.result.as_ref()?)
    });
    if let Some(text) = own {
        return Some(Title { text, is_own: true });
    }
    let prompts = session.items.iter().filter_map(|item| match item.kind {
        ItemKind::Prompt(message) => Some(&session.messages[message.0]),
        ItemKind::SystemPrompt(_)
        | ItemKind::Response(_)
        | ItemKind::Call(_)
        | ItemKind::Approval(_)
        | ItemKind::Child(_)
        | ItemKind::Fact(_) => None,
    });
    let mut prompts = prompts.filter(|prompt| prompt.speaker == Speaker::User);
    prompts
        .find_map(|prompt| prompt.blocks.iter().find_map(prompt_line))
        .or_else(|| command_line(session))
        .map(|text| Title { text, is_own: false })
}

/// Returns the name that the user gave a command of `steno run`, else its words.
fn command_line(session: &Session) -> Option<String> {
    let head = PayloadFields::parse(session.runs.first()?.head.as_ref()?.as_str());
    if head.text("kind").is_none_or(|kind| kind != "command") {
        return None;
    }
    let wrap = head.object("wrap");
    if let Some(name) = wrap.text("name").and_then(|name| first_line(&name)) {
        return Some(name);
    }
    let words = wrap.items("command").into_iter().filter_map(text_of);
    let words: Vec<String> = words.map(|word| crate::shell_word(&word)).collect();
    first_line(&words.join(" "))
}

/// Reads a title that an agent gave: Claude Code and Gemini record it, Codex and ACP report a changed name.
fn own_title(name: &str, result: &RawJson) -> Option<String> {
    let text = match name {
        "title" | "summary" => result.read::<String>().ok()?,
        "thread/name/updated" => PayloadFields::parse(result.as_str()).text("threadName")?.into_owned(),
        "session_info_update" => PayloadFields::parse(result.as_str()).text("title")?.into_owned(),
        _ => return None,
    };
    first_line(&text)
}

fn prompt_line(block: &Block) -> Option<String> {
    let Block::Recorded(block) = block else { return None };
    let fields = PayloadFields::parse(block.as_str());
    // A block with a label is a system prompt or a picture.
    if fields.text("label").is_some() {
        return None;
    }
    let text = fields.text("text")?;
    let words = without_additions(&text);
    match slash_command(words) {
        Some(command) => first_line(&command),
        None => first_line(words),
    }
}

/// Returns what the user typed: a text without the parts before it that an editor or the agent added.
fn without_additions(text: &str) -> &str {
    let mut rest = text.trim_start();
    while let Some((tag, inside)) = rest.strip_prefix('<').and_then(|rest| rest.split_once('>'))
        && is_addition(tag)
        && let Some((_, after)) = inside.split_once(&format!("</{tag}>"))
    {
        rest = after.trim_start();
    }
    rest
}

fn is_addition(tag: &str) -> bool {
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-');
    (tag.starts_with("ide_") || ADDITIONS.contains(&tag)) && tag.chars().all(is_name)
}

/// Returns a command of the agent as the user typed it: Claude Code records its parts, each with a tag.
fn slash_command(text: &str) -> Option<String> {
    if !["<command-message>", "<command-name>"].iter().any(|tag| text.starts_with(tag)) {
        return None;
    }
    let part = |start: &str, end: &str| Some(text.split_once(start)?.1.split_once(end)?.0.trim());
    let name = part("<command-name>", "</command-name>")?;
    let arguments = part("<command-args>", "</command-args>").unwrap_or_default();
    Some(format!("{name} {arguments}"))
}

/// Returns the first line that is not empty, cut to a bounded length.
fn first_line(text: &str) -> Option<String> {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty())?;
    Some(line.chars().take(CHARS_MAX).collect())
}
