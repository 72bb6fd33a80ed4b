//! `steno ls`: lists the sessions of the store, or its runs.

mod layout;
mod row;
mod runs;

use steno_library::{Library, ListState, ListedSession};
use steno_views::{Lines, count, thousands, visible};

use self::layout::Layout;
use self::row::RowWriter;
use super::session_filter::{no_session_matches, read_filter};
use crate::args::LsArgs;
use crate::failure::{Exit, Failure, Outcome};
use crate::output::{Output, notice, wrapped_message};
use crate::recording::warn;
use crate::runs as stores;
use crate::settings::Settings;
use crate::time_words::{TimeForm, now};

/// How many sessions or runs are listed on a terminal, unless another number is given.
const TERMINAL_LIMIT: usize = 40;

pub fn run(args: &LsArgs, settings: &Settings, output: &mut Output) -> Outcome {
    let library = stores::need_library(settings)?;
    if !args.json && !args.no_pager {
        output.page();
    }
    if args.runs {
        return runs::run(&library, args, settings, output);
    }
    let filter = read_filter(&args.filter, &args.words)?;
    let sessions = library.list(&filter, now().timestamp())?;
    warn_about_damage(&sessions);
    let shown = &sessions[..shown_count(args, output.width(), sessions.len())];
    let (prices, store_flags) = (&settings.prices.prices, settings.store_flags());
    if args.json {
        for session in shown {
            output.json_line(session.to_json(prices, &store_flags).as_str());
            if output.is_broken() {
                break;
            }
        }
    } else if filter.is_gone {
        print_gone(shown, &writer(&library, args, settings, output)?, &store_flags, output);
    } else {
        print_table(shown, sessions.len(), &writer(&library, args, settings, output)?, output);
    }
    output.settle();
    if filter.is_empty() {
        notice_sessions_without_events(&library, output);
        if sessions.is_empty() {
            return Err(nothing_recorded(settings));
        }
    } else if sessions.is_empty() && filter.is_gone && filter.sessions.is_empty() && !filter.is_live {
        return Err(Failure::empty("no file of an archived session is deleted or shorter".to_owned())
            .with_hint("a file that was rewritten and is not shorter is noticed by the next `steno up`"));
    } else if sessions.is_empty() {
        return Err(no_session_matches(&filter));
    }
    Ok(Exit::Done)
}

/// Returns how many of some rows are listed.
fn shown_count(args: &LsArgs, width: Option<usize>, rows: usize) -> usize {
    match args.limit.unwrap_or(if width.is_some() { TERMINAL_LIMIT } else { 0 }) {
        0 => rows,
        limit => rows.min(limit),
    }
}

/// Returns the failure for a store without runs.
fn nothing_recorded(settings: &Settings) -> Failure {
    Failure::empty(format!("the store `{}` has no runs yet", settings.store.value.display()))
        .with_hint("`steno up` archives agents' sessions, `steno record` records events")
}

fn warn_about_damage(sessions: &[ListedSession]) {
    for session in sessions {
        for (run, why) in &session.damage {
            let state = if session.state == ListState::Unreadable { "unreadable" } else { "damaged" };
            let warning = format!("run {run} is {state}: {why}");
            tracing::warn!("{}; `steno verify {run}` checks the whole run", visible(&warning, Lines::Escape));
        }
    }
}

fn writer<'a>(
    library: &'a Library,
    args: &LsArgs,
    settings: &'a Settings,
    output: &Output,
) -> Result<RowWriter<'a>, Failure> {
    let (time, prices) = (args.time.form(), &settings.prices.prices);
    Ok(RowWriter { ids: library.index()?, prices, now: now(), time, width: output.width() })
}

/// Returns sessions as lines of a table that is so wide.
pub fn table(
    sessions: &[ListedSession],
    library: &Library,
    settings: &Settings,
    width: usize,
) -> Result<Vec<String>, Failure> {
    let (prices, time, width) = (&settings.prices.prices, TimeForm::Age, Some(width));
    let writer = RowWriter { ids: library.index()?, prices, now: now(), time, width };
    let rows: Vec<_> = sessions.iter().map(|session| writer.row(session)).collect();
    let layout = Layout::of(&rows, width);
    Ok(rows.iter().enumerate().map(|(number, row)| layout.line(row, number)).collect())
}

fn print_table(shown: &[ListedSession], total: usize, writer: &RowWriter<'_>, output: &mut Output) {
    let rows: Vec<_> = shown.iter().map(|session| writer.row(session)).collect();
    let layout = Layout::of(&rows, output.width());
    for (number, row) in rows.iter().enumerate() {
        output.line(&layout.line(row, number));
        if output.is_broken() {
            return;
        }
    }
    if output.width().is_some() && !rows.is_empty() {
        for line in row::footer(shown, total, output.width()) {
            output.line(&line);
        }
    }
}

/// Prints what the agents' disks lack: a line per session, and the command that brings it back.
fn print_gone(shown: &[ListedSession], writer: &RowWriter<'_>, store_flags: &str, output: &mut Output) {
    for session in shown {
        for line in writer.gone(session, store_flags) {
            output.line(&line);
        }
    }
}

/// Prints how many sessions have stored files but no events. Errors are warnings.
fn notice_sessions_without_events(library: &Library, output: &mut Output) {
    let counts = match library.sessions_without_events() {
        Ok(counts) => counts,
        Err(error) => return warn(&Failure::from(error).message),
    };
    let total: u64 = counts.values().sum();
    if total == 0 {
        return;
    }
    let by: Vec<String> =
        counts.iter().map(|(name, count)| format!("{} {name}", thousands(*count))).collect();
    let text = format!(
        "not listed: {} ({}) with stored files but no events; `steno du --by session --all` lists \
         all sessions, `steno restore SESSION` restores the files of one",
        count(total, "session"),
        by.join(", ")
    );
    if output.has_pager() {
        // The pager has the screen.
        output.line(&wrapped_message(&visible(&text, Lines::Escape), 0, output.width()));
    } else {
        notice(&text);
    }
}
