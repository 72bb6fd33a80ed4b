//! An exchange while it is read: its conversation, and the answer so far.

use super::reply::ReplyReader;
use super::requests::Api;
use super::thread::ReplyName;

/// An exchange that has not ended.
pub(super) struct Exchange {
    /// The number of its conversation; `None` if it is not a model call.
    pub(super) thread: Option<usize>,
    pub(super) api: Option<Api>,
    pub(super) reader: Option<ReplyReader>,
    pub(super) name: ReplyName,
    /// The status of the answer.
    pub(super) status: i64,
    /// Whether the answer has any content yet.
    pub(super) has_answer: bool,
}

impl Exchange {
    /// Begins an exchange of a conversation.
    pub(super) fn of(thread: usize, api: Api) -> Self {
        Self { thread: Some(thread), api: Some(api), reader: Some(ReplyReader::new(api)), ..Self::other() }
    }

    /// Begins an exchange that is not a model call.
    pub(super) fn other() -> Self {
        Self {
            thread: None,
            api: None,
            reader: None,
            name: ReplyName::default(),
            status: 0,
            has_answer: false,
        }
    }

    /// Tells whether the answer is an error.
    pub(super) fn is_error(&self) -> bool {
        self.status >= 400
    }
}
