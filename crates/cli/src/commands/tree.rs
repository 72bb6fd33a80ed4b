//! `steno tree`: shows the steps of a run and its child runs.

use anstyle::{AnsiColor, Style};
use steno_library::split_event;
use steno_views::tree::{TreeStyle, TreeTone, export_all, styled_text};

use super::related_sessions::RelatedSessions;
use crate::args::ViewArgs;
use crate::failure::{Exit, Failure, Outcome};
use crate::id_lines::marked_name;
use crate::output::Output;
use crate::runs;
use crate::settings::Settings;

pub fn run(args: &ViewArgs, settings: &Settings, output: &mut Output) -> Outcome {
    if let (name, Some(seq)) = split_event(&args.run) {
        let message = format!("`steno tree` does not take a single event: `{}`", args.run);
        return Err(Failure::usage(message).with_hint(format!("`steno show {name}:{seq}` shows its turn")));
    }
    let related = RelatedSessions::read(&args.run, runs::open_library(settings)?, settings)?;
    if args.json {
        for tree in export_all(&related.joined) {
            let json = serde_json::to_string(&tree).map_err(|error| Failure::could_not(error.to_string()))?;
            output.json_line(&json);
        }
    } else {
        let paint_ids = |tone, words: &str| {
            let marked = if tone == TreeTone::Frame {
                marked_name(words, &related.ids, |run| related.sessions.contains_key(&run))
            } else {
                None
            };
            marked.unwrap_or_else(|| paint(tone, words))
        };
        let look = TreeStyle {
            width: output.width(),
            has_every_step: args.all,
            absent: related.absent_child(),
            ..TreeStyle::plain(&paint_ids)
        };
        if !args.no_pager {
            output.page();
        }
        output.line(styled_text(&related.joined, &look).trim_end());
    }
    related.check()?;
    Ok(Exit::Done)
}

/// Colours a part of a line; `Output` removes colours where they are not wanted.
fn paint(tone: TreeTone, words: &str) -> String {
    let style = match tone {
        TreeTone::Frame => Style::new().dimmed(),
        TreeTone::Completed => AnsiColor::Green.on_default(),
        TreeTone::Failed => AnsiColor::Red.on_default().bold(),
        TreeTone::Open => AnsiColor::Cyan.on_default(),
        TreeTone::Odd => AnsiColor::Yellow.on_default(),
    };
    format!("{style}{words}{style:#}")
}
