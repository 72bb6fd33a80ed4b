//! Messages and outputs of tools as the content of a trajectory: one string, or parts if there is more than text.

use serde_json::value::RawValue;
use steno_model::json::{JsonString, RawJson};

use super::media::{Keeper, Media};
use super::text::{push_joined, push_list, push_text};
use steno_session::PayloadFields;

/// The separator of texts that are joined.
const BETWEEN_TEXTS: &str = "\\n\\n";

/// A part of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// A text.
    Text(JsonString),
    /// A piece of a text that continues the previous one.
    Chunk(JsonString),
    /// A picture, a sound, a document.
    Media(Media),
}

/// Writes a message: a string, or parts if there are media in it.
pub(super) fn write_message(out: &mut String, parts: &[Part], keeper: &mut Keeper<'_>) {
    if !parts.iter().any(|part| matches!(part, Part::Media(_))) {
        return write_text(out, parts);
    }
    // Adjacent texts become one part.
    let is_media = |part: &Part| matches!(part, Part::Media(_));
    let groups = parts.chunk_by(|one, other| !is_media(one) && !is_media(other));
    push_list(out, groups, |out, group| match group {
        [Part::Media(media)] => media.write(out, keeper),
        texts => write_part(out, |out| write_text(out, texts)),
    });
}

fn write_text(out: &mut String, parts: &[Part]) {
    let mut is_chunk = false;
    let mut texts = Vec::<Vec<&JsonString>>::new();
    for part in parts {
        match (part, texts.last_mut()) {
            (Part::Chunk(text), Some(last)) if is_chunk => last.push(text),
            (Part::Text(text) | Part::Chunk(text), _) => texts.push(vec![text]),
            (Part::Media(_), _) => {}
        }
        is_chunk = matches!(part, Part::Chunk(_));
    }
    if let [text] = &texts[..] {
        return push_joined(out, text.iter().copied(), "");
    }
    let texts: Vec<JsonString> = texts
        .into_iter()
        .map(|pieces| match pieces[..] {
            [text] => text.clone(),
            _ => pieces.into_iter().map(|piece| piece.to_text().into_owned()).collect::<String>().into(),
        })
        .collect();
    push_joined(out, texts.iter(), BETWEEN_TEXTS);
}

fn write_part(out: &mut String, text: impl FnOnce(&mut String)) {
    out.push_str(r#"{"type":"text","text":"#);
    text(out);
    out.push('}');
}

/// The parsed output of a tool.
pub(super) struct Output<'a> {
    form: Form<'a>,
    /// The fields beside the content in the output of an MCP server.
    pub(super) other_fields: Vec<(JsonString, RawJson)>,
}

