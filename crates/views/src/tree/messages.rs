//! Which events are messages to count: those that say something, the events of one response counted once.

use std::collections::HashSet;

use steno_model::ExchangeEvent;

use crate::fields::PayloadFields;

/// The responses that were counted.
#[derive(Clone, Default)]
pub(super) struct Messages {
    responses: HashSet<String>,
}

impl Messages {
    /// Returns how many messages an event adds: one, or none where it says nothing or goes on with a response.
    pub(super) fn added(&mut self, event: &ExchangeEvent) -> u64 {
        let fields = PayloadFields::of(event);
        if !fields.items("blocks").into_iter().any(|block| says_something(&PayloadFields::parse(block.get())))
        {
            return 0;
        }
        let response = fields.json("response").filter(|response| !response.is_null());
        // Ids are numbers where the provider has none, and each turn begins them again.
        let is_new = match response {
            Some(response) => self.responses.insert(format!("{} {}", event.path, response.as_str())),
            None => true,
        };
        u64::from(is_new)
    }
}

/// Tells whether somebody says something with a block. Results are counted as such, and a system prompt is no part of
/// the conversation.
fn says_something(block: &PayloadFields<'_>) -> bool {
    let is = |name: &str, word: &str| block.string(name).is_some_and(|text| text.is(word));
    let is_empty = |name: &str| block.string(name).is_none_or(|text| text.is_empty());
    if is("label", "system_prompt") || is("type", "tool_result") {
        return false;
    }
    let is_blank = is_empty("text") && is_empty("label");
    !(is("type", "text") && is_blank)
}
