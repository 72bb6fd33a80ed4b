//! The file changes of a call, as a patch for `git apply`.

use steno_model::json::RawJson;

use super::session::plain_path;
use steno_session::PayloadFields;

/// The file changes of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Patch {
    /// The call.
    pub call: String,
    /// The patch.
    pub text: String,
    /// The files that it touches, relative to the repository.
    pub files: Vec<String>,
    /// The new ones among them, with their content.
    pub(super) added: Vec<(String, String)>,
}

/// A change of one file.
#[derive(Debug, PartialEq, Eq)]
enum Change {
    Add { path: String, content: String },
    Delete { path: String, content: String },
    Update { path: String, hunks: String, moved_to: Option<String> },
}

impl Patch {
    /// Makes a patch of the changes of a call below a root.
    ///
    /// # Errors
    ///
    /// The reason why this is impossible.
    pub(super) fn of(call: &str, changes: &RawJson, root: &str, cwd: &str) -> Result<Self, String> {
        let mut changes = read(changes).ok_or("its changes have a form that we don't know")?;
        changes.sort_by(|one, other| one.path().cmp(other.path()));
        let place = PathBase { root: root.trim_end_matches('/'), cwd };
        let mut patch =
            Self { call: call.to_owned(), text: String::new(), files: Vec::new(), added: Vec::new() };
        for change in &changes {
            change.write(&place, &mut patch)?;
        }
        Ok(patch)
    }
}

/// The base of relative paths.
struct PathBase<'a> {
    root: &'a str,
    cwd: &'a str,
}

impl PathBase<'_> {
    /// Returns a path relative to the root.
    fn below(&self, path: &str) -> Result<String, String> {
        let path = plain_path(path);
        let full =
            if path.starts_with('/') { path } else { format!("{}/{path}", self.cwd.trim_end_matches('/')) };
        let outside = || format!("`{full}` is outside the repository");
        let below =
            full.strip_prefix(self.root).and_then(|rest| rest.strip_prefix('/')).ok_or_else(outside)?;
        let parts: Vec<&str> = below.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
        if parts.is_empty() || parts.iter().any(|part| matches!(*part, ".." | ".git")) {
            return Err(outside());
        }
        Ok(parts.join("/"))
    }
}

/// Reads changes: an object by path in session files, a list on connections.
fn read(changes: &RawJson) -> Option<Vec<Change>> {
    let by_path = PayloadFields::parse(changes.as_str());
    if changes.as_str().starts_with('{') {
        let read = |path: &String| one(path, &by_path.object(path), ["content", "unified_diff"]);
        return by_path.names().iter().map(read).collect();
    }
    let items: Vec<&serde_json::value::RawValue> = serde_json::from_str(changes.as_str()).ok()?;
    items
        .iter()
        .map(|item| {
            let fields = PayloadFields::parse(item.get());
            let path = fields.text("path")?;
            let kind = fields.object("kind");
            let text = fields.text("diff")?;
            let moved_to = kind.text("move_path").map(std::borrow::Cow::into_owned);
            // The app-server repeats the new path of a moved file after the lines.
            let moved = moved_to.as_ref().map(|to| format!("\n\nMoved to: {to}"));
            let text = moved.and_then(|moved| text.strip_suffix(moved.as_str())).unwrap_or(&text);
            change(&path, &kind.text("type")?, text.to_owned(), moved_to)
        })
        .collect()
}

fn one(path: &str, fields: &PayloadFields<'_>, [content, diff]: [&str; 2]) -> Option<Change> {
    let kind = fields.text("type")?;
    let text = fields.text(if kind == "update" { diff } else { content })?.into_owned();
    change(path, &kind, text, fields.text("move_path").map(std::borrow::Cow::into_owned))
}

fn change(path: &str, kind: &str, text: String, moved_to: Option<String>) -> Option<Change> {
    let path = path.to_owned();
    match kind {
        "add" => Some(Change::Add { path, content: text }),
        "delete" => Some(Change::Delete { path, content: text }),
        "update" => Some(Change::Update { path, hunks: text, moved_to }),
        _ => None,
    }
}

impl Change {
    fn path(&self) -> &str {
        match self {
            Self::Add { path, .. } | Self::Delete { path, .. } | Self::Update { path, .. } => path,
        }
    }

