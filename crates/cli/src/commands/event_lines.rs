//! How `events` and `follow` print an event.

use anstyle::{AnsiColor, Style};
use steno_journal::RecordedEvent;
use steno_library::Origin;
use steno_model::json::{Extra, JsonString, RawJson};
use steno_model::{BlockContent, ContentBlock, ExchangeEvent, Payload};
use steno_views::short_text::{placeholder, reason, usage};
use steno_views::{Lines, columns_of, cut, visible};

use crate::args::EventFormat;
use crate::output::Output;

/// The length of an event's text if the width of the terminal is not known.
const TEXT_CHARS_MAX: usize = 100;
/// On a narrower terminal, types are not aligned, and times have no day.
const WIDE_COLUMNS: usize = 120;
/// The width of the column of numbers.
const SEQ_CHARS: usize = 5;
/// How much of a value is decoded for a line; much of it may be white space.
const BEGINNING_CHARS_MAX: usize = 4 * TEXT_CHARS_MAX;
/// The width of the column of types: the longest of the ten.
const TYPE_CHARS: usize = "step.call_workflow.completed".len();

/// Prints one event in the form asked for.
pub fn print(recorded: &RecordedEvent, form: EventFormat, output: &mut Output) {
    if form.raw {
        output.raw_line(&recorded.line);
    } else if form.json {
        output.json_line(&String::from_utf8_lossy(&recorded.line));
    } else {
        output.line(&human_line(&recorded.event, output.width()));
    }
}

/// Prints an event that was derived from an agent's file and has no recorded line.
pub fn print_made(event: ExchangeEvent, form: EventFormat, output: &mut Output) {
    if !form.raw && !form.json {
        return output.line(&human_line(&event, output.width()));
    }
    let line = event.to_line();
    // It may be very long: one copy is enough.
    drop(event);
    if form.raw { output.raw_line(line.as_bytes()) } else { output.json_line(&line) }
}

/// Prints the run of the next events, and its file if it is a copy. JSON does not need it: each event has its run.
pub fn print_run(event: &ExchangeEvent, origin: &Origin, is_again: bool, output: &mut Output) {
    let dim = Style::new().dimmed();
    let surface = origin.surface;
    let parent = event.parent_run_id.map(|parent| format!("  child of {parent}")).unwrap_or_default();
    let file = origin.path.display().to_string();
    let again = if is_again { format!("  copy in {}", visible(&file, Lines::Escape)) } else { String::new() };
    output.line(&format!(
        "{dim}run {}  {} {}{parent}{again}{dim:#}",
        event.run_id,
        surface.provider_name(),
        surface.name()
    ));
}

/// Returns a line for people: number, time, type, path, and the beginning of the text.
fn human_line(event: &ExchangeEvent, width: Option<usize>) -> String {
    let dim = Style::new().dimmed();
    let style = style_of(event);
    let mark = if event.event_type.known().is_none() { "? " } else { "" };
    let event_type = event.event_type.to_string();
    let event_type = visible(&event_type, Lines::Escape);
    let is_narrow = width.is_some_and(|width| width < WIDE_COLUMNS);
    let time = event.timestamp.to_string();
    let of_day = time.split_once('T').map(|(_, rest)| rest.trim_end_matches('Z'));
    let time = of_day.filter(|_| is_narrow).unwrap_or(&time);
    let mut line = format!(
        "{:>SEQ_CHARS$}  {dim}{}{dim:#}  {style}{mark}{event_type}{style:#}",
        event.seq.get(),
        visible(time, Lines::Escape),
    );
    let type_chars = mark.len() + columns_of(&event_type);
    let path = event.path.to_text();
    let detail = detail(event).trim_end().replace('\n', "⏎").replace('\t', " ");
    let mut padding = if is_narrow { 2 } else { TYPE_CHARS.saturating_sub(type_chars) + 2 };
    let place = place(event, &path);
    let used = SEQ_CHARS + 2 + columns_of(time) + 2 + type_chars + padding;
    // One column for the ellipsis.
    let room = |used: usize| width.map(|width| width.saturating_sub(used + 1));
    let place = match room(used) {
        Some(room) if columns_of(&place) > room => cut(&place, room),
        Some(_) | None => place,
    };
    let chars_max = room(used + columns_of(&place) + 2).unwrap_or(TEXT_CHARS_MAX);
    let detail = cut(&detail, BEGINNING_CHARS_MAX);
    for part in [place, cut(&visible(&detail, Lines::Escape), chars_max)] {
        if !part.is_empty() {
            line.extend(std::iter::repeat_n(' ', padding));
            line.push_str(&part);
            padding = 2;
        }
    }
    line.trim_end().to_owned()
}

fn style_of(event: &ExchangeEvent) -> Style {
    let name = event.event_type.to_string();
    let color = match name.split('.').next() {
        _ if event.event_type.known().is_none() => AnsiColor::Yellow,
        Some("run") => AnsiColor::Magenta,
        Some("message") => AnsiColor::Green,
        Some("tool") => AnsiColor::Cyan,
        _ => AnsiColor::Blue,
    };
    color.on_default()
}

fn place(event: &ExchangeEvent, path: &str) -> String {
    let mut place = visible(path, Lines::Escape).into_owned();
    match event.loop_indices() {
        Some(indices) if !indices.is_empty() => {
            let indices: Vec<_> = indices.iter().map(u64::to_string).collect();
            place.push_str(&format!("[{}]", indices.join(".")));
        }
        _ if event.iteration > 0 => place.push_str(&format!("[{}]", event.iteration)),
        _ => {}
    }
    place
}

