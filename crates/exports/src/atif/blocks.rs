//! Converts blocks of messages and results of steps to parts of a message, and finds the media that prompts only mark.

use steno_model::Evidence;
use steno_model::json::{Extra, JsonString, ObjectWriter, RawJson};
use steno_session::{Block, Message, PayloadFields};

use super::build::Records;
use super::content::Part;
use super::media::Media;
use steno_views::short_text::placeholder;

/// Splits the result of a step into its text and the rest. A text has no rest; an object may have the text in `content`
/// or `text`.
pub(super) fn split_text(result: Option<RawJson>) -> (Option<JsonString>, Option<RawJson>) {
    let Some(result) = result.filter(|result| !result.is_null()) else { return (None, None) };
    if result.as_str().starts_with('"') {
        return (serde_json::from_str(result.as_str()).ok().and_then(JsonString::from_raw), None);
    }
    let fields = PayloadFields::parse(result.as_str());
    let text = ["content", "text"].into_iter().find_map(|name| Some((name, fields.string(name)?)));
    let Some((name, words)) = text else { return (None, Some(result)) };
    let mut rest = Extra::default();
    for (key, value) in fields.others(&[name]) {
        rest.push(JsonString::from(&*key.to_text()), value);
    }
    let mut out = String::new();
    ObjectWriter::begin(&mut out).finish(&rest);
    (Some(words), RawJson::parse(&out).ok())
}

/// Reads a block that is neither a call, a thought nor a medium.
pub(super) fn part(inside: &PayloadFields<'_>, block: &RawJson) -> Part {
    let chunk = || inside.string("chunk").or_else(|| inside.string("text"));
    let text = match &*inside.text("type").unwrap_or_default() {
        "text" => inside.string("text"),
        "command" => inside.string("command"),
        "stream" => return Part::Chunk(chunk().unwrap_or_else(|| "".into())),
        _ => None,
    };
    Part::Text(text.unwrap_or_else(|| block.as_str().into()))
}

/// Returns true if a block only marks that there was a medium.
pub(super) fn is_mark(block: &PayloadFields<'_>) -> bool {
    let is_empty = block.string("text").is_some_and(|text| text.is_empty());
    is_empty && (block.json_text("size_bytes").is_some() || block.json_text("path").is_some())
}

/// The media that a prompt marks, in order.
pub(super) struct Marks {
    media: std::vec::IntoIter<Media>,
    /// The number of media that could not be read.
    pub(super) unread: u64,
}

impl Marks {
    /// Reads the record of an event with marks. If the record does not have as many media as there are marks without a
    /// path, they cannot be matched and are not used.
    pub(super) fn of(message: &Message, records: &mut dyn Records) -> Self {
        let blocks = message.blocks.iter().filter_map(|block| match block {
            Block::Recorded(block) => Some(block.as_str()),
            Block::Call(_) | Block::Elsewhere => None,
        });
        let inside = blocks.map(PayloadFields::parse);
        let marks = inside.filter(|block| is_mark(block) && block.json_text("path").is_none()).count();
        let mut read = || {
            let evidence = message.evidence.as_ref().and_then(Evidence::read)?;
            let record = String::from_utf8(records.record(&evidence)?).ok()?;
            Some(Media::find(&record)).filter(|media| media.len() == marks)
        };
        let media = if marks > 0 { read().unwrap_or_default() } else { Vec::new() };
        Self { media: media.into_iter(), unread: 0 }
    }

    pub(super) fn next(&mut self, mark: &PayloadFields<'_>) -> Part {
        let media = if mark.json_text("path").is_none() { self.media.next() } else { None };
        media.map_or_else(
            || {
                self.unread += 1;
                let words = placeholder(&|name| mark.json(name));
                Part::Text(words.unwrap_or_else(|| "[media]".to_owned()).into())
            },
            Part::Media,
        )
    }
}