    fn write(&self, place: &PathBase<'_>, into: &mut Patch) -> Result<(), String> {
        let path = place.below(self.path())?;
        into.files.push(path.clone());
        let out = &mut into.text;
        match self {
            Self::Add { content, .. } => {
                into.added.push((path.clone(), content.clone()));
                head(out, &path, &path);
                out.push_str("new file mode 100644\n");
                if !content.is_empty() {
                    out.push_str(&format!("--- /dev/null\n+++ {}\n", name("b/", &path)));
                    whole(out, content, '+');
                }
            }
            Self::Delete { content, .. } => {
                head(out, &path, &path);
                out.push_str("deleted file mode 100644\n");
                if !content.is_empty() {
                    out.push_str(&format!("--- {}\n+++ /dev/null\n", name("a/", &path)));
                    whole(out, content, '-');
                }
            }
            Self::Update { hunks, moved_to, .. } => {
                let to = moved_to.as_ref().map_or(Ok(path.clone()), |to| place.below(to))?;
                head(out, &path, &to);
                if to != path {
                    out.push_str(&format!("rename from {}\nrename to {}\n", bare(&path), bare(&to)));
                    into.files.push(to.clone());
                }
                let hunks = if hunks.starts_with("@@ ") {
                    hunks.as_str()
                } else {
                    hunks.find("\n@@ ").map_or("", |at| &hunks[at + 1..])
                };
                if !are_hunks(hunks) {
                    return Err(format!("the change of `{path}` has lines that are not part of a diff"));
                }
                if !hunks.is_empty() {
                    out.push_str(&format!("--- {}\n+++ {}\n{hunks}", name("a/", &path), name("b/", &to)));
                    if !hunks.ends_with('\n') {
                        out.push('\n');
                    }
                } else if to == path {
                    return Err(format!("the change of `{path}` has no lines"));
                }
            }
        }
        Ok(())
    }
}

/// Returns true if a text consists of hunks: git takes text after a complete hunk as the next file.
fn are_hunks(text: &str) -> bool {
    let (mut old, mut new) = (0_u64, 0_u64);
    for line in text.split_terminator('\n') {
        let left = match line.as_bytes().first() {
            Some(b'\\') => Some((old, new)),
            _ if (old, new) == (0, 0) => hunk_lines(line),
            Some(b' ') | None => old.checked_sub(1).zip(new.checked_sub(1)),
            Some(b'-') => old.checked_sub(1).zip(Some(new)),
            Some(b'+') => Some(old).zip(new.checked_sub(1)),
            Some(_) => None,
        };
        let Some(left) = left else { return false };
        (old, new) = left;
    }
    (old, new) == (0, 0)
}

/// Reads the number of lines of a hunk on both sides: `@@ -1,2 +1,3 @@`.
fn hunk_lines(head: &str) -> Option<(u64, u64)> {
    let (ranges, _) = head.strip_prefix("@@ -")?.split_once(" @@")?;
    let (old, new) = ranges.split_once(" +")?;
    let lines = |range: &str| match range.split_once(',') {
        Some((from, lines)) => lines.parse().ok().filter(|_| from.parse::<u64>().is_ok()),
        None => range.parse::<u64>().ok().map(|_| 1),
    };
    lines(old).zip(lines(new))
}

fn head(out: &mut String, from: &str, to: &str) {
    out.push_str(&format!("diff --git {} {}\n", quoted("a/", from), quoted("b/", to)));
}

/// Writes all lines of a file, added or removed.
fn whole(out: &mut String, content: &str, sign: char) {
    let lines: Vec<&str> = content.split_inclusive('\n').collect();
    let range = match lines.len() {
        1 => "1".to_owned(),
        len => format!("1,{len}"),
    };
    out.push_str(&if sign == '+' {
        format!("@@ -0,0 +{range} @@\n")
    } else {
        format!("@@ -{range} +0,0 @@\n")
    });
    for line in lines {
        out.push(sign);
        out.push_str(line);
        if !line.ends_with('\n') {
            out.push_str("\n\\ No newline at end of file\n");
        }
    }
}

/// Writes a name for `---` and `+++`. A name with spaces ends with a tab.
fn name(side: &str, path: &str) -> String {
    let quoted = quoted(side, path);
    if path.contains(' ') && !quoted.starts_with('"') { format!("{quoted}\t") } else { quoted }
}

fn bare(path: &str) -> String {
    quoted("", path)
}

