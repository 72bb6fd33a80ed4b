//! Payloads of events, recognized by their shape (R51).

use serde_json::value::RawValue;

use super::block::{ContentBlock, check_fidelity};
use super::words::{EventType, Fidelity, Role};
use crate::json::{Extra, Fields, JsonString, ObjectWriter, RawJson, from_str};
use crate::word::{Vocabulary, Word};
use crate::{CallId, Error};

/// The payload of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Payload {
    /// `null`, which run events may carry, or no payload at all.
    Null,
    /// A bare array of blocks; read, never written.
    Blocks(Vec<ContentBlock>),
    /// An object with `role`.
    Message(MessagePayload),
    /// An object with `call_id`.
    Tool(ToolPayload),
    /// An object with `kind`.
    Step(StepPayload),
    /// Anything else, unchanged.
    Other(RawJson),
}

/// The payload of run and step events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepPayload {
    /// The step's name, or the run's.
    pub name: JsonString,
    /// The kind of step: agent, command, turn, approval, …; the list is open (R54).
    pub kind: JsonString,
    /// Why it failed.
    pub error: Option<JsonString>,
    /// Its real output (R43).
    pub result: Option<RawJson>,
    /// Unknown fields.
    pub extra: Extra,
}

/// The payload of message events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessagePayload {
    /// Who speaks.
    pub role: Word<Role>,
    /// Its blocks, in order.
    pub blocks: Vec<ContentBlock>,
    /// Unknown fields, and those that EVENTS adds: `id`, `response`, `model`, `usage`, ….
    pub extra: Extra,
}

/// The payload of tool events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolPayload {
    /// The tool's name.
    pub name: JsonString,
    /// Pairs the call with its result (R46).
    pub call_id: CallId,
    /// The arguments, unchanged; `None` where the record leaves them out.
    pub input: Option<RawJson>,
    /// The output, unchanged; `None` where the record leaves it out.
    pub output: Option<RawJson>,
    /// Why it failed.
    pub error: Option<JsonString>,
    /// Where it was observed.
    pub fidelity: Option<Word<Fidelity>>,
    /// Unknown fields, and those that EVENTS adds: `outcome`, `exit_code`, `class`, ….
    pub extra: Extra,
}

impl StepPayload {
    /// Makes a payload with a name and a kind.
    #[must_use]
    pub fn new(name: impl Into<JsonString>, kind: impl Into<JsonString>) -> Self {
        Self { name: name.into(), kind: kind.into(), error: None, result: None, extra: Extra::default() }
    }
}

impl Payload {
    /// Reads a payload by its shape: array, then `role`, then `call_id`, then `kind`, else anything.
    ///
    /// Never fails: an object with the mark of a shape but not its fields, or with one of them twice, is
    /// [`Payload::Other`], unchanged.
    #[must_use]
    pub fn read(raw: &RawJson) -> Self {
        if raw.is_null() {
            return Self::Null;
        }
        Self::read_shape(raw.as_str()).unwrap_or_else(|_| Self::Other(raw.clone()))
    }

    pub(super) fn read_shape(text: &str) -> Result<Self, Error> {
        if text.starts_with('[') {
            return read_blocks(text).map(Self::Blocks);
        }
        let fields = Fields::parse(text)?;
        if fields.has("role") {
            MessagePayload::read(fields).map(Self::Message)
        } else if fields.has("call_id") {
            ToolPayload::read(fields).map(Self::Tool)
        } else if fields.has("kind") {
            StepPayload::read(fields).map(Self::Step)
        } else {
            Err(Error::MissingField { field: "kind" })
        }
    }

    /// Returns the payload as JSON: known fields in the order of 002, then the others in their order.
    #[must_use]
    pub fn to_json(&self) -> RawJson {
        // The room for all but long texts, which spares growing in small steps.
        const FIELDS_BYTES: usize = 256;
        let len = |value: &Option<RawJson>| value.as_ref().map_or(0, |value| value.as_str().len());
        let values = if let Self::Tool(tool) = self { len(&tool.input) + len(&tool.output) } else { 0 };
        let mut out = String::with_capacity(FIELDS_BYTES + values);
        match self {
            Self::Null => return RawJson::null(),
            Self::Other(raw) => return raw.clone(),
            Self::Blocks(blocks) => write_blocks(&mut out, blocks),
            Self::Message(message) => message.write(&mut out),
            Self::Tool(tool) => tool.write(&mut out),
            Self::Step(step) => step.write(&mut out),
        }
        RawJson::trusted(out)
    }

    /// Returns the blocks of a message, or of a bare array.
    #[must_use]
    pub fn blocks(&self) -> &[ContentBlock] {
        match self {
            Self::Blocks(blocks) | Self::Message(MessagePayload { blocks, .. }) => blocks,
            Self::Null | Self::Tool(_) | Self::Step(_) | Self::Other(_) => &[],
        }
    }

