//! Reads the settings of a thread from the messages of a connection, with the names of a session file.

use steno_model::json::RawJson;

use super::message::Message;
use crate::codex::wire::ThreadSettings;
use crate::wire::{RawField as _, object};

/// The latest settings of a thread.
#[derive(Clone, Debug, Default)]
pub(super) struct Settings(Vec<(&'static str, RawJson)>);

impl Settings {
    /// Takes the settings in a message: an answer to the start of a thread, the start of a turn, or a notification of new
    /// settings.
    pub(super) fn take(&mut self, message: &Message<'_>) {
        for object in [message.raw_result.and_then(object), message.raw_params.and_then(object)] {
            self.overlay(&object.unwrap_or_default());
        }
        self.overlay(&message.params.settings.unwrap_or_default());
    }

    fn overlay(&mut self, settings: &ThreadSettings<'_>) {
        for (name, value) in [
            ("cwd", settings.cwd),
            ("approval_policy", settings.approval_policy),
            ("sandbox_policy", settings.sandbox),
            ("sandbox_policy", settings.sandbox_policy),
            ("model", settings.model),
            ("model_provider", settings.model_provider),
            ("effort", settings.effort),
            ("effort", settings.reasoning_effort),
            ("collaboration_mode", settings.collaboration_mode),
        ] {
            let Some(value) = value.json() else { continue };
            match self.0.iter_mut().find(|(known, _)| *known == name) {
                Some((_, known)) => *known = value,
                None => self.0.push((name, value)),
            }
        }
    }

    /// Returns the settings as the context of a turn.
    pub(super) fn context(&self) -> RawJson {
        RawJson::object(|object| self.0.iter().for_each(|(name, value)| object.json(name, value)))
    }
}
