//! Finds messages with secrets. They are forwarded and never recorded.

use std::collections::HashSet;

use steno_model::Lane;
use steno_model::json::RawJson;

use super::message::{Kind, Message};
use super::other;

/// Notifications of the server that later messages depend on.
const WEIGHTY_NOTICES: [&str; 3] = ["thread/started", "turn/started", "turn/completed"];

/// What is known of a message before it is recorded.
#[derive(Debug, Default)]
pub struct MessageFacts {
    /// What is recorded instead of the message, if it has secrets.
    pub remainder: Option<RawJson>,
    /// Whether later messages depend on it: messages of the client, requests, answers, and the start and end of turns.
    pub is_weighty: bool,
}

/// Knows which messages of a connection have secrets.
#[derive(Debug, Default)]
pub struct SecretFilter {
    /// Requests for secrets that have no answer yet, by direction and id.
    asked: HashSet<(Lane, String)>,
}

impl SecretFilter {
    /// Takes the next message.
    pub fn pass(&mut self, lane: Lane, bytes: &[u8]) -> MessageFacts {
        let Some(message) = std::str::from_utf8(bytes).ok().and_then(|text| Message::read(lane, text)) else {
            return MessageFacts::default();
        };
        let is_notice = message.kind == Kind::Notification && lane == Lane::FromAgent;
        let is_weighty = !is_notice || WEIGHTY_NOTICES.contains(&&*message.method);
        MessageFacts { remainder: self.remainder(&message), is_weighty }
    }

    fn remainder(&mut self, message: &Message<'_>) -> Option<RawJson> {
        let lane = message.lane;
        let is_secret = match (message.kind, message.id) {
            (Kind::Response | Kind::Error, Some(id)) => self.asked.remove(&(other(lane), id.to_owned())),
            (Kind::Response | Kind::Error, None) => false,
            (Kind::Request | Kind::Notification, id) => {
                let is_secret = Message::is_secret(&message.method);
                if let Some(id) = id.filter(|_| is_secret) {
                    self.asked.insert((lane, id.to_owned()));
                }
                is_secret
            }
        };
        is_secret.then(|| message.withheld())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secret_request_and_its_answer_are_withheld() {
        let mut withholding = SecretFilter::default();
        let mut kept = |lane, text: &str| {
            withholding.pass(lane, text.as_bytes()).remainder.map(|text| text.as_str().to_owned())
        };
        let asked = r#"{"method":"attestation/generate","id":4,"params":{"x":"secret"}}"#;
        let withheld = kept(Lane::FromAgent, asked).unwrap();
        assert_eq!(withheld, r#"{"method":"attestation/generate","id":4,"withheld":true,"bytes":64}"#);
        // The same id from the other side is another request.
        assert_eq!(kept(Lane::ToAgent, r#"{"method":"turn/start","id":4}"#), None);
        assert_eq!(kept(Lane::FromAgent, r#"{"id":4,"result":{}}"#), None);
        let answer = kept(Lane::ToAgent, r#"{"id":4,"result":{"token":"secret"}}"#).unwrap();
        assert_eq!(answer, r#"{"id":4,"withheld":true,"bytes":36}"#);
        assert_eq!(kept(Lane::ToAgent, r#"{"id":4,"result":{"token":"public"}}"#), None);
    }

    #[test]
    fn deltas_are_not_weighty() {
        let mut withholding = SecretFilter::default();
        for (lane, text, is_weighty) in [
            (Lane::ToAgent, r#"{"method":"initialized"}"#, true),
            (Lane::ToAgent, r#"{"id":0,"result":{"decision":"accept"}}"#, true),
            (Lane::FromAgent, r#"{"id":1,"result":{}}"#, true),
            (Lane::FromAgent, r#"{"method":"item/fileChange/requestApproval","id":0,"params":{}}"#, true),
            (Lane::FromAgent, r#"{"method":"turn/completed","params":{}}"#, true),
            (Lane::FromAgent, r#"{"method":"item/agentMessage/delta","params":{}}"#, false),
            (Lane::FromAgent, "no JSON", false),
        ] {
            assert_eq!(withholding.pass(lane, text.as_bytes()).is_weighty, is_weighty, "{text}");
        }
    }
}
