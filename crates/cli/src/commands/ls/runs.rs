//! `steno ls --runs`: lists every run, after a quick look at each.

use anstyle::{AnsiColor, Style};
use steno_library::{IdIndex, Library, RunOverview};
use steno_model::RunId;
use steno_views::{Lines, count, cut, visible};

use super::nothing_recorded;
use crate::args::LsArgs;
use crate::failure::{Exit, Failure, Outcome};
use crate::id_lines::{marked, minute};
use crate::output::{Output, size, state_word};
use crate::settings::Settings;

/// The width of the column of states.
const STATE_CHARS: usize = "completed".len();
/// The width of the columns before the words.
const FIRST_CHARS: usize = RunId::LEN + 2 + STATE_CHARS + 2 + 16 + 2 + 12 + 2 + 8 + 2;
const WORDS_CHARS_MIN: usize = 12;

pub(super) fn run(library: &Library, args: &LsArgs, settings: &Settings, output: &mut Output) -> Outcome {
    let looks = library.overviews()?;
    for look in looks.values() {
        if let Some(why) = &look.damage {
            let run = look.head.run;
            let warning = format!("run {run} is {}: {why}", look.state);
            tracing::warn!("{}; `steno verify {run}` checks the whole run", visible(&warning, Lines::Escape));
        }
    }
    list_runs(library, args, output)?;
    output.flush();
    super::notice_sessions_without_events(library);
    if looks.is_empty() {
        return Err(nothing_recorded(settings));
    }
    Ok(Exit::Done)
}

fn list_runs(library: &Library, args: &LsArgs, output: &mut Output) -> Result<(), Failure> {
    let looks = library.overviews()?;
    let index = IdIndex::new(looks.keys().map(|run| (run.to_string(), *run)));
    let mut rows: Vec<&RunOverview> = looks.values().collect();
    // Newest first; times only order the list, they are never an order of events.
    rows.sort_by_cached_key(|look| std::cmp::Reverse(look.started()));
    for look in rows {
        if args.json {
            output.json_line(&look.row());
        } else {
            output.line(&run_line(look, &index, output.width()));
        }
        if output.is_broken() {
            break;
        }
    }
    Ok(())
}

fn run_line(look: &RunOverview, index: &IdIndex<RunId>, width: Option<usize>) -> String {
    let run = look.head.run;
    let mut line = format!(
        "{}  {}",
        marked(&run.to_string(), index.shortest(&run.to_string(), &run)),
        state(look.state)
    );
    let Some(summary) = &look.summary else { return line.trim_end().to_owned() };
    let dim = Style::new().dimmed();
    line.push_str(&format!(
        "  {dim}{:<16}{dim:#}  {:>12}  {:>8}  ",
        minute(summary.started_at.as_ref()),
        count(summary.events, "event"),
        size(look.bytes),
    ));
    let mut words = summary.name.as_ref().map(ToString::to_string).unwrap_or_default();
    if let Some(channel) = look.head.channel.as_deref().filter(|channel| *channel != "disk") {
        words.push_str(&format!("  {channel}"));
    }
    if let Some(parent) = look.head.parent {
        words.push_str(&format!("  child of {parent}"));
    }
    if let Some(session) = look.head.session {
        words.push_str(&format!("  of session {session}"));
    }
    line.push_str(&cut_to(&words, width.unwrap_or(usize::MAX)));
    line.trim_end().to_owned()
}

/// Cuts words so that their line fits.
fn cut_to(words: &str, width: usize) -> String {
    // One column for the ellipsis.
    let chars = width.saturating_sub(FIRST_CHARS + 1).max(WORDS_CHARS_MIN);
    visible(&cut(words, chars), Lines::Escape).into_owned()
}

/// Returns a state in its colour, as wide as its column.
fn state(state: &str) -> String {
    let style = match state {
        "recording" => AnsiColor::Cyan.on_default().bold(),
        "completed" => AnsiColor::Green.on_default(),
        "failed" | "damaged" | "unreadable" => AnsiColor::Red.on_default().bold(),
        _ => Style::new(),
    };
    // Padded outside of the style, so that a line without more ends with its last word.
    let padding = " ".repeat(STATE_CHARS.saturating_sub(state.len()));
    format!("{style}{}{style:#}{padding}", state_word(state))
}
