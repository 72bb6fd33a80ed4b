//! `steno index`: how the search index is, and a new one on request.

use std::time::Instant;

use serde_json::json;
use steno_library::{IndexStatus, Library};
use steno_views::count;

use crate::args::{IndexArgs, IndexCommand};
use crate::failure::{Exit, Outcome};
use crate::output::{Output, notice, size};
use crate::runs;
use crate::settings::Settings;

pub fn run(args: &IndexArgs, settings: &Settings, output: &mut Output) -> Outcome {
    let library = runs::need_library(settings)?;
    if let Some(IndexCommand::Rebuild) = args.command {
        let begun = Instant::now();
        library.rebuild_index()?;
        notice(&format!("made again in {:.1} s", begun.elapsed().as_secs_f64()));
    }
    print(&library, args, output)
}

fn print(library: &Library, args: &IndexArgs, output: &mut Output) -> Outcome {
    let status = library.index_status()?;
    if args.json {
        let object = json!({
            "path": status.path.as_ref().map(|path| path.display().to_string()),
            "bytes": status.bytes,
            "usable": status.is_usable,
            "sessions": status.sessions,
            "texts": status.texts,
            "runs_behind": status.runs_behind,
        });
        output.json_line(&object.to_string());
        return Ok(Exit::Done);
    }
    for line in lines(&status) {
        output.line(&line);
    }
    Ok(Exit::Done)
}

fn lines(status: &IndexStatus) -> Vec<String> {
    let path = status.path.as_ref().map_or_else(|| "in memory".to_owned(), |path| path.display().to_string());
    if !status.is_usable {
        return vec![format!("index     none; the next search makes `{path}`")];
    }
    let behind = match status.runs_behind {
        0 => "up to date".to_owned(),
        runs => format!("{} behind; the next search reads the rest", count(runs, "run")),
    };
    vec![
        format!("index     {path}"),
        format!("size      {}", size(status.bytes)),
        format!("has       {} of {}", count(status.texts, "text"), count(status.sessions, "session")),
        format!("state     {behind}"),
    ]
}
