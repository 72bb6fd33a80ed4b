//! `steno usage`: counts tokens of sessions in the store and in files that are not archived yet.

mod sources;
mod table;

use steno_library::Library;
use steno_session::usage::{Column, each_once, grouped, row};

use self::sources::{UsageResult, from_homes, from_paths, from_store};
use self::table::print_table;
use crate::args::UsageArgs;
use crate::failure::{Exit, Failure, Outcome};
use crate::id_lines::IdMarks;
use crate::output::Output;
use crate::runs::open_store;
use crate::settings::Settings;

pub fn run(args: &UsageArgs, settings: &Settings, output: &mut Output) -> Outcome {
    let mut marks = None;
    let answer = if !args.paths.is_empty() {
        from_paths(&args.paths)?
    } else if args.live {
        from_homes("the store is not read (--live)")?
    } else if let Some(store) = open_store(settings)? {
        let library = Library::new(Some(store));
        let names_sessions = args.by.iter().any(|group| group.column() == Column::Session);
        marks = names_sessions.then(|| IdMarks::of(&library)).transpose()?;
        from_store(&library, settings)?
    } else {
        from_homes(&format!("there is no store at `{}`", settings.store.value.display()))?
    };
    print(args, answer, &marks.unwrap_or_else(IdMarks::none), output)
}

fn print(args: &UsageArgs, answer: UsageResult, marks: &IdMarks, output: &mut Output) -> Outcome {
    let UsageResult { usage, runs, files, sources } = answer;
    if files.is_enough {
        return Ok(Exit::Done);
    }
    let rows = usage.finish();
    if rows.is_empty() {
        files.check()?;
        return Err(Failure::nothing(format!("no usage found in {sources}")));
    }
    let by = each_once(&args.by.iter().map(|group| group.column()).collect::<Vec<_>>());
    let mut groups = grouped(&rows, &by);
    if files.unread + files.cut > 0 {
        // Unread usage may belong to any row.
        for used in groups.values_mut() {
            used.is_lower_bound = true;
        }
    }
    if args.json {
        for (key, used) in &groups {
            output.json_line(row(key, used).as_str());
        }
    } else {
        print_table(&groups, &by, marks, output);
    }
    files.check()?;
    if runs.damaged > 0 {
        let message = format!("could not read {} of {} runs", runs.damaged, runs.total);
        return Err(Failure::could_not(message).with_hint("`steno verify` shows what is wrong with them"));
    }
    Ok(Exit::Done)
}
