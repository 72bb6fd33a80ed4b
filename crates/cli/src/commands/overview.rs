//! `steno` without a command: shows the current state, and what to try next.

use steno_library::SessionOverview;
use steno_views::{Lines, count, cut, visible};

use super::doctor::{Examination, Severity, examine};
use crate::failure::{Exit, Failure};
use crate::id_lines::{minute, project_name};
use crate::output::{Output, size};
use crate::runs;
use crate::settings::Settings;

/// The maximum length of a title.
const TITLE_CHARS_MAX: usize = 60;
/// The width of the column of commands.
const COMMAND_CHARS: usize = "steno show last --demo".len();

/// A summary of the store.
struct StoreSummary {
    sessions: usize,
    bytes: u64,
    last: Option<String>,
}

pub fn run(settings: &Settings, output: &mut Output) -> Exit {
    let examination = examine(settings);
    let summary = summary(settings);
    let store = settings.store.value.display().to_string();
    let sessions = match &summary {
        Err(_) => "the store cannot be read: run `steno doctor`".to_owned(),
        Ok(Some(summary)) => {
            let sessions = count(summary.sessions as u64, "session");
            format!("{sessions} in {} of transcripts", size(summary.bytes))
        }
        Ok(None) => "nothing is archived yet".to_owned(),
    };
    let summary = summary.ok().flatten();
    let mut line = |name: &str, words: &str| {
        output.line(format!("{name:<10} {}", visible(words, Lines::Escape)).trim_end());
    };
    line("agents", &agents(&examination));
    line("store", &store);
    line("sessions", &sessions);
    if let Some(last) = summary.as_ref().and_then(|summary| summary.last.as_deref()) {
        line("last", last);
    }
    if let Some(gone) = examination.gone_words() {
        line("kept", &gone);
    }
    line("problems", &problems(&examination));
    output.line("");
    let is_empty = summary.is_none_or(|summary| summary.sessions == 0);
    for (command, does) in next(is_empty) {
        let command = if settings.is_demo { format!("{command} --demo") } else { command.to_owned() };
        output.line(&format!("{command:<COMMAND_CHARS$}  {does}"));
    }
    output.line("\n`steno help` lists all commands, `steno up --demo` uses sample sessions");
    Exit::Done
}

fn agents(examination: &Examination) -> String {
    let agents = examination.agents();
    let follows = if examination.is_followed() { "followed by `steno up`" } else { "not followed" };
    if agents.is_empty() {
        "none found on this machine".to_owned()
    } else {
        format!("{} ({follows})", agents.join(", "))
    }
}

fn problems(examination: &Examination) -> String {
    let (problems, advice) = (examination.count(Severity::Problem), examination.count(Severity::Advice));
    let words = match (problems, advice) {
        (0, 0) => return "none".to_owned(),
        (0, _) => "none, but `steno doctor` has advice".to_owned(),
        (_, _) => problems.to_string(),
    };
    format!("{words}: run `steno doctor`")
}

/// Returns three commands to try next.
fn next(is_empty: bool) -> [(&'static str, &'static str); 3] {
    if is_empty {
        [
            ("steno up", "archive your agents' sessions, and follow them"),
            ("steno doctor", "show which agents were found"),
            ("steno config", "show the settings, and where the store is"),
        ]
    } else {
        [
            ("steno ls", "list the sessions"),
            ("steno show last", "show the last session"),
            ("steno usage", "show how many tokens they used"),
        ]
    }
}

/// Summarises the store; `None` if there is none. `steno doctor` reports what is wrong with an unreadable one.
fn summary(settings: &Settings) -> Result<Option<StoreSummary>, Failure> {
    let library = runs::open_library(settings)?;
    if library.store().is_err() {
        return Ok(None);
    }
    let sessions = library.sessions()?;
    let bytes = sessions.iter().map(|look| look.size.bytes).sum();
    let last = sessions.iter().max_by_key(|look| look.last_instant());
    let last = last.map(|look| {
        let title = look.first_run().and_then(|run| library.title(run)).unwrap_or_default();
        words(look, &title)
    });
    Ok(Some(StoreSummary { sessions: sessions.len(), bytes, last }))
}

fn words(look: &SessionOverview, title: &str) -> String {
    let words = [
        minute(look.last.as_ref()),
        look.provider.clone().unwrap_or_default(),
        project_name(look.project.as_deref()),
        cut(title, TITLE_CHARS_MAX),
    ];
    words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join("  ")
}
