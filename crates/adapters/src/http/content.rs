//! The parts that a conversation is made of, the same for all APIs.

use std::borrow::Cow;

use serde_json::Value;
use serde_json::value::RawValue;
use steno_model::json::{JsonString, RawJson};
use steno_model::{BlockContent, ContentBlock, Fidelity};

use super::class::class_of;
use crate::emit::{Answer, CallReport, Outcome, push, string};
use crate::repeats::hash_of;
use crate::wire::{Raw, RawField as _, list, wire};

/// A text: in a record, or put together from several.
#[derive(Clone)]
pub(super) enum Text<'a> {
    Raw(&'a RawValue),
    Whole(JsonString),
}

impl<'a> Text<'a> {
    /// Takes a field that holds a text.
    pub(super) fn of(raw: Raw<'a>) -> Option<Self> {
        raw.filter(|raw| raw.get().starts_with('"')).map(Self::Raw)
    }

    /// Decodes it.
    pub(super) fn text(&self) -> Cow<'_, str> {
        match self {
            Self::Raw(raw) => Some(*raw).text().unwrap_or_default(),
            Self::Whole(text) => text.to_text(),
        }
    }

    /// Copies it.
    pub(super) fn string(&self) -> JsonString {
        match self {
            Self::Raw(raw) => JsonString::from_raw(raw).unwrap_or_else(|| "".into()),
            Self::Whole(text) => text.clone(),
        }
    }
}

/// The input of a call.
#[derive(Clone)]
pub(super) enum Input<'a> {
    /// A value.
    Value(Raw<'a>),
    /// JSON in a string, which may be broken.
    Arguments(Text<'a>),
    /// A plain text.
    Plain(Text<'a>),
}

impl Input<'_> {
    /// Returns it as JSON, and whether it is broken.
    fn read(&self) -> (RawJson, bool) {
        match self {
            Self::Value(raw) => (raw.map_or_else(RawJson::null, RawJson::from_raw), false),
            Self::Plain(text) => (text.string().to_json(), false),
            Self::Arguments(text) => match RawJson::parse(&text.text()) {
                Ok(input) => (input, false),
                Err(_) => (text.string().to_json(), !text.text().is_empty()),
            },
        }
    }

    /// Returns a hash that does not depend on spaces and the order of keys.
    fn hash(&self) -> u64 {
        let (input, _) = self.read();
        match serde_json::from_str::<Value>(input.as_str()) {
            // The keys of a `Value` are sorted.
            Ok(value) => hash_of(&value.to_string()),
            Err(_) => hash_of(input.as_str()),
        }
    }
}

/// The output of a call.
#[derive(Clone)]
pub(super) enum Output<'a> {
    Raw(&'a RawValue),
    Whole(RawJson),
    None,
}

impl<'a> Output<'a> {
    /// Takes a field.
    pub(super) fn of(raw: Raw<'a>) -> Self {
        raw.map_or(Self::None, Self::Raw)
    }

    /// Keeps it.
    pub(super) fn into_whole(self) -> Output<'static> {
        Output::Whole(self.json())
    }

    fn get(&self) -> &str {
        match self {
            Self::Raw(raw) => raw.get(),
            Self::Whole(json) => json.as_str(),
            Self::None => "\"\"",
        }
    }

    fn json(&self) -> RawJson {
        match self {
            Self::Raw(raw) => RawJson::from_raw(raw),
            Self::Whole(json) => json.clone(),
            Self::None => string(""),
        }
    }
}

/// How a call ended, as far as the API says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallEnd {
    Ok,
    Failed,
    Unknown,
}

/// A part of a conversation.
#[derive(Clone)]
pub(super) enum Content<'a> {
    Text {
        text: Text<'a>,
        label: Option<&'static str>,
    },
    /// A thought; empty if the provider withholds it.
    Thinking(Text<'a>),
    Call {
        id: Option<Text<'a>>,
        name: Cow<'a, str>,
        input: Input<'a>,
        /// Whether a client may add an id when it sends the call again.
        is_renamed: bool,
    },
    Result {
        id: Option<Text<'a>>,
        name: Option<Cow<'a, str>>,
        output: Output<'a>,
        end: CallEnd,
    },
    /// A picture or a file, which stays in the evidence.
    Mark {
        kind: Cow<'a, str>,
        bytes: usize,
    },
    /// A fact that is neither text nor a call.
    Fact {
        name: Cow<'a, str>,
        value: &'a RawValue,
    },
    Unknown(String),
}

/// Who a part comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Instructions of the client.
    System,
    User,
    Model,
}

