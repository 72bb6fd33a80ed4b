//! The items that the model was shown. A response item adds one; a compaction replaces all.

use serde_json::value::RawValue;
use steno_model::json::RawJson;

/// The current history of a thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    items: Vec<RawJson>,
    /// For each turn of the user: how many items there were when it began.
    turns: Vec<usize>,
    /// Why the beginning of the history is missing, if it is.
    missing: Option<String>,
}

impl History {
    pub(super) fn push(&mut self, item: &RawValue) {
        self.items.push(RawJson::from_raw(item));
    }

    /// Notes that a turn of the user begins here.
    pub(super) fn begin_turn(&mut self) {
        self.turns.push(self.items.len());
    }

    /// Replaces all items, as a compaction does.
    pub(super) fn replace(&mut self, items: &[&RawValue]) {
        self.items.clear();
        self.turns.clear();
        self.missing = None;
        for item in items {
            self.push(item);
        }
    }

    /// Removes the last turns of the user.
    pub(super) fn roll_back(&mut self, turns: usize) {
        let keep = self.turns.len().saturating_sub(turns);
        if let Some(len) = self.turns.get(keep).copied() {
            self.items.truncate(len);
        }
        self.turns.truncate(keep);
    }

    /// Notes that the items before the first one are not known.
    pub(super) fn lacks(&mut self, why: String) {
        self.missing = Some(why);
    }

    pub(super) fn missing(&self) -> Option<&str> {
        self.missing.as_deref()
    }

    /// Returns the items as a JSON array.
    pub(super) fn to_json(&self) -> RawJson {
        RawJson::array(self.items.iter().cloned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).expect("JSON")
    }

    #[test]
    fn rollback_removes_turns_and_compaction_replaces_history() {
        let mut history = History::default();
        for (begins, item) in [(false, "0"), (true, "1"), (false, "2"), (true, "3"), (true, "4")] {
            if begins {
                history.begin_turn();
            }
            history.push(&raw(item));
        }
        history.roll_back(2);
        assert_eq!(history.to_json().as_str(), "[0,1,2]");
        history.roll_back(7);
        assert_eq!(history.to_json().as_str(), "[0]");
        history.lacks("the beginning".to_owned());
        history.replace(&[&raw("{\"a\": 1}")]);
        assert_eq!((history.to_json().as_str(), history.missing()), ("[{\"a\": 1}]", None));
        history.roll_back(1);
        assert_eq!(
            history.to_json().as_str(),
            "[{\"a\": 1}]",
            "nothing is taken from what a compaction left"
        );
    }
}
