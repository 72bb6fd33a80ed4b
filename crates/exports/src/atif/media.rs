//! Pictures, sounds and documents: finds them in records and keeps them as files that are named by their hash.

use std::fmt::Write as _;

use data_encoding::HEXLOWER;
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};
use steno_model::json::{Fields, JsonString, text_of};

use super::base64;
use super::text::push_text;
use steno_session::PayloadFields;
use steno_views::count_in_digits;

/// The directory of media files, beside the trajectory.
pub const MEDIA_DIR: &str = "media";
/// The maximum depth to which a record is searched for media.
const DEPTH_MAX: usize = 16;

/// A place for the bytes of media.
pub trait MediaSink {
    /// Keeps bytes under a path relative to the trajectory, like `media/<sha256>.png`. Returns false if it does not
    /// keep files; the trajectory then only describes the medium. The same path always has the same bytes.
    fn keep(&mut self, path: &str, bytes: &[u8]) -> bool;
}

/// A sink that keeps nothing, for a trajectory that has no files beside it.
pub struct NoMedia;

impl MediaSink for NoMedia {
    fn keep(&mut self, _path: &str, _bytes: &[u8]) -> bool {
        false
    }
}

/// A medium in a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Media {
    media_type: String,
    base64: JsonString,
}

/// The kind of media that ATIF distinguishes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Image,
    Audio,
    /// ATIF has no part for it.
    Other,
}

/// The sink, and the number of media that it kept or did not keep.
pub(super) struct Keeper<'a> {
    sink: &'a mut dyn MediaSink,
    pub(super) kept_count: u64,
    pub(super) left_count: u64,
}

impl<'a> Keeper<'a> {
    pub(super) fn new(sink: &'a mut dyn MediaSink) -> Self {
        Self { sink, kept_count: 0, left_count: 0 }
    }
}

impl Media {
    /// Reads a block of Claude, MCP or Codex with a medium.
    pub(super) fn of_block(block: &PayloadFields<'_>) -> Option<Self> {
        let source = block.object("source");
        if let Some(base64) = source.string("data") {
            return Some(Self { media_type: source.text("media_type")?.into_owned(), base64 });
        }
        if let Some(base64) = block.string("data") {
            return Some(Self { media_type: block.text("mimeType")?.into_owned(), base64 });
        }
        let resource = block.object("resource");
        if let Some(base64) = resource.string("blob") {
            return Some(Self { media_type: resource.text("mimeType")?.into_owned(), base64 });
        }
        ["image_url", "audio_url", "file_data"].into_iter().find_map(|name| {
            let url = block.text(name).or_else(|| block.object(name).text("url"))?;
            Self::of_url(&url)
        })
    }

    /// Reads a `data:` URL.
    fn of_url(url: &str) -> Option<Self> {
        let (head, base64) = url.strip_prefix("data:")?.split_once(',')?;
        let media_type = head.strip_suffix(";base64")?.split(';').next()?;
        Some(Self { media_type: media_type.to_owned(), base64: base64.into() })
    }

    /// Finds the media in a provider's record, in order, except those in outputs of tools.
    pub(super) fn find(record: &str) -> Vec<Self> {
        let mut list = Vec::new();
        let Ok(record) = serde_json::from_str::<&RawValue>(record) else { return list };
        let mut waiting = vec![(record, 0)];
        while let Some((value, depth)) = waiting.pop() {
            let below = match value.get().as_bytes().first() {
                Some(b'"') if value.get().starts_with("\"data:") => {
                    list.extend(text_of(value).and_then(|url| Self::of_url(&url)));
                    Vec::new()
                }
                Some(b'{') => {
                    let fields = PayloadFields::parse(value.get());
                    let kind = fields.text("type");
                    let is_result = kind
                        .as_deref()
                        .is_some_and(|kind| kind == "tool_result" || kind.ends_with("_output"));
                    match Self::of_block(&fields) {
                        _ if is_result => Vec::new(),
                        Some(media) => {
                            list.push(media);
                            Vec::new()
                        }
                        None => Fields::parse(value.get())
                            .map(|fields| fields.iter().map(|(_, value)| value).collect())
                            .unwrap_or_default(),
                    }
                }
                Some(b'[') => serde_json::from_str::<Vec<&RawValue>>(value.get()).unwrap_or_default(),
                _ => Vec::new(),
            };
            if depth < DEPTH_MAX {
                waiting.extend(below.into_iter().rev().map(|value| (value, depth + 1)));
            }
        }
        list
    }

