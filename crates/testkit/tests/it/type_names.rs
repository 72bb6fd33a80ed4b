//! The names of types: a public name is used once in a crate, and a name is a noun that can be searched for. Each rule has
//! a test below that breaks it.

use std::collections::BTreeMap;
use std::path::Path;

use steno_testkit::places;

use crate::source::{self, TypeName};

/// Participles and words that fit anything. They are not accepted as the whole name of a type, public or private.
const VAGUE_TYPES: [&str; 87] = [
    "Accounting",
    "Again",
    "Answered",
    "Appending",
    "Asked",
    "Asking",
    "Awaited",
    "Beside",
    "Called",
    "Came",
    "Cancelled",
    "Captured",
    "Changed",
    "Chosen",
    "Compacted",
    "Copying",
    "Counted",
    "Described",
    "Distilling",
    "Done",
    "Ended",
    "Failed",
    "Forgotten",
    "Found",
    "Given",
    "Gone",
    "Had",
    "Heard",
    "Held",
    "Indexing",
    "Initialized",
    "Judged",
    "Kept",
    "Known",
    "Left",
    "Look",
    "Looked",
    "Lost",
    "Made",
    "Masked",
    "Matching",
    "Meant",
    "Measured",
    "Met",
    "Missed",
    "Named",
    "Noted",
    "Noticed",
    "Passed",
    "Piece",
    "Place",
    "Places",
    "Put",
    "Read",
    "Reading",
    "Recorded",
    "Recording",
    "Rest",
    "Retained",
    "Said",
    "Saving",
    "Seen",
    "Sent",
    "Served",
    "Shown",
    "Splitting",
    "Spoken",
    "Stood",
    "Stuff",
    "Taken",
    "Talk",
    "Taught",
    "Tested",
    "Thing",
    "Things",
    "Thought",
    "Told",
    "Typed",
    "Unfolding",
    "Unpaired",
    "Used",
    "Waiting",
    "Wanted",
    "What",
    "Why",
    "Withholding",
    "Written",
];

#[test]
fn public_type_names_are_used_once_in_a_crate() {
    let types = workspace_types();
    assert_none(&repeated(&types));
}

#[test]
fn type_names_are_nouns() {
    let types = workspace_types();
    assert_none(&vague(&types));
}

/// A type of a crate and where it is declared.
struct CrateType {
    crate_name: String,
    path: String,
    of: TypeName,
}

/// Complaints by the name that they are about, as `crate::Name`.
type Complaints = BTreeMap<String, String>;

fn workspace_types() -> Vec<CrateType> {
    let paths = places::files().into_iter().filter(|path| Path::new(path).extension() == Some("rs".as_ref()));
    let types: Vec<_> = paths.flat_map(|path| types_in(&path, &places::read(&path))).collect();
    assert!(
        types.iter().any(|found| found.of.name == "RunId" && found.of.is_public),
        "the walk misses the model"
    );
    types
}

/// Lists the types of a source file of a crate. Tests, benchmarks and examples may name theirs as they like to be short.
fn types_in(path: &str, text: &str) -> Vec<CrateType> {
    let parts: Vec<&str> = path.split('/').collect();
    let ["crates", crate_name, "src", ..] = parts[..] else { return Vec::new() };
    let code = source::layers(text).code;
    let tests = source::test_modules(&code);
    let is_test_file = parts.iter().any(|part| ["tests", "tests.rs"].contains(part));
    let is_test = |line: usize| is_test_file || tests.iter().any(|lines| lines.contains(&line));
    let types = source::type_names(&code).into_iter().filter(|found| !is_test(found.line));
    types.map(|of| CrateType { crate_name: crate_name.to_owned(), path: path.to_owned(), of }).collect()
}

/// Finds public names that a crate has more than once.
fn repeated(types: &[CrateType]) -> Complaints {
    let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for found in types.iter().filter(|found| found.of.is_public) {
        places.entry(key(found)).or_default().push(format!("{}:{}", found.path, found.of.line));
    }
    let repeated = places.into_iter().filter(|(_, places)| places.len() > 1);
    repeated.map(|(name, places)| (name, format!("is public in {}", places.join(" and ")))).collect()
}

/// Finds names that say nothing about what a type is.
fn vague(types: &[CrateType]) -> Complaints {
    let vague = types.iter().filter(|found| VAGUE_TYPES.contains(&found.of.name.as_str()));
    vague
        .map(|found| (key(found), format!("is not a noun of the field, in {}:{}", found.path, found.of.line)))
        .collect()
}

fn key(found: &CrateType) -> String {
    format!("{}::{}", found.crate_name, found.of.name)
}

#[track_caller]
fn assert_none(complaints: &Complaints) {
    let report: Vec<String> = complaints.iter().map(|(name, what)| format!("{name} {what}")).collect();
    assert!(report.is_empty(), "\n{}", report.join("\n"));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn types(files: &[(&str, &str)]) -> Vec<CrateType> {
        files.iter().flat_map(|(path, text)| types_in(path, text)).collect()
    }

    #[track_caller]
    fn check(rule: fn(&[CrateType]) -> Complaints, files: &[(&str, &str)], want: &[&str]) {
        let found = rule(&types(files));
        assert_eq!(found.keys().map(String::as_str).collect::<Vec<_>>(), want, "{files:?}");
    }

    #[test]
    fn repeated_public_name_in_a_crate_is_found() {
        let (one, two) = ("crates/a/src/one.rs", "crates/a/src/two.rs");
        for item in [
            "pub struct Line;",
            "pub enum Line {}",
            "pub trait Line {}",
            "pub type Line = u8;",
            "pub union Line {}",
        ] {
            check(repeated, &[(one, "pub struct Line(u8);"), (two, item)], &["a::Line"]);
            check(repeated, &[(one, "pub struct Line(u8);"), ("crates/b/src/two.rs", item)], &[]);
        }
        check(repeated, &[(one, "pub struct Line;"), (two, "pub(crate) struct Line;\nstruct Line;")], &[]);
        check(
            repeated,
            &[(one, "pub struct Line;"), (two, "// pub struct Line;\nf(\"pub struct Line;\")")],
            &[],
        );
        check(repeated, &[(one, "pub struct Line;"), ("crates/a/tests/it/two.rs", "pub struct Line;")], &[]);
        let in_tests = "#[cfg(test)]\nmod tests {\n    pub struct Line;\n}\n";
        check(repeated, &[(one, "pub struct Line;"), (two, in_tests)], &[]);
    }

    #[test]
    fn vague_private_name_is_found() {
        for name in VAGUE_TYPES {
            let want = format!("a::{name}");
            check(vague, &[("crates/a/src/one.rs", &format!("struct {name} {{}}"))], &[&want]);
        }
        check(vague, &[("crates/a/src/one.rs", "pub(super) enum Said<'a> {}")], &["a::Said"]);
        check(vague, &[("crates/a/src/one.rs", "struct SaidLine;\nlet type_said = 1;")], &[]);
        check(vague, &[("crates/a/tests/it/one.rs", "struct Said;")], &[]);
        check(vague, &[("crates/a/src/b/tests/one.rs", "struct Said;")], &[]);
    }
}
