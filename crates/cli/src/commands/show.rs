//! `steno show`: shows a run as a conversation, and its child runs after it.

use anstyle::{AnsiColor, Style};
use steno_views::conversation::{Conversation, Look, Tone, toned_text};

use super::related_runs::Related;
use crate::args::ViewArgs;
use crate::failure::{Exit, Failure, Outcome};
use crate::output::Output;
use crate::settings::Settings;

pub fn run(args: &ViewArgs, settings: &Settings, output: &mut Output) -> Outcome {
    let mut related = Related::read(&args.run, settings)?;
    let mut reported = related.joined.reported();
    let mut is_first = true;
    for run in related.joined.nested() {
        let Some(session) = related.sessions.remove(&run.run_id) else { continue };
        let conversation = Conversation::of(&session);
        if args.json {
            let json = serde_json::to_string(&conversation);
            output.json_line(&json.map_err(|error| Failure::could_not(error.to_string()))?);
        } else {
            if !std::mem::take(&mut is_first) {
                output.line("");
            }
            let reported = reported.remove(&run.run_id);
            let look =
                Look { width: output.width(), has_every_step: args.all, reported, ..Look::plain(&paint) };
            output.line(toned_text(&conversation, &look).trim_end());
        }
        if output.is_broken() {
            break;
        }
    }
    related.check()?;
    Ok(Exit::Done)
}

/// Colours a part of a line; the output takes the colours away where they are not wanted.
fn paint(tone: Tone, words: &str) -> String {
    let style = match tone {
        Tone::Frame => Style::new().dimmed(),
        Tone::Thought => Style::new().dimmed().italic(),
        Tone::User => AnsiColor::Green.on_default().bold(),
        Tone::Model => AnsiColor::Blue.on_default().bold(),
        Tone::Call | Tone::Open => AnsiColor::Cyan.on_default(),
        Tone::Failed => AnsiColor::Red.on_default(),
        Tone::Odd => AnsiColor::Yellow.on_default(),
    };
    format!("{style}{words}{style:#}")
}
