//! The JSON Schema of a written event, held against the golden lines, the vocabularies and the draft parser.

use boon::{Compiler, SchemaIndex, Schemas};
use serde_json::{Map, Value, json};
use steno_model::{BlockType, EventType, Fidelity, Role, Vocabulary};
use steno_testkit::places;

use crate::cases::{self, Schema};
use crate::golden;
use crate::kit::{RUN, TIME, line, meaning, written};

const SCHEMA: &str = "docs/format/exchange-event.schema.json";

/// The compiled schema.
struct Checker {
    schemas: Schemas,
    index: SchemaIndex,
}

impl Checker {
    fn new() -> Self {
        let mut compiler = Compiler::new();
        let mut schemas = Schemas::new();
        compiler.add_resource("steno:/event", schema()).unwrap();
        let index =
            compiler.compile("steno:/event", &mut schemas).unwrap_or_else(|error| panic!("{error:#}"));
        Self { schemas, index }
    }

    #[track_caller]
    fn check_valid(&self, line: &str) {
        if let Err(error) = self.schemas.validate(&meaning(line), self.index) {
            panic!("{error:#}\n{line}");
        }
    }

    #[track_caller]
    fn check_invalid(&self, value: &Value) {
        assert!(self.schemas.validate(value, self.index).is_err(), "the schema takes {value}");
    }
}

fn schema() -> Value {
    meaning(&places::read(SCHEMA))
}

/// Fills in what the journal would, so that nothing but the case's own fault is wrong with it.
fn completed(sent: &str) -> Value {
    let mut value = meaning(sent);
    let Value::Object(fields) = &mut value else { return value };
    let envelope = [
        ("seq", json!(1)),
        ("run_id", json!(RUN)),
        ("path", json!("")),
        ("iteration", json!(0)),
        ("timestamp", json!(TIME)),
        ("payload", Value::Null),
    ];
    for (name, given) in envelope {
        fields.entry(name).or_insert(given);
    }
    value
}

/// Asks for the list of words below a definition.
#[track_caller]
fn check_words<V: Vocabulary>(definition: &str) {
    let words: Vec<&str> = V::ALL.iter().map(|word| word.as_str()).collect();
    assert_eq!(schema()["$defs"][definition]["enum"], json!(words), "{definition}");
}

#[test]
fn schema_is_valid_for_its_draft() {
    assert_eq!(schema()["$schema"], "https://json-schema.org/draft/2020-12/schema");
    Checker::new();
}

#[test]
fn schema_lists_the_words_of_the_vocabularies() {
    check_words::<EventType>("event_type");
    check_words::<BlockType>("block_type");
    check_words::<Fidelity>("fidelity");
    check_words::<Role>("role");
}

#[test]
fn golden_lines_are_valid() {
    let checker = Checker::new();
    for line in golden::lines() {
        checker.check_valid(&line);
    }
}

#[test]
fn accepted_drafts_satisfy_the_schema() {
    let checker = Checker::new();
    for sent in cases::accepted() {
        checker.check_valid(&written(sent.as_bytes()).unwrap());
    }
    for time in ["2024-01-15T10:30:00.123+00:00", "2026-06-08t08:14:42z", "2016-12-31T23:59:60Z"] {
        checker.check_valid(&line("run.started", "null").replace(TIME, time));
    }
}

#[test]
fn refused_drafts_violate_the_schema_if_it_can_see_the_fault() {
    let checker = Checker::new();
    let refused = cases::refused();
    let seen: Vec<_> = refused.iter().filter(|refusal| refusal.schema == Schema::RefusesToo).collect();
    assert!(seen.len() > 150, "only {} cases", seen.len());
    for refusal in seen {
        checker.check_invalid(&completed(&refusal.line));
    }
}

#[test]
fn cases_have_only_their_own_fault() {
    let checker = Checker::new();
    for sent in cases::accepted() {
        let value = completed(&sent);
        assert!(checker.schemas.validate(&value, checker.index).is_ok(), "{value}");
    }
    // A table that marks a case as out of sight must not hide one that the schema does refuse, except for a `seq`
    // that is there and not null: in a written line it has to be.
    for refusal in cases::refused().iter().filter(|refusal| refusal.schema == Schema::CannotSee) {
        let Ok(value) = serde_json::from_str::<Value>(&refusal.line) else { continue };
        let value = completed(&value.to_string());
        let refused = checker.schemas.validate(&value, checker.index).is_err();
        assert_eq!(refused, value["seq"].is_null(), "{}", refusal.line);
    }
}

#[test]
fn envelope_fields_of_a_written_line_are_required() {
    let checker = Checker::new();
    let whole: Map<String, Value> = meaning(&line("run.started", "null")).as_object().unwrap().clone();
    for name in ["seq", "run_id", "type", "path", "iteration", "timestamp", "payload"] {
        let mut without = whole.clone();
        without.remove(name).unwrap();
        checker.check_invalid(&Value::Object(without));
    }
    for (name, bad) in [
        ("seq", json!(0)),
        ("seq", json!(1.5)),
        ("seq", json!("1")),
        ("run_id", json!(RUN.to_uppercase())),
        ("run_id", json!(RUN.replace('-', ""))),
        ("parent_run_id", Value::Null),
        ("child_run_id", json!("")),
        ("timestamp", json!("2026-06-08T10:14:42+02:00")),
        ("timestamp", Value::Null),
    ] {
        let mut changed = whole.clone();
        changed.insert(name.to_owned(), bad);
        checker.check_invalid(&Value::Object(changed));
    }
}
