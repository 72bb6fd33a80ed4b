//! Takes the messages of threads out of the file of a connection. Blanks take their place, so that all others keep theirs:
//! events of other threads say at which byte their messages stand.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::value::RawValue;
use steno_model::Lane;

use super::direction;
use super::rules::ConnectionRules;

/// A line of the file, as far as it matters here.
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

/// Puts blanks in the place of all messages that rules leave out, and of the requests that these answer.
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

fn other(lane: Lane) -> Lane {
    match lane {
        Lane::ToAgent => Lane::FromAgent,
        Lane::FromAgent => Lane::ToAgent,
    }
}

/// Returns the direction of a line and the text of what was said.
fn message_of(bytes: &[u8]) -> Option<(Lane, &str)> {
    let RawSpoolLine { dir, msg, text } = serde_json::from_slice(bytes).ok()?;
    let lane = [Lane::ToAgent, Lane::FromAgent].into_iter().find(|lane| direction(*lane) == dir)?;
    Some((lane, msg.or(text)?.get()))
}

/// Replaces what was said by nothing of the same length.
fn blanked(line: &[u8], message: &str) -> Vec<u8> {
    let nothing = if message.starts_with('"') { "\"\"" } else { "{}" };
    let text = String::from_utf8_lossy(line);
    text.replacen(message, &format!("{nothing:message_len$}", message_len = message.len()), 1).into_bytes()
}
