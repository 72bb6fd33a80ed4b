//! Diffs of calls: the arguments of every agent, marks inside lines, hostile input.

use proptest::prelude::*;
use serde_json::{Value, json};
use steno_model::json::RawJson;

use super::*;

/// Shows diffs as short lines; changed parts of a line are in brackets.
fn shown(diffs: &[FileDiff]) -> String {
    let mut out = String::new();
    for diff in diffs {
        let path = diff.path.as_deref().unwrap_or("?");
        let moved = diff.moved_to.as_deref().map(|path| format!(" -> {path}")).unwrap_or_default();
        out += &format!("{:?} {path}{moved} +{} -{}\n", diff.kind, diff.added, diff.removed);
        for hunk in &diff.hunks {
            let number = |number: Option<u64>| number.map_or("?".to_owned(), |number| number.to_string());
            let place = hunk.place.as_deref().unwrap_or_default();
            out += &format!("@ {} {} {place}\n", number(hunk.old_start), number(hunk.new_start));
            for line in &hunk.lines {
                out += match line.kind {
                    DiffLineKind::Context => " ",
                    DiffLineKind::Added => "+",
                    DiffLineKind::Removed => "-",
                };
                for part in &line.parts {
                    out += &if part.is_changed { format!("[{}]", part.text) } else { part.text.clone() };
                }
                out += "\n";
            }
        }
    }
    out
}

fn diffs_of(input: &Value, patch: Option<&Value>) -> Vec<FileDiff> {
    let json = |value: &Value| RawJson::parse(&value.to_string()).unwrap();
    call_diffs(&json(input), patch.map(json).as_ref())
}

#[track_caller]
fn check(input: &Value, want: &str) {
    assert_eq!(shown(&diffs_of(input, None)), want, "{input}");
}

const EDIT: &str = "Edit a.py +1 -1\n@ ? ? \n def f():\n-    return [1]\n+    return [2]\n";

#[test]
fn replacements_of_every_agent_are_diffs() {
    let (old, new) = ("def f():\n    return 1\n", "def f():\n    return 2\n");
    check(&json!({"file_path": "a.py", "old_string": old, "new_string": new, "replace_all": false}), EDIT);
    check(&json!({"path": "a.py", "old_str": old, "new_str": new}), EDIT);
    check(&json!({"filePath": "a.py", "oldString": old, "newString": new}), EDIT);
    check(&json!({"content": [{"type": "diff", "path": "a.py", "oldText": old, "newText": new}]}), EDIT);
    let edits = json!([{"old_string": old, "new_string": new}, {"old_string": "x", "new_string": ""}]);
    check(
        &json!({"file_path": "a.py", "edits": edits}),
        &EDIT.replace("+1 -1", "+1 -2").replace("return [2]\n", "return [2]\n@ ? ? \n-x\n"),
    );
}

#[test]
fn whole_files_are_diffs() {
    for name in ["content", "file_text"] {
        check(&json!({"path": "a", (name): "x\n\ny\n"}), "Write a +3 -0\n@ ? 1 \n+x\n+\n+y\n");
    }
    check(&json!({"notebook_path": "a.ipynb", "new_source": "x"}), "Edit a.ipynb +1 -0\n@ ? ? \n+x\n");
    for other in
        [json!({}), json!(7), json!("text"), json!({"content": "x"}), json!({"path": "a"}), json!([1])]
    {
        check(&other, "");
    }
}

#[test]
fn patches_are_diffs() {
    let patch = "*** Begin Patch\n*** Update File: a.py\n*** Move to: b.py\n@@ class A:\n def f():\n-    return 1\n+    return 2\n\
        *** Add File: c\n+x\n*** Delete File: d\n*** End Patch\n";
    let want = "Edit a.py -> b.py +1 -1\n@ ? ? class A:\n def f():\n-    return [1]\n+    return [2]\n\
        Add c +1 -0\n@ 0 1 \n+x\nDelete d +0 -0\n";
    check(&json!(patch), want);
    check(&json!({"input": patch}), want);
    check(&json!({"patch": patch}), want);
    let script = format!("apply_patch <<'EOF'\n{patch}EOF\n");
    check(&json!({"cmd": script}), want);
    check(&json!({"command": ["bash", "-lc", script]}), want);
}

