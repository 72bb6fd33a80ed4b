//! `steno ls`: lists the sessions of the store, or its runs, after a quick look at each.

use anstyle::{AnsiColor, Style};
use steno_library::{IdIndex, Library, RunOverview, SessionOverview};
use steno_model::RunId;
use steno_model::json::{JsonString, RawJson};
use steno_views::{Lines, count, cut, visible};

use crate::args::LsArgs;
use crate::failure::{Exit, Failure, Outcome};
use crate::id_lines::{marked, minute, project_name};
use crate::output::{Output, notice, size, state_word};
use crate::recording::warn;
use crate::runs;
use crate::settings::Settings;

/// The width of the column of states.
const STATE_CHARS: usize = "completed".len();
/// The width of the columns before the title.
const NARROW_CHARS: usize = RunId::LEN + 2 + STATE_CHARS + 2 + 16 + 2;
const SIZES_CHARS: usize = 12 + 2 + 8 + 2;
/// The minimum width of a terminal for sizes, and the minimum length of a title.
const WIDTH_FOR_SIZES: usize = 120;
const TITLE_CHARS_MIN: usize = 12;
/// The length of a title if the width of the terminal is not known.
const TITLE_CHARS_MAX: usize = 100;

pub fn run(args: &LsArgs, settings: &Settings, output: &mut Output) -> Outcome {
    let library = runs::need_library(settings)?;
    let looks = library.overviews()?;
    for look in looks.values() {
        if let Some(why) = &look.damage {
            let run = look.head.run;
            let warning = format!("run {run} is {}: {why}", look.state);
            tracing::warn!("{}; `steno verify {run}` checks the whole run", visible(&warning, Lines::Escape));
        }
    }
    if args.runs {
        list_runs(&library, args, output)?;
    } else {
        list_sessions(&library, args, output)?;
    }
    output.flush();
    notice_sessions_without_events(&library);
    if looks.is_empty() {
        return Err(Failure::nothing(format!(
            "the store `{}` has no runs yet",
            settings.store.value.display()
        ))
        .with_hint("`steno up` archives agents' sessions, `steno record` records events"));
    }
    Ok(Exit::Done)
}

fn list_sessions(library: &Library, args: &LsArgs, output: &mut Output) -> Result<(), Failure> {
    let index = library.index()?;
    for look in library.sessions()? {
        let title = look.first_run().and_then(|run| library.title(run));
        if args.json {
            output.json_line(session_json(&look, title.as_deref()).as_str());
        } else {
            output.line(&session_line(&look, title.as_deref(), index, output.width()));
        }
        if output.is_broken() {
            break;
        }
    }
    Ok(())
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

/// Prints how many sessions have stored files but no events. Errors are warnings.
fn notice_sessions_without_events(library: &Library) {
    let counts = match library.sessions_without_events() {
        Ok(counts) => counts,
        Err(error) => return warn(&Failure::from(error).message),
    };
    let total: u64 = counts.values().sum();
    if total == 0 {
        return;
    }
    let by: Vec<String> = counts.iter().map(|(name, count)| format!("{count} {name}")).collect();
    notice(&format!(
        "not listed: {} ({}) with stored files but no events; `steno du --by session --all` lists \
         all sessions, `steno restore SESSION` restores the files of one",
        count(total, "session"),
        by.join(", ")
    ));
}

fn session_json(look: &SessionOverview, title: Option<&str>) -> RawJson {
    RawJson::object(|object| {
        let mut text = |name: &'static str, text: Option<&str>| {
            let json = text.map_or_else(RawJson::null, |text| JsonString::from(text).to_json());
            object.json(name, &json);
        };
        let time = |time: &Option<steno_model::Timestamp>| time.as_ref().map(ToString::to_string);
        text("run_id", Some(&look.session.id.to_string()));
        text("parent_run_id", None);
        text("session_run_id", None);
        text("provider", look.provider.as_deref());
        text("name", look.name.as_deref());
        text("kind", look.kind.as_deref());
        text("title", title);
        text("project", look.project.as_deref());
        text("started_at", time(&look.started).as_deref());
        text("ended_at", time(&look.ended).as_deref());
        text("last_at", time(&look.last).as_deref());
        text("state", Some(look.state));
        for (size, [runs, events, bytes]) in [
            (look.size, ["runs", "events", "bytes"]),
            (look.size_below, ["runs_below", "events_below", "bytes_below"]),
        ] {
            object.number(runs, size.runs);
            object.number(events, size.events);
            object.number(bytes, size.bytes);
        }
    })
}