/// A part with its place.
#[derive(Clone)]
pub(super) struct Part<'a> {
    pub(super) role: Role,
    pub(super) content: Content<'a>,
    /// The provider's id of the item.
    pub(super) id: Raw<'a>,
    /// The provider's word for what a text is.
    pub(super) phase: Raw<'a>,
    /// The number of the message that it is in.
    pub(super) message: usize,
}

impl<'a> Part<'a> {
    pub(super) fn new(role: Role, content: Content<'a>) -> Self {
        Self { role, content, id: None, phase: None, message: 0 }
    }

    /// Returns a hash that recognises the part when it is sent again; `None` for parts that clients leave out or change.
    pub(super) fn hash(&self) -> Option<u64> {
        let role = self.role as u8;
        Some(match &self.content {
            Content::Text { text, .. } => {
                let text = text.text();
                let text = text.trim();
                if text.is_empty() {
                    return None;
                }
                hash_of(&("text", role, text))
            }
            Content::Call { id: Some(id), is_renamed: false, .. } => hash_of(&("call", &*id.text())),
            Content::Call { name, input, .. } => hash_of(&("call", &**name, input.hash())),
            Content::Result { id: Some(id), .. } => hash_of(&("result", &*id.text())),
            Content::Result { id: None, name, output, .. } => {
                hash_of(&("result", name.as_deref(), output.get()))
            }
            Content::Mark { kind, bytes } => hash_of(&("mark", &**kind, *bytes)),
            Content::Fact { name, value } => hash_of(&("fact", &**name, value.get())),
            Content::Unknown(name) => hash_of(&("unknown", role, name)),
            Content::Thinking(_) => return None,
        })
    }

    /// Returns the block of a message, if the part is one.
    pub(super) fn block(&self, call_id: Option<&JsonString>) -> Option<ContentBlock> {
        match &self.content {
            Content::Text { text, label } => {
                let mut block = ContentBlock::text(Fidelity::AgentEmitted, text.string());
                push(&mut block.extra, "label", label.map(string));
                Some(block)
            }
            Content::Thinking(text) => {
                let text = text.string();
                let is_withheld = text.is_empty();
                let mut block = ContentBlock::new(Fidelity::AgentEmitted, BlockContent::Thinking(Some(text)));
                push(&mut block.extra, "redacted", is_withheld.then(|| RawJson::from(true)));
                Some(block)
            }
            Content::Call { name, input, .. } => Some(ContentBlock::new(
                Fidelity::AgentEmitted,
                BlockContent::ToolUse {
                    tool_name: Some((&**name).into()),
                    tool_id: call_id.cloned(),
                    tool_input: Some(input.read().0),
                },
            )),
            Content::Mark { kind, bytes } => {
                let mut block = ContentBlock::text(Fidelity::AgentEmitted, "");
                block.extra.push("label", string(kind));
                block.extra.push("size_bytes", RawJson::from(*bytes as u64));
                Some(block)
            }
            Content::Result { .. } | Content::Fact { .. } | Content::Unknown(_) => None,
        }
    }
}

/// Makes the report of a call.
pub(super) fn call_report(name: &str, input: &Input<'_>) -> CallReport {
    let (input, is_broken) = input.read();
    let mut call = CallReport::new(name.into(), class_of(name), input);
    push(&mut call.extra, "input_parse_error", is_broken.then(|| RawJson::from(true)));
    call
}

/// Makes the answer to a call.
pub(super) fn answer(output: &Output<'_>, end: CallEnd) -> Answer {
    let outcome = match end {
        CallEnd::Ok => Outcome::Ok,
        CallEnd::Failed => Outcome::Failed,
        CallEnd::Unknown => Outcome::Unknown,
    };
    let error = (end == CallEnd::Failed).then(|| first_line(output));
    Answer { error, ..Answer::new(output.json(), outcome) }
}

/// Returns the first line of an output, as the reason of a failure.
fn first_line(output: &Output<'_>) -> JsonString {
    const ERROR_CHARS_MAX: usize = 200;
    let text = text_in(output.get());
    let line = text.lines().find(|line| !line.trim().is_empty()).unwrap_or("failed");
    line.chars().take(ERROR_CHARS_MAX).collect::<String>().as_str().into()
}

/// Returns a text, or the texts of a list of blocks, or the JSON of anything else.
fn text_in(json: &str) -> String {
    let Ok(raw) = serde_json::from_str::<&RawValue>(json) else { return String::new() };
    if let Some(text) = Some(raw).text() {
        return text.into_owned();
    }
    let blocks = list::<TextBlock<'_>>(raw).unwrap_or_default();
    let texts: Vec<Cow<'_, str>> =
        blocks.into_iter().flatten().filter_map(|block| block.text.text()).collect();
    if texts.is_empty() { json.to_owned() } else { texts.join("\n") }
}

wire! {
    struct TextBlock { text: "text", }
}