#[test]
fn unified_diffs_have_line_numbers() {
    let diff = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -3,2 +3,2 @@ fn f\n same\n--- old\n+new\n\\ No newline at end of file\n\
        --- /dev/null\n+++ b/y\n@@ -0,0 +1 @@\n+z\n";
    let want = "Edit x +1 -1\n@ 3 3 fn f\n same\n--- old\n+new\nAdd y +1 -0\n@ 0 1 \n+z\n";
    check(&json!({"diff": diff}), want);
    let changes = json!({
        "x": {"update": {"unified_diff": "@@ -1 +1 @@\n-a\n+b\n", "move_path": "w"}},
        "y": {"type": "add", "content": "z\n"},
        "q": {"delete": {"content": "z\n"}},
    });
    check(
        &json!({"changes": changes}),
        "Delete q +0 -1\n@ 1 0 \n-z\nEdit x -> w +1 -1\n@ 1 1 \n-a\n+b\nAdd y +1 -0\n@ 0 1 \n+z\n",
    );
}

#[track_caller]
fn check_recorded(input: &Value, patch: &Value, want: &str) {
    assert_eq!(shown(&diffs_of(input, Some(patch))), want, "{input} {patch}");
}

#[test]
fn recorded_patches_have_line_numbers_and_what_was_there() {
    let write = json!({"file_path": "/w/a", "content": "x\ny\n"});
    let patch = json!("@@ -7,2 +8,2 @@\n x\n+y\n-z\n");
    check_recorded(&write, &patch, "Edit /w/a +1 -1\n@ 7 8 \n x\n+y\n-z\n");
    let edit = json!({"path": "/w/a", "old_str": "z", "new_str": "y", "replace_all": true});
    let twice = json!("--- a/w/a\n+++ b/w/a\n@@ -7 +7 @@\n-z\n+y\n@@ -9 +9 @@\n-z\n+y\n");
    check_recorded(&edit, &twice, "Edit /w/a +2 -2\n@ 7 7 \n-z\n+y\n@ 9 9 \n-z\n+y\n");
    // A patch without a hunk says nothing.
    check_recorded(&write, &json!(""), "Write /w/a +2 -0\n@ ? 1 \n+x\n+y\n");
    // Of a new file, the arguments have all lines.
    let new = json!("--- a\tOriginal\n+++ a\tWritten\n@@ -0,0 +1,3 @@\n+x\n+y\n+\n");
    check_recorded(&write, &new, "Add /w/a +2 -0\n@ ? 1 \n+x\n+y\n");
    check_recorded(&json!({}), &patch, "Edit ? +1 -1\n@ 7 8 \n x\n+y\n-z\n");
}

/// Copilot CLI has a line for the empty text after the last line feed.
#[test]
fn end_of_a_deleted_file_is_no_line() {
    let delete = json!("*** Begin Patch\n*** Delete File: /w/d\n*** End Patch\n");
    let patch = |lines: &str, len: usize| {
        json!(format!(
            "diff --git a/w/d b/w/d\ndelete file mode 100644\n--- a/w/d\n+++ b/dev/null\n@@ -1,{len} +1,0 @@\n{lines}\n\n"
        ))
    };
    check_recorded(&delete, &patch("-x\n-", 2), "Delete /w/d +0 -1\n@ 1 1 \n-x\n");
    check_recorded(&delete, &patch("-x\n-\n-", 3), "Delete /w/d +0 -2\n@ 1 1 \n-x\n-\n");
    check_recorded(&delete, &patch("-x", 1), "Delete /w/d +0 -1\n@ 1 1 \n-x\n");
    let new = json!("--- a/dev/null\n+++ b/w/d\n@@ -1,0 +1,2 @@\n+x\n+\n\n");
    check_recorded(&json!({}), &new, "Add w/d +1 -0\n@ 1 1 \n+x\n");
    // Git counts as it should, and its empty lines stay.
    let git = json!("--- a/w/d\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-x\n-\n");
    check_recorded(&delete, &git, "Delete /w/d +0 -2\n@ 1 0 \n-x\n-\n");
}

