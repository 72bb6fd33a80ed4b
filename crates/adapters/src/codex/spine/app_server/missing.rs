//! Messages that were forwarded but not recorded: which, how many, and why.

use steno_model::Lane;
use steno_model::json::{Fields, JsonString, ObjectWriter, RawJson};

/// Why messages are missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhyMissing {
    /// They could not be written.
    NotWritten,
    /// The recorder was too far behind.
    Behind,
    /// They are longer than the limit for a message.
    TooLong,
    /// Recording was paused.
    Paused,
    /// They are of a project that is excluded, or of a session that was forgotten.
    LeftOut,
    /// The record has no reason, only a gap between the numbers of two messages.
    Unknown,
}

impl WhyMissing {
    const ALL: [Self; 6] =
        [Self::NotWritten, Self::Behind, Self::TooLong, Self::Paused, Self::LeftOut, Self::Unknown];

    /// Returns the word for it in a record.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::NotWritten => "not_written",
            Self::Behind => "behind",
            Self::TooLong => "too_long",
            Self::Paused => "paused",
            Self::LeftOut => "left_out",
            Self::Unknown => "unknown",
        }
    }
}

/// Consecutive messages that were not recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// The ticket of the first.
    pub ticket_first: u64,
    /// The ticket of the last.
    pub ticket_last: u64,
    /// How many bytes they had with their newlines; 0 if they were not counted.
    pub bytes: u64,
    /// How many of them went to the agent, and how many came from it, if they were counted.
    pub counts: Option<(u64, u64)>,
    /// Why they are missing.
    pub why: WhyMissing,
    /// The error of the operating system.
    pub error: Option<String>,
}

impl Missing {
    /// Creates one for messages of one direction, beginning at a ticket.
    #[must_use]
    pub fn of(lane: Lane, ticket_first: u64, messages: u64, bytes: u64, why: WhyMissing) -> Self {
        let counts = match lane {
            Lane::ToAgent => (messages, 0),
            Lane::FromAgent => (0, messages),
        };
        let ticket_last = ticket_first + messages.max(1) - 1;
        Self { ticket_first, ticket_last, bytes, counts: Some(counts), why, error: None }
    }

    /// Creates one for the messages between two recorded ones.
    #[must_use]
    pub fn between(ticket_first: u64, ticket_last: u64) -> Self {
        Self { ticket_first, ticket_last, bytes: 0, counts: None, why: WhyMissing::Unknown, error: None }
    }

    /// Returns the number of messages.
    #[must_use]
    pub fn messages(&self) -> u64 {
        self.ticket_last - self.ticket_first + 1
    }

    /// Adds the messages that come directly after, missing for the same reason.
    pub fn go_on(&mut self, next: &Self) {
        self.ticket_last = next.ticket_last;
        self.bytes += next.bytes;
        let add = |(to, from), (more_to, more_from)| (to + more_to, from + more_from);
        self.counts = self.counts.zip(next.counts).map(|(had, more)| add(had, more));
    }

    /// Writes it as fields of an object.
    pub fn write(&self, object: &mut ObjectWriter<'_>) {
        object.number("first_ticket", self.ticket_first);
        object.number("last_ticket", self.ticket_last);
        object.number("messages", self.messages());
        if let Some((to_agent, from_agent)) = self.counts {
            object.number("c2s", to_agent);
            object.number("s2c", from_agent);
            object.number("bytes", self.bytes);
        }
        object.word("reason", self.why.name());
        let error = self.error.as_deref().map(JsonString::from_text);
        object.optional("error", error.as_ref(), ObjectWriter::string);
    }

    /// Reads the fields that [`Missing::write`] writes.
    #[must_use]
    pub fn read(text: &str) -> Option<Self> {
        let mut fields = Fields::parse(text).ok()?;
        let mut number = |name| fields.take(name).ok()??.get().parse::<u64>().ok();
        let (ticket_first, ticket_last) = (number("first_ticket")?, number("last_ticket")?);
        let counts = number("c2s").zip(number("s2c"));
        let bytes = number("bytes").unwrap_or(0);
        let reason = fields.take_string("reason").ok()??.to_text().into_owned();
        let why = WhyMissing::ALL.into_iter().find(|why| why.name() == reason).unwrap_or(WhyMissing::Unknown);
        let error = fields.take_string("error").ok()?.map(|error| error.to_text().into_owned());
        let is_good = ticket_first <= ticket_last;
        is_good.then_some(Self { ticket_first, ticket_last, bytes, counts, why, error })
    }

    /// Returns the payload of the spine record that stands for these messages.
    pub(super) fn event(&self) -> RawJson {
        RawJson::object(|object| {
            object.string("id", &JsonString::from_text(""));
            let msg = RawJson::object(|msg| {
                msg.word("type", "missing");
                self.write(msg);
            });
            object.json("msg", &msg);
        })
    }
}

impl std::fmt::Display for Missing {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { ticket_first, ticket_last, why, .. } = self;
        let messages = self.messages();
        let noun = if messages == 1 { "message" } else { "messages" };
        write!(out, "{messages} {noun} (tickets {ticket_first} to {ticket_last}): ")?;
        match (why, &self.error) {
            (WhyMissing::NotWritten, Some(error)) => write!(out, "{error}"),
            (WhyMissing::NotWritten, None) => write!(out, "they could not be written"),
            (WhyMissing::Behind, _) => write!(out, "the record was too far behind"),
            (WhyMissing::TooLong, _) => write!(out, "longer than any message"),
            (WhyMissing::Paused, _) => write!(out, "recording was paused"),
            (WhyMissing::LeftOut, _) => write!(out, "of an excluded project or a forgotten session"),
            (WhyMissing::Unknown, _) => write!(out, "nothing says why"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_messages_round_trip() {
        let mut missing = Missing::of(Lane::ToAgent, 5, 2, 30, WhyMissing::NotWritten);
        missing.go_on(&Missing::of(Lane::FromAgent, 7, 1, 12, WhyMissing::NotWritten));
        missing.error = Some("no space".to_owned());
        let text = RawJson::object(|object| missing.write(object));
        let want = r#"{"first_ticket":5,"last_ticket":7,"messages":3,"c2s":2,"s2c":1,"bytes":42,"reason":"not_written","error":"no space"}"#;
        assert_eq!(text.as_str(), want);
        let others = [
            Missing::between(3, 3),
            Missing::of(Lane::FromAgent, 1, 1, 9, WhyMissing::Behind),
            Missing::of(Lane::FromAgent, 1, 1, 9, WhyMissing::TooLong),
        ];
        for missing in others.into_iter().chain([missing]) {
            let text = RawJson::object(|object| missing.write(object));
            assert_eq!(Missing::read(text.as_str()), Some(missing), "{text:?}");
        }
        assert_eq!(Missing::read(r#"{"first_ticket":5,"last_ticket":4,"reason":"behind"}"#), None);
    }
}
