//! What the model has been shown, item by item: pushed by each response item, replaced by a compaction.

use serde_json::value::RawValue;
use steno_model::json::RawJson;

/// The history of a thread as it stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    items: Vec<RawJson>,
    /// How many items there were when each turn began that a user has begun.
    turns: Vec<usize>,
    /// Why it does not begin with the thread's beginning.
    missing: Option<String>,
}

impl History {
    pub(super) fn push(&mut self, item: &RawValue) {
        self.items.push(RawJson::from_raw(item));
    }

    /// Takes note that a user begins a turn here.
    pub(super) fn begin_turn(&mut self) {
        self.turns.push(self.items.len());
    }

    /// Puts other items in its place, as a compaction does.
    pub(super) fn replace(&mut self, items: &[&RawValue]) {
        self.items.clear();
        self.turns.clear();
        self.missing = None;
        for item in items {
            self.push(item);
        }
    }

    /// Takes the last turns away that a user has begun.
    pub(super) fn roll_back(&mut self, turns: usize) {
        let keep = self.turns.len().saturating_sub(turns);
        if let Some(len) = self.turns.get(keep).copied() {
            self.items.truncate(len);
        }
        self.turns.truncate(keep);
    }

    /// Says that what came before its first item is not known.
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