#[test]
fn recorded_changes_are_matched_by_file() {
    let patch = "*** Begin Patch\n*** Update File: b.py\n@@ class A:\n-x\n+y\n*** Delete File: d\n\
        *** Update File: ab.py\n@@\n-x\n+y\n*** End Patch\n";
    let changes = json!({
        "/w/b.py": {"type": "update", "unified_diff": "@@ -3,2 +3,2 @@\n w\n-x\n+y\n"},
        "/w/d": {"type": "delete", "content": "z\n"},
    });
    check_recorded(
        &json!(patch),
        &changes,
        "Edit b.py +1 -1\n@ 3 3 \n w\n-x\n+y\nDelete d +0 -1\n@ 1 0 \n-z\nEdit ab.py +1 -1\n@ ? ? \n-x\n+y\n",
    );
}

#[test]
fn only_similar_lines_have_marks() {
    check(
        &json!({"path": "a", "old_str": "let total = a + b;\nreturn x", "new_str": "let sum = a + b;\nother words here"}),
        "Edit a +2 -2\n@ ? ? \n-let [total] = a + b;\n-return x\n+let [sum] = a + b;\n+other words here\n",
    );
}

#[test]
fn long_texts_are_not_compared() {
    let old = "a\n".repeat(texts::LINES_MAX);
    let diffs = diffs_of(&json!({"path": "a", "old_str": old, "new_str": "b\n"}), None);
    assert_eq!((diffs[0].removed, diffs[0].added), (texts::LINES_MAX as u64, 1));
    let line = "x ".repeat(1_000_000);
    let diffs = diffs_of(&json!({"path": "a", "old_str": line, "new_str": format!("{line}y")}), None);
    assert_eq!(diffs[0].hunks[0].lines.len(), 2);
    assert_eq!(diffs[0].hunks[0].lines[0].parts.len(), 1, "long lines have no marks");
}

proptest! {
    #[test]
    fn both_texts_are_in_the_diff(
        old in prop::collection::vec("[a-c ]{0,6}", 0..12),
        new in prop::collection::vec("[a-c ]{0,6}", 0..12),
    ) {
        let diffs = diffs_of(&json!({"path": "a", "old_str": old.join("\n"), "new_str": new.join("\n")}), None);
        let lines = |kind| -> Vec<String> {
            let lines = diffs[0].hunks.iter().flat_map(|hunk| &hunk.lines);
            lines.filter(|line| line.kind == kind).map(DiffLine::text).collect()
        };
        // Without the lines that are the same, each text has the lines of the diff, in order.
        let is_subsequence = |part: &[String], whole: &[String]| {
            let mut rest = whole.iter();
            part.iter().all(|line| rest.any(|other| other == line))
        };
        prop_assert!(is_subsequence(&lines(DiffLineKind::Removed), &old));
        prop_assert!(is_subsequence(&lines(DiffLineKind::Added), &new));
        let (old, new) = (old.join("\n"), new.join("\n"));
        let counts = (old.lines().count() as u64, new.lines().count() as u64);
        prop_assert_eq!(diffs[0].removed + counts.1, diffs[0].added + counts.0);
    }

    #[test]
    fn no_patch_panics(text in "(\\*\\*\\* (Begin Patch|Add File: x|End Patch)\n|@@( -1,2 \\+1 @@)?\n|[-+ \\\\]?[a-zé]{0,4}\n|--- a\n|\\+\\+\\+ b\n){0,20}") {
        diffs_of(&json!(text), None);
        diffs_of(&json!({"path": "p", "diff": text}), None);
    }
}
