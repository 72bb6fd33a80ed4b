//! `steno show --channels`: lists which run and channel each fact of a session comes from.

use serde_json::json;
use steno_session::{Session, SessionRun};
use steno_views::channels::{ChannelRow, channel_rows};
use steno_views::{Lines, count, cut, visible};

use crate::commands::related_sessions::RelatedSessions;
use crate::failure::{Exit, Failure, Outcome};
use crate::output::Output;
use crate::runs;
use crate::settings::Settings;

/// The maximum length of a name.
const NAME_CHARS_MAX: usize = 60;

/// The widths of the columns of facts and channels.
const FACT_CHARS: usize = "approval".len();
const CHANNELS_CHARS: usize = "disk, app-server".len();

pub fn run(text: &str, is_json: bool, settings: &Settings, output: &mut Output) -> Outcome {
    let related = RelatedSessions::read(text, runs::open_library(settings)?, settings)?;
    let mut is_first = true;
    for tree in related.joined.nested() {
        let Some(session) = related.sessions.get(&tree.run_id) else { continue };
        if is_json {
            print_json(session, output)?;
        } else {
            if !std::mem::take(&mut is_first) {
                output.line("");
            }
            print_text(session, output);
        }
    }
    related.check()?;
    Ok(Exit::Done)
}

fn print_text(session: &Session, output: &mut Output) {
    output.line(&format!("session {}  {}", session.id, count(session.runs.len() as u64, "run")));
    for run in &session.runs {
        output.line(&format!("  {}", run_line(run)));
    }
    let mut turn = None;
    for row in channel_rows(session) {
        if row.turn != turn {
            output.line(&visible(row.turn.as_deref().unwrap_or_default(), Lines::Escape));
            turn.clone_from(&row.turn);
        }
        output.line(&format!("  {}", fact_line(&row)));
    }
}

fn run_line(run: &SessionRun) -> String {
    let channel = run.channel.as_deref().unwrap_or("other");
    let adapter = run.adapter.as_deref().unwrap_or("-");
    let line = format!("{channel:<CHANNELS_CHARS$}  {}  {adapter}  {}", run.id(), count(run.events, "event"));
    visible(&line, Lines::Escape).into_owned()
}

/// Shows a fact: the channel that it was read from, and then the others that report it.
fn fact_line(row: &ChannelRow) -> String {
    let from = row.channel.as_deref().unwrap_or("other");
    let others = row.channels.iter().map(String::as_str).filter(|channel| *channel != from);
    let channels: Vec<&str> = std::iter::once(from).chain(others).collect();
    let name = cut(row.name.as_deref().unwrap_or_default(), NAME_CHARS_MAX);
    let mark = if row.is_matched { "  (matched by name and input)" } else { "" };
    let line = format!("{:<FACT_CHARS$}  {:<CHANNELS_CHARS$}  {name}{mark}", row.fact, channels.join(", "));
    visible(line.trim_end(), Lines::Escape).into_owned()
}

fn print_json(session: &Session, output: &mut Output) -> Result<(), Failure> {
    for row in channel_rows(session) {
        let row = serde_json::to_value(&row).map_err(|error| Failure::could_not(error.to_string()))?;
        let mut line = json!({"session_id": session.id.to_string()});
        if let (Some(line), serde_json::Value::Object(row)) = (line.as_object_mut(), row) {
            line.extend(row);
        }
        output.json_line(&line.to_string());
    }
    Ok(())
}
