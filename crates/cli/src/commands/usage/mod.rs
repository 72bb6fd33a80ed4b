//! `steno usage`: counts tokens of sessions and their cost, in the store and in files that are not archived yet.

mod layout;
mod sources;
mod statusline;
mod table;

use jiff::tz::TimeZone;
use steno_library::{Library, UsageColumn, UsageFilter, UsageQuery, UsageTable};
use steno_views::{count, thousands};

use self::sources::{UsageResult, from_homes, from_paths, from_store};
use self::table::{TableStyle, outside_windows, print_table};
use super::session_filter::{agent_name, unknown_agent_hint};
use crate::args::UsageArgs;
use crate::failure::{Exit, Failure, Outcome};
use crate::id_lines::IdMarks;
use crate::index_progress::shown;
use crate::output::{Output, notice};
use crate::runs::open_store;
use crate::settings::Settings;
use crate::time_words::{now, read_time};

/// What is said about a path that does not exist, which may be meant as a session.
const PATH_HINT: &str =
    "a path is that of an agent's file or directory; `steno usage --by session` counts each session";

pub fn run(args: &UsageArgs, settings: &Settings, output: &mut Output) -> Outcome {
    if args.statusline {
        return Ok(statusline::run(settings, output));
    }
    let query = query(args)?;
    let mut library = None;
    let answer = if !args.paths.is_empty() {
        from_paths(&args.paths).map_err(|failure| {
            let are_there = args.paths.iter().all(|path| path.exists());
            if are_there { failure } else { failure.with_hint(PATH_HINT) }
        })?
    } else if args.live {
        from_homes("the store is not read (--live)")?
    } else if let Some(store) = open_store(settings)? {
        from_store(library.insert(shown(Library::new(Some(store)))), settings)?
    } else {
        from_homes(&format!("there is no store at `{}`", settings.store.value.display()))?
    };
    print(args, answer, &Question { query, settings, library }, output)
}

/// What was asked.
struct Question<'a> {
    query: UsageQuery,
    settings: &'a Settings,
    /// The store, if it was read.
    library: Option<Library>,
}

fn query(args: &UsageArgs) -> Result<UsageQuery, Failure> {
    let now = now();
    Ok(UsageQuery {
        by: args.by.iter().map(|group| group.0).collect(),
        only: UsageFilter {
            project: args.project.clone(),
            agent: args.agent.as_deref().map(agent_name),
            model: args.model.clone(),
            branch: args.branch.clone(),
        },
        since_ms: read_time(args.since.as_deref(), &now)?,
        until_ms: read_time(args.until.as_deref(), &now)?,
        zone: if args.utc { TimeZone::UTC } else { now.time_zone().clone() },
    })
}

fn print(args: &UsageArgs, answer: UsageResult, asked: &Question<'_>, output: &mut Output) -> Outcome {
    let UsageResult { usage, runs, files, sources } = answer;
    if files.is_enough {
        return Ok(Exit::Done);
    }
    let counted = usage.count();
    let mut table = UsageTable::of(&counted, &asked.query, &asked.settings.prices.prices);
    if asked.library.is_some() {
        notice(&format!("read {sources}{}", matched_words(&table, &asked.query)));
    }
    if table.rows.is_empty() {
        files.check()?;
        let message = match outside_windows(&table) {
            Some(words) => format!("no usage of Claude Code found: {words}"),
            None => no_usage_words(&asked.query, counted.records.is_empty(), &sources),
        };
        // Files that were named and are no agent's are a mistake, an empty answer is none.
        let is_mistake = files.total > 0 && files.known == 0 && runs.total == 0;
        let failure = if is_mistake { Failure::nothing(message) } else { Failure::empty(message) };
        let until = "`--until` is exclusive: to include a day, give the next day";
        let hint = unknown_agent_hint(args.agent.as_deref());
        return Err(Failure { hint: hint.or(args.until.as_ref().map(|_| until.to_owned())), ..failure });
    }
    if files.unread + files.cut > 0 {
        // Unread usage may belong to any row.
        table.mark_incomplete();
    }
    let mut marks = IdMarks::none();
    let mut ids = None;
    if let Some(library) = asked.library.as_ref().filter(|_| asked.query.by.contains(&UsageColumn::Session)) {
        marks = IdMarks::of(library)?;
        ids = Some(library.index()?);
        library.set_titles(&mut table)?;
    }
    if args.json {
        // Only rows are on stdout.
        if let Some(words) = outside_windows(&table) {
            notice(&words);
        }
        for row in &table.rows {
            output.json_line(row.json().as_str());
        }
    } else {
        if !args.no_pager {
            output.page();
        }
        let style = TableStyle {
            marks: &marks,
            ids,
            width: output.width(),
            home: home(asked.settings),
            prices: &asked.settings.prices.prices,
        };
        print_table(&table, &style, output);
    }
    files.check()?;
    if runs.damaged > 0 {
        let message = format!("could not read {} of {}", thousands(runs.damaged), count(runs.total, "run"));
        return Err(Failure::could_not(message).with_hint("`steno verify` shows what is wrong with them"));
    }
    Ok(Exit::Done)
}

/// Says that no usage was found, and where.
fn no_usage_words(query: &UsageQuery, is_nothing_there: bool, sources: &str) -> String {
    match () {
        () if is_nothing_there => format!("no usage found in {sources}"),
        () if query.only.is_empty() => format!("no usage found at that time in {sources}"),
        () => format!("no usage in {sources} matches the filters"),
    }
}

/// Returns how much of what was read counts; nothing if all of it does.
fn matched_words(table: &UsageTable, query: &UsageQuery) -> String {
    if query.only.is_empty() && query.since_ms.is_none() && query.until_ms.is_none() {
        return String::new();
    }
    let matches = if table.total.sessions == 1 { "matches" } else { "match" };
    format!("; {} {matches} the filters", count(table.total.sessions as u64, "session"))
}

/// Returns the user's home, which paths are shortened by.
fn home(settings: &Settings) -> Option<&str> {
    settings.variables.get("HOME").and_then(|home| home.to_str())
}