fn detail(event: &ExchangeEvent) -> String {
    match event.payload() {
        Payload::Null => String::new(),
        Payload::Step(step) => {
            let error = step.error.map(|error| format!(" failed: {}", reason(&error))).unwrap_or_default();
            format!("{} ({}){error}", step.name, step.kind)
        }
        Payload::Tool(tool) => {
            let content = [&tool.output, &tool.input].into_iter().flatten().find(|value| !value.is_null());
            let content = content.map(RawJson::as_str).map(text_of).unwrap_or_default();
            let outcome = tool.extra.get("outcome").map(|outcome| text_of(outcome.as_str()));
            let word = outcome.filter(|word| ["denied", "interrupted"].contains(&word.as_str()));
            let word = word.as_deref().unwrap_or("failed");
            match tool.error.as_ref().map(JsonString::as_raw).map(text_of) {
                // Agents repeat the output of a failed call as its error.
                Some(error) if error.trim() == content.trim() => format!("{} {word}: {error}", tool.name),
                Some(error) => format!("{} {word}: {error} {content}", tool.name),
                None => format!("{} {content}", tool.name),
            }
        }
        Payload::Message(message) if message.blocks.is_empty() => usage_text(&message.extra),
        Payload::Message(message) => blocks_text(&message.blocks),
        Payload::Blocks(blocks) => blocks_text(&blocks),
        Payload::Other(raw) => text_of(raw.as_str()),
    }
}

/// Returns the text of an event that only reports usage.
fn usage_text(extra: &Extra) -> String {
    let scope = extra.get("usage_scope").and_then(|scope| scope.read::<String>().ok());
    let report = extra.get("usage").and_then(|report| usage(report, scope.as_deref()));
    report.map(|report| format!("({report})")).unwrap_or_default()
}

fn blocks_text(blocks: &[ContentBlock]) -> String {
    let texts: Vec<_> = blocks.iter().map(block_text).collect();
    texts.join(" · ")
}

fn block_text(block: &ContentBlock) -> String {
    let json = |json: &Option<RawJson>| json.as_ref().map(RawJson::as_str).map(text_of).unwrap_or_default();
    let text =
        |text: &Option<JsonString>| text.as_ref().map(JsonString::as_raw).map(text_of).unwrap_or_default();
    match &block.content {
        BlockContent::Text(content) => match text(content) {
            content if content.is_empty() => {
                placeholder(&|name| block.extra.get(name).cloned()).unwrap_or_default()
            }
            content => format!("{}{content}", label_of(block)),
        },
        BlockContent::Stream(content) => text(content),
        BlockContent::Thinking(content) => format!("(thinking) {}", text(content)),
        BlockContent::ToolUse { tool_name, tool_input, .. } => {
            format!("{} {}", text(tool_name), json(tool_input))
        }
        BlockContent::ToolResult { tool_content, .. } => json(tool_content),
        BlockContent::Command(content) => format!("$ {}", text(content)),
        BlockContent::Unknown(unknown) => format!("? {unknown}"),
    }
}

/// Returns the label of a text that is not a message, like a system prompt.
fn label_of(block: &ContentBlock) -> String {
    let label = block.extra.get("label").and_then(|label| label.read::<String>().ok());
    label.map(|label| format!("({label}) ")).unwrap_or_default()
}

/// Returns a value as text: a string decoded, anything else as JSON. Only the beginning of a long value is decoded.
fn text_of(json: &str) -> String {
    let Some(inside) = json.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) else {
        return cut(json, BEGINNING_CHARS_MAX);
    };
    let start = beginning_of_string(inside);
    let token = format!("\"{start}\"");
    let text = serde_json::from_str(&token).ok().and_then(JsonString::from_raw);
    let text = text.map_or_else(|| start.to_owned(), |text| text.to_string());
    if start.len() < inside.len() { format!("{text}…") } else { text }
}

/// Returns the beginning of the content of a JSON string, without splitting an escape.
fn beginning_of_string(inside: &str) -> &str {
    let mut end = 0;
    for _ in 0..BEGINNING_CHARS_MAX {
        let rest = inside.get(end..).unwrap_or_default();
        end += match rest.as_bytes() {
            [] => break,
            // Two escapes may be a surrogate pair.
            [b'\\', b'u', b'd' | b'D', b'8' | b'9' | b'a' | b'b' | b'A' | b'B', _, _, b'\\', b'u', ..] => 12,
            [b'\\', b'u', ..] => 6,
            [b'\\', ..] => 2,
            [..] => rest.chars().next().map_or(1, char::len_utf8),
        };
    }
    inside.get(..end).unwrap_or(inside)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(json: &str, want: &str) {
        assert_eq!(text_of(json), want);
    }

    #[test]
    fn only_the_beginning_of_a_value_is_decoded() {
        check(r#""a\n\u00e9\ud83d\ude00\"""#, "a\né😀\"");
        check(r#"{"a":"b"}"#, r#"{"a":"b"}"#);
        check("null", "null");
        let many = "\\ud83d\\ude00".repeat(2 * BEGINNING_CHARS_MAX);
        check(&format!("\"{many}\""), &format!("{}…", "😀".repeat(BEGINNING_CHARS_MAX)));
        let many = "é".repeat(2 * BEGINNING_CHARS_MAX);
        check(&format!("\"{many}\""), &format!("{}…", "é".repeat(BEGINNING_CHARS_MAX)));
        let many = "1".repeat(2 * BEGINNING_CHARS_MAX);
        check(&many, &format!("{}…", "1".repeat(BEGINNING_CHARS_MAX)));
        let just = "\\\\".repeat(BEGINNING_CHARS_MAX);
        check(&format!("\"{just}\""), &"\\".repeat(BEGINNING_CHARS_MAX));
    }
}
