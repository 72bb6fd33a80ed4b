//! Connections in `steno verify`: those that are being recorded or wait to be archived.

use anstyle::AnsiColor;
use serde_json::json;
use steno_journal::Store;
use steno_model::with_causes;
use steno_recorder::connection::{ConnectionCheck, RecordedConnection, connections};
use steno_views::{Lines, count, visible};

use super::CheckCounts;
use crate::connections::failure;
use crate::failure::Failure;
use crate::output::{Output, damaged, size};

/// Checks the files of all connections that the vault does not have yet.
pub fn verify_connections(store: &Store, as_json: bool, output: &mut Output) -> Result<CheckCounts, Failure> {
    let mut tally = CheckCounts::default();
    for spooled in connections(store).map_err(failure)? {
        let checked =
            spooled.check(store).map_err(|error| with_causes(&error)).and_then(|check| match check.damage {
                Some((offset, why)) => Err(format!("byte {offset}: {why}")),
                None => Ok(check),
            });
        tally.add(checked.is_ok());
        if as_json {
            output.json_line(&line_json(spooled, &checked));
        } else {
            output.line(&line(spooled, &checked));
        }
    }
    Ok(tally)
}

fn line(spooled: RecordedConnection, checked: &Result<ConnectionCheck, String>) -> String {
    let id = spooled.id;
    match checked {
        Ok(check) => {
            let ok = AnsiColor::Green.on_default();
            let mut line = format!(
                "{ok}ok{ok:#}       connection {id}  {}, {}",
                count(check.messages, "message"),
                size(check.bytes)
            );
            if check.torn_bytes > 0 {
                line.push_str(&format!(", and an incomplete last message of {}", size(check.torn_bytes)));
            }
            line.push_str(if check.is_held {
                ", being recorded"
            } else {
                "; left by a crash, `steno import` archives it"
            });
            line
        }
        Err(words) => {
            format!("{}  connection {id}  {}", damaged(), visible(words, Lines::Escape))
        }
    }
}

fn line_json(spooled: RecordedConnection, checked: &Result<ConnectionCheck, String>) -> String {
    let connection = spooled.id.to_string();
    match checked {
        Ok(check) => json!({
            "kind": "connection",
            "connection": connection,
            "ok": true,
            "state": if check.is_held { "recording" } else { "waiting" },
            "messages": check.messages,
            "bytes": check.bytes,
            "torn_bytes": check.torn_bytes,
        }),
        Err(words) => {
            json!({"kind": "connection", "connection": connection, "ok": false, "state": "damaged", "error": words})
        }
    }
    .to_string()
}
