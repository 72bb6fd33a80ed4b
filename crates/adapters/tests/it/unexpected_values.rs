//! Puts values of unexpected kinds into each field that an adapter reads: their content is kept, or their record is
//! recorded and counted as unknown.

use serde_json::Value;
use steno_adapters::Adapter;

use crate::adapter_output::{Made, made_of_lines};

/// Text that only the unexpected values contain.
const MARK: &str = "70707";

/// Values that contain the mark, of every kind that can.
pub(crate) const VALUES: [&str; 8] = [
    "70707",
    r#""70707""#,
    r#"["70707"]"#,
    "[[70707]]",
    r#"{"odd":"70707"}"#,
    r#"[{"type":"hologram","odd":"70707"}]"#,
    r#"[{"type":"text","text":{"odd":70707}}]"#,
    r#"{"message":{"odd":70707},"text":[70707]}"#,
];

/// Values without content; the last stands for an absent field.
const SILENT: [&str; 6] = ["true", "null", r#""""#, "[]", "{}", ABSENT];
const ABSENT: &str = r#""absent""#;

/// Records of a surface, each with `@` in place of a value.
pub(crate) struct Surface {
    pub(crate) name: &'static str,
    pub(crate) adapter: fn() -> Adapter,
    pub(crate) before: &'static [&'static str],
    /// Ends the turn, so that no event is waiting.
    pub(crate) after: &'static [&'static str],
    pub(crate) records: &'static [&'static str],
}

impl Surface {
    pub(crate) fn read(&self, record: Option<&str>) -> Made {
        let lines: Vec<&str> =
            self.before.iter().copied().chain(record).chain(self.after.iter().copied()).collect();
        made_of_lines((self.adapter)(), &lines)
    }

    /// Reads the lines around the records, which are all known.
    fn read_plain(&self) -> Made {
        let plain = self.read(None);
        assert!(plain.completeness.unknown.is_empty(), "{}", self.name);
        plain
    }
}

fn unknown(made: &Made) -> u64 {
    made.completeness.unknown.values().sum()
}

fn is_gone(made: &Made, plain: &Made) -> bool {
    let passed_over = made.completeness.bookkeeping - plain.completeness.bookkeeping;
    made.events.len() == plain.events.len() && passed_over + unknown(made) == 0
}

/// Returns what is wrong with the output for a record that contains the mark.
fn fault(made: &Made, plain: &Made) -> Option<&'static str> {
    let text = Value::from(made.events.clone()).to_string();
    let told = made.events.iter().filter(|event| event["payload"]["kind"] == "unknown").count();
    match () {
        () if made.completeness.unreadable > 0 => Some("cannot be read"),
        () if told as u64 != unknown(made) => {
            Some("is told as unknown and not counted, or the other way round")
        }
        () if unknown(made) > 0 || text.contains(MARK) => None,
        () if made.events.len() == plain.events.len() => Some("vanished"),
        () => Some("lost its content"),
    }
}

/// Puts every value into every record, unless it is expected there; returns how many were tried.
#[track_caller]
pub(crate) fn check(surfaces: &[&Surface], is_usual: fn(&str, &str) -> bool) -> usize {
    let (mut faults, mut tried) = (Vec::new(), 0);
    for surface in surfaces {
        let plain = surface.read_plain();
        for record in surface.records {
            for value in VALUES.into_iter().filter(|value| !is_usual(record, value)) {
                let odd = record.replace('@', value);
                tried += 1;
                if let Some(fault) = fault(&surface.read(Some(&odd)), &plain) {
                    faults.push(format!("{}: {odd} {fault}", surface.name));
                }
            }
        }
    }
    assert!(faults.is_empty(), "{} of {tried}:\n{}", faults.len(), faults.join("\n"));
    tried
}

/// Puts values without content into every record: each is recorded, counted as unknown, or listed as bookkeeping.
#[track_caller]
pub(crate) fn check_silent(surfaces: &[&Surface]) -> usize {
    let (mut faults, mut tried) = (Vec::new(), 0);
    for surface in surfaces {
        let plain = surface.read_plain();
        for record in surface.records {
            for value in SILENT {
                let silent = if value == ABSENT { without(record) } else { record.replace('@', value) };
                tried += 1;
                if is_gone(&surface.read(Some(&silent)), &plain) {
                    faults.push(format!("{}: {silent} vanished", surface.name));
                }
            }
        }
    }
    assert!(faults.is_empty(), "{} of {tried}:\n{}", faults.len(), faults.join("\n"));
    tried
}

/// Returns a record without the field or element that has the value `@`.
fn without(record: &str) -> String {
    let (sent, record) = record.strip_prefix('>').map_or(("", record), |record| (">", record));
    let mut value = serde_json::from_str(&record.replace('@', ABSENT)).unwrap();
    drop_absent(&mut value);
    format!("{sent}{value}")
}

fn drop_absent(value: &mut Value) {
    let is_there = |value: &Value| value.as_str() != Some("absent");
    match value {
        Value::Object(fields) => {
            fields.retain(|_, value| is_there(value));
            fields.values_mut().for_each(drop_absent);
        }
        Value::Array(items) => {
            items.retain(is_there);
            items.iter_mut().for_each(drop_absent);
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
