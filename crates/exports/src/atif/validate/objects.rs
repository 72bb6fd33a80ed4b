//! Checks the fields of every object: none may be unknown, missing, repeated, of another kind, or newer than the
//! declared version.

use serde_json::value::RawValue;
use steno_model::Timestamp;
use steno_model::json::{Fields, text_of};

use super::Findings;
use super::shape::{Field, MINOR_MAX, Need, PARTS_SINCE, SESSION_OPTIONAL_SINCE, Shape, Want};

/// Visits the objects of a document. The recursion is as deep as the document, which has a limit.
pub(super) struct Objects<'a> {
    pub(super) findings: &'a mut Findings,
}

impl Objects<'_> {
    /// Checks a trajectory with all its objects. Returns false if it is not an object, so that no further rule applies.
    pub(super) fn trajectory(&mut self, raw: &RawValue, place: &str) -> bool {
        let Ok(fields) = Fields::parse(raw.get()) else {
            self.findings.error("field.type", place, "a trajectory is an object");
            return false;
        };
        let minor = self.version(&fields, place);
        let has_session = fields.iter().any(|(key, value)| key.is("session_id") && value.get() != "null");
        if minor < SESSION_OPTIONAL_SINCE && !has_session {
            let words = format!("`session_id` is missing, which ATIF 1.{minor} needs");
            self.findings.error("field.missing", place, words);
        }
        self.fields(Shape::Trajectory, &fields, minor, place);
        true
    }

    /// Returns the minor version that a trajectory declares, or the newest if it declares none.
    fn version(&mut self, fields: &Fields<'_>, place: &str) -> u8 {
        let declared = fields.iter().filter(|(key, _)| key.is("schema_version")).last();
        let Some((_, declared)) = declared else {
            self.findings.error("version", place, "`schema_version` is missing");
            return MINOR_MAX;
        };
        let text = text_of(declared).unwrap_or_default();
        let minor = text.strip_prefix("ATIF-v1.").and_then(|minor| minor.parse().ok());
        minor.filter(|minor| *minor <= MINOR_MAX && text.len() == "ATIF-v1.0".len()).unwrap_or_else(|| {
            let place = join(place, "schema_version");
            self.findings.error(
                "version",
                &place,
                format!("{declared} is not a version from ATIF-v1.0 to ATIF-v1.{MINOR_MAX}"),
            );
            MINOR_MAX
        })
    }

    fn object(&mut self, shape: Shape, raw: &RawValue, minor: u8, place: &str) {
        if shape == Shape::Trajectory {
            self.trajectory(raw, place);
            return;
        }
        match Fields::parse(raw.get()) {
            Ok(fields) => self.fields(shape, &fields, minor, place),
            Err(_) => self.findings.error("field.type", place, format!("{} is an object", shape.name())),
        }
    }

    fn fields(&mut self, shape: Shape, fields: &Fields<'_>, minor: u8, place: &str) {
        if let Some(name) = fields.duplicate() {
            self.findings.error("json.duplicate_key", place, format!("`{name}` occurs twice"));
        }
        for (key, value) in fields.iter() {
            let known = shape.fields().iter().find(|field| key.is(field.name));
            let place = join(place, &key.text());
            let Some(field) = known else {
                self.findings.error("field.unknown", &place, format!("{} has no such field", shape.name()));
                continue;
            };
            if field.since > minor && value.get() != "null" {
                let words =
                    format!("exists since ATIF 1.{}, but the trajectory has version 1.{minor}", field.since);
                self.findings.error("field.newer", &place, words);
            }
            self.value(field, value, minor, &place);
        }
        for field in shape.fields().iter().filter(|field| field.need == Need::Required) {
            if !fields.has(field.name) {
                let words = format!("`{}` is missing", field.name);
                self.findings.error("field.missing", place, words);
            }
        }
    }

    fn value(&mut self, field: &Field, raw: &RawValue, minor: u8, place: &str) {
        let text = raw.get();
        if text == "null" {
            if field.need == Need::Required {
                self.findings.error("field.type", place, "must not be null");
            }
            return;
        }
        match field.want {
            Want::Text => self.kind(text.starts_with('"'), place, "is not a string"),
            Want::Word(words) => {
                let is_one = text_of(raw).is_some_and(|findings| words.contains(&&*findings));
                if !is_one {
                    self.findings.error(
                        "field.value",
                        place,
                        format!("{} is not one of {}", short(text), words.join(", ")),
                    );
                }
            }
            Want::Whole(from) => self.whole(text, from, place),
            Want::Number => self.kind(is_number(text), place, "is not a number"),
            Want::TextOrNumber => {
                self.kind(text.starts_with('"') || is_number(text), place, "is neither string nor number");
            }
            Want::Flag => self.kind(matches!(text, "true" | "false"), place, "is neither true nor false"),
            Want::Free => self.kind(text.starts_with('{'), place, "is not an object"),
            Want::Object(shape) => self.object(shape, raw, minor, place),
            Want::Objects(shape) => {
                self.list(raw, place, |own, item, place| own.object(shape, item, minor, place));
            }
            Want::FreeObjects => self.list(raw, place, |own, item, place| {
                own.kind(item.get().starts_with('{'), place, "is not an object");
            }),
            Want::Numbers => self.list(raw, place, |own, item, place| {
                own.kind(is_number(item.get()), place, "is not a number");
            }),
            Want::Content if text.starts_with('"') => {}
            Want::Content => {
                if minor < PARTS_SINCE {
                    let words = format!(
                        "parts exist since ATIF 1.{PARTS_SINCE}, but the trajectory has version 1.{minor}"
                    );
                    self.findings.error("field.newer", place, words);
                }
                self.list(raw, place, |own, item, place| own.object(Shape::Part, item, minor, place));
            }
            Want::Time => self.time(raw, place),
        }
    }

    fn kind(&mut self, is_right: bool, place: &str, words: &str) {
        if !is_right {
            self.findings.error("field.type", place, words);
        }
    }

    fn whole(&mut self, text: &str, from: u64, place: &str) {
        match text.parse::<u64>() {
            Ok(number) if number >= from => {}
            Ok(_) => self.findings.error("field.value", place, format!("{text} is less than {from}")),
            Err(_) if text.starts_with('-') && is_number(text) => {
                self.findings.error("field.value", place, format!("{text} is less than {from}"));
            }
            Err(_) => {
                self.findings.error("field.type", place, format!("{} is not a whole number", short(text)));
            }
        }
    }

    fn time(&mut self, raw: &RawValue, place: &str) {
        let Some(text) = text_of(raw) else { return self.kind(false, place, "is not a string") };
        if Timestamp::parse(&text).is_err() {
            self.findings.error("time", place, format!("{} is not an RFC 3339 time", short(raw.get())));
        }
    }

    fn list(&mut self, raw: &RawValue, place: &str, mut each: impl FnMut(&mut Self, &RawValue, &str)) {
        let Ok(items) = serde_json::from_str::<Vec<&RawValue>>(raw.get()) else {
            return self.kind(false, place, "is not an array");
        };
        for (index, item) in items.into_iter().enumerate() {
            each(self, item, &format!("{place}[{index}]"));
        }
    }
}

fn is_number(text: &str) -> bool {
    text.starts_with(|first: char| first == '-' || first.is_ascii_digit())
}

/// Returns the place of a field.
pub(super) fn join(place: &str, name: &str) -> String {
    if place.is_empty() { name.to_owned() } else { format!("{place}.{name}") }
}

/// Returns the beginning of a value.
pub(super) fn short(json: &str) -> String {
    const CHARS_MAX: usize = 60;
    format!("`{}`", steno_views::cut(json, CHARS_MAX))
}
