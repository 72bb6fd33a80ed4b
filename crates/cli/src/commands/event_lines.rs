//! How `events` and `follow` print an event.

use anstyle::{AnsiColor, Style};
use steno_adapters::Surface;
use steno_journal::Recorded;
use steno_model::json::RawJson;
use steno_model::{BlockContent, ContentBlock, ExchangeEvent, Payload};
use steno_views::{Lines, visible};

use crate::args::EventForm;
use crate::output::Output;

const TEXT_CHARS_MAX: usize = 100;
/// How wide the column of types is: as wide as the longest of the ten.
const TYPE_CHARS: usize = "step.call_workflow.completed".len();

/// Prints one event in the form asked for.
pub fn print(recorded: &Recorded, form: EventForm, output: &mut Output) {
    if form.raw {
        output.raw_line(&recorded.line);
    } else if form.json {
        output.json_line(&String::from_utf8_lossy(&recorded.line));
    } else {
        output.line(&human_line(&recorded.event));
    }
}

/// Names the run whose events come next. Text alone needs it: as JSON each event has its run.
pub fn print_run(event: &ExchangeEvent, surface: Surface, form: EventForm, output: &mut Output) {
    if form.raw || form.json {
        return;
    }
    let dim = Style::new().dimmed();
    let parent = event.parent_run_id.map(|parent| format!("  child of {parent}")).unwrap_or_default();
    output.line(&format!(
        "{dim}run {}  {} {}{parent}{dim:#}",
        event.run_id,
        surface.provider(),
        surface.name()
    ));
}

/// Returns a line for people: number, time, type, place, and the beginning of what it says.
fn human_line(event: &ExchangeEvent) -> String {
    let dim = Style::new().dimmed();
    let style = style_of(event);
    let mark = if event.event_type.known().is_none() { "? " } else { "" };
    let event_type = event.event_type.to_string();
    let event_type = visible(&event_type, Lines::Escape);
    let time = event.timestamp.to_string();
    let mut line = format!(
        "{:>5}  {dim}{}{dim:#}  {style}{mark}{event_type}{style:#}",
        event.seq.get(),
        visible(&time, Lines::Escape),
    );
    let width = mark.len() + event_type.chars().count();
    let path = event.path.to_text();
    let detail = detail(event).trim_end().replace('\n', "⏎").replace('\t', " ");
    let mut padding = TYPE_CHARS.saturating_sub(width) + 2;
    for part in [place(event, &path), visible(&shorten(&detail), Lines::Escape).into_owned()] {
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
            let error = step.error.map(|error| format!(" failed: {error}")).unwrap_or_default();
            format!("{} ({}){error}", step.name, step.kind)
        }
        Payload::Tool(tool) => {
            let said = [&tool.output, &tool.input].into_iter().flatten().find(|value| !value.is_null());
            let said = said.map(text_of).unwrap_or_default();
            match tool.error.map(|error| error.to_string()) {
                // Agents give the output of a failed call as the reason why it failed.
                Some(error) if error.trim() == said.trim() => format!("{} failed: {error}", tool.name),
                Some(error) => format!("{} failed: {error} {said}", tool.name),
                None => format!("{} {said}", tool.name),
            }
        }
        Payload::Message(message) => blocks_text(&message.blocks),
        Payload::Blocks(blocks) => blocks_text(&blocks),
        Payload::Other(raw) => raw.to_string(),
    }
}

fn blocks_text(blocks: &[ContentBlock]) -> String {
    let texts: Vec<_> = blocks.iter().map(block_text).collect();
    texts.join(" · ")
}

fn block_text(block: &ContentBlock) -> String {
    let text = |text: &Option<steno_model::json::JsonString>| {
        text.as_ref().map(ToString::to_string).unwrap_or_default()
    };
    match &block.content {
        BlockContent::Text(said) | BlockContent::Stream(said) => text(said),
        BlockContent::Thinking(said) => format!("(thinking) {}", text(said)),
        BlockContent::ToolUse { tool_name, tool_input, .. } => {
            format!("{} {}", text(tool_name), tool_input.as_ref().map(text_of).unwrap_or_default())
        }
        BlockContent::ToolResult { tool_content, .. } => {
            tool_content.as_ref().map(text_of).unwrap_or_default()
        }
        BlockContent::Command(said) => format!("$ {}", text(said)),
        BlockContent::Unknown(unknown) => format!("? {unknown}"),
    }
}

/// Returns a value as text: a string decoded, anything else as JSON.
fn text_of(value: &RawJson) -> String {
    value.read::<String>().unwrap_or_else(|_| value.to_string())
}

fn shorten(text: &str) -> String {
    let mut short: String = text.chars().take(TEXT_CHARS_MAX).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}
