//! `steno config`: shows the settings and where each comes from.

use serde_json::json;
use steno_views::{Lines, visible};

use crate::args::ConfigArgs;
use crate::failure::Exit;
use crate::output::Output;
use crate::settings::{KNOWN_KEYS, Settings};

pub fn run(args: &ConfigArgs, settings: &Settings, output: &mut Output) -> Exit {
    let rows = settings.rows();
    debug_assert_eq!(rows.each_ref().map(|(key, ..)| *key), KNOWN_KEYS, "every key of the file is shown");
    if args.json {
        for (key, value, origin) in rows {
            output.json_line(&json!({"key": key, "value": value, "origin": origin}).to_string());
        }
        return Exit::Done;
    }
    let rows = rows.map(|(key, value, origin)| {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        (key, visible(&value, Lines::Escape).into_owned(), visible(&origin, Lines::Escape).into_owned())
    });
    let width = rows.iter().map(|(_, value, _)| value.chars().count()).max().unwrap_or(0);
    for (key, value, origin) in rows {
        output.line(&format!("{key:<10} {value:<width$}  {origin}"));
    }
    let found = if settings.file_found { "" } else { " (not there)" };
    let file = settings.file.as_ref().map_or("none".to_owned(), |file| file.display().to_string());
    output.line(&format!("\nconfig file: {}{found}", visible(&file, Lines::Escape)));
    Exit::Done
}
