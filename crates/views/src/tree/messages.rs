//! Which events are messages to count: those that say something, all events of one response counted once.

use std::collections::HashSet;

use steno_model::ExchangeEvent;

use crate::fields::PayloadFields;

/// What has been said so far, as far as it tells whether more of it is a new message.
#[derive(Clone, Default)]
pub(super) struct Messages {
    /// The responses that were counted, each with its place: where the provider has no ids, they are numbers that
    /// begin again elsewhere.
    responses: HashSet<String>,
    /// The message that goes on when more of the model's words come: after a result or a prompt none does.
    speaking: Option<Speaking>,
}

#[derive(Clone)]
struct Speaking {
    place: String,
    has_response: bool,
}

impl Messages {
    /// Returns how many messages an event of the user's adds.
    pub(super) fn user(&mut self, event: &ExchangeEvent) -> u64 {
        self.speaking = None;
        u64::from(says_something(&PayloadFields::of(event)))
    }

    /// Returns how many messages an event of the model's adds: none where it goes on with the last one, or reports
    /// usage alone.
    pub(super) fn assistant(&mut self, event: &ExchangeEvent) -> u64 {
        let fields = PayloadFields::of(event);
        let place = format!("{}#{}", event.path, event.iteration);
        let response = fields.json("response").filter(|response| !response.is_null());
        let response = response.map(|response| format!("{place} {}", response.as_str()));
        let is_here = |said: &&Speaking| said.place == place && (response.is_none() || !said.has_response);
        let last = self.speaking.as_ref().filter(is_here);
        let is_known = response.as_ref().is_some_and(|response| self.responses.contains(response));
        let goes_on = is_known || last.is_some();
        let has_response = response.is_some() || last.is_some_and(|last| last.has_response);
        if fields.items("blocks").is_empty() {
            // Usage that comes apart names the response that it was for; what comes next is another one.
            self.responses.extend(response.filter(|_| goes_on));
            self.speaking = None;
            return 0;
        }
        if !says_something(&fields) {
            return 0;
        }
        self.responses.extend(response);
        self.speaking = Some(Speaking { place, has_response });
        u64::from(!goes_on)
    }

    /// Notes that a call was answered.
    pub(super) fn answered(&mut self) {
        self.speaking = None;
    }
}

/// Tells whether a message says something.
fn says_something(message: &PayloadFields<'_>) -> bool {
    message.items("blocks").into_iter().any(|block| block_says_something(&PayloadFields::parse(block.get())))
}

/// Tells whether somebody says something with a block. Results are counted as such, and a system prompt is no part of
/// the conversation.
fn block_says_something(block: &PayloadFields<'_>) -> bool {
    let is = |name: &str, word: &str| block.string(name).is_some_and(|text| text.is(word));
    let is_empty = |name: &str| block.string(name).is_none_or(|text| text.is_empty());
    if is("label", "system_prompt") || is("type", "tool_result") {
        return false;
    }
    let is_blank = is_empty("text") && is_empty("label");
    !(is("type", "text") && is_blank)
}