enum Form<'a> {
    Nothing,
    /// A JSON string, unchanged.
    Text(&'a str),
    Blocks(Vec<&'a RawValue>),
    /// Any other JSON.
    Json(&'a str),
}

impl<'a> Output<'a> {
    pub(super) fn of(output: &'a RawJson) -> Self {
        let text = output.as_str();
        let form = |form| Self { form, other_fields: Vec::new() };
        match text.as_bytes().first() {
            Some(b'"') => form(Form::Text(text)),
            Some(b'n') => form(Form::Nothing),
            Some(b'[') => form(blocks(text).map_or(Form::Json(text), Form::Blocks)),
            Some(b'{') => {
                // MCP servers return the blocks inside an object.
                let fields = PayloadFields::parse(text);
                match fields.json_text("content").and_then(blocks) {
                    Some(blocks) => {
                        Self { form: Form::Blocks(blocks), other_fields: fields.others(&["content"]) }
                    }
                    None => form(Form::Json(text)),
                }
            }
            _ => form(Form::Json(text)),
        }
    }

    pub(super) fn is_nothing(&self) -> bool {
        matches!(self.form, Form::Nothing)
    }

    /// Returns true if it consists of this text.
    pub(super) fn is_text(&self, text: &str) -> bool {
        match &self.form {
            Form::Text(token) => *token == text,
            Form::Blocks(blocks) => match blocks[..] {
                [block] => PayloadFields::parse(block.get()).json_text("text") == Some(text),
                _ => false,
            },
            Form::Nothing | Form::Json(_) => false,
        }
    }

    /// Writes it as content.
    pub(super) fn write(&self, out: &mut String, keeper: &mut Keeper<'_>) {
        match &self.form {
            Form::Nothing => out.push_str("null"),
            Form::Text(token) => super::text::push_clean(out, token),
            Form::Json(json) => push_text(out, json),
            Form::Blocks(blocks) => {
                let parts: Vec<Part> = blocks.iter().map(|block| part(block)).collect();
                match &parts[..] {
                    [Part::Text(text)] => push_joined(out, [text].into_iter(), ""),
                    parts => push_list(out, parts, |out, part| match part {
                        Part::Text(text) | Part::Chunk(text) => {
                            write_part(out, |out| push_joined(out, [text].into_iter(), ""));
                        }
                        Part::Media(media) => media.write(out, keeper),
                    }),
                }
            }
        }
    }
}

/// Returns the blocks of an array, if it is one of blocks.
fn blocks(json: &str) -> Option<Vec<&RawValue>> {
    let blocks: Vec<&RawValue> = serde_json::from_str(json).ok()?;
    let is_block = |block: &&RawValue| PayloadFields::parse(block.get()).text("type").is_some();
    (!blocks.is_empty() && blocks.iter().all(is_block)).then_some(blocks)
}

/// Reads a block of a provider in the output of a tool. A block that is neither text nor a medium is kept as JSON.
fn part(block: &RawValue) -> Part {
    let fields = PayloadFields::parse(block.get());
    let kind = fields.text("type").unwrap_or_default();
    if matches!(&*kind, "text" | "input_text" | "output_text")
        && let Some(text) = fields.string("text")
    {
        return Part::Text(text);
    }
    Media::of_block(&fields).map_or_else(|| Part::Text(block.get().into()), Part::Media)
}

#[cfg(test)]
mod tests {
    use super::super::media::NoMedia;
    use super::*;

    #[track_caller]
    fn check_message(parts: &[Part], want: &str) {
        let mut out = String::new();
        write_message(&mut out, parts, &mut Keeper::new(&mut NoMedia));
        assert_eq!(out, want);
    }

    fn picture() -> Media {
        let block = r#"{"type":"image","data":"Zg==","mimeType":"image/png"}"#;
        Media::of_block(&PayloadFields::parse(block)).unwrap()
    }

    const PICTURE: &str = r#"{"type":"text","text":"[image/png, 1 byte, sha256 252f10c83610ebca1a059c0bae8255eba2f95be4d1d7bcfa89d7248a82d9f111]"}"#;

    #[test]
    fn texts_are_joined_with_blank_lines_and_chunks_without() {
        let text = |text: &str| Part::Text(text.into());
        let chunk = |text: &str| Part::Chunk(text.into());
        check_message(&[], r#""""#);
        check_message(&[text("a\n")], r#""a\n""#);
        check_message(&[text("a"), text("b")], r#""a\n\nb""#);
        check_message(&[chunk("a"), chunk("b")], r#""ab""#);
        check_message(&[text("x"), chunk("a"), chunk("b"), text("y")], r#""x\n\nab\n\ny""#);
        let want = format!(r#"[{{"type":"text","text":"a\n\nb"}},{PICTURE},{{"type":"text","text":"c"}}]"#);
        check_message(&[text("a"), text("b"), Part::Media(picture()), text("c")], &want);
        check_message(&[Part::Media(picture()), Part::Media(picture())], &format!("[{PICTURE},{PICTURE}]"));
    }

    #[track_caller]
    fn check_output(output: &str, want: &str) {
        let output = RawJson::parse(output).unwrap();
        let mut out = String::new();
        Output::of(&output).write(&mut out, &mut Keeper::new(&mut NoMedia));
        assert_eq!(out, want, "{output}");
    }

    #[test]
    fn output_is_a_string_or_parts() {
        check_output("null", "null");
        check_output(r#""a\n\ud800""#, r#""a\n\ufffd""#);
        check_output(r#"[{"type":"text","text":"a"}]"#, r#""a""#);
        check_output(
            r#"[{"type":"input_text","text":"a"},{"type":"tool_reference","tool_name":"x"}]"#,
            r#"[{"type":"text","text":"a"},{"type":"text","text":"{\"type\":\"tool_reference\",\"tool_name\":\"x\"}"}]"#,
        );
        check_output(r#"[{"type":"image","data":"Zg==","mimeType":"image/png"}]"#, &format!("[{PICTURE}]"));
        check_output("[1,2]", r#""[1,2]""#);
        check_output("[]", r#""[]""#);
        check_output(r#"{"sum":12345678901234567890123}"#, r#""{\"sum\":12345678901234567890123}""#);
        check_output("7", r#""7""#);
    }

    #[test]
    fn fields_beside_mcp_content_are_kept() {
        let output = RawJson::parse(r#"{"content":[{"type":"text","text":"5"}],"isError":false}"#).unwrap();
        let output = Output::of(&output);
        assert_eq!(output.other_fields, [("isError".into(), RawJson::from(false))]);
        assert!(output.is_text("\"5\"") && !output.is_text("\"6\""));
    }
}
