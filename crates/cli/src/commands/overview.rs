//! `steno` without a command: shows the current state, and what to try next; on a terminal, sessions to choose from.

use std::collections::HashSet;

use steno_disk::StorePath;
use steno_index::{SessionFilter, SessionRow};
use steno_library::{Library, ListFilter};
use steno_model::RunId;
use steno_session::Content;
use steno_views::digest::SessionDigest;
use steno_views::{Lines, columns_of, count, cut, padding, visible};

use super::doctor::{Examination, Severity, examine};
use super::picker::{self, Choice, Picker};
use super::show;
use crate::args::ShowArgs;
use crate::failure::{Exit, Failure, Outcome};
use crate::id_lines::{minute, project_name};
use crate::output::{Output, notice, size};
use crate::resume::resume_again;
use crate::runs;
use crate::settings::Settings;
use crate::time_words::now;

/// The maximum length of a title.
const TITLE_CHARS_MAX: usize = 60;

/// A summary of the store.
struct StoreSummary {
    sessions: usize,
    bytes: u64,
    last: Option<String>,
}

pub fn run(settings: &Settings, output: &mut Output) -> Outcome {
    let examination = examine(settings);
    let summary = summary(settings);
    let lines = state_lines(&examination, &summary, settings);
    let is_empty = summary.ok().flatten().is_none_or(|summary| summary.sessions == 0);
    if !is_empty && picker::is_possible() {
        match pick(&lines, settings) {
            Ok((Some(run), library)) => return print_resume(run, &library, settings, output),
            Ok((None, _)) => {}
            // The state can be shown without it.
            Err(failure) => tracing::debug!("no picker: {}", failure.message),
        }
    }
    for line in &lines {
        output.line(line);
    }
    output.line("");
    let commands = next(is_empty).map(|(command, does)| (command.to_owned() + &settings.store_flags(), does));
    let columns = commands.iter().map(|(command, _)| columns_of(command)).max().unwrap_or(0);
    for (command, does) in &commands {
        let (padding, command) = (padding(command, columns), visible(command, Lines::Escape));
        output.line(&format!("{command}{padding}  {does}"));
    }
    output.line("\n`steno help` lists all commands, `steno up --demo` uses sample sessions");
    Ok(Exit::Done)
}

/// Lets the user choose and read sessions. Returns the one to resume; `None` if the user leaves.
fn pick(head: &[String], settings: &Settings) -> Result<(Option<RunId>, Library), Failure> {
    let library = runs::need_library(settings)?;
    let mut picker = Picker::open(&library, head, settings)?;
    let wanted = loop {
        match picker.choose()? {
            Choice::Read(run) if read(run, settings)? => {}
            Choice::Read(_) | Choice::Leave => break None,
            Choice::Resume(run) => break Some(run),
        }
    };
    drop(picker);
    Ok((wanted, library))
}

/// Shows a session until the user has read it. False if the user does not want to go back to the list.
fn read(run: RunId, settings: &Settings) -> Result<bool, Failure> {
    let mut page = Output::new(settings.color.value);
    let shown = show::run(&ShowArgs::of(run), settings, &mut page);
    let has_pager = page.finish_page();
    if let Err(failure) = &shown {
        crate::report(failure);
    }
    if has_pager && shown.is_ok() {
        return Ok(true);
    }
    // The list would hide what was printed.
    notice("");
    notice("press a key to return to the list, Esc to leave");
    picker::wait_for_key()
}

/// Prints the command that resumes a session in its agent.
fn print_resume(run: RunId, library: &Library, settings: &Settings, output: &mut Output) -> Outcome {
    let Some(command) = resume_again(&digest(run, library)?, library, settings) else {
        return Err(Failure::could_not(format!("no agent can resume session {run}"))
            .with_hint(format!("`steno show {run}{}` shows it", settings.store_flags())));
    };
    output.line(&visible(&command, Lines::Escape));
    Ok(Exit::Done)
}

/// Returns the digest of a session. The index does not have the agents' own names of sessions, but it has what stands before
/// damage.
fn digest(run: RunId, library: &Library) -> Result<SessionDigest, Failure> {
    let error = match library.session(run, Content::ForReceipts) {
        Ok(session) => return Ok(SessionDigest::of(&session)),
        Err(error) => error,
    };
    let sessions = SessionFilter { sessions: Some(HashSet::from([run])), ..SessionFilter::default() };
    let listed = library.list(&ListFilter { sessions, ..ListFilter::default() }, now().timestamp())?;
    Ok(listed.into_iter().find_map(|session| session.row).ok_or(error)?.digest)
}

/// Returns the state in at most five lines.
fn state_lines(
    examination: &Examination,
    summary: &Result<Option<StoreSummary>, Failure>,
    settings: &Settings,
) -> Vec<String> {
    let store = settings.store.value.display().to_string();
    let sessions = match summary {
        Err(_) => "the store cannot be read: run `steno doctor`".to_owned(),
        Ok(Some(summary)) => {
            let sessions = count(summary.sessions as u64, "session");
            let gone = examination.sessions_gone();
            let gone = gone.map(|gone| format!("; the agents deleted or rewrote {gone}: `steno ls --gone`"));
            format!("{sessions} in {} of transcripts{}", size(summary.bytes), gone.unwrap_or_default())
        }
        Ok(None) => "nothing is archived yet".to_owned(),
    };
    let last = summary.as_ref().ok().and_then(|summary| summary.as_ref()?.last.clone());
    let lines = [
        ("agents", Some(agents(examination))),
        ("store", Some(store)),
        ("sessions", Some(sessions)),
        ("last", last),
        ("problems", Some(problems(examination))),
    ];
    let line = |(name, words): (&str, Option<String>)| {
        Some(format!("{name:<10} {}", visible(&words?, Lines::Escape)).trim_end().to_owned())
    };
    lines.into_iter().filter_map(line).collect()
}

fn agents(examination: &Examination) -> String {
    let agents = examination.agents();
    let follows = match () {
        () if examination.is_paused() => "recording is paused: `steno resume` continues it",
        () if examination.is_followed() => "followed by `steno up`",
        () => "not followed",
    };
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
        (0, _) => return "none; `steno doctor` has advice".to_owned(),
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
    let bytes = library.store()?.disk().size_of_files(&StorePath::transcripts())?;
    let sessions = library.list(&ListFilter::default(), now().timestamp())?;
    let last = sessions.iter().find_map(|session| session.row.as_ref()).map(words);
    Ok(Some(StoreSummary { sessions: sessions.len(), bytes, last }))
}

fn words(row: &SessionRow) -> String {
    let digest = &row.digest;
    let words = [
        minute(digest.last_at.as_ref()),
        digest.provider.clone().unwrap_or_default(),
        project_name(row.project.as_deref()),
        cut(digest.title.as_deref().unwrap_or_default(), TITLE_CHARS_MAX),
    ];
    words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join("  ")
}
