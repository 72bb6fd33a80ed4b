//! Patches that agents record with the results of edits: unified diffs, which have the numbers of lines.

use serde_json::value::RawValue;
use steno_model::json::RawJson;

use crate::shapes::elements;
use crate::wire::{Raw, RawField as _, list, wire};

/// The field of a result that has the patch.
pub(crate) const FIELD: &str = "patch";

/// The longest patch that is kept, as JSON. A longer one is a file that was written anew, which the call has.
const PATCH_BYTES_MAX: usize = 256 * 1024;

wire! {
    /// A changed part of a file, as Claude Code records it.
    struct Hunk { old_start: "oldStart", new_start: "newStart", lines: "lines", }
}

/// Returns a patch that is a text, if it has the numbers of lines.
pub(crate) fn unified(raw: Raw<'_>) -> Option<RawJson> {
    let text = raw.filter(|raw| raw.get().starts_with('"') && raw.get().len() <= PATCH_BYTES_MAX)?;
    text.get().contains("@@ -").then(|| RawJson::from_raw(text))
}

/// Makes a patch of a list of hunks: `[{"oldStart": 12, "newStart": 12, "lines": [" a", "-b", "+c"]}]`.
pub(crate) fn of_hunks(raw: Raw<'_>) -> Option<RawJson> {
    let hunks = list::<Hunk<'_>>(raw.filter(|raw| raw.get().len() <= PATCH_BYTES_MAX)?)?;
    // The lines stay JSON: not every text in it can be decoded.
    let mut patch = String::from("\"");
    for hunk in &hunks {
        let hunk = hunk.as_ref()?;
        let (old, new) = hunk.old_start.number().zip(hunk.new_start.number())?;
        let lines: Vec<&str> = elements(hunk.lines)?.into_iter().map(inside).collect::<Option<_>>()?;
        let count = |other: char| {
            lines.iter().filter(|line| !line.starts_with(other) && !line.starts_with('\\')).count()
        };
        patch.push_str(&format!("@@ -{old},{} +{new},{} @@\\n", count('+'), count('-')));
        for line in &lines {
            patch.push_str(line);
            patch.push_str("\\n");
        }
    }
    patch.push('"');
    RawJson::parse(&patch).ok().filter(|_| !hunks.is_empty())
}

/// Returns what is between the quotes of a JSON string.
fn inside(line: &RawValue) -> Option<&str> {
    line.get().strip_prefix('"')?.strip_suffix('"')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(make: fn(Raw<'_>) -> Option<RawJson>, json: &str, want: Option<&str>) {
        let raw: &RawValue = serde_json::from_str(json).unwrap();
        assert_eq!(make(Some(raw)).as_ref().map(RawJson::as_str), want, "{json}");
    }

    #[test]
    fn hunks_become_a_unified_diff() {
        check(
            of_hunks,
            r#"[{"oldStart":12,"oldLines":2,"newStart":12,"newLines":3,"lines":[" a","-\"b\"","+c","+\ud800","\\ No newline at end of file"]}]"#,
            Some(r#""@@ -12,2 +12,3 @@\n a\n-\"b\"\n+c\n+\ud800\n\\ No newline at end of file\n""#),
        );
        for json in
            ["[]", "{}", "[1]", r#"[{"oldStart":1,"newStart":1,"lines":[2]}]"#, r#"[{"lines":[" a"]}]"#]
        {
            check(of_hunks, json, None);
        }
    }

    #[test]
    fn text_is_a_patch_if_it_has_numbers_of_lines() {
        check(unified, r#""@@ -1 +1 @@\n-a\n+b\n""#, Some(r#""@@ -1 +1 @@\n-a\n+b\n""#));
        check(unified, r#""a file""#, None);
        check(unified, r#"{"a":"@@ -1 +1 @@"}"#, None);
    }

    #[test]
    fn long_patch_is_left_out() {
        let lines = |count| format!("\"@@ -1 +1 @@\\n{}\"", "+a\\n".repeat(count));
        check(unified, &lines(PATCH_BYTES_MAX / 4), None);
        assert!(unified(Some(&serde_json::from_str::<Box<RawValue>>(&lines(2000)).unwrap())).is_some());
    }
}