fn session_line(
    look: &SessionOverview,
    title: Option<&str>,
    index: &IdIndex<RunId>,
    width: Option<usize>,
) -> String {
    let id = look.session.id;
    let mut line =
        format!("{}  {}", marked(&id.to_string(), index.shortest(&id.to_string(), &id)), state(look.state));
    if look.started.is_none() {
        return line.trim_end().to_owned();
    }
    let dim = Style::new().dimmed();
    line.push_str(&format!("  {dim}{:<16}{dim:#}  ", minute(look.started.as_ref())));
    let has_sizes = width.is_none_or(|width| width >= WIDTH_FOR_SIZES);
    if has_sizes {
        line.push_str(&format!("{:>12}  {:>8}  ", count(look.size.events, "event"), size(look.size.bytes)));
    }
    let used = NARROW_CHARS + if has_sizes { SIZES_CHARS } else { 0 };
    line.push_str(&cut_to(&session_words(look, title), width, used));
    line.trim_end().to_owned()
}

/// Describes a session: agent, project, number of runs, and title.
fn session_words(look: &SessionOverview, title: Option<&str>) -> String {
    let agent = look.name.as_deref().or(look.provider.as_deref()).unwrap_or_default().to_owned();
    let runs = match (look.size.runs, look.size_below.runs) {
        (0 | 1, 0) => String::new(),
        (runs, 0) => format!("({runs} runs)"),
        (0 | 1, below) => format!("({})", count(below, "child run")),
        (runs, below) => format!("({runs} runs, {})", count(below, "child run")),
    };
    let words = [agent, project_name(look.project.as_deref()), runs, title.unwrap_or_default().to_owned()];
    words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join("  ")
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
    let width = width.or(Some(usize::MAX));
    line.push_str(&cut_to(&words, width, NARROW_CHARS + SIZES_CHARS));
    line.trim_end().to_owned()
}

/// Cuts words so that their line fits.
fn cut_to(words: &str, width: Option<usize>, used: usize) -> String {
    // One column for the ellipsis.
    let chars = width.map_or(TITLE_CHARS_MAX, |width| width.saturating_sub(used + 1).max(TITLE_CHARS_MIN));
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

#[cfg(test)]
mod tests {
    use steno_library::SessionRuns;
    use steno_model::Timestamp;

    use super::*;

    #[track_caller]
    fn check(title_chars: usize, width: Option<usize>, want_chars: usize) {
        let run = RunId::parse("550e8400-e29b-41d4-a716-446655440000").unwrap();
        let session = SessionRuns { id: run, runs: vec![run], below: Vec::new() };
        let look = SessionOverview {
            started: Timestamp::parse("2026-06-08T08:14:42.123Z").ok(),
            ..SessionOverview::of(session, &std::collections::BTreeMap::new())
        };
        let index = IdIndex::new([(run.to_string(), run)]);
        let row = session_line(&look, Some(&"ä".repeat(title_chars)), &index, width);
        let styles = [Style::new().dimmed(), Style::new().bold()];
        let plain = styles.iter().fold(row, |row, style| {
            row.replace(&style.render().to_string(), "").replace(&style.render_reset().to_string(), "")
        });
        assert_eq!(plain.chars().count(), want_chars, "{plain}");
    }

    #[test]
    fn line_fits_the_width_and_long_titles_are_cut() {
        check(200, None, NARROW_CHARS + SIZES_CHARS + TITLE_CHARS_MAX + 1);
        check(30, Some(130), NARROW_CHARS + SIZES_CHARS + 30);
        check(200, Some(130), 130);
        // Too narrow for sizes, which leaves room for the title.
        check(200, Some(100), 100);
        check(200, Some(70), NARROW_CHARS + TITLE_CHARS_MIN + 1);
    }
}