/// Writes a name as git does: in quotes if it contains special characters.
fn quoted(side: &str, path: &str) -> String {
    if !path.chars().any(|letter| letter.is_control() || letter == '"' || letter == '\\') {
        return format!("{side}{path}");
    }
    let mut out = format!("\"{side}");
    for letter in path.chars() {
        match letter {
            '"' | '\\' => out.extend(['\\', letter]),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            letter if letter.is_control() => {
                let mut bytes = [0; 4];
                for byte in letter.encode_utf8(&mut bytes).bytes() {
                    out.push_str(&format!("\\{byte:03o}"));
                }
            }
            letter => out.push(letter),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patch(changes: &str) -> Result<Patch, String> {
        Patch::of("c1", &RawJson::parse(changes).unwrap(), "/w", "/w/sub")
    }

    #[test]
    fn both_forms_give_the_same_patch() {
        let by_path = r#"{"/w/a.txt":{"type":"update","unified_diff":"@@ -1 +1 @@\n-a\n+b\n","move_path":null},"/w/b":{"type":"add","content":"x\ny"},"file:///w/c":{"type":"delete","content":"z\n"}}"#;
        let listed = r#"[{"path":"/w/b","kind":{"type":"add"},"diff":"x\ny"},{"path":"file:///w/c","kind":{"type":"delete"},"diff":"z\n"},{"path":"/w/a.txt","kind":{"type":"update","move_path":null},"diff":"@@ -1 +1 @@\n-a\n+b\n"}]"#;
        let made = patch(by_path).unwrap();
        assert_eq!(Ok(&made), patch(listed).as_ref());
        assert_eq!(made.files, ["a.txt", "b", "c"]);
        let want = "diff --git a/a.txt b/a.txt\n--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-a\n+b\n\
            diff --git a/b b/b\nnew file mode 100644\n--- /dev/null\n+++ b/b\n@@ -0,0 +1,2 @@\n+x\n+y\n\\ No newline at end of file\n\
            diff --git a/c b/c\ndeleted file mode 100644\n--- a/c\n+++ /dev/null\n@@ -1 +0,0 @@\n-z\n";
        assert_eq!(made.text, want);
    }

    #[test]
    fn moves_and_special_names_are_written_like_git() {
        let moved = patch(
            r#"{"/w/a b":{"type":"update","unified_diff":"@@ -1 +1 @@\n-a\n+b","move_path":"/w/c\"d"}}"#,
        );
        let want = "diff --git a/a b \"b/c\\\"d\"\nrename from a b\nrename to \"c\\\"d\"\n--- a/a b\t\n+++ \"b/c\\\"d\"\n@@ -1 +1 @@\n-a\n+b\n";
        assert_eq!(moved.unwrap().text, want);
        let listed = patch(
            r#"[{"path":"/w/a b","kind":{"type":"update","move_path":"/w/c\"d"},"diff":"@@ -1 +1 @@\n-a\n+b\n\n\nMoved to: /w/c\"d"}]"#,
        );
        assert_eq!(listed.unwrap().text, want);
        let only_moved = patch(
            r#"[{"path":"/w/a","kind":{"type":"update","move_path":"/w/b"},"diff":"\n\nMoved to: /w/b"}]"#,
        );
        assert_eq!(only_moved.unwrap().text, "diff --git a/a b/b\nrename from a\nrename to b\n");
        let relative = patch(r#"{"x":{"type":"add","content":""}}"#).unwrap();
        assert_eq!(
            (relative.text.as_str(), relative.files),
            ("diff --git a/sub/x b/sub/x\nnew file mode 100644\n", vec!["sub/x".to_owned()])
        );
    }

    #[test]
    fn invalid_or_outside_changes_are_refused() {
        for changes in [
            r#"{"/etc/passwd":{"type":"add","content":"x"}}"#,
            r#"{"/w/../x":{"type":"add","content":"x"}}"#,
            r#"{"/w/.git/hooks/x":{"type":"add","content":"x"}}"#,
            r#"{"/wx/y":{"type":"add","content":"x"}}"#,
            r#"{"/w/a":{"type":"hologram"}}"#,
            r#"{"/w/a":{"type":"delete"}}"#,
            r#"{"/w/a":{"type":"update","unified_diff":""}}"#,
            r#"{"/w/a":{"type":"update","unified_diff":"@@ -1 +1 @@\n-a\n+b\ndiff --git a/x b/x\n"}}"#,
            r#"{"/w/a":{"type":"update","unified_diff":"@@ -1 +1 @@\n-a\n+b\n--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+c\n"}}"#,
            r#"{"/w/a":{"type":"update","unified_diff":"@@ -1,2 +1 @@\n-a\n+b\n"}}"#,
            r#"{"/w/a":{"type":"update","unified_diff":"@@ -1 +1 @@\n-a\n+b\n+c\n"}}"#,
            r#"{"/w/a":{"type":"update","unified_diff":"@@ -x +1 @@\n-a\n+b\n"}}"#,
            r#"[{"path":"/w/a"}]"#,
            "5",
        ] {
            assert!(patch(changes).is_err(), "{changes}");
        }
    }
}
