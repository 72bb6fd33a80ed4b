//! Removes the messages of threads from a connection's file. Blanks of the same length replace them, so that all other
//! messages keep their offsets, which events refer to.

use std::collections::{HashMap, HashSet};

use serde::Deserialize;
use serde_json::value::RawValue;
use steno_adapters::{Source, http};
use steno_model::{Lane, RunId};

use super::direction;
use super::rules::ConnectionRules;

/// The fields of a line that matter here.
#[derive(Deserialize)]
struct RawSpoolLine<'a> {
    dir: String,
    #[serde(borrow)]
    msg: Option<&'a RawValue>,
    text: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct MessageHead<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    method: Option<String>,
}

/// Replaces all messages that the rules leave out, and the requests that they answer, by blanks.
pub(crate) fn blank(bytes: &[u8], rules: &mut ConnectionRules) -> Vec<u8> {
    let lines: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
    let mut goes = vec![false; lines.len()];
    let mut asked: HashMap<(Lane, String), usize> = HashMap::new();
    for (at, line) in lines.iter().enumerate() {
        let Some((lane, message)) = message_of(line) else { continue };
        goes[at] = rules.leaves_out(lane, message.as_bytes());
        let Ok(head) = serde_json::from_str::<MessageHead<'_>>(message) else { continue };
        let Some(id) = head.id.map(|id| id.get().to_owned()) else { continue };
        if head.method.is_some() {
            asked.insert((lane, id), at);
        } else if goes[at]
            && let Some(question) = asked.remove(&(other(lane), id))
        {
            goes[question] = true;
        }
    }
    let mut out = Vec::with_capacity(bytes.len());
    for (line, goes) in lines.into_iter().zip(goes) {
        match message_of(line).filter(|_| goes) {
            Some((_, message)) => out.extend(blanked(line, message)),
            None => out.extend_from_slice(line),
        }
    }
    out
}

/// Replaces all records of the exchanges that belong to some runs by blanks.
pub(crate) fn blank_exchanges(bytes: &[u8], source: &str, runs: &[RunId]) -> Vec<u8> {
    let goes: HashSet<u64> = http::exchanges(Source::named(source), bytes)
        .into_iter()
        .filter(|(_, run)| runs.contains(run))
        .map(|(exchange, _)| exchange)
        .collect();
    let mut out = Vec::with_capacity(bytes.len());
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        let message = message_of(line).filter(|(_, message)| {
            let head = serde_json::from_str::<RecordHead>(message).unwrap_or_default();
            head.exchange.is_some_and(|exchange| goes.contains(&exchange))
        });
        match message {
            Some((_, message)) => out.extend(blanked(line, message)),
            None => out.extend_from_slice(line),
        }
    }
    out
}

/// The field of a record that names its exchange.
#[derive(Default, Deserialize)]
#[serde(default)]
struct RecordHead {
    exchange: Option<u64>,
}

fn other(lane: Lane) -> Lane {
    match lane {
        Lane::ToAgent => Lane::FromAgent,
        Lane::FromAgent => Lane::ToAgent,
    }
}

/// Returns the direction of a line and the text of its message.
fn message_of(bytes: &[u8]) -> Option<(Lane, &str)> {
    let RawSpoolLine { dir, msg, text } = serde_json::from_slice(bytes).ok()?;
    let lane = [Lane::ToAgent, Lane::FromAgent].into_iter().find(|lane| direction(*lane) == dir)?;
    Some((lane, msg.or(text)?.get()))
}

/// Replaces a message by an empty one, padded to the same length.
fn blanked(line: &[u8], message: &str) -> Vec<u8> {
    let nothing = if message.starts_with('"') { "\"\"" } else { "{}" };
    let text = String::from_utf8_lossy(line);
    text.replacen(message, &format!("{nothing:message_len$}", message_len = message.len()), 1).into_bytes()
}