    /// Returns an error for each unknown word, as a strict reader would.
    pub(super) fn unknown_words(&self) -> impl Iterator<Item = Error> {
        let own = match self {
            Self::Message(message) => message.role.check().err(),
            Self::Tool(tool) => tool.fidelity.as_ref().and_then(|word| word.check().err()),
            Self::Null | Self::Blocks(_) | Self::Step(_) | Self::Other(_) => None,
        };
        own.into_iter().chain(self.blocks().iter().flat_map(ContentBlock::unknown_words))
    }

    /// Checks JSON that a writer wants to emit as a payload.
    ///
    /// # Errors
    /// The first problem that the closed vocabulary of writers has with it.
    pub fn check_json(event_type: EventType, raw: &RawJson) -> Result<(), Error> {
        use EventType as E;
        let text = raw.as_str();
        match event_type {
            E::RunStarted | E::RunCompleted if raw.is_null() => Ok(()),
            E::RunStarted
            | E::RunCompleted
            | E::StepStarted
            | E::StepCompleted
            | E::CallWorkflowStarted
            | E::CallWorkflowCompleted => {
                let fields = object_of(event_type, text, "an object with `name` and `kind`")?;
                // R51: a reader that goes by shape would take such a step for a message or a call.
                for (field, reason) in
                    [("role", "it marks a message"), ("call_id", "it marks a call; use `tool_call_id`")]
                {
                    if fields.has(field) {
                        return Err(Error::ForbiddenField { field, reason });
                    }
                }
                StepPayload::read(fields).map(drop)
            }
            E::MessageUser | E::MessageAssistant => {
                let fields = object_of(event_type, text, "an object with `role` and `blocks`")?;
                MessagePayload::check_fields(fields, event_type)
            }
            E::ToolCall | E::ToolResult => {
                let fields = object_of(event_type, text, "an object with `name`, `call_id` and `fidelity`")?;
                if fields.has("role") {
                    return Err(Error::ForbiddenField { field: "role", reason: "it marks a message" });
                }
                ToolPayload::read(fields)?.check(event_type)
            }
        }
    }

    /// Checks a payload that a writer wants to emit; `json` is its JSON.
    ///
    /// # Errors
    /// As [`Payload::check_json`].
    pub(super) fn check_to_write(&self, event_type: EventType, json: &RawJson) -> Result<(), Error> {
        if self.reads_back(event_type) {
            return self.check(event_type);
        }
        Self::check_json(event_type, json)
    }

    /// Tells whether the payload has the shape of its type, and its JSON no duplicate field. Then reading the JSON
    /// gives the same payload, and need not be tried.
    fn reads_back(&self, event_type: EventType) -> bool {
        use EventType as E;
        let shape_fits = match event_type {
            E::RunStarted
            | E::RunCompleted
            | E::StepStarted
            | E::StepCompleted
            | E::CallWorkflowStarted
            | E::CallWorkflowCompleted => matches!(self, Self::Step(_)),
            E::MessageUser | E::MessageAssistant => matches!(self, Self::Message(_)),
            E::ToolCall | E::ToolResult => matches!(self, Self::Tool(_)),
        };
        shape_fits
            && match self {
                Self::Step(step) => {
                    step.extra.has_none_of(&["name", "kind", "error", "result", "role", "call_id"])
                }
                Self::Message(message) => {
                    message.extra.has_none_of(&["role", "blocks"])
                        && message.blocks.iter().all(ContentBlock::reads_back)
                }
                Self::Tool(tool) => {
                    let own = ["name", "call_id", "input", "output", "error", "fidelity", "role"];
                    tool.extra.has_none_of(&own)
                }
                Self::Null | Self::Blocks(_) | Self::Other(_) => false,
            }
    }

    /// Checks the words and required fields of a payload of the right shape.
    fn check(&self, event_type: EventType) -> Result<(), Error> {
        match self {
            Self::Message(message) => message.check(event_type),
            Self::Tool(tool) => tool.check(event_type),
            Self::Null | Self::Step(_) | Self::Blocks(_) | Self::Other(_) => Ok(()),
        }
    }
}

fn object_of<'a>(event_type: EventType, text: &'a str, wanted: &'static str) -> Result<Fields<'a>, Error> {
    Fields::parse(text).map_err(|error| {
        if error == Error::NotAnObject { Error::WrongPayload { event_type, wanted } } else { error }
    })
}

fn required<T>(value: Option<T>, field: &'static str) -> Result<T, Error> {
    value.ok_or(Error::MissingField { field })
}

fn split_blocks(text: &str) -> Result<Vec<&RawValue>, Error> {
    // The text is already JSON, so the only possible error is that it is not an array.
    from_str(text).map_err(|_| Error::WrongField { field: "blocks", wanted: "an array of blocks" })
}

fn read_blocks(text: &str) -> Result<Vec<ContentBlock>, Error> {
    split_blocks(text)?.into_iter().map(ContentBlock::read).collect()
}

