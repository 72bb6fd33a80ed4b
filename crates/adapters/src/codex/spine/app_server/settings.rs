//! What is in force in a thread, put together from what a connection says of it, in the words of a session file.

use steno_model::json::RawJson;

use super::super::fields::PayloadFields;
use super::message::Message;

/// What a setting is called on the wire, and in a session file.
const NAMES: [(&str, &str); 9] = [
    ("cwd", "cwd"),
    ("approvalPolicy", "approval_policy"),
    ("sandbox", "sandbox_policy"),
    ("sandboxPolicy", "sandbox_policy"),
    ("model", "model"),
    ("modelProvider", "model_provider"),
    ("effort", "effort"),
    ("reasoningEffort", "effort"),
    ("collaborationMode", "collaboration_mode"),
];

/// The settings of a thread as they stand.
#[derive(Clone, Debug, Default)]
pub(super) struct Settings(Vec<(&'static str, RawJson)>);

impl Settings {
    /// Takes in what a message says: the answer to a thread's start, the start of a turn, a notice of new settings.
    pub(super) fn take(&mut self, message: &Message<'_>) {
        self.overlay(&message.result);
        self.overlay(&message.params);
        self.overlay(&message.params.object("threadSettings"));
    }

    fn overlay(&mut self, said: &PayloadFields<'_>) {
        for (wire, name) in NAMES {
            let Some(value) = said.json(wire).filter(|value| !value.is_null()) else { continue };
            match self.0.iter_mut().find(|(known, _)| *known == name) {
                Some((_, known)) => *known = value,
                None => self.0.push((name, value)),
            }
        }
    }

    /// Returns them as the context of a turn.
    pub(super) fn context(&self) -> RawJson {
        RawJson::object(|object| self.0.iter().for_each(|(name, value)| object.json(name, value)))
    }
}
