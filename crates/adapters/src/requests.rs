//! Requests that one side of a connection has made, until the other side answers them.

use std::collections::{HashMap, VecDeque};

use serde_json::value::RawValue;

/// Requests by id. An id may be used again, also while a request that has it is open.
pub(crate) struct OpenRequests<T>(HashMap<String, VecDeque<T>>);

impl<T> Default for OpenRequests<T> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

/// The request that an answer belongs to.
pub(crate) enum AnswerMatch<T> {
    /// The oldest open request.
    One(T),
    /// A request that was answered before.
    Again,
    /// An unknown request.
    Nothing,
}

impl<T> OpenRequests<T> {
    /// Takes a request.
    pub(crate) fn ask(&mut self, id: &RawValue, asked: T) {
        self.0.entry(id.get().to_owned()).or_default().push_back(asked);
    }

    /// Tells whether there was never a request: a recording may have only one side of the connection.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the unanswered requests with an id, the oldest first.
    pub(crate) fn waiting(&self, id: &RawValue) -> impl Iterator<Item = &T> {
        self.0.get(id.get()).into_iter().flatten()
    }

    /// Takes an answer; only the first to a request counts.
    pub(crate) fn answer(&mut self, id: &RawValue) -> AnswerMatch<T> {
        match self.0.get_mut(id.get()).map(VecDeque::pop_front) {
            Some(Some(asked)) => AnswerMatch::One(asked),
            Some(None) => AnswerMatch::Again,
            None => AnswerMatch::Nothing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_with_the_same_id_are_answered_in_order_once() {
        let id = serde_json::from_str::<&RawValue>("1").unwrap();
        let mut open = OpenRequests::default();
        assert!(open.is_empty() && matches!(open.answer(id), AnswerMatch::Nothing));
        open.ask(id, "a");
        open.ask(id, "b");
        assert_eq!(open.waiting(id).collect::<Vec<_>>(), [&"a", &"b"]);
        assert!(matches!(open.answer(id), AnswerMatch::One("a")));
        assert!(matches!(open.answer(id), AnswerMatch::One("b")));
        assert!(!open.is_empty() && matches!(open.answer(id), AnswerMatch::Again));
    }
}
