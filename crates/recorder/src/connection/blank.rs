//! Removes the messages of threads from a connection's file. Blanks of the same length replace them, so that all other
//! messages keep their offsets, which events refer to.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde::Deserialize;
use serde_json::value::RawValue;
use steno_adapters::{Source, http};
use steno_model::{Lane, RunId};

use super::direction;
use super::rules::ConnectionRules;

/// Records of a file: the offset of each, with its length.
pub(crate) type RecordRanges = BTreeMap<u64, u64>;

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

/// Replaces all messages that the rules leave out, the given records, and the requests that they answer, by blanks.
pub(crate) fn blank(bytes: &[u8], rules: &mut ConnectionRules, records: &RecordRanges) -> Vec<u8> {
    let lines: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
    let mut goes = vec![false; lines.len()];
    // Requests without an answer, and whether they are among the records.
    let mut asked: HashMap<(Lane, String), (usize, bool)> = HashMap::new();
    let mut offset = 0;
    for (at, line) in lines.iter().enumerate() {
        let is_record = records.contains_key(&offset);
        offset += line.len() as u64;
        let Some((lane, message)) = message_of(line) else { continue };
        goes[at] = rules.leaves_out(lane, message.as_bytes()) || is_record;
        let Ok(head) = serde_json::from_str::<MessageHead<'_>>(message) else { continue };
        let Some(id) = head.id.map(|id| id.get().to_owned()) else { continue };
        if head.method.is_some() {
            asked.insert((lane, id), (at, is_record));
        } else if let Some((question, is_record)) = asked.remove(&(other(lane), id)) {
            goes[at] |= is_record;
            goes[question] |= goes[at];
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

/// Replaces all records of the exchanges that belong to some runs by blanks, and the given records if they are not in a
/// recording of exchanges.
pub(crate) fn blank_exchanges(bytes: &[u8], source: &str, runs: &[RunId], records: &RecordRanges) -> Vec<u8> {
    let goes: HashSet<u64> = http::exchanges(Source::named(source), bytes)
        .into_iter()
        .filter(|(_, run)| runs.contains(run))
        .map(|(exchange, _)| exchange)
        .collect();
    let mut out = Vec::with_capacity(bytes.len());
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        let message = enveloped(line).filter(|(_, message)| {
            let head = serde_json::from_str::<RecordHead>(message).unwrap_or_default();
            head.exchange.is_some_and(|exchange| goes.contains(&exchange))
        });
        match message {
            Some((_, message)) => out.extend(blanked(line, message)),
            None => out.extend_from_slice(line),
        }
    }
    blank_bare_records(&mut out, records);
    out
}

/// Replaces the given records by blanks if they are not lines with a direction.
fn blank_bare_records(bytes: &mut [u8], records: &RecordRanges) {
    for (offset, length) in records {
        let end = offset.saturating_add(*length);
        let range =
            usize::try_from(*offset).unwrap_or(usize::MAX)..usize::try_from(end).unwrap_or(usize::MAX);
        let Some(record) = bytes.get_mut(range) else { continue };
        if serde_json::from_slice::<RawSpoolLine<'_>>(record).is_err() {
            // Newlines stay: they end other records.
            record.iter_mut().filter(|byte| **byte != b'\n').for_each(|byte| *byte = b' ');
        }
    }
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

/// Returns the direction of a line and the text of its message. A line without a direction is a message of the server.
fn message_of(line: &[u8]) -> Option<(Lane, &str)> {
    enveloped(line).or_else(|| {
        let text = std::str::from_utf8(line).ok()?.trim();
        let is_bare = serde_json::from_str::<RawSpoolLine<'_>>(text).is_err() && !text.is_empty();
        is_bare.then_some((Lane::FromAgent, text))
    })
}

/// Returns the direction of a line that has one, and the text of its message.
fn enveloped(bytes: &[u8]) -> Option<(Lane, &str)> {
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
