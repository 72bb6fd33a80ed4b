//! `steno config`: shows the settings and where each comes from.

use serde_json::{Value, json};
use steno_views::{Lines, columns_of, padding, visible};

use crate::args::ConfigArgs;
use crate::failure::Exit;
use crate::output::Output;
use crate::settings::{KNOWN_KEYS, Settings};

pub fn run(args: &ConfigArgs, settings: &Settings, output: &mut Output) -> Exit {
    let rows = settings.rows();
    debug_assert_eq!(
        rows.iter().map(|(key, ..)| *key).collect::<Vec<_>>(),
        KNOWN_KEYS,
        "every key of the file is shown"
    );
    if args.json {
        for (key, value, origin) in rows {
            output.json_line(&json!({"key": key, "value": value, "origin": origin}).to_string());
        }
        return Exit::Done;
    }
    let shown = |(key, value, origin): (&'static str, Value, String)| {
        let value = in_words(&value);
        (key, visible(&value, Lines::Escape).into_owned(), visible(&origin, Lines::Escape).into_owned())
    };
    let rows: Vec<_> = rows.into_iter().map(shown).collect();
    let key_width = rows.iter().map(|(key, ..)| key.len()).max().unwrap_or(0);
    let width = rows.iter().map(|(_, value, _)| columns_of(value)).max().unwrap_or(0);
    for (key, value, origin) in rows {
        output.line(&format!("{key:<key_width$}  {value}{}  {origin}", padding(&value, width)));
    }
    let note = if settings.file_found { "" } else { " (does not exist)" };
    let file = settings.file.as_ref().map_or("none".to_owned(), |file| file.display().to_string());
    output.line(&format!("\nconfig file: {}{note}", visible(&file, Lines::Escape)));
    Exit::Done
}

/// Returns a value as people write it.
fn in_words(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) if items.is_empty() => "-".to_owned(),
        Value::Array(items) => items.iter().map(in_words).collect::<Vec<_>>().join(", "),
        Value::Null => "-".to_owned(),
        Value::Bool(_) | Value::Number(_) | Value::Object(_) => value.to_string(),
    }
}