fn write_blocks(out: &mut String, blocks: &[ContentBlock]) {
    out.push('[');
    for (index, block) in blocks.iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        block.write(out);
    }
    out.push(']');
}

impl StepPayload {
    fn read(mut fields: Fields<'_>) -> Result<Self, Error> {
        Ok(Self {
            name: required(fields.take_string("name")?, "name")?,
            kind: required(fields.take_string("kind")?, "kind")?,
            error: fields.take_nullable_string("error")?,
            result: fields.take_json("result")?,
            extra: fields.into_extra(),
        })
    }

    fn write(&self, out: &mut String) {
        let mut object = ObjectWriter::begin(out);
        object.string("name", &self.name);
        object.string("kind", &self.kind);
        object.optional("error", self.error.as_ref(), ObjectWriter::string);
        object.optional("result", self.result.as_ref(), ObjectWriter::json);
        object.finish(&self.extra);
    }
}

impl MessagePayload {
    /// Makes a message without extra fields.
    #[must_use]
    pub fn new(role: Role, blocks: Vec<ContentBlock>) -> Self {
        Self { role: Word::Known(role), blocks, extra: Extra::default() }
    }

    fn read(mut fields: Fields<'_>) -> Result<Self, Error> {
        let role = required(fields.take_string("role")?, "role")?;
        let blocks = required(fields.take("blocks")?, "blocks")?;
        let blocks = read_blocks(blocks.get())?;
        Ok(Self { role: Word::read(role), blocks, extra: fields.into_extra() })
    }

    /// Checks a message that a writer wants to emit. Blocks are read one at a time, because together they take ten
    /// times the memory of their text.
    fn check_fields(mut fields: Fields<'_>, event_type: EventType) -> Result<(), Error> {
        let role = required(fields.take_string("role")?, "role")?;
        let blocks = required(fields.take("blocks")?, "blocks")?;
        let mut are_good = Ok(());
        for raw in split_blocks(blocks.get())? {
            let block = ContentBlock::read_to_write(raw)?;
            are_good = are_good.and_then(|()| block.check());
        }
        check_role(&Word::read(role), event_type)?;
        are_good
    }

    fn write(&self, out: &mut String) {
        let mut object = ObjectWriter::begin(out);
        object.vocabulary("role", &self.role);
        object.nested("blocks", |out| write_blocks(out, &self.blocks));
        object.finish(&self.extra);
    }

    fn check(&self, event_type: EventType) -> Result<(), Error> {
        check_role(&self.role, event_type)?;
        self.blocks.iter().try_for_each(ContentBlock::check)
    }
}

/// Checks that the role matches the type of a message.
fn check_role(role: &Word<Role>, event_type: EventType) -> Result<(), Error> {
    let wanted = if event_type == EventType::MessageUser { Role::User } else { Role::Assistant };
    if role.check()? != wanted {
        return Err(Error::WrongField { field: "role", wanted: wanted.as_str() });
    }
    Ok(())
}

impl ToolPayload {
    /// Makes the payload of a call.
    #[must_use]
    pub fn call(name: impl Into<JsonString>, call_id: CallId, input: RawJson, fidelity: Fidelity) -> Self {
        Self {
            name: name.into(),
            call_id,
            input: Some(input),
            output: Some(RawJson::null()),
            error: None,
            fidelity: Some(Word::Known(fidelity)),
            extra: Extra::default(),
        }
    }

    /// Makes the payload of a result.
    #[must_use]
    pub fn result(name: impl Into<JsonString>, call_id: CallId, output: RawJson, fidelity: Fidelity) -> Self {
        let call = Self::call(name, call_id, RawJson::null(), fidelity);
        Self { output: Some(output), ..call }
    }

    fn read(mut fields: Fields<'_>) -> Result<Self, Error> {
        Ok(Self {
            name: required(fields.take_string("name")?, "name")?,
            call_id: CallId(required(fields.take_string("call_id")?, "call_id")?),
            input: fields.take_json("input")?,
            output: fields.take_json("output")?,
            error: fields.take_nullable_string("error")?,
            fidelity: fields.take_string("fidelity")?.map(Word::read),
            extra: fields.into_extra(),
        })
    }

    fn write(&self, out: &mut String) {
        let mut object = ObjectWriter::begin(out);
        object.string("name", &self.name);
        object.string("call_id", &self.call_id.0);
        object.optional("input", self.input.as_ref(), ObjectWriter::json);
        object.optional("output", self.output.as_ref(), ObjectWriter::json);
        object.optional("error", self.error.as_ref(), ObjectWriter::string);
        object.optional("fidelity", self.fidelity.as_ref(), ObjectWriter::vocabulary);
        object.finish(&self.extra);
    }

    fn check(&self, event_type: EventType) -> Result<(), Error> {
        if event_type == EventType::ToolCall {
            required(self.input.as_ref(), "input")?;
        } else {
            required(self.output.as_ref(), "output")?;
        }
        check_fidelity(self.fidelity.as_ref())
    }
}
