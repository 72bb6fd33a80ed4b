//! What a call does, in the few words of one line.

use serde_json::value::RawValue;
use steno_model::json::RawJson;
use steno_session::PayloadFields;

use crate::conversation::ToolUse;
use crate::digest::CallDigest;
use crate::nodes::{FileDiff, command_patch};
use crate::short_text::gist;

/// How much of what a tool is called for is shown.
const TARGET_CHARS_MAX: usize = 120;

/// The arguments that say what a tool is called for, in the order in which they are looked for.
const TARGETS: [&str; 18] = [
    "file_path",
    "filePath",
    "absolute_path",
    "notebook_path",
    "pattern",
    "query",
    "path",
    "dir_path",
    "url",
    "description",
    "agent_name",
    "name",
    "skill",
    "subject",
    "target",
    "message",
    "prompt",
    "text",
];
/// The arguments that are paths.
const PATHS: [&str; 6] = ["file_path", "filePath", "absolute_path", "notebook_path", "path", "dir_path"];

/// A call in words.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) enum CallWords {
    /// A command line.
    Command(String),
    /// A tool, and what it is called for.
    Tool { name: String, target: String },
}

/// Returns what a call does in the words of one line, as a drawn session has them: `$` and the command line, or the tool and
/// what it is called for. Paths are relative to a directory.
#[must_use]
pub fn call_text(
    call: &CallDigest,
    input: Option<&RawJson>,
    diffs: &[FileDiff],
    directory: Option<&str>,
) -> String {
    let is_command = call.class.as_deref() == Some("command");
    match words_of(&call.tool, is_command, input, diffs, directory) {
        CallWords::Command(command) => format!("$ {command}"),
        CallWords::Tool { name, target } => format!("{name} {target}").trim_end().to_owned(),
    }
}

/// Returns a call in words. Paths are relative to a directory.
pub(super) fn call_words(call: &ToolUse, diffs: &[FileDiff], directory: Option<&str>) -> CallWords {
    let is_command = call.class.as_ref().is_some_and(|class| class.is("command"));
    let name = call.tool_name.as_ref().map(|name| name.to_text()).unwrap_or_default();
    words_of(&name, is_command, call.tool_input.as_ref(), diffs, directory)
}

fn words_of(
    name: &str,
    is_command: bool,
    input: Option<&RawJson>,
    diffs: &[FileDiff],
    directory: Option<&str>,
) -> CallWords {
    let input = input.filter(|input| !input.is_null());
    if let Some(command) = input.filter(|_| is_command).and_then(command_line) {
        return CallWords::Command(command);
    }
    let target = match diffs {
        [] => input.map(|input| target_of(input, directory)).unwrap_or_default(),
        [one, others @ ..] => {
            let path = one.path.as_deref().map(|path| relative(path, directory)).unwrap_or_default();
            match (others.len(), &one.moved_to) {
                (0, Some(moved_to)) => format!("{path} → {}", relative(moved_to, directory)),
                (0, None) => path,
                (more, _) => format!("{path} and {more} more"),
            }
        }
    };
    // A command that Codex carries out itself is named by what it does.
    let is_patch = input.is_some_and(|input| {
        !diffs.is_empty() && command_patch(&PayloadFields::parse(input.as_str())).is_some()
    });
    let name = match name {
        _ if is_patch => "apply_patch",
        "" => "a tool",
        name => name,
    };
    CallWords::Tool { name: name.to_owned(), target: crate::cut(&target, TARGET_CHARS_MAX) }
}

/// Returns the command line of the arguments of a call.
#[must_use]
pub fn command_line(input: &RawJson) -> Option<String> {
    let fields = PayloadFields::parse(input.as_str());
    let named = |name: &str| fields.json(name);
    let value = named("command").or_else(|| named("cmd")).or_else(|| named("title"))?;
    if let Ok(text) = value.read::<String>() {
        return Some(without_shell(&text).unwrap_or(text));
    }
    let words = value.read::<Vec<String>>().ok()?;
    match &words[..] {
        [shell, flag, command] if is_shell(shell, flag) => Some(command.clone()),
        _ => Some(words.join(" ")),
    }
}

/// Tells whether two words such as `bash -lc` start a shell with a command, which is how some agents run every command.
fn is_shell(program: &str, flag: &str) -> bool {
    program.ends_with("sh") && flag.starts_with('-') && flag.ends_with('c')
}

