//! Patches that create untracked files, in the format of `git diff`.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use steno_disk::{Links, open_regular, read_up_to};

use super::DIFF_BYTES_MAX;
use super::binary_patch::{ObjectFormat, binary_patch};

/// How far git looks for a zero byte to tell whether a file is binary.
const TEXT_HEAD_BYTES: usize = 8000;

/// Writes the patches that create files; `None` if they are too long, or a file cannot be read.
pub(super) fn new_files_patch(
    root: &Path,
    names: &[Vec<u8>],
    format: ObjectFormat,
    binary_bytes_max: usize,
) -> Option<Vec<u8>> {
    let (mut patch, mut binary_bytes) = (Vec::new(), 0);
    for name in names {
        let new = new_file_patch(root, name, format)?;
        patch.extend(new.patch);
        binary_bytes += new.binary_bytes;
        if patch.len() > DIFF_BYTES_MAX || binary_bytes > binary_bytes_max {
            return None;
        }
    }
    Some(patch)
}

/// A patch that creates a file.
struct NewFilePatch {
    patch: Vec<u8>,
    /// How many bytes the file has, if it is binary.
    binary_bytes: usize,
}

/// Writes the patch that creates a file; `None` if the file cannot be read, is too long, or is a directory.
fn new_file_patch(root: &Path, name: &[u8], format: ObjectFormat) -> Option<NewFilePatch> {
    let path = root.join(OsStr::from_bytes(name));
    let about = path.symlink_metadata().ok()?;
    let (mode, content) = if about.is_symlink() {
        ("120000", path.read_link().ok()?.as_os_str().as_bytes().to_vec())
    } else {
        let bytes = read_up_to(open_regular(&path, Links::Refused).ok()?, DIFF_BYTES_MAX as u64).ok()?;
        (if about.permissions().mode() & 0o100 == 0 { "100644" } else { "100755" }, bytes)
    };
    let (from, to) = (quoted("a/", name), quoted("b/", name));
    let mut diff = format!("diff --git {from} {to}\nnew file mode {mode}\n").into_bytes();
    let is_binary = content.iter().take(TEXT_HEAD_BYTES).any(|byte| *byte == 0);
    if is_binary {
        diff.extend(binary_patch(&content, format).ok()?);
    } else if !content.is_empty() {
        put_text(&mut diff, name, &content);
    }
    Some(NewFilePatch { patch: diff, binary_bytes: if is_binary { content.len() } else { 0 } })
}

/// Writes the lines of a text, which is not empty.
fn put_text(patch: &mut Vec<u8>, name: &[u8], content: &[u8]) {
    let to = quoted("b/", name);
    let lines = content.split_inclusive(|byte| *byte == b'\n');
    let count = match lines.clone().count() {
        1 => String::new(),
        lines => format!(",{lines}"),
    };
    // Without the tab, readers of patches would end the name at the space.
    let end_of_name = if name.contains(&b' ') && !to.starts_with('"') { "\t" } else { "" };
    patch.extend(format!("--- /dev/null\n+++ {to}{end_of_name}\n@@ -0,0 +1{count} @@\n").into_bytes());
    for line in lines {
        patch.push(b'+');
        patch.extend(line);
    }
    if !content.ends_with(b"\n") {
        patch.extend(b"\n\\ No newline at end of file\n");
    }
}

/// Writes a name as git does with `core.quotePath`: in quotes if it has other than plain characters.
fn quoted(prefix: &str, name: &[u8]) -> String {
    let mut text = String::from(prefix);
    let mut is_plain = true;
    for byte in name {
        let escaped = match byte {
            b'"' | b'\\' => format!("\\{}", char::from(*byte)),
            b'\n' => "\\n".to_owned(),
            b'\t' => "\\t".to_owned(),
            b'\r' => "\\r".to_owned(),
            b' '..=b'~' => {
                text.push(char::from(*byte));
                continue;
            }
            other => format!("\\{other:03o}"),
        };
        is_plain = false;
        text.push_str(&escaped);
    }
    if is_plain { text } else { format!("\"{text}\"") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn binary_files_have_a_limit_together() {
        let dir = tempfile::tempdir().unwrap();
        for (name, bytes) in [("a", &[0, 1, 2][..]), ("b", b"text"), ("c", &[0, 1])] {
            std::fs::write(dir.path().join(name), bytes).unwrap();
        }
        let names = ["a", "b", "c"].map(|name| name.as_bytes().to_vec());
        let patch = |bytes_max| new_files_patch(dir.path(), &names, ObjectFormat::Sha1, bytes_max);
        assert_eq!(
            patch(5).map(|patch| String::from_utf8(patch).unwrap().matches("literal").count()),
            Some(4)
        );
        assert_eq!(patch(4), None);
    }
}
