//! `steno ls --runs`: lists every run, after a quick look at each.

use anstyle::{AnsiColor, Style};
use jiff::Zoned;
use steno_library::{IdIndex, Library, RunOverview};
use steno_model::{RunId, Timestamp};
use steno_views::{Lines, count, cut, thousands, visible};

use super::{nothing_recorded, shown_count};
use crate::args::LsArgs;
use crate::failure::{Exit, Failure, Outcome};
use crate::id_lines::marked;
use crate::output::{Output, size, state_word};
use crate::settings::Settings;
use crate::time_words::{TimeForm, now, time_word};

/// The width of the column of states.
const STATE_CHARS: usize = "completed".len();
/// The least number of columns for the words of a run.
const WORDS_COLUMNS_MIN: usize = 12;
/// On a narrower terminal, ids are short.
const WIDE_COLUMNS: usize = 110;
const GAP: &str = "  ";

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
    output.settle();
    super::notice_sessions_without_events(library, output);
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
    let shown = shown_count(args, output.width(), rows.len());
    // A narrow terminal has no room for whole ids.
    let short = |look: &RunOverview| {
        let id = look.head.run.to_string();
        index.shortest(&id, &look.head.run).split(&id).1.len()
    };
    let is_narrow = output.width().is_some_and(|width| width < WIDE_COLUMNS);
    let id_columns = is_narrow.then(|| rows[..shown].iter().map(|look| short(look)).max().unwrap_or(0));
    let (time, width) = (args.time.form(), output.width());
    let lines = RunLines { index: &index, now: now(), time, width, id_columns };
    for look in &rows[..shown] {
        if args.json {
            output.json_line(&look.row());
        } else {
            output.line(&lines.line(look));
        }
        if output.is_broken() {
            break;
        }
    }
    if shown < rows.len() && output.width().is_some() && !args.json {
        let (dim, total) = (Style::new().dimmed(), count(rows.len() as u64, "run"));
        let shown = thousands(shown as u64);
        output.line(&format!("{dim}{shown} of {total}; `--limit 0` lists all{dim:#}"));
    }
    Ok(())
}

struct RunLines<'a> {
    index: &'a IdIndex<RunId>,
    now: Zoned,
    time: TimeForm,
    width: Option<usize>,
    /// The width of the column of short ids; `None` if ids are whole.
    id_columns: Option<usize>,
}

impl RunLines<'_> {
    fn line(&self, look: &RunOverview) -> String {
        let id = look.head.run.to_string();
        let shortest = self.index.shortest(&id, &look.head.run);
        let (name, id_columns) = match self.id_columns {
            Some(columns) => {
                let short = shortest.split(&id).1;
                let (bold, padding) = (Style::new().bold(), " ".repeat(columns.saturating_sub(short.len())));
                (format!("{bold}{short}{bold:#}{padding}"), columns)
            }
            None => (marked(&id, shortest), id.len()),
        };
        let line = format!("{name}  {}", state(look.state));
        let Some(summary) = &look.summary else { return line.trim_end().to_owned() };
        let dim = Style::new().dimmed();
        let numbers = format!("{:>12}  {:>8}", count(summary.events, "event"), size(look.bytes));
        let time = self.time(summary.started_at.as_ref());
        let used = [id_columns, STATE_CHARS, time.len(), numbers.len()].map(|columns| columns + GAP.len());
        let words = cut_to(&words(look), self.width.map(|width| width.saturating_sub(used.iter().sum())));
        let line = [line, format!("{dim}{time}{dim:#}"), numbers, words].join(GAP);
        line.trim_end().to_owned()
    }

    /// Returns a time, as wide as its column.
    fn time(&self, time: Option<&Timestamp>) -> String {
        let time = time.and_then(Timestamp::instant);
        let word = time.map(|time| time_word(time, &self.now, self.time)).unwrap_or_default();
        match self.time {
            TimeForm::Age => format!("{word:>4}"),
            TimeForm::Local => format!("{word:<16}"),
            TimeForm::Utc => format!("{word:<17}"),
        }
    }
}

/// Returns what else is known of a run.
fn words(look: &RunOverview) -> String {
    let name = look.summary.as_ref().and_then(|summary| summary.name.as_ref());
    let mut words = name.map(ToString::to_string).unwrap_or_default();
    if let Some(channel) = look.head.channel.as_deref().filter(|channel| *channel != "disk") {
        words.push_str(&format!("  {channel}"));
    }
    if let Some(parent) = look.head.parent {
        words.push_str(&format!("  child of {parent}"));
    }
    if let Some(session) = look.head.session {
        words.push_str(&format!("  of session {session}"));
    }
    words
}

/// Cuts words to the room that their line has for them.
fn cut_to(words: &str, room: Option<usize>) -> String {
    // One column for the ellipsis.
    let columns = room.map_or(usize::MAX, |room| room.saturating_sub(1).max(WORDS_COLUMNS_MIN));
    visible(&cut(words, columns), Lines::Escape).into_owned()
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