    /// Writes the part of a message for the medium, and keeps its bytes.
    pub(super) fn write(&self, out: &mut String, keeper: &mut Keeper<'_>) {
        let (media_type, kind, ending) = known(&self.media_type);
        let Some(bytes) = base64::decode(&self.base64.to_text()) else {
            keeper.left_count += 1;
            return push_text_part(out, &format!("[{media_type}, recorded with invalid base64]"));
        };
        let sha256 = HEXLOWER.encode(&Sha256::digest(&bytes));
        let path = format!("{MEDIA_DIR}/{sha256}.{ending}");
        let size = count_in_digits(bytes.len() as u64, "byte");
        if !keeper.sink.keep(&path, &bytes) {
            keeper.left_count += 1;
            return push_text_part(out, &format!("[{media_type}, {size}, sha256 {sha256}]"));
        }
        keeper.kept_count += 1;
        let part = match kind {
            Kind::Image => "image",
            Kind::Audio => "audio",
            Kind::Other => return push_text_part(out, &format!("[{media_type}, {size}, {path}]")),
        };
        write!(out, r#"{{"type":"{part}","source":{{"media_type":"{media_type}","path":"{path}"}}}}"#)
            .expect("a string takes everything");
    }
}

/// Appends a text part.
fn push_text_part(out: &mut String, text: &str) {
    out.push_str(r#"{"type":"text","text":"#);
    push_text(out, text);
    out.push('}');
}

/// Returns a media type as ATIF spells it, its kind, and the extension of its files.
fn known(media_type: &str) -> (&str, Kind, &'static str) {
    let plain = media_type.split(';').next().unwrap_or_default().trim();
    match plain {
        "image/png" => ("image/png", Kind::Image, "png"),
        "image/jpeg" | "image/jpg" => ("image/jpeg", Kind::Image, "jpg"),
        "image/gif" => ("image/gif", Kind::Image, "gif"),
        "image/webp" => ("image/webp", Kind::Image, "webp"),
        "audio/wav" | "audio/x-wav" | "audio/wave" => ("audio/wav", Kind::Audio, "wav"),
        "audio/mpeg" | "audio/mp3" => ("audio/mpeg", Kind::Audio, "mp3"),
        "audio/mp4" | "audio/m4a" => ("audio/mp4", Kind::Audio, "m4a"),
        "audio/aac" => ("audio/aac", Kind::Audio, "aac"),
        "audio/ogg" => ("audio/ogg", Kind::Audio, "ogg"),
        "audio/flac" => ("audio/flac", Kind::Audio, "flac"),
        "audio/webm" => ("audio/webm", Kind::Audio, "weba"),
        "audio/aiff" | "audio/x-aiff" => ("audio/aiff", Kind::Audio, "aiff"),
        "application/pdf" => ("application/pdf", Kind::Other, "pdf"),
        "image/svg+xml" => ("image/svg+xml", Kind::Other, "svg"),
        "text/plain" => ("text/plain", Kind::Other, "txt"),
        _ => (plain, Kind::Other, "bin"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FOO_SHA256: &str = "2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae";

    #[derive(Default)]
    struct Kept(Vec<(String, Vec<u8>)>);

    impl MediaSink for Kept {
        fn keep(&mut self, path: &str, bytes: &[u8]) -> bool {
            self.0.push((path.to_owned(), bytes.to_owned()));
            true
        }
    }

    #[track_caller]
    fn check(block: &str, want: Option<(&str, &str)>) {
        let want =
            want.map(|(media_type, base64)| Media { media_type: media_type.into(), base64: base64.into() });
        assert_eq!(Media::of_block(&PayloadFields::parse(block)), want, "{block}");
    }

    #[test]
    fn media_are_recognized_in_every_form() {
        check(
            r#"{"type":"image","source":{"type":"base64","media_type":"image/png","data":"Zm9v"}}"#,
            Some(("image/png", "Zm9v")),
        );
        check(r#"{"type":"audio","data":"Zm9v","mimeType":"audio/wav"}"#, Some(("audio/wav", "Zm9v")));
        check(
            r#"{"type":"resource","resource":{"uri":"a","mimeType":"application/pdf","blob":"Zm9v"}}"#,
            Some(("application/pdf", "Zm9v")),
        );
        check(
            r#"{"type":"input_image","image_url":"data:image/gif;base64,Zm9v"}"#,
            Some(("image/gif", "Zm9v")),
        );
        check(r#"{"image_url":{"url":"data:image/gif;base64,Zm9v"}}"#, Some(("image/gif", "Zm9v")));
        check(r#"{"type":"input_image","image_url":"https://example.com/a.png"}"#, None);
        check(r#"{"type":"text","text":"a"}"#, None);
    }

    #[test]
    fn media_of_a_record_are_found_in_order_except_in_tool_results() {
        let record = r#"{"message":{"content":[
            {"type":"tool_result","content":[{"type":"image","data":"AAAA","mimeType":"image/png"}]},
            {"type":"image","source":{"type":"base64","media_type":"image/png","data":"Zm9v"}},
            {"type":"text","text":"data:no"}]},
            "images":["data:image/webp;base64,Zg=="],"plain":"data:"}"#;
        let found = Media::find(record);
        let found: Vec<_> = found.iter().map(|media| (&*media.media_type, media.base64.to_text())).collect();
        assert_eq!(found, [("image/png", "Zm9v".into()), ("image/webp", "Zg==".into())]);
        assert_eq!(Media::find("{"), []);
    }

    #[test]
    fn search_for_media_stops_at_the_depth_limit() {
        let nested = |levels: usize| {
            format!("{}\"data:image/png;base64,Zg==\"{}", "[".repeat(levels), "]".repeat(levels))
        };
        assert_eq!(Media::find(&nested(DEPTH_MAX)).len(), 1);
        assert_eq!(Media::find(&nested(DEPTH_MAX + 1)).len(), 0);
    }

    #[track_caller]
    fn check_written(media_type: &str, base64: &str, sink: &mut dyn MediaSink, want: &str) {
        let mut out = String::new();
        let media = Media { media_type: media_type.into(), base64: base64.into() };
        media.write(&mut out, &mut Keeper::new(sink));
        assert_eq!(out, want.replace("SHA", FOO_SHA256));
    }

    #[test]
    fn media_become_files_or_descriptions() {
        let mut kept = Kept::default();
        check_written(
            "image/jpg",
            "Zm9v",
            &mut kept,
            r#"{"type":"image","source":{"media_type":"image/jpeg","path":"media/SHA.jpg"}}"#,
        );
        check_written(
            "audio/x-wav",
            "Zm9v",
            &mut kept,
            r#"{"type":"audio","source":{"media_type":"audio/wav","path":"media/SHA.wav"}}"#,
        );
        check_written(
            "application/pdf",
            "Zm9v",
            &mut kept,
            r#"{"type":"text","text":"[application/pdf, 3 bytes, media/SHA.pdf]"}"#,
        );
        let names: Vec<_> = kept.0.iter().map(|(path, bytes)| (&**path, &**bytes)).collect();
        let path = |ending: &str| format!("media/{FOO_SHA256}.{ending}");
        assert_eq!(names, [(&*path("jpg"), &b"foo"[..]), (&*path("wav"), b"foo"), (&*path("pdf"), b"foo")]);
        check_written(
            "image/png",
            "Zm9v",
            &mut NoMedia,
            r#"{"type":"text","text":"[image/png, 3 bytes, sha256 SHA]"}"#,
        );
        let want = r#"{"type":"text","text":"[image/png, recorded with invalid base64]"}"#;
        check_written("image/png", "Z", &mut kept, want);
    }
}