/// Returns the command of `/bin/bash -lc 'command'`; `None` for any other text, also if its quotes are not that simple.
fn without_shell(text: &str) -> Option<String> {
    let mut parts = text.splitn(3, ' ');
    let (program, flag, command) = (parts.next()?, parts.next()?, parts.next()?);
    if !is_shell(program, flag) {
        return None;
    }
    let special: &[char] = match command.chars().next()? {
        '\'' => &['\''],
        '"' => &['"', '\\', '$', '`'],
        _ => return (!command.contains([' ', '\'', '"', '\\'])).then(|| command.to_owned()),
    };
    let quote = &special[..1];
    let inside = command.strip_prefix(quote)?.strip_suffix(quote)?;
    (!inside.contains(special)).then(|| inside.to_owned())
}

fn target_of(input: &RawJson, directory: Option<&str>) -> String {
    if let Some(list) = todos(input) {
        let done = list.iter().filter(|todo| todo.is_done()).count();
        return format!("{done} of {} done", list.len());
    }
    let fields = PayloadFields::parse(input.as_str());
    let found =
        TARGETS.iter().find_map(|name| Some((name, fields.text(name).filter(|text| !text.is_empty())?)));
    match found {
        Some((name, text)) if PATHS.contains(name) => relative(&text, directory),
        Some((_, text)) => text.split_whitespace().collect::<Vec<_>>().join(" "),
        None => gist(input),
    }
}

/// Returns a path without the directory that the agent works in.
pub(super) fn relative(path: &str, directory: Option<&str>) -> String {
    let directory =
        directory.map(|directory| directory.trim_end_matches('/')).filter(|name| !name.is_empty());
    let inside = directory.and_then(|directory| path.strip_prefix(directory)?.strip_prefix('/'));
    inside.filter(|path| !path.is_empty()).unwrap_or(path).to_owned()
}

/// A task of an agent's list.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Todo {
    pub(super) text: String,
    status: String,
}

impl Todo {
    pub(super) fn is_done(&self) -> bool {
        matches!(&*self.status, "completed" | "done")
    }

    pub(super) fn mark(&self) -> &'static str {
        match &*self.status {
            "completed" | "done" => "☑",
            "in_progress" => "▶",
            "cancelled" => "☒",
            _ => "☐",
        }
    }
}

/// Returns the list of tasks that a call writes: `todos` of Claude Code, Gemini CLI and `OpenCode`, `plan` of Codex.
pub(super) fn todos(input: &RawJson) -> Option<Vec<Todo>> {
    let fields = PayloadFields::parse(input.as_str());
    let list = ["todos", "plan"].iter().find_map(|name| fields.json(name))?;
    let items = list.read::<Vec<&RawValue>>().ok().filter(|items| !items.is_empty())?;
    let todo = |item: &&RawValue| {
        let fields = PayloadFields::parse(item.get());
        let text = ["content", "description", "step", "title"].iter().find_map(|name| fields.text(name))?;
        Some(Todo { text: text.into_owned(), status: fields.text("status").unwrap_or_default().into_owned() })
    };
    items.iter().map(todo).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(text: &str) -> RawJson {
        RawJson::parse(text).unwrap()
    }

    #[test]
    fn command_lines_are_found() {
        for (input, want) in [
            (r#"{"command":"ls"}"#, Some("ls")),
            (r#"{"cmd":"ls -l"}"#, Some("ls -l")),
            (r#"{"command":["bash","-lc","ls | wc"]}"#, Some("ls | wc")),
            (r#"{"command":["ls","-l"]}"#, Some("ls -l")),
            (r#"{"command":"/bin/bash -lc 'echo two; exit 4'"}"#, Some("echo two; exit 4")),
            (r#"{"command":"bash -lc \"cat a\""}"#, Some("cat a")),
            (r#"{"command":"bash -lc ls"}"#, Some("ls")),
            (r#"{"command":"bash -lc 'a' 'b'"}"#, Some("bash -lc 'a' 'b'")),
            (r#"{"command":"bash -c \"echo $A\""}"#, Some("bash -c \"echo $A\"")),
            (r#"{"command":"bash -lc '"}"#, Some("bash -lc '")),
            (r#"{"chars":"x"}"#, None),
        ] {
            assert_eq!(command_line(&json(input)).as_deref(), want, "{input}");
        }
    }

    #[test]
    fn target_is_a_path_a_pattern_or_a_list() {
        for (input, want) in [
            (r#"{"file_path":"/srv/shop/a.py","limit":3}"#, "a.py"),
            (r#"{"file_path":"/srv/shopping"}"#, "/srv/shopping"),
            (r#"{"path":"/srv/shop/src","pattern":"x"}"#, "x"),
            (r#"{"pattern":"x\n y"}"#, "x y"),
            (r#"{"todos":[{"content":"a","status":"completed"},{"content":"b"}]}"#, "1 of 2 done"),
            (r#"{"a":2,"b":40}"#, "a=2 b=40"),
        ] {
            assert_eq!(target_of(&json(input), Some("/srv/shop/")), want, "{input}");
        }
    }
}
