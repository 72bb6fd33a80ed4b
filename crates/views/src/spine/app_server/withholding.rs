//! Secrets that pass over a connection: they are handed on, and never recorded.

use std::collections::HashSet;

use steno_model::Lane;
use steno_model::json::RawJson;

use super::message::{Kind, Message};
use super::other;

/// Knows which messages of a connection hold secrets.
#[derive(Debug, Default)]
pub struct Withholding {
    /// Requests for secrets that have no answer yet, by who asked.
    asked: HashSet<(Lane, String)>,
}

impl Withholding {
    /// Returns what is kept of a message, where that is not the message itself.
    pub fn kept(&mut self, lane: Lane, said: &[u8]) -> Option<RawJson> {
        let message = Message::read(lane, std::str::from_utf8(said).ok()?)?;
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
    fn a_secret_and_what_answers_it_are_withheld() {
        let mut withholding = Withholding::default();
        let mut kept =
            |lane, text: &str| withholding.kept(lane, text.as_bytes()).map(|kept| kept.as_str().to_owned());
        let asked = r#"{"method":"attestation/generate","id":4,"params":{"x":"secret"}}"#;
        let withheld = kept(Lane::FromAgent, asked).unwrap();
        assert_eq!(withheld, r#"{"method":"attestation/generate","id":4,"withheld":true,"bytes":64}"#);
        // The same number from the other side is another request.
        assert_eq!(kept(Lane::ToAgent, r#"{"method":"turn/start","id":4}"#), None);
        assert_eq!(kept(Lane::FromAgent, r#"{"id":4,"result":{}}"#), None);
        let answer = kept(Lane::ToAgent, r#"{"id":4,"result":{"token":"secret"}}"#).unwrap();
        assert_eq!(answer, r#"{"id":4,"withheld":true,"bytes":36}"#);
        assert_eq!(kept(Lane::ToAgent, r#"{"id":4,"result":{"token":"public"}}"#), None);
    }
}
